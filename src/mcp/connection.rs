//! One connection to a server, from the handshake to its end. It is never revived: `connect` makes a new one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{ClientRequest, CustomRequest, ProtocolVersion, ServerResult};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions,
    RequestHandle, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::{sleep_until, timeout_at};

use super::handler::{Changes, Handler, Inbox};
use super::handshake::{Failure, failure, unknown_revision, ways};
use super::link::{AUTH_ERROR, EXPIRED_ERROR, Ended, Handshake, LOCAL_ERROR, Link, ProgressRoute};
use super::process::{ServerProcess, StderrTail};
use super::remote::{HttpTransport, Remote};
use super::transport::{PipeTransport, SendError};
use super::{CallContext, Capabilities, McpError, ServerName, ServerSpec, TransportSpec};
use crate::utils::{AbortToken, text};

/// How many progress reports of one request may wait to be taken.
const PROGRESS_MAX: usize = 64;
/// How long a cancelled request may take to tell the server; less than a call has to wind up.
const TELL: Duration = Duration::from_millis(50);
/// Why a request is cancelled, for the server.
const NOBODY_WAITS: &str = "nobody waits for the answer any more";
/// The longest error message of a server that is passed on, in bytes (`M-46`).
pub(super) const ERROR_MESSAGE_MAX: usize = 4096;

/// How long a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Without a sign of life.
    pub(crate) idle: Duration,
    /// In all.
    pub(crate) total: Duration,
}

/// A server that came through the handshake.
#[derive(Debug)]
pub(crate) struct Connection {
    server: ServerName,
    /// The file its entry is in, for hints.
    file: Option<PathBuf>,
    service: RunningService<RoleClient, Handler>,
    link: Arc<Link>,
    backing: Backing,
    revision: Option<String>,
}

/// What is at the other end.
#[derive(Debug)]
enum Backing {
    Process(ServerProcess),
    Remote(Arc<Remote>),
    /// Streams that somebody else owns.
    Streams,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Its session had expired and the server did not look at it: it can be asked again (`M-16`).
    Expired(McpError),
    Failed(McpError),
}

impl CallFailure {
    pub(crate) fn into_error(self) -> McpError {
        match self {
            Self::Expired(error) | Self::Failed(error) => error,
        }
    }
}

impl Connection {
    /// Connects, within the entry's start timeout, in the ways its protocol choice allows.
    pub(crate) async fn open(
        spec: &ServerSpec,
        changes: &Arc<Changes>,
        abort: &AbortToken,
    ) -> Result<Self, McpError> {
        let deadline = tokio::time::Instant::now() + spec.startup_timeout;
        let connecting = Box::pin(async {
            let (first, second) = ways(&spec.protocol).map_err(Failure::new)?;
            let failure = match Self::attempt(spec, changes, first, deadline).await {
                Ok(connection) => return Ok(connection),
                Err(failure) => failure,
            };
            let Some(second) = second.filter(|_| failure.other_way) else {
                return Err(failure);
            };
            tracing::info!(server = %spec.name, reason = failure.reason, "trying discovery");
            Self::attempt(spec, changes, second, deadline)
                .await
                // What the server said to the usual handshake is what its user can act on.
                .map_err(|_| failure)
        });
        tokio::select! {
            biased;
            () = abort.cancelled() => Err(McpError::Cancelled),
            connected = connecting => {
                connected.map_err(|failure: Failure| failure.into_error(spec))
            }
        }
    }

    async fn attempt(
        spec: &ServerSpec,
        changes: &Arc<Changes>,
        way: ClientLifecycleMode,
        deadline: tokio::time::Instant,
    ) -> Result<Self, Failure> {
        match &spec.transport {
            TransportSpec::Stdio { .. } => Self::attempt_stdio(spec, changes, way, deadline).await,
            TransportSpec::Http { url, headers } => {
                let inbox = Inbox::new(spec.name.clone(), Arc::clone(changes));
                let link = Link::new(spec.name.clone(), inbox.clone());
                let remote = Remote::new(url, headers.clone(), Arc::clone(&link));
                let transport = HttpTransport::new(Arc::clone(&remote));
                let handshake = Self::shake_hands(spec, link, transport, inbox, way);
                let mut connection = in_time(spec, deadline, handshake).await?;
                connection.backing = Backing::Remote(remote);
                Ok(connection)
            }
        }
    }

    async fn attempt_stdio(
        spec: &ServerSpec,
        changes: &Arc<Changes>,
        way: ClientLifecycleMode,
        deadline: tokio::time::Instant,
    ) -> Result<Self, Failure> {
        let (process, pipes) = ServerProcess::spawn(spec).map_err(Failure::new)?;
        let stderr = process.stderr();
        let inbox = Inbox::new(spec.name.clone(), Arc::clone(changes));
        let link = Link::new(spec.name.clone(), inbox.clone());
        let exit = process.exit();
        let transport = PipeTransport::start(
            Arc::clone(&link),
            pipes.stdout,
            pipes.stdin,
            Some(exit),
            process.closing(),
        );
        let handshake = Self::shake_hands(spec, link, transport, inbox, way);
        match in_time(spec, deadline, handshake).await {
            Ok(mut connection) => {
                connection.backing = Backing::Process(process);
                Ok(connection)
            }
            Err(failure) => {
                // The last words of a server that just died are still in its pipe.
                process.close().await;
                Err(Failure {
                    stderr: stderr.lines(),
                    ..failure
                })
            }
        }
    }

    async fn shake_hands(
        spec: &ServerSpec,
        link: Arc<Link>,
        transport: impl Transport<RoleClient, Error = SendError> + 'static,
        inbox: Inbox,
        way: ClientLifecycleMode,
    ) -> Result<Self, Failure> {
        let asked = match &way {
            ClientLifecycleMode::Discover { preferred_versions } => {
                preferred_versions.first().cloned().unwrap_or_default()
            }
            _ => ProtocolVersion::LATEST_WITH_INITIALIZE,
        };
        let handler = Handler::new(asked, inbox);
        let service = handler
            .serve_with_lifecycle(transport, way)
            .await
            .map_err(|error| failure(&error, link.ended()))?;
        service
            .set_response_cache_config(ClientCacheConfig::disabled())
            .await;
        let peer = service.peer_info();
        let revision = peer.map(|peer| peer.protocol_version.clone());
        if let Some(revision) = &revision
            && !ProtocolVersion::KNOWN_VERSIONS.contains(revision)
        {
            return Err(unknown_revision(revision.as_str()));
        }
        if let Some(wanted) = changes_to_hear_of(revision.as_ref(), &link) {
            tokio::spawn(hear_of_changes(service.peer().clone(), wanted));
        }
        Ok(Self {
            server: spec.name.clone(),
            file: spec.file.clone(),
            service,
            link,
            backing: Backing::Streams,
            revision: revision.map(|revision| revision.as_str().to_owned()),
        })
    }

    /// Connects over streams instead of a process: for servers inside this process, and for tests.
    pub(crate) async fn over(
        spec: &ServerSpec,
        changes: &Arc<Changes>,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Self, McpError> {
        let inbox = Inbox::new(spec.name.clone(), Arc::clone(changes));
        let link = Link::new(spec.name.clone(), inbox.clone());
        let transport =
            PipeTransport::start(Arc::clone(&link), input, output, None, AbortToken::new());
        let handshake = Self::shake_hands(
            spec,
            link,
            transport,
            inbox,
            ClientLifecycleMode::Initialize,
        );
        let connected = tokio::time::timeout(spec.startup_timeout, handshake).await;
        connected
            .unwrap_or_else(|_| Err(Failure::new("it did not answer in time")))
            .map_err(|failure| failure.into_error(spec))
    }

    /// [`Self::over`] without a handshake: nothing is known of the server (`M-30`).
    pub(crate) fn without_handshake(
        spec: &ServerSpec,
        changes: &Arc<Changes>,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        let inbox = Inbox::new(spec.name.clone(), Arc::clone(changes));
        let link = Link::new(spec.name.clone(), inbox.clone());
        let transport =
            PipeTransport::start(Arc::clone(&link), input, output, None, AbortToken::new());
        let handler = Handler::new(ProtocolVersion::LATEST_WITH_INITIALIZE, inbox);
        Self {
            server: spec.name.clone(),
            file: spec.file.clone(),
            service: rmcp::service::serve_directly(handler, transport, None),
            link,
            backing: Backing::Streams,
            revision: None,
        }
    }

    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.link.handshake()
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.handshake().map_or(Capabilities::UNKNOWN, |handshake| {
            Capabilities::from_handshake(&handshake.capabilities)
        })
    }

    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// How it ended, when it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.link.ended().or_else(|| {
            self.service.is_transport_closed().then(|| Ended {
                reason: "the connection was closed".into(),
                at: Instant::now(),
                expired: false,
            })
        })
    }

    pub(crate) fn stderr(&self) -> Option<StderrTail> {
        match &self.backing {
            Backing::Process(process) => Some(process.stderr()),
            Backing::Remote(_) | Backing::Streams => None,
        }
    }

    /// Ends the connection; requests that wait fail at once. The process is gone when this returns.
    pub(crate) async fn close(&self) {
        self.link.end("the connection was closed");
        self.service.cancellation_token().cancel();
        match &self.backing {
            Backing::Process(process) => process.close().await,
            Backing::Remote(remote) => remote.close().await,
            Backing::Streams => {}
        }
    }

    /// Asks and waits for the answer: until it comes, the time is over, or the person has had enough. In the last
    /// two cases, and when the future is dropped, the server is told (`M-15`).
    pub(crate) async fn call(
        &self,
        operation: &str,
        method: &str,
        params: Map<String, Value>,
        limits: Limits,
        cx: &CallContext,
    ) -> Result<Value, CallFailure> {
        if cx.abort.is_cancelled() {
            return Err(CallFailure::Failed(McpError::Cancelled));
        }
        let (route, mut reports) = mpsc::channel(PROGRESS_MAX);
        let mut request = CustomRequest::new(method, Some(Value::Object(params)));
        request.extensions.insert(ProgressRoute(route));
        let sent = self
            .service
            .send_request_with_option(
                ClientRequest::CustomRequest(request),
                PeerRequestOptions::no_options(),
            )
            .await
            .map_err(|error| self.failed(operation, error))?;
        let mut waiting = Waiting::new(sent);
        let total = tokio::time::Instant::now() + limits.total;
        let mut idle = tokio::time::Instant::now() + limits.idle;
        loop {
            let Some(handle) = &mut waiting.0 else {
                return Err(self.failed(operation, ServiceError::TransportClosed));
            };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    waiting.0 = None;
                    // Reports that came before the answer are shown before it.
                    while let (Some(progress), Ok(report)) = (&cx.progress, reports.try_recv()) {
                        progress(report);
                    }
                    return match answer {
                        Ok(Ok(result)) => self.raw(operation, result).map_err(CallFailure::Failed),
                        Ok(Err(error)) => Err(self.failed(operation, error)),
                        Err(_) => Err(self.failed(operation, ServiceError::TransportClosed)),
                    };
                }
                () = cx.abort.cancelled() => {
                    waiting.tell().await;
                    return Err(CallFailure::Failed(McpError::Cancelled));
                }
                () = sleep_until(idle.min(total)) => {
                    let limit = if total <= idle { limits.total } else { limits.idle };
                    return Err(CallFailure::Failed(McpError::Timeout {
                        server: self.server.clone(),
                        operation: operation.to_owned(),
                        limit,
                    }));
                }
                Some(report) = reports.recv() => {
                    idle = tokio::time::Instant::now() + limits.idle;
                    if let Some(progress) = &cx.progress {
                        progress(report);
                    }
                }
            }
        }
    }

    /// The result as the server sent it.
    fn raw(&self, operation: &str, result: ServerResult) -> Result<Value, McpError> {
        let value = match result {
            ServerResult::CustomResult(result) => result.0,
            // Transports that decode themselves hand on what they made of it.
            other => serde_json::to_value(other)
                .map_err(|error| self.nonsense(operation, error.to_string()))?,
        };
        match value.get("resultType").and_then(Value::as_str) {
            Some("input_required") => Err(self.nonsense(
                operation,
                "the server asks for further input, which coyote does not give".into(),
            )),
            Some("task") => Err(self.nonsense(
                operation,
                "the server answers with a task to wait for, which coyote does not do".into(),
            )),
            _ => Ok(value),
        }
    }

    fn nonsense(&self, operation: &str, reason: String) -> McpError {
        McpError::Protocol {
            server: self.server.clone(),
            operation: operation.to_owned(),
            reason,
        }
    }

    fn failed(&self, operation: &str, error: ServiceError) -> CallFailure {
        let closed = || {
            let ended = self.link.ended();
            McpError::Closed {
                server: self.server.clone(),
                operation: operation.to_owned(),
                reason: ended.map_or_else(|| "the connection was closed".into(), |end| end.reason),
            }
        };
        let ended = self.link.ended().is_some();
        CallFailure::Failed(match error {
            ServiceError::McpError(error) => match error.code {
                EXPIRED_ERROR => return CallFailure::Expired(closed()),
                AUTH_ERROR => McpError::AuthRequired {
                    server: self.server.clone(),
                    reason: error.message.into_owned(),
                    file: self.file.clone(),
                },
                LOCAL_ERROR if ended => closed(),
                LOCAL_ERROR => self.nonsense(operation, error.message.into_owned()),
                code => McpError::Refused {
                    server: self.server.clone(),
                    operation: operation.to_owned(),
                    code: code.0,
                    message: text::bounded(&error.message, ERROR_MESSAGE_MAX).into_owned(),
                },
            },
            ServiceError::TransportSend(error) if !ended => {
                self.nonsense(operation, error.error.to_string())
            }
            _ => closed(),
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.link.end("the connection was closed");
    }
}

/// A request whose answer is still awaited; dropping it tells the server that nobody does any more.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Waiting {
    fn new(handle: RequestHandle<RoleClient>) -> Self {
        Self(Some(handle))
    }

    /// Tells the server now and waits a moment until it is written: whoever cancels a request may drop the connection
    /// next, as a delegate does that is the only one to use it.
    async fn tell(&mut self) {
        if let Some(handle) = self.0.take() {
            let _ = tokio::time::timeout(TELL, handle.cancel(Some(NOBODY_WAITS.into()))).await;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        runtime.spawn(async move {
            let _ = handle.cancel(Some(NOBODY_WAITS.into())).await;
        });
    }
}

/// Revisions without a handshake announce changed lists only to those who ask; what there is to ask for.
fn changes_to_hear_of(revision: Option<&ProtocolVersion>, link: &Link) -> Option<Value> {
    if revision.is_none_or(ProtocolVersion::has_initialize) {
        return None;
    }
    let capabilities = &link.handshake()?.capabilities;
    let announced = ["tools", "resources", "prompts"]
        .into_iter()
        .filter(|kind| {
            let changes = capabilities.get(*kind).and_then(|it| it.get("listChanged"));
            changes == Some(&Value::Bool(true))
        })
        .map(|kind| (format!("{kind}ListChanged"), Value::Bool(true)));
    let wanted: Map<String, Value> = announced.collect();
    (!wanted.is_empty()).then(|| json!({ "notifications": wanted }))
}

/// Asks to hear of changed lists. The request stays open; what comes of it arrives as notifications.
async fn hear_of_changes(peer: Peer<RoleClient>, wanted: Value) {
    let request = CustomRequest::new("subscriptions/listen", Some(wanted));
    let listening = peer
        .send_request_with_option(
            ClientRequest::CustomRequest(request),
            PeerRequestOptions::no_options(),
        )
        .await;
    if let Ok(listening) = listening {
        let ended = listening.rx.await;
        tracing::debug!(
            ok = matches!(ended, Ok(Ok(_))),
            "no longer hears of changes"
        );
    }
}

/// A handshake within the start timeout.
async fn in_time(
    spec: &ServerSpec,
    deadline: tokio::time::Instant,
    handshake: impl Future<Output = Result<Connection, Failure>>,
) -> Result<Connection, Failure> {
    timeout_at(deadline, handshake).await.unwrap_or_else(|_| {
        let limit = spec.startup_timeout.as_secs_f64();
        Err(Failure::new(format!(
            "it did not answer within {limit} s (`startup_timeout`)"
        )))
    })
}
