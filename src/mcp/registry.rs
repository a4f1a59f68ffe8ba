//! The configured servers and how each of them is doing (`M-13`).
#![allow(clippy::unused_async, reason = "the interface first: bodies follow")]

use std::sync::Arc;
use std::time::Duration;

use super::{
    Capabilities, ConnectedServer, McpConfig, McpError, McpFactory, McpServerFeatures, Origin,
    ServerName,
};
use crate::utils::AbortToken;

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Switched off in its file.
    Disabled,
    /// Not started, or stopped.
    Stopped,
    /// Being started.
    Connecting,
    /// Connected.
    Running,
    /// Could not be started, or died twice.
    Failed {
        /// Why, in plain words.
        reason: String,
    },
    /// Its entry cannot be used.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

/// What there is to show about a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    /// The configured name.
    pub name: ServerName,
    /// How it is doing.
    pub state: ServerState,
    /// `stdio`, `http`, or `-` for an entry that cannot be used.
    pub transport: &'static str,
    /// Which file it came from.
    pub origin: Origin,
    /// The negotiated protocol revision, once connected.
    pub revision: Option<String>,
    /// What it advertised, once connected.
    pub capabilities: Option<Capabilities>,
    /// From its entry.
    pub description: Option<String>,
    /// The last lines it wrote to stderr.
    pub stderr_tail: Vec<String>,
    /// What else is worth knowing, a line each: kinds that are advertised and not served (`M-34`).
    pub notes: Vec<String>,
}

/// All configured servers. Starting is in the background; asking is never waiting, but for [`Self::wait_ready`].
#[derive(Debug)]
pub struct McpRegistry {
    config: McpConfig,
}

impl McpRegistry {
    /// Knows the servers and starts none.
    pub fn new(config: McpConfig, factory: Arc<McpFactory>) -> Arc<Self> {
        drop(factory);
        Arc::new(Self { config })
    }

    /// Every configured server, usable or not, sorted.
    pub fn names(&self) -> Vec<ServerName> {
        self.config.servers.keys().cloned().collect()
    }

    /// What the files made worth a warning.
    pub fn warnings(&self) -> &[String] {
        &self.config.warnings
    }

    /// How every server is doing, sorted by name.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        Vec::new()
    }

    /// How one server is doing.
    pub fn status(&self, name: &ServerName) -> Option<ServerStatus> {
        let _ = name;
        None
    }

    /// Starts those of `names` that are not running, in the background and at once. Must be called on the runtime.
    /// One that failed before is tried again only by [`Self::restart`].
    pub fn start(self: &Arc<Self>, names: &[ServerName]) {
        let _ = names;
    }

    /// Waits until none of `names` is connecting, at most `limit`; returns those that still are.
    pub async fn wait_ready(
        &self,
        names: &[ServerName],
        limit: Duration,
        abort: &AbortToken,
    ) -> Vec<ServerName> {
        let _ = (limit, abort);
        self.still_connecting(names)
    }

    /// Those of `names` that are connecting.
    pub fn still_connecting(&self, names: &[ServerName]) -> Vec<ServerName> {
        let _ = names;
        Vec::new()
    }

    /// The live handles among `names`, in that order.
    pub fn connected(&self, names: &[ServerName]) -> Vec<Arc<ConnectedServer>> {
        let _ = names;
        Vec::new()
    }

    /// The features of all live handles (`M-30`); the thin counterpart of the runtime's.
    pub fn server_features(&self) -> Vec<McpServerFeatures> {
        Vec::new()
    }

    /// Ends a server's connection; its functions are gone from the next request on.
    pub async fn stop(&self, name: &ServerName) {
        let _ = name;
    }

    /// Stops a server, forgets its failures and starts it again, waiting for the outcome.
    pub async fn restart(self: &Arc<Self>, name: &ServerName) -> Result<(), McpError> {
        Err(McpError::UnknownServer {
            name: name.to_string(),
            nearest: Vec::new(),
        })
    }

    /// Ends all connections, in parallel, within 1.5 s (`M-17`).
    pub async fn close_all(&self) {}
}
