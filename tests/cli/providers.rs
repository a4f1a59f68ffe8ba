//! Providers that misbehave: a clear error or a correct answer, never a hang, a lost call or a panic (`H-44`).

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{
    Asked, Piece, Provider, Reply, chat_text, data, delta, finish, status,
};
use crate::support::run::Output;

fn stream(pieces: Vec<Piece>) -> Reply {
    Reply::Stream { pieces, cut: false }
}

fn bytes(text: &str) -> Piece {
    Piece::Bytes(text.as_bytes().to_vec())
}

/// Asks one question of a provider of `kind` that plays `script`.
#[track_caller]
fn ask_of(kind: &str, script: Vec<Reply>) -> (Output, Vec<Asked>) {
    let provider = Provider::new(script);
    let home = Home::new();
    home.provider_of(kind, &provider.url(), "", "enabled_tools: get_current_time");
    let output = home.coyote(&["x"]).output();
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    (output, provider.asked())
}

#[track_caller]
fn ask(script: Vec<Reply>) -> (Output, Vec<Asked>) {
    ask_of("openai-compatible", script)
}

fn with_headers(code: u16, headers: Vec<(&'static str, String)>, body: &str) -> Reply {
    Reply::Full {
        status: code,
        headers,
        body: body.as_bytes().to_vec(),
    }
}

fn call_piece(value: &Value) -> Piece {
    data(&json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [value] } }] }))
}

fn weather(index: Option<u64>, id: &str, city: &str) -> Value {
    let mut call = json!({ "id": id, "type": "function", "function": { "name": "get_weather", "arguments": json!({ "city": city }).to_string() } });
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    call
}

/// Every call of the second request's assistant message and the ids that were answered.
#[track_caller]
fn answered(asked: &[Asked]) -> (Vec<String>, Vec<String>) {
    let messages = asked[1].body["messages"].as_array().unwrap();
    let ids = |values: Vec<&Value>| {
        values
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect()
    };
    let calls = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten()
        .map(|call| &call["id"])
        .collect();
    let answers = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| &message["tool_call_id"])
        .collect();
    (ids(calls), ids(answers))
}

#[test]
fn calls_survive_missing_repeated_and_absurd_indices() {
    let rows: Vec<(&str, Vec<Value>, &[&str])> = vec![
        ("no index", vec![weather(None, "c1", "Paris")], &["c1"]),
        (
            "one index, two ids",
            vec![weather(Some(0), "c1", "P1"), weather(Some(0), "c2", "P2")],
            &["c1", "c2"],
        ),
        (
            "an absurd index",
            vec![weather(Some(400_000_000), "c", "P")],
            &["c"],
        ),
    ];
    for (what, calls, ids) in rows {
        let mut pieces: Vec<Piece> = calls.iter().map(call_piece).collect();
        pieces.extend(finish("tool_calls"));
        let (output, asked) = ask(vec![stream(pieces), chat_text("done")]);
        assert_eq!(output.stdout, "done\n", "{what}: {}", output.stderr);
        let (calls, answers) = answered(&asked);
        assert_eq!(calls, ids, "{what}");
        assert_eq!(answers, ids, "{what}");
    }
}

#[test]
fn an_unknown_function_is_answered_with_an_error() {
    let mut pieces = vec![call_piece(&weather(Some(0), "c1", "Paris"))];
    pieces.extend(finish("tool_calls"));
    let (_, asked) = ask(vec![stream(pieces), chat_text("done")]);
    let messages = asked[1].body["messages"].as_array().unwrap();
    let answer = messages
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap()["content"]
        .as_str()
        .unwrap();
    assert!(
        answer.contains("tool_call_error") && answer.contains("get_weather"),
        "{answer}"
    );
}

#[test]
fn malformed_arguments_are_answered_with_an_error() {
    let call = json!({ "index": 0, "id": "c1", "type": "function", "function": { "name": "get_current_time", "arguments": "{\"a\": " } });
    let mut pieces = vec![call_piece(&call)];
    pieces.extend(finish("tool_calls"));
    let (output, asked) = ask(vec![stream(pieces), chat_text("done")]);
    assert_eq!(output.stdout, "done\n");
    let messages = asked[1].body["messages"].as_array().unwrap();
    let answer = messages
        .iter()
        .find(|message| message["role"] == "tool")
        .unwrap()["content"]
        .as_str()
        .unwrap();
    assert!(answer.contains("tool_call_error"), "{answer}");
}

#[test]
fn a_finish_reason_ends_the_answer_without_done() {
    let pieces = vec![
        delta(&json!({ "content": "all of it" })),
        data(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })),
    ];
    let (output, _) = ask(vec![stream(pieces)]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "all of it\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn a_cut_stream_is_an_error_and_what_came_is_kept() {
    for cut in [true, false] {
        let (output, _) = ask(vec![Reply::Stream {
            pieces: vec![delta(&json!({ "content": "half an ans" }))],
            cut,
        }]);
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        assert!(
            output.stdout.starts_with("half an ans"),
            "{}",
            output.stdout
        );
        assert!(output.stderr.contains("error: "), "{}", output.stderr);
    }
}

#[test]
fn an_error_inside_a_good_stream_is_an_error() {
    let rows = [
        (
            "openai-compatible",
            "data: {\"error\":{\"code\":500,\"message\":\"the slot burned down\",\"type\":\"server_error\"}}\n\n",
        ),
        (
            "openai-compatible",
            "{\"message\":{\"role\":\"assistant\",\"content\":\"par\"},\"done\":false}\n{\"error\":\"the slot burned down\"}\n",
        ),
        (
            "claude",
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"the slot burned down\"}}\n\n",
        ),
    ];
    for (kind, text) in rows {
        // Nothing was shown yet, so it may be tried again; every try says the same.
        let script = std::iter::repeat_with(|| stream(vec![bytes(text)]))
            .take(10)
            .collect();
        let (output, _) = ask_of(kind, script);
        assert_eq!(output.code, Some(1), "{kind}: {}", output.stderr);
        assert!(
            output.stderr.contains("the slot burned down"),
            "{kind}: {}",
            output.stderr
        );
    }
}

#[test]
fn unknown_blocks_of_a_claude_stream_cost_nothing() {
    let event = |kind: &str, value: Value| {
        Piece::Bytes(format!("event: {kind}\ndata: {value}\n\n").into_bytes())
    };
    let pieces = vec![
        event(
            "message_start",
            json!({ "type": "message_start", "message": { "id": "m", "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
        ),
        event(
            "content_block_start",
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": {} } }),
        ),
        event(
            "content_block_delta",
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{\"q\":1}" } }),
        ),
        event(
            "content_block_stop",
            json!({ "type": "content_block_stop", "index": 0 }),
        ),
        event(
            "content_block_start",
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
        ),
        event(
            "content_block_delta",
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "hello" } }),
        ),
        event(
            "content_block_delta",
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "citations_delta", "citation": { "type": "char_location" } } }),
        ),
        event(
            "content_block_stop",
            json!({ "type": "content_block_stop", "index": 1 }),
        ),
        event(
            "message_delta",
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } }),
        ),
        event("message_stop", json!({ "type": "message_stop" })),
    ];
    let (output, asked) = ask_of("claude", vec![stream(pieces)]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "hello\n"),
        "{}",
        output.stderr
    );
    assert_eq!(asked[0].path, "/v1/messages");
    assert_eq!(asked[0].body["max_tokens"], 4096);
    assert_eq!(asked[0].header("x-api-key"), Some("k-test"));
}

#[test]
fn a_busy_provider_is_asked_again() {
    for code in [429, 529, 503] {
        let busy = with_headers(
            code,
            vec![("retry-after", "0".to_owned())],
            "{\"error\":{\"message\":\"busy\"}}",
        );
        let (output, asked) = ask(vec![busy, chat_text("at last")]);
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "at last\n"),
            "{code}: {}",
            output.stderr
        );
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].body, asked[1].body);
    }
}

#[test]
fn a_provider_that_stays_busy_is_an_error() {
    let busy = || {
        with_headers(
            429,
            vec![("retry-after", "0".to_owned())],
            "{\"error\":{\"message\":\"come back never\"}}",
        )
    };
    let (output, asked) = ask(std::iter::repeat_with(busy).take(20).collect());
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("come back never") && output.stderr.contains("429"),
        "{}",
        output.stderr
    );
    assert!((2..10).contains(&asked.len()), "{} attempts", asked.len());
}

#[test]
fn a_refused_key_names_the_variable_and_is_not_tried_again() {
    let (output, asked) = ask(vec![status(
        401,
        "{\"error\":{\"message\":\"bad key k-test\"}}",
    )]);
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("TEST_API_KEY"), "{}", output.stderr);
    assert!(
        !output.stderr.contains("k-test"),
        "the key itself is not repeated: {}",
        output.stderr
    );
    assert_eq!(asked.len(), 1);
}

#[test]
fn an_event_of_four_megabytes_is_an_answer() {
    let text = "0123456789abcde\n".repeat(4 * 1024 * 1024 / 16);
    let mut pieces = vec![delta(&json!({ "content": text }))];
    pieces.extend(finish("stop"));
    let (output, _) = ask(vec![stream(pieces)]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(
        output.stdout == text,
        "{} bytes of {}",
        output.stdout.len(),
        text.len()
    );
}

#[test]
fn an_endless_event_is_an_error() {
    let (output, _) = ask(vec![stream(vec![
        bytes("data: {\"choices\":[{\"delta\":{\"content\":\""),
        Piece::Repeat(vec![b'a'; 1 << 20], 10_000),
    ])]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("16"),
        "the limit is named: {}",
        output.stderr
    );
}

#[test]
fn a_huge_error_body_is_cut() {
    let body = vec![b'e'; 200 << 20];
    let (output, _) = ask(vec![Reply::Full {
        status: 400,
        headers: vec![],
        body,
    }]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.len() < 100_000,
        "{} bytes of stderr",
        output.stderr.len()
    );
}

#[test]
fn a_json_answer_to_a_streaming_request_is_understood() {
    let body = json!({ "id": "c", "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "whole" } }] });
    let (output, asked) = ask(vec![status(200, &body.to_string())]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (Some(0), "whole\n"),
        "{}",
        output.stderr
    );
    assert_eq!(asked[0].body["stream"], true);
}

#[test]
fn nonsense_is_an_error_that_says_so() {
    for body in ["<html>login</html>", "[]", "null", "", "{\"choices\":[]}"] {
        let (output, _) = ask(vec![status(200, body)]);
        assert_eq!(output.code, Some(1), "{body:?}: {}", output.stdout);
        assert!(
            output.stderr.starts_with("error: "),
            "{body:?}: {}",
            output.stderr
        );
    }
}

#[test]
fn nobody_listening_is_an_error_with_the_address() {
    let home = Home::new();
    home.provider("http://127.0.0.1:1/v1", "");
    let output = home.coyote(&["x"]).fails(1);
    assert!(output.stderr.contains("127.0.0.1:1"), "{}", output.stderr);
}

#[test]
fn escape_sequences_of_an_error_do_not_reach_the_terminal() {
    let (output, _) = ask(vec![status(
        400,
        "{\"error\":{\"message\":\"a\\u001b]52;c;AAAA\\u0007b\\u009b31mc\"}}",
    )]);
    assert!(
        !output.stderr.contains('\u{1b}') && !output.stderr.contains('\u{9b}'),
        "{:?}",
        output.stderr
    );
}
