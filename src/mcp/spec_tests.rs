//! Server files: what is accepted, what costs an entry, what is said about it.
#![allow(
    clippy::needless_pass_by_value,
    reason = "values are written where they are used"
)]

use serde_json::json;

use super::*;
use crate::mcp::test_support::server_name;

fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("s3cret".into()),
        "HOME" => Some("/home/ada".into()),
        _ => None,
    }
}

fn read(text: &str) -> Result<McpConfig, Error> {
    parse(text, Path::new("mcp.json"), Origin::User, &variable)
}

fn entry(entry: serde_json::Value) -> (Result<ServerSpec, SpecError>, Vec<String>) {
    let mut config = read(&json!({ "mcpServers": { "x": entry } }).to_string()).unwrap();
    let spec = config.servers.remove(&server_name("x")).unwrap();
    (spec, config.warnings)
}

fn good(value: serde_json::Value) -> ServerSpec {
    let (spec, warnings) = entry(value);
    assert_eq!(warnings, Vec::<String>::new());
    spec.unwrap()
}

fn bad(value: serde_json::Value) -> String {
    entry(value).0.unwrap_err().reason
}

#[test]
fn a_whole_stdio_entry_is_read() {
    let spec = good(json!({
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "server", 8080],
        "env": { "A": "text", "B": true, "C": 1.5, "D": "${TOKEN}" },
        "cwd": "${HOME}/work",
        "disabled": false,
        "description": "does things",
        "timeout": 2.5,
        "startup_timeout": 7,
        "protocol": "legacy",
        "mcp_confirm": "always",
    }));
    let TransportSpec::Stdio {
        command,
        args,
        cwd,
        env,
    } = &spec.transport
    else {
        panic!("{spec:?}");
    };
    assert_eq!(command, "npx");
    assert_eq!(args, &["-y", "server", "8080"]);
    assert_eq!(cwd.as_deref(), Some(Path::new("/home/ada/work")));
    let env: Vec<_> = env
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(env, ["A=text", "B=true", "C=1.5", "D=s3cret"]);
    assert_eq!(spec.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(spec.startup_timeout, Duration::from_secs(7));
    assert_eq!(spec.protocol, ProtocolChoice::Legacy);
    assert_eq!(spec.confirm, Some(Confirm::Always));
    assert_eq!(spec.description.as_deref(), Some("does things"));
}

#[test]
fn a_variable_no_process_can_have_is_an_error_that_names_it() {
    for (name, shown) in [("A=B", "A=B"), ("A\0", "A\\0"), ("", "")] {
        let reason = bad(json!({ "command": "x", "env": { "OK": "1", name: "2" } }));
        assert_eq!(
            reason,
            format!("`env.{shown}` is not a legal name of a variable")
        );
    }
    let reason = bad(json!({ "command": "x", "env": { "A": "b\0" } }));
    assert!(reason.contains("`env.A`"), "{reason}");
}

#[test]
fn the_type_is_inferred_and_has_two_names() {
    let http = |value| match good(value).transport {
        TransportSpec::Http { url, .. } => url,
        other @ TransportSpec::Stdio { .. } => panic!("{other:?}"),
    };
    assert_eq!(good(json!({ "command": "x" })).transport.kind(), "stdio");
    assert_eq!(http(json!({ "url": "https://e.x/mcp" })), "https://e.x/mcp");
    for kind in ["http", "streamable-http"] {
        http(json!({ "type": kind, "url": "http://localhost:1/mcp" }));
    }
}

/// `M-10`: a contradiction names both fields.
#[test]
fn contradictions_name_both_fields() {
    for (value, first, second) in [
        (
            json!({ "command": "x", "url": "http://x" }),
            "`command`",
            "`url`",
        ),
        (json!({}), "`command`", "`url`"),
        (
            json!({ "type": "stdio", "command": "x", "url": "http://x" }),
            "`type`",
            "`url`",
        ),
        (json!({ "type": "stdio" }), "`type`", "`command`"),
        (
            json!({ "type": "http", "command": "x" }),
            "`type`",
            "`command`",
        ),
        (json!({ "type": "http" }), "`type`", "`url`"),
    ] {
        let reason = bad(value);
        assert!(
            reason.contains(first) && reason.contains(second),
            "{reason}"
        );
    }
}

#[test]
fn what_cannot_be_used_names_the_field() {
    for (value, expected) in [
        (
            json!({ "type": "sse", "url": "http://x/sse" }),
            "use `http`",
        ),
        (json!({ "type": "ws", "url": "http://x" }), "`type` is `ws`"),
        (json!({ "command": "" }), "`command` is empty"),
        (json!({ "command": 1 }), "`command`"),
        (json!({ "command": "x", "args": "y" }), "`args`"),
        (json!({ "command": "x", "args": [[]] }), "`args[0]`"),
        (json!({ "command": "x", "env": { "A": null } }), "`env.A`"),
        (json!({ "command": "x", "env": [] }), "`env`"),
        (json!({ "command": "x", "timeout": 0 }), "`timeout`"),
        (json!({ "command": "x", "timeout": -1 }), "`timeout`"),
        (json!({ "command": "x", "timeout": 1e300 }), "`timeout`"),
        (
            json!({ "command": "x", "startup_timeout": "5" }),
            "`startup_timeout`",
        ),
        (json!({ "command": "x", "disabled": "yes" }), "`disabled`"),
        (
            json!({ "command": "x", "protocol": "1999-01-01" }),
            "`2025-11-25`",
        ),
        (
            json!({ "command": "x", "mcp_confirm": "sometimes" }),
            "`mcp_confirm`",
        ),
        (json!({ "url": "ftp://x/y" }), "`url`"),
        (json!({ "url": "nonsense" }), "`url`"),
        (
            json!({ "url": "http://x", "headers": { "a b": "c" } }),
            "`headers.a b`",
        ),
        (
            json!({ "url": "http://x", "headers": { "A": "c\nd" } }),
            "`headers.A`",
        ),
        (json!("npx"), "not an object"),
    ] {
        let shown = value.to_string();
        let reason = bad(value);
        assert!(reason.contains(expected), "{shown}: {reason}");
    }
}

/// `M-10`: one bad entry costs that entry.
#[test]
fn one_bad_entry_costs_that_entry() {
    let text =
        json!({ "mcpServers": { "good": { "command": "x" }, "bad": 1, "": {}, "a\nb": {} } });
    let config = read(&text.to_string()).unwrap();
    assert!(config.servers[&server_name("good")].is_ok());
    assert!(config.servers[&server_name("bad")].is_err());
    assert_eq!(config.servers.len(), 2);
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
}

#[test]
fn unknown_keys_and_oauth_are_reported_once_and_harmless() {
    let (spec, warnings) = entry(json!({
        "url": "http://x/mcp", "oauth": { "a": 1 }, "autoApprove": [], "color": "red",
    }));
    spec.unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("`autoApprove`, `color`"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("`oauth`"), "{warnings:?}");
    let (spec, warnings) = entry(json!({ "command": "x", "headers": {} }));
    spec.unwrap();
    assert!(warnings[0].contains("`headers`"), "{warnings:?}");
}

/// `M-12`.
#[test]
fn an_unset_variable_names_itself_and_the_field_and_no_value() {
    for (value, field) in [
        (json!({ "command": "${NOPE}" }), "`command`"),
        (
            json!({ "command": "x", "args": ["${TOKEN}", "${NOPE}"] }),
            "`args[1]`",
        ),
        (
            json!({ "command": "x", "env": { "A": "${TOKEN}${NOPE}" } }),
            "`env.A`",
        ),
        (json!({ "command": "x", "cwd": "${NOPE}" }), "`cwd`"),
        (json!({ "url": "http://${NOPE}/" }), "`url`"),
        (
            json!({ "url": "http://x", "headers": { "Authorization": "Bearer ${NOPE}" } }),
            "`headers.Authorization`",
        ),
    ] {
        let reason = bad(value);
        assert!(
            reason.contains(field) && reason.contains("`NOPE`"),
            "{reason}"
        );
        assert!(!reason.contains("s3cret"), "{reason}");
    }
    // What is switched off need not be complete.
    assert!(good(json!({ "command": "${NOPE}x", "disabled": true })).disabled);
}

#[test]
fn only_references_to_variables_are_expanded() {
    for (text, expected) in [
        ("${TOKEN}", "s3cret"),
        ("a${TOKEN}b${HOME}c", "as3cretb/home/adac"),
        ("${NOPE:-fallback}", "fallback"),
        ("${NOPE:-}", ""),
        ("${TOKEN:-fallback}", "s3cret"),
        ("$TOKEN", "$TOKEN"),
        ("${}", "${}"),
        ("${1A}", "${1A}"),
        ("${TOKEN", "${TOKEN"),
        ("${ TOKEN }", "${ TOKEN }"),
        ("$${TOKEN}", "$s3cret"),
        // References do not nest: the first brace ends the default.
        ("${NOPE:-${TOKEN}}", "${TOKEN}"),
        ("naïve 日本", "naïve 日本"),
    ] {
        let spec = good(json!({ "command": "x", "args": [text] }));
        let TransportSpec::Stdio { args, .. } = spec.transport else {
            panic!("{spec:?}");
        };
        assert_eq!(args, [expected], "{text}");
    }
}

#[test]
fn files_that_are_no_server_files_say_so() {
    for text in [
        "",
        "[]",
        "{",
        "{\"servers\": {}}",
        "{\"mcpServers\": []}",
        "null",
    ] {
        let error = read(text).unwrap_err();
        assert!(error.to_string().contains("`mcp.json`"), "{text}: {error}");
        assert!(!error.hints().is_empty());
    }
    for text in [
        "{}",
        "{\"mcpServers\": {}}",
        "{\"mcpServers\": null}",
        "\u{feff}{}",
    ] {
        assert!(read(text).unwrap().servers.is_empty(), "{text}");
    }
}

/// `M-11`: the workspace's entry replaces the user's whole.
#[test]
fn a_workspace_entry_replaces_the_users_whole() {
    let user = read(
        &json!({ "mcpServers": {
            "both": { "command": "theirs", "env": { "A": "1" }, "timeout": 5 },
            "mine": { "command": "mine" },
        } })
        .to_string(),
    )
    .unwrap();
    let text = json!({ "mcpServers": { "both": { "command": "ours" } } }).to_string();
    let workspace = parse(&text, Path::new(".mcp.json"), Origin::Workspace, &variable).unwrap();
    let merged = McpConfig::merge(user, workspace);
    let both = merged.servers[&server_name("both")].as_ref().unwrap();
    assert_eq!(both.origin, Origin::Workspace);
    assert_eq!(both.timeout, None);
    let TransportSpec::Stdio { command, env, .. } = &both.transport else {
        panic!("{both:?}");
    };
    assert_eq!(command, "ours");
    assert!(env.is_empty());
    assert!(merged.servers.contains_key(&server_name("mine")));
}

/// `§7`: no secret in anything that is shown for debugging.
#[test]
fn debugging_shows_no_values() {
    let spec = good(json!({ "command": "x", "env": { "KEY": "${TOKEN}" } }));
    let shown = format!("{spec:?}");
    assert!(
        shown.contains("KEY") && !shown.contains("s3cret"),
        "{shown}"
    );
    let spec = good(json!({ "url": "http://x", "headers": { "Authorization": "${TOKEN}" } }));
    assert!(!format!("{spec:?}").contains("s3cret"));
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in proptest::prelude::any::<String>()) {
        let _ = read(&text);
        let _ = entry(json!({ "command": text, "args": [text], "url": null }));
    }
}
