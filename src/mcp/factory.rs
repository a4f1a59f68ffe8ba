//! One connection per thing that is connected, shared by whoever wants it (`M-14`).
#![allow(clippy::unused_async, reason = "the interface first: bodies follow")]

use std::sync::Arc;

use super::{ConnectedServer, McpError, ServerSpec};
use crate::utils::AbortToken;

/// Makes connections and remembers, weakly, those it made.
#[derive(Debug, Default)]
pub struct McpFactory {}

impl McpFactory {
    /// A factory without connections.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// The connection to what `spec` describes: a live one, or a new one within the entry's start timeout.
    pub async fn acquire(
        &self,
        spec: &ServerSpec,
        abort: &AbortToken,
    ) -> Result<Arc<ConnectedServer>, McpError> {
        let _ = abort;
        Err(McpError::Unavailable {
            server: spec.name.clone(),
            reason: "not available yet".into(),
            stderr: Vec::new(),
        })
    }
}
