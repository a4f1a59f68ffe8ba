//! Tool calls and their answers.

use std::fmt;

use serde_json::{Map, Value};

use super::Image;

/// A call's identity within a conversation, as the provider issued it (or we, where it issued none).
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct CallId(pub String);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a model passed to a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// A JSON object, the only legal form. No arguments at all is the empty object.
    Object(Map<String, Value>),
    /// Anything else, kept as the model wrote it, so that the error can quote it.
    Malformed(String),
}

impl Arguments {
    /// Parses the text a provider streamed; blank text means no arguments.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Self::Object(map),
            Ok(Value::Null) => Self::Object(Map::new()),
            _ => Self::Malformed(text.to_owned()),
        }
    }

    /// The JSON text to replay to a provider.
    pub fn to_text(&self) -> String {
        match self {
            Self::Object(map) => Value::Object(map.clone()).to_string(),
            Self::Malformed(text) => text.clone(),
        }
    }
}

/// One function call of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Ties the answer to the call.
    pub id: CallId,
    /// The function's name as declared.
    pub name: String,
    /// What was passed.
    pub arguments: Arguments,
}

/// What a function answered, as the model reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The answer: a string goes to the model as its text, anything else as JSON.
    pub value: Value,
    /// Whether the function failed; sets the provider's error flag where the wire has one.
    pub is_error: bool,
    /// Images handed to models that see, beside the text (`M-67`).
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// A success without images.
    pub fn ok(value: impl Into<Value>) -> Self {
        Self {
            value: value.into(),
            is_error: false,
            images: Vec::new(),
        }
    }

    /// A failure in the shape every model sees: `{"tool_call_error": message}` (`M-56`).
    pub fn error(message: impl fmt::Display) -> Self {
        let value = serde_json::json!({ "tool_call_error": message.to_string() });
        Self {
            value,
            is_error: true,
            images: Vec::new(),
        }
    }

    /// What goes to the model as text.
    pub fn to_text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }
}

/// The one answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call that is answered, whole, so that a session can show it without searching.
    pub call: ToolCall,
    /// The answer.
    pub output: ToolOutput,
}
