//! What can go wrong between us and a provider. Callers branch on it: the turn loop on context overflow and on
//! cancellation, the retry on what may succeed next time.

use std::time::Duration;

use crate::utils::abort::Aborted;
use crate::utils::http::HttpError;
use crate::utils::{Error, ErrorKind};

/// Why there is no answer, or only a part of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The person cancelled.
    #[error(transparent)]
    Aborted(#[from] Aborted),
    /// The configuration of this client cannot work.
    #[error("{0}")]
    Config(String),
    /// There is no key and this provider needs one.
    #[error("client `{provider}` has no API key")]
    NoKey {
        /// The client's name.
        provider: String,
        /// Where a key is looked for.
        variables: Vec<String>,
    },
    /// The provider does not accept the key (401, 403).
    #[error("`{provider}` refused the API key (HTTP {status}): {message}")]
    Unauthorized {
        /// The client's name.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What the provider said, bounded.
        message: String,
        /// Where a key is looked for.
        variables: Vec<String>,
    },
    /// The request is longer than the model's context.
    #[error("the conversation does not fit into the model's context: {message}")]
    ContextOverflow {
        /// What the provider said, bounded.
        message: String,
    },
    /// The provider answered with an error status.
    #[error("`{provider}` answered HTTP {status}: {message}")]
    Status {
        /// The client's name.
        provider: String,
        /// The HTTP status.
        status: u16,
        /// What the provider said, bounded.
        message: String,
        /// How long it asks to be left alone.
        retry_after: Option<Duration>,
        /// Whether the same request may succeed a little later.
        retryable: bool,
    },
    /// The provider reported an error inside an answer that had begun.
    #[error("`{provider}` failed while answering: {message}")]
    Frame {
        /// The client's name.
        provider: String,
        /// What the provider said, bounded.
        message: String,
        /// Whether it is a passing trouble, and nothing had been delivered.
        retryable: bool,
    },
    /// No connection, or it broke before the answer began.
    #[error("cannot reach `{provider}` at `{url}`: {message}")]
    Connect {
        /// The client's name.
        provider: String,
        /// Without credentials or query values.
        url: String,
        /// Why.
        message: String,
        /// Whether it broke after it had been made.
        retryable: bool,
    },
    /// The provider was silent for too long.
    #[error("`{provider}` has been silent for {} seconds", after.as_secs())]
    Idle {
        /// The client's name.
        provider: String,
        /// The bound that was reached.
        after: Duration,
    },
    /// The answer ended before the provider ended it. What was delivered stays; calls that were incomplete are
    /// dropped.
    #[error("the answer of `{provider}` was cut off: {message}")]
    Truncated {
        /// The client's name.
        provider: String,
        /// How the stream ended.
        message: String,
        /// Whether nothing had been delivered, so that asking again loses nothing.
        retryable: bool,
    },
    /// A bound of ours was reached.
    #[error("the answer of `{provider}` is over a limit: {message}")]
    TooLarge {
        /// The client's name.
        provider: String,
        /// Which one.
        message: String,
    },
    /// The answer is not in the form this wire has.
    #[error("the answer of `{provider}` cannot be understood: {message}")]
    Nonsense {
        /// The client's name.
        provider: String,
        /// What was expected and what came.
        message: String,
    },
    /// No HTTP request could be started at all.
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl ClientError {
    /// Whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Status { retryable, .. }
            | Self::Frame { retryable, .. }
            | Self::Connect { retryable, .. }
            | Self::Truncated { retryable, .. } => *retryable,
            Self::Aborted(_)
            | Self::Config(_)
            | Self::NoKey { .. }
            | Self::Unauthorized { .. }
            | Self::ContextOverflow { .. }
            | Self::Idle { .. }
            | Self::TooLarge { .. }
            | Self::Nonsense { .. }
            | Self::Http(_) => false,
        }
    }

    /// Whether the conversation is too long, so that compressing it may help.
    pub fn is_context_overflow(&self) -> bool {
        matches!(self, Self::ContextOverflow { .. })
    }

    /// Whether the person cancelled.
    pub fn is_aborted(&self) -> bool {
        matches!(self, Self::Aborted(_))
    }

    /// How long the provider asks to be left alone.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey { variables, .. } | Self::Unauthorized { variables, .. } => {
                Some(match variables.as_slice() {
                    [first, usual, ..] => {
                        format!(
                            "export {usual}=… (or {first}), or set `api_key` of this client in config.yaml"
                        )
                    }
                    [only] => {
                        format!("export {only}=…, or set `api_key` of this client in config.yaml")
                    }
                    [] => return None,
                })
            }
            Self::ContextOverflow { .. } => {
                Some(".compress shortens the session, .empty starts it afresh".to_owned())
            }
            Self::Status { message, .. } if message.contains("image") => {
                Some("set `supports_vision: false` of this model in config.yaml".to_owned())
            }
            Self::Status { status: 404, .. } => {
                Some("check `api_base` and the model's name in config.yaml".to_owned())
            }
            Self::Connect { .. } => Some(
                "check that the server runs and that `api_base` in config.yaml is right".to_owned(),
            ),
            Self::Idle { .. } => {
                Some("set `extra.read_timeout` (seconds) of this client in config.yaml".to_owned())
            }
            Self::Http(error) => error.hint().map(str::to_owned),
            Self::Aborted(_)
            | Self::Config(_)
            | Self::Status { .. }
            | Self::Frame { .. }
            | Self::Truncated { .. }
            | Self::TooLarge { .. }
            | Self::Nonsense { .. } => None,
        }
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        let kind = match &error {
            ClientError::Aborted(_) => ErrorKind::User,
            ClientError::Config(_) | ClientError::NoKey { .. } | ClientError::Http(_) => {
                ErrorKind::Config
            }
            _ => ErrorKind::Provider,
        };
        let hint = error.hint();
        let error = Self::new(kind, error);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
