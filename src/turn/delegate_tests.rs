use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::config::{AppConfig, Bootstrap, Env, Paths};
use crate::function::{Approvals, Functions};
use crate::mcp::test_support::{eventually, fake_program};
use crate::mcp::{McpFactory, McpRegistry, Origin, ServerState, spec};
use crate::turn::Outcome;
use crate::turn::tests::provider::{Asked, Provider, Reply, chat_calls, chat_text, finish, gate};
use crate::turn::tests::provider::{Piece, delta};

/// Answers questions for text, once `ready` says so.
struct Person {
    asked: Mutex<Vec<Question>>,
    ready: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Ask for Person {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.asked.lock().push(question);
        Box::pin(async move {
            let start = Instant::now();
            while !(self.ready)() && start.elapsed() < Duration::from_secs(20) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Answer::Text("forty-two".into())
        })
    }
}

#[derive(Default)]
struct Recorder(Mutex<Vec<Notice>>);

impl NoticeSink for Recorder {
    fn notice(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

struct Stage {
    dir: tempfile::TempDir,
    provider: Provider,
    ctx: Arc<RwLock<RequestContext>>,
    sink: Arc<Recorder>,
    deps: Deps,
}

impl Stage {
    /// A home with these agents and servers `(name, entry)`; the agent `lead` is in force.
    async fn new(
        dir: tempfile::TempDir,
        provider: Provider,
        agents: &[(&str, &str)],
        servers: &Value,
        ask: Arc<dyn Ask>,
    ) -> Self {
        let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
        for (name, text) in agents {
            let file = paths.agents_dir().join(name).join("config.yaml");
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let text = format!(
            "model: test:m\nenabled_mcp_servers: null\nmapping_mcp_servers: {{first: one}}\nclients:\n- type: \
             openai-compatible\n  name: test\n  api_base: {}\n  models: [{{name: m}}]\n",
            provider.url()
        );
        let env = Env::new::<&str, &str>([]);
        let (app, warnings) = AppConfig::parse(&text, &paths.config_file(), &env).unwrap();
        assert_eq!(warnings, [""; 0]);
        let text = json!({ "mcpServers": servers }).to_string();
        let file = paths.mcp_file();
        let servers = spec::parse(&text, &file, Origin::User, &env.lookup()).unwrap();
        let mut ctx = RequestContext::new(Bootstrap {
            paths: paths.clone(),
            app,
            env,
            mcp: McpRegistry::new(servers, McpFactory::new()),
            functions: Functions::built_in(),
            cwd: dir.path().to_path_buf(),
        });
        let given = BTreeMap::new();
        let (lead, _) = load_agent(&paths, "lead", &given, &ctx.variables(), ask.as_ref())
            .await
            .unwrap();
        ctx.set_agent(Some(lead));
        let sink = Arc::new(Recorder::default());
        let deps = Deps {
            sink: Arc::clone(&sink) as Arc<dyn NoticeSink>,
            ask,
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

    /// The request of that agent with so many messages behind its system prompt.
    fn request(&self, agent: &str, messages: usize) -> Value {
        let asked = self.provider.asked();
        let found = asked
            .iter()
            .find(|asked| who(asked) == agent && said(asked).len() == messages);
        found
            .unwrap_or_else(|| panic!("no such request of {agent}"))
            .body
            .clone()
    }

    fn pids(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Which agent asks: the last word of its instructions.
fn who(asked: &Asked) -> String {
    let system = asked.body["messages"][0]["content"]
        .as_str()
        .unwrap_or_default();
    system
        .split_whitespace()
        .last()
        .unwrap_or_default()
        .to_owned()
}

/// The messages behind the system prompt.
fn said(asked: &Asked) -> Vec<Value> {
    let messages = asked.body["messages"].as_array().unwrap();
    messages.get(1..).unwrap().to_vec()
}

fn answers(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "tool")
        .map(|message| {
            let text = message["content"].as_str().unwrap();
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        })
        .collect()
}

fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

fn server(dir: &std::path::Path, name: &str, scenario: &str) -> Value {
    json!({
        "command": fake_program(), "args": [scenario],
        "env": {
            "FAKE_LOG": dir.join(format!("{name}.log")),
            "FAKE_PIDS": dir.join(format!("{name}.pids")),
        },
    })
}

fn agent(name: &str, more: &str) -> String {
    format!("description: does {name} things\ninstructions: You are {name}\n{more}\n")
}

/// A server that lets nobody in.
fn locked() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 8_192];
            let _ = stream.read(&mut buffer);
            let _ = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

fn contains(file: &std::path::Path, part: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| text.contains(part))
}

#[allow(clippy::too_many_lines, reason = "one story, told in order")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_at_once_each_with_its_own_servers() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_path_buf();
    let (open, shut) = gate();
    let shut = Mutex::new(Some(shut));
    let provider = Provider::with(move |asked| {
        let count = said(asked).len();
        let id = |id: &str| json!({ "id": id });
        match (who(asked).as_str(), count) {
            ("lead", 1) => chat_calls(&[
                (
                    "s1",
                    "agent__spawn",
                    json!({ "agent": "alpha", "prompt": "ask the person" }),
                ),
                (
                    "s2",
                    "agent__spawn",
                    json!({ "agent": "beta", "prompt": "hang" }),
                ),
                (
                    "s3",
                    "agent__spawn",
                    json!({ "agent": "gamma", "prompt": "try" }),
                ),
                ("s4", "agent__list_available", json!({})),
            ]),
            ("lead", 6) => {
                let Reply::Stream { pieces, cut } = chat_calls(&[
                    ("c1", "agent__cancel", id("beta-2")),
                    ("c2", "agent__collect", id("gamma-3")),
                    ("c3", "agent__collect", id("alpha-1")),
                ]) else {
                    unreachable!()
                };
                let mut held = vec![shut.lock().take().unwrap()];
                held.extend(pieces);
                Reply::Stream { pieces: held, cut }
            }
            ("lead", 10) => chat_text("all done"),
            ("alpha", 1) => chat_calls(&[
                ("q", "user__input", json!({ "message": "what is it?" })),
                (
                    "e",
                    "mcp_invoke_one",
                    json!({ "tool": "echo", "arguments": { "text": "é" } }),
                ),
            ]),
            ("alpha", 4) => chat_text("alpha's words"),
            ("beta", 1) => chat_calls(&[(
                "n",
                "mcp_invoke_three",
                json!({ "tool": "never", "arguments": {} }),
            )]),
            ("gamma", 1) => chat_text("gamma's words"),
            (who, count) => chat_text(&format!("unexpected: {who} {count}")),
        }
    });
    let servers = json!({
        "one": server(&at, "one", "full"),
        "three": server(&at, "three", "tools-only"),
        "locked": { "url": locked() },
        "untouched": server(&at, "untouched", "full"),
    });
    let hung = at.join("three.log");
    let seen = hung.clone();
    let person = Arc::new(Person {
        asked: Mutex::default(),
        // Answers only while another delegate is in the middle of a call.
        ready: Box::new(move || contains(&seen, "\"never\"")),
    });
    let agents = [
        (
            "lead",
            agent(
                "lead",
                "can_spawn_agents: true\nspawnable_agents: alpha,beta,gamma",
            ),
        ),
        ("alpha", agent("alpha", "mcp_servers: [first]")),
        ("beta", agent("beta", "mcp_servers: three")),
        ("gamma", agent("gamma", "mcp_servers: [locked, nowhere]")),
        ("other", agent("other", "")),
    ];
    let agents: Vec<(&str, &str)> = agents
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let ask = Arc::clone(&person) as Arc<dyn Ask>;
    let stage = Stage::new(dir, provider, &agents, &servers, ask).await;

    let asking = stage.ask("go");
    let opening = async {
        // The parent has not collected anything, and all three are under way.
        eventually("beta is in its call", || contains(&hung, "\"never\"")).await;
        let asked = || stage.provider.asked();
        eventually("alpha goes on after its answer", || {
            asked()
                .iter()
                .any(|asked| who(asked) == "alpha" && said(asked).len() == 4)
        })
        .await;
        eventually("gamma asks its model", || {
            asked().iter().any(|asked| who(asked) == "gamma")
        })
        .await;
        open.send(()).unwrap();
    };
    let (outcome, ()) = tokio::join!(asking, opening);
    assert_eq!(outcome.unwrap().text, "all done");

    let spawned = answers(&stage.request("lead", 6));
    assert_eq!(
        spawned[0],
        json!({ "id": "alpha-1", "agent": "alpha", "status": "running" })
    );
    assert_eq!(
        spawned[3],
        json!([
            { "agent": "alpha", "description": "does alpha things" },
            { "agent": "beta", "description": "does beta things" },
            { "agent": "gamma", "description": "does gamma things" },
        ])
    );
    let collected = answers(&stage.request("lead", 10))[4..].to_vec();
    assert_eq!(
        collected[0],
        json!({ "id": "beta-2", "agent": "beta", "status": "cancelled" })
    );
    assert_eq!(collected[1]["result"], "gamma's words");
    let notes = collected[1]["notes"].to_string();
    assert!(
        notes.contains("`locked`") && notes.contains("not available"),
        "{notes}"
    );
    assert!(notes.contains("nowhere"), "{notes}");
    assert_eq!(collected[2]["result"], "alpha's words");
    assert!(collected[2].get("notes").is_none(), "{}", collected[2]);

    // What alpha was told: the person's answer and its server's.
    let told = answers(&stage.request("alpha", 4));
    assert_eq!(told[0], json!({ "answer": "forty-two" }));
    assert!(told[1].to_string().contains('é'), "{}", told[1]);
    let asked = person.asked.lock().clone();
    assert_eq!(
        asked,
        [Question::Text {
            message: "alpha-1: what is it?".into(),
            default: None
        }]
    );
    eventually("beta's server hears that the call is cancelled", || {
        contains(&at.join("three.log"), "notifications/cancelled")
    })
    .await;
    // Each sees its own servers and nobody else's; only the lead may delegate.
    let meta = |request: &Value| -> Vec<String> {
        offered(request)
            .into_iter()
            .filter(|name| name.starts_with("mcp_"))
            .collect()
    };
    let five =
        ["invoke", "search", "describe", "read", "prompt"].map(|verb| format!("mcp_{verb}_one"));
    assert_eq!(meta(&stage.request("alpha", 1)), five);
    let three = ["invoke", "search", "describe"].map(|verb| format!("mcp_{verb}_three"));
    assert_eq!(meta(&stage.request("beta", 1)), three);
    assert_eq!(meta(&stage.request("gamma", 1)), [""; 0]);
    assert!(offered(&stage.request("lead", 1)).contains(&"agent__spawn".to_owned()));
    assert!(!offered(&stage.request("alpha", 1)).contains(&"agent__spawn".to_owned()));
    assert!(offered(&stage.request("alpha", 1)).contains(&"user__select".to_owned()));

    // The registry never saw them, and nothing of them is left.
    let registry = stage.ctx.read().registry().clone();
    let states: Vec<ServerState> = registry
        .statuses()
        .into_iter()
        .map(|status| status.state)
        .collect();
    assert_eq!(states, vec![ServerState::Stopped; 4]);
    assert!(!stage.dir.path().join("untouched.pids").exists());
    #[cfg(target_os = "linux")]
    for name in ["one.pids", "three.pids"] {
        let pids = stage.pids(name);
        assert!(!pids.is_empty());
        let gone = || {
            !pids
                .iter()
                .any(|pid| crate::mcp::test_support::is_alive(pid))
        };
        eventually("the delegates' servers end", gone).await;
    }
    // Their words are their parent's business.
    let notices = stage.sink.0.lock();
    let shown: String = notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(shown, "all done");
    assert!(notices.iter().any(|notice| {
        matches!(notice, Notice::ToolStarted { name, .. } if name == "alpha-1 mcp_invoke_one")
    }));
}

/// A lead that starts `beta`, whose call hangs, and then does `then`.
async fn with_hanging(then: fn() -> Reply) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_path_buf();
    let provider = Provider::with(
        move |asked| match (who(asked).as_str(), said(asked).len()) {
            ("lead", 1) => chat_calls(&[(
                "s",
                "agent__spawn",
                json!({ "agent": "beta", "prompt": "hang" }),
            )]),
            ("lead", 3) => then(),
            ("beta", 1) => chat_calls(&[(
                "n",
                "mcp_invoke_three",
                json!({ "tool": "never", "arguments": {} }),
            )]),
            (who, count) => chat_text(&format!("unexpected: {who} {count}")),
        },
    );
    let servers = json!({ "three": server(&at, "three", "tools-only") });
    let agents = [
        ("lead", agent("lead", "can_spawn_agents: true")),
        ("beta", agent("beta", "mcp_servers: three")),
    ];
    let agents: Vec<(&str, &str)> = agents
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let ask = Arc::new(Person {
        asked: Mutex::default(),
        ready: Box::new(|| true),
    });
    Stage::new(dir, provider, &agents, &servers, ask).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_collected_ends_with_the_turn() {
    let stage = with_hanging(|| chat_text("I will not wait")).await;
    let outcome = stage.ask("go").await.unwrap();
    assert_eq!(outcome.text, "I will not wait");
    let notices = stage.sink.0.lock().clone();
    assert!(
        notices
            .iter()
            .any(|notice| { matches!(notice, Notice::Info(text) if text.contains("beta-1")) })
    );
    #[cfg(target_os = "linux")]
    eventually("the delegate's server ends", || {
        !stage
            .pids("three.pids")
            .iter()
            .any(|pid| crate::mcp::test_support::is_alive(pid))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_ends_a_parent_that_waits_and_its_delegate() {
    let stage =
        with_hanging(|| chat_calls(&[("c", "agent__collect", json!({ "id": "beta-1" }))])).await;
    let log = stage.dir.path().join("three.log");
    let abort = stage.deps.abort.clone();
    let interrupting = async {
        eventually("beta is in its call", || contains(&log, "\"never\"")).await;
        abort.cancel();
    };
    let (outcome, ()) = tokio::join!(stage.ask("go"), interrupting);
    assert!(outcome.unwrap().interrupted);
    eventually("beta's server hears that the call is cancelled", || {
        contains(&log, "notifications/cancelled")
    })
    .await;
    #[cfg(target_os = "linux")]
    eventually("the delegate's server ends", || {
        !stage
            .pids("three.pids")
            .iter()
            .any(|pid| crate::mcp::test_support::is_alive(pid))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn delegates_of_delegates_end_at_the_depth_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Provider::with(|asked| {
        let name = who(asked);
        let last = said(asked).last().unwrap().to_string();
        let spawn = |agent: &str| {
            chat_calls(&[(
                "s",
                "agent__spawn",
                json!({ "agent": agent, "prompt": "go on" }),
            )])
        };
        let collect = |id: &str| chat_calls(&[("c", "agent__collect", json!({ "id": id }))]);
        match (name.as_str(), said(asked).len()) {
            ("lead", 1) => spawn("again"),
            ("again", 1) if asked.body.to_string().contains("agent__spawn") => spawn("again"),
            ("again", 1) => chat_text("the deepest"),
            ("lead" | "again", 3) => collect("again-1"),
            _ => {
                let mut pieces = vec![delta(&json!({ "role": "assistant", "content": last }))];
                pieces.extend::<Vec<Piece>>(finish("stop"));
                Reply::Stream { pieces, cut: false }
            }
        }
    });
    let agents = [
        (
            "lead",
            agent("lead", "can_spawn_agents: true\nmax_agent_depth: 2"),
        ),
        (
            "again",
            agent("again", "can_spawn_agents: true\nmax_agent_depth: 60"),
        ),
    ];
    let agents: Vec<(&str, &str)> = agents
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let ask = Arc::new(Person {
        asked: Mutex::default(),
        ready: Box::new(|| true),
    });
    let stage = Stage::new(dir, provider, &agents, &json!({}), ask).await;
    let outcome = stage.ask("go").await.unwrap();
    assert!(outcome.text.contains("the deepest"), "{}", outcome.text);
    let begun = stage.provider.asked();
    let begun = begun
        .iter()
        .filter(|asked| who(asked) == "again" && said(asked).len() == 1);
    assert_eq!(begun.count(), 2);
}
