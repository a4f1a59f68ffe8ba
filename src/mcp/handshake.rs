//! How a conversation begins, which other way there is when that fails, and why it failed, in plain words (`M-14`).

use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode};

use super::connection::ERROR_MESSAGE_MAX;
use super::link::{AUTH_ERROR, EXPIRED_ERROR, Ended, LOCAL_ERROR};
use super::{McpError, ProtocolChoice, ServerSpec};
use crate::utils::text;

/// JSON-RPC: the parameters are not what the method takes.
const INVALID_PARAMS: i32 = -32602;
/// MCP: the protocol revision is not supported.
const UNSUPPORTED_REVISION: i32 = -32022;

/// Why one attempt to connect came to nothing.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Another way of beginning the conversation may work (`M-14`).
    pub(super) other_way: bool,
    /// The server refused our credentials.
    pub(super) auth: bool,
    pub(super) stderr: Vec<String>,
}

impl Failure {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            other_way: false,
            auth: false,
            stderr: Vec::new(),
        }
    }

    fn other_way(reason: impl Into<String>) -> Self {
        Self {
            other_way: true,
            ..Self::new(reason)
        }
    }

    pub(super) fn into_error(self, spec: &ServerSpec) -> McpError {
        if self.auth {
            return McpError::AuthRequired {
                server: spec.name.clone(),
                reason: self.reason,
                file: spec.file.clone(),
            };
        }
        McpError::Unavailable {
            server: spec.name.clone(),
            reason: self.reason,
            stderr: self.stderr,
        }
    }
}

/// How to begin, and how to begin anew when that fails.
pub(super) fn ways(
    protocol: &ProtocolChoice,
) -> Result<(ClientLifecycleMode, Option<ClientLifecycleMode>), String> {
    let discover = |versions| ClientLifecycleMode::Discover {
        preferred_versions: versions,
    };
    match protocol {
        ProtocolChoice::Auto => {
            let newest_first = ProtocolVersion::KNOWN_VERSIONS
                .iter()
                .rev()
                .cloned()
                .collect();
            Ok((
                ClientLifecycleMode::Initialize,
                Some(discover(newest_first)),
            ))
        }
        ProtocolChoice::Legacy => Ok((ClientLifecycleMode::Initialize, None)),
        ProtocolChoice::Revision(revision) => {
            let known = ProtocolVersion::KNOWN_VERSIONS
                .iter()
                .find(|known| known.as_str() == revision);
            match known {
                Some(known) if known.has_initialize() => {
                    Ok((ClientLifecycleMode::Initialize, None))
                }
                Some(known) => Ok((discover(vec![known.clone()]), None)),
                None => Err(format!(
                    "coyote does not know protocol revision `{revision}`"
                )),
            }
        }
    }
}

pub(super) fn unknown_revision(revision: &str) -> Failure {
    let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .collect();
    Failure::new(format!(
        "it speaks protocol revision `{}`, coyote speaks {}",
        text::bounded(revision, 100),
        known.join(", ")
    ))
}

/// Why a handshake failed, in plain words; `ended` knows best when the server went away.
pub(super) fn failure(error: &ClientInitializeError, ended: Option<Ended>) -> Failure {
    let refused = |error: &ErrorData| {
        let message = text::bounded(&error.message, ERROR_MESSAGE_MAX);
        Failure {
            reason: if error.code.0 <= EXPIRED_ERROR.0 {
                message.into_owned()
            } else {
                format!(
                    "it refused the handshake: {message} (code {})",
                    error.code.0
                )
            },
            other_way: matches!(
                error.code,
                ErrorCode(McpError::METHOD_NOT_FOUND | INVALID_PARAMS | UNSUPPORTED_REVISION)
            ),
            auth: error.code == AUTH_ERROR,
            stderr: Vec::new(),
        }
    };
    match (error, ended) {
        (ClientInitializeError::JsonRpcError(error), _) if error.code != LOCAL_ERROR => {
            refused(error)
        }
        (_, Some(ended)) => Failure::other_way(format!("{} during the handshake", ended.reason)),
        (ClientInitializeError::JsonRpcError(error), None) => refused(error),
        (ClientInitializeError::ConnectionClosed(_), None) => {
            Failure::other_way("it closed the connection during the handshake")
        }
        (
            ClientInitializeError::NoCompatibleProtocolVersion {
                server_supported, ..
            },
            None,
        ) => {
            let theirs: Vec<_> = server_supported
                .iter()
                .map(ProtocolVersion::as_str)
                .collect();
            unknown_revision(&theirs.join(", "))
        }
        (ClientInitializeError::TransportError { error, .. }, None) => {
            Failure::new(error.error.to_string())
        }
        (_, None) => Failure::new("its answer to the handshake makes no sense"),
    }
}
