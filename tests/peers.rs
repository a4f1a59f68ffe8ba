//! Real MCP servers and a real model. `tests/peers/run.sh` installs them, starts the model's server and runs these; a
//! missing peer is a failure, never a skip.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "a failing test is the point of a panic; the support code is shared by many tests"
)]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use support::home::Home;
use support::provider::{Provider, chat_calls, chat_text};

/// Where `tests/peers/install.sh` put everything.
fn peers() -> PathBuf {
    let dir = std::env::var("COYOTE_PEERS_DIR").map_or_else(
        |_| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/.cache"),
        PathBuf::from,
    );
    assert!(
        dir.join("stamp").is_file(),
        "no peers in {}: run tests/peers/run.sh",
        dir.display()
    );
    dir
}

fn npm(name: &str) -> PathBuf {
    let path = peers().join("node_modules/.bin").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

fn python(name: &str) -> PathBuf {
    let path = peers().join("venv/bin").join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// A home with every peer server.
fn home() -> Home {
    let home = Home::new();
    let work = home.work_dir();
    let git = |args: &[&str]| {
        let status = std::process::Command::new("git")
            .args(args)
            .current_dir(&work)
            .output()
            .unwrap();
        assert!(
            status.status.success(),
            "{}",
            String::from_utf8_lossy(&status.stderr)
        );
    };
    home.work_file("hello.txt", "hello from a file\n");
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&[
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "commit",
        "--quiet",
        "-m",
        "add a greeting",
    ]);
    let work = work.display().to_string();
    let memory = home.path().join("memory.json").display().to_string();
    let servers = json!({ "mcpServers": {
        "everything": { "command": npm("mcp-server-everything"), "args": ["stdio"] },
        "filesystem": { "command": npm("mcp-server-filesystem"), "args": [work] },
        "memory": { "command": npm("mcp-server-memory"), "env": { "MEMORY_FILE_PATH": memory } },
        "git": { "command": python("mcp-server-git"), "args": ["--repository", work] },
        "time": { "command": python("mcp-server-time"), "args": ["--local-timezone", "UTC"] },
    }});
    home.config_file("mcp.json", &servers.to_string());
    home
}

fn json_of(home: &Home, args: &[&str]) -> Value {
    let output = home.coyote(args).arg("--json").ok();
    serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
}

fn model_server() -> String {
    std::env::var("COYOTE_PEER_LLM").expect("COYOTE_PEER_LLM is not set: run tests/peers/run.sh")
}

/// A request to the model's server outside coyote.
fn get(path: &str) -> String {
    let url = model_server();
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn slot_is_free() -> bool {
    !get("/slots").contains("\"is_processing\":true")
}

/// One client on the real model: `type` and further keys, indented by two.
fn real_model(home: &Home, kind: &str, client: &str) {
    let url = format!("{}/v1", model_server());
    let text = format!(
        "model: real:smol\ntemperature: 0\nclients:\n- type: {kind}\n  name: real\n  api_base: {url}\n  api_key: none\n{client}  models:\n  - name: smol\n    max_output_tokens: 64\n"
    );
    home.config_file("config.yaml", &text);
}

const WIRES: &[(&str, &str)] = &[
    ("openai-compatible", ""),
    ("openai-compatible", "  api: responses\n"),
    ("claude", ""),
];

#[test]
#[ignore = "needs the real model of tests/peers/run.sh"]
fn a_real_model_answers_on_every_wire() {
    for (kind, client) in WIRES {
        let home = Home::new();
        real_model(&home, kind, client);
        let output = home.coyote(&["What is the capital of France?"]).ok();
        assert!(
            output.stdout.contains("Paris"),
            "{kind} {client}: {}",
            output.stdout
        );
    }
}

#[cfg(unix)]
#[test]
#[ignore = "needs the real model of tests/peers/run.sh"]
fn an_interrupt_frees_the_real_model() {
    for (kind, client) in WIRES {
        let home = Home::new();
        real_model(&home, kind, client);
        let config = std::fs::read_to_string(home.config_dir().join("config.yaml"))
            .unwrap()
            .replace("64", "3000");
        home.config_file("config.yaml", &config);
        let mut child = home
            .coyote(&["Write a very long story about a river."])
            .spawn();
        drop(child.stdin.take());
        let mut stdout = child.stdout.take().unwrap();
        let mut begun = [0; 1];
        stdout.read_exact(&mut begun).unwrap();
        support::run::signal(&child, nix::sys::signal::Signal::SIGINT);
        let output = support::run::finish(child);
        assert_eq!(output.code, Some(130), "{kind} {client}: {}", output.stderr);
        support::eventually("the slot is free again", || slot_is_free().then_some(()));
    }
}

#[test]
#[ignore = "needs the real model of tests/peers/run.sh"]
fn a_real_model_calls_a_tool_on_every_wire() {
    for (kind, client) in WIRES {
        let home = Home::new();
        real_model(&home, kind, client);
        let config = std::fs::read_to_string(home.config_dir().join("config.yaml")).unwrap();
        home.config_file("config.yaml", &format!("enabled_tools: fs_cat\n{config}"));
        home.work_file("a.txt", "the secret word is heron\n");
        let output = home
            .coyote(&["Call fs_cat for \"a.txt\"."])
            .any_stderr()
            .ok();
        assert!(
            output.stderr.contains("fs_cat") && output.stderr.contains('✓'),
            "{kind} {client}: {}",
            output.stderr
        );
        assert!(!output.stdout.trim().is_empty(), "{kind} {client}");
    }
}

#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn the_real_servers_list_what_they_have() {
    let home = home();
    // Server, tools, resources, templates, prompts.
    let rows = [
        ("everything", 13, 7, 2, 4),
        ("filesystem", 14, 0, 0, 0),
        ("memory", 9, 1, 0, 0),
        ("git", 12, 0, 0, 0),
        ("time", 2, 0, 0, 0),
    ];
    for (server, tools, resources, templates, prompts) in rows {
        for (verb, count) in [
            ("tools", tools),
            ("resources", resources),
            ("templates", templates),
            ("prompts", prompts),
        ] {
            let listed = json_of(&home, &["mcp", verb, server]);
            let items = listed
                .as_array()
                .or_else(|| listed["items"].as_array())
                .unwrap_or_else(|| panic!("{listed}"));
            assert_eq!(items.len(), count, "{server} {verb}: {listed}");
        }
    }
}

/// server-everything over streamable HTTP on a free port; ends with the value.
struct EverythingOverHttp {
    child: std::process::Child,
    url: String,
}

impl EverythingOverHttp {
    fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .unwrap()
            .port();
        let child = std::process::Command::new(npm("mcp-server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let this = Self {
            child,
            url: format!("http://127.0.0.1:{port}/mcp"),
        };
        support::eventually("server-everything listens", || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        this
    }
}

impl Drop for EverythingOverHttp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// [`home`], and server-everything over HTTP, and the git server asked for the newest revision.
fn home_with_http() -> (Home, EverythingOverHttp) {
    let home = home();
    let everything = EverythingOverHttp::start();
    let path = home.config_dir().join("mcp.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let mut modern = file["mcpServers"]["git"].clone();
    modern["protocol"] = json!("2026-07-28");
    file["mcpServers"]["git-modern"] = modern;
    file["mcpServers"]["everything-http"] = json!({ "url": everything.url });
    home.config_file("mcp.json", &file.to_string());
    (home, everything)
}

/// Every verb on every real server, over both transports, for people and as JSON, with exact counts.
#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
#[allow(
    clippy::too_many_lines,
    reason = "a table and what is asked of each row"
)]
fn every_verb_works_on_every_real_server() {
    let (home, _everything) = home_with_http();
    let work = home.work_dir().display().to_string();
    let file = format!("path={work}/hello.txt");
    let repository = format!("repo_path={work}");
    type Row<'a> = (
        &'a str,
        [usize; 4],
        &'a str,
        &'a str,
        &'a [&'a str],
        &'a str,
    );
    // Server, tools, resources, templates, prompts; revision; a tool, its arguments, a word of its answer.
    let rows: [Row<'_>; 7] = [
        (
            "everything",
            [13, 7, 2, 4],
            "2025-11-25",
            "get-sum",
            &["a:=2", "b:=40"],
            "42",
        ),
        (
            "everything-http",
            [13, 7, 2, 4],
            "2025-11-25",
            "get-sum",
            &["a:=2", "b:=40"],
            "42",
        ),
        (
            "filesystem",
            [14, 0, 0, 0],
            "2025-11-25",
            "read_text_file",
            &[&file],
            "hello from a file",
        ),
        (
            "memory",
            [9, 1, 0, 0],
            "2025-11-25",
            "read_graph",
            &[],
            "entities",
        ),
        (
            "git",
            [12, 0, 0, 0],
            "2025-11-25",
            "git_log",
            &[&repository],
            "add a greeting",
        ),
        (
            "git-modern",
            [12, 0, 0, 0],
            "2026-07-28",
            "git_log",
            &[&repository],
            "add a greeting",
        ),
        (
            "time",
            [2, 0, 0, 0],
            "2025-11-25",
            "get_current_time",
            &["timezone=UTC"],
            "UTC",
        ),
    ];
    let servers = json_of(&home, &["mcp", "servers"]);
    let shown = home.coyote(&["mcp", "servers"]).any_stderr().ok().stdout;
    for (name, counts, revision, tool, arguments, word) in rows {
        let status = servers
            .as_array()
            .unwrap()
            .iter()
            .find(|status| status["name"] == name)
            .unwrap();
        assert_eq!(
            (&status["state"], &status["revision"]),
            (&json!("running"), &json!(revision)),
            "{status}"
        );
        assert!(shown.contains(name), "{shown}");
        for ((verb, kind), expected) in ["tools", "resources", "templates", "prompts"]
            .into_iter()
            .zip(["tools", "resources", "resource_templates", "prompts"])
            .zip(counts)
        {
            let counted = status["counts"][kind].as_u64().unwrap_or_default();
            assert_eq!(counted, expected as u64, "{name} {kind}: {status}");
            let listed = json_of(&home, &["mcp", verb, name]);
            assert_eq!(listed.as_array().unwrap().len(), expected, "{name} {verb}");
            let text = home.coyote(&["mcp", verb, name]).any_stderr().ok().stdout;
            for item in listed.as_array().unwrap() {
                let id = match verb {
                    "tools" | "prompts" => &item["name"],
                    _ => &item["uri"],
                };
                let id = id.as_str().unwrap();
                assert!(text.contains(id), "{name} {verb}: {id} is not in {text}");
            }
        }
        let found = json_of(&home, &["mcp", "search", name, tool]);
        assert_eq!(found[0]["name"], tool, "{name}: {found}");
        assert!(
            home.coyote(&["mcp", "search", name, tool])
                .ok()
                .stdout
                .contains(tool)
        );
        let described = json_of(&home, &["mcp", "describe", name, tool]);
        assert_eq!(
            described["input_schema"]["type"], "object",
            "{name}: {described}"
        );
        assert!(
            home.coyote(&["mcp", "describe", name, tool])
                .ok()
                .stdout
                .contains("input_schema")
        );
        let call = [&["mcp", "call", name, tool], arguments].concat();
        assert!(json_of(&home, &call).to_string().contains(word), "{name}");
        assert!(home.coyote(&call).ok().stdout.contains(word), "{name}");
        assert_eq!(json_of(&home, &["mcp", "ping", name])["ok"], true);
        assert!(
            home.coyote(&["mcp", "ping", name])
                .ok()
                .stdout
                .contains(name)
        );
        let resources = json_of(&home, &["mcp", "resources", name]);
        for resource in resources.as_array().unwrap().iter().take(2) {
            let uri = resource["uri"].as_str().unwrap();
            let read = json_of(&home, &["mcp", "read", name, uri]);
            assert_eq!(read["uri"], uri, "{read}");
            let text = home
                .coyote(&["mcp", "read", name, uri])
                .any_stderr()
                .ok()
                .stdout;
            let raw = home
                .coyote(&["mcp", "read", name, uri, "--raw"])
                .ok()
                .stdout;
            assert!(
                !raw.is_empty() && raw.starts_with(text.get(..20).unwrap_or(&text)),
                "{name} {uri}"
            );
        }
    }
    for name in ["everything", "everything-http"] {
        let template = [
            "mcp",
            "read",
            name,
            "demo://resource/dynamic/text/{resourceId}",
            "resourceId:=7",
        ];
        assert_eq!(
            json_of(&home, &template)["uri"],
            "demo://resource/dynamic/text/7",
            "{name}"
        );
    }
}

#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn the_real_servers_answer() {
    let home = home();
    let call = |args: &[&str]| home.coyote(args).ok().stdout;
    assert!(call(&["mcp", "call", "everything", "get-sum", "a:=2", "b:=40"]).contains("42"));
    assert!(
        call(&[
            "mcp",
            "call",
            "filesystem",
            "read_text_file",
            &format!("path={}/hello.txt", home.work_dir().display())
        ])
        .contains("hello from a file")
    );
    assert!(
        call(&[
            "mcp",
            "call",
            "git",
            "git_log",
            &format!("repo_path={}", home.work_dir().display())
        ])
        .contains("add a greeting")
    );
    assert!(
        call(&[
            "mcp",
            "call",
            "time",
            "get_current_time",
            "timezone=Europe/Paris"
        ])
        .contains("Europe/Paris")
    );
    call(&[
        "mcp",
        "call",
        "memory",
        "create_entities",
        "entities:=[{\"name\":\"coyote\",\"entityType\":\"program\",\"observations\":[\"howls\"]}]",
    ]);
    assert!(call(&["mcp", "call", "memory", "read_graph"]).contains("howls"));
    let failed = home
        .coyote(&[
            "mcp",
            "call",
            "filesystem",
            "read_text_file",
            "path=/etc/passwd",
        ])
        .any_stderr()
        .output();
    assert_eq!(
        failed.code,
        Some(1),
        "a tool's error is exit 1: {}",
        failed.stdout
    );
    for server in ["everything", "filesystem", "memory", "git", "time"] {
        home.coyote(&["mcp", "ping", server]).ok();
    }
}

/// What a model gets of every kind of content of a real server, to the byte (times of day apart).
#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn results_of_a_real_server_are_what_the_content_policy_says() {
    let home = home();
    let call = |tool: &str, arguments: &[&str]| {
        json_of(
            &home,
            &[&["mcp", "call", "everything", tool], arguments].concat(),
        )
    };
    let hash = "4466be3b7a0e51778f8634f5e984197ec35c748caf4c3b32763f89c577d29614";
    let path = home
        .cache_dir()
        .join(format!("mcp-resources/everything/{hash}.png"));
    let image = json!({
        "type": "image", "spilled": true, "path": path, "uri": null, "mime_type": "image/png",
        "sniffed": false, "size_bytes": 4033, "sha256": hash,
    });
    let mut for_the_user = image.clone();
    for_the_user["audience"] = json!(["user"]);
    assert_eq!(
        call(
            "get-annotated-message",
            &["messageType=error", "includeImage:=true"]
        ),
        json!({ "content": [
            { "type": "text", "text": "Error: Operation failed", "audience": ["user", "assistant"] },
            for_the_user,
        ] })
    );
    assert_eq!(
        call("get-tiny-image", &[]),
        json!({ "content": [
            { "type": "text", "text": "Here's the image you requested:" },
            image,
            { "type": "text", "text": "The image above is the MCP logo." },
        ] })
    );
    let link = |kind: &str, name: &str, n: u32| {
        let uri = format!("demo://resource/dynamic/{kind}/{n}");
        json!({
            "type": "resource_link", "uri": uri, "name": format!("{name} Resource {n}"),
            "description": format!("Resource {n}: plaintext resource"), "mime_type": "text/plain",
            "read_with": { "function": "mcp_read_everything", "arguments": { "uri": uri } },
        })
    };
    assert_eq!(
        call("get-resource-links", &["count:=2"]),
        json!({ "content": [
            { "type": "text", "text": "Here are 2 resource links to resources available in this server:" },
            link("blob", "Blob", 1),
            link("text", "Text", 2),
        ] })
    );
    for (kind, what, n) in [
        ("Text", "This is a plaintext resource", 3),
        ("Blob", "This is a base64 blob", 2),
    ] {
        let mut shown = call(
            "get-resource-reference",
            &[&format!("resourceType={kind}"), &format!("resourceId:={n}")],
        );
        let text = shown["content"][1]["text"].take();
        let text = text.as_str().unwrap();
        assert!(
            text.starts_with(&format!("Resource {n}: {what} created at ")),
            "{text}"
        );
        let uri = format!("demo://resource/dynamic/{}/{n}", kind.to_lowercase());
        assert_eq!(
            shown,
            json!({ "content": [
                { "type": "text", "text": format!("Returning resource reference for Resource {n}:") },
                { "type": "resource", "uri": uri, "mime_type": "text/plain", "text": null },
                { "type": "text", "text": format!("You can access this resource using the URI: {uri}") },
            ] })
        );
    }
    assert_eq!(
        call("get-structured-content", &["location=Chicago"]),
        json!({
            "content": [],
            "structuredContent": { "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82 },
        })
    );
}

#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn a_turn_searches_and_reads_a_real_server() {
    let home = home();
    let resources = json_of(&home, &["mcp", "resources", "everything"]);
    let items = resources
        .as_array()
        .or_else(|| resources["items"].as_array())
        .unwrap();
    let uri = items[0]["uri"].as_str().unwrap().to_owned();
    let provider = Provider::new(vec![
        chat_calls(&[(
            "call_a",
            "mcp_search_everything",
            json!({ "query": "architecture" }),
        )]),
        chat_calls(&[
            ("call_b", "mcp_read_everything", json!({ "uri": uri })),
            (
                "call_c",
                "mcp_read_everything",
                json!({ "uri": "demo://resource/dynamic/text/{resourceId}", "arguments": { "resourceId": 7 } }),
            ),
        ]),
        chat_text("It is documented."),
    ]);
    home.provider(&provider.url(), "enabled_mcp_servers: everything");
    let output = home
        .coyote(&["what does the server document?"])
        .any_stderr()
        .ok();
    assert_eq!(output.stdout, "It is documented.\n");
    let asked = provider.asked();
    let tools: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    for name in [
        "mcp_invoke_everything",
        "mcp_search_everything",
        "mcp_describe_everything",
        "mcp_read_everything",
    ] {
        assert!(tools.contains(&name), "{name} is missing: {tools:?}");
    }
    let messages = asked[2].body["messages"].as_array().unwrap();
    assert_eq!(messages[2]["tool_call_id"], "call_a");
    let found: Value = serde_json::from_str(messages[2]["content"].as_str().unwrap()).unwrap();
    assert!(
        found
            .as_array()
            .is_some_and(|items| !items.is_empty() && items[0]["kind"].is_string()),
        "{found}"
    );
    assert_eq!(
        (&messages[4]["tool_call_id"], &messages[5]["tool_call_id"]),
        (&json!("call_b"), &json!("call_c"))
    );
    let read: Value = serde_json::from_str(messages[4]["content"].as_str().unwrap()).unwrap();
    assert_eq!(read["uri"], uri.as_str());
    assert!(
        read["text"].as_str().is_some_and(|text| !text.is_empty()),
        "{read}"
    );
    assert_eq!(read["next_offset"], Value::Null);
    let dynamic: Value = serde_json::from_str(messages[5]["content"].as_str().unwrap()).unwrap();
    assert_eq!(dynamic["uri"], "demo://resource/dynamic/text/7");
}

/// The time at the end of a generated resource, replaced.
fn timeless(text: &str) -> String {
    match text.split_once(" created at ") {
        Some((before, _)) => format!("{before} created at TIME"),
        None => text.to_owned(),
    }
}

/// A prompt's name, its arguments and the block they make.
type Filled = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// Each prompt of server-everything.
const PROMPTS: &[Filled] = &[
    (
        "simple-prompt",
        &[],
        "[user]\nThis is a simple prompt without arguments.",
    ),
    (
        "args-prompt",
        &[("city", "Paris")],
        "[user]\nWhat's weather in Paris?",
    ),
    (
        "args-prompt",
        &[("city", "Paris"), ("state", "TX")],
        "[user]\nWhat's weather in Paris, TX?",
    ),
    (
        "completable-prompt",
        &[("department", "Sales"), ("name", "David")],
        "[user]\nPlease promote David to the head of the Sales team.",
    ),
    (
        "resource-prompt",
        &[("resourceType", "Text"), ("resourceId", "1")],
        "[user]\nThis prompt includes the Text resource with id: 1. Please analyze the following resource:\n\n\
         [user]\n[resource demo://resource/dynamic/text/1 text/plain]\n\
         Resource 1: This is a plaintext resource created at TIME",
    ),
    (
        "resource-prompt",
        &[("resourceType", "Blob"), ("resourceId", "2")],
        "[user]\nThis prompt includes the Blob resource with id: 2. Please analyze the following resource:\n\n\
         [user]\n[resource demo://resource/dynamic/blob/2 text/plain]\n\
         Resource 2: This is a base64 blob created at TIME",
    ),
];

#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn the_prompts_of_a_real_server_become_blocks() {
    let home = home();
    for (name, arguments, block) in PROMPTS {
        let words: Vec<String> = arguments
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let mut args = vec!["mcp", "prompt", "everything", name];
        args.extend(words.iter().map(String::as_str));
        let shown = home.coyote(&args).ok().stdout;
        assert_eq!(timeless(&shown), *block, "{name} {words:?}");
    }
}

#[test]
#[ignore = "needs the real servers of tests/peers/run.sh"]
fn a_turn_renders_the_prompts_of_a_real_server() {
    let home = home();
    let calls: Vec<(String, Value)> = PROMPTS
        .iter()
        .enumerate()
        .map(|(index, (name, arguments, _))| {
            let arguments: serde_json::Map<String, Value> = arguments
                .iter()
                .map(|(key, value)| ((*key).to_owned(), json!(value)))
                .collect();
            (
                format!("call_{index}"),
                json!({ "prompt": name, "arguments": arguments }),
            )
        })
        .collect();
    let calls: Vec<(&str, &str, Value)> = calls
        .iter()
        .map(|(id, arguments)| (id.as_str(), "mcp_prompt_everything", arguments.clone()))
        .collect();
    let provider = Provider::new(vec![chat_calls(&calls), chat_text("done")]);
    home.provider(&provider.url(), "enabled_mcp_servers: everything");
    home.coyote(&["render them"]).any_stderr().ok();
    let messages = provider.asked()[1].body["messages"].clone();
    let results = &messages.as_array().unwrap()[2..];
    assert_eq!(results.len(), PROMPTS.len());
    for (result, (name, _, block)) in results.iter().zip(PROMPTS) {
        assert_eq!(
            timeless(result["content"].as_str().unwrap()),
            *block,
            "{name}"
        );
    }
}
