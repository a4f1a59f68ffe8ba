//! One conversation's messages, as every provider wire and the session file mean them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::{ToolCall, ToolResult};

/// One entry of the transcript. The system prompt is not an entry; it belongs to the request.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// What the person said.
    User(Vec<Part>),
    /// What the model said, with the calls it made. A stream that was interrupted leaves its text and no calls.
    Assistant {
        /// The visible answer; may be empty when the model only called tools.
        text: String,
        /// Calls of one answer are one parallel group.
        calls: Vec<ToolCall>,
        /// What the provider needs back verbatim, opaque to everyone but its wire.
        state: Option<ProviderState>,
    },
    /// The answers to the calls of the assistant message right before: one each, in call order.
    Tool(Vec<ToolResult>),
}

impl Message {
    /// A user message of plain text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![Part::Text(text.into())])
    }

    /// An assistant message of plain text.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant {
            text: text.into(),
            calls: Vec::new(),
            state: None,
        }
    }
}

/// A piece of a user message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text, verbatim.
    Text(String),
    /// An image for models that see.
    Image(Image),
}

/// An image by its type and where its bytes are.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime_type: String,
    /// Where the bytes come from.
    pub source: ImageSource,
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq)]
pub enum ImageSource {
    /// Decoded bytes in memory.
    Bytes(Arc<[u8]>),
    /// A spilled file (`M-67`), read when a request is made; one that is gone becomes a text part that says so.
    File(PathBuf),
    /// A URL the provider fetches itself.
    Url(String),
}

/// What a provider wants back with the next request to the same model: reasoning items, signatures. Nobody else
/// reads `data`; it is replayed only when `provider` and `model` are the request's own (`H-31`).
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ProviderState {
    /// The configured client's name.
    pub provider: String,
    /// The model's name at that client.
    pub model: String,
    /// The wire's own items.
    pub data: Value,
}
