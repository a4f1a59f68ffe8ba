//! Agents and delegates from outside (`H-02`, `H-32`, `H-33`), and the images of a round (`M-67`).

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{Asked, Provider, chat_calls, chat_text};
use crate::support::{fake_mcp, run::Run};

const TRIAGE: &str = "\
description: Sorts incoming issues
temperature: 0.25
instructions: You triage issues of {{project}} for {{team}}.
variables:
- {name: project, description: which one, default: coyote}
- {name: team, description: whose}
conversation_starters: ['Triage {{project}}']
global_tools: fs_cat
mcp_servers: [code]
";

/// A home with the agent above and two servers, one of which is called by an alias.
fn home(provider: &Provider) -> Home {
    let home = Home::new();
    home.provider(
        &provider.url(),
        "enabled_mcp_servers: null\nmapping_mcp_servers:\n  code: ' files '",
    );
    home.servers(&[
        ("files", &fake_mcp(), &["resources-only"]),
        ("other", &fake_mcp(), &["full"]),
    ]);
    home.config_file("agents/triage/config.yaml", TRIAGE);
    home
}

fn names(asked: &Asked) -> Vec<String> {
    let tools = asked.body["tools"].as_array().cloned().unwrap_or_default();
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_agent_brings_its_words_its_tools_and_its_servers() {
    let provider = Provider::new(vec![chat_text("sorted")]);
    let home = home(&provider);
    let output = home
        .coyote(&["-a", "triage", "--agent-variable", "team=tools = all", "go"])
        .ok();
    assert_eq!(output.stdout, "sorted\n");
    let asked = &provider.asked()[0];
    assert_eq!(
        asked.body["messages"][0],
        json!({ "role": "system", "content": "You triage issues of coyote for tools = all." })
    );
    assert_eq!(asked.body["temperature"], 0.25);
    let tools = names(asked);
    assert_eq!(tools[0], "fs_cat");
    // Only resources: search, describe and read, and of no other server anything.
    let meta: Vec<&str> = tools
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("mcp_"))
        .collect();
    assert_eq!(
        meta,
        ["mcp_search_files", "mcp_describe_files", "mcp_read_files"]
    );
    assert!(tools.contains(&"user__input".to_owned()));
    assert!(!tools.contains(&"agent__spawn".to_owned()), "{tools:?}");
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let provider = Provider::new(Vec::new());
    let home = home(&provider);
    let fails = |args: &[&str], code: i32, parts: &[&str]| {
        let output = home.coyote(args).output();
        assert_eq!(output.code, Some(code), "{args:?}: {}", output.stderr);
        for part in parts {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
    };
    fails(
        &["-a", "triage", "go"],
        1,
        &["`team`", "--agent-variable team=VALUE"],
    );
    fails(&["-a", "triag", "go"], 1, &["did you mean `triage`?"]);
    fails(
        &["-a", "triage", "--agent-variable", "teem=x", "go"],
        1,
        &["no variable `teem`", "did you mean `team`?"],
    );
    fails(
        &["-a", "triage", "--agent-variable", "team", "go"],
        2,
        &["KEY=VALUE"],
    );
    fails(&["--agent-variable", "a=b", "go"], 2, &["`--agent`"]);
    fails(&["-a", "triage", "-r", "code", "go"], 2, &["`--role`"]);
    assert!(provider.asked().is_empty());
}

#[test]
fn agents_are_listed_without_starting_anything() {
    let provider = Provider::new(Vec::new());
    let home = home(&provider);
    home.config_file("agents/broken/config.yaml", "instructions: [");
    home.config_file("agents/empty/readme.txt", "no agent");
    let list = |args: &[&str]| home.coyote(args).ok().stdout;
    assert_eq!(list(&["--list-agents"]), "broken\ntriage\n");
    assert_eq!(
        list(&["--list-agents", "--json"]),
        "[\"broken\",\"triage\"]\n"
    );
}

#[test]
fn an_agent_works_in_its_own_session() {
    let provider = Provider::new(vec![chat_text("one"), chat_text("two")]);
    let home = home(&provider);
    home.config_file(
        "agents/diary/config.yaml",
        "instructions: You remember.\nagent_session: diary\nmcp_servers: null",
    );
    home.coyote(&["-a", "diary", "first"]).ok();
    home.coyote(&["-a", "diary", "second"]).ok();
    let messages = provider.asked()[1].body["messages"].clone();
    let said: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["You remember.", "first", "one", "second"]);
}

#[test]
fn delegates_work_beside_each_other_and_report() {
    let provider = Provider::with(|asked| {
        let messages = asked.body["messages"].as_array().unwrap();
        let system = messages[0]["content"].as_str().unwrap();
        match (system, messages.len()) {
            ("lead", 2) => chat_calls(&[
                (
                    "s1",
                    "agent__spawn",
                    json!({ "agent": "reader", "prompt": "read" }),
                ),
                (
                    "s2",
                    "agent__spawn",
                    json!({ "agent": "asker", "prompt": "ask" }),
                ),
            ]),
            ("lead", 5) => chat_calls(&[
                ("c2", "agent__collect", json!({ "id": "asker-2" })),
                ("c1", "agent__collect", json!({ "id": "reader-1" })),
            ]),
            ("lead", 8) => chat_text("both are done"),
            ("reader", 2) => chat_calls(&[("f", "fs_cat", json!({ "path": "notes.txt" }))]),
            ("asker", 2) => chat_calls(&[("q", "user__confirm", json!({ "message": "may I?" }))]),
            ("reader" | "asker", 4) => chat_text(&format!("{system} is done")),
            other => panic!("unexpected {other:?}"),
        }
    });
    let home = home(&provider);
    home.work_file("notes.txt", "the contents");
    home.config_file(
        "agents/lead/config.yaml",
        "instructions: lead\ncan_spawn_agents: true",
    );
    home.config_file(
        "agents/reader/config.yaml",
        "instructions: reader\nglobal_tools: fs_cat\nmcp_servers: files",
    );
    home.config_file("agents/asker/config.yaml", "instructions: asker");
    let output = home.coyote(&["-a", "lead", "go"]).any_stderr().ok();
    assert_eq!(output.stdout, "both are done\n");
    assert!(
        output.stderr.contains("reader-1 fs_cat"),
        "{}",
        output.stderr
    );
    let of = |who: &str, count: usize| -> Value {
        let asked = provider.asked();
        let found = asked.iter().find(|asked| {
            let messages = asked.body["messages"].as_array().unwrap();
            messages[0]["content"] == who && messages.len() == count
        });
        found.unwrap().body["messages"].clone()
    };
    // Nobody is there to be asked; the delegate is told so and goes on.
    assert!(of("asker", 4).to_string().contains("no terminal"));
    assert!(of("reader", 4).to_string().contains("the contents"));
    assert_eq!(
        of("reader", 2)[1],
        json!({ "role": "user", "content": "read" })
    );
    let collected = of("lead", 8);
    for (at, (agent, id)) in [("asker", "asker-2"), ("reader", "reader-1")]
        .iter()
        .enumerate()
    {
        let text = collected[6 + at]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            value,
            json!({ "id": id, "agent": agent, "status": "done", "result": format!("{agent} is done") })
        );
    }
}

#[cfg(unix)]
#[test]
fn the_repl_knows_agents() {
    use crate::support::pty::Pty;
    let provider = Provider::new(vec![chat_text("starting")]);
    let home = home(&provider);
    let pty = Pty::spawn(&home, &[], &[]);
    // What is typed before the prompt is back waits in the next line, where Enter does not submit it.
    let at_prompt = |line: &str| {
        pty.wait_for("the prompt", |screen| screen.trim_end().ends_with('>'));
        pty.send(line);
    };
    at_prompt(".agent triage team=us\r");
    pty.wait("Sorts incoming issues").wait("+files");
    at_prompt(".info agent\r");
    pty.wait("You triage issues of coyote for us.");
    at_prompt(".info tools\r");
    pty.wait("through alias `code` in `mcp_servers` of the agent");
    at_prompt(".starter 1\r");
    pty.wait("starting");
    let asked = provider.asked();
    assert_eq!(asked[0].body["messages"][1]["content"], "Triage coyote");
}

fn quiet(run: Run) -> String {
    run.any_stderr().ok().stdout
}

/// The image parts of a request, and what its tool results say.
fn images(body: &Value) -> (usize, String) {
    let messages = body["messages"].as_array().unwrap();
    let parts = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let count = parts.filter(|part| part["type"] == "image_url").count();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let text: Vec<String> = results
        .map(|message| message["content"].to_string())
        .collect();
    (count, text.join("\n"))
}

#[test]
fn a_model_that_sees_gets_at_most_four_images_of_a_round() {
    let calls: Vec<(String, Value)> = (0..6)
        .map(|n| {
            (
                format!("c{n}"),
                json!({ "uri": "demo://logo.png", "max_bytes": 1_000 + n }),
            )
        })
        .collect();
    let calls: Vec<(&str, &str, Value)> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "mcp_read_demo", arguments.clone()))
        .collect();
    let script = || vec![chat_calls(&calls), chat_text("seen")];
    let run = |more: &str, sees: bool| {
        let provider = Provider::new(script());
        let home = Home::new();
        home.provider(&provider.url(), more);
        if !sees {
            let file = home.config_dir().join("config.yaml");
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(
                &file,
                text.replace("supports_vision: true", "supports_vision: false"),
            )
            .unwrap();
        }
        let demo = std::path::Path::new(env!("CARGO_BIN_EXE_coyote"));
        home.servers(&[("demo", demo, &["demo-server"])]);
        let picture = quiet(home.coyote(&["mcp", "resources", "demo", "--json"]));
        assert!(picture.contains(URI), "{picture}");
        quiet(home.coyote(&["go"]));
        images(&provider.asked()[1].body)
    };
    let (seen, with) = run("", true);
    assert_eq!(seen, 4, "{with}");
    let (blind, without) = run("", false);
    assert_eq!(blind, 0, "{without}");
    let (off, _) = run("mcp_images: false", true);
    assert_eq!(off, 0);
    for text in [&with, &without] {
        // Each of the two results that lost theirs says so.
        assert_eq!(text.matches("images_note").count(), 2, "{text}");
        assert!(
            !text.contains("iVBORw0KGgo"),
            "base64 never enters text: {text}"
        );
    }
}

const URI: &str = "demo://logo.png";
