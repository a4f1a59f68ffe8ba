//! Dispatch against a scripted server: what a model's call becomes on the wire, and what comes back.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::chat::{Answer, Progress, Question};
use crate::function::testing::{Bench, Peer};
use crate::mcp::test_support::eventually;
use crate::mcp::{Confirm, Origin};

async fn bench() -> (Bench, Peer) {
    let peer = Peer::connect("docs", |_| ()).await;
    (Bench::new().with_servers(&[&peer]), peer)
}

/// Each meta-function's call and the method it must end in.
fn five() -> [(&'static str, Value, &'static str); 5] {
    [
        (
            "mcp_invoke_docs",
            json!({"tool": "look", "arguments": {"a": 1}}),
            "tools/call",
        ),
        (
            "mcp_search_docs",
            json!({"query": "long"}),
            "resources/list",
        ),
        ("mcp_describe_docs", json!({"tool": "look"}), "tools/list"),
        (
            "mcp_read_docs",
            json!({"uri": "x://long"}),
            "resources/read",
        ),
        ("mcp_prompt_docs", json!({"prompt": "greet"}), "prompts/get"),
    ]
}

fn assert_routed(name: &str, output: &ToolOutput, peer: &Peer, method: &str) {
    let methods = peer.methods();
    assert!(!output.is_error, "{name}: {}", output.to_text());
    assert!(
        methods.iter().any(|asked| asked == method),
        "{name}: {methods:?}"
    );
    let is_invoke = name.starts_with("mcp_invoke");
    assert_eq!(
        methods.iter().any(|asked| asked == "tools/call"),
        is_invoke,
        "{name}: {methods:?}"
    );
}

#[tokio::test]
async fn all_five_reach_their_handler_in_order() {
    for (name, arguments, method) in five() {
        let (mut bench, peer) = bench().await;
        let output = bench.call(name, arguments).await;
        assert_routed(name, &output, &peer, method);
    }
}

#[tokio::test]
async fn all_five_reach_their_handler_concurrently() {
    for (name, arguments, method) in five() {
        let (mut bench, peer) = bench().await;
        let outputs = bench
            .batch(&[(name, arguments), ("get_current_time", json!({}))])
            .await;
        assert_routed(name, &outputs[0], &peer, method);
    }
}

#[tokio::test]
async fn a_prompt_is_one_text_and_nothing_in_the_transcript() {
    let (mut bench, peer) = bench().await;
    let output = bench
        .call("mcp_prompt_docs", json!({"prompt": "greet"}))
        .await;
    assert_eq!(output.value, json!("[user]\nSay hello"));
    assert_eq!(output.images, []);
    let asked = &peer.asked("prompts/get")[0]["params"];
    assert_eq!(
        (&asked["name"], &asked["arguments"]),
        (&json!("greet"), &json!({}))
    );
}

#[tokio::test]
async fn what_the_model_passed_is_what_the_server_gets() {
    let (mut bench, peer) = bench().await;
    let output = bench
        .call(
            "mcp_invoke_docs",
            json!({"tool": "look", "arguments": {"a": [1, null]}}),
        )
        .await;
    assert!(output.to_text().contains("called"), "{}", output.to_text());
    let call = &peer.asked("tools/call")[0]["params"];
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("look"), &json!({"a": [1, null]}))
    );
    bench
        .call(
            "mcp_read_docs",
            json!({"uri": "x://t/{id}", "arguments": {"id": "a/b"}}),
        )
        .await;
    assert_eq!(
        peer.asked("resources/read")[0]["params"]["uri"],
        "x://t/a%2Fb"
    );
}

#[tokio::test]
async fn two_calls_of_one_answer_are_in_flight_before_either_is_answered() {
    let (mut bench, _peer) = bench().await;
    let call = |n: u32| {
        (
            "mcp_invoke_docs",
            json!({"tool": "pair", "arguments": {"n": n}}),
        )
    };
    let outputs = bench.batch(&[call(1), call(2)]).await;
    assert!(outputs.iter().all(|output| !output.is_error));
}

#[tokio::test]
async fn bogus_names_end_as_a_failed_invoke_that_names_the_near_ones() {
    let (mut bench, peer) = bench().await;
    for name in [
        "mcp_bogus_docs",
        "mcp_read_doc",
        "mcp_invoke_dcos",
        "mcp_reads_docs",
    ] {
        let error = bench
            .error(name, json!({"uri": "x://long", "tool": "look"}))
            .await;
        assert!(
            error.contains("did you mean") && error.contains("_docs`"),
            "{error}"
        );
    }
    assert_eq!(peer.methods(), [""; 0]);
}

#[tokio::test]
async fn teaching_errors_of_arguments_ask_the_server_nothing() {
    let (mut bench, peer) = bench().await;
    for (name, arguments, expected) in [
        (
            "mcp_read_docs",
            json!({"uri": "x", "offset": "10"}),
            "`offset` must be an integer",
        ),
        (
            "mcp_read_docs",
            json!({"uri": "x", "arguments": []}),
            "`arguments` must be an object",
        ),
        (
            "mcp_invoke_docs",
            json!({"tool": "look", "arguments": "x"}),
            "`arguments` must be an object",
        ),
        (
            "mcp_invoke_docs",
            json!({"name": "look"}),
            "no argument `name`",
        ),
        (
            "mcp_describe_docs",
            json!({"tool": "x", "kind": "thing"}),
            "unknown kind `thing`",
        ),
        ("mcp_search_docs", json!("[1"), "not a JSON object"),
    ] {
        let error = bench.error(name, arguments).await;
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        !peer
            .methods()
            .iter()
            .any(|method| method.ends_with("/call") || method.ends_with("/read"))
    );
}

#[tokio::test]
async fn a_tool_of_the_persons_with_such_a_name_runs_as_itself() {
    let (bench, peer) = bench().await;
    let dir = tempfile::tempdir().unwrap();
    let tools = json!([{"name": "mcp_invoker"}, {"name": "mcp_read_mine"}]);
    std::fs::write(dir.path().join("functions.json"), tools.to_string()).unwrap();
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    for name in ["mcp_invoker", "mcp_read_mine"] {
        script(
            &dir.path().join("bin").join(name),
            &format!("echo I am {name}"),
        );
    }
    let (functions, warnings) = crate::function::Functions::load(dir.path());
    if cfg!(unix) {
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        let mut bench = bench;
        bench.env.functions = Arc::new(functions);
        bench = bench.with_servers(&[&peer]);
        for name in ["mcp_invoker", "mcp_read_mine"] {
            assert_eq!(bench.ok(name, json!({})).await, format!("I am {name}\n"));
            let outputs = bench
                .batch(&[(name, json!({})), ("get_current_time", json!({}))])
                .await;
            assert_eq!(outputs[0].to_text(), format!("I am {name}\n"));
        }
        assert!(
            bench
                .env
                .functions
                .tool_names()
                .iter()
                .all(|name| !name.starts_with("mcp_"))
        );
        assert_eq!(peer.methods(), [""; 0]);
    }
}

fn script(path: &std::path::Path, line: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn names_that_models_cannot_write_reach_their_own_server() {
    let dotted = Peer::connect("a.b", |_| ()).await;
    let plain = Peer::connect("a_b", |_| ()).await;
    let mut bench = Bench::new().with_servers(&[&dotted, &plain]);
    let model_name = bench
        .env
        .mcp
        .names()
        .model_name(dotted.server.name())
        .unwrap()
        .to_string();
    assert_ne!(model_name, "a_b");
    bench.ok("mcp_invoke_a_b", json!({"tool": "look"})).await;
    assert_eq!(
        (
            plain.asked("tools/call").len(),
            dotted.asked("tools/call").len()
        ),
        (1, 0)
    );
    bench
        .ok(&format!("mcp_invoke_{model_name}"), json!({"tool": "look"}))
        .await;
    assert_eq!(
        (
            plain.asked("tools/call").len(),
            dotted.asked("tools/call").len()
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn progress_is_shown_and_a_cancelled_call_is_cancelled_at_the_server() {
    let (mut bench, peer) = bench().await;
    let (abort, sink) = (bench.env.abort.clone(), Arc::clone(&bench.sink));
    let watcher = tokio::spawn(async move {
        let progress = Progress {
            progress: 1.0,
            total: Some(4.0),
            message: Some("working".into()),
        };
        eventually("progress", || {
            sink.0.lock().iter().any(
                |notice| matches!(notice, Notice::Progress { progress: p, .. } if *p == progress),
            )
        })
        .await;
        abort.cancel();
    });
    let outputs = bench
        .batch(&[
            ("mcp_invoke_docs", json!({"tool": "hang"})),
            ("get_current_time", json!({})),
        ])
        .await;
    watcher.await.unwrap();
    assert_eq!(outputs[0], ToolOutput::error("cancelled by the user"));
    eventually("the server is told", || {
        !peer.asked("notifications/cancelled").is_empty()
    })
    .await;
    let id = &peer.asked("tools/call")[0]["id"];
    assert_eq!(
        &peer.asked("notifications/cancelled")[0]["params"]["requestId"],
        id
    );
}

#[tokio::test]
async fn a_limit_on_results_leaves_whole_json_and_exact_offsets() {
    let (mut bench, _peer) = bench().await;
    bench.env.limits.max_tool_result_chars = Some(4_000);
    let output = bench
        .call("mcp_read_docs", json!({"uri": "x://long"}))
        .await;
    assert!(output.to_text().chars().count() <= 4_000);
    let text = output.value["text"].as_str().unwrap();
    assert!(text.len() > 2_000, "{}", text.len());
    assert_eq!(output.value["next_offset"], text.len());
    assert_eq!(output.value["truncated"], true);
    let long = json!({"tool": "nope".repeat(5_000)});
    let error = bench.error("mcp_describe_docs", long).await;
    assert!(error.chars().count() <= 4_000);
}

#[tokio::test]
async fn destructive_tools_ask_and_the_others_do_not() {
    let peer = Peer::connect("docs", |_| ()).await;
    let mut bench = Bench::answering([Answer::No, Answer::Always]).with_servers(&[&peer]);
    bench.ok("mcp_invoke_docs", json!({"tool": "plain"})).await;
    assert!(bench.ask.asked.lock().is_empty());
    let wipe = json!({"tool": "wipe", "arguments": {"path": "/"}});
    let error = bench.error("mcp_invoke_docs", wipe.clone()).await;
    assert!(error.contains("declined"), "{error}");
    assert_eq!(
        peer.asked("tools/call").len(),
        1,
        "the refused call never left"
    );
    bench.ok("mcp_invoke_docs", wipe.clone()).await;
    bench.ok("mcp_invoke_docs", wipe).await;
    let asked = bench.ask.asked.lock();
    assert_eq!(asked.len(), 2, "always is remembered");
    assert_eq!(
        asked[0],
        Question::Permission {
            title: "call `wipe` on MCP server `docs`".into(),
            details: vec!["path: \"/\"".into()],
        }
    );
    assert_eq!(
        peer.asked("tools/list").len(),
        1,
        "annotations are listed once per connection"
    );
}

#[tokio::test]
async fn calls_that_ask_run_in_order_behind_the_batch() {
    let peer = Peer::connect("docs", |_| ()).await;
    let mut bench = Bench::answering([Answer::Yes]).with_servers(&[&peer]);
    let outputs = bench
        .batch(&[
            ("mcp_invoke_docs", json!({"tool": "wipe"})),
            (
                "mcp_invoke_docs",
                json!({"tool": "pair", "arguments": {"n": 1}}),
            ),
            (
                "mcp_invoke_docs",
                json!({"tool": "pair", "arguments": {"n": 2}}),
            ),
        ])
        .await;
    assert!(outputs.iter().all(|output| !output.is_error));
    let order: Vec<_> = peer
        .asked("tools/call")
        .iter()
        .map(|call| call["params"]["name"].clone())
        .collect();
    assert_eq!(order, ["pair", "pair", "wipe"]);
}

#[tokio::test]
async fn who_asks_depends_on_setting_and_origin() {
    let tools = ["look", "plain", "wipe", "unlisted"];
    let rows: [(Option<Confirm>, Confirm, Origin, [bool; 4]); 6] = [
        (
            None,
            Confirm::Destructive,
            Origin::User,
            [false, false, true, true],
        ),
        (
            None,
            Confirm::Destructive,
            Origin::Workspace,
            [false, true, true, true],
        ),
        (None, Confirm::Never, Origin::Workspace, [false; 4]),
        (None, Confirm::Always, Origin::User, [true; 4]),
        (
            Some(Confirm::Never),
            Confirm::Always,
            Origin::User,
            [false; 4],
        ),
        (
            Some(Confirm::Always),
            Confirm::Never,
            Origin::Builtin,
            [true; 4],
        ),
    ];
    for (own, global, origin, expected) in rows {
        let peer = Peer::connect("docs", |spec| {
            spec.confirm = own;
            spec.origin = origin;
        })
        .await;
        let mut bench = Bench::new().with_servers(&[&peer]);
        bench.env.mcp_confirm = global;
        for (tool, asks) in tools.into_iter().zip(expected) {
            let output = bench.call("mcp_invoke_docs", json!({"tool": tool})).await;
            let refused = output.to_text().contains("approval");
            assert_eq!(
                refused,
                asks,
                "{tool} {own:?} {global:?} {origin:?}: {}",
                output.to_text()
            );
        }
        bench.env.approve_all = true;
        bench.ok("mcp_invoke_docs", json!({"tool": "wipe"})).await;
    }
}
