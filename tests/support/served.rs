//! A home with one scripted MCP server called `s`, over either transport, and what it was asked.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::home::Home;
use super::run::Run;

/// How the server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    Stdio,
    /// Streamable HTTP, with one more way to misbehave: see `fake_mcp --list`.
    Http(&'static str),
}

/// The transports that every server can be reached by.
pub const BOTH: [Wire; 2] = [Wire::Stdio, Wire::Http("plain")];
/// As [`BOTH`], and answers that come as streams of events.
pub const ALL: [Wire; 3] = [Wire::Stdio, Wire::Http("plain"), Wire::Http("stream")];

/// A home whose only server is the scripted one.
pub struct Served {
    pub home: Home,
    _web: Option<Web>,
}

/// `fake_mcp --http`; ends with the value.
pub struct Web {
    child: Child,
    pub url: String,
}

impl Web {
    pub fn start(home: &Home, scenario: &str, wire: &str) -> Self {
        let mut child = Command::new(super::fake_mcp())
            .args(["--http", scenario, wire])
            .env("FAKE_LOG", home.path().join("log"))
            .env("FAKE_PIDS", home.path().join("pids"))
            .env("FAKE_HTTP_LOG", home.path().join("http"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What only the server at the other end may learn.
pub const TOKEN: &str = "Bearer t0p-s3cret-token";

impl Served {
    pub fn new(scenario: &str, wire: Wire) -> Self {
        Self::with(scenario, wire, &json!({}))
    }

    /// With further keys in the server's entry.
    pub fn with(scenario: &str, wire: Wire, more: &Value) -> Self {
        let home = Home::new();
        let (mut entry, web) = match wire {
            Wire::Stdio => {
                let entry = json!({
                    "command": super::fake_mcp(),
                    "args": [scenario],
                    "env": { "FAKE_LOG": home.path().join("log"), "FAKE_PIDS": home.path().join("pids") },
                });
                (entry, None)
            }
            Wire::Http(wire) => {
                let web = Web::start(&home, scenario, wire);
                let entry = json!({ "url": web.url, "headers": { "Authorization": TOKEN } });
                (entry, Some(web))
            }
        };
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        home.config_file(
            "mcp.json",
            &json!({ "mcpServers": { "s": entry } }).to_string(),
        );
        Self { home, _web: web }
    }

    /// `coyote mcp …`
    pub fn mcp(&self, args: &[&str]) -> Run {
        self.home.coyote(&[&["mcp"], args].concat())
    }

    /// What `coyote mcp … --json` prints; it must succeed, and may speak on stderr.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.mcp(args).arg("--json").any_stderr().ok();
        serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", output.stdout))
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.home.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Every message the server got.
    pub fn messages(&self) -> Vec<Value> {
        let lines = self.lines("log");
        lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The methods the server was asked for.
    pub fn methods(&self) -> Vec<String> {
        let messages = self.messages();
        messages
            .iter()
            .filter_map(|message| message["method"].as_str().map(str::to_owned))
            .collect()
    }

    /// Every HTTP request the server got: `at`, `verb`, `path`, `headers`, `method`.
    pub fn requests(&self) -> Vec<Value> {
        let lines = self.lines("http");
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The processes the server was so far.
    pub fn pids(&self) -> Vec<u32> {
        let lines = self.lines("pids");
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    /// Where payloads go.
    pub fn spilled(&self) -> PathBuf {
        self.home.cache_dir().join("mcp-resources").join("s")
    }
}

/// What `blob://size/N` holds.
pub fn pattern(size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..size)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect();
    for (place, byte) in bytes.iter_mut().zip([0xff, 0xfe]) {
        *place = byte;
    }
    bytes
}
