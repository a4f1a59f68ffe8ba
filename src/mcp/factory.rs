//! One connection per thing that is connected, shared by whoever wants it (`M-14`).
//!
//! The factory remembers its connections weakly: they live as long as a registry, a role or an agent holds them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::broadcast;

use super::news::{News, Newsroom};
use super::{CallContext, ConnectedServer, McpError, ServerSpec, TransportSpec};
use crate::utils::AbortToken;

/// A digest of everything that changes what is connected; secrets go in and do not come out.
type Key = [u8; 32];
/// Held while one key is being connected, so that all who want it share one connection.
type Slot = Arc<tokio::sync::Mutex<Weak<ConnectedServer>>>;

/// Makes connections and remembers, weakly, those it made.
#[derive(Debug, Default)]
pub struct McpFactory {
    slots: Mutex<HashMap<Key, Slot>>,
    closing: AbortToken,
    news: Newsroom,
}

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
        if spec.disabled {
            return Err(McpError::Disabled {
                server: spec.name.clone(),
            });
        }
        let slot = Arc::clone(self.slots.lock().entry(key(spec)).or_default());
        let acquired = async {
            let mut slot = slot.lock().await;
            let held = slot.upgrade().filter(|server| server.is_usable());
            if let Some(server) = held {
                // Whoever acquires a server wants it running.
                server
                    .connection("connecting", &CallContext::new(abort.clone()))
                    .await?;
                return Ok(server);
            }
            let server = Arc::new(ConnectedServer::connect(spec, abort).await?);
            self.news.follow(&server);
            *slot = Arc::downgrade(&server);
            Ok(server)
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(McpError::Cancelled),
            () = abort.cancelled() => Err(McpError::Cancelled),
            acquired = acquired => acquired,
        }
    }

    /// What the servers of all connections announce, from now on.
    pub fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Ends every connection anybody still holds, in parallel, and makes no more.
    pub async fn close_all(&self) {
        self.closing.cancel();
        let slots: Vec<Slot> = self.slots.lock().values().cloned().collect();
        join_all(slots.iter().map(|slot| async {
            let server = slot.lock().await.upgrade();
            if let Some(server) = server {
                server.close().await;
            }
        }))
        .await;
    }
}

fn key(spec: &ServerSpec) -> Key {
    let transport = match &spec.transport {
        TransportSpec::Stdio {
            command,
            args,
            cwd,
            env,
        } => json!(["stdio", command, args, cwd, env, spec.scrub_env]),
        TransportSpec::Http { url, headers } => json!(["http", url, headers]),
    };
    let protocol = format!("{:?}", spec.protocol);
    let whole = json!([spec.name.as_str(), transport, protocol]).to_string();
    Sha256::digest(whole.as_bytes()).into()
}

#[cfg(test)]
#[path = "factory_tests.rs"]
mod tests;
