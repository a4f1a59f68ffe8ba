//! The configured servers and how each of them is doing (`M-13`).
//!
//! Starting happens in the background: a server that hangs, exits, is missing or refuses costs the others nothing,
//! it becomes a state with a reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    Capabilities, ConnectedServer, McpConfig, McpError, McpFactory, McpServerFeatures, NameTable,
    Origin, ServerName, ServerSpec, SpecError,
};
use crate::utils::AbortToken;

/// The longest that closing may take, whatever servers do (`M-17`).
const CLOSE_LIMIT: Duration = Duration::from_millis(1500);
/// How far a name may be from a configured one to be offered instead.
const NEAREST_MIN: f64 = 0.7;
/// How many near names are offered.
const NEAREST_MAX: usize = 3;

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// Switched off in its file.
    Disabled,
    /// Not started, or stopped.
    Stopped,
    /// Being started.
    Connecting,
    /// Connected, or to be restarted by the next use.
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

impl ServerState {
    /// How the server is doing, in a word: the same in tables, in JSON and in the Tab menu.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Stopped => "stopped",
            Self::Connecting => "connecting",
            Self::Running => "running",
            Self::Failed { .. } => "failed",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// Why it cannot be used, where that is so.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason } | Self::Invalid { reason } => Some(reason),
            Self::Disabled | Self::Stopped | Self::Connecting | Self::Running => None,
        }
    }
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
    factory: Arc<McpFactory>,
    slots: Mutex<BTreeMap<ServerName, Slot>>,
    /// Counts changes of state, to wake those who wait for one.
    changed: watch::Sender<u64>,
}

/// What became of starting a server. No entry: it was never started.
#[derive(Debug)]
enum Slot {
    Connecting {
        abort: AbortToken,
    },
    Connected(Arc<ConnectedServer>),
    Failed(McpError),
    /// By the person: not started again until they say so.
    Stopped,
}

impl McpRegistry {
    /// Knows the servers and starts none.
    pub fn new(config: McpConfig, factory: Arc<McpFactory>) -> Arc<Self> {
        Arc::new(Self {
            config,
            factory,
            slots: Mutex::default(),
            changed: watch::Sender::new(0),
        })
    }

    /// Every configured server, usable or not, sorted.
    pub fn names(&self) -> Vec<ServerName> {
        self.config.servers.keys().cloned().collect()
    }

    /// What the files made worth a warning.
    pub fn warnings(&self) -> &[String] {
        &self.config.warnings
    }

    /// The entry of a server, when it can be used.
    pub fn spec(&self, name: &ServerName) -> Option<&ServerSpec> {
        self.config.servers.get(name)?.as_ref().ok()
    }

    /// Who makes the connections; roles and agents acquire theirs from the same one (`M-14`).
    pub fn factory(&self) -> &Arc<McpFactory> {
        &self.factory
    }

    /// How every server is doing, sorted by name.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.config
            .servers
            .keys()
            .filter_map(|name| self.status(name))
            .collect()
    }

    /// How one server is doing.
    pub fn status(&self, name: &ServerName) -> Option<ServerStatus> {
        let entry = self.config.servers.get(name)?;
        let spec = match entry {
            Ok(spec) => spec,
            Err(error) => return Some(invalid(name, error)),
        };
        let slots = self.slots.lock();
        let slot = slots.get(name);
        let server = match slot {
            Some(Slot::Connected(server)) => Some(server),
            _ => None,
        };
        let stderr_tail = match slot {
            Some(Slot::Failed(McpError::Unavailable { stderr, .. })) => stderr.clone(),
            _ => server.map_or_else(Vec::new, |server| server.stderr_tail()),
        };
        Some(ServerStatus {
            name: name.clone(),
            state: state(spec, slot),
            transport: spec.transport.kind(),
            origin: spec.origin,
            revision: server.and_then(|server| server.protocol_version()),
            capabilities: server.map(|server| server.capabilities()),
            description: spec.description.clone(),
            stderr_tail,
            notes: server.map_or_else(Vec::new, |server| notes(server)),
        })
    }

    /// Starts those of `names` that were never started, in the background and at once. Must be called on the runtime.
    /// One that failed, or that the person stopped, is started again only by [`Self::restart`].
    pub fn start(self: &Arc<Self>, names: &[ServerName]) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            tracing::error!("servers can only be started on the runtime");
            return;
        };
        for name in names {
            let Some(spec) = self.spec(name).filter(|spec| !spec.disabled) else {
                continue;
            };
            let abort = AbortToken::new();
            {
                let mut slots = self.slots.lock();
                if slots.contains_key(name) {
                    continue;
                }
                slots.insert(
                    name.clone(),
                    Slot::Connecting {
                        abort: abort.clone(),
                    },
                );
            }
            self.wake();
            let registry = Arc::clone(self);
            let spec = spec.clone();
            runtime.spawn(async move {
                let acquired = registry.factory.acquire(&spec, &abort).await;
                registry.started(&spec.name, acquired, &abort);
            });
        }
    }

    /// Notes the outcome of a start, unless the server was stopped meanwhile.
    fn started(
        &self,
        name: &ServerName,
        acquired: Result<Arc<ConnectedServer>, McpError>,
        abort: &AbortToken,
    ) {
        {
            let mut slots = self.slots.lock();
            if abort.is_cancelled() {
                return;
            }
            let slot = match acquired {
                Ok(server) => Slot::Connected(server),
                Err(error) => {
                    tracing::warn!(server = %name, %error, "not connected");
                    Slot::Failed(error)
                }
            };
            slots.insert(name.clone(), slot);
        }
        self.wake();
    }

    fn wake(&self) {
        self.changed.send_modify(|changes| *changes += 1);
    }

    /// Waits until none of `names` is connecting, at most `limit`; returns those that still are.
    pub async fn wait_ready(
        &self,
        names: &[ServerName],
        limit: Duration,
        abort: &AbortToken,
    ) -> Vec<ServerName> {
        let mut changed = self.changed.subscribe();
        let ready = changed.wait_for(|_| self.still_connecting(names).is_empty());
        tokio::select! {
            biased;
            () = abort.cancelled() => {}
            _ = ready => {}
            () = tokio::time::sleep(limit) => {}
        }
        self.still_connecting(names)
    }

    /// Those of `names` that are connecting.
    pub fn still_connecting(&self, names: &[ServerName]) -> Vec<ServerName> {
        let slots = self.slots.lock();
        let connecting =
            |name: &&ServerName| matches!(slots.get(*name), Some(Slot::Connecting { .. }));
        names.iter().filter(connecting).cloned().collect()
    }

    /// The usable handles among `names`, in that order: connected, or restarted by the next use (`M-16`).
    pub fn connected(&self, names: &[ServerName]) -> Vec<Arc<ConnectedServer>> {
        let slots = self.slots.lock();
        names
            .iter()
            .filter_map(|name| match slots.get(name) {
                Some(Slot::Connected(server)) if server.is_usable() => Some(Arc::clone(server)),
                _ => None,
            })
            .collect()
    }

    /// The features of all live handles (`M-30`); the thin counterpart of the runtime's.
    pub fn server_features(&self) -> Vec<McpServerFeatures> {
        let servers = self.connected(&self.names());
        let table = NameTable::new(servers.iter().map(|server| server.name().clone()));
        servers
            .iter()
            .filter_map(|server| {
                let name = table.model_name(server.name())?.clone();
                Some(server.capabilities().features(name))
            })
            .collect()
    }

    /// Ends a server's connection; its functions are gone from the next request on.
    pub async fn stop(&self, name: &ServerName) {
        if self.spec(name).is_none_or(|spec| spec.disabled) {
            return;
        }
        let slot = self.slots.lock().insert(name.clone(), Slot::Stopped);
        self.wake();
        end(slot).await;
    }

    /// Stops a server, forgets its failures and starts it again, waiting for the outcome.
    pub async fn restart(self: &Arc<Self>, name: &ServerName) -> Result<(), McpError> {
        match self.config.servers.get(name) {
            None => {
                return Err(McpError::UnknownServer {
                    name: name.to_string(),
                    nearest: self.nearest(name.as_str()),
                });
            }
            Some(Err(error)) => {
                return Err(McpError::Invalid {
                    server: name.clone(),
                    reason: error.reason.clone(),
                });
            }
            Some(Ok(spec)) if spec.disabled => {
                return Err(McpError::Disabled {
                    server: name.clone(),
                });
            }
            Some(Ok(_)) => {}
        }
        let slot = self.slots.lock().remove(name);
        end(slot).await;
        self.start(std::slice::from_ref(name));
        let mut changed = self.changed.subscribe();
        let _ = changed
            .wait_for(|_| self.still_connecting(std::slice::from_ref(name)).is_empty())
            .await;
        match self.slots.lock().get(name) {
            Some(Slot::Failed(error)) => Err(error.clone()),
            Some(Slot::Connected(_)) => Ok(()),
            Some(Slot::Stopped | Slot::Connecting { .. }) | None => Err(McpError::Cancelled),
        }
    }

    /// The configured names nearest to `name`.
    pub fn nearest(&self, name: &str) -> Vec<String> {
        let name = name.to_lowercase();
        let mut near: Vec<(f64, &ServerName)> = self
            .config
            .servers
            .keys()
            .map(|known| {
                let distance = strsim::jaro_winkler(&name, &known.as_str().to_lowercase());
                (distance, known)
            })
            .filter(|(likeness, _)| *likeness >= NEAREST_MIN)
            .collect();
        near.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        near.truncate(NEAREST_MAX);
        near.into_iter().map(|(_, name)| name.to_string()).collect()
    }

    /// Ends all connections, in parallel, within 1.5 s (`M-17`).
    pub async fn close_all(&self) {
        let slots = std::mem::take(&mut *self.slots.lock());
        let ending = async {
            tokio::join!(
                join_all(slots.into_values().map(|slot| end(Some(slot)))),
                self.factory.close_all(),
            );
        };
        if tokio::time::timeout(CLOSE_LIMIT, ending).await.is_err() {
            // What is left is killed when the runtime lets go of it.
            tracing::warn!("not every MCP server could be closed in time");
        }
        self.wake();
    }
}

async fn end(slot: Option<Slot>) {
    match slot {
        Some(Slot::Connected(server)) => server.close().await,
        Some(Slot::Connecting { abort }) => abort.cancel(),
        Some(Slot::Failed(_) | Slot::Stopped) | None => {}
    }
}

/// Why a server does not run, without its name, which stands beside it.
fn failure_words(error: &McpError) -> String {
    match error {
        McpError::Unavailable { reason, .. } => reason.clone(),
        McpError::AuthRequired {
            server,
            reason,
            file,
        } => {
            let file = file.as_deref().unwrap_or(Path::new("mcp.json"));
            format!(
                "it refused the credentials: {reason}; edit `headers.Authorization` of `{server}` in `{}`",
                file.display()
            )
        }
        other => other.to_string(),
    }
}

fn state(spec: &ServerSpec, slot: Option<&Slot>) -> ServerState {
    if spec.disabled {
        return ServerState::Disabled;
    }
    match slot {
        None | Some(Slot::Stopped) => ServerState::Stopped,
        Some(Slot::Connecting { .. }) => ServerState::Connecting,
        Some(Slot::Failed(error)) => ServerState::Failed {
            reason: failure_words(error),
        },
        Some(Slot::Connected(server)) if server.is_usable() => ServerState::Running,
        Some(Slot::Connected(server)) => ServerState::Failed {
            reason: server.down_reason().unwrap_or_default(),
        },
    }
}

fn notes(server: &ConnectedServer) -> Vec<String> {
    let mut notes: Vec<String> = server
        .unsupported()
        .into_iter()
        .map(|kind| format!("{} are advertised and not served", kind.words()))
        .collect();
    if let Some(reason) = server.down_reason().filter(|_| server.is_usable()) {
        notes.push(format!("{reason}; the next use restarts it"));
    }
    notes
}

fn invalid(name: &ServerName, error: &SpecError) -> ServerStatus {
    ServerStatus {
        name: name.clone(),
        state: ServerState::Invalid {
            reason: error.reason.clone(),
        },
        transport: "-",
        origin: error.origin,
        revision: None,
        capabilities: None,
        description: None,
        stderr_tail: Vec::new(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
