//! Anthropic Messages.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::calls::Piece;
use super::transcript::{Answer, Entry, entries};
use super::{Fault, Outgoing, Turn, arguments_text, legal, list, string, tokens};
use crate::chat::{Arguments, Part, StopReason, ToolCall, ToolChoice, Usage};
use crate::client::attach::Sent;
use crate::client::schema;

pub(super) const RULES: legal::Rules = legal::Rules {
    max_id: 64,
    any_id: false,
    name_starts_with_letter: false,
};

pub(super) fn encode(outgoing: &Outgoing<'_>) -> Value {
    let request = outgoing.request;
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut called: Vec<String> = Vec::new();
    for entry in entries(&request.messages) {
        match entry {
            Entry::User(parts) => {
                let blocks = parts.iter().filter_map(|part| user_block(outgoing, part));
                push(&mut messages, "user", blocks.collect());
            }
            Entry::Assistant { text, calls, state } => {
                called.extend(calls.iter().map(|call| legal::name(&call.name, &RULES)));
                let blocks = assistant(text, &calls, outgoing.state(state));
                push(&mut messages, "assistant", blocks);
            }
            Entry::Results(answers) => {
                let blocks = answers.iter().map(|answer| result(outgoing, answer));
                push(&mut messages, "user", blocks.collect());
            }
        }
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(outgoing.model.name));
    body.insert("max_tokens".to_owned(), json!(outgoing.output_limit()));
    if let Some(system) = request
        .system
        .as_ref()
        .filter(|system| !system.trim().is_empty())
    {
        body.insert("system".to_owned(), json!(system));
    }
    let messages: Vec<Value> = messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect();
    body.insert("messages".to_owned(), Value::Array(messages));
    tools(outgoing, called, &mut body);
    outgoing.sampling(&mut body);
    if request.stream {
        body.insert("stream".to_owned(), json!(true));
    }
    Value::Object(body)
}

/// This wire refuses a history with calls when nothing is declared: then what was called is declared, and must
/// not be called again.
fn tools(outgoing: &Outgoing<'_>, called: Vec<String>, body: &mut Map<String, Value>) {
    let request = outgoing.request;
    let mut tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": legal::name(&tool.name, &RULES),
                "description": tool.description,
                "input_schema": schema::object(&tool.parameters),
            })
        })
        .collect();
    let forbidden = request.tool_choice == ToolChoice::None || tools.is_empty();
    if tools.is_empty() {
        let mut known: Vec<String> = Vec::new();
        for name in called {
            if !known.contains(&name) {
                tools.push(
                    json!({ "name": name, "input_schema": { "type": "object", "properties": {} } }),
                );
                known.push(name);
            }
        }
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
        if forbidden {
            body.insert("tool_choice".to_owned(), json!({ "type": "none" }));
        }
    }
}

/// Appends blocks; the roles must alternate, so neighbours of one role become one message.
fn push(messages: &mut Vec<(&'static str, Vec<Value>)>, role: &'static str, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    match messages.last_mut() {
        Some((last, content)) if *last == role => content.extend(blocks),
        _ => messages.push((role, blocks)),
    }
}

fn text_block(text: &str) -> Option<Value> {
    // Blank text blocks are refused.
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn user_block(outgoing: &Outgoing<'_>, part: &Part) -> Option<Value> {
    match part {
        Part::Text(text) => text_block(text),
        Part::Image(image) => Some(image_block(outgoing.images.get(image))),
    }
}

fn image_block(image: Sent<'_>) -> Value {
    match image {
        Sent::Data { mime_type, base64 } => json!({
            "type": "image",
            "source": { "type": "base64", "media_type": mime_type, "data": base64 },
        }),
        Sent::Url(url) => json!({ "type": "image", "source": { "type": "url", "url": url } }),
        Sent::Text(text) => json!({ "type": "text", "text": text }),
    }
}

/// An answer as blocks in the order in which they came: thinking must stand before what it led to.
fn assistant(text: &str, calls: &[ToolCall], state: Option<&Value>) -> Vec<Value> {
    let mut blocks = Vec::new();
    let mut text = text_block(text);
    let mut calls = calls.iter();
    for item in state.map_or(&[][..], |state| list(state, "blocks")) {
        match string(item, "type") {
            Some("text") => blocks.extend(text.take()),
            Some("call") => blocks.extend(calls.next().map(tool_use)),
            _ => blocks.push(item.clone()),
        }
    }
    // Text after a call would separate the call from its result.
    if let Some(text) = text {
        let before = blocks.iter().position(|block| block["type"] == "tool_use");
        blocks.insert(before.unwrap_or(blocks.len()), text);
    }
    blocks.extend(calls.map(tool_use));
    blocks
}

fn tool_use(call: &ToolCall) -> Value {
    let input = match &call.arguments {
        Arguments::Object(map) => Value::Object(map.clone()),
        Arguments::Malformed(text) => json!({ "malformed_arguments": text }),
    };
    json!({
        "type": "tool_use",
        "id": legal::id(&call.id.0, &RULES),
        "name": legal::name(&call.name, &RULES),
        "input": input,
    })
}

fn result(outgoing: &Outgoing<'_>, answer: &Answer<'_>) -> Value {
    let text = answer.output.to_text();
    let mut content: Vec<Value> = text_block(&text).into_iter().collect();
    let images = &answer.output.images;
    content.extend(
        images
            .iter()
            .map(|image| image_block(outgoing.images.get(image))),
    );
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": legal::id(&answer.call.id.0, &RULES),
    });
    if let Value::Object(block) = &mut block {
        // A result without content is how this wire says that there is nothing to say.
        if !content.is_empty() {
            block.insert("content".to_owned(), Value::Array(content));
        }
        if answer.output.is_error {
            block.insert("is_error".to_owned(), json!(true));
        }
    }
    block
}

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Thinking whole, `{"type": "text"}` and `{"type": "call"}` for the rest, in order.
    blocks: Vec<Value>,
    /// The thinking block that is open.
    thinking: Option<(String, String)>,
    /// The index of a block whose deltas are somebody else's: server tools.
    skipped: Option<u64>,
    has_thinking: bool,
    input: Usage,
}

impl State {
    pub(super) fn event(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        match string(event, "type") {
            Some("message_start") => {
                self.usage(event.pointer("/message/usage"), turn);
                Ok(())
            }
            Some("content_block_start") => {
                let block = event.get("content_block").unwrap_or(&Value::Null);
                self.start(tokens(event, "index"), block, turn)
            }
            Some("content_block_delta") => self.delta(event, turn),
            Some("content_block_stop") => {
                self.close_thinking();
                Ok(())
            }
            Some("message_delta") => {
                self.usage(event.get("usage"), turn);
                if let Some(reason) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
                    turn.stop = Some(stop(reason));
                }
                Ok(())
            }
            Some("message_stop") => {
                turn.ended = true;
                Ok(())
            }
            Some("message") => self.whole(event, turn),
            _ => Ok(()),
        }
    }

    fn start(&mut self, index: Option<u64>, block: &Value, turn: &mut Turn) -> Result<(), Fault> {
        self.close_thinking();
        self.skipped = None;
        match string(block, "type") {
            Some("text") => {
                if self.blocks.last().is_none_or(|last| last["type"] != "text") {
                    self.blocks.push(json!({ "type": "text" }));
                }
                turn.text(string(block, "text").unwrap_or_default())
            }
            Some("thinking") => {
                let text = string(block, "thinking").unwrap_or_default().to_owned();
                turn.reasoning(&text)?;
                let signature = string(block, "signature").unwrap_or_default().to_owned();
                self.thinking = Some((text, signature));
                Ok(())
            }
            Some("redacted_thinking") => {
                turn.grow(block.to_string().len())?;
                self.has_thinking = true;
                self.blocks.push(json!({
                    "type": "redacted_thinking",
                    "data": string(block, "data").unwrap_or_default(),
                }));
                Ok(())
            }
            Some("tool_use") => {
                self.blocks.push(json!({ "type": "call" }));
                // The input of a start event is `{}` when it follows in pieces, and everything when it does not.
                let whole = match block.get("input") {
                    Some(Value::Object(input)) if input.is_empty() => Cow::Borrowed(""),
                    input => arguments_text(input),
                };
                let begun = turn.calls.add(Piece {
                    index,
                    id: string(block, "id"),
                    name: string(block, "name"),
                    arguments: &whole,
                })?;
                turn.announce(begun);
                Ok(())
            }
            _ => {
                self.skipped = index;
                Ok(())
            }
        }
    }

    fn delta(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let delta = event.get("delta").unwrap_or(&Value::Null);
        let index = tokens(event, "index");
        match string(delta, "type") {
            Some("text_delta") => turn.text(string(delta, "text").unwrap_or_default()),
            Some("thinking_delta") => {
                let text = string(delta, "thinking").unwrap_or_default();
                self.thinking.get_or_insert_default().0.push_str(text);
                turn.reasoning(text)
            }
            Some("signature_delta") => {
                let signature = string(delta, "signature").unwrap_or_default();
                turn.grow(signature.len())?;
                self.thinking.get_or_insert_default().1.push_str(signature);
                Ok(())
            }
            Some("input_json_delta") if index.is_none() || index != self.skipped => turn
                .calls
                .add(Piece {
                    index,
                    arguments: string(delta, "partial_json").unwrap_or_default(),
                    ..Piece::default()
                })
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    fn close_thinking(&mut self) {
        // Without its signature a thinking block is refused, so it is not kept.
        if let Some((thinking, signature)) = self.thinking.take()
            && !signature.is_empty()
        {
            self.has_thinking = true;
            self.blocks.push(json!({
                "type": "thinking",
                "thinking": thinking,
                "signature": signature,
            }));
        }
    }

    fn whole(&mut self, message: &Value, turn: &mut Turn) -> Result<(), Fault> {
        self.usage(message.get("usage"), turn);
        for (index, block) in list(message, "content").iter().enumerate() {
            self.start(u64::try_from(index).ok(), block, turn)?;
        }
        self.close_thinking();
        turn.stop = Some(string(message, "stop_reason").map_or(StopReason::Stop, stop));
        turn.ended = true;
        Ok(())
    }

    /// Numbers are cumulative; an event repeats those it has news of.
    fn usage(&mut self, usage: Option<&Value>, turn: &mut Turn) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else {
            return;
        };
        if let Some(input) = tokens(usage, "input_tokens") {
            let cached = tokens(usage, "cache_read_input_tokens").unwrap_or_default();
            let written = tokens(usage, "cache_creation_input_tokens").unwrap_or_default();
            self.input.cached = cached;
            self.input.input = input.saturating_add(cached).saturating_add(written);
        }
        if let Some(output) = tokens(usage, "output_tokens") {
            self.input.output = output;
        }
        turn.usage = Some(self.input);
    }

    pub(super) fn replay(&mut self) -> Option<Value> {
        self.has_thinking
            .then(|| json!({ "blocks": std::mem::take(&mut self.blocks) }))
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "end_turn" | "stop_sequence" => StopReason::Stop,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refused,
        other => StopReason::Other(crate::utils::text::bounded(other, 100).into_owned()),
    }
}
