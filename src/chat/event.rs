//! What a provider streams, independent of its wire.

use super::{ProviderState, ToolCall};

/// One step of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// More of the answer.
    Text(String),
    /// More of the model's reasoning, shown dim and never sent back as text.
    Reasoning(String),
    /// A call has begun; its arguments are still arriving.
    ToolCallStarted {
        /// The function's name.
        name: String,
    },
    /// A call is complete.
    ToolCall(ToolCall),
    /// The answer is complete. Exactly one of these ends a stream that did not fail.
    End {
        /// Why the model stopped.
        stop: StopReason,
        /// What it cost, when the provider says so.
        usage: Option<Usage>,
        /// What to replay with the next request to the same model.
        state: Option<ProviderState>,
    },
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    Stop,
    /// It wants its calls answered.
    ToolCalls,
    /// The output limit was reached: the answer is cut.
    Length,
    /// The provider withheld the rest.
    Refused,
    /// A word we do not know, kept for the notice.
    Other(String),
}

/// Tokens as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Of the input, those served from the provider's cache.
    pub cached: u64,
}
