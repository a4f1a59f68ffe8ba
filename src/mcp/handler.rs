//! What servers say unasked: changed lists and log messages are taken, everything they ask for is refused politely
//! (`M-14`).
//!
//! Our pipe transport hands such messages to `Inbox` itself, in the order in which they arrive; `Handler` is the
//! same for transports that leave them to rmcp.
#![allow(
    deprecated,
    reason = "roots, sampling and logging are deprecated in the protocol; refusing them is not"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ErrorCode, ErrorData, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{ListKind, ServerName};
use crate::utils::text;

/// The longest log message of a server that is passed on, in bytes.
const LOG_MESSAGE_MAX: usize = 4096;

/// A number for each kind of list, in the order of [`ListKind::ALL`].
pub(crate) type PerKind<T> = [T; ListKind::ALL.len()];

/// How often what is known of each kind ceased to be true.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    counters: PerKind<AtomicU64>,
    /// How often the server said so itself, since it was first asked something.
    announced: watch::Sender<PerKind<u64>>,
    asked: AtomicBool,
}

impl Changes {
    fn counter(&self, kind: ListKind) -> &AtomicU64 {
        let [tools, resources, templates, prompts] = &self.counters;
        match kind {
            ListKind::Tools => tools,
            ListKind::Resources => resources,
            ListKind::ResourceTemplates => templates,
            ListKind::Prompts => prompts,
        }
    }

    /// How often so far.
    pub(crate) fn of(&self, kind: ListKind) -> u64 {
        self.counter(kind).load(Ordering::Acquire)
    }

    /// Once more.
    pub(crate) fn bump(&self, kinds: &[ListKind]) {
        for kind in kinds {
            self.counter(*kind).fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The server is asked something, or (`false`) is new: what it announces before it is asked is no news.
    pub(crate) fn set_asked(&self, asked: bool) {
        self.asked.store(asked, Ordering::Release);
    }

    /// What the server announces, from now on.
    pub(crate) fn announced(&self) -> watch::Receiver<PerKind<u64>> {
        self.announced.subscribe()
    }

    fn announce(&self, kinds: &[ListKind]) {
        self.bump(kinds);
        if self.asked.load(Ordering::Acquire) {
            self.announced.send_modify(|announced| {
                for kind in kinds {
                    let [tools, resources, templates, prompts] = announced;
                    let count = match kind {
                        ListKind::Tools => tools,
                        ListKind::Resources => resources,
                        ListKind::ResourceTemplates => templates,
                        ListKind::Prompts => prompts,
                    };
                    *count = count.wrapping_add(1);
                }
            });
        }
    }
}

/// Takes what a server says unasked.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    server: ServerName,
    changes: Arc<Changes>,
}

impl Inbox {
    pub(crate) fn new(server: ServerName, changes: Arc<Changes>) -> Self {
        Self { server, changes }
    }

    /// Takes one notification that is not about a request of ours.
    pub(crate) fn take(&self, method: &str, params: &Map<String, Value>) {
        match method {
            "notifications/tools/list_changed" => self.changes.announce(&[ListKind::Tools]),
            "notifications/prompts/list_changed" => self.changes.announce(&[ListKind::Prompts]),
            "notifications/resources/list_changed" => self
                .changes
                .announce(&[ListKind::Resources, ListKind::ResourceTemplates]),
            "notifications/message" => self.log(params),
            _ => tracing::debug!(server = %self.server, method, "notification ignored"),
        }
    }

    fn log(&self, params: &Map<String, Value>) {
        let level = params
            .get("level")
            .and_then(Value::as_str)
            .unwrap_or("info");
        let message = match params.get("data") {
            Some(Value::String(message)) => message.clone(),
            Some(data) => data.to_string(),
            None => String::new(),
        };
        let message = text::bounded(&message, LOG_MESSAGE_MAX);
        let server = &self.server;
        match level {
            "debug" => tracing::debug!(target: "mcp.server", %server, "{message}"),
            "warning" => tracing::warn!(target: "mcp.server", %server, "{message}"),
            "error" | "critical" | "alert" | "emergency" => {
                tracing::error!(target: "mcp.server", %server, "{message}");
            }
            _ => tracing::info!(target: "mcp.server", %server, "{message}"),
        }
    }
}

/// The answer to whatever a server asks for: it may know whether we are there, and that is all we offer.
pub(crate) fn answer(method: &str) -> Result<Map<String, Value>, ErrorData> {
    if method == "ping" {
        return Ok(Map::new());
    }
    let method = text::prefix(method, 100);
    Err(ErrorData::new(
        ErrorCode::METHOD_NOT_FOUND,
        format!("coyote does not offer `{method}`"),
        None,
    ))
}

/// Who we are, and the revision we would like to speak.
pub(crate) fn client_config(revision: ProtocolVersion) -> ClientConfig {
    let info = Implementation::new("coyote", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), info).with_protocol_version(revision)
}

/// Our side of a connection, for rmcp.
#[derive(Debug)]
pub(crate) struct Handler {
    revision: ProtocolVersion,
    inbox: Inbox,
}

impl Handler {
    pub(crate) fn new(revision: ProtocolVersion, inbox: Inbox) -> Self {
        Self { revision, inbox }
    }
}

fn refuse<T>(method: &str) -> Result<T, ErrorData> {
    Err(match answer(method) {
        Err(refusal) => refusal,
        Ok(_) => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None),
    })
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        client_config(self.revision.clone())
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        refuse("sampling/createMessage")
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        refuse("roots/list")
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        refuse("elicitation/create")
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        if let Ok(Value::Object(params)) = serde_json::to_value(params) {
            self.inbox.take("notifications/message", &params);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.inbox
            .take("notifications/tools/list_changed", &Map::new());
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.inbox
            .take("notifications/prompts/list_changed", &Map::new());
    }

    async fn on_resource_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.inbox
            .take("notifications/resources/list_changed", &Map::new());
    }
}
