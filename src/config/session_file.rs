//! What a session file looks like, both ways (`H-31`).
//!
//! A round of tool calls is one entry: the assistant's text, its calls and their results belong together. Entries
//! whose `sequence` is true were merged by older programs from rounds of one call each and are taken apart again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor, value};
use serde_json::{Map, Value, json};

use super::role::LayerSettings;
use super::yaml;
use crate::chat::{
    Arguments, CallId, Image, ImageSource, Message, Part, ProviderState, ToolCall, ToolOutput,
    ToolResult,
};
use crate::utils::{Error, Result};

/// A session as its file has it.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) settings: LayerSettings,
    pub(super) save_session: Option<bool>,
    pub(super) role_name: Option<String>,
    pub(super) role_prompt: Option<String>,
    pub(super) system: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) extra: Map<String, Value>,
}

/// Reads a file.
pub(super) fn read(text: &str, file: &Path) -> Result<Stored> {
    if text.trim().is_empty() {
        return Ok(Stored::default());
    }
    let raw: RawSession = yaml::read_own(text, file)?;
    let mut stored = raw.stored;
    let mut entries = raw.messages.into_iter().enumerate().peekable();
    if let Some((_, first)) = entries.next_if(|(_, entry)| entry.role == "system") {
        stored.system = Some(first.content.into_text());
    }
    for (index, entry) in entries {
        entry
            .into_messages(index, &mut stored.messages)
            .map_err(|reason| {
                Error::config(format!("message {}: {reason}", index + 1))
                    .context(format!("`{}` cannot be used", file.display()))
            })?;
    }
    Ok(stored)
}

/// Writes a file.
pub(super) fn write(stored: &Stored) -> Result<String> {
    let mut keys = Map::new();
    let settings = serde_json::to_value(&stored.settings).map_err(Error::internal)?;
    if let Value::Object(settings) = settings {
        keys.extend(settings);
    }
    let named = [
        ("save_session", stored.save_session.map(Value::from)),
        ("role_name", stored.role_name.clone().map(Value::from)),
        ("role_prompt", stored.role_prompt.clone().map(Value::from)),
    ];
    keys.extend(
        named
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?))),
    );
    keys.extend(stored.extra.clone());
    let system = stored
        .system
        .iter()
        .map(|text| json!({ "role": "system", "content": text }));
    let messages = system.chain(entries(&stored.messages)).collect();
    keys.insert("messages".to_owned(), Value::Array(messages));
    yaml::write(&Value::Object(keys))
}

fn entries(messages: &[Message]) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut rest = messages.iter().peekable();
    while let Some(message) = rest.next() {
        let (mut entry, state) = match message {
            Message::User(parts) => (
                json!({ "role": "user", "content": parts_value(parts) }),
                &None,
            ),
            Message::Assistant { text, calls, state } if calls.is_empty() => {
                (json!({ "role": "assistant", "content": text }), state)
            }
            Message::Assistant { text, calls, state } => {
                let answered = rest.next_if(|next| matches!(next, Message::Tool(_)));
                (round(text, calls, answered), state)
            }
            Message::Tool(results) => (
                tool_entry("", &results.iter().map(result_value).collect::<Vec<_>>()),
                &None,
            ),
        };
        if let (Some(state), Some(entry)) = (state, entry.as_object_mut()) {
            let state = serde_json::to_value(state).unwrap_or_default();
            entry.insert("provider_state".to_owned(), state);
        }
        entries.push(entry);
    }
    entries
}

fn round(text: &str, calls: &[ToolCall], answered: Option<&Message>) -> Value {
    let results: Vec<Value> = match answered {
        Some(Message::Tool(results)) => results.iter().map(result_value).collect(),
        _ => calls
            .iter()
            .map(|call| json!({ "call": call_value(call), "output": null }))
            .collect(),
    };
    tool_entry(text, &results)
}

fn tool_entry(text: &str, results: &[Value]) -> Value {
    json!({
        "role": "tool",
        "content": { "text": text, "sequence": false, "tool_results": results },
    })
}

fn call_value(call: &ToolCall) -> Value {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => Value::Object(arguments.clone()),
        Arguments::Malformed(text) => Value::from(text.as_str()),
    };
    json!({ "name": call.name, "arguments": arguments, "id": call.id })
}

fn result_value(result: &ToolResult) -> Value {
    let mut value = json!({ "call": call_value(&result.call), "output": result.output.value });
    if let Some(keys) = value.as_object_mut() {
        if result.output.is_error {
            keys.insert("is_error".to_owned(), Value::Bool(true));
        }
        if !result.output.images.is_empty() {
            let images = result.output.images.iter().map(image_value).collect();
            keys.insert("images".to_owned(), Value::Array(images));
        }
    }
    value
}

fn parts_value(parts: &[Part]) -> Value {
    if let [Part::Text(text)] = parts {
        return Value::from(text.as_str());
    }
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image(image) => image_value(image),
    };
    Value::Array(parts.iter().map(part).collect())
}

fn image_value(image: &Image) -> Value {
    let url = match &image.source {
        ImageSource::Bytes(bytes) => {
            let url = format!("data:{};base64,{}", image.mime_type, STANDARD.encode(bytes));
            return json!({ "type": "image_url", "image_url": { "url": url } });
        }
        ImageSource::File(path) => path.to_string_lossy().into_owned(),
        ImageSource::Url(url) => url.clone(),
    };
    let mime_type = &image.mime_type;
    json!({ "type": "image_url", "image_url": { "url": url, "mime_type": mime_type } })
}

/// The file's top level; a visitor because `flatten` would lose positions and the types of plain scalars.
#[derive(Default)]
struct RawSession {
    stored: Stored,
    messages: Vec<RawMessage>,
}

impl<'de> Deserialize<'de> for RawSession {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RawSession::default())
    }
}

impl<'de> Visitor<'de> for RawSession {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session: a mapping with `messages`")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        let stored = &mut self.stored;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "model" => stored.settings.model = map.next_value()?,
                "temperature" => stored.settings.temperature = map.next_value()?,
                "top_p" => stored.settings.top_p = map.next_value()?,
                "enabled_tools" => stored.settings.enabled_tools = Some(map.next_value()?),
                "enabled_mcp_servers" => {
                    stored.settings.enabled_mcp_servers = Some(map.next_value()?);
                }
                "save_session" => stored.save_session = map.next_value()?,
                "role_name" => stored.role_name = map.next_value()?,
                "role_prompt" => stored.role_prompt = map.next_value()?,
                "messages" => self.messages = map.next_value::<Option<_>>()?.unwrap_or_default(),
                _ => {
                    stored.extra.insert(key, map.next_value()?);
                }
            }
        }
        stored.role_name = stored
            .role_name
            .take()
            .filter(|name| !name.trim().is_empty());
        Ok(self)
    }
}

#[derive(Deserialize)]
struct RawMessage {
    role: String,
    content: Content,
    provider_state: Option<ProviderState>,
}

enum Content {
    Text(String),
    Parts(Vec<RawPart>),
    Round(RawRound),
}

#[derive(Deserialize)]
struct RawPart {
    r#type: String,
    text: Option<String>,
    image_url: Option<RawImage>,
}

#[derive(Deserialize)]
struct RawImage {
    url: String,
    mime_type: Option<String>,
}

#[derive(Deserialize)]
struct RawRound {
    text: Option<String>,
    #[serde(default)]
    sequence: bool,
    tool_results: Vec<RawResult>,
}

#[derive(Deserialize)]
struct RawResult {
    call: RawCall,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    images: Vec<RawPart>,
}

#[derive(Deserialize)]
struct RawCall {
    name: String,
    #[serde(default)]
    arguments: Value,
    id: Option<String>,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list of parts, or a round of tool calls")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Content, E> {
        Ok(Content::Text(String::new()))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Text(value.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Text(value.to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Text(value.to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        Ok(Content::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(value::SeqAccessDeserializer::new(items)).map(Content::Parts)
    }

    fn visit_map<A: MapAccess<'de>>(self, keys: A) -> Result<Content, A::Error> {
        Deserialize::deserialize(value::MapAccessDeserializer::new(keys)).map(Content::Round)
    }
}

impl Content {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
                let texts: Vec<String> = parts.into_iter().filter_map(|part| part.text).collect();
                texts.join("\n")
            }
            Self::Round(round) => round.text.unwrap_or_default(),
        }
    }
}

impl RawMessage {
    fn into_messages(self, index: usize, messages: &mut Vec<Message>) -> Result<(), String> {
        let state = self.provider_state;
        match (self.role.as_str(), self.content) {
            ("user", Content::Text(text)) => messages.push(Message::user(text)),
            ("user", Content::Parts(parts)) => {
                let parts: Result<_, String> = parts.into_iter().map(RawPart::into_part).collect();
                messages.push(Message::User(parts?));
            }
            ("assistant", content @ (Content::Text(_) | Content::Parts(_))) => {
                messages.push(Message::Assistant {
                    text: content.into_text(),
                    calls: Vec::new(),
                    state,
                });
            }
            ("tool" | "assistant", Content::Round(round)) => {
                round.into_messages(index, state, messages)?;
            }
            ("tool" | "user", _) => {
                return Err(format!("a `{}` entry has other content", self.role));
            }
            (role, _) => return Err(format!("the role `{role}` is unknown here")),
        }
        Ok(())
    }
}

impl RawRound {
    fn into_messages(
        self,
        index: usize,
        state: Option<ProviderState>,
        messages: &mut Vec<Message>,
    ) -> Result<(), String> {
        let mut text = self.text.unwrap_or_default();
        let mut state = state;
        let results: Result<Vec<_>, String> = self
            .tool_results
            .into_iter()
            .enumerate()
            .map(|(place, result)| result.into_result(&format!("call_{}_{place}", index + 1)))
            .collect();
        let results = results?;
        let size = if self.sequence {
            1
        } else {
            results.len().max(1)
        };
        if results.is_empty() {
            messages.push(Message::Assistant {
                text,
                calls: Vec::new(),
                state,
            });
            return Ok(());
        }
        for group in results.chunks(size) {
            messages.push(Message::Assistant {
                text: std::mem::take(&mut text),
                calls: group.iter().map(|result| result.call.clone()).collect(),
                state: state.take(),
            });
            messages.push(Message::Tool(group.to_vec()));
        }
        Ok(())
    }
}

impl RawResult {
    fn into_result(self, issued_id: &str) -> Result<ToolResult, String> {
        let arguments = match self.call.arguments {
            Value::Object(arguments) => Arguments::Object(arguments),
            Value::Null => Arguments::Object(Map::new()),
            Value::String(text) => Arguments::parse(&text),
            other => Arguments::Malformed(other.to_string()),
        };
        let id = self.call.id.filter(|id| !id.is_empty());
        let images: Result<_, String> = self.images.into_iter().map(RawPart::into_image).collect();
        Ok(ToolResult {
            call: ToolCall {
                id: CallId(id.unwrap_or_else(|| issued_id.to_owned())),
                name: self.call.name,
                arguments,
            },
            output: ToolOutput {
                value: self.output,
                is_error: self.is_error,
                images: images?,
            },
        })
    }
}

impl RawPart {
    fn into_part(self) -> Result<Part, String> {
        match self.r#type.as_str() {
            "text" => Ok(Part::Text(self.text.unwrap_or_default())),
            "image_url" => self.into_image().map(Part::Image),
            other => Err(format!("a part has the unknown type `{other}`")),
        }
    }

    fn into_image(self) -> Result<Image, String> {
        let RawImage { url, mime_type } = self.image_url.ok_or("an image has no `image_url`")?;
        if let Some(data) = url.strip_prefix("data:") {
            return data_url(data);
        }
        let lower = url.to_ascii_lowercase();
        let mime_type = mime_type.unwrap_or_else(|| type_by_ending(&lower).to_owned());
        let source = if lower.starts_with("http://") || lower.starts_with("https://") {
            ImageSource::Url(url)
        } else {
            ImageSource::File(PathBuf::from(url))
        };
        Ok(Image { mime_type, source })
    }
}

fn data_url(data: &str) -> Result<Image, String> {
    let (head, payload) = data.split_once(',').ok_or("a data URL has no comma")?;
    let mime_type = head
        .strip_suffix(";base64")
        .ok_or("a data URL is not base64")?;
    let payload: String = payload
        .chars()
        .filter(|c| !c.is_ascii_whitespace())
        .collect();
    let bytes = STANDARD
        .decode(payload)
        .map_err(|error| format!("the data of an image is damaged: {error}"))?;
    Ok(Image {
        mime_type: mime_type.to_owned(),
        source: ImageSource::Bytes(Arc::from(bytes)),
    })
}

fn type_by_ending(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ => "image/png",
    }
}

#[cfg(test)]
#[path = "session_file_tests.rs"]
mod tests;
