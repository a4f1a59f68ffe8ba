//! A provider that says exactly what a test scripts, over real HTTP, and keeps what it was asked.
//!
//! Replies are given in the order of the requests; a request beyond the script is answered with 500 and recorded,
//! so that a test sees it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// One scripted answer to one request.
pub enum Reply {
    /// A complete response.
    Full {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// A 200 event stream sent piece by piece, then closed properly (or, with `cut`, in the middle).
    Stream { pieces: Vec<Piece>, cut: bool },
}

/// A step of a streamed answer.
pub enum Piece {
    /// Bytes, flushed at once.
    Bytes(Vec<u8>),
    /// Waits until the test opens the gate or the client goes away.
    Gate(Receiver<()>),
    /// The same bytes again and again until the client goes away; at most this many times.
    Repeat(Vec<u8>, usize),
}

/// What the provider was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// A running provider; ends with the value.
pub struct Provider {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    hung_up: Arc<Mutex<usize>>,
}

/// Decides what a request is answered with.
type Script = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

impl Provider {
    /// Replies in the order of the requests.
    pub fn new(script: Vec<Reply>) -> Self {
        let script = Mutex::new(script.into_iter());
        Self::with(move |_| {
            let next = script.lock().unwrap().next();
            next.unwrap_or_else(|| status(500, "the script is at its end"))
        })
    }

    /// Replies to what is asked, whoever asks first.
    pub fn with(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let provider = Self {
            port,
            asked: Arc::default(),
            hung_up: Arc::default(),
        };
        let script: Script = Arc::new(script);
        let (asked, hung_up) = (Arc::clone(&provider.asked), Arc::clone(&provider.hung_up));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, asked, hung_up) = (
                    Arc::clone(&script),
                    Arc::clone(&asked),
                    Arc::clone(&hung_up),
                );
                std::thread::spawn(move || {
                    let _ = serve(stream, &script, &asked, &hung_up);
                });
            }
        });
        provider
    }

    /// The base URL with `/v1`, as users write it.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The base URL without a path.
    pub fn root(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How many streams the client left before they ended.
    pub fn hung_up(&self) -> usize {
        *self.hung_up.lock().unwrap()
    }
}

fn serve(
    stream: TcpStream,
    script: &Script,
    asked: &Mutex<Vec<Asked>>,
    hung_up: &Mutex<usize>,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = Vec::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse().unwrap_or(0);
                }
                headers.push((name.to_owned(), value.trim().to_owned()));
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let request = Asked {
            path,
            headers,
            body,
        };
        // Taken under the lock of the record, so that the n-th reply answers the n-th recorded request.
        let reply = {
            let mut asked = asked.lock().unwrap();
            let reply = script(&request);
            asked.push(request);
            reply
        };
        match reply {
            Reply::Full {
                status,
                headers,
                body,
            } => {
                write!(
                    writer,
                    "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n",
                    body.len()
                )?;
                for (name, value) in headers {
                    write!(writer, "{name}: {value}\r\n")?;
                }
                writer.write_all(b"\r\n")?;
                writer.write_all(&body)?;
            }
            Reply::Stream { pieces, cut } => {
                if let Err(error) = stream_out(&mut writer, pieces, cut) {
                    *hung_up.lock().unwrap() += 1;
                    return Err(error);
                }
                return Ok(());
            }
        }
    }
}

fn stream_out(writer: &mut TcpStream, pieces: Vec<Piece>, cut: bool) -> std::io::Result<()> {
    writer.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => chunk(writer, &bytes)?,
            Piece::Gate(gate) => wait_or_gone(writer, &gate)?,
            Piece::Repeat(bytes, times) => {
                for _ in 0..times {
                    chunk(writer, &bytes)?;
                }
            }
        }
    }
    if !cut {
        writer.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}

fn chunk(writer: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    writer.write_all(&framed)
}

/// Waits for the gate; an error when the client hangs up first.
fn wait_or_gone(writer: &TcpStream, gate: &Receiver<()>) -> std::io::Result<()> {
    let mut probe = writer.try_clone()?;
    probe.set_read_timeout(Some(Duration::from_millis(5)))?;
    loop {
        match gate.try_recv() {
            Ok(()) => return Ok(()),
            Err(mpsc::TryRecvError::Empty | mpsc::TryRecvError::Disconnected) => {}
        }
        let mut byte = [0];
        match probe.read(&mut byte) {
            Ok(0) => return Err(std::io::ErrorKind::BrokenPipe.into()),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A gate for [`Piece::Gate`] and what opens it; dropping the opener leaves it shut.
pub fn gate() -> (Sender<()>, Piece) {
    let (open, gate) = mpsc::channel();
    (open, Piece::Gate(gate))
}

/// A plain response.
pub fn status(status: u16, body: &str) -> Reply {
    Reply::Full {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.as_bytes().to_vec(),
    }
}

/// `data: …` of one event.
pub fn data(value: &Value) -> Piece {
    Piece::Bytes(format!("data: {value}\n\n").into_bytes())
}

/// A chat-completions delta.
pub fn delta(delta: &Value) -> Piece {
    data(
        &json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }),
    )
}

/// The chat-completions end.
pub fn finish(reason: &str) -> Vec<Piece> {
    vec![
        data(
            &json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] }),
        ),
        Piece::Bytes(b"data: [DONE]\n\n".to_vec()),
    ]
}

/// A whole streamed chat-completions answer of text.
pub fn chat_text(text: &str) -> Reply {
    let mut pieces = vec![delta(&json!({ "role": "assistant", "content": null }))];
    pieces.extend(
        text.split_inclusive(' ')
            .map(|word| delta(&json!({ "content": word }))),
    );
    pieces.extend(finish("stop"));
    Reply::Stream { pieces, cut: false }
}

/// A whole streamed chat-completions answer that calls functions `(id, name, arguments)`.
pub fn chat_calls(calls: &[(&str, &str, Value)]) -> Reply {
    let mut pieces = vec![delta(&json!({ "role": "assistant", "content": null }))];
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        pieces.push(delta(&json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] })));
        pieces.push(delta(&json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments.to_string() } }] })));
    }
    pieces.extend(finish("tool_calls"));
    Reply::Stream { pieces, cut: false }
}
