//! Streamable HTTP: each message is a POST, answers come as JSON or as a stream of events, and one more stream
//! carries what the server says unasked (`M-18`).
//!
//! Bodies are bounded like every message, lost streams are resumed only where the server gave the means, and
//! credentials that are refused are told by the status, never by words.

use std::collections::HashMap;
use std::future;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use parking_lot::Mutex;
use reqwest::{Method, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorData, GetMeta as _, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::incoming::{Incoming, too_long_words};
use super::link::{AUTH_ERROR, EXPIRED_ERROR, Link, local_error};
use super::sse::Events;
use super::transport::{MESSAGE_MAX, SendError};
use crate::utils::http::{Http, HttpOptions, describe};
use crate::utils::{AbortToken, text};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Headers that an entry cannot set, because they are the protocol's.
pub(crate) const RESERVED_HEADERS: [&str; 8] = [
    "accept",
    "content-type",
    "content-length",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "mcp-method",
    "mcp-name",
];
/// Messages that wait for rmcp to take them.
const INCOMING_MAX: usize = 16;
/// How long a message that expects no answer may take.
const NOTE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long ending the session may take; leaving must not wait for a server (`M-17`).
const END_TIMEOUT: Duration = Duration::from_millis(500);
/// How often one lost stream is resumed.
const RESUME_MAX: u32 = 100;
/// Bounds of the pause before that, whatever the server wishes.
const RESUME_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// How often in a row the listening stream may fail before it is given up.
const LISTEN_FAILURES_MAX: u32 = 5;
/// How a connection ends whose session the server no longer knows.
const SESSION_EXPIRED: &str = "its session has expired";
/// How much of a challenge is quoted, in bytes.
const CHALLENGE_MAX: usize = 300;

/// A server at the other end of HTTP.
#[derive(Debug)]
pub(crate) struct Remote {
    http: Arc<Http>,
    url: String,
    headers: HeaderMap,
    link: Arc<Link>,
    session: Mutex<Option<HeaderValue>>,
    closing: AbortToken,
}

impl Remote {
    pub(crate) fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
        link: Arc<Link>,
    ) -> Arc<Self> {
        let headers = headers
            .into_iter()
            .filter_map(|(name, value)| {
                let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
                let mut value = HeaderValue::from_str(&value).ok()?;
                value.set_sensitive(true);
                Some((name, value))
            })
            .collect();
        Arc::new(Self {
            http: Http::shared(HttpOptions::default()),
            url: url.to_owned(),
            headers,
            link,
            session: Mutex::default(),
            closing: AbortToken::new(),
        })
    }

    /// Ends the session at the server, if there is one, and everything that is under way.
    pub(crate) async fn close(&self) {
        let session = self.session.lock().take();
        if let Some(session) = session {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION, session);
            self.add_revision(&mut headers);
            let ending = self.send(Method::DELETE, headers, Vec::new());
            let _ = tokio::time::timeout(END_TIMEOUT, ending).await;
        }
        self.closing.cancel();
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, ErrorData> {
        let mut all = self.headers.clone();
        all.extend(headers);
        let request = self
            .http
            .request(method, &self.url)
            .map_err(|error| local_error(&error.to_string()))?;
        request
            .headers(all)
            .body(body)
            .send()
            .await
            .map_err(|error| local_error(&describe(error)))
    }

    async fn post(&self, mut headers: HeaderMap, body: Vec<u8>) -> Result<Response, ErrorData> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        self.add_session(&mut headers);
        self.send(Method::POST, headers, body).await
    }

    /// Opens the stream of what the server says unasked, or resumes one after an event.
    async fn get(&self, after: Option<&str>) -> Result<Response, ErrorData> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.add_session(&mut headers);
        self.add_revision(&mut headers);
        if let Some(after) = after.and_then(|after| HeaderValue::from_str(after).ok()) {
            headers.insert(LAST_EVENT, after);
        }
        self.send(Method::GET, headers, Vec::new()).await
    }

    fn add_session(&self, headers: &mut HeaderMap) {
        if let Some(session) = &*self.session.lock() {
            headers.insert(SESSION, session.clone());
        }
    }

    fn add_revision(&self, headers: &mut HeaderMap) {
        let revision = self.link.handshake().and_then(|it| it.revisions.first());
        if let Some(revision) = revision.and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.insert(REVISION, revision);
        }
    }

    /// Posts a request and sees to it that it is answered.
    async fn ask(
        &self,
        incoming: &Incoming,
        id: &RequestId,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(), ErrorData> {
        let had_session = self.session.lock().is_some();
        let response = self.post(headers, body).await?;
        if !had_session && let Some(session) = response.headers().get(SESSION) {
            *self.session.lock() = Some(session.clone());
        }
        let status = response.status();
        refused(&response)?;
        if status == StatusCode::NOT_FOUND && had_session {
            return Err(self.expired(incoming, id).await);
        }
        match content_type(&response).as_deref() {
            Some("application/json") => self.json(incoming, id, response).await?,
            Some("text/event-stream") if status.is_success() => {
                self.stream(incoming, id, response).await?;
            }
            other if status.is_success() => return Err(no_answer(status, other)),
            _ => return Err(failed_status(&response)),
        }
        if self.link.is_pending(id) {
            return Err(if status.is_success() {
                local_error("what it sent is no answer to the request")
            } else {
                local_error(&format!("HTTP {}", status.as_u16()))
            });
        }
        Ok(())
    }

    /// The session is gone: this request was not looked at, the others of the session are lost.
    async fn expired(&self, incoming: &Incoming, id: &RequestId) -> ErrorData {
        self.session.lock().take();
        let error = ErrorData::new(EXPIRED_ERROR, SESSION_EXPIRED, None);
        incoming.fail(id, error.clone()).await;
        self.link.expire(SESSION_EXPIRED);
        incoming.end(SESSION_EXPIRED).await;
        error
    }

    async fn json(
        &self,
        incoming: &Incoming,
        id: &RequestId,
        mut response: Response,
    ) -> Result<(), ErrorData> {
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| local_error(&describe(error)))?
        {
            if body.len() + chunk.len() > MESSAGE_MAX {
                return Err(local_error(&too_long_words()));
            }
            body.extend_from_slice(&chunk);
        }
        self.take(incoming, body, Some(id)).await;
        Ok(())
    }

    /// Reads a stream until it brought the answer, resuming it when it breaks off and can be resumed.
    async fn stream(
        &self,
        incoming: &Incoming,
        id: &RequestId,
        mut response: Response,
    ) -> Result<(), ErrorData> {
        let mut events = Events::default();
        for _ in 0..RESUME_MAX {
            while let Ok(Some(chunk)) = response.chunk().await {
                let complete = events
                    .push(&chunk)
                    .map_err(|_| local_error(&too_long_words()))?;
                for data in complete {
                    self.take(incoming, data, Some(id)).await;
                }
                if !self.link.is_pending(id) {
                    return Ok(());
                }
            }
            let Some(last) = events.last_id.clone() else {
                return Err(local_error("the stream ended before the answer"));
            };
            let (shortest, longest) = RESUME_PAUSE;
            let pause = events.retry.unwrap_or(Duration::from_secs(1));
            tokio::time::sleep(pause.clamp(shortest, longest)).await;
            events = events.resumed();
            response = self.get(Some(&last)).await?;
            refused(&response)?;
            let is_stream = content_type(&response).as_deref() == Some("text/event-stream");
            if !response.status().is_success() || !is_stream {
                return Err(local_error("the stream ended and could not be resumed"));
            }
        }
        Err(local_error("the stream ended again and again"))
    }

    async fn take(&self, incoming: &Incoming, bytes: Vec<u8>, about: Option<&RequestId>) {
        for reply in incoming.take(bytes, about).await {
            let mut headers = HeaderMap::new();
            self.add_revision(&mut headers);
            let posting = self.post(headers, reply.to_string().into_bytes());
            // One after the other: a server that asks without end waits for itself.
            let _ = tokio::time::timeout(NOTE_TIMEOUT, posting).await;
        }
    }

    /// Posts what expects no answer.
    async fn note(&self, headers: HeaderMap, body: Vec<u8>) -> Result<(), ErrorData> {
        let response = tokio::time::timeout(NOTE_TIMEOUT, self.post(headers, body))
            .await
            .map_err(|_| local_error("the server does not take messages"))??;
        refused(&response)?;
        if response.status().is_success() {
            Ok(())
        } else {
            Err(failed_status(&response))
        }
    }

    /// Listens for what the server says unasked, as long as it offers that.
    async fn listen(&self, incoming: &Incoming) {
        let mut failures = 0;
        let mut last_id: Option<String> = None;
        while failures < LISTEN_FAILURES_MAX {
            let opened = self.get(last_id.as_deref()).await;
            failures += 1;
            let mut events = Events::default();
            if let Ok(mut response) = opened {
                let status = response.status();
                let is_stream = content_type(&response).as_deref() == Some("text/event-stream");
                if status.is_client_error() || (status.is_success() && !is_stream) {
                    return;
                }
                while let Ok(Some(chunk)) = response.chunk().await {
                    failures = 0;
                    let Ok(complete) = events.push(&chunk) else {
                        return;
                    };
                    for data in complete {
                        self.take(incoming, data, None).await;
                    }
                }
            }
            last_id = events.last_id.or(last_id);
            let (_, longest) = RESUME_PAUSE;
            let pause = events.retry.unwrap_or_default();
            tokio::time::sleep(pause.clamp(Duration::from_secs(1), longest)).await;
        }
    }
}

/// The media type, in lower case and without parameters.
fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default();
    Some(media_type.trim().to_ascii_lowercase())
}

/// Tells a refusal of our credentials, with or without a challenge, by its status (`M-18`).
fn refused(response: &Response) -> Result<(), ErrorData> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(());
    }
    let challenge = response
        .headers()
        .get(WWW_AUTHENTICATE)
        .and_then(|challenge| challenge.to_str().ok());
    let reason = match challenge {
        Some(challenge) => format!(
            "HTTP {} ({})",
            status.as_u16(),
            text::bounded(challenge, CHALLENGE_MAX)
        ),
        None => format!("HTTP {}", status.as_u16()),
    };
    Err(ErrorData::new(AUTH_ERROR, reason, None))
}

fn no_answer(status: StatusCode, content_type: Option<&str>) -> ErrorData {
    local_error(&match content_type {
        Some(content_type) if status != StatusCode::ACCEPTED => format!(
            "it answered with `{}` and not with JSON",
            text::bounded(content_type, 100)
        ),
        _ => "it took the request and sent no answer".to_owned(),
    })
}

fn failed_status(response: &Response) -> ErrorData {
    let status = response.status();
    let code = status.as_u16();
    let seconds = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|after| after.to_str().ok()?.parse::<u64>().ok());
    local_error(&match seconds {
        Some(seconds) => format!("HTTP {code}; it asks to wait {seconds} s"),
        None if status.is_redirection() => {
            format!("HTTP {code}: it redirects to another place, which `url` has to name")
        }
        None => format!("HTTP {code}"),
    })
}

/// What the headers of a message say about it.
fn message_headers(message: &ClientJsonRpcMessage, remote: &Remote) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let JsonRpcMessage::Request(request) = message else {
        remote.add_revision(&mut headers);
        return headers;
    };
    // Revisions without a handshake name themselves in every request, and what it is for.
    let Some(revision) = request.request.get_meta().protocol_version() else {
        remote.add_revision(&mut headers);
        return headers;
    };
    if let Ok(revision) = HeaderValue::from_str(revision.as_str()) {
        headers.insert(REVISION, revision);
    }
    let method = request.request.method();
    if let Ok(method) = HeaderValue::from_str(method) {
        headers.insert(METHOD, method);
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return headers,
    };
    let whole = serde_json::to_value(&request.request).unwrap_or_default();
    let name = whole.get("params").and_then(|params| params.get(key));
    if let Some(name) = name.and_then(Value::as_str).and_then(header_text) {
        headers.insert(NAME, name);
    }
    headers
}

/// Text as a header value; what headers cannot hold is wrapped as the protocol says.
fn header_text(text: &str) -> Option<HeaderValue> {
    let plain = text.chars().all(|c| matches!(c, ' '..='~'))
        && text.trim() == text
        && !text.starts_with("=?base64?");
    if plain {
        return HeaderValue::from_str(text).ok();
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    HeaderValue::from_str(&format!("=?base64?{encoded}?=")).ok()
}

/// rmcp's side of a remote server.
pub(crate) struct HttpTransport {
    remote: Arc<Remote>,
    incoming: Incoming,
    receiver: mpsc::Receiver<ServerJsonRpcMessage>,
    /// What ends the POST of each request that is under way.
    under_way: HashMap<RequestId, AbortToken>,
}

impl HttpTransport {
    pub(crate) fn new(remote: Arc<Remote>) -> Self {
        let (messages, receiver) = mpsc::channel(INCOMING_MAX);
        Self {
            incoming: Incoming::new(Arc::clone(&remote.link), messages),
            remote,
            receiver,
            under_way: HashMap::new(),
        }
    }

    /// Starts sending; what is returned says when a message that expects no answer has arrived.
    fn start(
        &mut self,
        message: &ClientJsonRpcMessage,
    ) -> Result<Option<oneshot::Receiver<Result<(), ErrorData>>>, SendError> {
        let body =
            serde_json::to_vec(message).map_err(|error| SendError::Encode(error.to_string()))?;
        self.remote
            .link
            .sending(message)
            .map_err(|ended| SendError::Ended(ended.reason))?;
        let headers = message_headers(message, &self.remote);
        let (remote, incoming) = (Arc::clone(&self.remote), self.incoming.clone());
        let closing = self.remote.closing.clone();
        if let JsonRpcMessage::Request(request) = message {
            let id = request.id.clone();
            let done = closing.child_token();
            self.under_way.retain(|_, token| !token.is_cancelled());
            self.under_way.insert(id.clone(), done.clone());
            tokio::spawn(async move {
                let asking = remote.ask(&incoming, &id, headers, body);
                let asked = done.run_until_cancelled(asking).await;
                if let Some(Err(error)) = asked {
                    incoming.fail(&id, error).await;
                }
                done.cancel();
            });
            return Ok(None);
        }
        let mut begins = false;
        if let JsonRpcMessage::Notification(notification) = message {
            match &notification.notification {
                ClientNotification::CancelledNotification(cancelled) => {
                    let id = cancelled.params.request_id.as_ref();
                    if let Some(token) = id.and_then(|id| self.under_way.remove(id)) {
                        token.cancel();
                    }
                }
                ClientNotification::InitializedNotification(_) => begins = true,
                _ => {}
            }
        }
        let (arrived, noted) = oneshot::channel();
        tokio::spawn(async move {
            let _ = arrived.send(remote.note(headers, body).await);
            if begins {
                closing.run_until_cancelled(remote.listen(&incoming)).await;
            }
        });
        Ok(Some(noted))
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let started = self.start(&item);
        async move {
            let Some(noted) = started? else {
                return Ok(());
            };
            match noted.await {
                Ok(Err(error)) => Err(SendError::Refused(error.message.into_owned())),
                Ok(Ok(())) | Err(_) => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.receiver.recv().await
    }

    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        self.receiver.close();
        future::ready(Ok(()))
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.remote.closing.cancel();
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
