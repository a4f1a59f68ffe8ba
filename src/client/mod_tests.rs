//! The whole client against a server that says exactly what a test wants it to say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::*;
use crate::chat::{Event, Message, StopReason};

/// One answer, as bytes.
#[derive(Clone)]
struct Script {
    head: String,
    body: Vec<u8>,
    /// Sent again and again until the client leaves.
    forever: Option<Vec<u8>>,
    /// Keep the connection open after the body.
    hang: bool,
}

fn script(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Script {
    Script {
        head: format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n"),
        body: body.into(),
        forever: None,
        hang: false,
    }
}

fn stream(body: impl Into<Vec<u8>>) -> Script {
    script("200 OK", "content-type: text/event-stream\r\n", body)
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(String, Value)>>,
    /// Bytes that were sent of what never ends.
    endless: AtomicUsize,
    left: Notify,
}

struct Server {
    url: String,
    seen: Arc<Seen>,
}

impl Server {
    /// Answers the first request with the first script, and so on; the last one serves the rest.
    async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let shared = seen.clone();
        tokio::spawn(async move {
            let mut scripts = VecDeque::from(scripts);
            while let Ok((socket, _)) = listener.accept().await {
                let next = match scripts.len() {
                    1 => scripts[0].clone(),
                    _ => scripts.pop_front().unwrap(),
                };
                tokio::spawn(serve(socket, next, shared.clone()));
            }
        });
        Self { url, seen }
    }

    fn client(&self, kind: ProviderKind) -> Client {
        let mut config = ProviderConfig::new("test", kind);
        config.api_base = Some(self.url.clone());
        config.api_key = Some(Secret::new("sk-secret"));
        config.proxy = Some("-".to_owned());
        Self::with(&config)
    }

    fn with(config: &ProviderConfig) -> Client {
        let mut client = Client::new(config, &ModelFacts::named("m")).unwrap();
        client.retry.base = Duration::from_millis(1);
        client
    }

    fn requests(&self) -> usize {
        self.seen.requests.lock().len()
    }
}

async fn serve(mut socket: TcpStream, script: Script, seen: Arc<Seen>) {
    let mut request = Vec::new();
    let mut buffer = vec![0; 65536];
    let (head, body) = loop {
        let read = socket.read(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            break (head.to_owned(), body);
        }
    };
    seen.requests.lock().push((head, body));
    let _ = socket.write_all(script.head.as_bytes()).await;
    let _ = socket.write_all(&script.body).await;
    if let Some(chunk) = script.forever {
        while socket.write_all(&chunk).await.is_ok() {
            seen.endless.fetch_add(chunk.len(), Ordering::Relaxed);
        }
        seen.left.notify_one();
    } else if script.hang {
        while socket.read(&mut buffer).await.unwrap_or(0) > 0 {}
        seen.left.notify_one();
    }
}

#[derive(Default)]
struct Sink(Mutex<Vec<Notice>>);

impl NoticeSink for Sink {
    fn notice(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

fn request() -> Request {
    Request {
        messages: vec![Message::user("hi")],
        stream: true,
        ..Request::default()
    }
}

async fn ask(client: &Client) -> (Vec<Event>, Option<ClientError>) {
    let mut events = Vec::new();
    let mut stream = match client
        .send(&request(), &AbortToken::new(), &Sink::default())
        .await
    {
        Ok(stream) => stream,
        Err(error) => return (events, Some(error)),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

fn text_of(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn a_streamed_answer_arrives_and_the_request_is_what_the_preview_says() {
    let server = Server::start(vec![stream(HELLO)]).await;
    let client = server.client(ProviderKind::OpenAiCompatible);
    let (events, error) = ask(&client).await;
    assert_eq!((text_of(&events).as_str(), error), ("hello", None));
    let (head, body) = server.seen.requests.lock()[0].clone();
    assert_eq!(body, client.preview(&request()));
    let head = head.to_lowercase();
    assert!(
        head.starts_with("post /v1/chat/completions http/1.1"),
        "{head}"
    );
    assert!(head.contains("authorization: bearer sk-secret"), "{head}");
    assert!(
        head.contains(concat!("user-agent: coyote/", env!("CARGO_PKG_VERSION"))),
        "{head}"
    );
}

#[tokio::test]
async fn every_wire_reaches_its_endpoint_with_its_key() {
    let answers = [
        (
            ProviderKind::Claude,
            "post /v1/messages ",
            "x-api-key: sk-secret",
            r#"{"type":"message","content":[{"type":"text","text":"hello"}]}"#,
        ),
        (
            ProviderKind::Gemini,
            "post /v1beta/models/m:streamgeneratecontent?alt=sse ",
            "x-goog-api-key: sk-secret",
            r#"{"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}]}"#,
        ),
        (
            ProviderKind::Ollama,
            "post /v1/chat/completions ",
            "authorization: bearer sk-secret",
            r#"{"choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}"#,
        ),
    ];
    for (kind, line, key, body) in answers {
        let server = Server::start(vec![script(
            "200 OK",
            "content-type: application/json\r\n",
            body,
        )])
        .await;
        let (events, error) = ask(&server.client(kind)).await;
        assert_eq!(
            (text_of(&events).as_str(), error),
            ("hello", None),
            "{kind}"
        );
        let head = server.seen.requests.lock()[0].0.to_lowercase();
        assert!(head.starts_with(line) && head.contains(key), "{head}");
        assert_eq!(head.matches("sk-secret").count(), 1, "{head}");
    }
}

#[tokio::test]
async fn too_many_requests_are_retried_after_what_the_provider_asks() {
    let limited = script(
        "429 Too Many Requests",
        "retry-after-ms: 5\r\ncontent-length: 2\r\n",
        "{}",
    );
    let overloaded = script("529 Overloaded", "content-length: 2\r\n", "{}");
    let server = Server::start(vec![limited, overloaded, stream(HELLO)]).await;
    let client = server.client(ProviderKind::OpenAiCompatible);
    let sink = Sink::default();
    let mut answer = client
        .send(&request(), &AbortToken::new(), &sink)
        .await
        .unwrap();
    assert_eq!(
        answer.next().await,
        Some(Ok(Event::Text("hello".to_owned())))
    );
    assert_eq!(server.requests(), 3);
    let notices = sink.0.lock();
    let retries: Vec<_> = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Activity(Some(Activity::Retrying { attempt, after })) => {
                Some((*attempt, *after))
            }
            _ => None,
        })
        .collect();
    assert_eq!(retries[0], (2, Duration::from_millis(5)));
    assert_eq!(retries[1].0, 3);
}

#[tokio::test]
async fn retries_end_and_a_pause_that_is_too_long_is_the_persons() {
    let failing = script("503 Service Unavailable", "content-length: 0\r\n", "");
    let server = Server::start(vec![failing]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert!(
        matches!(error, Some(ClientError::Status { status: 503, .. })),
        "{error:?}"
    );
    assert_eq!(server.requests(), 4);

    let later = script(
        "429 Too Many Requests",
        "retry-after: 7200\r\ncontent-length: 0\r\n",
        "",
    );
    let server = Server::start(vec![later]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!(
        error.and_then(|error| error.retry_after()),
        Some(Duration::from_hours(2))
    );
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_refused_key_is_not_retried() {
    let refused = script(
        "401 Unauthorized",
        "content-length: 28\r\n",
        r#"{"error":{"message":"nope"}}"#,
    );
    let server = Server::start(vec![refused]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!(
        error.unwrap().to_string(),
        "`test` refused the API key (HTTP 401): nope"
    );
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn what_fails_before_anything_was_said_is_retried_and_later_failures_are_not() {
    let cut = stream("");
    let overloaded =
        stream("data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"x\"}}\n\n");
    let server = Server::start(vec![cut, overloaded, stream(HELLO)]).await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!((text_of(&events).as_str(), error), ("hello", None));
    assert_eq!(server.requests(), 3);

    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    for (end, expected) in [
        (
            "",
            "the answer of `test` was cut off: it ended before the provider ended it",
        ),
        (
            "data: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"boom\"}}\n\n",
            "`test` failed while answering: boom",
        ),
    ] {
        let server = Server::start(vec![stream(format!("{half}{end}")), stream(HELLO)]).await;
        let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
        let error = error.unwrap();
        assert_eq!(
            (text_of(&events).as_str(), error.to_string().as_str()),
            ("half", expected)
        );
        assert!(!error.is_retryable());
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_chunk_is_truncated() {
    let broken = script(
        "200 OK",
        "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n",
        "35\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n   \r\n20\r\ndata: {\"cho",
    );
    let server = Server::start(vec![broken]).await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!(text_of(&events), "half");
    assert!(
        matches!(
            error,
            Some(ClientError::Truncated {
                retryable: false,
                ..
            })
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_event_of_4_mb_arrives_whole() {
    let text = "x".repeat(4 << 20);
    let event = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    let server = Server::start(vec![stream(format!("data: {event}\n\n"))]).await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!((text_of(&events).len(), error), (4 << 20, None));
}

#[tokio::test]
async fn an_event_without_end_is_an_error_and_the_connection_is_dropped() {
    let endless = Script {
        forever: Some(vec![b'x'; 1 << 16]),
        ..stream("data: ")
    };
    let server = Server::start(vec![endless]).await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert!(events.is_empty());
    assert_eq!(
        error.unwrap().to_string(),
        "the answer of `test` is over a limit: one event is over 16 MiB"
    );
    server.seen.left.notified().await;
    assert!(server.seen.endless.load(Ordering::Relaxed) < 64 << 20);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn an_error_body_without_end_is_read_to_its_bound_only() {
    let endless = Script {
        forever: Some(vec![b'y'; 1 << 16]),
        ..script("400 Bad Request", "content-length: 209715200\r\n", "bad ")
    };
    let server = Server::start(vec![endless]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    let text = error.unwrap().to_string();
    assert!(
        text.starts_with("`test` answered HTTP 400: bad yyy") && text.len() < 1000,
        "{}",
        text.len()
    );
    server.seen.left.notified().await;
    // What the sockets of both sides hold is all that may be sent beyond the bound.
    assert!(server.seen.endless.load(Ordering::Relaxed) < 32 << 20);
}

#[tokio::test]
async fn cancelling_drops_the_connection_at_once() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let server = Server::start(vec![Script {
        hang: true,
        ..stream(half)
    }])
    .await;
    let client = server.client(ProviderKind::OpenAiCompatible);
    let abort = AbortToken::new();
    let mut answer = client
        .send(&request(), &abort, &Sink::default())
        .await
        .unwrap();
    assert_eq!(
        answer.next().await,
        Some(Ok(Event::Text("half".to_owned())))
    );
    abort.cancel();
    assert!(answer.next().await.unwrap().unwrap_err().is_aborted());
    server.seen.left.notified().await;
    assert_eq!(answer.next().await, None);
}

#[tokio::test]
async fn cancelling_also_works_before_the_answer_and_during_a_pause() {
    let silent = Script {
        hang: true,
        head: String::new(),
        ..stream("")
    };
    let server = Server::start(vec![silent]).await;
    let abort = AbortToken::new();
    let client = server.client(ProviderKind::OpenAiCompatible);
    let (request, sink) = (request(), Sink::default());
    let cancel = async {
        while server.requests() == 0 {
            tokio::task::yield_now().await;
        }
        abort.cancel();
    };
    let (answer, ()) = tokio::join!(client.send(&request, &abort, &sink), cancel);
    assert!(answer.unwrap_err().is_aborted());
    server.seen.left.notified().await;

    let later = script(
        "429 Too Many Requests",
        "retry-after: 50\r\ncontent-length: 0\r\n",
        "",
    );
    let server = Server::start(vec![later]).await;
    let abort = AbortToken::new();
    let client = server.client(ProviderKind::OpenAiCompatible);
    let cancel = async {
        while !sink
            .0
            .lock()
            .iter()
            .any(|n| matches!(n, Notice::Activity(Some(Activity::Retrying { .. }))))
        {
            tokio::task::yield_now().await;
        }
        abort.cancel();
    };
    let (answer, ()) = tokio::join!(client.send(&request, &abort, &sink), cancel);
    assert!(answer.unwrap_err().is_aborted());
}

#[tokio::test]
async fn silence_ends_at_the_read_timeout() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n";
    let server = Server::start(vec![Script {
        hang: true,
        ..stream(half)
    }])
    .await;
    let mut config = ProviderConfig::new("test", ProviderKind::OpenAiCompatible);
    config.api_base = Some(server.url.clone());
    config.proxy = Some("-".to_owned());
    config.read_timeout = Some(Duration::from_millis(30));
    let (events, error) = ask(&Server::with(&config)).await;
    assert_eq!(text_of(&events), "half");
    assert!(matches!(error, Some(ClientError::Idle { .. })), "{error:?}");
}

#[tokio::test]
async fn a_complete_answer_needs_no_end_of_the_connection() {
    let server = Server::start(vec![Script {
        hang: true,
        ..stream(HELLO)
    }])
    .await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!((text_of(&events).as_str(), error), ("hello", None));
    assert!(matches!(
        events.last(),
        Some(Event::End {
            stop: StopReason::Stop,
            ..
        })
    ));
    server.seen.left.notified().await;
}

#[tokio::test]
async fn a_web_page_is_no_answer() {
    let page = script(
        "200 OK",
        "content-type: text/html\r\n",
        "<html>sign in</html>",
    );
    let server = Server::start(vec![page]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert!(
        error
            .unwrap()
            .to_string()
            .ends_with("answered with a web page")
    );
}

#[tokio::test]
async fn a_redirect_to_somewhere_else_is_not_followed_with_the_key() {
    let other = Server::start(vec![stream(HELLO)]).await;
    let there = format!(
        "location: {}/v1/chat/completions\r\ncontent-length: 0\r\n",
        other.url
    );
    let server = Server::start(vec![script("307 Temporary Redirect", &there, "")]).await;
    let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert!(
        matches!(error, Some(ClientError::Status { status: 307, .. })),
        "{error:?}"
    );
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed() {
    let there = "location: /elsewhere\r\ncontent-length: 0\r\n";
    let moved = script("307 Temporary Redirect", there, "");
    let server = Server::start(vec![moved, stream(HELLO)]).await;
    let (events, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
    assert_eq!((text_of(&events).as_str(), error), ("hello", None));
    assert!(
        server.seen.requests.lock()[1]
            .0
            .starts_with("POST /elsewhere ")
    );
}

#[tokio::test]
async fn nobody_listening_is_said_once_without_a_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!(
        "http://u:pw@{}/v1?key=sk-secret",
        listener.local_addr().unwrap()
    );
    drop(listener);
    let mut config = ProviderConfig::new("test", ProviderKind::OpenAiCompatible);
    config.api_base = Some(url);
    config.api_key = Some(Secret::new("sk-secret"));
    config.proxy = Some("-".to_owned());
    let client = Client::new(&config, &ModelFacts::named("m")).unwrap();
    let (_, error) = ask(&client).await;
    let error = error.unwrap();
    assert!(!error.is_retryable());
    let shown = format!("{error} {error:?}");
    assert!(
        shown.contains("cannot reach `test` at `http://127.0.0.1:"),
        "{shown}"
    );
    assert!(
        !shown.contains("sk-secret") && !shown.contains("pw"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_provider_that_needs_a_key_is_not_asked_without_one() {
    let config = ProviderConfig::new("openai", ProviderKind::OpenAi);
    let client = Client::new(&config, &ModelFacts::named("m")).unwrap();
    let error = client
        .send(&request(), &AbortToken::new(), &Sink::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ClientError::NoKey { variables, .. } if variables == ["OPENAI_API_KEY"])
    );
}

fn patched(patch: Patch) -> Client {
    let mut config = ProviderConfig::new("test", ProviderKind::OpenAiCompatible);
    config.api_base = Some("http://127.0.0.1:1/v1".to_owned());
    config.api_key = Some(Secret::new("sk-secret"));
    config.patches = vec![patch];
    Client::new(&config, &ModelFacts::named("gpt-5")).unwrap()
}

#[test]
fn a_patch_is_merged_for_the_models_it_names() {
    let patch = |model: &str| Patch {
        model: model.to_owned(),
        url: Some("http://elsewhere/x?key=sk-secret".to_owned()),
        body: Some(
            json!({ "stream_options": null, "reasoning": { "effort": "low" }, "model": "other" }),
        ),
        ..Patch::default()
    };
    let body = patched(patch("gpt-.*")).preview(&request());
    assert_eq!(
        body,
        json!({
            "model": "other",
            "messages": [{ "role": "user", "content": "hi" }],
            "stream": true,
            "reasoning": { "effort": "low" },
        })
    );
    // The whole name must match.
    let body = patched(patch("gpt")).preview(&request());
    assert_eq!(body["model"], "gpt-5");
    let mut config = ProviderConfig::new("test", ProviderKind::Ollama);
    config.patches = vec![patch("(")];
    let error = Client::new(&config, &ModelFacts::named("m")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`patch` of client `test`: `(` is no regular expression"
    );
}

#[test]
fn a_command_to_copy_holds_no_secret() {
    let client = patched(Patch {
        model: ".*".to_owned(),
        url: Some("http://elsewhere/x?key=sk-secret".to_owned()),
        headers: std::collections::BTreeMap::from([(
            "x-token".to_owned(),
            Some("sk-secret".to_owned()),
        )]),
        ..Patch::default()
    });
    let mut asked = request();
    asked.messages = vec![Message::user("it's")];
    let command = client.preview_curl(&asked);
    assert!(!command.contains("sk-secret"), "{command}");
    assert_eq!(
        command,
        r#"curl -N 'http://elsewhere/x?key=…' \
  -H 'content-type: application/json' \
  -H 'accept: text/event-stream, application/json' \
  -H "authorization: Bearer $TEST_API_KEY" \
  -H 'x-token: …' \
  -d '{"model":"gpt-5","messages":[{"role":"user","content":"it'\''s"}],"stream":true,"stream_options":{"include_usage":true}}'"#
    );
}

#[test]
fn a_client_and_its_stream_can_move_between_threads() {
    fn movable<T: Send>() {}
    movable::<Client>();
    movable::<EventStream>();
    fn future_is_send(
        client: &Client,
        request: &Request,
        abort: &AbortToken,
        sink: &Sink,
    ) -> impl Send {
        client.send(request, abort, sink)
    }
    let _ = future_is_send;
}

#[tokio::test]
async fn a_configured_proxy_and_user_agent_are_used() {
    let proxy = Server::start(vec![stream(HELLO)]).await;
    let mut config = ProviderConfig::new("test", ProviderKind::OpenAiCompatible);
    config.api_base = Some("http://provider.invalid/v1".to_owned());
    config.proxy = Some(proxy.url.clone());
    config.user_agent = Some("mine/1".to_owned());
    let (events, error) = ask(&Server::with(&config)).await;
    assert_eq!((text_of(&events).as_str(), error), ("hello", None));
    let head = proxy.seen.requests.lock()[0].0.clone();
    assert!(
        head.starts_with("POST http://provider.invalid/v1/chat/completions "),
        "{head}"
    );
    assert!(head.contains("mine/1"), "{head}");
}

#[tokio::test]
async fn json_that_is_no_answer_is_shown_and_not_asked_for_again() {
    for body in [
        "{}",
        "null",
        "[]",
        "{\"choices\":[]}",
        "{\n \"ok\": true\n}",
    ] {
        let server = Server::start(vec![stream(body), stream(HELLO)]).await;
        let (_, error) = ask(&server.client(ProviderKind::OpenAiCompatible)).await;
        if body == "null" {
            // Not what JSON answers begin with: an empty stream.
            assert_eq!(error, None);
            continue;
        }
        let error = error.unwrap().to_string();
        assert!(
            error.contains("it is JSON without an answer: "),
            "{body}: {error}"
        );
        assert_eq!(server.requests(), 1, "{body}");
    }
}
