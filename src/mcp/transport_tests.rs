//! Lines, answers and ends: every request that waits gets exactly one answer.

use std::io::Cursor;

use proptest::prelude::*;
use tokio::io::AsyncReadExt as _;

use serde_json::{Value, json};

use super::*;
use crate::mcp::incoming::{Parsed, parse};
use crate::mcp::test_support::{PATIENCE, context, fake};
use crate::mcp::{ConnectedServer, ListKind, McpError};

async fn lines(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let mut lines = Lines::new(Cursor::new(bytes));
    let mut all = Vec::new();
    loop {
        match lines.next().await {
            Line::Message(line) => all.push(line),
            Line::TooLong => all.push(b"(too long)".to_vec()),
            Line::End => return all,
        }
    }
}

#[tokio::test]
async fn lines_are_cut_at_newlines_and_the_last_needs_none() {
    let cut = lines(b"one\n\ntwo\r\nthree".to_vec()).await;
    assert_eq!(cut, [&b"one"[..], b"", b"two\r", b"three"]);
    assert!(lines(Vec::new()).await.is_empty());
}

/// `M-14`: too long is said once, and what follows is read.
#[tokio::test]
async fn a_line_beyond_the_limit_is_skipped_to_its_end() {
    let mut bytes = vec![b'x'; MESSAGE_MAX + 10];
    bytes.extend_from_slice(b"\nnext\n");
    assert_eq!(lines(bytes).await, [&b"(too long)"[..], b"next"]);
    let mut bytes = vec![b'x'; MESSAGE_MAX];
    bytes.extend_from_slice(b"\n");
    assert_eq!(lines(bytes).await[0].len(), MESSAGE_MAX);
}

fn messages(line: &[u8]) -> Option<usize> {
    match parse(line) {
        Parsed::Messages(messages) => Some(messages.len()),
        Parsed::Noise(_) => None,
    }
}

#[test]
fn noise_is_told_from_messages() {
    assert_eq!(messages(b"{}"), Some(1));
    assert_eq!(messages("\u{feff}{\"a\":1}".as_bytes()), Some(1));
    assert_eq!(messages(b"[{},{},3]"), Some(2));
    assert_eq!(messages(b"{\"a\":\"\xff\"}\r"), Some(1));
    for noise in [
        &b"hello"[..],
        b"",
        b"42",
        b"\"x\"",
        b"{",
        b"\xff\xfe",
        b"null",
    ] {
        assert_eq!(messages(noise), None, "{noise:?}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(messages(deep.as_bytes()), None);
}

type Pipes = (
    tokio::io::ReadHalf<tokio::io::DuplexStream>,
    tokio::io::WriteHalf<tokio::io::DuplexStream>,
);

/// The pipes to a server that answers whatever comes with what the script has next, then hangs up.
fn pipes(answers: Vec<Vec<u8>>) -> Pipes {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (mut reads, mut writes) = tokio::io::split(theirs);
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        for answer in answers {
            match reads.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if writes.write_all(&answer).await.is_err() {
                return;
            }
        }
    });
    tokio::io::split(ours)
}

/// A server that answers whatever comes with what the script has next, then hangs up.
pub(in crate::mcp) fn scripted(answers: Vec<Vec<u8>>) -> std::sync::Arc<ConnectedServer> {
    let (input, output) = pipes(answers);
    let mut spec = fake("scripted", "full");
    spec.timeout = Some(PATIENCE);
    ConnectedServer::without_handshake(&spec, input, output)
}

#[tokio::test]
async fn the_end_of_the_stream_fails_what_waits() {
    let server = scripted(vec![b"{\"half\":".to_vec()]);
    let error = server.ping(&context()).await.unwrap_err();
    let McpError::Closed { reason, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(reason, "it closed its output");
    assert!(!server.is_running());
}

#[tokio::test]
async fn an_error_without_an_id_is_about_the_only_request() {
    let line = b"{\"error\":{\"code\":-32700,\"message\":\"what?\"}}\n".to_vec();
    let error = scripted(vec![line]).ping(&context()).await.unwrap_err();
    assert!(
        matches!(error, McpError::Refused { code: -32700, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn errors_of_any_shape_are_errors() {
    for (error, expected) in [
        ("7", "7"),
        ("\"no\"", "no"),
        ("{}", "no message"),
        ("{\"code\":1e99,\"message\":[1]}", "[1]"),
        ("{\"code\":-9999999999,\"message\":\"far\"}", "far"),
        ("{\"code\":-2147483648,\"message\":\"spoofed\"}", "spoofed"),
    ] {
        let line = format!("{{\"id\":0,\"error\":{error}}}\n").into_bytes();
        let failed = scripted(vec![line]).ping(&context()).await.unwrap_err();
        let McpError::Refused { message, .. } = failed else {
            panic!("{error}: {failed:?}");
        };
        assert!(message.contains(expected), "{error}: {message}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "(jsonrpc|2\\.0|id|0|1|result|error|method|ping|params|tools|nextCursor)"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let key = prop_oneof![
            Just("jsonrpc"),
            Just("id"),
            Just("result"),
            Just("error"),
            Just("method"),
            Just("params"),
            Just("tools"),
            Just("nextCursor"),
            Just("code"),
            Just("message"),
            Just("progressToken"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key.prop_map(str::to_owned), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `M-20`: whatever arrives, a request ends, nothing panics and the next answer counts.
    #[test]
    fn any_answer_ends_the_request(noise in proptest::collection::vec(any_json(), 0..4), result in any_json()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut answer = Vec::new();
            for noise in &noise {
                answer.extend_from_slice(noise.to_string().as_bytes());
                answer.push(b'\n');
            }
            answer.extend_from_slice(json!({ "id": 0, "result": result }).to_string().as_bytes());
            answer.push(b'\n');
            let server = scripted(vec![answer]);
            let listed = server.list(ListKind::Tools, &context()).await;
            drop(listed);
        });
    }

    /// `M-20`: whatever the handshake says, it is accepted or refused with a reason.
    #[test]
    fn any_handshake_connects_or_fails(result in any_json(), revision in "(2025-11-25|2026-07-28|x)", fields in any_json()) {
        let mut result = result;
        if let (Value::Object(result), Value::Object(fields)) = (&mut result, fields) {
            result.extend(fields);
            result.insert("protocolVersion".into(), json!(revision));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let answer = json!({ "id": 0, "result": result }).to_string() + "\n";
            let (input, output) = pipes(vec![answer.into_bytes()]);
            let spec = fake("scripted", "full");
            if let Ok(server) = ConnectedServer::over_streams(&spec, input, output).await {
                prop_assert_ne!(server.protocol_version(), Some("x".to_owned()));
                let _ = server.capabilities();
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_are_parsed_or_noise(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }
}
