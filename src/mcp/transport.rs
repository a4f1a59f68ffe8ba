//! Bytes to messages and back over a pair of pipes: one JSON-RPC message a line (`M-14`, `M-16`, `M-20`).
//!
//! Only the handshake is decoded into rmcp's types; every other result is handed on as it is, because what a result
//! means depends on the request and rmcp would guess from its keys. Whatever arrives, each request that waits for an
//! answer gets one: the answer, an error that says what was wrong with it, or, when the pipe or the process ends, an
//! error that says so.

use std::future;
use std::sync::Arc;

use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::handler;
use super::link::{Link, error_data, local_error};
use super::process::{DRAIN, Exit};
use crate::utils::AbortToken;

/// The longest message a server may send, in bytes: a blob of 50 MiB and what surrounds it fit (`M-14`).
pub const MESSAGE_MAX: usize = 128 * 1024 * 1024;
/// Messages above this are parsed away from the async threads, and their buffer is given back.
const LARGE_MESSAGE: usize = 1024 * 1024;
/// Messages that wait for the server to read them; beyond that it is not reading at all.
const OUTGOING_MAX: usize = 1024;
/// Messages that wait for rmcp to take them.
const INCOMING_MAX: usize = 16;
/// How much of a line that is no message is logged.
const NOISE_MAX: usize = 200;

/// Why a message could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{0}")]
    Ended(String),
    #[error("the server does not read its input")]
    NotReading,
    #[error("the message cannot be encoded: {0}")]
    Encode(String),
}

struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
}

/// rmcp's side of a pair of pipes; two tasks are the other side.
pub(crate) struct PipeTransport {
    link: Arc<Link>,
    outgoing: mpsc::Sender<Outgoing>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
}

impl PipeTransport {
    /// Starts reading and writing. `exit` ends the connection when the process does, `closing` closes `output`.
    pub(crate) fn start(
        link: Arc<Link>,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        exit: Option<Exit>,
        closing: AbortToken,
    ) -> Self {
        let (outgoing, lines) = mpsc::channel(OUTGOING_MAX);
        let (messages, incoming) = mpsc::channel(INCOMING_MAX);
        tokio::spawn(write_lines(output, lines, closing));
        let reader = Reader {
            link: Arc::clone(&link),
            messages,
            // Weak: when rmcp lets go of the transport, the writer ends and the server sees EOF.
            replies: outgoing.downgrade(),
        };
        tokio::spawn(reader.run(input, exit));
        Self {
            link,
            outgoing,
            incoming,
        }
    }

    fn enqueue(&self, message: &ClientJsonRpcMessage) -> Result<oneshot::Receiver<()>, SendError> {
        let mut line =
            serde_json::to_vec(message).map_err(|error| SendError::Encode(error.to_string()))?;
        line.push(b'\n');
        self.link
            .sending(message)
            .map_err(|ended| SendError::Ended(ended.reason))?;
        let (written, done) = oneshot::channel();
        // Here and not in the future: messages leave in the order in which they were sent.
        match self.outgoing.try_send(Outgoing { line, written }) {
            Ok(()) => Ok(done),
            Err(mpsc::error::TrySendError::Full(_)) => Err(SendError::NotReading),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.ended()),
        }
    }

    fn ended(&self) -> SendError {
        let ended = self.link.ended();
        SendError::Ended(ended.map_or_else(|| "it closed its input".into(), |end| end.reason))
    }
}

impl Transport<RoleClient> for PipeTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let queued = self.enqueue(&item);
        let ended = self.ended();
        async move { queued?.await.map_err(|_| ended) }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.incoming.recv().await
    }

    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        self.incoming.close();
        future::ready(Ok(()))
    }
}

async fn write_lines(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Outgoing>,
    closing: AbortToken,
) {
    let writing = async {
        while let Some(Outgoing { line, written }) = lines.recv().await {
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                break;
            }
            let _ = written.send(());
        }
    };
    tokio::select! {
        () = writing => {}
        () = closing.cancelled() => {}
    }
}

/// One step of reading.
enum Line {
    Message(Vec<u8>),
    TooLong,
    End,
}

/// Cuts a stream into lines without keeping more than one of them, and gives large buffers back.
struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input: BufReader::with_capacity(64 * 1024, input),
            line: Vec::new(),
            skipping: false,
        }
    }

    /// The next line. May be dropped and called again without loss.
    async fn next(&mut self) -> Line {
        loop {
            let Ok(chunk) = self.input.fill_buf().await else {
                return Line::End;
            };
            if chunk.is_empty() {
                return self.last();
            }
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let part = newline.and_then(|end| chunk.get(..end)).unwrap_or(chunk);
            let too_long = !self.skipping && self.line.len() + part.len() > MESSAGE_MAX;
            if too_long {
                self.skipping = true;
                self.line = Vec::new();
            } else if !self.skipping {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(newline.is_some());
            self.input.consume(used);
            if newline.is_some() {
                let skipped = std::mem::take(&mut self.skipping);
                if !skipped {
                    return Line::Message(std::mem::take(&mut self.line));
                }
            }
            if too_long {
                return Line::TooLong;
            }
        }
    }

    /// What the stream ends with, when its last line has no newline.
    fn last(&mut self) -> Line {
        if self.line.is_empty() {
            return Line::End;
        }
        Line::Message(std::mem::take(&mut self.line))
    }
}

struct Reader {
    link: Arc<Link>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    replies: mpsc::WeakSender<Outgoing>,
}

impl Reader {
    /// Reads until the pipe ends, the process has ended, or nobody listens any more.
    async fn run(self, input: impl AsyncRead + Unpin, mut exit: Option<Exit>) {
        let mut lines = Lines::new(input);
        let mut exited: Option<String> = None;
        let mut drained = None;
        let reason = loop {
            tokio::select! {
                biased;
                words = next_exit(&mut exit), if exited.is_none() => {
                    exited = Some(words);
                    drained = Some(tokio::time::Instant::now() + DRAIN);
                }
                () = until(drained) => break exited.unwrap_or_default(),
                () = self.messages.closed() => break "the connection was closed".into(),
                line = lines.next() => match line {
                    Line::Message(line) => self.line(line).await,
                    Line::TooLong => self.too_long().await,
                    Line::End => break closed_reason(exited, exit).await,
                },
            }
        };
        tracing::debug!(server = %self.link.server(), reason, "connection ended");
        for id in self.link.end(&reason) {
            self.hand_on(JsonRpcMessage::error(local_error(&reason), Some(id)))
                .await;
        }
    }

    async fn hand_on(&self, message: ServerJsonRpcMessage) {
        // Nobody listening means that nobody waits either.
        let _ = self.messages.send(message).await;
    }

    async fn too_long(&self) {
        let reason = format!(
            "a message of the server is longer than {} MiB",
            MESSAGE_MAX / (1024 * 1024)
        );
        tracing::warn!(server = %self.link.server(), reason);
        // Whose answer it was cannot be known any more.
        for id in self.link.take_all_pending() {
            self.hand_on(JsonRpcMessage::error(local_error(&reason), Some(id)))
                .await;
        }
    }

    async fn line(&self, line: Vec<u8>) {
        let parsed = if line.len() > LARGE_MESSAGE {
            tokio::task::spawn_blocking(move || parse(&line)).await.ok()
        } else {
            Some(parse(&line))
        };
        match parsed {
            Some(Parsed::Messages(messages)) => {
                for message in messages {
                    self.message(message).await;
                }
            }
            Some(Parsed::Noise(noise)) if noise.is_empty() => {}
            Some(Parsed::Noise(noise)) => {
                tracing::debug!(server = %self.link.server(), noise, "not a message");
            }
            None => {}
        }
    }

    async fn message(&self, mut message: Map<String, Value>) {
        let id = message.get("id").filter(|id| !id.is_null());
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            match id {
                Some(id) => self.answer(id, method),
                None => self.notification(method, message.get("params")),
            }
            return;
        }
        if id.is_none() && !message.contains_key("error") {
            tracing::debug!(server = %self.link.server(), "neither a request nor an answer");
            return;
        }
        let Some((id, pending)) = self.link.answered(id) else {
            tracing::debug!(server = %self.link.server(), "answer to no request of ours");
            return;
        };
        let error = message.remove("error").filter(|error| !error.is_null());
        let answer = match (message.remove("result"), error) {
            (_, Some(error)) => Err(error_data(error)),
            (Some(result), None) => self.link.result(&pending, result),
            (None, None) => Err(local_error("the answer has neither `result` nor `error`")),
        };
        let answer = match answer {
            Ok(result) => JsonRpcMessage::response(result, id),
            Err(error) => JsonRpcMessage::error(error, Some(id)),
        };
        self.hand_on(answer).await;
    }

    fn notification(&self, method: &str, params: Option<&Value>) {
        let none = Map::new();
        let params = params.and_then(Value::as_object).unwrap_or(&none);
        if method == "notifications/progress" {
            self.link.progress(params);
        } else {
            self.link.inbox().take(method, params);
        }
    }

    /// Answers a request of the server. One that does not read its answers loses them.
    fn answer(&self, id: &Value, method: &str) {
        let mut reply = json!({ "jsonrpc": "2.0", "id": id });
        let (key, value) = match handler::answer(method) {
            Ok(result) => ("result", Value::Object(result)),
            Err(error) => (
                "error",
                json!({ "code": error.code.0, "message": error.message }),
            ),
        };
        if let Value::Object(reply) = &mut reply {
            reply.insert(key.to_owned(), value);
        }
        let mut line = reply.to_string().into_bytes();
        line.push(b'\n');
        let (written, _) = oneshot::channel();
        if let Some(replies) = self.replies.upgrade() {
            let _ = replies.try_send(Outgoing { line, written });
        }
    }
}

enum Parsed {
    /// One message, or the elements of a batch.
    Messages(Vec<Map<String, Value>>),
    /// The beginning of something else, for the log.
    Noise(String),
}

fn parse(line: &[u8]) -> Parsed {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let value = serde_json::from_slice(line).or_else(|error| match std::str::from_utf8(line) {
        Ok(_) => Err(error),
        // One bad byte inside a string costs that character and not the answer.
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(line)),
    });
    match value {
        Ok(Value::Object(message)) => Parsed::Messages(vec![message]),
        Ok(Value::Array(batch)) => Parsed::Messages(
            batch
                .into_iter()
                .filter_map(|element| match element {
                    Value::Object(message) => Some(message),
                    _ => None,
                })
                .collect(),
        ),
        Ok(_) | Err(_) => {
            let start = line.get(..NOISE_MAX).unwrap_or(line);
            Parsed::Noise(String::from_utf8_lossy(start).trim().to_owned())
        }
    }
}

/// How the process ended, when it does; never, when there is none to watch.
async fn next_exit(exit: &mut Option<Exit>) -> String {
    let Some(exit) = exit else {
        return future::pending().await;
    };
    match exit.wait_for(Option::is_some).await {
        Ok(words) => words.clone().unwrap_or_default(),
        Err(_) => "its process ended".into(),
    }
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => future::pending().await,
    }
}

/// Why the pipe ended: the process's own end says more, when it comes in time.
async fn closed_reason(exited: Option<String>, mut exit: Option<Exit>) -> String {
    match exited {
        Some(words) => words,
        None if exit.is_none() => "it closed its output".into(),
        None => tokio::time::timeout(DRAIN, next_exit(&mut exit))
            .await
            .unwrap_or_else(|_| "it closed its output".into()),
    }
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
