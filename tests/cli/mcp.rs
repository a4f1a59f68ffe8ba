//! `coyote mcp <verb>` (`H-06`): what a model would see, on the demo's server.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::run::Run;

/// A home whose `mcp.json` has the demo's server under that name.
fn home() -> Home {
    let home = Home::new();
    home.servers(&[(
        "demo",
        Path::new(env!("CARGO_BIN_EXE_coyote")),
        &["demo-server"],
    )]);
    home
}

#[track_caller]
fn json_of(run: Run) -> Value {
    let output = run.any_stderr().ok();
    serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
}

#[test]
fn servers_shows_state_revision_features_and_counts() {
    let home = home();
    let json = json_of(home.coyote(&["mcp", "servers", "--json"]));
    assert_eq!(json[0]["name"], "demo");
    assert_eq!(json[0]["state"], "running");
    assert_eq!(json[0]["transport"], "stdio");
    assert_eq!(json[0]["revision"], "2025-11-25");
    assert_eq!(
        json[0]["features"],
        json!({ "tools": true, "resources": true, "prompts": true })
    );
    assert_eq!(
        json[0]["counts"],
        json!({ "tools": 6, "resources": 5, "resource_templates": 1, "prompts": 4 })
    );
    let table = home.coyote(&["mcp", "servers"]).ok().stdout;
    for word in ["demo", "running", "stdio", "2025-11-25", "6 tools"] {
        assert!(table.contains(word), "{word}:\n{table}");
    }
}

#[test]
fn offline_starts_nothing() {
    let home = Home::new();
    let witness = home.path().join("started");
    let script = format!("touch '{}'", witness.display());
    home.servers(&[("witness", Path::new("/bin/sh"), &["-c", &script])]);
    let json = json_of(home.coyote(&["mcp", "servers", "--offline", "--json"]));
    assert_eq!(json[0]["state"], "stopped");
    assert!(!witness.exists());
}

#[test]
fn naming_a_server_starts_only_that_one() {
    let home = Home::new();
    let witness = home.path().join("started");
    let script = format!("touch '{}'", witness.display());
    home.servers(&[
        (
            "demo",
            Path::new(env!("CARGO_BIN_EXE_coyote")),
            &["demo-server"],
        ),
        ("witness", Path::new("/bin/sh"), &["-c", &script]),
    ]);
    home.coyote(&["mcp", "tools", "demo"]).ok();
    assert!(!witness.exists());
}

#[test]
fn one_servers_failure_costs_the_others_nothing() {
    let home = Home::new();
    home.servers(&[
        (
            "demo",
            Path::new(env!("CARGO_BIN_EXE_coyote")),
            &["demo-server"],
        ),
        ("gone", Path::new("/nowhere/at/all"), &[]),
        (
            "quits",
            Path::new("/bin/sh"),
            &["-c", "echo i am leaving >&2; exit 3"],
        ),
    ]);
    let output = home.coyote(&["mcp", "tools"]).any_stderr().ok();
    assert!(output.stdout.contains("word_count"), "{}", output.stdout);
    assert!(
        output.stderr.contains("gone") && output.stderr.contains("quits"),
        "{}",
        output.stderr
    );
    let json = json_of(home.coyote(&["mcp", "servers", "--json"]));
    let state = |name: &str| {
        let server = json
            .as_array()
            .unwrap()
            .iter()
            .find(|server| server["name"] == name)
            .unwrap();
        (
            server["state"].as_str().unwrap().to_owned(),
            server["reason"].clone(),
        )
    };
    assert_eq!(state("demo"), ("running".to_owned(), Value::Null));
    for name in ["gone", "quits"] {
        let (state, reason) = state(name);
        assert_eq!(state, "failed", "{json}");
        assert!(reason.is_string(), "{json}");
    }
    assert!(json.to_string().contains("i am leaving"), "{json}");
}

#[test]
fn lists_follow_every_page() {
    let home = home();
    let tools = json_of(home.coyote(&["mcp", "tools", "--json"]));
    assert_eq!(tools.as_array().unwrap().len(), 6);
    assert!(
        tools
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["kind"] == "tool")
    );
    let resources = home.coyote(&["mcp", "resources", "demo"]).ok().stdout;
    for uri in [
        "demo://guide",
        "demo://log",
        "demo://logo.png",
        "demo://notes",
        "demo://hints",
    ] {
        assert!(resources.contains(uri), "{resources}");
    }
    assert!(
        home.coyote(&["mcp", "templates"])
            .ok()
            .stdout
            .contains("demo://greeting/{name}")
    );
    let prompts = home.coyote(&["mcp", "prompts"]).ok().stdout;
    for words in [
        "review      language* focus",
        "lesson      topic*",
        "Log Report  level",
    ] {
        assert!(prompts.contains(words), "{prompts}");
    }
    home.fake_server("fake", "tools-only");
    let none = home.coyote(&["mcp", "prompts"]).any_stderr().ok();
    assert_eq!(
        (none.stdout.as_str(), none.stderr.as_str()),
        ("", "no prompts\n")
    );
    assert_eq!(
        json_of(home.coyote(&["mcp", "prompts", "--json"])),
        json!([])
    );
}

#[test]
fn search_and_describe_give_what_a_model_would_get() {
    let home = home();
    let found = json_of(home.coyote(&["mcp", "search", "demo", "server", "log", "--json"]));
    assert_eq!(found[0]["uri"], "demo://log");
    let lines = home
        .coyote(&["mcp", "search", "demo", "count words"])
        .ok()
        .stdout;
    assert!(lines.starts_with("tool  word_count"), "{lines}");
    let described = json_of(home.coyote(&["mcp", "describe", "demo", "add", "--json"]));
    assert_eq!(described["input_schema"]["required"], json!(["a", "b"]));
    let template = [
        "mcp",
        "describe",
        "demo",
        "demo://greeting/{name}",
        "--kind",
        "resource_template",
    ];
    assert!(home.coyote(&template).ok().stdout.contains("name"));
    let unknown = home
        .coyote(&["mcp", "describe", "demo", "word_cuont"])
        .fails(1);
    assert!(unknown.stderr.contains("word_count"), "{}", unknown.stderr);
}

#[test]
fn calls_take_arguments_from_words_and_from_stdin() {
    let home = home();
    let call = |args: &[&str]| home.coyote(&[&["mcp", "call", "demo"], args].concat());
    assert_eq!(
        json_of(call(&["add", "a:=40", "b:=2", "--json"]))["structuredContent"]["sum"],
        42
    );
    assert_eq!(
        json_of(call(&["add", "--json"]).stdin(r#"{"a":1,"b":2}"#))["structuredContent"]["sum"],
        3
    );
    assert_eq!(
        call(&["word_count", "text=two words"]).ok().stdout,
        "1 lines, 2 words, 9 characters\n"
    );
    let failed = call(&["divide", "dividend:=1", "divisor:=0"]).output();
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(
        failed.stdout.contains("cannot be divided by zero"),
        "{}",
        failed.stdout
    );
    call(&["nonsense"])
        .output()
        .code
        .filter(|code| *code == 1)
        .unwrap();
    call(&["add"]).stdin("[1]").fails(1);
}

#[test]
fn reads_page_filter_and_expand() {
    let home = home();
    let read = |args: &[&str]| home.coyote(&[&["mcp", "read", "demo"], args].concat());
    assert_eq!(read(&["demo://guide"]).ok().stdout, coyote::demo::GUIDE);
    let page = json_of(read(&["demo://guide", "--max-bytes", "100", "--json"]));
    assert_eq!(page["next_offset"], 100);
    let page = read(&["demo://guide", "--max-bytes", "100"])
        .any_stderr()
        .ok();
    assert_eq!(page.stdout, &coyote::demo::GUIDE[..100]);
    assert!(page.stderr.contains("--offset 100"), "{}", page.stderr);
    let errors = read(&["demo://log", "--pattern", "ERROR"]).ok().stdout;
    assert_eq!(
        errors.lines().filter(|line| line.contains("ERROR")).count(),
        coyote::demo::error_lines().len()
    );
    assert_eq!(
        read(&["demo://greeting/{name}", "name=a/b é"]).ok().stdout,
        coyote::demo::greeting("a/b é")
    );
    for args in [
        &["demo://log", "--pattern", "["][..],
        &["demo://greeting/{name}"],
        &["demo://nowhere"],
    ] {
        let failed = read(args).output();
        assert_eq!(failed.code, Some(1), "{args:?}: {}", failed.stdout);
    }
    let bare = read(&["demo://greeting/{name}"]).fails(1).stderr;
    assert!(bare.contains("append `NAME=VALUE`"), "{bare}");
}

#[test]
fn raw_reads_are_the_bytes_themselves() {
    let home = home();
    let raw = home
        .coyote(&["mcp", "read", "demo", "demo://logo.png", "--raw"])
        .ok();
    assert_eq!(raw.stdout_bytes, coyote::demo::logo());
    let log = home
        .coyote(&["mcp", "read", "demo", "demo://log", "--raw"])
        .ok();
    assert_eq!(log.stdout, coyote::demo::log_text());
    home.coyote(&["mcp", "read", "demo", "demo://log", "--raw", "--item", "2"])
        .fails(1);
}

#[test]
fn a_picture_is_spilled_and_its_base64_is_nowhere() {
    let home = home();
    let json = json_of(home.coyote(&["mcp", "call", "demo", "draw_logo", "--json"]));
    let image = json["content"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["type"] == "image")
        .unwrap();
    let path = Path::new(image["path"].as_str().unwrap());
    assert!(
        path.starts_with(home.cache_dir().join("mcp-resources").join("demo")),
        "{image}"
    );
    assert_eq!(std::fs::read(path).unwrap(), coyote::demo::logo());
    assert!(!json.to_string().contains("iVBORw0KGgo"));
}

#[test]
fn pings_and_unknown_servers() {
    let home = home();
    assert!(
        home.coyote(&["mcp", "ping", "demo"])
            .ok()
            .stdout
            .contains("`demo` answered")
    );
    assert_eq!(
        json_of(home.coyote(&["mcp", "ping", "demo", "--json"]))["ok"],
        true
    );
    let output = home.coyote(&["mcp", "ping", "dmeo"]).fails(1);
    assert!(output.stderr.contains("`demo`"), "{}", output.stderr);
}

#[test]
fn a_workspace_file_is_not_trusted_without_a_terminal() {
    let home = Home::new();
    let witness = home.path().join("started");
    let script = format!("touch '{}'", witness.display());
    home.work_file(
        ".mcp.json",
        &json!({ "mcpServers": { "intruder": { "command": "/bin/sh", "args": ["-c", script] } } })
            .to_string(),
    );
    let output = home.coyote(&["mcp", "tools"]).any_stderr().ok();
    assert!(output.stderr.contains(".mcp.json"), "{}", output.stderr);
    assert!(!witness.exists());
    let quiet = home
        .coyote(&["mcp", "servers", "--no-workspace-mcp"])
        .any_stderr()
        .ok();
    assert!(!quiet.stderr.contains(".mcp.json"), "{}", quiet.stderr);
}

#[test]
fn the_file_beside_the_functions_counts_where_there_is_no_other() {
    let home = Home::new();
    let file = |server: &str| json!({ "mcpServers": { server: { "command": "x" } } }).to_string();
    let names = || {
        let args = ["mcp", "servers", "--offline", "--json"];
        let servers = json_of(home.coyote(&args));
        let names = servers.as_array().unwrap().iter();
        names
            .map(|server| server["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    home.config_file("functions/mcp.json", &file("fallback"));
    assert_eq!(names(), ["fallback"]);
    home.config_file("mcp.json", &file("first"));
    assert_eq!(names(), ["first"]);
}

/// The question about a directory's server file (`M-11`).
#[cfg(unix)]
mod trust {
    use std::path::PathBuf;

    use serde_json::json;

    use crate::support::home::Home;
    use crate::support::pty::Pty;

    /// A home whose working directory has a file with one server: the demo's, that leaves a trace when it starts.
    fn workspace() -> (Home, PathBuf) {
        let home = Home::new();
        let witness = home.path().join("started");
        let script = format!(
            "touch '{}'; exec '{}' demo-server",
            witness.display(),
            env!("CARGO_BIN_EXE_coyote")
        );
        let file =
            json!({ "mcpServers": { "local": { "command": "/bin/sh", "args": ["-c", script] } } });
        home.work_file(".mcp.json", &file.to_string());
        (home, witness)
    }

    #[test]
    fn the_command_is_shown_and_the_answer_is_kept_for_this_content() {
        let (home, witness) = workspace();
        let mut pty = Pty::spawn(&home, &["mcp", "tools"], &[]);
        pty.wait("Allow?");
        let shown: String = pty.screen().split_whitespace().collect();
        assert!(
            shown.contains("demo-server"),
            "the command is not shown whole: {shown}"
        );
        assert!(!witness.exists());
        pty.send("y\r").wait("word_count");
        assert_eq!(pty.exit_code(), 0);
        assert!(witness.exists());
        // Now it is known, also where nobody can be asked.
        assert!(
            home.coyote(&["mcp", "tools"])
                .ok()
                .stdout
                .contains("word_count")
        );
        // Another content is another question.
        home.work_file(
            ".mcp.json",
            r#"{"mcpServers":{"other":{"command":"/nowhere"}}}"#,
        );
        let output = home.coyote(&["mcp", "servers", "--json"]).any_stderr().ok();
        assert!(output.stderr.contains(".mcp.json"), "{}", output.stderr);
        assert_eq!(output.stdout, "[]\n");
    }

    #[test]
    fn the_hidden_directory_wins_and_its_entry_replaces_the_users_whole() {
        let home = Home::new();
        let file = |name: &str, entry: serde_json::Value| {
            json!({ "mcpServers": { name: entry } }).to_string()
        };
        let users = json!({ "url": "http://127.0.0.1:1/mcp", "description": "the user's" });
        home.config_file("mcp.json", &file("local", users));
        let demo = json!({ "command": env!("CARGO_BIN_EXE_coyote"), "args": ["demo-server"] });
        home.work_file(".coyote/mcp.json", &file("local", demo));
        home.work_file(
            ".mcp.json",
            &file("beaten", json!({ "command": "/nowhere" })),
        );
        let mut pty = Pty::spawn(&home, &["mcp", "tools"], &[]);
        pty.wait("Allow?").send("y\r").wait("word_count");
        assert_eq!(pty.exit_code(), 0);
        let output = home.coyote(&["mcp", "servers", "--json"]).ok();
        let servers: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(servers.as_array().unwrap().len(), 1, "{servers}");
        let local = &servers[0];
        assert_eq!(
            (&local["name"], &local["origin"], &local["transport"]),
            (&json!("local"), &json!("workspace"), &json!("stdio"))
        );
        assert_eq!(local["state"], "running");
        assert_ne!(local["description"], "the user's", "nothing of it is left");
    }

    #[test]
    fn no_is_kept_too_and_starts_nothing() {
        let (home, witness) = workspace();
        let mut pty = Pty::spawn(&home, &["mcp", "tools"], &[]);
        pty.wait("Allow?").send("n\r");
        assert_eq!(pty.exit_code(), 0);
        let output = home.coyote(&["mcp", "servers", "--json"]).ok();
        assert_eq!(output.stdout, "[]\n");
        assert!(!witness.exists());
    }

    #[test]
    fn what_only_looks_asks_nothing() {
        let (home, witness) = workspace();
        for args in [
            &["--info"][..],
            &["--list-mcp-servers"],
            &["mcp", "servers", "--offline"],
        ] {
            let mut pty = Pty::spawn(&home, args, &[]);
            assert_eq!(pty.exit_code(), 0, "{args:?}: {}", pty.screen());
        }
        assert!(!witness.exists());
    }
}
