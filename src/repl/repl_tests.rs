use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;

use super::*;
use crate::chat::Message;
use crate::config::{AppConfig, Bootstrap, Env, Input, Paths};
use crate::function::Functions;
use crate::mcp::spec;
use crate::mcp::{McpConfig, McpFactory, McpRegistry, Origin};
use crate::render::RenderOptions;
use crate::utils::fs::{Access, write_atomic};

/// Answers from a list, and remembers what was asked.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Question>>,
}

impl Ask for Script {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.asked.lock().push(question);
        let answer = self.answers.lock().pop_front();
        Box::pin(async move { answer.unwrap_or(Answer::Unavailable) })
    }
}

struct Bench {
    repl: Repl,
    script: Arc<Script>,
    lines: Arc<Mutex<Vec<String>>>,
    dir: tempfile::TempDir,
    log: Option<std::path::PathBuf>,
}

impl Bench {
    fn new(config: &str) -> Self {
        Self::with_servers(config, "{}")
    }

    fn with_servers(config: &str, servers: &str) -> Self {
        Self::with(config, servers, &[])
    }

    fn with(config: &str, servers: &str, variables: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
        write_atomic(&paths.config_file(), config.as_bytes(), Access::Private).unwrap();
        let env = Env::new(variables.iter().copied());
        let (app, warnings) = AppConfig::load(&paths, &env).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        let servers = if servers == "{}" {
            McpConfig::default()
        } else {
            spec::parse(servers, Path::new("mcp.json"), Origin::User, &|_| None).unwrap()
        };
        let (functions, _) = Functions::load(&paths.functions_dir());
        let ctx = RequestContext::new(Bootstrap {
            paths,
            app,
            env,
            mcp: McpRegistry::new(servers, McpFactory::new()),
            functions,
            cwd: dir.path().to_owned(),
        });
        let ui = Ui::new(RenderOptions::plain());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        ui.set_line_sink(Some(Arc::new(move |line| sink.lock().push(line))));
        let script = Arc::new(Script::default());
        let start = Start {
            ctx: Arc::new(RwLock::new(ctx)),
            ui,
            ask: script.clone(),
            approve_all: false,
            hints: Vec::new(),
            prelude: None,
        };
        Self {
            repl: Repl::new(start, Signals::default()),
            script,
            lines,
            dir,
            log: None,
        }
    }

    fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.script.answers.lock().extend(answers);
    }

    fn asked(&self) -> usize {
        self.script.asked.lock().len()
    }

    async fn does(&mut self, line: &str) {
        let flow = self.repl.do_line(line).await;
        assert_eq!(flow.unwrap(), Flow::Continue, "{line}");
    }

    async fn refuses(&mut self, line: &str) -> Error {
        match self.repl.do_line(line).await {
            Err(error) => error,
            Ok(flow) => panic!("{line}: {flow:?}"),
        }
    }

    fn said(&self) -> String {
        std::mem::take(&mut *self.lines.lock()).join("\n")
    }

    /// An exchange, as a turn would record it.
    fn exchange(&self, question: &str, answer: &str) {
        let mut ctx = self.repl.ctx.write();
        ctx.begin(&Input::from_str(question)).unwrap();
        ctx.record(Message::assistant(answer));
        ctx.commit().unwrap();
    }

    fn session_names(&self) -> Vec<String> {
        self.repl.ctx.read().paths().session_names()
    }

    fn in_session(&self) -> bool {
        self.repl.ctx.read().session().is_some()
    }

    fn role(&self) -> Option<String> {
        let ctx = self.repl.ctx.read();
        ctx.role().map(|role| role.name().to_owned())
    }
}

#[tokio::test]
async fn an_error_is_shown_and_the_loop_goes_on() {
    let mut bench = Bench::new("");
    assert_eq!(bench.repl.line(".sesion work").await, Flow::Continue);
    let said = bench.said();
    assert!(said.contains("unknown command `.sesion`"), "{said}");
    assert!(said.contains("`.session`"), "{said}");
    assert!(!bench.in_session());
    assert_eq!(bench.repl.line(".exit").await, Flow::Exit);
}

#[tokio::test]
async fn a_command_that_makes_no_sense_now_says_what_would_help() {
    let mut bench = Bench::new("");
    for line in [
        ".empty",
        ".compress",
        ".save session",
        ".continue",
        ".regenerate",
        ".undo",
        ".copy",
        ".mcp list",
    ] {
        let error = bench.refuses(line).await;
        assert!(!error.hints().is_empty(), "{line}: {error}");
    }
}

#[tokio::test]
async fn settings_change_the_active_layer() {
    let mut bench = Bench::new("");
    bench.does(".set temperature 0.5").await;
    assert!(bench.said().contains("global"));
    assert_eq!(bench.repl.ctx.read().temperature(), Some(0.5));
    bench.does(".session").await;
    bench.does(".set temperature 0.7").await;
    assert!(bench.said().contains("session"));
    assert_eq!(bench.repl.ctx.read().temperature(), Some(0.7));
    bench.does(".exit session").await;
    assert_eq!(bench.repl.ctx.read().temperature(), Some(0.5));
    let error = bench.refuses(".set temprature 1").await;
    assert!(
        error
            .hints()
            .iter()
            .any(|hint| hint.contains("temperature"))
    );
    bench.refuses(".set temperature hot").await;
}

#[tokio::test]
async fn leaving_a_session_asks_when_nothing_is_configured() {
    let mut bench = Bench::new("");
    for (answers, kept) in [(vec![Answer::No], None), (vec![Answer::Yes], Some("one"))] {
        bench.does(".session one").await;
        bench.exchange("q", "a");
        bench.answers(answers);
        bench.does(".exit session").await;
        assert!(!bench.in_session());
        assert_eq!(bench.session_names(), Vec::from_iter(kept));
    }
    assert_eq!(bench.asked(), 2);
}

#[tokio::test]
async fn who_gives_no_answer_stays_in_the_session() {
    let mut bench = Bench::new("");
    bench.does(".session one").await;
    bench.exchange("q", "a");
    bench.answers([Answer::Cancelled, Answer::Cancelled]);
    bench.refuses(".exit session").await;
    assert_eq!(bench.repl.line(".exit").await, Flow::Continue);
    assert!(bench.in_session());
    assert_eq!(bench.repl.ctx.read().messages().len(), 2);
}

#[tokio::test]
async fn a_session_without_a_name_gets_one_when_it_is_saved() {
    let mut bench = Bench::new("");
    bench.does(".session").await;
    bench.exchange("q", "a");
    bench.answers([Answer::Yes, Answer::Text("named".to_owned())]);
    bench.does(".exit session").await;
    assert_eq!(bench.session_names(), ["named"]);
}

#[tokio::test]
async fn a_configured_policy_asks_nothing() {
    let mut bench = Bench::new("save_session: true\n");
    bench.does(".session one").await;
    bench.exchange("q", "a");
    assert_eq!(bench.session_names(), ["one"], "saved after the exchange");
    bench.does(".session two").await;
    bench.exchange("q", "a");
    bench.does(".exit session").await;
    assert_eq!(bench.session_names(), ["one", "two"]);

    let mut bench = Bench::new("save_session: false\n");
    bench.does(".session one").await;
    bench.exchange("q", "a");
    bench.does(".exit session").await;
    assert_eq!(bench.session_names(), Vec::<String>::new());
    assert_eq!(bench.asked(), 0);
}

#[tokio::test]
async fn when_nobody_can_be_asked_a_named_session_is_saved() {
    let mut bench = Bench::new("");
    bench.does(".session one").await;
    bench.exchange("q", "a");
    handlers::leave_unasked(&mut bench.repl);
    bench.does(".session").await;
    bench.exchange("q", "a");
    handlers::leave_unasked(&mut bench.repl);
    assert_eq!(bench.session_names(), ["one"]);
    assert_eq!(bench.asked(), 0);
    assert!(!bench.in_session());
}

#[tokio::test]
async fn sessions_are_resumed_emptied_saved_and_deleted() {
    let mut bench = Bench::new("save_session: true\n");
    bench.does(".session one").await;
    bench.exchange("first", "a");
    bench.exchange("second", "b");
    bench.does(".undo").await;
    assert_eq!(bench.repl.ctx.read().messages().len(), 2);
    bench.refuses(".session one").await;
    bench.refuses(".delete session one").await;
    bench.does(".exit session").await;
    bench.said();
    bench.does(".session one").await;
    assert!(bench.said().contains("2 messages"));
    assert_eq!(bench.repl.ctx.read().last_answer(), Some("a"));
    bench.does(".save session other").await;
    bench.does(".empty").await;
    assert!(bench.repl.ctx.read().messages().is_empty());
    bench.does(".exit session").await;
    assert_eq!(bench.session_names(), ["one", "other"]);
    bench.answers([Answer::Choices(vec![1])]);
    bench.does(".delete session").await;
    bench.does(".delete session one").await;
    assert_eq!(bench.session_names(), Vec::<String>::new());
    bench.refuses(".delete session one").await;
}

#[tokio::test]
async fn roles_are_taken_on_saved_left_and_deleted() {
    let mut bench = Bench::new("");
    bench.does(".role shell").await;
    assert_eq!(bench.role().as_deref(), Some("shell"));
    bench.does(".exit role").await;
    assert_eq!(bench.role(), None);
    let error = bench.refuses(".role shel").await;
    assert!(error.hints().iter().any(|hint| hint.contains("shell")));
    bench.refuses(".temp-role").await;
    bench.does(".temp-role you're a poet").await;
    assert_eq!(
        bench.repl.ctx.read().system().as_deref(),
        Some("you're a poet")
    );
    bench.refuses(".save role").await;
    bench.does(".save role poet").await;
    bench.refuses(".delete role poet").await;
    bench.does(".exit role").await;
    bench.does(".delete role poet").await;
    assert_eq!(
        bench.repl.ctx.read().paths().role_names(),
        Vec::<String>::new()
    );
    bench.answers([Answer::Choices(vec![0]), Answer::Cancelled]);
    bench.does(".role").await;
    assert!(bench.role().is_some());
    bench.does(".exit role").await;
    bench.does(".role").await;
    assert_eq!(bench.role(), None);
}

#[tokio::test]
async fn tools_are_switched_in_the_active_layer() {
    let mut bench = Bench::new("");
    let enabled = |bench: &Bench| bench.repl.ctx.read().selection().tools;
    bench.does(".tool enable fs_cat fs_ls").await;
    assert_eq!(enabled(&bench), ["fs_cat", "fs_ls"]);
    bench.does(".session").await;
    bench.does(".tool disable fs_cat").await;
    assert_eq!(enabled(&bench), ["fs_ls"]);
    bench.does(".exit session").await;
    assert_eq!(enabled(&bench), ["fs_cat", "fs_ls"]);
    let error = bench.refuses(".tool enable fs_cta").await;
    assert!(error.hints().iter().any(|hint| hint.contains("fs_cat")));
}

const SERVERS: &str = r#"{"mcpServers": {
    "broken": {"command": "/nowhere/server"},
    "off": {"command": "/nowhere/server", "disabled": true}
}}"#;

#[tokio::test]
async fn a_server_that_cannot_start_is_said_and_costs_nothing_else() {
    let mut bench = Bench::with_servers("enabled_mcp_servers: null\n", SERVERS);
    let selected = |bench: &Bench| -> Vec<String> {
        let selection = bench.repl.ctx.read().selection();
        selection.servers.iter().map(ToString::to_string).collect()
    };
    assert_eq!(selected(&bench), Vec::<String>::new());
    bench.does(".mcp enable broken").await;
    assert_eq!(selected(&bench), ["broken"]);
    let said = bench.said();
    assert!(said.contains("`broken` is not available"), "{said}");
    assert!(said.contains(".info mcp broken"), "{said}");
    bench.refuses(".mcp restart broken").await;
    let error = bench.refuses(".mcp restart brokn").await;
    assert!(error.hints().iter().any(|hint| hint.contains("`broken`")));
    bench.refuses(".mcp enable off").await;
    bench.does(".info mcp broken").await;
    bench.does(".mcp list").await;
    bench.does(".mcp disable broken").await;
    assert_eq!(selected(&bench), Vec::<String>::new());
    bench.does(".set enabled_mcp_servers all").await;
    assert_eq!(selected(&bench), ["broken"]);
}

#[tokio::test]
async fn every_list_and_info_answers() {
    let mut bench = Bench::with_servers("", SERVERS);
    bench.does(".role shell").await;
    bench.does(".session").await;
    for line in [
        ".help",
        ".help set",
        ".info",
        ".info role",
        ".info session",
        ".info tools",
        ".info mcp",
        ".list roles",
        ".list sessions",
        ".list tools",
        ".list mcp-servers",
    ] {
        bench.does(line).await;
    }
    assert!(bench.refuses(".help sett").await.hints()[0].contains(".set"));
    bench.refuses(".info mcp nothing").await;
}

#[tokio::test]
async fn a_server_that_fails_in_the_background_is_said_once() {
    let bench = Bench::with_servers("", SERVERS);
    handlers::start_selected(&bench.repl);
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while bench.lines.lock().is_empty() {
        assert!(std::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    let said = bench.said();
    assert!(said.contains("`broken` is not available"), "{said}");
    assert!(!said.contains("`off`"), "{said}");
    assert_eq!(bench.repl.reported.lock().len(), 1);
}

/// A provider that gives these answers in turn, over real HTTP; `None` is a failure. Keeps what it was asked.
fn provider(answers: Vec<Option<&'static str>>) -> (String, Arc<Mutex<Vec<String>>>) {
    use std::io::{BufRead as _, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            kept.lock().push(String::from_utf8(body).unwrap());
            let (status, body) = match answer {
                Some(text) => {
                    let event =
                        serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]});
                    let end = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
                    (
                        "200 OK",
                        format!("data: {event}\n\ndata: {end}\n\ndata: [DONE]\n\n"),
                    )
                }
                None => (
                    "400 Bad Request",
                    r#"{"error": {"message": "no such thing"}}"#.to_owned(),
                ),
            };
            let kind = if answer.is_some() {
                "text/event-stream"
            } else {
                "application/json"
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (format!("http://127.0.0.1:{port}/v1"), asked)
}

fn asking(answers: Vec<Option<&'static str>>) -> (Bench, Arc<Mutex<Vec<String>>>) {
    let (url, asked) = provider(answers);
    let config = format!(
        "model: t:m\nclients: [{{type: openai-compatible, name: t, api_base: '{url}', models: [{{name: m}}]}}]\n"
    );
    (Bench::new(&config), asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_error_leaves_the_session_as_it_was() {
    let (mut bench, _) = asking(vec![Some("one"), None, None, Some("two")]);
    bench.does(".session work").await;
    bench.does("first").await;
    let error = bench.refuses("second").await;
    assert!(format!("{error:?}").contains("no such thing"), "{error:?}");
    assert_eq!(bench.repl.ctx.read().messages().len(), 2);
    bench.refuses(".regenerate").await;
    assert_eq!(bench.repl.ctx.read().last_answer(), Some("one"));
    bench.does(".regenerate").await;
    assert_eq!(bench.repl.ctx.read().last_answer(), Some("two"));
    assert_eq!(bench.repl.ctx.read().messages().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_takes_the_place_of_the_messages() {
    let (mut bench, asked) = asking(vec![Some("one"), None, Some("in short"), Some("more")]);
    bench.does(".session work").await;
    bench.does("a long story").await;
    bench.refuses(".compress").await;
    assert_eq!(bench.repl.ctx.read().last_answer(), Some("one"));
    bench.does(".compress").await;
    assert_eq!(bench.repl.ctx.read().messages().len(), 2);
    assert_eq!(bench.repl.ctx.read().last_answer(), Some("in short"));
    bench.does("go on").await;
    let last = asked.lock().last().cloned().unwrap();
    assert!(
        last.contains("in short") && !last.contains("a long story"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_for_one_question_is_left_again() {
    let (mut bench, asked) = asking(vec![Some("one"), None]);
    bench.does(".temp-role You are a poet.").await;
    bench.does(".role shell what's here?").await;
    assert_eq!(
        bench.repl.ctx.read().system().as_deref(),
        Some("You are a poet.")
    );
    let first = asked.lock().first().cloned().unwrap();
    assert!(
        first.contains("what's here?") && !first.contains("poet"),
        "{first}"
    );
    bench.refuses(".role shell again").await;
    assert_eq!(
        bench.repl.ctx.read().system().as_deref(),
        Some("You are a poet.")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn text_between_markers_is_asked_and_does_nothing_else() {
    let (mut bench, asked) = asking(vec![Some("one"), Some("two")]);
    bench.does(":::\n!touch pwned\n:::").await;
    bench.does("::: .exit :::").await;
    assert!(!bench.dir.path().join("pwned").exists());
    let asked = asked.lock();
    assert!(asked[0].contains("!touch pwned"), "{}", asked[0]);
    assert!(asked[1].contains(".exit"), "{}", asked[1]);
}

#[tokio::test]
async fn a_prelude_is_a_role_a_session_or_a_line() {
    let mut bench = Bench::new("");
    bench.repl.prelude("role:shell").await;
    assert_eq!(bench.role().as_deref(), Some("shell"));
    bench.repl.prelude("session:one").await;
    assert!(!bench.in_session(), "a role is in force already");

    let mut bench = Bench::new("");
    bench.repl.prelude(".set stream false").await;
    assert!(!bench.repl.ctx.read().app().stream);
    bench.repl.prelude("session:one").await;
    assert!(bench.in_session());

    let mut bench = Bench::new("");
    assert_eq!(bench.repl.prelude("nonsense").await, Flow::Continue);
    assert!(bench.said().contains("prelude"));
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error() {
    let mut bench = Bench::new("");
    let error = bench.refuses(".file naïve.txt -- sum").await;
    assert!(error.to_string().contains("naïve.txt"), "{error}");
}

#[cfg(unix)]
mod with_programs {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// An editor that appends `text` to what it opens.
    fn editor(dir: &Path, text: &str) -> String {
        let file = dir.join("editor");
        let script = format!("#!/bin/sh\nprintf '%s\\n' '{text}' >> \"$1\"\n");
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file.display().to_string()
    }

    fn bench(text: &str) -> (Bench, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let editor = editor(dir.path(), text);
        (Bench::with("", "{}", &[("EDITOR", &editor)]), dir)
    }

    #[tokio::test]
    async fn an_edited_configuration_is_checked() {
        let (mut bench, _dir) = bench("stream: false");
        bench.does(".edit config").await;
        let (mut bench, _dir) = self::bench("temperature: [hot]");
        let error = bench.refuses(".edit config").await;
        assert!(error.to_string().contains("config.yaml"), "{error}");
    }

    #[tokio::test]
    async fn roles_are_edited_in_their_file() {
        let (mut bench, _dir) = bench("More words.");
        bench.refuses(".edit role").await;
        bench.does(".role shell").await;
        bench.does(".edit role").await;
        assert_eq!(bench.repl.ctx.read().paths().role_names(), ["shell"]);
        let system = bench.repl.ctx.read().role_info().unwrap();
        assert!(system.contains("More words."), "{system}");
        bench.does(".temp-role Few words.").await;
        bench.does(".edit role").await;
        let system = bench.repl.ctx.read().system().unwrap();
        assert_eq!(system, "Few words.More words.");
    }

    #[tokio::test]
    async fn an_edited_session_must_still_be_one() {
        let (mut bench, _dir) = bench("temperature: 0.25");
        bench.refuses(".edit session").await;
        bench.does(".session one").await;
        bench.exchange("q", "a");
        bench.does(".edit session").await;
        assert_eq!(bench.repl.ctx.read().temperature(), Some(0.25));
        assert_eq!(bench.repl.ctx.read().messages().len(), 2);

        let (mut bench, _dir) = self::bench("][");
        bench.does(".session one").await;
        bench.exchange("q", "a");
        bench.answers([Answer::Yes, Answer::No]);
        bench.refuses(".edit session").await;
        assert_eq!(bench.asked(), 2);
        assert_eq!(bench.repl.ctx.read().messages().len(), 2);
    }

    #[tokio::test]
    async fn only_an_exclamation_mark_reaches_the_shell() {
        let mut bench = Bench::new("");
        let canary = bench.dir.path().join("pwned");
        let touch = format!("touch '{}'", canary.display());
        for line in [format!(".{touch}"), format!(".x !{touch}")] {
            bench.refuses(&line).await;
        }
        assert!(!canary.exists());
        bench.does(&format!("!{touch}")).await;
        assert!(canary.exists());
        bench.said();
        bench.does("!exit 3").await;
        assert!(bench.said().contains('3'));
    }
}

/// A macro file of a bench.
fn macro_file(bench: &Bench, name: &str, text: &str) {
    let dir = bench.repl.ctx.read().paths().macros_dir();
    write_atomic(
        &dir.join(format!("{name}.yaml")),
        text.as_bytes(),
        Access::Private,
    )
    .unwrap();
}

/// `H-34`: an isolated macro leaves nothing behind, another one does.
#[tokio::test]
async fn an_isolated_macro_runs_in_a_context_of_its_own() {
    let mut bench = Bench::new("");
    macro_file(&bench, "alone", "steps: ['.info session']");
    macro_file(
        &bench,
        "role",
        "steps: ['.role {{r}}', '.info role']\nvariables: [{name: r, default: code}]",
    );
    macro_file(
        &bench,
        "stay",
        "isolated: false\nsteps: ['.role {{r}}']\nvariables: [{name: r}]",
    );
    bench.does(".session work").await;
    let error = bench.refuses(".alone").await;
    let causes: Vec<String> = error.causes().collect();
    assert_eq!(error.to_string(), "macro `alone`, step 1");
    assert_eq!(causes, ["no session is active"]);
    assert!(bench.in_session());
    bench.does(".exit session").await;
    bench.does(".macro role shell").await;
    assert_eq!(bench.role(), None);
    bench.does(".stay shell").await;
    assert_eq!(bench.role().as_deref(), Some("shell"));
    assert_eq!(bench.repl.depth, 0);
}

/// `P-11`: builtins come first; the macro list and one warning say so.
#[tokio::test]
async fn a_command_hides_a_macro_and_that_is_said() {
    let mut bench = Bench::new("");
    macro_file(&bench, "prompt", "isolated: false\nsteps: ['.role code']");
    macro_file(&bench, "other", "description: harmless\nsteps: [x]");
    let file = bench.repl.ctx.read().paths().macro_file("prompt").unwrap();
    let warnings = handlers::shadowed_macros(&bench.repl);
    let [warning] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    for part in [&*file.to_string_lossy(), "`.prompt`", "`.macro prompt`"] {
        assert!(warning.contains(part), "{warning}");
    }
    let _ = bench.repl.do_line(".prompt s p").await.unwrap_err();
    assert_eq!(bench.role(), None);
    bench.does(".macro prompt").await;
    assert_eq!(bench.role().as_deref(), Some("code"));
}

#[tokio::test]
async fn a_macro_that_runs_itself_ends() {
    let mut bench = Bench::new("");
    macro_file(&bench, "loop", "isolated: false\nsteps: ['.loop']");
    let error = bench.refuses(".loop").await;
    let last = error.causes().last().unwrap();
    assert!(last.contains("8 macros run each other already"), "{last}");
    assert_eq!(bench.repl.depth, 0);
}

#[tokio::test]
async fn a_macro_stops_at_its_first_error_and_at_an_interruption() {
    let mut bench = Bench::new("");
    macro_file(
        &bench,
        "fails",
        "isolated: false\nsteps: ['.role code', '.role nope', '.exit role']",
    );
    let error = bench.refuses(".fails").await;
    assert_eq!(error.to_string(), "macro `fails`, step 2");
    assert_eq!(bench.role().as_deref(), Some("code"));
    macro_file(&bench, "leaves", "steps: ['.exit', '.role nope']");
    let flow = bench.repl.do_line(".leaves").await.unwrap();
    assert_eq!(flow, Flow::Exit);
}

#[tokio::test]
async fn a_name_that_is_nothing_has_the_nearest_macros() {
    let mut bench = Bench::new("");
    macro_file(&bench, "standup", "variables: [{name: since}]\nsteps: [x]");
    let error = bench.refuses(".standp").await;
    assert_eq!(error.to_string(), "unknown command `.standp`");
    let hints = error.hints().join("\n");
    assert!(
        hints.contains("`.standup` is a macro that is near"),
        "{hints}"
    );
    let error = bench.refuses(".standup").await;
    assert_eq!(error.hints(), ["`.macro standup SINCE` is how it is used"]);
    let error = bench.refuses(".macro standup 'open").await;
    assert!(error.to_string().contains("never closed"), "{error}");
    let snapshot = line_request::build(&bench.repl).snapshot;
    assert_eq!(
        snapshot.macros,
        [completer::Candidate::described("standup", "standup SINCE")]
    );
}

/// Text that would do something if it were a line.
const BAITS: [&str; 6] = [
    "!touch pwned",
    ".exit",
    "::: x",
    "{{__cwd__}}",
    "__INPUT__",
    ".file pwned -- what is this?",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_chatted_verbatim_even_without_a_label() {
    let (mut bench, asked) = asking(vec![Some("fine"); BAITS.len()]);
    for bait in BAITS {
        handlers::ask(&mut bench.repl, bait).await.unwrap();
    }
    // Nothing but spaces is nothing to ask; no more comes of it.
    let error = handlers::ask(&mut bench.repl, "   ").await.unwrap_err();
    assert!(error.to_string().contains("nothing to ask"), "{error:?}");
    for (asked, bait) in asked.lock().iter().zip(BAITS) {
        assert_eq!(last_said(asked), bait);
    }
    assert_eq!(asked.lock().len(), BAITS.len());
    assert!(!bench.dir.path().join("pwned").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_a_role_goes_around_a_block_and_nothing_in_it_is_filled_in() {
    let (mut bench, asked) = asking(vec![Some("fine")]);
    bench.does(".temp-role Say in one word: __INPUT__!").await;
    handlers::ask(&mut bench.repl, "__INPUT__ {{__cwd__}}")
        .await
        .unwrap();
    assert_eq!(
        last_said(&asked.lock()[0]),
        "Say in one word: __INPUT__ {{__cwd__}}!"
    );
}

/// The last message of a request.
fn last_said(body: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    last["content"].as_str().unwrap().to_owned()
}

/// A loop on a scripted server that logs what it is asked, with a provider that answers this often.
fn prompting(scenario: &str, answers: usize) -> (Bench, Arc<Mutex<Vec<String>>>) {
    let (url, asked) = provider(vec![Some("fine"); answers]);
    let config = format!(
        "model: t:m\nclients: [{{type: openai-compatible, name: t, api_base: '{url}', models: [{{name: m}}]}}]\n"
    );
    let log = tempfile::Builder::new().tempfile().unwrap();
    let (_, log) = log.keep().unwrap();
    let program = crate::mcp::test_support::fake_program();
    let server = |scenario: &str| {
        serde_json::json!({ "command": program, "args": [scenario],
            "env": { "FAKE_LOG": log.to_str().unwrap() } })
    };
    let servers = serde_json::json!({ "mcpServers": {
        "fake": server(scenario),
        "tools": server("tools-only"),
        "broken": { "command": "no-such-program-anywhere" },
        "off": { "command": "x", "disabled": true },
    }});
    let mut bench = Bench::with_servers(&config, &servers.to_string());
    bench.log = Some(log);
    (bench, asked)
}

impl Bench {
    /// The arguments of every `prompts/get` so far.
    fn gets(&self) -> Vec<serde_json::Value> {
        let log = self.log.as_ref().unwrap();
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|message| message["method"] == "prompts/get")
            .map(|message| message["params"]["arguments"].clone())
            .collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            let _ = std::fs::remove_file(log);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_takes_its_values_as_a_shell_would_read_them() {
    let (mut bench, asked) = prompting("full", 2);
    bench
        .does(r#".prompt fake echo title="two words" note='it''s' empty= eq=a=b"#)
        .await;
    let values =
        serde_json::json!({ "title": "two words", "note": "its", "empty": "", "eq": "a=b" });
    assert_eq!(bench.gets(), std::slice::from_ref(&values));
    let said = bench.said();
    let size = format!("[user]\n{values}").len();
    assert!(
        said.contains(&format!("prompt `echo` of `fake`: 1 message, {size} bytes")),
        "{said}"
    );
    bench.does(r"  .prompt 'fake' User\ Summary ").await;
    assert_eq!(bench.gets()[1], serde_json::json!({}));
    let asked = asked.lock();
    assert_eq!(last_said(&asked[0]), format!("[user]\n{values}"));
    assert_eq!(last_said(&asked[1]), "[user]\nSummarise the user");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_asked_is_taught_and_nothing_is_sent() {
    let (mut bench, asked) = prompting("full", 0);
    let usage = "`.prompt SERVER NAME [KEY=VALUE...]` is how it is used";
    let takes = "it takes `title`: the title, `note`: the note, `empty`: the empty, `eq`: the eq";
    for (words, problem) in [
        ("title=x title=y", "`title` is given twice"),
        ("xyzzyx=1", "the prompt has no argument `xyzzyx`"),
        ("\"unclosed", "the quote \" at column 11 is never closed"),
        ("title='x", "the quote ' at column 17 is never closed"),
        (
            "title=x\\",
            "the line ends in a backslash that escapes nothing",
        ),
        ("word", "`word` is not `KEY=VALUE`"),
        ("=x", "`=x` has no key before its `=`"),
    ] {
        let error = bench.refuses(&format!(".prompt fake echo {words}")).await;
        assert_eq!(error.to_string(), problem, "{words}");
        assert_eq!(error.hints(), [usage, takes], "{words}");
    }
    for line in [
        ".prompt",
        ".prompt fake",
        ".prompt 'fake",
        ".prompt fake 'echo",
    ] {
        let error = bench.refuses(line).await;
        assert_eq!(error.hints(), [usage], "{line}");
    }
    assert_eq!(bench.gets(), [serde_json::Value::Null; 0]);
    assert!(asked.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_prompt_needs_is_asked_for_one_by_one() {
    let (mut bench, asked) = prompting("full", 2);
    bench.answers([
        Answer::Text("two words".into()),
        Answer::Text(String::new()),
    ]);
    bench.does(".prompt fake pair").await;
    assert_eq!(
        bench.gets(),
        [serde_json::json!({ "first": "two words", "second": "" })]
    );
    let questions = bench.script.asked.lock().clone();
    let message = |question: &Question| match question {
        Question::Text { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    let messages: Vec<String> = questions.iter().map(message).collect();
    assert_eq!(messages, ["first (the first):", "second (the second):"]);

    bench.answers([Answer::Text("x".into())]);
    bench.does(".prompt fake pair second=").await;
    assert_eq!(bench.asked(), 3, "an empty value is a value");
    assert_eq!(asked.lock().len(), 2);

    bench.said();
    bench.answers([Answer::Text("x".into()), Answer::Cancelled]);
    bench.does(".prompt fake pair").await;
    assert_eq!(bench.said(), "nothing was sent");
    let error = bench.refuses(".prompt fake pair second=x").await;
    assert_eq!(error.to_string(), "the prompt needs `first`");
    assert_eq!(bench.gets().len(), 2);
    assert_eq!(asked.lock().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_cannot_be_had_says_why() {
    let (mut bench, asked) = prompting("full", 0);
    bench.does(".list prompts").await;
    bench.said();
    let rows = [
        (
            ".prompt fakes greet",
            "no MCP server is called `fakes`",
            "`fake` has prompts",
        ),
        (
            ".prompt off greet",
            "MCP server `off` is disabled in its file",
            "`disabled`",
        ),
        (
            ".prompt broken greet",
            "MCP server `broken` is not available",
            "`.mcp restart broken`",
        ),
        (
            ".prompt tools greet",
            "MCP server `tools` has no prompts",
            "`.list prompts`",
        ),
        (
            ".prompt fake gret",
            "MCP server `fake` has no prompt `gret`",
            "did you mean `greet`?",
        ),
        (".prompt fake fail", "Unknown prompt: fail", ""),
        (".prompt fake nothing", "the prompt has no messages", ""),
    ];
    for (line, problem, hint) in rows {
        let error = bench.refuses(line).await;
        assert!(error.to_string().contains(problem), "{line}: {error:?}");
        assert!(error.hints().join("\n").contains(hint), "{line}: {error:?}");
    }
    bench.does(".mcp disable fake").await;
    let error = bench.refuses(".prompt fake greet name=x").await;
    assert_eq!(error.to_string(), "MCP server `fake` is not enabled here");
    assert_eq!(error.hints(), ["`.mcp enable fake` enables it"]);
    assert!(asked.lock().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_the_block_instead() {
    let (mut bench, asked) = prompting("full", 0);
    bench.does(".set dry_run true").await;
    bench.said();
    bench.does(".prompt fake shell").await;
    assert!(bench.said().contains("prompt `shell` of `fake`"));
    assert!(asked.lock().is_empty());
    assert!(bench.repl.ctx.read().messages().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_getting_a_prompt() {
    for (scenario, line) in [
        ("full", ".prompt fake never"),
        ("prompts-silent", ".prompt fake greet name=x"),
        ("prompts-silent", ".list prompts"),
    ] {
        let (mut bench, asked) = prompting(scenario, 0);
        let signals = bench.repl.signals.clone();
        let log = bench.log.clone().unwrap();
        let wanted = if scenario == "full" {
            "prompts/get"
        } else {
            "prompts/list"
        };
        let interrupt = tokio::task::spawn_blocking(move || {
            let start = std::time::Instant::now();
            while start.elapsed() < crate::mcp::test_support::PATIENCE {
                if std::fs::read_to_string(&log)
                    .unwrap_or_default()
                    .contains(wanted)
                {
                    return signals.interrupt();
                }
                std::thread::yield_now();
            }
            panic!("the server was never asked");
        });
        bench.does(line).await;
        interrupt.await.unwrap();
        assert!(bench.said().contains("interrupted"), "{line}");
        assert!(asked.lock().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_of_prompts_says_why() {
    let mut bench = Bench::new("");
    bench.does(".list prompts").await;
    assert_eq!(bench.said(), "no prompts: no MCP server is configured");

    let (mut bench, _) = prompting("tools-only", 0);
    bench.does(".list prompts").await;
    let said = bench.said();
    assert!(
        said.starts_with("no prompts: no running server among `broken`, `fake` and `tools` offers any\n`broken` failed: "),
        "{said}"
    );
    bench.does(".mcp disable fake tools broken").await;
    bench.said();
    bench.does(".list prompts").await;
    assert_eq!(
        bench.said(),
        "no prompts: no MCP server is enabled; `.mcp enable NAME` enables one"
    );

    let (mut bench, _) = prompting("prompts-broken", 0);
    bench.does(".list prompts").await;
    let said = bench.said();
    assert!(
        said.starts_with("no prompts: `fake` offered none\n"),
        "{said}"
    );
    assert!(
        said.contains("`fake` failed: ") && said.contains("the database is away"),
        "{said}"
    );
}
