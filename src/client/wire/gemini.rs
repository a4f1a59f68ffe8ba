//! Google's `generateContent`.

use serde_json::{Map, Value, json};

use super::calls::Piece;
use super::transcript::{Answer, Entry, entries};
use super::{Fault, Outgoing, Turn, arguments_text, legal, list, string, tokens};
use crate::chat::{Arguments, Part, StopReason, ToolCall, ToolChoice, Usage};
use crate::client::attach::Sent;
use crate::client::schema;

pub(super) const RULES: legal::Rules = legal::Rules {
    max_id: 64,
    any_id: true,
    name_starts_with_letter: true,
};

/// What Google documents for calls that another model made: newer models refuse calls without a signature.
const FOREIGN_SIGNATURE: &str = "skip_thought_signature_validator";

pub(super) fn encode(outgoing: &Outgoing<'_>) -> Value {
    let request = outgoing.request;
    let mut contents = Vec::new();
    for entry in entries(&request.messages) {
        let (role, parts) = match entry {
            Entry::User(parts) => (
                "user",
                parts.iter().map(|part| user_part(outgoing, part)).collect(),
            ),
            Entry::Assistant { text, calls, state } => (
                "model",
                model_parts(outgoing, text, &calls, outgoing.state(state)),
            ),
            Entry::Results(answers) => ("user", results(outgoing, &answers)),
        };
        contents.push(json!({ "role": role, "parts": Value::Array(parts) }));
    }
    let mut body = Map::new();
    if let Some(system) = &request.system {
        let instruction = json!({ "parts": [{ "text": system }] });
        body.insert("systemInstruction".to_owned(), instruction);
    }
    body.insert("contents".to_owned(), Value::Array(contents));
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": legal::name(&tool.name, &RULES),
                    "description": tool.description,
                    "parametersJsonSchema": schema::plain_object(&tool.parameters),
                })
            })
            .collect();
        let tools = json!([{ "functionDeclarations": declarations }]);
        body.insert("tools".to_owned(), tools);
        if request.tool_choice == ToolChoice::None {
            let config = json!({ "functionCallingConfig": { "mode": "NONE" } });
            body.insert("toolConfig".to_owned(), config);
        }
    }
    let mut generation = Map::new();
    if let Some(temperature) = request.temperature {
        generation.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(top_p) = request.top_p {
        generation.insert("topP".to_owned(), json!(top_p));
    }
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    Value::Object(body)
}

fn user_part(outgoing: &Outgoing<'_>, part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image(image) => image_part(outgoing.images.get(image), &image.mime_type),
    }
}

fn image_part(image: Sent<'_>, mime_type: &str) -> Value {
    match image {
        Sent::Data { mime_type, base64 } => {
            json!({ "inlineData": { "mimeType": mime_type, "data": base64 } })
        }
        Sent::Url(url) => json!({ "fileData": { "mimeType": mime_type, "fileUri": url } }),
        Sent::Text(text) => json!({ "text": text }),
    }
}

fn model_parts(
    outgoing: &Outgoing<'_>,
    text: &str,
    calls: &[ToolCall],
    state: Option<&Value>,
) -> Vec<Value> {
    let mut parts = Vec::new();
    let text_signature = state.and_then(|state| string(state, "text"));
    if !text.is_empty() || (text_signature.is_some() && calls.is_empty()) {
        parts.push(signed(json!({ "text": text }), text_signature));
    }
    let signatures = state.map_or(&[][..], |state| list(state, "calls"));
    let name = &outgoing.model.name;
    let demands_signature = !["gemini-1", "gemini-2", "gemma"]
        .iter()
        .any(|old| name.contains(old));
    for (at, call) in calls.iter().enumerate() {
        let args = match &call.arguments {
            Arguments::Object(map) => Value::Object(map.clone()),
            Arguments::Malformed(text) => json!({ "malformed_arguments": text }),
        };
        let part =
            json!({ "functionCall": { "name": legal::name(&call.name, &RULES), "args": args } });
        let own = signatures.get(at).and_then(Value::as_str);
        // Of parallel calls only the first is signed.
        let foreign =
            (at == 0 && demands_signature && signatures.is_empty()).then_some(FOREIGN_SIGNATURE);
        parts.push(signed(part, own.or(foreign)));
    }
    parts
}

fn signed(mut part: Value, signature: Option<&str>) -> Value {
    if let (Value::Object(part), Some(signature)) = (&mut part, signature) {
        part.insert("thoughtSignature".to_owned(), json!(signature));
    }
    part
}

/// All answers of a round in one message: their number must be that of the calls. Images follow them.
fn results(outgoing: &Outgoing<'_>, answers: &[Answer<'_>]) -> Vec<Value> {
    let mut parts: Vec<Value> = answers
        .iter()
        .map(|answer| {
            let key = if answer.output.is_error {
                "error"
            } else {
                "output"
            };
            let response = json!({ key: answer.output.value });
            let name = legal::name(&answer.call.name, &RULES);
            json!({ "functionResponse": { "name": name, "response": response } })
        })
        .collect();
    for image in answers.iter().flat_map(|answer| &answer.output.images) {
        parts.push(image_part(outgoing.images.get(image), &image.mime_type));
    }
    parts
}

/// What must be remembered between events.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The signature of each call, or null.
    calls: Vec<Value>,
    text: Option<String>,
}

impl State {
    pub(super) fn event(&mut self, event: &Value, turn: &mut Turn) -> Result<(), Fault> {
        if let Some(usage) = event.get("usageMetadata")
            && let Some(input) = tokens(usage, "promptTokenCount")
        {
            let thoughts = tokens(usage, "thoughtsTokenCount").unwrap_or_default();
            let answer = tokens(usage, "candidatesTokenCount").unwrap_or_default();
            turn.usage = Some(Usage {
                input,
                output: answer.saturating_add(thoughts),
                cached: tokens(usage, "cachedContentTokenCount").unwrap_or_default(),
            });
        }
        let blocked = event.pointer("/promptFeedback/blockReason");
        if blocked.is_some_and(Value::is_string) {
            turn.stop = Some(StopReason::Refused);
        }
        let Some(candidate) = list(event, "candidates").first() else {
            return Ok(());
        };
        for part in candidate
            .get("content")
            .map_or(&[][..], |content| list(content, "parts"))
        {
            self.part(part, turn)?;
        }
        if let Some(reason) = string(candidate, "finishReason") {
            turn.stop = Some(stop(reason));
        }
        Ok(())
    }

    fn part(&mut self, part: &Value, turn: &mut Turn) -> Result<(), Fault> {
        let signature = string(part, "thoughtSignature");
        turn.grow(signature.unwrap_or_default().len())?;
        if let Some(call) = part.get("functionCall") {
            let args = arguments_text(call.get("args"));
            self.calls.push(json!(signature));
            // A call comes whole, so each is one of its own, whatever its id.
            let begun = turn.calls.add(Piece {
                index: u64::try_from(turn.calls.len()).ok(),
                id: string(call, "id"),
                name: string(call, "name"),
                arguments: &args,
            })?;
            turn.announce(begun);
            return Ok(());
        }
        let text = string(part, "text").unwrap_or_default();
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            return turn.reasoning(text);
        }
        if let Some(signature) = signature {
            self.text = Some(signature.to_owned());
        }
        turn.text(text)
    }

    pub(super) fn replay(&mut self) -> Option<Value> {
        let mut data = Map::new();
        if self.calls.iter().any(Value::is_string) {
            data.insert(
                "calls".to_owned(),
                Value::Array(std::mem::take(&mut self.calls)),
            );
        }
        if let Some(signature) = self.text.take() {
            data.insert("text".to_owned(), json!(signature));
        }
        (!data.is_empty()).then_some(Value::Object(data))
    }
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "STOP" => StopReason::Stop,
        "FUNCTION_CALL" => StopReason::ToolCalls,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE"
        | "IMAGE_SAFETY" => StopReason::Refused,
        other => StopReason::Other(crate::utils::text::bounded(other, 100).into_owned()),
    }
}
