//! A live server: the one handle through which everything asks it anything.
//!
//! Answers are raw JSON; what they mean is decided above, leniently (`M-20`). Every request has a timeout, can be
//! cancelled, and leaves the server usable (`M-15`).
#![allow(clippy::unused_async, reason = "the interface first: bodies follow")]

use std::sync::Arc;

use serde_json::{Map, Value};

use super::kept::Kept;
use super::{Capabilities, McpError, ServerName, ServerSpec};
use crate::chat::Progress;
use crate::utils::AbortToken;

/// How one request is made.
#[derive(Clone)]
pub struct CallContext {
    /// Cancels the request; the server is told.
    pub abort: AbortToken,
    /// Takes the server's progress reports.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// The bound on what becomes of the answer for the model, in bytes, when it is tighter than the policy's own.
    pub max_result: Option<usize>,
}

impl CallContext {
    /// A context without progress reports and without a bound of its own.
    pub fn new(abort: AbortToken) -> Self {
        Self {
            abort,
            progress: None,
            max_result: None,
        }
    }
}

/// The lists a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    ResourceTemplates,
    /// `prompts/list`
    Prompts,
}

impl ListKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Tools,
        Self::Resources,
        Self::ResourceTemplates,
        Self::Prompts,
    ];

    /// The protocol's method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Resources => "resources/list",
            Self::ResourceTemplates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The key of the answer under which the items are.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// For people: `resource templates`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resource templates",
            Self::Prompts => "prompts",
        }
    }
}

/// What a list yielded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// The items as the server sent them.
    pub items: Vec<Value>,
    /// The list was stopped early; what was gathered until then is in `items` (`M-19`).
    pub warning: Option<String>,
    /// The server advertises the kind and does not know its method (`M-34`).
    pub unsupported: bool,
}

/// A connection to a server that is kept, restarted when it died, and shared.
#[derive(Debug)]
pub struct ConnectedServer {
    spec: ServerSpec,
    kept: Kept,
}

impl ConnectedServer {
    /// The configured name.
    pub fn name(&self) -> &ServerName {
        &self.spec.name
    }

    /// What it was connected from.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// What is remembered of it between calls; see [`Kept`] for what ends the memory.
    pub fn kept(&self) -> &Kept {
        &self.kept
    }

    /// What the server advertised; [`Capabilities::UNKNOWN`] when nobody saw its handshake.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::UNKNOWN
    }

    /// Whether the server's handshake was seen.
    pub fn peer_known(&self) -> bool {
        false
    }

    /// The negotiated protocol revision.
    pub fn protocol_version(&self) -> Option<String> {
        None
    }

    /// The server's own name and version.
    pub fn server_info(&self) -> Option<(String, String)> {
        None
    }

    /// What the server wants models to know.
    pub fn instructions(&self) -> Option<String> {
        None
    }

    /// Sends one request and returns its `result`, raw. A dead server is restarted once first (`M-16`).
    ///
    /// `params` without `_meta`; the time allowed depends on the method and on the server's entry (`M-15`).
    pub async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, McpError> {
        let _ = (params, cx);
        Err(self.unavailable(method))
    }

    /// Lists everything of one kind, following the pages within bounds (`M-19`). A kind that is not advertised is
    /// never asked for and is empty (`M-34`).
    pub async fn list(&self, kind: ListKind, cx: &CallContext) -> Result<Listing, McpError> {
        let _ = cx;
        Err(self.unavailable(kind.method()))
    }

    /// Asks whether the server is there.
    pub async fn ping(&self, cx: &CallContext) -> Result<(), McpError> {
        let _ = cx;
        Err(self.unavailable("ping"))
    }

    /// Grows whenever what was known of a kind is no longer: the server said so, or it was reconnected.
    pub fn generation(&self, kind: ListKind) -> u64 {
        let _ = kind;
        0
    }

    /// Whether the connection is up.
    pub fn is_running(&self) -> bool {
        false
    }

    /// Ends the connection and the process, within 1.5 s (`M-17`).
    pub async fn close(&self) {}

    fn unavailable(&self, operation: &str) -> McpError {
        McpError::Closed {
            server: self.spec.name.clone(),
            operation: operation.to_owned(),
            reason: "not available yet".into(),
        }
    }
}
