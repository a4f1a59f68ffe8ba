//! What can go wrong with a call, as what the model reads. Every variant becomes an error *result*: a failing call
//! never ends a turn.

use crate::chat::ToolOutput;

/// Why a call has no useful answer. The text is for the model and says what to do next (`M-56`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    /// The arguments were not a JSON object.
    #[error(
        "the arguments of `{function}` are not a JSON object: `{quoted}`; call it again with an object, for example {{}}"
    )]
    Malformed {
        /// The function's declared name.
        function: String,
        /// The beginning of what was passed.
        quoted: String,
    },
    /// An argument is missing, has the wrong type or an impossible value, or is not known at all.
    #[error("{0}")]
    Argument(String),
    /// There is no such function.
    #[error("{0}")]
    Unknown(String),
    /// The person, or the absence of one, forbids it.
    #[error("{0}")]
    Refused(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    /// The person pressed Ctrl-C.
    #[error("cancelled by the user")]
    Cancelled,
}

impl FunctionError {
    /// A failure that consists of a message.
    pub(crate) fn failed(message: impl std::fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }

    /// A complaint about an argument.
    pub(crate) fn argument(message: impl std::fmt::Display) -> Self {
        Self::Argument(message.to_string())
    }
}

impl From<FunctionError> for ToolOutput {
    fn from(error: FunctionError) -> Self {
        Self::error(error)
    }
}

impl From<crate::utils::abort::Aborted> for FunctionError {
    fn from(_: crate::utils::abort::Aborted) -> Self {
        Self::Cancelled
    }
}
