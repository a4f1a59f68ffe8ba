use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::chat::Answer;
use crate::function::testing::{Bench, call};

#[tokio::test]
async fn unknown_functions_are_answered_with_the_nearest() {
    let mut bench = Bench::new();
    let error = bench.error("fs_catt", json!({})).await;
    assert_eq!(
        error,
        "there is no function `fs_catt`; did you mean `fs_cat`?"
    );
    let error = bench.error("zzzzzzzzzzzz", json!({})).await;
    assert_eq!(
        error,
        "there is no function `zzzzzzzzzzzz`; call one of the functions you were given"
    );
    let long = bench.error(&"🦊".repeat(5_000), json!({})).await;
    assert!(long.len() < 400);
    bench.error("", json!({})).await;
}

#[tokio::test]
async fn tools_that_are_not_selected_are_unknown() {
    let mut bench = Bench::new();
    bench.env.functions = Arc::new(bench.env.functions.with_tools(&["fs_ls"]));
    let error = bench.error("fs_cat", json!({"path": "x"})).await;
    assert!(
        error.starts_with("there is no function `fs_cat`"),
        "{error}"
    );
    bench.ok("fs_ls", json!({})).await;
}

#[tokio::test]
async fn malformed_arguments_are_quoted() {
    let mut bench = Bench::new();
    let error = bench.error("fs_cat", json!("{\"path\": ")).await;
    assert!(error.contains("`{\"path\": `"), "{error}");
}

#[tokio::test]
async fn a_batch_keeps_call_order_across_both_lanes() {
    let mut bench = Bench::approving();
    bench.write("a", "A");
    let outputs = bench
        .batch(&[
            ("fs_write", json!({"path": "b", "content": "B"})),
            ("fs_cat", json!({"path": "a"})),
            ("nonsense", json!({})),
            ("fs_cat", json!({"path": "b"})),
            ("fs_rm", json!({"path": "a"})),
            ("get_current_time", json!({})),
        ])
        .await;
    assert!(outputs[0].to_text().starts_with("wrote"));
    assert_eq!(
        outputs[1].to_text(),
        "A",
        "read before the removal that follows it"
    );
    assert!(outputs[2].is_error);
    assert_eq!(
        outputs[3].to_text(),
        "B",
        "a read after a write sees what was written"
    );
    assert!(outputs[4].to_text().starts_with("removed"));
    assert!(!outputs[5].is_error);
}

#[tokio::test]
async fn lanes_are_chosen_by_what_a_call_may_change() {
    let bench = Bench::new();
    let lanes_of = async |names: &[&str]| {
        let calls: Vec<_> = names
            .iter()
            .map(|name| call("x", name, &json!({})))
            .collect();
        let targets: Vec<_> = calls.iter().map(|call| resolve(&bench.env, call)).collect();
        let outputs = vec![None; calls.len()];
        lanes(&bench.env, &calls, &targets, &outputs).await
    };
    use Lane::{Concurrent, InOrder};
    assert_eq!(
        lanes_of(&["fs_cat", "fetch_url", "fs_grep"]).await,
        [Concurrent; 3]
    );
    assert_eq!(
        lanes_of(&["fs_cat", "fs_write", "fs_cat", "mcp_search_s"]).await,
        [Concurrent, InOrder, InOrder, Concurrent]
    );
    assert_eq!(
        lanes_of(&["fs_cat"]).await,
        [InOrder],
        "a single call takes the other path"
    );
    assert_eq!(lanes_of(&[]).await, []);
}

#[tokio::test]
async fn the_third_identical_call_is_not_executed() {
    let mut bench = Bench::approving();
    let append = ("execute_command", json!({"command": "echo x >> log"}));
    let outputs = bench
        .batch(&[append.clone(), append.clone(), append.clone()])
        .await;
    assert!(!outputs[1].is_error && outputs[2].is_error);
    assert!(outputs[2].to_text().contains("3rd identical call"));
    assert_eq!(bench.read("log"), "x\nx\n");
    let outputs = bench.batch(&[append]).await;
    assert!(outputs[0].to_text().contains("4th identical call"));
    assert_eq!(bench.read("log"), "x\nx\n", "rounds do not start over");
}

#[tokio::test]
async fn notices_tell_start_and_end_of_each_call() {
    let mut bench = Bench::new();
    bench.write("a", "hello");
    bench
        .batch(&[("fs_cat", json!({"path": "a"})), ("nope", json!({"x": 1}))])
        .await;
    let notices = bench.sink.0.lock();
    let started: Vec<_> = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::ToolStarted {
                name, arguments, ..
            } => Some((name.as_str(), arguments.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(
        started,
        [("fs_cat", r#"{"path":"a"}"#), ("nope", r#"{"x":1}"#)]
    );
    let ended: Vec<_> = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::ToolFinished {
                name, ok, bytes, ..
            } => Some((name.as_str(), *ok, *bytes)),
            _ => None,
        })
        .collect();
    assert!(ended.contains(&("fs_cat", true, 5)), "{ended:?}");
    assert!(ended.iter().any(|(name, ok, _)| *name == "nope" && !ok));
    assert_eq!(ended.len(), 2);
    assert!(notices.contains(&Notice::Activity(Some(Activity::Calling("fs_cat".into())))));
}

#[tokio::test]
async fn after_an_abort_every_call_is_answered_and_none_runs() {
    let mut bench = Bench::approving();
    bench.env.abort.cancel();
    let outputs = bench
        .batch(&[
            ("fs_write", json!({"path": "a", "content": "x"})),
            ("fs_ls", json!({})),
            ("mcp_search_s", json!({"query": "x"})),
        ])
        .await;
    for output in outputs {
        assert_eq!(output, ToolOutput::error("cancelled by the user"));
    }
    assert!(!bench.path().join("a").exists());
    assert!(bench.sink.0.lock().is_empty());
}

#[cfg(unix)]
#[tokio::test]
async fn an_abort_in_the_middle_answers_what_runs_and_what_waits() {
    let mut bench = Bench::approving();
    let (abort, started) = (bench.env.abort.clone(), bench.path().join("started"));
    let watcher = tokio::spawn(async move {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !started.exists() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        abort.cancel();
    });
    let outputs = bench
        .batch(&[
            ("fs_ls", json!({})),
            (
                "execute_command",
                json!({"command": "touch started; sleep 1000"}),
            ),
            ("fs_write", json!({"path": "late", "content": "x"})),
        ])
        .await;
    watcher.await.unwrap();
    assert!(!outputs[0].is_error);
    assert_eq!(outputs[1], ToolOutput::error("cancelled by the user"));
    assert_eq!(outputs[2], ToolOutput::error("cancelled by the user"));
    assert!(!bench.path().join("late").exists());
}

#[tokio::test]
async fn names_like_meta_functions_end_as_a_failed_invoke() {
    let mut bench = Bench::new();
    for name in [
        "mcp_bogus_x",
        "mcp_",
        "mcp_invoker",
        "mcp_read",
        "mcp_read_",
        "mcp_invoke_nobody",
    ] {
        for batch in [
            vec![(name, json!({}))],
            vec![(name, json!({})), ("fs_ls", json!({}))],
        ] {
            let outputs = bench.batch(&batch).await;
            let text = outputs[0].to_text();
            assert!(outputs[0].is_error);
            assert!(
                text.contains("cannot call a tool") && text.contains(name),
                "{text}"
            );
        }
    }
    for (name, verb) in [
        ("mcp_search_nobody", "cannot search"),
        ("mcp_describe_nobody", "cannot describe"),
        ("mcp_read_nobody", "cannot read"),
        ("mcp_prompt_nobody", "cannot render a prompt"),
    ] {
        assert!(bench.error(name, json!({})).await.starts_with(verb));
    }
}

#[test]
fn cuts_fall_between_characters() {
    let text = "🦊".repeat(300);
    for limit in 0..300 {
        let short = cut(text.clone(), limit);
        assert!(short.chars().count() <= limit, "{limit}");
    }
    assert_eq!(cut("🦊🦊".into(), 2), "🦊🦊");
    assert_eq!(cut("é🦊x".into(), 2), "é🦊");
    assert!(cut(text, 200).ends_with("[cut to 200 of 300 characters]"));
}

#[tokio::test]
async fn max_tool_result_chars_bounds_local_results_and_errors() {
    let mut bench = Bench::approving();
    bench.write("a", "🦊".repeat(5_000));
    bench.env.limits.max_tool_result_chars = Some(400);
    for (name, arguments) in [
        ("fs_cat", json!({"path": "a"})),
        ("fs_grep", json!({"pattern": "🦊"})),
        ("execute_command", json!({"command": "cat a"})),
        ("execute_command", json!({"command": "cat a; exit 1"})),
    ] {
        let output = bench.call(name, arguments).await;
        let text = match &output.value {
            Value::String(text) => text.clone(),
            value => value["tool_call_error"].as_str().unwrap().to_owned(),
        };
        assert!(
            text.chars().count() <= 400,
            "{name}: {}",
            text.chars().count()
        );
        assert!(text.contains("🦊"), "{name}");
    }
    let page = bench.ok("fs_cat", json!({"path": "a"})).await;
    assert!(
        page.contains("next_offset: 240"),
        "pages stay exact: {page}"
    );
}

#[tokio::test]
async fn permission_is_asked_in_call_order_one_at_a_time() {
    let mut bench = Bench::answering([Answer::Yes, Answer::No, Answer::Yes]);
    let write = |name: &str| ("fs_write", json!({"path": name, "content": "x"}));
    let outputs = bench.batch(&[write("a"), write("b"), write("c")]).await;
    let failed: Vec<_> = outputs.iter().map(|output| output.is_error).collect();
    assert_eq!(failed, [false, true, false]);
    assert!(bench.path().join("a").exists() && !bench.path().join("b").exists());
}
