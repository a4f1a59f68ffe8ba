//! `OpenAI` Responses. Nothing is stored at the provider: reasoning comes encrypted and goes back with the next
//! request.

use serde_json::{Map, Value, json};

use super::calls::Piece;
use super::openai_chat::arguments;
use super::transcript::{Answer, Entry, entries};
use super::{Fault, Outgoing, Turn, legal, list, string, tokens};
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

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Reasoning items whole, `{"type": "text"}` and `{"type": "call"}` for the rest, in order.
    items: Vec<Value>,
    /// Item ids of calls in the order in which they began: servers that send no `output_index`.
    calls: Vec<String>,
    has_reasoning: bool,
    text_seen: bool,
    summary_seen: bool,
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
                let index = self.index(event);
                let piece = Piece {
                    index,
                    arguments: delta,
                    ..Piece::default()
                };
                turn.calls.add(piece).map(|_| ())
            }
            Some("response.output_item.done") => self.item_done(event, turn),
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

    /// The key of the call an event is about.
    fn index(&self, event: &Value) -> Option<u64> {
        let by_id = string(event, "item_id")
            .or_else(|| string(event.get("item")?, "id"))
            .and_then(|id| self.calls.iter().position(|known| known == id))
            .and_then(|at| u64::try_from(at).ok());
        by_id.or_else(|| u64::try_from(self.calls.len()).ok()?.checked_sub(1))
    }

    fn added(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        if string(item, "type") != Some("function_call") {
            return Ok(());
        }
        self.begin_call(item, turn)
    }

    fn begin_call(&mut self, item: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let id = string(item, "id").or_else(|| string(item, "call_id"));
        let index = u64::try_from(self.calls.len()).ok();
        self.calls.push(id.unwrap_or_default().to_owned());
        let begun = turn.calls.add(Piece {
            index,
            id: string(item, "call_id").or_else(|| string(item, "id")),
            name: string(item, "name"),
            arguments: string(item, "arguments").unwrap_or_default(),
        })?;
        turn.announce(begun);
        Ok(())
    }

    fn item_done(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let item = event.get("item").unwrap_or(&Value::Null);
        match string(item, "type") {
            Some("function_call") => {
                let known = string(item, "id")
                    .or_else(|| string(item, "call_id"))
                    .is_some_and(|id| self.calls.iter().any(|known| known == id));
                if !known {
                    self.begin_call(item, turn)?;
                }
                // The item is whole: what the deltas made is replaced.
                if let (Some(index), Some(arguments)) =
                    (self.index(event), string(item, "arguments"))
                {
                    turn.calls.settle(index, arguments);
                }
                self.items.push(json!({ "type": "call" }));
                Ok(())
            }
            Some("message") => {
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

    fn whole(&mut self, response: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let status = string(response, "status").unwrap_or("completed");
        if status == "failed" {
            return Err(super::fault(response));
        }
        for item in list(response, "output") {
            for part in list(item, "summary") {
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
