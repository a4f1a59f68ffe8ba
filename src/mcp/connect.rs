//! A live server: the one handle through which everything asks it anything.
//!
//! Answers are raw JSON; what they mean is decided above, leniently (`M-20`). Every request has a timeout, can be
//! cancelled, and leaves the server usable (`M-15`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::connection::{CallFailure, Connection, Limits};
use super::handler::{Changes, PerKind};
use super::kept::Kept;
use super::link::Ended;
use super::pager::{Next, Pager};
use super::{Capabilities, McpError, ServerName, ServerSpec};
use crate::chat::Progress;
use crate::utils::{AbortToken, text};

/// How long a call or a read may take, unless the entry says otherwise (`M-15`).
pub const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);
/// How long a list may take, all its pages together, unless the entry says otherwise.
pub const DEFAULT_LIST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a request may take in all, however much progress its server reports.
pub const TOTAL_TIMEOUT: Duration = Duration::from_mins(10);
/// A server that ends twice within this time is left alone (`M-16`).
const FAILURE_WINDOW: Duration = Duration::from_mins(1);
/// How much of a name or a URI an error quotes, in bytes.
const QUOTE_MAX: usize = 200;

/// How one request is made.
#[derive(Clone)]
pub struct CallContext {
    /// Cancels the request; the server is told.
    pub abort: AbortToken,
    /// Takes the server's progress reports.
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    /// The bound on what becomes of the answer for the model, in bytes, when it is tighter than the policy's own.
    pub max_result: Option<usize>,
    /// What is done about a connection that is down.
    pub revival: Revival,
}

/// What a request does about a connection that is down, or whose session expires while it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revival {
    /// It is a use: the server is restarted, the session begun anew (`M-16`).
    #[default]
    Restart,
    /// It is no use and fails: completion must not start, connect or authenticate anything (`P-41`).
    Never,
}

impl CallContext {
    /// A context without progress reports and without a bound of its own.
    pub fn new(abort: AbortToken) -> Self {
        Self {
            abort,
            progress: None,
            max_result: None,
            revival: Revival::default(),
        }
    }

    /// The same, for a request that takes the connection as it is or fails (`P-41`).
    #[must_use]
    pub fn without_revival(self) -> Self {
        Self {
            revival: Revival::Never,
            ..self
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
    changes: Arc<Changes>,
    state: RwLock<State>,
    /// Held while a dead connection is replaced, so that many requests restart a server once.
    restarting: tokio::sync::Mutex<()>,
    /// Kinds that are advertised and answered with "no such method", on the connection at hand (`M-34`).
    unsupported: Mutex<BTreeSet<ListKind>>,
    closing: AbortToken,
}

#[derive(Debug)]
struct State {
    connection: Arc<Connection>,
    /// When it last died and was restarted.
    last_failure: Option<Instant>,
    /// Why it is not restarted any more.
    given_up: Option<String>,
}

impl ConnectedServer {
    /// Connects.
    pub(crate) async fn connect(spec: &ServerSpec, abort: &AbortToken) -> Result<Self, McpError> {
        let changes = Arc::default();
        let connection = Connection::open(spec, &changes, abort).await?;
        Ok(Self::new(spec, changes, connection))
    }

    /// Connects over streams instead of starting a program: for a server inside this process, and for tests. Such a
    /// connection is not restarted.
    pub async fn over_streams(
        spec: &ServerSpec,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Arc<Self>, McpError> {
        let changes = Arc::default();
        let connection = Connection::over(spec, &changes, input, output).await?;
        Ok(Arc::new(Self::new(spec, changes, connection)))
    }

    /// [`Self::over_streams`] without a handshake: nothing is known of the server but that it is there (`M-30`).
    pub fn without_handshake(
        spec: &ServerSpec,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Arc<Self> {
        let changes = Arc::default();
        let connection = Connection::without_handshake(spec, &changes, input, output);
        Arc::new(Self::new(spec, changes, connection))
    }

    fn new(spec: &ServerSpec, changes: Arc<Changes>, connection: Connection) -> Self {
        Self {
            spec: spec.clone(),
            changes,
            state: RwLock::new(State {
                connection: Arc::new(connection),
                last_failure: None,
                given_up: None,
            }),
            restarting: tokio::sync::Mutex::default(),
            unsupported: Mutex::default(),
            closing: AbortToken::new(),
            kept: Kept::default(),
        }
    }

    fn current(&self) -> Arc<Connection> {
        Arc::clone(&self.state.read().connection)
    }

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
        self.current().capabilities()
    }

    /// Whether the server's handshake was seen.
    pub fn peer_known(&self) -> bool {
        self.current().handshake().is_some()
    }

    /// The negotiated protocol revision.
    pub fn protocol_version(&self) -> Option<String> {
        self.current().revision().map(str::to_owned)
    }

    /// The server's own name and version.
    pub fn server_info(&self) -> Option<(String, String)> {
        self.current().handshake()?.server_info.clone()
    }

    /// What the server wants models to know.
    pub fn instructions(&self) -> Option<String> {
        self.current().handshake()?.instructions.clone()
    }

    /// The last lines the server wrote to its stderr.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.current()
            .stderr()
            .map_or_else(Vec::new, |stderr| stderr.lines())
    }

    /// The kinds that are advertised and, as far as was asked, not served (`M-34`).
    pub fn unsupported(&self) -> Vec<ListKind> {
        self.unsupported.lock().iter().copied().collect()
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
        let operation = operation_words(method, &params);
        let limits = self.limits(DEFAULT_TIMEOUT);
        self.ask(&operation, method, params, limits, cx).await
    }

    /// Asks, and once more on a new session when the one at hand had expired.
    async fn ask(
        &self,
        operation: &str,
        method: &str,
        params: Map<String, Value>,
        limits: Limits,
        cx: &CallContext,
    ) -> Result<Value, McpError> {
        let connection = self.connection(operation, cx).await?;
        self.changes.set_asked(true);
        let again = params.clone();
        match connection.call(operation, method, params, limits, cx).await {
            Err(CallFailure::Expired(_)) if cx.revival == Revival::Restart => {}
            answer => return answer.map_err(CallFailure::into_error),
        }
        let connection = self.connection(operation, cx).await?;
        let answer = connection.call(operation, method, again, limits, cx).await;
        answer.map_err(CallFailure::into_error)
    }

    /// Lists everything of one kind, following the pages within bounds (`M-19`). A kind that is not advertised is
    /// never asked for and is empty (`M-34`).
    pub async fn list(&self, kind: ListKind, cx: &CallContext) -> Result<Listing, McpError> {
        let operation = format!("listing {}", kind.words());
        let connection = self.connection(&operation, cx).await?;
        if !advertised(kind, connection.capabilities()) {
            return Ok(Listing::default());
        }
        let limits = self.limits(DEFAULT_LIST_TIMEOUT);
        let deadline = Instant::now() + limits.idle;
        let mut pager = Pager::new(kind);
        let mut cursor: Option<String> = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let page = Limits {
                idle: left,
                total: left,
            };
            let params = Pager::params(cursor.as_deref());
            let answer = self.ask(&operation, kind.method(), params, page, cx).await;
            match answer {
                Ok(result) => match pager.page(result) {
                    Next::Page(next) => cursor = Some(next),
                    Next::Done => return Ok(self.listed(pager)),
                },
                Err(error) if error.is_method_not_found() => {
                    return Ok(self.not_served(kind));
                }
                Err(McpError::Timeout { .. }) if pager.has_items() => {
                    pager.warn("the server takes too long");
                    return Ok(self.listed(pager));
                }
                Err(McpError::Timeout {
                    server, operation, ..
                }) => {
                    return Err(McpError::Timeout {
                        server,
                        operation,
                        limit: limits.idle,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn listed(&self, pager: Pager) -> Listing {
        let listing = pager.finish();
        if let Some(warning) = &listing.warning {
            tracing::warn!(server = %self.spec.name, "{warning}");
        }
        listing
    }

    fn not_served(&self, kind: ListKind) -> Listing {
        if self.unsupported.lock().insert(kind) {
            let kind = kind.words();
            tracing::info!(server = %self.spec.name, "{kind} are advertised and not served");
        }
        Listing {
            unsupported: true,
            ..Listing::default()
        }
    }

    /// Asks whether the server is there. One that does not know the question is.
    pub async fn ping(&self, cx: &CallContext) -> Result<(), McpError> {
        match self.request("ping", Map::new(), cx).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_method_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Grows whenever what was known of a kind is no longer: the server said so, or it was reconnected.
    pub fn generation(&self, kind: ListKind) -> u64 {
        self.changes.of(kind)
    }

    /// How often the server announced a change of each kind, see [`super::news`].
    pub(crate) fn announced(&self) -> watch::Receiver<PerKind<u64>> {
        self.changes.announced()
    }

    /// Whether the connection is up.
    pub fn is_running(&self) -> bool {
        !self.closing.is_cancelled() && self.current().ended().is_none()
    }

    /// Whether asking can succeed: the connection is up, or may be restarted by the next use.
    pub fn is_usable(&self) -> bool {
        !self.closing.is_cancelled() && self.state.read().given_up.is_none()
    }

    /// Why the connection is down, when it is.
    pub fn down_reason(&self) -> Option<String> {
        let given_up = self.state.read().given_up.clone();
        given_up.or_else(|| Some(self.current().ended()?.reason))
    }

    /// Ends the connection and the process, within 1.5 s (`M-17`). It is not restarted.
    pub async fn close(&self) {
        self.closing.cancel();
        self.current().close().await;
    }

    fn limits(&self, default: Duration) -> Limits {
        let idle = self.spec.timeout.unwrap_or(default);
        Limits {
            idle,
            total: idle.max(TOTAL_TIMEOUT),
        }
    }

    /// A live connection: the one at hand, or a new one in place of one that died, unless `cx` forbids that.
    pub(crate) async fn connection(
        &self,
        operation: &str,
        cx: &CallContext,
    ) -> Result<Arc<Connection>, McpError> {
        let abort = &cx.abort;
        let current = self.current();
        let ended = current.ended();
        match ended {
            None if !self.closing.is_cancelled() => return Ok(current),
            Some(ended) if cx.revival == Revival::Never => {
                return Err(self.down(operation, &ended.reason));
            }
            None | Some(_) => {}
        }
        let restart = async {
            let _one_at_a_time = self.restarting.lock().await;
            let current = self.current();
            match current.ended() {
                None => Ok(current),
                Some(ended) => self.reconnect(operation, &ended, abort).await,
            }
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(self.down(operation, "it was stopped")),
            () = abort.cancelled() => Err(McpError::Cancelled),
            connection = restart => connection,
        }
    }

    async fn reconnect(
        &self,
        operation: &str,
        ended: &Ended,
        abort: &AbortToken,
    ) -> Result<Arc<Connection>, McpError> {
        self.may_restart(ended)
            .map_err(|reason| self.down(operation, &reason))?;
        tracing::info!(server = %self.spec.name, reason = ended.reason, "restarting");
        self.changes.set_asked(false);
        let opened = Connection::open(&self.spec, &self.changes, abort).await;
        let connection = match opened {
            Ok(connection) => Arc::new(connection),
            Err(McpError::Cancelled) => {
                // The person gave up, not the server: the next use may try again.
                self.state.write().last_failure = None;
                return Err(McpError::Cancelled);
            }
            Err(error) => {
                self.state.write().given_up = Some(error.to_string());
                return Err(error);
            }
        };
        {
            let mut state = self.state.write();
            // Whoever closes looks at the connection after saying so: here it is either seen or said.
            if self.closing.is_cancelled() {
                return Err(self.down(operation, "it was stopped"));
            }
            state.connection = Arc::clone(&connection);
        }
        self.unsupported.lock().clear();
        self.changes.bump(&ListKind::ALL);
        Ok(connection)
    }

    /// Whether this end is the first for a while; notes it either way (`M-16`).
    fn may_restart(&self, ended: &Ended) -> Result<(), String> {
        let mut state = self.state.write();
        if let Some(reason) = &state.given_up {
            return Err(reason.clone());
        }
        if ended.expired {
            return Ok(());
        }
        let too_soon = state
            .last_failure
            .is_some_and(|last| ended.at.saturating_duration_since(last) < FAILURE_WINDOW);
        if too_soon {
            let reason = format!("{}, for the second time within a minute", ended.reason);
            state.given_up = Some(reason.clone());
            return Err(reason);
        }
        state.last_failure = Some(ended.at);
        Ok(())
    }

    fn down(&self, operation: &str, reason: &str) -> McpError {
        McpError::Closed {
            server: self.spec.name.clone(),
            operation: operation.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

fn advertised(kind: ListKind, capabilities: Capabilities) -> bool {
    match kind {
        ListKind::Tools => capabilities.tools,
        ListKind::Resources | ListKind::ResourceTemplates => capabilities.resources,
        ListKind::Prompts => capabilities.prompts,
    }
}

/// What a request does, in words for an error.
fn operation_words(method: &str, params: &Map<String, Value>) -> String {
    let quoted = |key: &str| {
        let text = params.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("`{}`", text::bounded(text, QUOTE_MAX))
    };
    match method {
        "tools/call" => format!("calling tool {}", quoted("name")),
        "resources/read" => format!("reading {}", quoted("uri")),
        "prompts/get" => format!("getting prompt {}", quoted("name")),
        "completion/complete" => "completing an argument".into(),
        "ping" => "asking for a sign of life".into(),
        _ => format!("`{}`", text::bounded(method, QUOTE_MAX)),
    }
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
