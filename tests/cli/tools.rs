//! Local tools and their permissions.

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{Provider, chat_calls, chat_text};

/// One turn in which the model calls `name` with `arguments`; gives the tool's answer as the model got it.
#[track_caller]
fn call(home: &Home, flags: &[&str], name: &str, arguments: &Value) -> String {
    let provider = Provider::new(vec![
        chat_calls(&[("c1", name, arguments.clone())]),
        chat_text("done"),
    ]);
    home.provider(&provider.url(), "enabled_tools: all");
    let mut args = flags.to_vec();
    args.push("x");
    let output = home.coyote(&args).any_stderr().ok();
    assert_eq!(output.stdout, "done\n");
    let messages = provider.asked()[1].body["messages"].clone();
    messages[2]["content"].as_str().unwrap().to_owned()
}

#[test]
fn what_changes_things_is_refused_without_a_person() {
    let home = Home::new();
    home.work_file("keep.txt", "kept");
    let rows = [
        ("fs_write", json!({ "path": "new.txt", "contents": "x" })),
        ("fs_rm", json!({ "path": "keep.txt" })),
        ("fs_mkdir", json!({ "path": "dir" })),
        ("execute_command", json!({ "command": "touch pwned" })),
    ];
    for (name, arguments) in rows {
        let answer = call(&home, &[], name, &arguments);
        assert!(answer.contains("tool_call_error"), "{name}: {answer}");
    }
    let left: Vec<_> = std::fs::read_dir(home.work_dir())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["keep.txt"]);
}

#[test]
fn yes_on_the_command_line_approves() {
    let home = Home::new();
    let answer = call(
        &home,
        &["-y"],
        "execute_command",
        &json!({ "command": "echo out; echo err >&2; exit 3" }),
    );
    assert!(
        answer.contains("out") && answer.contains("err") && answer.contains('3'),
        "{answer}"
    );
}

#[test]
fn a_command_does_not_inherit_provider_keys() {
    let home = Home::new();
    let provider = Provider::new(vec![
        chat_calls(&[("c1", "execute_command", json!({ "command": "env" }))]),
        chat_text("done"),
    ]);
    home.provider(&provider.url(), "enabled_tools: all");
    home.coyote(&["-y", "x"])
        .env("OPENAI_API_KEY", "sk-secret-1")
        .env("TEST_API_KEY", "sk-secret-2")
        .any_stderr()
        .ok();
    let messages = provider.asked()[1].body["messages"].to_string();
    assert!(messages.contains("PATH="), "{messages}");
    assert!(!messages.contains("sk-secret"), "{messages}");
}

#[test]
fn a_long_result_is_cut_at_a_character() {
    let home = Home::new();
    home.work_file("long.txt", &"é😀".repeat(200_000));
    let answer = call(&home, &[], "fs_cat", &json!({ "path": "long.txt" }));
    assert!(
        answer.len() < 500_000 && !answer.contains('\u{fffd}'),
        "{} bytes",
        answer.len()
    );
}

#[test]
fn the_third_identical_call_is_not_run() {
    let again = || chat_calls(&[("c", "fs_ls", json!({ "path": "." }))]);
    let provider = Provider::new(vec![again(), again(), again(), chat_text("done")]);
    let home = Home::new();
    home.provider(&provider.url(), "enabled_tools: all");
    home.work_file("seen.txt", "");
    home.coyote(&["x"]).any_stderr().ok();
    let answers: Vec<String> = provider.asked()[3].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(answers.len(), 3);
    assert!(
        answers[0].contains("seen.txt") && answers[1].contains("seen.txt"),
        "{answers:?}"
    );
    assert!(
        !answers[2].contains("seen.txt") && answers[2].contains("tool_call_error"),
        "{answers:?}"
    );
}

#[test]
fn rounds_are_bounded_with_a_notice() {
    let script = (0..10)
        .map(|round| chat_calls(&[("c", "fs_glob", json!({ "pattern": format!("*{round}") }))]))
        .collect();
    let provider = Provider::new(script);
    let home = Home::new();
    home.provider(&provider.url(), "enabled_tools: all\nmax_rounds: 3");
    let output = home.coyote(&["x"]).output();
    assert!(output.stderr.contains("max_rounds"), "{}", output.stderr);
    assert!(provider.asked().len() <= 4, "{}", provider.asked().len());
}

#[test]
fn results_of_a_batch_keep_the_order_of_the_calls() {
    let home = Home::new();
    home.work_file("a.txt", "first")
        .work_file("b.txt", "second");
    let provider = Provider::new(vec![
        chat_calls(&[
            ("c1", "fs_cat", json!({ "path": "a.txt" })),
            ("c2", "execute_command", json!({ "command": "echo third" })),
            ("c3", "fs_cat", json!({ "path": "b.txt" })),
        ]),
        chat_text("done"),
    ]);
    home.provider(&provider.url(), "enabled_tools: all");
    home.coyote(&["-y", "x"]).any_stderr().ok();
    let messages = provider.asked()[1].body["messages"].clone();
    for (position, (id, text)) in [("c1", "first"), ("c2", "third"), ("c3", "second")]
        .iter()
        .enumerate()
    {
        let message = &messages[position + 2];
        assert_eq!(message["tool_call_id"], *id);
        assert!(
            message["content"].as_str().unwrap().contains(text),
            "{message}"
        );
    }
}
