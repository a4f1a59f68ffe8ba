//! Bytes to messages and back over a pair of pipes: one JSON-RPC message a line (`M-14`, `M-16`, `M-20`).
//!
//! Only the handshake is decoded into rmcp's types; every other result is handed on as it is, because what a result
//! means depends on the request and rmcp would guess from its keys. Whatever arrives, each request that waits for an
//! answer gets one: the answer, an error that says what was wrong with it, or, when the pipe or the process ends, an
//! error that says so.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use bstr::ByteSlice as _;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::incoming::Incoming;
use super::link::Link;
use super::process::{DRAIN, Exit};
use crate::utils::AbortToken;

/// The longest message a server may send, in bytes: a blob of 50 MiB and what surrounds it fit (`M-14`).
pub const MESSAGE_MAX: usize = 128 * 1024 * 1024;
/// Messages that wait for the server to read them; beyond that it is not reading at all.
const OUTGOING_MAX: usize = 1024;
/// Messages that wait for rmcp to take them.
const INCOMING_MAX: usize = 16;

/// How long the reader may take to say how a server ended that does not read any more: it drains first.
const LAST_WORD: Duration = DRAIN.saturating_mul(2);

/// Why a message could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{0}")]
    Ended(String),
    #[error("{0}")]
    Refused(String),
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
            incoming: Incoming::new(Arc::clone(&link), messages),
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
            Err(mpsc::error::TrySendError::Full(_)) => Err(SendError::NotReading),
            // `done` sees that the line was dropped, like one that could not be written.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(done),
        }
    }
}

/// Why nothing can be written any more. A server that exits closes its input first and its end becomes known a
/// moment later, from the reader: that says more, so it is waited for.
async fn input_closed(link: &Link) -> SendError {
    let _ = tokio::time::timeout(LAST_WORD, link.wait_ended()).await;
    let ended = link.ended();
    SendError::Ended(ended.map_or_else(|| "it closed its input".into(), |end| end.reason))
}

impl Transport<RoleClient> for PipeTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let queued = self.enqueue(&item);
        let link = Arc::clone(&self.link);
        async move {
            match queued?.await {
                Ok(()) => Ok(()),
                Err(_) => Err(input_closed(&link).await),
            }
        }
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
            let newline = chunk.find_byte(b'\n');
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
    incoming: Incoming,
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
                () = self.incoming.closed() => break "the connection was closed".into(),
                line = lines.next() => match line {
                    Line::Message(line) => self.line(line).await,
                    Line::TooLong => self.incoming.too_long().await,
                    Line::End => break closed_reason(exited, exit).await,
                },
            }
        };
        self.incoming.end(&reason).await;
    }

    async fn line(&self, line: Vec<u8>) {
        for reply in self.incoming.take(line, None).await {
            let mut line = reply.to_string().into_bytes();
            line.push(b'\n');
            let (written, _) = oneshot::channel();
            // One that does not read its answers loses them.
            if let Some(replies) = self.replies.upgrade() {
                let _ = replies.try_send(Outgoing { line, written });
            }
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
pub(super) mod tests;
