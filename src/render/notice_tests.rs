use proptest::prelude::*;

use super::*;
use crate::render::options::Theme;

const PLAIN: Paint = Paint {
    theme: Theme::Dark,
    color: false,
    true_color: false,
};

fn call<'a>(name: &'a str, arguments: &'a str) -> FinishedCall<'a> {
    FinishedCall {
        name,
        arguments,
        ok: true,
        elapsed: Duration::from_millis(1234),
        bytes: 5678,
    }
}

#[test]
fn a_tool_line_says_name_arguments_outcome_time_and_size() {
    let arguments = r#"{"uri":"demo://guide","pattern":"two words","offset":3,"deep":{"a":[1]}}"#;
    assert_eq!(
        tool_line(&call("mcp_read_demo", arguments), 200, PLAIN),
        r#"mcp_read_demo uri=demo://guide pattern="two words" offset=3 deep={"a":[1]} ✓ 1.2 s 5.6 kB"#
    );
    let failed = FinishedCall {
        ok: false,
        ..call("fs_rm", "{}")
    };
    assert_eq!(tool_line(&failed, 80, PLAIN), "fs_rm ✗ 1.2 s 5.6 kB");
    assert_eq!(
        tool_line(&call("x", "not json\n"), 80, PLAIN),
        "x not json ✓ 1.2 s 5.6 kB"
    );
}

#[test]
fn a_tool_line_is_sanitised_and_cut() {
    let line = tool_line(
        &call("evil\x1b[2J", "{\"a\":\"\\u001b[31m\\n\\u202e\"}"),
        80,
        PLAIN,
    );
    assert!(!line.chars().any(text::is_hazard), "{line:?}");
    let long = format!("{{\"a\":\"{}\"}}", "日本".repeat(100));
    let line = tool_line(&call("tool", &long), 40, PLAIN);
    assert!(
        text::width(&line) <= 40 && line.ends_with("… ✓ 1.2 s 5.6 kB"),
        "{line}"
    );
}

#[test]
fn waiting_is_put_into_words() {
    let in_call = Activity::Calling("mcp_read_docs".to_owned());
    assert_eq!(activity(&in_call), "calling `mcp_read_docs`");
    assert_eq!(calling(&["a", "b", "c"]), "calling `a` and 2 more");
    assert_eq!(
        activity(&Activity::Connecting(vec!["a".into(), "b\x1b[2J".into()]),),
        "connecting a, b"
    );
    let retrying = Activity::Retrying {
        attempt: 2,
        after: Duration::from_millis(1500),
    };
    assert_eq!(activity(&retrying), "retrying in 1.5 s (attempt 2)");
    let far = |progress, total, message: Option<&str>| {
        super::progress(&Progress {
            progress,
            total,
            message: message.map(str::to_owned),
        })
    };
    assert_eq!(far(1.0, Some(4.0), None), "25 %");
    assert_eq!(far(1.0, Some(4.0), Some("copying")), "25 % copying");
    assert_eq!(far(7.0, None, None), "7");
    assert_eq!(far(7.0, Some(0.0), Some("x\ny")), "x y");
    assert_eq!(far(f64::NAN, Some(4.0), Some("x")), "x");
}

#[test]
fn an_error_comes_with_its_causes_and_hints() {
    let wrong = Error::config("line 3 is wrong")
        .context("cannot read `config.yaml`")
        .hint("edit `config.yaml`");
    assert_eq!(
        error(&wrong, PLAIN),
        "error: cannot read `config.yaml`\n  caused by: line 3 is wrong\nhint: edit `config.yaml`"
    );
    let parsed: Value = serde_json::from_str(&error_json(&wrong)).unwrap();
    assert_eq!(parsed["error"]["kind"], "config");
    assert_eq!(parsed["error"]["causes"][0], "line 3 is wrong");
    assert_eq!(parsed["error"]["hints"][0], "edit `config.yaml`");
}

#[test]
fn an_error_of_a_server_cannot_act_on_the_terminal() {
    let wrong = Error::mcp("said \x1b[2J\u{202e}")
        .context("`\u{9b}31m` failed")
        .hint("run \x07it");
    let shown = error(&wrong, PLAIN);
    assert!(
        !shown.chars().any(|c| c != '\n' && text::is_hazard(c)),
        "{shown:?}"
    );
}

proptest! {
    #[test]
    fn any_tool_line_fits(name in "\\PC{0,80}", arguments in any::<String>(), columns in 40usize..200) {
        let line = tool_line(&call(&name, &arguments), columns, PLAIN);
        prop_assert!(text::width(&line) <= columns, "{line}");
        prop_assert!(!line.chars().any(|c| c == '\n' || text::is_hazard(c)), "{line:?}");
    }
}
