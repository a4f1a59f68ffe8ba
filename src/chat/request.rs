//! What a provider is asked, independent of its wire.

use super::{FunctionDeclaration, Message};

/// One request. Which model answers is the client's business: a `client::Client` is bound to one.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The system prompt, if any.
    pub system: Option<String>,
    /// The transcript, oldest first; ends with a user or a tool message.
    pub messages: Vec<Message>,
    /// The functions the model may call. May be non-empty with [`ToolChoice::None`]: some wires refuse a history
    /// with tool rounds when nothing is declared.
    pub tools: Vec<FunctionDeclaration>,
    /// Whether the model may call them.
    pub tool_choice: ToolChoice,
    /// Sampling temperature, when set.
    pub temperature: Option<f64>,
    /// Nucleus sampling, when set.
    pub top_p: Option<f64>,
    /// Whether the answer is streamed.
    pub stream: bool,
}

/// Whether a model may call the declared functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// Never: the history mentions functions, this request offers none.
    None,
}
