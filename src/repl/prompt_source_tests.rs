use std::path::Path;
use std::time::{Duration, Instant};

use super::*;
use crate::config::{AppConfig, Bootstrap, Env, Paths};
use crate::function::Functions;
use crate::mcp::test_support::{PATIENCE, eventually, fake_program};
use crate::mcp::{McpFactory, McpRegistry, Origin, ServerState, spec};
use crate::utils::words;

struct Bench {
    source: Prompts,
    registry: Arc<McpRegistry>,
    dir: tempfile::TempDir,
}

impl Bench {
    /// A context with these servers: name and scenario; those whose scenario is not `-` are started.
    async fn new(config: &str, servers: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = |name: &str| dir.path().join(format!("{name}.log"));
        let entries: serde_json::Map<_, _> = servers
            .iter()
            .map(|(name, scenario)| {
                let entry = serde_json::json!({
                    "command": fake_program(), "args": [scenario], "description": format!("plays {scenario}"),
                    "env": { "FAKE_LOG": log(name), "FAKE_PIDS": dir.path().join(format!("{name}.pids")) },
                });
                ((*name).to_owned(), entry)
            })
            .collect();
        let text = serde_json::json!({ "mcpServers": entries }).to_string();
        let servers_config = spec::parse(&text, Path::new("mcp.json"), Origin::User, &|_| None);
        let env = Env::new([("SHELL", "/bin/sh")]);
        let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
        let (app, _) = AppConfig::parse(config, &paths.config_file(), &env).unwrap();
        let registry = McpRegistry::new(servers_config.unwrap(), McpFactory::new());
        let ctx = RequestContext::new(Bootstrap {
            paths,
            app,
            env,
            mcp: Arc::clone(&registry),
            functions: Functions::built_in(),
            cwd: dir.path().to_owned(),
        });
        let started: Vec<ServerName> = servers
            .iter()
            .filter(|(_, scenario)| *scenario != "-")
            .map(|(name, _)| ServerName::new(name).unwrap())
            .collect();
        registry.start(&started);
        let token = AbortToken::new();
        registry.wait_ready(&started, PATIENCE, &token).await;
        let ctx = Arc::new(RwLock::new(ctx));
        Self {
            source: Prompts { ctx },
            registry,
            dir,
        }
    }

    async fn candidates(&self, before: &[&str]) -> Vec<Candidate> {
        let before = before.iter().map(ToString::to_string).collect();
        self.source.candidates(before, String::new()).await
    }

    async fn values(&self, before: &[&str]) -> Vec<String> {
        let found = self.candidates(before).await;
        found.into_iter().map(|found| found.value).collect()
    }

    /// The methods that a server was asked for so far.
    fn asked(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join(format!("{server}.log")));
        let text = text.unwrap_or_default();
        let method = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            Some(message["method"].as_str()?.to_owned())
        };
        text.lines().filter_map(method).collect()
    }

    /// The methods that a server was asked for by `work` alone.
    async fn asked_by<T>(&self, server: &str, work: impl Future<Output = T>) -> Vec<String> {
        // The handshake's last word may still be on its way.
        eventually("the handshake is over", || {
            self.asked(server)
                .contains(&"notifications/initialized".to_owned())
        })
        .await;
        let before = self.asked(server).len();
        work.await;
        self.asked(server).split_off(before)
    }
}

#[tokio::test]
async fn the_first_stage_offers_running_servers_with_prompts_and_asks_nobody() {
    let servers = [
        ("local git", "prompts-only"),
        ("all", "full"),
        ("tools", "tools-only"),
        ("dead", "exit3"),
        ("off", "full"),
        ("unstarted", "-"),
    ];
    let config = "mapping_mcp_servers: {mine: 'local git, all, tools'}\nenabled_mcp_servers: mine, dead, unstarted";
    let bench = Bench::new(config, &servers).await;
    let offered = bench.candidates(&[]);
    let asked = bench.asked_by("all", offered).await;
    assert_eq!(asked, Vec::<String>::new());
    assert_eq!(
        bench.candidates(&[]).await,
        [
            Candidate::described("all", "plays full"),
            Candidate::described("local git", "plays prompts-only"),
        ]
    );
    let unstarted = bench
        .registry
        .status(&ServerName::new("unstarted").unwrap());
    assert_eq!(unstarted.unwrap().state, ServerState::Stopped);
}

/// `P-43`: what completion calls enabled is what a request sees, whatever layer says it.
#[tokio::test]
async fn what_is_offered_is_what_a_request_reaches() {
    let bench = Bench::new("", &[("a", "full"), ("b", "full")]).await;
    let same = async || {
        let scope = bench.source.ctx.read().tool_scope().mcp;
        let reached: Vec<String> = scope
            .names()
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        assert_eq!(bench.values(&[]).await, reached);
        reached
    };
    assert_eq!(same().await, ["a", "b"]);
    let names = ["a".to_owned()];
    bench
        .source
        .ctx
        .write()
        .toggle_servers(&names, false)
        .unwrap();
    assert_eq!(same().await, ["b"]);
    assert_eq!(bench.values(&["a"]).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_second_stage_lists_prompts_with_descriptions_in_one_walk() {
    let bench = Bench::new("", &[("s", "full"), ("many", "pages")]).await;
    let found = bench.candidates(&["s"]).await;
    assert_eq!(found[0], Candidate::described("greet", "Greets a person"));
    assert!(
        found
            .iter()
            .any(|found| found.value == "User Summary" && !found.glue)
    );
    let asked = bench.asked_by("s", bench.candidates(&["s"])).await;
    assert_eq!(asked, ["prompts/list"]);
    // Case 1: three pages are one walk.
    let asked = bench.asked_by("many", bench.candidates(&["many"])).await;
    assert_eq!(asked, ["prompts/list"; 3]);
    assert_eq!(
        bench.values(&["many"]).await,
        ["prompt_1", "prompt_2", "prompt_3", "prompt_4", "prompt_5"]
    );
}

#[tokio::test]
async fn the_third_stage_offers_what_is_not_typed_yet_required_first() {
    let bench = Bench::new("", &[("s", "full")]).await;
    let name = Candidate {
        glue: true,
        ..Candidate::described("name=", "(required) the name")
    };
    let style = Candidate {
        glue: true,
        ..Candidate::described("style=", "the style")
    };
    assert_eq!(
        bench.candidates(&["s", "greet"]).await,
        [name, style.clone()]
    );
    let typed = ["s", "greet", "name=two words"];
    assert_eq!(bench.candidates(&typed).await, [style]);
    let typed = ["s", "greet", "style=", "name=a=b"];
    assert_eq!(bench.values(&typed).await, Vec::<String>::new());
    for bare in ["User Summary", "no-arguments", "nope"] {
        assert_eq!(
            bench.values(&["s", bare]).await,
            Vec::<String>::new(),
            "{bare}"
        );
    }
    let asked = bench.asked_by("s", bench.candidates(&["s", "greet"])).await;
    assert_eq!(asked, ["prompts/list"]);
}

#[test]
fn arguments_that_cannot_be_typed_are_left_out_and_required_ones_come_first() {
    let argument = |name: &str, required| crate::mcp::catalog::PromptArgument {
        name: name.to_owned(),
        description: None,
        required,
    };
    let item = CatalogItem {
        kind: CatalogKind::Prompt,
        name: "p".into(),
        server: ServerName::new("s").unwrap(),
        description: String::new(),
        title: None,
        uri: None,
        mime_type: None,
        size: None,
        arguments: Some(vec![
            argument("late", false),
            argument("a=b", true),
            argument("", true),
            argument("my key", true),
            argument("other", true),
            argument("other", false),
        ]),
        audience: None,
        unreadable: None,
        raw: serde_json::Value::Null,
    };
    let found = arguments(&item, &[]);
    let values: Vec<&str> = found.iter().map(|found| found.value.as_str()).collect();
    assert_eq!(values, ["my key=", "other=", "late="]);
    // What is inserted for a name with a space goes on behind its quote.
    let line = format!("{}'a value'", words::quote(values[0]));
    assert_eq!(words::split(&line).unwrap()[0].text, "my key=a value");
}

#[tokio::test]
async fn whatever_fails_offers_nothing() {
    let servers = [
        ("dead", "exit3"),
        ("tools", "tools-only"),
        ("unstarted", "-"),
    ];
    let bench = Bench::new("", &servers).await;
    for before in [
        &["dead"][..],
        &["tools"],
        &["unstarted"],
        &["misspelled"],
        &[""],
        &["unstarted", "greet"],
    ] {
        assert_eq!(
            bench.values(before).await,
            Vec::<String>::new(),
            "{before:?}"
        );
    }
    let none = bench.asked_by("tools", bench.candidates(&["tools"])).await;
    assert_eq!(none, Vec::<String>::new());
}

/// `P-41`: completion is no use under `M-16`.
#[cfg(unix)]
#[tokio::test]
async fn a_dead_server_is_not_restarted_by_completion() {
    let bench = Bench::new("", &[("s", "full")]).await;
    assert!(!bench.values(&["s"]).await.is_empty());
    let pid = std::fs::read_to_string(bench.dir.path().join("s.pids")).unwrap();
    let pid = nix::unistd::Pid::from_raw(pid.lines().next().unwrap().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let name = ServerName::new("s").unwrap();
    let server = bench.registry.connected(&[name]).remove(0);
    eventually("the end is noticed", || !server.is_running()).await;
    assert_eq!(bench.values(&[]).await, Vec::<String>::new());
    assert_eq!(bench.values(&["s"]).await, Vec::<String>::new());
    assert_eq!(bench.values(&["s", "greet"]).await, Vec::<String>::new());
    assert!(!server.is_running(), "nothing restarted it");
    let starts = bench
        .asked("s")
        .iter()
        .filter(|it| *it == "initialize")
        .count();
    assert_eq!(starts, 1);
}

/// `P-42`: a writer gets in while a server does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn no_guard_is_held_while_a_server_is_asked() {
    let bench = Bench::new("", &[("stuck", "stall")]).await;
    let asking = tokio::spawn(
        bench
            .source
            .candidates(vec!["stuck".to_owned()], String::new()),
    );
    // The fourth page is asked for and never comes.
    eventually("the server is asked", || {
        let asked = bench.asked("stuck");
        asked.iter().filter(|it| *it == "prompts/list").count() == 4
    })
    .await;
    let began = Instant::now();
    let written = bench.source.ctx.try_write_for(Duration::from_secs(10));
    assert!(written.is_some(), "after {:?}", began.elapsed());
    drop(written);
    assert!(!asking.is_finished());
    asking.abort();
}
