use serde_json::json;

use super::*;
use crate::function::testing::Bench;

fn hints(read_only: Option<bool>, destructive: Option<bool>) -> ToolHints {
    ToolHints {
        read_only,
        destructive,
    }
}

#[test]
fn destructive_asks_by_annotation_and_origin() {
    use Origin::{Builtin, User, Workspace};
    let rows = [
        (None, User, true),
        (Some(hints(None, None)), User, false),
        (Some(hints(None, Some(true))), User, true),
        (Some(hints(None, Some(false))), User, false),
        (Some(hints(Some(true), Some(true))), User, true),
        (Some(hints(Some(false), None)), User, false),
        (Some(hints(None, None)), Builtin, false),
        (Some(hints(None, None)), Workspace, true),
        (Some(hints(Some(false), None)), Workspace, true),
        (Some(hints(Some(true), None)), Workspace, false),
        (Some(hints(Some(true), Some(true))), Workspace, true),
        (None, Workspace, true),
    ];
    for (hints, origin, expected) in rows {
        assert_eq!(asks(hints, origin), expected, "{hints:?} {origin:?}");
    }
}

#[tokio::test]
async fn without_a_terminal_it_is_refused_and_says_how_to_approve() {
    let mut bench = Bench::new();
    let error = bench
        .error("fs_write", json!({"path": "a", "content": "x"}))
        .await;
    assert!(
        error.contains("`-y`") && error.contains("terminal"),
        "{error}"
    );
    assert!(!bench.path().join("a").exists());
}

#[tokio::test]
async fn no_and_cancelled_refuse_this_call_only() {
    for answer in [Answer::No, Answer::Cancelled, Answer::Text("y".into())] {
        let mut bench = Bench::answering([answer, Answer::Yes]);
        let error = bench
            .error("fs_write", json!({"path": "a", "content": "x"}))
            .await;
        assert!(error.contains("declined"), "{error}");
        assert!(!bench.path().join("a").exists());
        bench
            .ok("fs_write", json!({"path": "a", "content": "x"}))
            .await;
        assert_eq!(bench.ask.asked.lock().len(), 2);
    }
}

#[tokio::test]
async fn yes_is_once_and_always_is_for_that_tool() {
    let mut bench = Bench::answering([Answer::Yes, Answer::Always, Answer::No]);
    for name in ["a", "b", "c"] {
        bench
            .ok("fs_write", json!({"path": name, "content": "x"}))
            .await;
    }
    assert_eq!(bench.ask.asked.lock().len(), 2);
    bench.error("fs_rm", json!({"path": "a"})).await;
    assert_eq!(
        bench.ask.asked.lock().len(),
        3,
        "another tool asks for itself"
    );
    bench.env.session_approvals.clear();
    bench
        .error("fs_write", json!({"path": "d", "content": "x"}))
        .await;
}

#[tokio::test]
async fn approve_all_asks_nobody() {
    let mut bench = Bench::approving();
    bench
        .ok("fs_write", json!({"path": "a", "content": "x"}))
        .await;
    bench.ok("fs_mkdir", json!({"path": "d"})).await;
    bench
        .ok(
            "fs_patch",
            json!({"path": "a", "edits": [{"search": "x", "replace": "y"}]}),
        )
        .await;
    bench
        .ok("execute_command", json!({"command": "echo hi"}))
        .await;
    bench.ok("fs_rm", json!({"path": "a"})).await;
    assert!(bench.ask.asked.lock().is_empty());
}

#[tokio::test]
async fn reading_asks_nobody() {
    let mut bench = Bench::new();
    bench.write("a", "x");
    bench.ok("fs_cat", json!({"path": "a"})).await;
    bench.ok("fs_ls", json!({})).await;
    bench.ok("fs_glob", json!({"pattern": "*"})).await;
    bench.ok("fs_grep", json!({"pattern": "x"})).await;
    bench.ok("get_current_time", json!({})).await;
    assert!(bench.ask.asked.lock().is_empty());
}

#[tokio::test]
async fn a_question_says_what_and_shows_it() {
    let mut bench = Bench::answering([Answer::No, Answer::No]);
    bench
        .error(
            "execute_command",
            json!({"command": "rm -rf /tmp/x\necho done"}),
        )
        .await;
    let long = "x".repeat(10_000);
    bench
        .error(
            "fs_write",
            json!({"path": "a", "content": vec![long; 100].join("\n")}),
        )
        .await;
    let asked = bench.ask.asked.lock();
    let Question::Permission { title, details } = &asked[0] else {
        panic!()
    };
    assert!(title.starts_with("run a command in "), "{title}");
    assert_eq!(details, &["rm -rf /tmp/x", "echo done"]);
    let Question::Permission { details, .. } = &asked[1] else {
        panic!()
    };
    assert_eq!(details.len(), DETAIL_LINES + 1);
    assert_eq!(details.last().unwrap(), "… 76 more lines");
    assert!(details.iter().all(|line| line.len() <= DETAIL_WIDTH));
}

#[tokio::test]
async fn cancelling_closes_an_open_question() {
    struct Never;
    impl crate::chat::Ask for Never {
        fn ask(&self, _: Question) -> std::pin::Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
            Box::pin(std::future::pending())
        }
    }
    let mut bench = Bench::new();
    bench.env.ask = std::sync::Arc::new(Never);
    let abort = bench.env.abort.clone();
    let (error, ()) = tokio::join!(
        bench.error("fs_write", json!({"path": "a", "content": "x"})),
        async move { abort.cancel() }
    );
    assert_eq!(error, "cancelled by the user");
}

#[test]
fn an_mcp_question_shows_server_tool_and_arguments() {
    let arguments = json!({"path": "/etc", "deep": {"a": 1}});
    let lines = argument_lines(arguments.as_object().unwrap());
    assert_eq!(lines, ["path: \"/etc\"", "deep: {\"a\":1}"]);
}
