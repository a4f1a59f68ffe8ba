//! `OpenAI` chat completions, and what everything compatible makes of it.

use serde_json::{Map, Value, json};

use super::calls::Piece;
use super::transcript::{Answer, Entry, entries};
use super::{Fault, Outgoing, Turn, arguments_text, legal, list, string, tokens};
use crate::chat::{Arguments, Part, StopReason, ToolCall, ToolChoice, Usage};
use crate::client::attach::Sent;
use crate::client::schema;

pub(super) const RULES: legal::Rules = legal::Rules {
    max_id: 40,
    any_id: true,
    name_starts_with_letter: false,
};

/// Mistral takes ids of exactly nine letters and digits.
const MISTRAL: legal::Rules = legal::Rules {
    max_id: 9,
    any_id: false,
    name_starts_with_letter: false,
};

pub(super) fn encode(outgoing: &Outgoing<'_>) -> Value {
    let request = outgoing.request;
    let mistral = outgoing.host.ends_with("mistral.ai");
    let rules = if mistral { MISTRAL } else { RULES };
    let mut messages = Vec::new();
    if let Some(system) = &request.system {
        messages.push(json!({ "role": "system", "content": system }));
    }
    for entry in entries(&request.messages) {
        match entry {
            Entry::User(parts) => {
                messages.push(json!({ "role": "user", "content": content(outgoing, parts) }));
            }
            Entry::Assistant { text, calls, state } => {
                messages.push(assistant(&rules, text, &calls, outgoing.state(state)));
            }
            Entry::Results(answers) => results(outgoing, &rules, &answers, &mut messages),
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(outgoing.model.name));
    body.insert("messages".to_owned(), Value::Array(messages));
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({ "type": "function", "function": {
                    "name": legal::name(&tool.name, &rules),
                    "description": tool.description,
                    "parameters": schema::object(&tool.parameters),
                }})
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        if request.tool_choice == ToolChoice::None {
            body.insert("tool_choice".to_owned(), json!("none"));
        }
    }
    outgoing.sampling(&mut body);
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
        // Mistral refuses what it does not know, and tells the usage unasked.
        if !mistral {
            body.insert(
                "stream_options".to_owned(),
                json!({ "include_usage": true }),
            );
        }
    }
    Value::Object(body)
}

fn assistant(rules: &legal::Rules, text: &str, calls: &[ToolCall], state: Option<&Value>) -> Value {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!("assistant"));
    let content = if text.is_empty() {
        Value::Null
    } else {
        json!(text)
    };
    message.insert("content".to_owned(), content);
    if !calls.is_empty() {
        let extras = state.map_or(&[][..], |state| list(state, "calls"));
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(at, call)| {
                let mut written = json!({
                    "id": legal::id(&call.id.0, rules),
                    "type": "function",
                    "function": {
                        "name": legal::name(&call.name, rules),
                        "arguments": arguments(&call.arguments),
                    },
                });
                if let (Some(extra), Value::Object(written)) = (extras.get(at), &mut written)
                    && !extra.is_null()
                {
                    written.insert("extra_content".to_owned(), extra.clone());
                }
                written
            })
            .collect();
        message.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    if let Some(details) = state.and_then(|state| state.get("reasoning_details")) {
        message.insert("reasoning_details".to_owned(), details.clone());
    }
    Value::Object(message)
}

/// Arguments as the JSON text of an object: servers parse the replayed text, and refuse what is none.
pub(super) fn arguments(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Object(_) => arguments.to_text(),
        Arguments::Malformed(text) => json!({ "malformed_arguments": text }).to_string(),
    }
}

fn results(
    outgoing: &Outgoing<'_>,
    rules: &legal::Rules,
    answers: &[Answer<'_>],
    messages: &mut Vec<Value>,
) {
    let mut images = Vec::new();
    for answer in answers {
        messages.push(json!({
            "role": "tool",
            "tool_call_id": legal::id(&answer.call.id.0, rules),
            "content": answer.output.to_text(),
        }));
        for image in &answer.output.images {
            images.push(part(outgoing.images.get(image)));
        }
    }
    // This wire's tool messages hold text only; what they show follows from the user's side.
    if !images.is_empty() {
        images.insert(
            0,
            json!({ "type": "text", "text": "Images of the tool results:" }),
        );
        messages.push(json!({ "role": "user", "content": images }));
    }
}

fn content(outgoing: &Outgoing<'_>, parts: &[Part]) -> Value {
    // A plain string is what every compatible server takes.
    if let [Part::Text(text)] = parts {
        return json!(text);
    }
    parts
        .iter()
        .map(|each| match each {
            Part::Text(text) => json!({ "type": "text", "text": text }),
            Part::Image(image) => part(outgoing.images.get(image)),
        })
        .collect()
}

fn part(image: Sent<'_>) -> Value {
    match image {
        Sent::Data { mime_type, base64 } => json!({
            "type": "image_url",
            "image_url": { "url": format!("data:{mime_type};base64,{base64}") },
        }),
        Sent::Url(url) => json!({ "type": "image_url", "image_url": { "url": url } }),
        Sent::Text(text) => json!({ "type": "text", "text": text }),
    }
}

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Provider data of calls (`extra_content`), by position.
    extras: Vec<Value>,
    /// `OpenRouter`'s reasoning, to be handed back unchanged.
    details: Vec<Value>,
    refusal: bool,
}

impl State {
    pub(super) fn event(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        if let Some(usage) = usage(event) {
            turn.usage = Some(usage);
        }
        let Some(choice) = list(event, "choices").first() else {
            return Ok(());
        };
        if let Some(fault) = super::reported(choice) {
            return Err(fault);
        }
        // A whole answer has a `message` where a streamed one has a `delta`; some servers send both.
        let object = |key| choice.get(key).filter(|value| value.is_object());
        if let Some(delta) = object("delta").or_else(|| object("message")) {
            self.delta(delta, turn)?;
        }
        if let Some(reason) = string(choice, "finish_reason") {
            turn.stop = Some(match reason {
                _ if self.refusal => StopReason::Refused,
                "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" => StopReason::Stop,
                "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
                "length" | "max_tokens" | "model_length" => StopReason::Length,
                "content_filter" => StopReason::Refused,
                other => StopReason::Other(crate::utils::text::bounded(other, 100).into_owned()),
            });
        } else if is_whole(event, choice) && turn.stop.is_none() {
            // There is nothing it could be cut off from.
            turn.stop = Some(StopReason::Stop);
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let reasoning = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|key| string(delta, key));
        if let Some(text) = reasoning {
            turn.reasoning(text)?;
        }
        for detail in list(delta, "reasoning_details") {
            turn.grow(detail.to_string().len())?;
            keep_detail(&mut self.details, detail);
        }
        match delta.get("content") {
            Some(Value::String(text)) => turn.text(text)?,
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .try_for_each(|part| match string(part, "type") {
                        Some("text") => turn.text(string(part, "text").unwrap_or_default()),
                        // Mistral's reasoning models answer in parts.
                        Some("thinking") => list(part, "thinking").iter().try_for_each(|each| {
                            turn.reasoning(string(each, "text").unwrap_or_default())
                        }),
                        _ => Ok(()),
                    })?;
            }
            _ => {}
        }
        if let Some(refusal) = string(delta, "refusal") {
            self.refusal = true;
            turn.text(refusal)?;
        }
        list(delta, "tool_calls")
            .iter()
            .try_for_each(|call| self.call(call, turn))
    }

    fn call(&mut self, call: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let function = call.get("function").unwrap_or(&Value::Null);
        let arguments = arguments_text(function.get("arguments"));
        let begun = turn.calls.add(Piece {
            index: tokens(call, "index"),
            id: string(call, "id"),
            name: string(function, "name"),
            arguments: &arguments,
        })?;
        turn.announce(begun);
        if let Some(extra) = call.get("extra_content").filter(|extra| extra.is_object()) {
            turn.grow(extra.to_string().len())?;
            let at = turn.calls.len().saturating_sub(1);
            self.extras.resize(at + 1, Value::Null);
            if let Some(slot) = self.extras.get_mut(at) {
                *slot = extra.clone();
            }
        }
        Ok(())
    }

    pub(super) fn replay(&mut self, calls: &[ToolCall]) -> Option<Value> {
        let mut data = Map::new();
        if !calls.is_empty() && !self.extras.is_empty() {
            data.insert(
                "calls".to_owned(),
                Value::Array(std::mem::take(&mut self.extras)),
            );
        }
        if !self.details.is_empty() {
            let details = Value::Array(std::mem::take(&mut self.details));
            data.insert("reasoning_details".to_owned(), details);
        }
        (!data.is_empty()).then_some(Value::Object(data))
    }
}

/// Whether this is an answer that is not streamed: a message, and nothing that says it is one of many pieces.
fn is_whole(event: &Value, choice: &Value) -> bool {
    choice.get("message").is_some_and(Value::is_object)
        && choice.get("delta").is_none()
        && string(event, "object") != Some("chat.completion.chunk")
}

/// Appends a piece of reasoning detail: pieces of one detail have one `index` and one `type`, their text adds up
/// and everything else is said once.
fn keep_detail(details: &mut Vec<Value>, piece: &Value) {
    let Some(piece_map) = piece.as_object() else {
        return;
    };
    if let Some(Value::Object(last)) = details.last_mut()
        && last.get("index").is_some()
        && last.get("index") == piece_map.get("index")
        && last.get("type") == piece_map.get("type")
    {
        for (key, value) in piece_map {
            match (last.get_mut(key), value) {
                (Some(Value::String(known)), Value::String(more))
                    if matches!(key.as_str(), "text" | "summary" | "data") =>
                {
                    known.push_str(more);
                }
                (Some(known), value) if known.is_null() => *known = value.clone(),
                (None, value) => {
                    last.insert(key.clone(), value.clone());
                }
                _ => {}
            }
        }
        return;
    }
    details.push(piece.clone());
}

fn usage(event: &Value) -> Option<Usage> {
    let usage = event
        .get("usage")
        .filter(|usage| usage.is_object())
        .or_else(|| event.get("x_groq")?.get("usage"))?;
    let input = tokens(usage, "prompt_tokens")?;
    let details = usage.get("prompt_tokens_details").unwrap_or(&Value::Null);
    Some(Usage {
        input,
        output: tokens(usage, "completion_tokens").unwrap_or_default(),
        cached: tokens(details, "cached_tokens")
            .or_else(|| tokens(usage, "prompt_cache_hit_tokens"))
            .unwrap_or_default(),
    })
}
