use super::*;
use crate::chat::CallId;

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: CallId("x".into()),
        name: name.into(),
        arguments: Arguments::parse(arguments),
    }
}

fn run(calls: &[(&str, &str)]) -> Vec<Option<usize>> {
    let mut tracker = Tracker::default();
    calls
        .iter()
        .map(|(name, arguments)| tracker.observe(&call(name, arguments)))
        .collect()
}

#[test]
fn third_identical_call_in_a_row_is_stopped() {
    let same = ("fs_cat", r#"{"path":"a"}"#);
    assert_eq!(run(&[same; 4]), [None, None, Some(3), Some(4)]);
}

#[test]
fn key_order_does_not_hide_a_repeat() {
    let calls = [
        ("f", r#"{"a":1,"b":2}"#),
        ("f", r#"{"b":2,"a":1}"#),
        ("f", r#"{"a":1, "b":2}"#),
    ];
    assert_eq!(run(&calls), [None, None, Some(3)]);
}

#[test]
fn another_call_in_between_starts_over() {
    let (a, b) = (("f", "{}"), ("g", "{}"));
    assert_eq!(
        run(&[a, a, b, a, a, a]),
        [None, None, None, None, None, Some(3)]
    );
    let other_arguments = ("f", r#"{"x":1}"#);
    assert_eq!(run(&[a, a, other_arguments, a]), [None; 4]);
}

#[test]
fn delegates_and_questions_are_exempt() {
    for name in ["agent__check", "user__confirm"] {
        assert_eq!(run(&[(name, "{}"); 5]), [None; 5]);
    }
    assert_eq!(run(&[("agent_check", "{}"); 3]), [None, None, Some(3)]);
}

#[test]
fn malformed_arguments_repeat_too() {
    assert_eq!(run(&[("f", "{"); 3]), [None, None, Some(3)]);
}
