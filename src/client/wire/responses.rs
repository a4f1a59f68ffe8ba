//! `OpenAI` Responses. Nothing is stored at the provider: reasoning comes encrypted and goes back with the next
//! request.

use serde_json::{Map, Value, json};

use super::calls::Piece;
use super::openai_chat::arguments;
use super::transcript::{Answer, Entry, entries};
use super::{Fault, Outgoing, Turn, arguments_text, legal, list, string, tokens};
use crate::chat::{Part, StopReason, ToolCall, ToolChoice, Usage};
use crate::client::attach::Sent;
use crate::client::schema;

pub(super) const RULES: legal::Rules = legal::Rules {
    max_id: 64,
    any_id: true,
    name_starts_with_letter: false,
};

pub(super) fn encode(outgoing: &Outgoing<'_>) -> Value {
    let request = outgoing.request;
    let mut input = Vec::new();
    for entry in entries(&request.messages) {
        match entry {
            Entry::User(parts) => input.push(json!({
                "type": "message",
                "role": "user",
                "content": parts.iter().map(|part| content(outgoing, part)).collect::<Vec<_>>(),
            })),
            Entry::Assistant { text, calls, state } => {
                assistant(text, &calls, outgoing.state(state), &mut input);
            }
            Entry::Results(answers) => {
                input.extend(answers.iter().map(|answer| result(outgoing, answer)));
            }
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(outgoing.model.name));
    if let Some(system) = &request.system {
        body.insert("instructions".to_owned(), json!(system));
    }
    body.insert("input".to_owned(), Value::Array(input));
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "type": "function",
                    "name": legal::name(&tool.name, &RULES),
                    "description": tool.description,
                    "parameters": schema::object(&tool.parameters),
                    "strict": false,
                })
            })
            .collect();
        body.insert("tools".to_owned(), Value::Array(tools));
        if request.tool_choice == ToolChoice::None {
            body.insert("tool_choice".to_owned(), json!("none"));
        }
    }
    outgoing.sampling(&mut body);
    body.insert("store".to_owned(), json!(false));
    if reasons(&outgoing.model.name) {
        let include = json!(["reasoning.encrypted_content"]);
        body.insert("include".to_owned(), include);
    }
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    Value::Object(body)
}

/// Whether to ask for encrypted reasoning; models that do not reason refuse the question.
fn reasons(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or(model);
    let mut chars = model.chars();
    let o_series = chars.next() == Some('o') && chars.next().is_some_and(|c| c.is_ascii_digit());
    let newer = model
        .strip_prefix("gpt-")
        .and_then(|rest| rest.chars().next())
        .is_some_and(|c| ('5'..='9').contains(&c));
    o_series || (newer && !model.contains("-chat"))
}

/// An answer as items in the order in which they came: reasoning must stand before what it led to.
fn assistant(text: &str, calls: &[ToolCall], state: Option<&Value>, input: &mut Vec<Value>) {
    let mut text = Some(text).filter(|text| !text.is_empty());
    let mut calls = calls.iter();
    for item in state.map_or(&[][..], |state| list(state, "items")) {
        match string(item, "type") {
            Some("text") => input.extend(text.take().map(message)),
            Some("call") => input.extend(calls.next().map(function_call)),
            _ => input.push(item.clone()),
        }
    }
    input.extend(text.take().map(message));
    input.extend(calls.map(function_call));
}

fn message(text: &str) -> Value {
    json!({
        "type": "message",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text }],
    })
}

fn function_call(call: &ToolCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": legal::id(&call.id.0, &RULES),
        "name": legal::name(&call.name, &RULES),
        "arguments": arguments(&call.arguments),
    })
}

fn result(outgoing: &Outgoing<'_>, answer: &Answer<'_>) -> Value {
    let text = answer.output.to_text();
    let output = if answer.output.images.is_empty() {
        json!(text)
    } else {
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(json!({ "type": "input_text", "text": text }));
        }
        let images = &answer.output.images;
        parts.extend(
            images
                .iter()
                .map(|image| input_image(outgoing.images.get(image))),
        );
        Value::Array(parts)
    };
    json!({
        "type": "function_call_output",
        "call_id": legal::id(&answer.call.id.0, &RULES),
        "output": output,
    })
}

fn content(outgoing: &Outgoing<'_>, part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
        Part::Image(image) => input_image(outgoing.images.get(image)),
    }
}

fn input_image(image: Sent<'_>) -> Value {
    match image {
        Sent::Data { mime_type, base64 } => json!({
            "type": "input_image",
            "image_url": format!("data:{mime_type};base64,{base64}"),
        }),
        Sent::Url(url) => json!({ "type": "input_image", "image_url": url }),
        Sent::Text(text) => json!({ "type": "input_text", "text": text }),
    }
}

/// What an item that says nothing but its kind costs to remember, in bytes.
const ITEM: usize = 64;

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Reasoning items whole, `{"type": "text"}` and `{"type": "call"}` for the rest, in order.
    items: Vec<Value>,
    /// Calls in the order in which they began; a call's place here is its key in the call book.
    calls: Vec<Label>,
    has_reasoning: bool,
    text_seen: bool,
    summary_seen: bool,
}

/// What an event says about the call it is about. Servers leave out any of it, and some give an item another id in
/// every event, so no part is the key by itself.
#[derive(Debug, Default)]
struct Label {
    item_id: Option<String>,
    call_id: Option<String>,
    output_index: Option<u64>,
    /// The call has come whole.
    settled: bool,
}

impl Label {
    fn of(event: &Value) -> Self {
        let item = event.get("item").unwrap_or(&Value::Null);
        Self {
            item_id: string(event, "item_id")
                .or_else(|| string(item, "id"))
                .map(str::to_owned),
            call_id: string(item, "call_id").map(str::to_owned),
            output_index: tokens(event, "output_index"),
            settled: false,
        }
    }

    /// Whether `event` is about the call that this label was made for.
    fn is_meant_by(&self, event: &Self) -> bool {
        let call_ids = agree(self.call_id.as_ref(), event.call_id.as_ref());
        let item_ids = agree(self.item_id.as_ref(), event.item_id.as_ref());
        let places = agree(self.output_index.as_ref(), event.output_index.as_ref());
        match (call_ids, item_ids, places) {
            (Some(false), ..) => false,
            (_, Some(true), _) | (Some(true), None, _) => true,
            (_, Some(false), places) => places == Some(true),
            (None, None, Some(same)) => same,
            (None, None, None) => !self.settled,
        }
    }
}

/// Whether two labels say the same, where both say something.
fn agree<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> Option<bool> {
    Some(one? == other?)
}

impl State {
    pub(super) fn event(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let delta = string(event, "delta").unwrap_or_default();
        match string(event, "type") {
            Some("response.output_text.delta" | "response.refusal.delta") => {
                self.text_seen = true;
                turn.text(delta)
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                self.summary_seen = true;
                turn.reasoning(delta)
            }
            // Several summaries are several paragraphs.
            Some("response.reasoning_summary_part.added") if self.summary_seen => {
                turn.reasoning("\n\n")
            }
            Some("response.output_item.added") => self.added(event, turn),
            Some("response.function_call_arguments.delta") => {
                let last = || self.calls.len().checked_sub(1);
                let at = self.find(&Label::of(event)).or_else(last);
                let piece = Piece {
                    index: at.and_then(|at| u64::try_from(at).ok()),
                    arguments: delta,
                    ..Piece::default()
                };
                turn.calls.add(piece).map(|_| ())
            }
            Some("response.output_item.done") => self.item_done(event, turn),
            // Some servers say everything at the end, and nothing before it.
            Some("response.completed" | "response.incomplete") if !self.has_begun() => {
                self.whole(event.get("response").unwrap_or(&Value::Null), turn)
            }
            Some("response.completed") => {
                end(event, StopReason::Stop, turn);
                Ok(())
            }
            Some("response.incomplete") => {
                let reason = event
                    .pointer("/response/incomplete_details/reason")
                    .and_then(Value::as_str);
                end(event, incomplete(reason), turn);
                Ok(())
            }
            Some("response.failed") => Err(super::fault(
                event.pointer("/response/error").unwrap_or(event),
            )),
            // A whole answer: not streamed, though it may have been asked for.
            None if event.get("output").is_some() => self.whole(event, turn),
            _ if string(event, "object") == Some("response") => self.whole(event, turn),
            _ => Ok(()),
        }
    }

    /// The place of the call that an event is about.
    fn find(&self, event: &Label) -> Option<usize> {
        let meant = |label: &Label| label.is_meant_by(event);
        let exactly = |label: &Label| meant(label) && label.output_index == event.output_index;
        (self.calls.iter().rposition(exactly)).or_else(|| self.calls.iter().position(meant))
    }

    fn added(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        if string(item, "type") != Some("function_call") {
            return Ok(());
        }
        self.begin_call(Label::of(event), item, turn)
    }

    fn begin_call(&mut self, label: Label, item: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let begun = turn.calls.add(Piece {
            index: u64::try_from(self.calls.len()).ok(),
            id: string(item, "call_id").or_else(|| string(item, "id")),
            name: string(item, "name"),
            arguments: &arguments_text(item.get("arguments")),
        })?;
        self.calls.push(label);
        turn.announce(begun);
        Ok(())
    }

    fn call_done(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        let label = Label::of(event);
        let at = self.find(&label);
        match at {
            None => self.begin_call(label, item, turn)?,
            // The item is whole: what the deltas made is replaced.
            Some(at) => {
                let arguments = arguments_text(item.get("arguments"));
                if let (Ok(index), false) = (u64::try_from(at), arguments.is_empty()) {
                    turn.calls.settle(index, &arguments)?;
                }
            }
        }
        let at = at.unwrap_or(self.calls.len().saturating_sub(1));
        if let Some(label) = self.calls.get_mut(at)
            && !std::mem::replace(&mut label.settled, true)
        {
            self.items.push(json!({ "type": "call" }));
        }
        Ok(())
    }

    fn item_done(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        match string(item, "type") {
            Some("function_call") => self.call_done(event, turn),
            Some("message") => {
                turn.grow(ITEM)?;
                self.items.push(json!({ "type": "text" }));
                if self.text_seen {
                    Ok(())
                } else {
                    message_text(item, turn)
                }
            }
            Some("reasoning") => {
                turn.grow(item.to_string().len())?;
                if string(item, "encrypted_content").is_some() {
                    self.has_reasoning = true;
                    self.items.push(json!({
                        "type": "reasoning",
                        "summary": item.get("summary").cloned().unwrap_or_else(|| json!([])),
                        "encrypted_content": item.get("encrypted_content"),
                    }));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn has_begun(&self) -> bool {
        self.text_seen || !self.calls.is_empty() || !self.items.is_empty()
    }

    fn whole(&mut self, response: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let status = string(response, "status").unwrap_or("completed");
        if status == "failed" {
            return Err(super::fault(response));
        }
        for item in list(response, "output") {
            for part in list(item, "summary") {
                if self.summary_seen {
                    break;
                }
                turn.reasoning(string(part, "text").unwrap_or_default())?;
            }
            self.item_done(&json!({ "item": item }), turn)?;
        }
        let reason = response
            .pointer("/incomplete_details/reason")
            .and_then(Value::as_str);
        let stop = match status {
            "incomplete" => incomplete(reason),
            _ => StopReason::Stop,
        };
        end(
            &json!({ "response": { "usage": response.get("usage") } }),
            stop,
            turn,
        );
        Ok(())
    }

    pub(super) fn replay(&mut self) -> Option<Value> {
        self.has_reasoning
            .then(|| json!({ "items": std::mem::take(&mut self.items) }))
    }
}

fn end(event: &Value, stop: StopReason, turn: &mut Turn) {
    if let Some(usage) = event.pointer("/response/usage")
        && let Some(input) = tokens(usage, "input_tokens")
    {
        let details = usage.get("input_tokens_details").unwrap_or(&Value::Null);
        turn.usage = Some(Usage {
            input,
            output: tokens(usage, "output_tokens").unwrap_or_default(),
            cached: tokens(details, "cached_tokens").unwrap_or_default(),
        });
    }
    turn.stop = Some(stop);
    turn.ended = true;
}

fn incomplete(reason: Option<&str>) -> StopReason {
    match reason {
        Some("max_output_tokens") | None => StopReason::Length,
        Some("content_filter") => StopReason::Refused,
        Some(other) => StopReason::Other(other.to_owned()),
    }
}

fn message_text(item: &Value, turn: &mut Turn) -> Result<(), Fault> {
    list(item, "content").iter().try_for_each(|part| {
        let text = string(part, "text").or_else(|| string(part, "refusal"));
        turn.text(text.unwrap_or_default())
    })
}
