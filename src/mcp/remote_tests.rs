//! Remote servers, scripted: what is sent, what is made of answers, what happens when sessions and streams end.
#![allow(
    clippy::needless_pass_by_value,
    clippy::format_push_string,
    reason = "scripts read better that way"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Map, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::mcp::test_support::{call, connect_to, context, eventually, server_name};
use crate::mcp::{
    ConnectedServer, ListKind, McpError, Origin, ProtocolChoice, ServerSpec, TransportSpec,
};

/// A request as it came.
#[derive(Debug, Clone)]
struct Asked {
    verb: String,
    headers: HashMap<String, String>,
    body: Value,
}

impl Asked {
    fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }
}

/// What is answered: status, headers and body, or nothing for ever.
enum Reply {
    Full(u16, Vec<(&'static str, String)>, String),
    Silence,
}

fn reply(status: u16, content_type: &str, body: impl ToString) -> Reply {
    let headers = vec![("content-type", content_type.to_owned())];
    Reply::Full(status, headers, body.to_string())
}

fn json_reply(body: Value) -> Reply {
    reply(200, "application/json", body)
}

fn events(text: impl ToString) -> Reply {
    reply(200, "text/event-stream", text)
}

fn result(asked: &Asked, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result })
}

fn text_result(asked: &Asked, text: &str) -> Value {
    result(
        asked,
        json!({ "content": [{ "type": "text", "text": text }] }),
    )
}

/// The polite answers; scripts replace some of them.
fn polite(asked: &Asked) -> Reply {
    match (asked.verb.as_str(), asked.method()) {
        ("POST", "initialize") => {
            let handshake = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "web", "version": "2" },
            });
            let headers = vec![
                ("content-type", "application/json".to_owned()),
                ("mcp-session-id", "session-1".to_owned()),
            ];
            Reply::Full(200, headers, result(asked, handshake).to_string())
        }
        ("POST", _) if asked.body["id"].is_null() => Reply::Full(202, Vec::new(), String::new()),
        ("POST", "tools/call") => json_reply(text_result(asked, "ok")),
        ("POST", "tools/list") => json_reply(result(asked, json!({ "tools": [] }))),
        ("DELETE", _) => Reply::Full(200, Vec::new(), String::new()),
        _ => Reply::Full(405, Vec::new(), String::new()),
    }
}

type Log = Arc<Mutex<Vec<Asked>>>;

/// Starts a server that answers with `script`; returns its address and what it was asked.
async fn serve(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let log: Log = Arc::default();
    let (seen, script) = (Arc::clone(&log), Arc::new(script));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            tokio::spawn(async move {
                let _ = exchange(stream, &seen, &*script).await;
            });
        }
    });
    (url, log)
}

async fn exchange(
    mut stream: TcpStream,
    log: &Log,
    script: &(dyn Fn(&Asked) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    let mut line = String::new();
    read.read_line(&mut line).await?;
    let verb = line.split(' ').next().unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        read.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    read.read_exact(&mut body).await?;
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let asked = Asked {
        verb,
        headers,
        body,
    };
    let reply = script(&asked);
    log.lock().push(asked);
    match reply {
        Reply::Silence => std::future::pending().await,
        Reply::Full(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
            write.write_all(head.as_bytes()).await?;
            write.flush().await
        }
    }
}

fn spec(url: &str) -> ServerSpec {
    ServerSpec {
        name: server_name("web"),
        transport: TransportSpec::Http {
            url: url.to_owned(),
            headers: [("Authorization".to_owned(), "Bearer s3cret".to_owned())].into(),
        },
        disabled: false,
        description: None,
        timeout: None,
        startup_timeout: crate::mcp::test_support::PATIENCE,
        protocol: ProtocolChoice::Auto,
        confirm: None,
        origin: Origin::User,
        file: None,
        scrub_env: Vec::new(),
    }
}

async fn connected(
    script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> (Arc<ConnectedServer>, Log) {
    let (url, log) = serve(script).await;
    (connect_to(&spec(&url)).await.unwrap(), log)
}

async fn refused(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> McpError {
    let (url, _) = serve(script).await;
    connect_to(&spec(&url)).await.unwrap_err()
}

/// A script that answers calls with `answer` and everything else politely.
fn calls(
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> impl Fn(&Asked) -> Reply + Send + Sync + 'static {
    move |asked| match asked.method() {
        "tools/call" => answer(asked),
        _ => polite(asked),
    }
}

#[tokio::test]
async fn headers_session_and_revision_go_with_every_message() {
    let (server, log) = connected(polite).await;
    assert_eq!(server.protocol_version().as_deref(), Some("2025-06-18"));
    let answer = call(&server, "t", json!({})).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "ok");
    server.close().await;
    eventually("the session is ended", || {
        log.lock().iter().any(|asked| asked.verb == "DELETE")
    })
    .await;
    let log = log.lock();
    let first = &log[0];
    assert_eq!(first.method(), "initialize");
    assert_eq!(first.body["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(first.headers["authorization"], "Bearer s3cret");
    assert_eq!(
        first.headers["accept"],
        "application/json, text/event-stream"
    );
    assert_eq!(first.headers["content-type"], "application/json");
    assert!(first.headers["user-agent"].starts_with("coyote/"));
    assert!(!first.headers.contains_key("mcp-session-id"));
    for asked in log.iter().skip(1) {
        assert_eq!(asked.headers["mcp-session-id"], "session-1", "{asked:?}");
        assert_eq!(
            asked.headers["mcp-protocol-version"], "2025-06-18",
            "{asked:?}"
        );
        assert_eq!(asked.headers["authorization"], "Bearer s3cret");
    }
}

#[tokio::test]
async fn answers_come_as_streams_too() {
    let (server, _) = connected(calls(|asked| {
        let answer = text_result(asked, "streamed");
        events(format!(
            ": hello\r\n\r\nevent: message\r\ndata: {{\"method\":\"notifications/tools/list_changed\"}}\r\n\r\n\
             data: {answer}\r\n\r\n"
        ))
    }))
    .await;
    let before = server.generation(ListKind::Tools);
    let answer = call(&server, "t", json!({})).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "streamed");
    assert_eq!(server.generation(ListKind::Tools), before + 1);
}

/// `M-18`: told by the status, with or without a challenge, at the handshake and later.
#[tokio::test]
async fn refused_credentials_are_told_by_their_status() {
    let challenge = || {
        let headers = vec![(
            "www-authenticate",
            "Bearer error=\"invalid_token\"".to_owned(),
        )];
        Reply::Full(401, headers, "{}".into())
    };
    let error = refused(move |_| challenge()).await;
    assert_eq!(
        error,
        McpError::AuthRequired {
            server: server_name("web"),
            reason: "HTTP 401 (Bearer error=\"invalid_token\")".into(),
            file: None,
        }
    );
    let hints = crate::utils::Error::from(error).hints().join(" ");
    assert!(
        hints.contains("`headers.Authorization` of `web`"),
        "{hints}"
    );
    let error = refused(|_| reply(403, "application/json", "{\"error\":\"no\"}")).await;
    assert!(matches!(error, McpError::AuthRequired { .. }), "{error:?}");
    let (server, _) = connected(calls(|_| Reply::Full(401, Vec::new(), String::new()))).await;
    let error = call(&server, "t", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::AuthRequired { .. }), "{error:?}");
    assert!(!error.to_string().contains("s3cret"));
}

#[tokio::test]
async fn answers_that_are_none_fail_the_call_and_say_why() {
    type Script = fn(&Asked) -> Reply;
    let scripts: [(Script, &str); 10] = [
        (
            |_| reply(200, "text/html", "<html>login</html>"),
            "`text/html`",
        ),
        (|_| reply(500, "text/plain", "oops"), "HTTP 500"),
        (
            |_| Reply::Full(429, vec![("retry-after", "7".into())], String::new()),
            "wait 7 s",
        ),
        (
            |_| {
                Reply::Full(
                    302,
                    vec![("location", "http://x.invalid/".into())],
                    String::new(),
                )
            },
            "HTTP 302",
        ),
        (|_| reply(404, "text/plain", "gone"), "expired"),
        (|_| Reply::Full(202, Vec::new(), String::new()), "no answer"),
        (
            |_| reply(200, "application/json", "{not json"),
            "no answer to the request",
        ),
        (
            |_| json_reply(json!({ "id": 999, "result": {} })),
            "no answer to the request",
        ),
        (|_| events("data: {}\n\n"), "stream ended"),
        (
            |asked| json_reply(json!({ "id": asked.body["id"] })),
            "neither `result` nor `error`",
        ),
    ];
    for (script, expected) in scripts {
        let (server, _) = connected(calls(script)).await;
        let error = call(&server, "t", json!({})).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[tokio::test]
async fn json_errors_keep_their_code_whatever_the_status() {
    for id in [json!("own"), Value::Null] {
        let (server, _) = connected(calls(move |asked| {
            let id = if id.is_null() {
                Value::Null
            } else {
                asked.body["id"].clone()
            };
            let error = json!({ "id": id, "error": { "code": -32602, "message": "bad" } });
            reply(400, "application/json", error)
        }))
        .await;
        let error = call(&server, "t", json!({})).await.unwrap_err();
        assert!(
            matches!(error, McpError::Refused { code: -32602, .. }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn batches_and_answers_without_jsonrpc_are_read() {
    let (server, _) = connected(calls(|asked| {
        json_reply(json!([text_result(asked, "batch")]))
    }))
    .await;
    let answer = call(&server, "t", json!({})).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "batch");
}

/// `M-16`: a session that has expired is begun anew, once, and the request is made again.
#[tokio::test]
async fn an_expired_session_is_begun_anew_once() {
    let asked_calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked_calls);
    let (server, log) = connected(calls(move |asked| {
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            reply(
                404,
                "application/json",
                "{\"error\":{\"code\":-32001,\"message\":\"gone\"}}",
            )
        } else {
            json_reply(text_result(asked, "again"))
        }
    }))
    .await;
    let answer = call(&server, "t", json!({ "n": 1 })).await.unwrap();
    assert_eq!(answer["content"][0]["text"], "again");
    let begun = log
        .lock()
        .iter()
        .filter(|it| it.method() == "initialize")
        .count();
    assert_eq!((begun, asked_calls.load(Ordering::SeqCst)), (2, 2));
    assert!(server.is_running());
}

/// `P-41`: neither a session nor credentials are renewed for what is no use of a server.
#[tokio::test]
async fn nothing_is_renewed_for_a_request_that_is_no_use() {
    for status in [404, 401] {
        let (server, log) = connected(calls(move |_| reply(status, "text/plain", ""))).await;
        let before = log.lock().len();
        let params = Map::from_iter([("name".to_owned(), json!("t"))]);
        let cx = context().without_revival();
        let asked = server.request("tools/call", params, &cx).await;
        asked.unwrap_err();
        let methods: Vec<String> = log
            .lock()
            .iter()
            .skip(before)
            .filter(|it| it.verb == "POST" && !it.method().starts_with("notifications/"))
            .map(|it| it.method().to_owned())
            .collect();
        assert_eq!(methods, ["tools/call"], "{status}");
    }
}

#[tokio::test]
async fn a_session_that_expires_again_at_once_is_an_error() {
    let (server, log) = connected(calls(|_| reply(404, "text/plain", ""))).await;
    let error = call(&server, "t", json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("its session has expired"),
        "{error}"
    );
    let asked = log
        .lock()
        .iter()
        .filter(|it| it.method() == "tools/call")
        .count();
    assert_eq!(asked, 2);
}

/// A stream with event ids is resumed after the last of them.
#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed() {
    let id = Arc::new(Mutex::new(Value::Null));
    let (server, log) =
        connected(
            move |asked: &Asked| match (asked.verb.as_str(), asked.method()) {
                ("POST", "tools/call") => {
                    *id.lock() = asked.body["id"].clone();
                    events("retry: 0\nid: e1\ndata: \n\n")
                }
                ("GET", _) if asked.headers.contains_key("last-event-id") => {
                    let answer = json!({ "id": *id.lock(), "result": { "content": [] } });
                    events(format!("data: {answer}\n\n"))
                }
                _ => polite(asked),
            },
        )
        .await;
    call(&server, "t", json!({})).await.unwrap();
    let log = log.lock();
    let resumed = log
        .iter()
        .find(|it| it.headers.contains_key("last-event-id"));
    assert_eq!(resumed.unwrap().headers["last-event-id"], "e1");
}

#[tokio::test]
async fn a_silent_server_ends_in_the_timeout_and_is_told() {
    let (url, log) = serve(calls(|_| Reply::Silence)).await;
    let mut spec = spec(&url);
    spec.timeout = Some(Duration::from_secs(1));
    let server = connect_to(&spec).await.unwrap();
    let error = call(&server, "t", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Timeout { .. }), "{error:?}");
    eventually("the server is told", || {
        let log = log.lock();
        let asked = log.iter().find(|it| it.method() == "tools/call");
        let told = log
            .iter()
            .find(|it| it.method() == "notifications/cancelled");
        matches!((asked, told), (Some(asked), Some(told))
            if told.body["params"]["requestId"] == asked.body["id"])
    })
    .await;
    server.list(ListKind::Tools, &context()).await.unwrap();
}

/// What a server says unasked arrives by the listening stream; what it asks is refused.
#[tokio::test]
async fn the_listening_stream_brings_changes_and_requests() {
    let (server, log) = connected(|asked: &Asked| match asked.verb.as_str() {
        "GET" => events(
            "data: {\"method\":\"notifications/tools/list_changed\"}\n\n\
             data: {\"id\":\"q\",\"method\":\"sampling/createMessage\"}\n\n",
        ),
        _ => polite(asked),
    })
    .await;
    eventually("the change is noticed", || {
        server.generation(ListKind::Tools) > 0
    })
    .await;
    eventually("the request is refused", || {
        log.lock()
            .iter()
            .any(|it| it.body["id"] == "q" && it.body["error"]["code"] == -32601)
    })
    .await;
}

/// `M-14`: revisions without a handshake name themselves in every message.
#[tokio::test]
async fn discovery_sends_the_headers_of_its_revision() {
    let (server, log) = connected(|asked: &Asked| match asked.method() {
        "initialize" => json_reply(json!({
            "id": asked.body["id"],
            "error": { "code": -32601, "message": "Method not found" },
        })),
        "server/discover" => json_reply(result(
            asked,
            json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
            }),
        )),
        _ => polite(asked),
    })
    .await;
    assert_eq!(server.protocol_version().as_deref(), Some("2026-07-28"));
    let params = Map::from_iter([("name".to_owned(), json!("naïve"))]);
    server
        .request("tools/call", params, &context())
        .await
        .unwrap();
    let log = log.lock();
    let call = log.iter().find(|it| it.method() == "tools/call").unwrap();
    assert_eq!(call.headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(call.headers["mcp-method"], "tools/call");
    assert_eq!(call.headers["mcp-name"], "=?base64?bmHDr3Zl?=");
    assert!(!call.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn a_server_that_is_not_there_says_so_without_the_url() {
    let error = connect_to(&spec("http://127.0.0.1:1/mcp?key=s3cret"))
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, McpError::Unavailable { .. }), "{error:?}");
    assert!(!text.contains("s3cret") && !text.contains("::"), "{text}");
}
