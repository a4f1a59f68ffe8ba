//! The four wires. Each is a pair of pure functions: a request in, a JSON body out; an event's JSON in,
//! [`chat::Event`](crate::chat::Event)s out. No wire does I/O, so each is tested by its exact bytes.
//!
//! Decoding is lenient on purpose: everything is a [`Value`] looked at where it is needed, never a closed type. An
//! unknown block, field or reason costs nothing but itself.

mod anthropic;
mod calls;
mod gemini;
mod legal;
mod openai_chat;
mod responses;
mod transcript;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::attach::Images;
use super::config::{Api, ModelFacts, ProviderConfig, ProviderKind};
use crate::chat::{Event, ProviderState, Request, StopReason, ToolCall, Usage};
use calls::CallBook;
use legal::Names;

/// The output limit where a wire demands one and nothing is configured (`H-12`).
const DEFAULT_OUTPUT_TOKENS: u64 = 4096;
/// The most text and reasoning one answer may hold.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// What is wrong with an answer, before anybody knows whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The provider says so, inside the answer.
    Reported {
        message: String,
        overflow: bool,
        retryable: bool,
    },
    /// A bound of ours.
    TooLarge(String),
    /// Not this wire's form.
    Nonsense(String),
    /// It ended before the provider ended it.
    Truncated(String),
}

/// Which wire a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAiChat,
    Responses,
    Anthropic,
    Gemini,
}

/// What a wire needs to write a body.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) request: &'a Request,
    pub(super) provider: &'a str,
    pub(super) model: &'a ModelFacts,
    pub(super) images: &'a Images,
    /// The host of `api_base`: a few providers take less than their wire allows.
    pub(super) host: &'a str,
}

impl Outgoing<'_> {
    /// The state to replay: only what this very provider and model produced (`H-31`).
    fn state<'s>(&self, state: Option<&'s ProviderState>) -> Option<&'s Value> {
        state
            .filter(|state| state.provider == self.provider && state.model == self.model.name)
            .map(|state| &state.data)
    }

    fn output_limit(&self) -> u64 {
        self.model
            .max_output_tokens
            .unwrap_or(DEFAULT_OUTPUT_TOKENS)
    }

    /// `temperature` and `top_p` under the names `OpenAI` and Anthropic share.
    fn sampling(&self, body: &mut Map<String, Value>) {
        if let Some(temperature) = self.request.temperature {
            body.insert("temperature".to_owned(), json!(temperature));
        }
        if let Some(top_p) = self.request.top_p {
            body.insert("top_p".to_owned(), json!(top_p));
        }
    }
}

impl Wire {
    pub(super) fn of(config: &ProviderConfig) -> Self {
        match config.kind {
            ProviderKind::Claude => Self::Anthropic,
            ProviderKind::Gemini => Self::Gemini,
            ProviderKind::OpenAi | ProviderKind::OpenAiCompatible | ProviderKind::Ollama => {
                match config.api {
                    Api::Chat => Self::OpenAiChat,
                    Api::Responses => Self::Responses,
                }
            }
        }
    }

    /// Where a request for `model` goes, below the base.
    pub(super) fn path(self, model: &str, stream: bool) -> String {
        match self {
            Self::OpenAiChat => "/chat/completions".to_owned(),
            Self::Responses => "/responses".to_owned(),
            Self::Anthropic => "/messages".to_owned(),
            Self::Gemini => {
                let model = model.strip_prefix("models/").unwrap_or(model);
                if stream {
                    format!("/models/{model}:streamGenerateContent?alt=sse")
                } else {
                    format!("/models/{model}:generateContent")
                }
            }
        }
    }

    pub(super) fn encode(self, outgoing: &Outgoing<'_>) -> Value {
        match self {
            Self::OpenAiChat => openai_chat::encode(outgoing),
            Self::Responses => responses::encode(outgoing),
            Self::Anthropic => anthropic::encode(outgoing),
            Self::Gemini => gemini::encode(outgoing),
        }
    }

    fn rules(self) -> legal::Rules {
        match self {
            Self::OpenAiChat => openai_chat::RULES,
            Self::Responses => responses::RULES,
            Self::Anthropic => anthropic::RULES,
            Self::Gemini => gemini::RULES,
        }
    }
}

/// Puts an answer together, event by event.
#[derive(Debug)]
pub(super) struct Decoder {
    provider: String,
    model: String,
    names: Names,
    wire: WireState,
    turn: Turn,
}

#[derive(Debug)]
enum WireState {
    OpenAiChat(openai_chat::State),
    Responses(responses::State),
    Anthropic(anthropic::State),
    Gemini(gemini::State),
}

/// What every wire's answer consists of.
#[derive(Debug, Default)]
struct Turn {
    out: Vec<Event>,
    calls: CallBook,
    stop: Option<StopReason>,
    usage: Option<Usage>,
    /// The wire's terminal event was seen: nothing more is read.
    ended: bool,
    size: usize,
    delivered: bool,
}

impl Turn {
    fn text(&mut self, text: &str) -> Result<(), Fault> {
        self.grow(text.len())?;
        if !text.is_empty() {
            self.out.push(Event::Text(text.to_owned()));
        }
        Ok(())
    }

    fn reasoning(&mut self, text: &str) -> Result<(), Fault> {
        self.grow(text.len())?;
        if !text.is_empty() {
            self.out.push(Event::Reasoning(text.to_owned()));
        }
        Ok(())
    }

    fn grow(&mut self, by: usize) -> Result<(), Fault> {
        self.size += by;
        if self.size > MAX_ANSWER {
            return Err(Fault::TooLarge(
                "the whole answer is over 64 MiB".to_owned(),
            ));
        }
        Ok(())
    }

    fn announce(&mut self, name: Option<String>) {
        if let Some(name) = name {
            self.out.push(Event::ToolCallStarted { name });
        }
    }
}

impl Decoder {
    pub(super) fn new(wire: Wire, outgoing: &Outgoing<'_>) -> Self {
        Self {
            provider: outgoing.provider.to_owned(),
            model: outgoing.model.name.clone(),
            names: Names::new(&outgoing.request.tools, &wire.rules()),
            wire: match wire {
                Wire::OpenAiChat => WireState::OpenAiChat(openai_chat::State::default()),
                Wire::Responses => WireState::Responses(responses::State::default()),
                Wire::Anthropic => WireState::Anthropic(anthropic::State::default()),
                Wire::Gemini => WireState::Gemini(gemini::State::default()),
            },
            turn: Turn::default(),
        }
    }

    /// Takes one event of the answer, or the whole answer where it was not streamed.
    pub(super) fn frame(&mut self, frame: &str, out: &mut Vec<Event>) -> Result<(), Fault> {
        if self.turn.ended {
            return Ok(());
        }
        if frame == "[DONE]" {
            self.turn.ended = true;
            return Ok(());
        }
        let value = crate::utils::json::parse(frame.as_bytes()).map_err(|error| {
            Fault::Nonsense(format!(
                "an event is not JSON ({error}): {}",
                excerpt(frame)
            ))
        })?;
        let result = match &value {
            // Gemini's form of a stream where SSE was not asked for.
            Value::Array(values) => values.iter().try_for_each(|value| self.value(value)),
            value => self.value(value),
        };
        self.turn.delivered |= !self.turn.out.is_empty();
        let names = &self.names;
        out.extend(self.turn.out.drain(..).map(|event| match event {
            Event::ToolCallStarted { name } => Event::ToolCallStarted {
                name: names.declared(name),
            },
            other => other,
        }));
        result
    }

    fn value(&mut self, value: &Value) -> Result<(), Fault> {
        if let Some(fault) = reported(value) {
            return Err(fault);
        }
        let turn = &mut self.turn;
        match &mut self.wire {
            WireState::OpenAiChat(state) => state.event(value, turn),
            WireState::Responses(state) => state.event(value, turn),
            WireState::Anthropic(state) => state.event(value, turn),
            WireState::Gemini(state) => state.event(value, turn),
        }
    }

    /// Whether everything that matters has been said; what may still come is the usage.
    pub(super) fn is_complete(&self) -> bool {
        self.turn.ended || self.turn.stop.is_some()
    }

    /// Whether the wire's last event was seen.
    pub(super) fn is_ended(&self) -> bool {
        self.turn.ended
    }

    /// Whether anything has been delivered.
    pub(super) fn has_delivered(&self) -> bool {
        self.turn.delivered
    }

    /// The stream is over: the calls in their order, then [`Event::End`]; a fault when it was cut.
    pub(super) fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), Fault> {
        if !self.is_complete() {
            return Err(Fault::Truncated(
                "it ended before the provider ended it".to_owned(),
            ));
        }
        let calls: Vec<ToolCall> = self
            .turn
            .calls
            .take()
            .into_iter()
            .map(|mut call| {
                call.name = self.names.declared(call.name);
                call
            })
            .collect();
        let stop = match self.turn.stop.take().unwrap_or(StopReason::Stop) {
            StopReason::Stop if !calls.is_empty() => StopReason::ToolCalls,
            StopReason::ToolCalls if calls.is_empty() => StopReason::Stop,
            other => other,
        };
        let data = match &mut self.wire {
            WireState::OpenAiChat(state) => state.replay(&calls),
            WireState::Responses(state) => state.replay(),
            WireState::Anthropic(state) => state.replay(),
            WireState::Gemini(state) => state.replay(),
        };
        out.extend(calls.into_iter().map(Event::ToolCall));
        out.push(Event::End {
            stop,
            usage: self.turn.usage.take(),
            state: data.map(|data| ProviderState {
                provider: self.provider.clone(),
                model: self.model.clone(),
                data,
            }),
        });
        Ok(())
    }
}

/// The error an event consists of, on whichever wire: `{"error": …}`, or `{"type": "error", …}`.
pub(super) fn reported(value: &Value) -> Option<Fault> {
    let error = match value.get("error") {
        None | Some(Value::Null) => {
            let is_error = [value.get("type"), value.get("object")]
                .into_iter()
                .flatten()
                .any(|word| word == "error");
            is_error.then_some(value)
        }
        Some(error) => Some(error),
    }?;
    Some(fault(error))
}

/// A provider's error object (or string) as a fault.
fn fault(error: &Value) -> Fault {
    let message = message_of(error);
    let words = ["type", "code", "status"]
        .into_iter()
        .filter_map(|key| error.get(key))
        .map(|word| match word {
            Value::String(text) => text.to_lowercase(),
            other => other.to_string(),
        })
        .collect::<Vec<_>>();
    Fault::Reported {
        overflow: is_overflow(&message) || words.iter().any(|word| is_overflow(word)),
        retryable: words.iter().any(|word| {
            matches!(
                word.as_str(),
                "overloaded_error"
                    | "rate_limit_error"
                    | "api_error"
                    | "server_error"
                    | "rate_limit_exceeded"
                    | "unavailable"
                    | "resource_exhausted"
                    | "internal"
                    | "429"
                    | "500"
                    | "502"
                    | "503"
                    | "504"
                    | "529"
            )
        }),
        message,
    }
}

/// What a person should read of a provider's error, bounded.
pub(super) fn message_of(error: &Value) -> String {
    let message = match error {
        Value::String(text) => Some(text.as_str()),
        error => ["message", "error", "detail", "msg"]
            .into_iter()
            .filter_map(|key| error.get(key))
            .find_map(|value| match value {
                Value::Object(inner) => inner.get("message").and_then(Value::as_str),
                value => value.as_str(),
            }),
    };
    let whole = || error.to_string();
    excerpt(&message.map_or_else(whole, str::to_owned))
}

fn excerpt(text: &str) -> String {
    crate::utils::text::bounded(text.trim(), 1000).into_owned()
}

/// Whether a provider's words mean that the conversation is too long.
pub(super) fn is_overflow(text: &str) -> bool {
    const PHRASES: [&str; 12] = [
        "context_length_exceeded",
        "exceed_context_size",
        "exceeds the available context",
        "maximum context length",
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "request_too_large",
        "exceeds the maximum number of tokens",
    ];
    let text = text.to_lowercase();
    PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// A call's arguments as text, on whichever wire: text, or the object that some servers write where text belongs and
/// the reverse. What is neither stays as it is, so that the model is told instead of a tool called without arguments.
fn arguments_text(arguments: Option<&Value>) -> Cow<'_, str> {
    match arguments {
        None | Some(Value::Null) => Cow::Borrowed(""),
        Some(Value::String(text)) => Cow::Borrowed(text),
        // What some languages make of an empty object.
        Some(Value::Array(items)) if items.is_empty() => Cow::Borrowed(""),
        Some(other) => Cow::Owned(other.to_string()),
    }
}

/// `value[key]` as a number of tokens.
fn tokens(value: &Value, key: &str) -> Option<u64> {
    value.get(key).and_then(Value::as_u64)
}

/// `value[key]` as text that is not empty.
fn string<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// `value[key]` as a list, empty where it is none.
fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
#[path = "bodies_tests.rs"]
mod bodies_tests;
#[cfg(test)]
#[path = "faults_tests.rs"]
mod faults_tests;
