//! Whole turns against a scripted provider over real HTTP.

use std::pin::Pin;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::chat::{Activity, Answer, Message, Notice, Question};
use crate::config::{AppConfig, Bootstrap, Env, Paths};
use crate::function::Functions;
use crate::mcp::{McpConfig, McpFactory, McpRegistry};
use crate::utils::ErrorKind;
use provider::{Piece, Provider, Reply, chat_calls, chat_text, delta, gate, status};

#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the tests of the program, which use more of it"
)]
#[path = "../../tests/support/provider.rs"]
pub(super) mod provider;

#[derive(Default)]
struct Recorder(Mutex<Vec<Notice>>);

impl NoticeSink for Recorder {
    fn notice(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

struct Nobody;

impl Ask for Nobody {
    fn ask(&self, _: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async { Answer::Unavailable })
    }
}

/// A context, a provider and a sink.
struct Stage {
    dir: tempfile::TempDir,
    provider: Provider,
    ctx: Arc<RwLock<RequestContext>>,
    sink: Arc<Recorder>,
    deps: Deps,
}

impl Stage {
    fn new(script: Vec<Reply>) -> Self {
        Self::with(script, "", McpConfig::default())
    }

    fn with(script: Vec<Reply>, more: &str, servers: McpConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let provider = Provider::new(script);
        let text = format!(
            "model: test:m\nenabled_tools: all\nclients:\n- type: openai-compatible\n  name: test\n  api_base: {}\n  \
             models:\n  - name: m\n{more}",
            provider.url()
        );
        let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
        let env = Env::new::<&str, &str>([]);
        let (app, warnings) = AppConfig::parse(&text, &paths.config_file(), &env).unwrap();
        assert_eq!(warnings, [""; 0]);
        let ctx = RequestContext::new(Bootstrap {
            paths,
            app,
            env,
            mcp: McpRegistry::new(servers, McpFactory::new()),
            functions: Functions::built_in(),
            cwd: dir.path().to_path_buf(),
        });
        let sink = Arc::new(Recorder::default());
        let deps = Deps {
            sink: Arc::clone(&sink) as Arc<dyn NoticeSink>,
            ask: Arc::new(Nobody),
            abort: AbortToken::new(),
            approve_all: true,
            approvals: Arc::new(Approvals::default()),
        };
        Self {
            dir,
            provider,
            ctx: Arc::new(RwLock::new(ctx)),
            sink,
            deps,
        }
    }

    async fn ask(&self, text: &str) -> Result<Outcome> {
        run(&self.ctx, Input::from_str(text), &self.deps).await
    }

    fn shown(&self) -> String {
        let notices = self.sink.0.lock();
        let texts = notices.iter().filter_map(|notice| match notice {
            Notice::Text(text) | Notice::Verbatim(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn warned(&self, part: &str) -> bool {
        let notices = self.sink.0.lock();
        notices.iter().any(|notice| match notice {
            Notice::Warning(text) | Notice::Info(text) => text.contains(part),
            _ => false,
        })
    }

    /// The messages of the `n`-th request, without the system prompt.
    fn sent(&self, n: usize) -> Vec<Value> {
        let body = self.provider.asked()[n].body.clone();
        body["messages"].as_array().unwrap().clone()
    }
}

async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn an_answer_is_streamed_and_returned() {
    let stage = Stage::new(vec![chat_text("hello there 🦊")]);
    let outcome = stage.ask("hi").await.unwrap();
    assert_eq!(outcome.text, "hello there 🦊");
    assert_eq!((outcome.interrupted, outcome.rounds), (false, 1));
    assert_eq!(stage.shown(), "hello there 🦊");
    let notices = stage.sink.0.lock();
    assert_eq!(notices[0], Notice::Activity(Some(Activity::Thinking)));
    assert_eq!(
        notices[notices.len() - 2..],
        [Notice::TextEnd, Notice::Activity(None)]
    );
    assert_eq!(stage.ctx.read().last_answer(), Some("hello there 🦊"));
}

#[tokio::test]
async fn calls_are_run_and_their_results_sent_in_order() {
    let stage = Stage::new(vec![
        chat_calls(&[
            ("call_1", "fs_cat", json!({"path": "a"})),
            ("call_2", "nonsense", json!({})),
            ("call_3", "fs_cat", json!({"path": "b"})),
        ]),
        chat_text("done"),
    ]);
    std::fs::write(stage.dir.path().join("a"), "AAA").unwrap();
    std::fs::write(stage.dir.path().join("b"), "BBB").unwrap();
    let outcome = stage.ask("read").await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.rounds), ("done", 2));
    let sent = stage.sent(1);
    assert_eq!(sent.len(), 5, "{sent:#?}");
    let ids: Vec<_> = sent[1]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["id"])
        .collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3"]);
    let results: Vec<_> = sent[2..]
        .iter()
        .map(|m| (m["role"].clone(), m["tool_call_id"].clone()))
        .collect();
    assert_eq!(results[0], (json!("tool"), json!("call_1")));
    assert_eq!(results[2], (json!("tool"), json!("call_3")));
    assert!(sent[2].to_string().contains("AAA") && sent[4].to_string().contains("BBB"));
    assert!(sent[3].to_string().contains("no function `nonsense`"));
}

#[tokio::test]
async fn a_session_keeps_every_round_and_replays_it() {
    let stage = Stage::new(vec![
        chat_calls(&[("call_1", "get_current_time", json!({}))]),
        chat_text("first"),
        chat_text("second"),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    stage.ask("one").await.unwrap();
    stage.ask("two").await.unwrap();
    let roles: Vec<_> = stage
        .sent(2)
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(stage.ctx.read().messages().len(), 6);
}

#[tokio::test]
async fn interrupting_keeps_the_partial_answer_and_frees_the_provider() {
    let (_open, shut) = gate();
    let stage = Stage::new(vec![
        Reply::Stream {
            pieces: vec![
                delta(&json!({"content": "half an "})),
                delta(&json!({"content": "answer"})),
                shut,
            ],
            cut: false,
        },
        chat_text("next"),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    let abort = stage.deps.abort.clone();
    let watch = async {
        eventually("text", || stage.shown() == "half an answer").await;
        abort.cancel();
    };
    let (outcome, ()) = tokio::join!(stage.ask("go"), watch);
    let outcome = outcome.unwrap();
    assert!(outcome.interrupted);
    assert_eq!(outcome.text, "half an answer");
    eventually("the provider is let go", || stage.provider.hung_up() == 1).await;
    assert_eq!(
        stage.ctx.read().messages(),
        [Message::user("go"), Message::assistant("half an answer")]
    );
    let deps = Deps {
        abort: AbortToken::new(),
        ..stage.deps.clone()
    };
    let outcome = run(&stage.ctx, Input::from_str("again"), &deps)
        .await
        .unwrap();
    assert_eq!(outcome.text, "next");
    assert_eq!(stage.sent(1).len(), 3);
}

#[cfg(unix)]
#[tokio::test]
async fn interrupting_a_running_call_answers_it() {
    let stage = Stage::new(vec![
        chat_calls(&[
            (
                "call_1",
                "execute_command",
                json!({"command": "touch started; sleep 1000"}),
            ),
            ("call_2", "fs_ls", json!({})),
        ]),
        chat_text("next"),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    let started = stage.dir.path().join("started");
    let abort = stage.deps.abort.clone();
    let watch = async {
        eventually("the command", || started.exists()).await;
        abort.cancel();
    };
    let (outcome, ()) = tokio::join!(stage.ask("go"), watch);
    assert!(outcome.unwrap().interrupted);
    let ctx = stage.ctx.read();
    let [_, Message::Assistant { calls, .. }, Message::Tool(results)] = ctx.messages() else {
        panic!("{:?}", ctx.messages())
    };
    let answered: Vec<_> = results.iter().map(|result| &result.call.id).collect();
    assert_eq!(
        answered,
        calls.iter().map(|call| &call.id).collect::<Vec<_>>()
    );
    assert!(
        results[0]
            .output
            .to_text()
            .contains("cancelled by the user")
    );
    assert_eq!(
        stage.provider.asked().len(),
        1,
        "nothing is sent after the interruption"
    );
}

#[tokio::test]
async fn a_provider_error_leaves_the_session_as_it_was_and_usable() {
    let stage = Stage::new(vec![
        status(400, r#"{"error":{"message":"no such model"}}"#),
        chat_text("fine"),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    let error = stage.ask("go").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Provider);
    assert!(error.to_string().contains("no such model"), "{error}");
    assert!(stage.ctx.read().messages().is_empty());
    assert_eq!(stage.sink.0.lock().last(), Some(&Notice::Activity(None)));
    assert_eq!(stage.ask("again").await.unwrap().text, "fine");
    assert_eq!(stage.sent(1).len(), 1);
}

#[tokio::test]
async fn an_error_in_a_later_round_keeps_the_finished_ones() {
    let stage = Stage::new(vec![
        chat_calls(&[("call_1", "get_current_time", json!({}))]),
        status(400, r#"{"error":{"message":"broken"}}"#),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    stage.ask("go").await.unwrap_err();
    assert_eq!(stage.ctx.read().messages().len(), 3);
}

#[tokio::test]
async fn a_cut_stream_keeps_its_text_and_runs_none_of_its_calls() {
    let Reply::Stream { pieces, .. } =
        chat_calls(&[("call_1", "execute_command", json!({"command": "touch ran"}))])
    else {
        panic!()
    };
    let mut cut: Vec<Piece> = vec![delta(&json!({"content": "I will"}))];
    cut.extend(pieces.into_iter().take(3));
    let stage = Stage::new(vec![Reply::Stream {
        pieces: cut,
        cut: true,
    }]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    stage.ask("go").await.unwrap_err();
    assert!(!stage.dir.path().join("ran").exists());
    assert_eq!(
        stage.ctx.read().messages(),
        [Message::user("go"), Message::assistant("I will")]
    );
}

#[tokio::test]
async fn max_rounds_ends_the_turn_with_a_notice() {
    let script = (0..9)
        .map(|n| {
            chat_calls(&[(
                &format!("call_{n}"),
                "fs_ls",
                json!({"path": format!("/{n}")}),
            )])
        })
        .collect();
    let stage = Stage::with(script, "max_rounds: 3\n", McpConfig::default());
    let outcome = stage.ask("go").await.unwrap();
    assert_eq!(outcome.rounds, 3);
    assert_eq!(stage.provider.asked().len(), 3);
    assert!(stage.warned("`max_rounds`"));
}

#[tokio::test]
async fn a_repeated_call_is_told_so_across_rounds() {
    let again = || chat_calls(&[("c", "execute_command", json!({"command": "echo x >> log"}))]);
    let stage = Stage::new(vec![again(), again(), again(), chat_text("ok")]);
    stage.ask("go").await.unwrap();
    assert_eq!(
        std::fs::read_to_string(stage.dir.path().join("log")).unwrap(),
        "x\nx\n"
    );
    let last = stage.sent(3).last().unwrap().to_string();
    assert!(last.contains("3rd identical call"), "{last}");
}

#[tokio::test]
async fn nothing_to_ask_and_no_model_are_errors_that_change_nothing() {
    let stage = Stage::new(vec![]);
    assert!(stage.ask("  ").await.is_err());
    assert!(stage.provider.asked().is_empty());
    let _ = stage.ctx.write().set_model("test:m");
}

#[tokio::test]
async fn a_dry_run_shows_the_body_and_sends_nothing() {
    let stage = Stage::with(vec![], "dry_run: true\n", McpConfig::default());
    let outcome = stage.ask("hello").await.unwrap();
    let body: Value = serde_json::from_str(&outcome.text).unwrap();
    assert_eq!(body["messages"][0]["content"], "hello");
    assert!(body["tools"].as_array().unwrap().len() >= 11);
    assert_eq!(stage.shown(), outcome.text);
    assert!(stage.provider.asked().is_empty());
    assert_eq!(stage.ctx.read().last_answer(), None);
}

#[tokio::test]
async fn a_dry_run_needs_no_model() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
    let env = Env::new::<&str, &str>([]);
    let (app, _) = AppConfig::parse("dry_run: true\n", &paths.config_file(), &env).unwrap();
    let stage = Stage::new(vec![]);
    let ctx = Arc::new(RwLock::new(RequestContext::new(Bootstrap {
        paths,
        app,
        env,
        mcp: McpRegistry::new(McpConfig::default(), McpFactory::new()),
        functions: Functions::built_in(),
        cwd: dir.path().to_path_buf(),
    })));
    let outcome = run(&ctx, Input::from_str("hello"), &stage.deps)
        .await
        .unwrap();
    assert!(outcome.text.contains("\"hello\""), "{}", outcome.text);
}

#[tokio::test]
async fn continuing_grows_the_answer_and_regenerating_replaces_it() {
    let stage = Stage::new(vec![
        chat_text("one two"),
        chat_text(" three"),
        chat_text("other"),
    ]);
    stage.ctx.write().enter_session(Some("s")).unwrap();
    stage.ask("count").await.unwrap();
    let input = stage.ctx.read().continue_input().unwrap();
    run(&stage.ctx, input, &stage.deps).await.unwrap();
    assert_eq!(
        stage.ctx.read().messages(),
        [Message::user("count"), Message::assistant("one two three")]
    );
    let input = stage.ctx.write().regenerate_input().unwrap();
    run(&stage.ctx, input, &stage.deps).await.unwrap();
    assert_eq!(
        stage.ctx.read().messages(),
        [Message::user("count"), Message::assistant("other")]
    );
    assert_eq!(stage.sent(2).len(), 1);
}

/// Servers from the scripted program.
fn servers(entries: &[(&str, &str)]) -> McpConfig {
    let mut config = McpConfig::default();
    for (name, scenario) in entries {
        let spec = crate::mcp::test_support::fake(name, scenario);
        config.servers.insert(spec.name.clone(), Ok(spec));
    }
    config
}

fn declared(stage: &Stage, n: usize) -> Vec<String> {
    let body = stage.provider.asked()[n].body.clone();
    let tools = body["tools"].as_array().cloned().unwrap_or_default();
    let names = tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
    names.filter(|name| name.starts_with("mcp_")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_waits_for_servers_that_are_connecting_and_names_them() {
    let stage = Stage::with(
        vec![chat_text("ok")],
        "",
        servers(&[("full", "full"), ("gone", "exit3")]),
    );
    stage.ask("hi").await.unwrap();
    let names = declared(&stage, 0);
    assert!(names.contains(&"mcp_search_full".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with("_gone")));
    let waited = stage.sink.0.lock().iter().any(|notice| {
        matches!(notice, Notice::Activity(Some(Activity::Connecting(names))) if names.contains(&"full".to_owned()))
    });
    assert!(waited);
    let registry = Arc::clone(stage.ctx.read().registry());
    registry.close_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_a_server_that_hangs_can_be_cancelled() {
    let stage = Stage::with(vec![chat_text("never")], "", servers(&[("hangs", "hang")]));
    let abort = stage.deps.abort.clone();
    let watch = async {
        eventually("connecting", || {
            stage
                .sink
                .0
                .lock()
                .iter()
                .any(|notice| matches!(notice, Notice::Activity(Some(Activity::Connecting(_)))))
        })
        .await;
        abort.cancel();
    };
    let (outcome, ()) = tokio::join!(stage.ask("hi"), watch);
    assert!(outcome.unwrap().interrupted);
    assert!(stage.provider.asked().is_empty());
    assert!(stage.ctx.read().turn_messages().is_empty());
    let registry = Arc::clone(stage.ctx.read().registry());
    registry.close_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_ready_is_left_out_with_a_notice() {
    let stage = Stage::with(vec![], "", servers(&[("hangs", "hang"), ("slow", "hang")]));
    let limit = Duration::from_millis(50);
    waiting::for_servers(&stage.ctx, &stage.deps, limit)
        .await
        .unwrap();
    assert!(stage.warned("`hangs` and `slow` are still connecting and left out of this request"));
    let registry = Arc::clone(stage.ctx.read().registry());
    registry.close_all().await;
}

/// Switches a tool off as soon as a call has ended.
struct Switch(Arc<RwLock<RequestContext>>);

impl NoticeSink for Switch {
    fn notice(&self, notice: Notice) {
        if matches!(notice, Notice::ToolFinished { .. }) {
            self.0
                .write()
                .toggle_tools(&["fs_rm".to_owned()], false)
                .unwrap();
        }
    }
}

#[tokio::test]
async fn every_round_offers_what_is_true_then() {
    let stage = Stage::new(vec![
        chat_calls(&[("call_1", "get_current_time", json!({}))]),
        chat_text("ok"),
    ]);
    let deps = Deps {
        sink: Arc::new(Switch(Arc::clone(&stage.ctx))),
        ..stage.deps.clone()
    };
    run(&stage.ctx, Input::from_str("go"), &deps).await.unwrap();
    let offers = |n: usize| {
        stage.provider.asked()[n].body["tools"]
            .to_string()
            .contains("fs_rm")
    };
    assert_eq!((offers(0), offers(1)), (true, false));
}
