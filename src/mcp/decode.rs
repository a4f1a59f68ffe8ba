//! Decoding, leniently, item by item (`M-20`): raw JSON in, borrowed facts out.
//!
//! One malformed item costs that item and stays visible as `unreadable <kind>` with the reason. Nothing here looks at
//! keys that a result of its kind does not have, so a foreign key never changes what a result is. No string of an item that
//! is not understood is passed on: it could be a payload (`M-68`).

use serde_json::{Map, Value};

use super::catalog::{CatalogItem, CatalogKind, PromptArgument};
use super::kept::ToolHints;
use super::{McpError, ServerName};
use crate::utils::text;

/// Longest name of a content type or a field that is quoted, in bytes.
const NAME_BYTES: usize = 128;
/// How many fields of an unknown block are described.
const DESCRIBED_FIELDS: usize = 16;
/// How many entries of an audience are kept, and how long each may be.
const AUDIENCE_ENTRIES: usize = 8;
const AUDIENCE_BYTES: usize = 64;

/// One content block of a tool result or of a prompt message.
#[derive(Debug, Clone, PartialEq)]
pub struct Block<'a> {
    /// What it holds.
    pub content: Content<'a>,
    /// Whom the server means it for.
    pub audience: Option<Vec<String>>,
}

/// What a content block holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content<'a> {
    /// Text.
    Text(&'a str),
    /// An image or a sound.
    Media {
        /// `image` or `audio`.
        kind: &'static str,
        /// Base64.
        data: &'a str,
        /// The type the server claims.
        mime_type: Option<&'a str>,
    },
    /// An embedded resource.
    Resource(ResourceContent<'a>),
    /// A resource to be read elsewhere.
    Link(Link<'a>),
    /// A type that we do not know, by its shape.
    Unknown {
        /// The type's name, bounded.
        kind: String,
        /// Its fields and what they are, never what strings they hold.
        fields: Map<String, Value>,
    },
    /// A type that we know, malformed.
    Unreadable {
        /// The type's name, bounded.
        kind: String,
        /// What is wrong.
        reason: String,
    },
}

/// One content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceContent<'a> {
    /// Its own URI; absent means the one that was asked for.
    pub uri: Option<&'a str>,
    /// The type the server claims.
    pub mime_type: Option<&'a str>,
    /// What it is.
    pub body: Body<'a>,
    /// Whom the server means it for.
    pub audience: Option<Vec<String>>,
}

/// What a resource content is (`M-53`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Text.
    Text(&'a str),
    /// Base64.
    Blob(&'a str),
    /// Neither, or both; why.
    Unreadable(String),
}

/// A resource link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// The resource.
    pub uri: &'a str,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its name for people.
    pub title: Option<&'a str>,
    /// What the server says about it.
    pub description: Option<&'a str>,
    /// The type the server claims.
    pub mime_type: Option<&'a str>,
    /// Its size in bytes, as the server claims.
    pub size: Option<u64>,
}

/// A tool's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolAnswer<'a> {
    /// The content blocks.
    pub blocks: Vec<Block<'a>>,
    /// The structured part; `null` counts as absent.
    pub structured: Option<&'a Value>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

/// Reads a `CallToolResult`.
pub fn tool_answer(result: &Value) -> ToolAnswer<'_> {
    let blocks = match result.get("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(block).collect(),
        Some(other) => vec![Block {
            content: Content::Unreadable {
                kind: "content".into(),
                reason: format!("`content` is {}, not a list", article(other)),
            },
            audience: None,
        }],
    };
    ToolAnswer {
        blocks,
        structured: result
            .get("structuredContent")
            .filter(|structured| !structured.is_null()),
        is_error: result.get("isError") == Some(&Value::Bool(true)),
    }
}

/// Reads the contents of a `ReadResourceResult`.
pub fn resource_contents(result: &Value) -> Result<Vec<ResourceContent<'_>>, String> {
    match result.get("contents") {
        Some(Value::Array(items)) => Ok(items.iter().map(resource_content).collect()),
        Some(other) => Err(format!("`contents` is {}, not a list", article(other))),
        None => Err("the answer has no `contents`".to_owned()),
    }
}

/// Whether a result asks for input instead of being one; coyote never offered to give any (`M-14`).
pub fn wants_input(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// Reads a content block.
pub fn block(item: &Value) -> Block<'_> {
    Block {
        content: content(item),
        audience: audience(item),
    }
}

fn content(item: &Value) -> Content<'_> {
    let unreadable = |kind: &str, reason: String| Content::Unreadable {
        kind: text::bounded(kind, NAME_BYTES).into_owned(),
        reason,
    };
    let Some(kind) = item.get("type") else {
        let reason = match item {
            Value::Object(_) => "it has no `type`".to_owned(),
            other => format!("it is {}, not an object", article(other)),
        };
        return unreadable("content", reason);
    };
    let Some(kind) = kind.as_str() else {
        return unreadable(
            "content",
            format!("`type` is {}, not a string", article(kind)),
        );
    };
    let media = |kind: &'static str| match required(item, "data") {
        Ok(data) => Content::Media {
            kind,
            data,
            mime_type: optional(item, "mimeType"),
        },
        Err(reason) => unreadable(kind, reason),
    };
    match kind {
        "text" => match required(item, "text") {
            Ok(text) => Content::Text(text),
            Err(reason) => unreadable(kind, reason),
        },
        "image" => media("image"),
        "audio" => media("audio"),
        "resource" => match item.get("resource") {
            Some(resource) => Content::Resource(resource_content(resource)),
            None => unreadable(kind, "it has no `resource`".to_owned()),
        },
        "resource_link" => match required(item, "uri") {
            Ok(uri) => Content::Link(Link {
                uri,
                name: optional(item, "name"),
                title: optional(item, "title"),
                description: optional(item, "description"),
                mime_type: optional(item, "mimeType"),
                size: item.get("size").and_then(Value::as_u64),
            }),
            Err(reason) => unreadable(kind, reason),
        },
        other => Content::Unknown {
            kind: text::bounded(other, NAME_BYTES).into_owned(),
            fields: shape(item),
        },
    }
}

fn resource_content(item: &Value) -> ResourceContent<'_> {
    let body = if item.is_object() {
        match (present(item, "text"), present(item, "blob")) {
            (Some(Value::String(text)), None) => Body::Text(text),
            (None, Some(Value::String(blob))) => Body::Blob(blob),
            (Some(_), Some(_)) => Body::Unreadable("it has both `text` and `blob`".into()),
            (None, None) => Body::Unreadable("it has neither `text` nor `blob`".into()),
            (Some(other), None) => {
                Body::Unreadable(format!("`text` is {}, not a string", article(other)))
            }
            (None, Some(other)) => {
                Body::Unreadable(format!("`blob` is {}, not a string", article(other)))
            }
        }
    } else {
        Body::Unreadable(format!("it is {}, not an object", article(item)))
    };
    ResourceContent {
        uri: optional(item, "uri"),
        mime_type: optional(item, "mimeType"),
        body,
        audience: audience(item),
    }
}

/// What an unknown object consists of, without what its strings say.
fn shape(item: &Value) -> Map<String, Value> {
    let Some(fields) = item.as_object() else {
        return Map::new();
    };
    fields
        .iter()
        .filter(|(name, _)| *name != "type")
        .take(DESCRIBED_FIELDS)
        .map(|(name, value)| {
            let description = match value {
                Value::Null | Value::Bool(_) => value.to_string(),
                Value::Number(number) => text::bounded(&number.to_string(), 32).into_owned(),
                Value::String(text) => format!("a string of {} bytes", text.len()),
                Value::Array(items) => format!("a list of {}", text::plural(items.len(), "item")),
                Value::Object(fields) => {
                    format!("an object of {}", text::plural(fields.len(), "field"))
                }
            };
            let name = text::bounded(name, AUDIENCE_BYTES).into_owned();
            (name, Value::String(description))
        })
        .collect()
}

fn present<'a>(item: &'a Value, key: &str) -> Option<&'a Value> {
    item.get(key).filter(|value| !value.is_null())
}

fn optional<'a>(item: &'a Value, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str)
}

fn required<'a>(item: &'a Value, key: &str) -> Result<&'a str, String> {
    match item.get(key) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("`{key}` is {}, not a string", article(other))),
        None => Err(format!("it has no `{key}`")),
    }
}

/// What kind of JSON value it is, with its article.
pub(crate) fn article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The `audience` annotation: advice, not access control, so roles that the protocol does not have are shown too.
pub(crate) fn audience(item: &Value) -> Option<Vec<String>> {
    let entries = match item.get("annotations")?.get("audience")? {
        Value::Array(entries) => entries.as_slice(),
        one @ Value::String(_) => std::slice::from_ref(one),
        _ => return None,
    };
    let audience: Vec<String> = entries
        .iter()
        .filter_map(Value::as_str)
        .take(AUDIENCE_ENTRIES)
        .map(|entry| text::bounded(entry, AUDIENCE_BYTES).into_owned())
        .collect();
    (!audience.is_empty()).then_some(audience)
}

/// Reads a listed item; a malformed one stays, with the reason.
pub fn catalog_item(kind: CatalogKind, server: &ServerName, raw: Value) -> CatalogItem {
    let id_key = match kind {
        CatalogKind::Tool | CatalogKind::Prompt => "name",
        CatalogKind::Resource => "uri",
        CatalogKind::ResourceTemplate => "uriTemplate",
    };
    let words = kind.as_str().replace('_', " ");
    let id = identifier(&raw, id_key);
    let reason = match (&id, kind) {
        (Err(reason), _) => Some(reason.clone()),
        (Ok(_), CatalogKind::Tool) => schema_fault(&raw),
        (Ok(_), CatalogKind::Resource | CatalogKind::ResourceTemplate | CatalogKind::Prompt) => {
            None
        }
    };
    let uri = match kind {
        CatalogKind::Tool | CatalogKind::Prompt => None,
        CatalogKind::Resource | CatalogKind::ResourceTemplate => id.clone().ok(),
    };
    let name = identifier(&raw, "name")
        .or(id)
        .unwrap_or_else(|_| format!("unreadable {words}"));
    let title = optional(&raw, "title").or_else(|| {
        raw.get("annotations")
            .and_then(|annotations| optional(annotations, "title"))
    });
    CatalogItem {
        kind,
        name,
        server: server.clone(),
        description: match &reason {
            Some(reason) => format!("unreadable {words}: {reason}"),
            None => optional(&raw, "description").unwrap_or_default().to_owned(),
        },
        title: title.map(str::to_owned),
        uri,
        mime_type: optional(&raw, "mimeType").map(str::to_owned),
        size: raw.get("size").and_then(Value::as_u64),
        arguments: (kind == CatalogKind::Prompt).then(|| prompt_arguments(&raw)),
        audience: audience(&raw),
        unreadable: reason,
        raw,
    }
}

fn identifier(item: &Value, key: &str) -> Result<String, String> {
    if !item.is_object() {
        return Err(format!("it is {}, not an object", article(item)));
    }
    match required(item, key)? {
        "" => Err(format!("`{key}` is empty")),
        id => Ok(id.to_owned()),
    }
}

fn schema_fault(tool: &Value) -> Option<String> {
    match tool.get("inputSchema") {
        Some(Value::Object(_)) => None,
        Some(other) => Some(format!(
            "`inputSchema` is {}, not an object",
            article(other)
        )),
        None => Some("it has no `inputSchema`".to_owned()),
    }
}

/// The arguments that have a name; what else the list holds is nothing that could be passed.
fn prompt_arguments(prompt: &Value) -> Vec<PromptArgument> {
    let listed = prompt.get("arguments").and_then(Value::as_array);
    listed
        .into_iter()
        .flatten()
        .filter_map(|argument| {
            Some(PromptArgument {
                name: identifier(argument, "name").ok()?,
                description: optional(argument, "description").map(str::to_owned),
                required: argument.get("required") == Some(&Value::Bool(true)),
            })
        })
        .collect()
}

/// What a tool's annotations say about what it does.
pub(crate) fn tool_hints(tool: &Value) -> ToolHints {
    let hint = |key: &str| {
        tool.get("annotations")
            .and_then(|annotations| annotations.get(key))
            .and_then(Value::as_bool)
    };
    ToolHints {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
    }
}

/// The error for an answer that is not what its method answers.
pub(crate) fn protocol_error(server: &ServerName, operation: &str, reason: String) -> McpError {
    McpError::Protocol {
        server: server.clone(),
        operation: operation.to_owned(),
        reason,
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
pub(super) mod tests;
