//! What can go wrong between coyote and a server, in plain words (`M-15`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ServerName;
use crate::utils::{Error, ErrorKind};

/// A failure that has to do with one MCP server. Texts from servers are raw here and bounded; whoever shows them
/// sanitises.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// No server has that name.
    #[error("there is no MCP server `{name}`")]
    UnknownServer {
        /// What was asked for.
        name: String,
        /// The configured names nearest to it.
        nearest: Vec<String>,
    },
    /// The server is switched off in its file.
    #[error("MCP server `{server}` is disabled")]
    Disabled {
        /// The server.
        server: ServerName,
    },
    /// The entry in the server file cannot be used.
    #[error("MCP server `{server}`: {reason}")]
    Invalid {
        /// The server.
        server: ServerName,
        /// What is wrong with its entry.
        reason: String,
    },
    /// The server could not be started or reached, or did not come through the handshake.
    #[error("cannot connect to MCP server `{server}`: {reason}")]
    Unavailable {
        /// The server.
        server: ServerName,
        /// Why, in plain words.
        reason: String,
        /// The last lines it wrote to stderr.
        stderr: Vec<String>,
    },
    /// The server wants credentials, or other ones (`M-18`).
    #[error("MCP server `{server}` refused the credentials: {reason}")]
    AuthRequired {
        /// The server.
        server: ServerName,
        /// What it answered.
        reason: String,
        /// The file the server's entry is in, when it is in one.
        file: Option<PathBuf>,
    },
    /// No answer within the time allowed.
    #[error("MCP server `{server}`: {operation} timed out after {} s", limit.as_secs_f64())]
    Timeout {
        /// The server.
        server: ServerName,
        /// What was asked.
        operation: String,
        /// How long it was waited.
        limit: Duration,
    },
    /// The connection ended before the answer.
    #[error("MCP server `{server}`: {operation} failed: {reason}")]
    Closed {
        /// The server.
        server: ServerName,
        /// What was asked.
        operation: String,
        /// How the connection ended.
        reason: String,
    },
    /// The server answered with an error.
    #[error("MCP server `{server}`: {operation} failed: {message} (code {code})")]
    Refused {
        /// The server.
        server: ServerName,
        /// What was asked.
        operation: String,
        /// The JSON-RPC code.
        code: i32,
        /// The server's message, bounded.
        message: String,
    },
    /// The server answered nonsense.
    #[error("MCP server `{server}`: {operation} failed: {reason}")]
    Protocol {
        /// The server.
        server: ServerName,
        /// What was asked.
        operation: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The person cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A template was asked for without values for its variables; the text teaches as well.
    #[error("{0}")]
    ValuesMissing(String),
    /// The request itself is wrong; the text teaches how to ask (`M-56`).
    #[error("{0}")]
    Request(String),
}

impl McpError {
    /// JSON-RPC: there is no such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;

    /// Whether the server said that it does not know the method at all (`M-34`).
    pub fn is_method_not_found(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == Self::METHOD_NOT_FOUND)
    }
}

impl From<McpError> for Error {
    fn from(error: McpError) -> Self {
        let hints: Vec<String> = match &error {
            McpError::UnknownServer { nearest, .. } if !nearest.is_empty() => {
                let names: Vec<_> = nearest.iter().map(|name| format!("`{name}`")).collect();
                vec![format!("did you mean {}?", names.join(", "))]
            }
            McpError::UnknownServer { .. } => vec!["`coyote mcp servers` shows them".into()],
            McpError::Disabled { server } => {
                vec![format!("edit `disabled` of `{server}` in `mcp.json`")]
            }
            McpError::Invalid { server, .. } => {
                vec![format!("edit `{server}` in `mcp.json`")]
            }
            McpError::Unavailable { stderr, .. } => stderr
                .iter()
                .map(|line| format!("its stderr: {line}"))
                .collect(),
            McpError::AuthRequired { server, file, .. } => {
                let file = file.as_deref().unwrap_or(Path::new("mcp.json"));
                vec![format!(
                    "edit `headers.Authorization` of `{server}` in `{}`",
                    file.display()
                )]
            }
            McpError::Timeout { server, .. } => {
                vec![format!(
                    "edit `timeout` of `{server}` in `mcp.json`, in seconds"
                )]
            }
            McpError::ValuesMissing(_) => {
                vec!["append `NAME=VALUE` for each of its variables".into()]
            }
            McpError::Closed { .. }
            | McpError::Refused { .. }
            | McpError::Protocol { .. }
            | McpError::Cancelled
            | McpError::Request(_) => Vec::new(),
        };
        let kind = match &error {
            McpError::UnknownServer { .. }
            | McpError::ValuesMissing(_)
            | McpError::Request(_)
            | McpError::Cancelled => ErrorKind::User,
            McpError::Disabled { .. } | McpError::Invalid { .. } => ErrorKind::Config,
            McpError::Unavailable { .. }
            | McpError::AuthRequired { .. }
            | McpError::Timeout { .. }
            | McpError::Closed { .. }
            | McpError::Refused { .. }
            | McpError::Protocol { .. } => ErrorKind::Mcp,
        };
        hints.into_iter().fold(Self::new(kind, error), Self::hint)
    }
}
