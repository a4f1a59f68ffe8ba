//! What both directions of a connection share: the requests that wait, what the server said about itself, and how it
//! ended.
//!
//! Nothing here reads or writes; transports tell it what they send and ask it whose answer they got.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomResult,
    ErrorCode, ErrorData, GetExtensions as _, GetMeta as _, JsonRpcMessage, NumberOrString,
    RequestId, ServerResult,
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::ServerName;
use super::handler::Inbox;
use crate::chat::Progress;
use crate::utils::{AbortToken, text};

/// The code of errors that are ours and not the server's; no server can send it, see [`error_data`].
pub(crate) const LOCAL_ERROR: ErrorCode = ErrorCode(i32::MIN);
/// The same for a refusal of our credentials.
pub(crate) const AUTH_ERROR: ErrorCode = ErrorCode(i32::MIN + 1);
/// The same for a request that was not looked at because its session has expired.
pub(crate) const EXPIRED_ERROR: ErrorCode = ErrorCode(i32::MIN + 2);
/// The longest progress message, in bytes.
const PROGRESS_MESSAGE_MAX: usize = 1024;

/// Where the progress reports of one request go; travels with the request, so that none can come too early.
#[derive(Clone)]
pub(crate) struct ProgressRoute(pub(crate) mpsc::Sender<Progress>);

/// What a server said about itself when it was connected, kept as it said it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Handshake {
    /// The revision it chose, or those it supports.
    pub(crate) revisions: Vec<String>,
    pub(crate) capabilities: Map<String, Value>,
    pub(crate) server_info: Option<(String, String)>,
    pub(crate) instructions: Option<String>,
}

/// How and when a connection ended.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    pub(crate) reason: String,
    pub(crate) at: Instant,
    /// The server is well and only forgot the session.
    pub(crate) expired: bool,
}

/// What both directions of a connection share.
#[derive(Debug)]
pub(crate) struct Link {
    server: ServerName,
    inbox: Inbox,
    handshake: OnceLock<Handshake>,
    state: Mutex<LinkState>,
    /// Cancelled when `state.ended` is known.
    over: AbortToken,
}

#[derive(Debug, Default)]
struct LinkState {
    pending: HashMap<RequestId, Pending>,
    ended: Option<Ended>,
}

pub(crate) struct Pending {
    asked: Asked,
    token: Option<NumberOrString>,
    progress: Option<ProgressRoute>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Initialize,
    Discover,
    Other,
}

impl Link {
    pub(crate) fn new(server: ServerName, inbox: Inbox) -> Arc<Self> {
        Arc::new(Self {
            server,
            inbox,
            handshake: OnceLock::new(),
            state: Mutex::default(),
            over: AbortToken::new(),
        })
    }

    /// What the server said about itself, once it has.
    pub(crate) fn handshake(&self) -> Option<&Handshake> {
        self.handshake.get()
    }

    /// How the connection ended, once it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.state.lock().ended.clone()
    }

    /// Where what the server says unasked goes.
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub(crate) fn server(&self) -> &ServerName {
        &self.server
    }

    /// Ends the connection: the requests that wait are the caller's to answer. The first reason counts.
    pub(crate) fn end(&self, reason: &str) -> Vec<RequestId> {
        self.note_end(reason, false);
        self.take_all_pending()
    }

    /// Notes that the server forgot the session, before the connection is ended.
    pub(crate) fn expire(&self, reason: &str) {
        self.note_end(reason, true);
    }

    fn note_end(&self, reason: &str, expired: bool) {
        self.state.lock().ended.get_or_insert_with(|| Ended {
            reason: reason.to_owned(),
            at: Instant::now(),
            expired,
        });
        self.over.cancel();
    }

    /// Returns when the connection has ended.
    pub(crate) async fn wait_ended(&self) {
        self.over.cancelled().await;
    }

    /// Whether the request still waits for its answer.
    pub(crate) fn is_pending(&self, id: &RequestId) -> bool {
        self.state.lock().pending.contains_key(id)
    }

    /// Stops waiting for an answer; whether anybody did.
    pub(crate) fn forget(&self, id: &RequestId) -> bool {
        self.state.lock().pending.remove(id).is_some()
    }

    /// The requests that wait, which are the caller's to answer.
    pub(crate) fn take_all_pending(&self) -> Vec<RequestId> {
        self.state
            .lock()
            .pending
            .drain()
            .map(|(id, _)| id)
            .collect()
    }

    /// Notes what an outgoing message means for the answers that are to come.
    pub(crate) fn sending(&self, message: &ClientJsonRpcMessage) -> Result<(), Ended> {
        let mut state = self.state.lock();
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        match message {
            JsonRpcMessage::Request(request) => {
                let asked = match &request.request {
                    ClientRequest::InitializeRequest(_) => Asked::Initialize,
                    ClientRequest::DiscoverRequest(_) => Asked::Discover,
                    _ => Asked::Other,
                };
                let token = request.request.get_meta().get_progress_token();
                let pending = Pending {
                    asked,
                    token: token.map(|token| token.0),
                    progress: request.request.extensions().get().cloned(),
                };
                state.pending.insert(request.id.clone(), pending);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(CancelledNotification {
                    params,
                    ..
                }) = &notification.notification
                    && let Some(id) = &params.request_id
                {
                    state.pending.remove(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(())
    }

    /// The request that an answer's id belongs to. Some servers answer number 1 as string "1".
    pub(crate) fn answered(&self, id: Option<&Value>) -> Option<(RequestId, Pending)> {
        let mut state = self.state.lock();
        let id = match id {
            Some(Value::Number(number)) => NumberOrString::Number(number.as_i64()?),
            Some(Value::String(text)) => match text.parse() {
                Ok(number) => NumberOrString::Number(number),
                Err(_) => NumberOrString::String(text.as_str().into()),
            },
            // Without an id it can only be about the one request there is.
            None | Some(Value::Null) if state.pending.len() == 1 => {
                state.pending.keys().next()?.clone()
            }
            _ => return None,
        };
        let pending = state.pending.remove(&id)?;
        Some((id, pending))
    }

    /// Hands a progress report to the request that it is about.
    pub(crate) fn progress(&self, params: &Map<String, Value>) {
        let token = match params.get("progressToken") {
            Some(Value::Number(number)) => number.as_i64().map(NumberOrString::Number),
            Some(Value::String(text)) => Some(match text.parse() {
                Ok(number) => NumberOrString::Number(number),
                Err(_) => NumberOrString::String(text.as_str().into()),
            }),
            _ => None,
        };
        let number = |key: &str| params.get(key).and_then(Value::as_f64);
        let (Some(token), Some(progress)) = (token, number("progress")) else {
            return;
        };
        let message = params.get("message").and_then(Value::as_str);
        let report = Progress {
            progress,
            total: number("total"),
            message: message
                .map(|message| text::bounded(message, PROGRESS_MESSAGE_MAX).into_owned()),
        };
        let state = self.state.lock();
        let pending = state
            .pending
            .values()
            .find(|pending| pending.token.as_ref() == Some(&token));
        if let Some(route) = pending.and_then(|pending| pending.progress.as_ref()) {
            // Reports are worth less than memory: one that finds no room is dropped.
            let _ = route.0.try_send(report);
        }
    }

    /// What becomes of a result for rmcp: the handshake typed, everything else as it is.
    pub(crate) fn result(
        &self,
        pending: &Pending,
        result: Value,
    ) -> Result<ServerResult, ErrorData> {
        match pending.asked {
            Asked::Initialize => self.initialized(result),
            Asked::Discover => self.discovered(result),
            Asked::Other => Ok(ServerResult::CustomResult(CustomResult::new(result))),
        }
    }

    fn initialized(&self, result: Value) -> Result<ServerResult, ErrorData> {
        let mut result = into_object(result)?;
        let Some(Value::String(revision)) = result.remove("protocolVersion") else {
            return Err(local_error("its answer names no `protocolVersion`"));
        };
        let handshake = Handshake {
            revisions: vec![revision.clone()],
            ..about(&mut result)
        };
        // rmcp gets what it cannot stumble over; what the server really said is ours to read.
        let typed = json!({
            "protocolVersion": revision,
            "capabilities": {},
            "serverInfo": { "name": "", "version": "" },
        });
        let _ = self.handshake.set(handshake);
        serde_json::from_value(typed)
            .map(ServerResult::InitializeResult)
            .map_err(|error| local_error(&error.to_string()))
    }

    fn discovered(&self, result: Value) -> Result<ServerResult, ErrorData> {
        let mut result = into_object(result)?;
        let supported = match result.remove("supportedVersions") {
            Some(Value::Array(versions)) => versions,
            _ => Vec::new(),
        };
        let revisions: Vec<String> = supported
            .iter()
            .filter_map(|version| Some(version.as_str()?.to_owned()))
            .collect();
        let typed = json!({
            "resultType": "complete",
            "supportedVersions": revisions,
            "capabilities": {},
            "ttlMs": 0,
            "cacheScope": "private",
        });
        let handshake = Handshake {
            revisions,
            ..about(&mut result)
        };
        let _ = self.handshake.set(handshake);
        serde_json::from_value(typed)
            .map(ServerResult::DiscoverResult)
            .map_err(|error| local_error(&error.to_string()))
    }
}

fn into_object(result: Value) -> Result<Map<String, Value>, ErrorData> {
    match result {
        Value::Object(result) => Ok(result),
        _ => Err(local_error("its answer is not an object")),
    }
}

/// What a handshake says, whatever is missing or malformed.
fn about(result: &mut Map<String, Value>) -> Handshake {
    const INFO_IN_META: &str = "io.modelcontextprotocol/serverInfo";
    let capabilities = match result.remove("capabilities") {
        Some(Value::Object(capabilities)) => capabilities,
        _ => Map::new(),
    };
    let info = result
        .remove("serverInfo")
        .or_else(|| result.get("_meta")?.get(INFO_IN_META).cloned());
    let server_info = info.and_then(|info| {
        let word = |key: &str| {
            let word = info.get(key).and_then(Value::as_str).unwrap_or_default();
            text::bounded(word, 200).into_owned()
        };
        let (name, version) = (word("name"), word("version"));
        (!name.is_empty()).then_some((name, version))
    });
    let instructions = match result.remove("instructions") {
        Some(Value::String(instructions)) => Some(instructions),
        _ => None,
    };
    Handshake {
        revisions: Vec::new(),
        capabilities,
        server_info,
        instructions,
    }
}

/// An error of ours.
pub(crate) fn local_error(reason: &str) -> ErrorData {
    ErrorData::new(LOCAL_ERROR, reason.to_owned(), None)
}

/// The error a server sent, whatever it looks like.
pub(crate) fn error_data(error: Value) -> ErrorData {
    let Value::Object(mut error) = error else {
        return ErrorData::new(ErrorCode(0), error.to_string(), None);
    };
    let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
    let code = i32::try_from(code)
        .unwrap_or(0)
        .max(EXPIRED_ERROR.0.saturating_add(1));
    let message = match error.remove("message") {
        Some(Value::String(message)) => message,
        Some(message) => message.to_string(),
        None => "no message".to_owned(),
    };
    ErrorData::new(ErrorCode(code), message, error.remove("data"))
}
