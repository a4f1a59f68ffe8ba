use super::*;
use crate::chat::{Arguments, CallId};

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: "f".to_owned(),
        arguments: Arguments::parse(""),
    }
}

fn result(id: &str, text: &str) -> ToolResult {
    ToolResult {
        call: call(id),
        output: ToolOutput::ok(text),
    }
}

fn asked(ids: &[&str]) -> Message {
    Message::Assistant {
        text: String::new(),
        calls: ids.iter().map(|id| call(id)).collect(),
        state: None,
    }
}

fn shape(messages: &[Message]) -> String {
    entries(messages)
        .iter()
        .map(|entry| match entry {
            Entry::User(_) => "user;".to_owned(),
            Entry::Assistant { text, calls, .. } => format!("said {text}+{};", calls.len()),
            Entry::Results(answers) => answers.iter().fold(String::new(), |text, answer| {
                text + &answer.call.id.0 + "=" + &answer.output.to_text() + ";"
            }),
        })
        .collect()
}

#[test]
fn a_transcript_in_order_passes_unchanged() {
    let messages = [
        Message::user("q"),
        asked(&["a", "b"]),
        Message::Tool(vec![result("a", "1"), result("b", "2")]),
        Message::assistant("done"),
    ];
    assert_eq!(shape(&messages), "user;said +2;a=1;b=2;said done+0;");
}

#[test]
fn every_call_is_answered_exactly_once_in_call_order() {
    let messages = [
        asked(&["a", "b"]),
        Message::Tool(vec![result("b", "2")]),
        Message::Tool(vec![result("b", "3"), result("x", "4")]),
        Message::user("q"),
    ];
    let error = r#"{"tool_call_error":"interrupted, there is no result"}"#;
    assert_eq!(shape(&messages), format!("said +2;a={error};b=2;user;"));
}

#[test]
fn results_without_their_calls_get_them_back() {
    assert_eq!(
        shape(&[Message::Tool(vec![result("a", "1")])]),
        "said +1;a=1;"
    );
}

#[test]
fn an_assistant_that_said_nothing_is_left_out() {
    assert_eq!(
        shape(&[
            Message::user("q"),
            Message::assistant(""),
            Message::Tool(vec![])
        ]),
        "user;"
    );
}
