//! A scripted MCP server for tests: `fake_mcp SCENARIO` plays a polite server or one of many hostile ones on stdin
//! and stdout. `fake_mcp --list` names the scenarios; `scenario.rs` is the table, `content.rs` what it serves.
//!
//! `fake_mcp --http SCENARIO [WIRE]` serves the same over streamable HTTP on a free port and prints its URL; `WIRE` is
//! one more way to misbehave, of the protocol below, see `http.rs`. It ends when its stdin does.
//!
//! Environment: `FAKE_LOG=FILE` appends every message the client sends, a line each; `FAKE_PIDS=FILE` gets the process
//! ids of the server and of the helper it started; `FAKE_HTTP_LOG=FILE` gets every request's verb, path and headers.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::zombie_processes,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::string_slice,
    clippy::too_many_lines,
    reason = "a test program: failing loudly is its job"
)]

mod content;
mod http;
mod scenario;

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scenario::{Handshake, Paging, Scenario, Shape};
use serde_json::{Value, json};

const METHOD_NOT_FOUND: i64 = -32601;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    if name == "--list" {
        for (name, what) in scenario::NAMES {
            println!("{name:<22} {what}");
        }
        for (name, what) in http::WIRES {
            println!("--http full {name:<22} {what}");
        }
        return;
    }
    if name == "--helper" {
        // What a server leaves behind: holds the pipes it inherited and ignores everything but SIGKILL.
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    if name == "--http" {
        let scenario = std::env::args().nth(2).unwrap_or_default();
        let wire = std::env::args().nth(3).unwrap_or_else(|| "plain".into());
        return http::serve(&Server::new(named(&scenario), Out::Stdout), &wire);
    }
    Server::new(named(&name), Out::Stdout).run();
}

fn named(name: &str) -> Scenario {
    Scenario::named(name).unwrap_or_else(|| {
        eprintln!("fake_mcp: no scenario `{name}`; see `fake_mcp --list`");
        std::process::exit(2);
    })
}

/// Where messages go.
#[derive(Clone)]
enum Out {
    Stdout,
    /// To whoever makes a response of them.
    Response(Sender<String>),
}

impl Out {
    fn line(&self, line: &str) {
        match self {
            Self::Stdout => stdout_line(line),
            // A client that is gone loses its answer.
            Self::Response(lines) => drop(lines.send(line.to_owned())),
        }
    }
}

/// Writes one line; a client that is gone ends the server.
fn stdout_line(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.write_all(b"\n"))
        .and_then(|()| stdout.flush());
    if written.is_err() {
        std::process::exit(0);
    }
}

fn append(variable: &str, line: &str) {
    if let Some(path) = std::env::var_os(variable) {
        let file = OpenOptions::new().create(true).append(true).open(path);
        // At once: several threads append.
        file.unwrap()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }
}

#[derive(Clone)]
struct Server {
    scenario: Arc<Scenario>,
    pages: Arc<AtomicUsize>,
    /// How often `change` was called: so many tools there are more.
    changes: Arc<AtomicUsize>,
    /// Requests that were answered, for servers that end after some of them.
    served: Arc<AtomicUsize>,
    /// What was cancelled.
    cancelled: Arc<Mutex<Vec<Value>>>,
    out: Out,
}

impl Server {
    fn new(scenario: Scenario, out: Out) -> Self {
        Self {
            scenario: Arc::new(scenario),
            pages: Arc::default(),
            changes: Arc::default(),
            served: Arc::default(),
            cancelled: Arc::default(),
            out,
        }
    }

    /// The same server, whose messages go somewhere else.
    fn to(&self, out: Out) -> Self {
        Self {
            out,
            ..self.clone()
        }
    }

    fn run(self) {
        if self.scenario.ignore_term {
            ignore_term();
        }
        append("FAKE_PIDS", &std::process::id().to_string());
        if self.scenario.helper {
            start_helper();
        }
        for _ in 0..self.scenario.stderr_lines {
            eprintln!("{}", "e".repeat(99));
        }
        if let Some(words) = self.scenario.last_words {
            eprintln!("{words}");
        }
        if let Some(code) = self.scenario.quits {
            std::process::exit(code);
        }
        for line in std::io::stdin().lock().split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            append("FAKE_LOG", &line);
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            self.take(&message);
        }
        if self.scenario.ignore_eof {
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    }

    fn take(&self, message: &Value) {
        let Some(method) = message["method"].as_str() else {
            return;
        };
        let id = message["id"].clone();
        if id.is_null() {
            self.notified(method, &message["params"]);
            return;
        }
        let served = self.served.fetch_add(1, Ordering::SeqCst) + 1;
        if self.scenario.ends_after.is_some_and(|most| served > most) {
            std::process::exit(9);
        }
        let params = &message["params"];
        match method {
            "initialize" => self.initialize(id, params),
            "server/discover" => self.discover(id),
            _ if self.scenario.silent.contains(&method) => {}
            _ if self.scenario.broken.contains(&method) => {
                self.error(id, -32603, "the database is away");
            }
            _ if self.scenario.refuses.contains(&method) => self.refuse(id, method),
            "tools/list" => {
                let added = (1..=self.changes.load(Ordering::SeqCst))
                    .map(|n| content::tool(&format!("tool_new_{n}"), "was not there before"));
                let tools: Vec<Value> = self.scenario.tools.iter().cloned().chain(added).collect();
                self.list(id, params, "tools", &tools);
            }
            "prompts/list" => self.list(id, params, "prompts", &self.scenario.prompts),
            "resources/list" => self.list(id, params, "resources", &self.scenario.resources),
            "resources/templates/list" => {
                self.list(id, params, "resourceTemplates", &self.scenario.templates);
            }
            "tools/call" => self.call(id, params),
            "resources/read" => match content::read(params["uri"].as_str().unwrap_or_default()) {
                Some(result) => self.result(id, result),
                None => self.error(id, -32002, "Resource not found"),
            },
            "prompts/get" if params["name"] == "never" => {}
            "prompts/get" if params["name"] == "die" => std::process::exit(9),
            "prompts/get" => match content::prompt(params) {
                Ok(result) => self.result(id, result),
                Err(message) => self.error(id, -32602, &message),
            },
            "completion/complete" => self.result(id, content::complete(params)),
            "ping" => self.result(id, json!({})),
            _ => self.refuse(id, method),
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => {
                for line in &self.scenario.after_handshake {
                    self.out.line(line);
                }
            }
            "notifications/cancelled" => {
                self.cancelled
                    .lock()
                    .unwrap()
                    .push(params["requestId"].clone());
            }
            _ => {}
        }
    }

    fn initialize(&self, id: Value, params: &Value) {
        for line in &self.scenario.noise {
            self.out.line(line);
        }
        if self.scenario.bad_bytes && matches!(self.out, Out::Stdout) {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(b"\xff\xfe not text\n").unwrap();
        }
        let mut result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": self.scenario.capabilities,
            "serverInfo": { "name": "fake", "version": "1.2.3" },
            "instructions": "Ask it anything.",
        });
        let fields = result.as_object_mut().unwrap();
        match &self.scenario.handshake {
            Handshake::Good => {}
            Handshake::Silent => return,
            Handshake::Exit(code) => std::process::exit(*code),
            Handshake::Error(code, message) => return self.error(id, *code, message),
            Handshake::Version(version) => {
                fields.insert("protocolVersion".into(), json!(version));
            }
            Handshake::Echo => {
                fields.insert("protocolVersion".into(), params["protocolVersion"].clone());
            }
            Handshake::Without(key) => {
                fields.remove(*key);
            }
            Handshake::With(key, value) => {
                fields.insert((*key).into(), value.clone());
            }
        }
        self.result(id, result);
    }

    fn discover(&self, id: Value) {
        if !self.scenario.discovers {
            return self.refuse(id, "server/discover");
        }
        self.result(
            id,
            json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": self.scenario.capabilities,
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fake", "version": "1.2.3" } },
                "ttlMs": 0,
                "cacheScope": "private",
            }),
        );
    }

    fn list(&self, id: Value, params: &Value, key: &str, items: &[Value]) {
        let page = self.pages.fetch_add(1, Ordering::SeqCst) + 1;
        match &self.scenario.paging {
            Paging::Whole => self.result(id, json!({ key: items })),
            Paging::By(size) => {
                let start: usize = params["cursor"]
                    .as_str()
                    .map_or(0, |cursor| cursor.parse().unwrap());
                let end = (start + size).min(items.len());
                let mut result = json!({ key: items[start..end] });
                if end < items.len() {
                    result["nextCursor"] = json!(end.to_string());
                }
                self.result(id, result);
            }
            Paging::Cursor(cursor) => {
                self.result(id, json!({ key: items, "nextCursor": cursor }));
            }
            Paging::Endless => {
                let item = content::tool(&format!("tool_{page}"), "one of very many");
                self.result(id, json!({ key: [item], "nextCursor": format!("c{page}") }));
            }
            Paging::Stall(after) if page > *after => {}
            Paging::Stall(_) => {
                let item = content::tool(&format!("tool_{page}"), "one of some");
                self.result(id, json!({ key: [item], "nextCursor": format!("c{page}") }));
            }
            Paging::Value(value) => self.result(id, value.clone()),
        }
    }

    fn call(&self, id: Value, params: &Value) {
        let tool = params["name"].as_str().unwrap_or_default();
        match tool {
            "never" => {}
            "die" => std::process::exit(9),
            "sleep" => {
                let server = self.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_secs(60));
                    server.result(id, json!({ "content": [] }));
                });
            }
            "slow" => {
                let token = params["_meta"]["progressToken"].clone();
                let steps = params["arguments"]["steps"].as_u64().unwrap_or(5);
                let pause = params["arguments"]["pause_ms"].as_u64().unwrap_or(100);
                let server = self.clone();
                std::thread::spawn(move || {
                    for step in 1..=steps {
                        std::thread::sleep(Duration::from_millis(pause));
                        let report = json!({
                            "jsonrpc": "2.0",
                            "method": "notifications/progress",
                            "params": {
                                "progressToken": token,
                                "progress": step,
                                "total": steps,
                                "message": format!("step {step}"),
                            },
                        });
                        server.out.line(&report.to_string());
                    }
                    server.result(id, content::text_result("done"));
                });
            }
            "change" => {
                self.changes.fetch_add(1, Ordering::SeqCst);
                for kind in ["tools", "resources", "prompts"] {
                    let method = format!("notifications/{kind}/list_changed");
                    let message = json!({ "jsonrpc": "2.0", "method": method });
                    self.out.line(&message.to_string());
                }
                self.result(id, content::text_result("changed"));
            }
            "log" => {
                for level in ["debug", "info", "notice", "warning", "error", "emergency"] {
                    let message = json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/message",
                        "params": { "level": level, "logger": "fake", "data": format!("a word of {level}") },
                    });
                    self.out.line(&message.to_string());
                }
                self.result(id, content::text_result("logged"));
            }
            // What was cancelled, in the order in which it came.
            "cancelled" => {
                let cancelled = json!(*self.cancelled.lock().unwrap());
                self.result(id, content::text_result(&cancelled.to_string()));
            }
            "oversized" => {
                let chunk = "x".repeat(130 * 1024 * 1024);
                self.out.line(&chunk);
            }
            _ => match content::call(tool, &params["arguments"]) {
                Some(result) => self.result(id, result),
                None => self.error(id, -32602, &format!("Unknown tool: {tool}")),
            },
        }
    }

    fn refuse(&self, id: Value, method: &str) {
        self.error(id, METHOD_NOT_FOUND, &format!("Method not found: {method}"));
    }

    fn error(&self, id: Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": self.scenario.decorate(message) });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn result(&self, id: Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn send(&self, answer: Value) {
        self.out.line(&shaped(self.scenario.shape, answer));
    }
}

/// An answer in the shape that the scenario likes.
fn shaped(shape: Shape, mut answer: Value) -> String {
    let fields = answer.as_object_mut().unwrap();
    match shape {
        Shape::Right => {}
        Shape::StringId => {
            let id = fields["id"].to_string();
            fields.insert("id".into(), json!(id));
        }
        Shape::NoVersion => {
            fields.remove("jsonrpc");
        }
        Shape::Batch => answer = json!([answer]),
        Shape::Both => {
            if fields["id"] != json!(0) {
                let error = json!({ "code": 1, "message": "both" });
                fields.insert("error".into(), error);
            }
        }
        Shape::Neither => {
            if fields["id"] != json!(0) {
                fields.remove("result");
            }
        }
        Shape::IdlessError => {
            if fields["id"] != json!(0) {
                let error = json!({ "code": -32700, "message": "parse error" });
                answer = json!({ "jsonrpc": "2.0", "error": error });
            }
        }
        Shape::Bom => return format!("\u{feff}{answer}"),
    }
    answer.to_string()
}

/// Starts a process that outlives its parent and holds its pipes.
fn start_helper() {
    let helper = std::process::Command::new(std::env::current_exe().unwrap())
        .arg("--helper")
        .spawn()
        .unwrap();
    append("FAKE_PIDS", &helper.id().to_string());
}

/// Makes SIGTERM mean nothing, without `unsafe`: a shell that ignores it starts us again.
#[cfg(unix)]
fn ignore_term() {
    use std::os::unix::process::CommandExt as _;
    if std::env::var_os("FAKE_IGNORES_TERM").is_none() {
        let error = std::process::Command::new("sh")
            .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(std::env::args().skip(1))
            .env("FAKE_IGNORES_TERM", "1")
            .exec();
        panic!("sh: {error}");
    }
}

#[cfg(not(unix))]
fn ignore_term() {}
