//! The scripted server over streamable HTTP: one thread a connection, one message a POST, an answer as JSON or, when
//! there is more than one thing to say, as a stream of events. `WIRES` is what else can go wrong on the way.

use std::io::{BufRead as _, BufReader, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Out, Server, append};

/// Ways to misbehave below the protocol. Those that begin with `call-` and `sse-` are about calls and reads only.
pub const WIRES: &[(&str, &str)] = &[
    ("plain", "answers as JSON, with a session"),
    ("stateless", "gives no session"),
    (
        "stream",
        "every answer is a stream, with comments and odd events",
    ),
    ("401", "401 without a challenge"),
    ("401-challenge", "401 with WWW-Authenticate"),
    ("403", "403 without a challenge"),
    ("redirect-302", "302 to the same origin"),
    ("redirect-307", "307 to the same origin, which answers"),
    ("redirect-away", "307 to another origin, which answers"),
    ("html", "200 with a login page"),
    ("500", "500"),
    ("429", "429 with Retry-After"),
    ("404", "404 to everything"),
    ("hang", "never answers"),
    ("call-401", "401 without a challenge"),
    ("call-401-challenge", "401 with WWW-Authenticate"),
    ("call-403-challenge", "403 with WWW-Authenticate"),
    ("call-500", "500"),
    ("call-429", "429 with Retry-After"),
    ("call-400-error", "400 with a JSON-RPC error"),
    ("call-400-idless", "400 with a JSON-RPC error without id"),
    ("call-202", "202 and no answer"),
    ("call-badjson", "200 with broken JSON"),
    ("call-batch", "an array of one answer"),
    ("call-drop", "closes the connection"),
    (
        "call-cut",
        "closes the connection in the middle of the answer",
    ),
    ("sse-bad", "a stream of broken JSON"),
    ("sse-early", "a stream that ends at once"),
    (
        "sse-endless",
        "a stream that ends and is resumed in vain, retry 0",
    ),
    (
        "sse-retry-huge",
        "a stream that asks to be resumed in a day",
    ),
    (
        "sse-resumed",
        "a stream that breaks off and is resumed with the answer",
    ),
    ("expire", "forgets the session at the first call"),
    ("expire-always", "forgets the session at every call"),
];

/// A request as it came.
struct Asked {
    verb: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

struct Site {
    server: Server,
    wire: String,
    /// Where this very listener is, and the other one.
    here: SocketAddr,
    elsewhere: SocketAddr,
    sessions: AtomicUsize,
    calls: AtomicUsize,
    /// The answer that a broken stream still owes.
    owed: Mutex<Option<String>>,
}

/// Serves until stdin ends.
pub fn serve(server: &Server, wire: &str) {
    assert!(
        WIRES.iter().any(|(known, _)| *known == wire),
        "no wire `{wire}`; see `fake_mcp --list`"
    );
    append("FAKE_PIDS", &std::process::id().to_string());
    if let Some(code) = server.scenario.quits {
        std::process::exit(code);
    }
    let (listener, other) = (listener(), listener());
    let (here, elsewhere) = (listener.local_addr().unwrap(), other.local_addr().unwrap());
    for (listener, here, elsewhere) in [(listener, here, elsewhere), (other, elsewhere, here)] {
        let site = Arc::new(Site {
            server: server.clone(),
            wire: wire.to_owned(),
            here,
            elsewhere,
            sessions: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            owed: Mutex::default(),
        });
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let site = Arc::clone(&site);
                std::thread::spawn(move || {
                    let _ = site.connection(stream);
                });
            }
        });
    }
    println!("http://{here}/mcp");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

impl Site {
    /// Requests on one connection until the client or a stream ends it.
    fn connection(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut writer = stream;
        while let Some(asked) = read_request(&mut reader)? {
            append(
                "FAKE_HTTP_LOG",
                &json!({
                    "at": self.here.to_string(),
                    "verb": asked.verb,
                    "path": asked.path,
                    "headers": asked.headers.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
                    "method": serde_json::from_str::<Value>(&asked.body).unwrap_or_default()["method"],
                })
                .to_string(),
            );
            match asked.verb.as_str() {
                "POST" => {
                    // What is sent elsewhere comes again.
                    if !(self.wire.starts_with("redirect-") && asked.path == "/mcp") {
                        append("FAKE_LOG", &asked.body);
                    }
                    if !self.post(&asked, &mut writer)? {
                        return Ok(());
                    }
                }
                "GET" => {
                    if !self.get(&asked, &mut writer)? {
                        return Ok(());
                    }
                }
                _ => full(&mut writer, 200, &[], "")?,
            }
        }
        Ok(())
    }

    /// Resumes a stream, when this wire has any. Whether the connection goes on.
    fn get(&self, asked: &Asked, writer: &mut TcpStream) -> std::io::Result<bool> {
        if asked.header("last-event-id").is_some() {
            if self.wire == "sse-endless" {
                begin_stream(writer)?;
                writer.write_all(b"id: z\nretry: 0\ndata: \n\n")?;
                return Ok(false);
            }
            if let Some(answer) = self.owed.lock().unwrap().take() {
                begin_stream(writer)?;
                write!(writer, "id: c\ndata: {answer}\n\n")?;
                return Ok(false);
            }
        }
        full(writer, 405, &[], "")?;
        Ok(true)
    }

    /// Answers a message. Whether the connection goes on.
    fn post(&self, asked: &Asked, writer: &mut TcpStream) -> std::io::Result<bool> {
        let message: Value = serde_json::from_str(&asked.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default();
        let about = matches!(method, "tools/call" | "resources/read");
        if let Some(goes_on) = self.whole_wire(asked, writer)? {
            return Ok(goes_on);
        }
        if about && let Some(goes_on) = self.call_wire(&message, writer)? {
            return Ok(goes_on);
        }
        let (lines, answers) = channel();
        let server = self.server.to(Out::Response(lines));
        let id = message["id"].clone();
        let taken = message.clone();
        std::thread::spawn(move || server.take(&taken));
        if id.is_null() {
            full(writer, 202, &[], "")?;
            return Ok(true);
        }
        let mut headers = Vec::new();
        if method == "initialize" && self.wire != "stateless" {
            let session = self.sessions.fetch_add(1, Ordering::SeqCst) + 1;
            headers.push(("mcp-session-id", format!("session-{session}")));
        }
        self.answer(&answers, about, &headers, writer)
    }

    /// What the server says, as JSON when that is one message, else as a stream.
    fn answer(
        &self,
        answers: &Receiver<String>,
        about: bool,
        headers: &[(&str, String)],
        writer: &mut TcpStream,
    ) -> std::io::Result<bool> {
        let Some(first) = next(answers, writer) else {
            return Ok(false);
        };
        if about && self.wire == "sse-resumed" {
            *self.owed.lock().unwrap() = Some(first);
            begin_stream(writer)?;
            writer.write_all(b"id: a\nretry: 0\ndata: \n\n")?;
            return Ok(false);
        }
        if about && self.wire == "call-cut" {
            let half = &first[..first.len() / 2];
            let length = first.len();
            write!(
                writer,
                "HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{half}"
            )?;
            return Ok(false);
        }
        // Whatever comes before the answer makes it a stream.
        let is_answer = !first.starts_with(r#"{"jsonrpc":"2.0","method":"#);
        if is_answer && self.wire != "stream" {
            let first = if about && self.wire == "call-batch" {
                format!("[{first}]")
            } else {
                first
            };
            let mut all = vec![("content-type", "application/json".to_owned())];
            all.extend(headers.iter().cloned());
            full(writer, 200, &all, &first)?;
            return Ok(true);
        }
        begin_stream_with(writer, headers)?;
        writer.write_all(b": a comment\r\n\r\nevent: ping\ndata: x\n\n")?;
        let mut line = Some(first);
        while let Some(data) = line {
            write!(writer, "event: message\ndata: {data}\n\n")?;
            writer.flush()?;
            line = next(answers, writer);
        }
        Ok(false)
    }

    /// Wires that spoil every message.
    fn whole_wire(&self, asked: &Asked, writer: &mut TcpStream) -> std::io::Result<Option<bool>> {
        let text = |kind: &str| vec![("content-type", kind.to_owned())];
        let location = |to: String| vec![("location", to)];
        match self.wire.as_str() {
            "401" => full(writer, 401, &[], r#"{"error":"unauthorized"}"#)?,
            "401-challenge" => full(writer, 401, &challenge("invalid_token"), "")?,
            "403" => full(writer, 403, &[], r#"{"error":"forbidden"}"#)?,
            "redirect-302" if asked.path == "/mcp" => {
                full(writer, 302, &location("/other".into()), "")?;
            }
            "redirect-307" if asked.path == "/mcp" => {
                full(writer, 307, &location("/moved".into()), "")?;
            }
            // The other listener serves the same.
            "redirect-away" if asked.path == "/mcp" => {
                let away = format!("http://{}/moved", self.elsewhere);
                full(writer, 307, &location(away), "")?;
            }
            "html" => full(writer, 200, &text("text/html"), "<html>login</html>")?,
            "500" => full(writer, 500, &text("text/plain"), "oops")?,
            "429" => full(writer, 429, &[("retry-after", "7".into())], "slow")?,
            "404" => full(writer, 404, &text("text/plain"), "not found")?,
            "hang" => return gone(writer).map(|()| Some(false)),
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// Wires that spoil calls and reads.
    fn call_wire(&self, message: &Value, writer: &mut TcpStream) -> std::io::Result<Option<bool>> {
        let calls = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let id = &message["id"];
        let json = [("content-type", "application/json".to_owned())];
        match self.wire.as_str() {
            "call-401" => full(writer, 401, &[], "")?,
            "call-401-challenge" => full(writer, 401, &challenge("invalid_token"), "")?,
            "call-403-challenge" => full(writer, 403, &challenge("insufficient_scope"), "")?,
            "call-500" => full(writer, 500, &[], "oops")?,
            "call-429" => full(writer, 429, &[("retry-after", "7".into())], "slow")?,
            "call-400-error" => {
                let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32602, "message": "bad arguments" } });
                full(writer, 400, &json, &error.to_string())?;
            }
            "call-400-idless" => {
                let error = json!({ "jsonrpc": "2.0", "error": { "code": -32600, "message": "bad request" } });
                full(writer, 400, &json, &error.to_string())?;
            }
            "call-202" => full(writer, 202, &[], "")?,
            "call-badjson" => full(writer, 200, &json, "{not json")?,
            "call-drop" => return Ok(Some(false)),
            "expire" if calls == 1 => self.forgotten(writer)?,
            "expire-always" => self.forgotten(writer)?,
            "sse-bad" => return stream(writer, "data: {not json\n\n"),
            "sse-early" => return stream(writer, ""),
            "sse-endless" => return stream(writer, "id: a\nretry: 0\ndata: \n\n"),
            "sse-retry-huge" => return stream(writer, "id: a\nretry: 86400000\ndata: \n\n"),
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    fn forgotten(&self, writer: &mut TcpStream) -> std::io::Result<()> {
        let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": "Session not found" } });
        let json = [("content-type", "application/json".to_owned())];
        full(writer, 404, &json, &error.to_string())
    }
}

fn challenge(error: &str) -> Vec<(&'static str, String)> {
    let text = format!("Bearer resource_metadata=\"http://127.0.0.1/x\", error=\"{error}\"");
    vec![("www-authenticate", text)]
}

/// A whole stream with `text`.
fn stream(writer: &mut TcpStream, text: &str) -> std::io::Result<Option<bool>> {
    begin_stream(writer)?;
    writer.write_all(text.as_bytes())?;
    Ok(Some(false))
}

/// The next thing the server says; `None` when it says no more or nobody listens.
fn next(answers: &Receiver<String>, client: &TcpStream) -> Option<String> {
    loop {
        match answers.recv_timeout(Duration::from_millis(20)) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) if is_there(client) => {}
            Err(_) => return None,
        }
    }
}

fn is_there(client: &TcpStream) -> bool {
    let mut byte = [0];
    let _ = client.set_nonblocking(true);
    let peeked = client.peek(&mut byte);
    let _ = client.set_nonblocking(false);
    !matches!(peeked, Ok(0))
}

/// Waits until the client goes away.
fn gone(client: &TcpStream) -> std::io::Result<()> {
    while is_there(client) {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn full(
    writer: &mut TcpStream,
    status: u16,
    headers: &[(&str, String)],
    body: &str,
) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes())?;
    writer.write_all(body.as_bytes())?;
    writer.flush()
}

fn begin_stream(writer: &mut TcpStream) -> std::io::Result<()> {
    begin_stream_with(writer, &[])
}

/// A stream ends with its connection.
fn begin_stream_with(writer: &mut TcpStream, headers: &[(&str, String)]) -> std::io::Result<()> {
    let mut head =
        "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n".to_owned();
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    writer.write_all(head.as_bytes())?;
    writer.flush()
}

fn read_request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ').map(str::to_owned);
    let (verb, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().unwrap_or(0));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(Asked {
        verb,
        path,
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }))
}
