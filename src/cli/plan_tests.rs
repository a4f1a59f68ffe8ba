use std::ffi::OsString;

use serde_json::{Value, json};

use super::*;

fn planned(words: &[&str]) -> Result<Plan, clap::Error> {
    let argv: Vec<OsString> = std::iter::once("coyote")
        .chain(words.iter().copied())
        .map(OsString::from)
        .collect();
    crate::cli::args::parse(&argv).and_then(plan)
}

fn ok(words: &[&str]) -> Plan {
    planned(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn chat(words: &[&str]) -> (Chat, Box<Setting>) {
    match ok(words) {
        Plan::Configured(Configured::Chat(chat), setting) => (chat, setting),
        other => panic!("{words:?}: {other:?}"),
    }
}

fn ask(words: &[&str]) -> Verb {
    match ok(words) {
        Plan::Configured(Configured::Mcp(Mcp::Ask { verb, .. }), _) => verb,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn contradictions_are_usage_errors() {
    for words in [
        &["-c", "-e", "x"][..],
        &["-r", "a", "--temp-role", "b", "x"],
        &["--info", "text"],
        &["--list-roles", "-f", "x"],
        &["--info", "--list-models"],
        &["--json", "text"],
        &["--json", "demo"],
        &["-m", "x", "mcp", "servers"],
        &["-y", "mcp", "servers"],
        &["-r", "x", "demo"],
        &["mcp"],
        &["mcp", "read", "s", "u", "--raw", "--pattern", "x"],
        &["mcp", "read", "s", "u", "--item", "1"],
        &["mcp", "describe", "s", "u", "--kind", "banana"],
        &["mcp", "call", "s", "t", "word"],
        &["mcp", "call", "s", "t", "=x"],
        &["mcp", "call", "s", "t", "a:=nope"],
        &["mcp", "call", "s", "t", "a=1", "a=2"],
        &["mcp", "search", "s"],
    ] {
        let error = planned(words).expect_err(&format!("{words:?}"));
        assert_eq!(error.exit_code(), 2, "{words:?}: {error}");
    }
}

#[test]
fn text_is_joined_and_choices_are_typed() {
    let (chat, setting) = chat(&[
        "-S",
        "what",
        "is",
        "it",
        "-f",
        "a",
        "-f",
        "b",
        "-y",
        "--dry-run",
        "-c",
        "-s",
    ]);
    assert_eq!(chat.text.as_deref(), Some("what is it"));
    assert_eq!(chat.files, ["a", "b"]);
    assert_eq!(
        (chat.stream, chat.answer),
        (Streaming::Off, AnswerKind::Code)
    );
    assert!(chat.approve_all && chat.dry_run);
    assert_eq!(setting.session, Some(SessionChoice::Temporary));
}

#[test]
fn nothing_typed_is_a_chat_that_says_nothing() {
    assert!(!chat(&[]).0.says_something());
    assert!(chat(&["-f", "x"]).0.says_something());
    assert!(chat(&[""]).0.says_something());
}

#[test]
fn arguments_are_strings_or_json_and_the_first_equals_sign_ends_the_key() {
    let Verb::Call { tool, arguments } = ask(&[
        "mcp",
        "call",
        "s",
        "t",
        "a=1",
        "b:=1",
        "c=",
        "d=x=y",
        "e:={\"f\":[null]}",
        "g h=i",
    ]) else {
        panic!()
    };
    assert_eq!(tool, "t");
    assert_eq!(
        Value::from(arguments.unwrap()),
        json!({ "a": "1", "b": 1, "c": "", "d": "x=y", "e": { "f": [null] }, "g h": "i" })
    );
    assert!(matches!(
        ask(&["mcp", "call", "s", "t"]),
        Verb::Call {
            arguments: None,
            ..
        }
    ));
}

#[test]
fn verbs_keep_their_options() {
    assert_eq!(
        ask(&[
            "mcp",
            "read",
            "s",
            "x://{a}",
            "a=b",
            "--pattern",
            "ERR.*",
            "--offset",
            "7",
            "--max-bytes",
            "9"
        ]),
        Verb::Read {
            uri: "x://{a}".into(),
            arguments: json!({ "a": "b" }).as_object().cloned(),
            pattern: Some("ERR.*".into()),
            offset: 7,
            max_bytes: Some(9),
        }
    );
    assert_eq!(
        ask(&["mcp", "read", "s", "u", "--raw", "--item", "2"]),
        Verb::ReadRaw {
            uri: "u".into(),
            arguments: None,
            item: Some(2)
        }
    );
    assert_eq!(
        ask(&["mcp", "search", "s", "server", "log"]),
        Verb::Search {
            query: "server log".into(),
            top_k: 8
        }
    );
    for (word, kind) in [
        ("tool", Kind::Tool),
        ("resource_template", Kind::ResourceTemplate),
        ("template", Kind::ResourceTemplate),
        ("prompt", Kind::Prompt),
    ] {
        assert_eq!(
            ask(&["mcp", "describe", "s", "i", "--kind", word]),
            Verb::Describe {
                id: "i".into(),
                kind
            }
        );
    }
}

#[test]
fn looking_needs_no_text_and_may_be_json() {
    let Plan::Configured(look, setting) =
        ok(&["--list-mcp-servers", "--json", "--no-workspace-mcp"])
    else {
        panic!()
    };
    assert_eq!(look, Configured::List(Listed::McpServers));
    assert!(setting.json);
    assert_eq!(setting.workspace, Workspace::Ignored);
}

#[test]
fn the_demo_takes_a_model_on_either_side() {
    for words in [&["demo", "-m", "x"][..], &["-m", "x", "demo"]] {
        assert_eq!(
            ok(words),
            Plan::Demo {
                model: Some("x".into())
            }
        );
    }
    assert_eq!(ok(&["demo-server"]), Plan::DemoServer(None));
    assert_eq!(
        ok(&["demo-server", "--spoil", "log"]),
        Plan::DemoServer(Some(Spoil::Log))
    );
}

fn word() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let known = proptest::sample::select(vec![
        "--", "-", "mcp", "demo", "-s", "-yS", "--json", "call", "read", "a:=1", "-mé", "--model=",
    ]);
    prop_oneof![known.prop_map(str::to_owned), ".{0,6}", "-{0,3}[a-zé]{0,3}",]
}

proptest::proptest! {
    #[test]
    fn any_command_line_is_a_plan_or_a_usage_error(words in proptest::collection::vec(word(), 0..7)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Err(error) = planned(&words) {
            proptest::prop_assert!(matches!(error.exit_code(), 0 | 2), "{}", error);
        }
    }

    #[test]
    fn whatever_follows_two_dashes_is_text(words in proptest::collection::vec(".{1,8}", 1..5)) {
        let mut line = vec!["--"];
        line.extend(words.iter().map(String::as_str));
        proptest::prop_assert_eq!(chat(&line).0.text, Some(words.join(" ")));
    }
}
