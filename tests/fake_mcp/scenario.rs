//! The table of scenarios: each is the polite server with a few things changed.

use serde_json::{Value, json};

use crate::content;

/// How `initialize` is answered.
pub enum Handshake {
    Good,
    Silent,
    Exit(i32),
    Error(i64, &'static str),
    Version(&'static str),
    Echo,
    Without(&'static str),
    With(&'static str, Value),
}

/// How lists are cut.
pub enum Paging {
    Whole,
    By(usize),
    /// Everything, again and again, with this cursor.
    Cursor(&'static str),
    /// One new item a page, for ever.
    Endless,
    /// That many pages, then silence.
    Stall(usize),
    /// This result.
    Value(Value),
}

/// What answers look like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Right,
    StringId,
    NoVersion,
    Batch,
    Both,
    Neither,
    IdlessError,
    Bom,
}

pub struct Scenario {
    pub capabilities: Value,
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
    pub prompts: Vec<Value>,
    pub handshake: Handshake,
    pub discovers: bool,
    pub paging: Paging,
    pub shape: Shape,
    /// Methods that are not served although they are advertised.
    pub refuses: Vec<&'static str>,
    /// Methods that are never answered.
    pub silent: Vec<&'static str>,
    /// Methods that fail.
    pub broken: Vec<&'static str>,
    /// Lines before the answer to `initialize`.
    pub noise: Vec<String>,
    pub bad_bytes: bool,
    /// Lines after the handshake.
    pub after_handshake: Vec<String>,
    pub stderr_lines: usize,
    pub last_words: Option<&'static str>,
    /// Ends at once with this code.
    pub quits: Option<i32>,
    pub helper: bool,
    pub ignore_term: bool,
    pub ignore_eof: bool,
    /// Ends instead of answering the request after that many.
    pub ends_after: Option<usize>,
    /// Error messages carry escape sequences.
    pub escapes: bool,
}

pub const NAMES: &[(&str, &str)] = &[
    (
        "full",
        "tools, resources, templates and prompts of every kind",
    ),
    ("tools-only", "tools, and nothing else is advertised"),
    (
        "resources-only",
        "resources, and nothing else is advertised",
    ),
    ("prompts-only", "prompts, and nothing else is advertised"),
    ("nothing", "no capability at all"),
    ("pages", "three pages of every kind, one item on the last"),
    ("endless", "a new cursor and a new item, for ever"),
    (
        "same-cursor",
        "the same page with the same cursor, for ever",
    ),
    (
        "empty-cursor",
        "the same page with the cursor \"\", for ever",
    ),
    ("stall", "three pages, then silence"),
    ("list-null", "lists that are null"),
    ("list-empty", "list answers that are {}"),
    (
        "resources-unserved",
        "resources advertised, -32601 to both lists",
    ),
    (
        "templates-unserved",
        "resources served, -32601 to templates",
    ),
    ("prompts-unserved", "prompts advertised, -32601 to the list"),
    ("prompts-silent", "prompts/list is never answered"),
    ("prompts-broken", "prompts/list fails"),
    (
        "twins",
        "a tool, a resource and a prompt all called `status`",
    ),
    ("names", "createIssue, create_issue_comment, HTTPServerLog2"),
    ("bad-tool", "five tools, one without inputSchema"),
    ("huge", "descriptions of 100 KB"),
    ("escapes", "terminal sequences in every string"),
    (
        "noise",
        "banner, blank line, log line, bad byte before the handshake",
    ),
    ("stderr-flood", "200 KB on stderr first"),
    ("hang", "never answers initialize"),
    ("exit3", "says something on stderr and exits with 3"),
    ("init-error", "refuses initialize with -32000"),
    (
        "init-unknown",
        "-32601 to initialize, answers server/discover",
    ),
    (
        "init-params",
        "-32602 to initialize, answers server/discover",
    ),
    (
        "init-revision",
        "-32022 to initialize, answers server/discover",
    ),
    (
        "init-exit-discover",
        "exits on initialize, answers server/discover",
    ),
    ("bad-version", "answers with revision 1999-01-01"),
    (
        "modern-version",
        "answers initialize with revision 2026-07-28",
    ),
    ("echo-version", "answers with the revision it was asked for"),
    ("no-server-info", "no serverInfo"),
    ("no-server-version", "serverInfo without version"),
    ("no-capabilities", "no capabilities"),
    ("no-version", "no protocolVersion"),
    ("caps-true", "capabilities.tools is true"),
    ("experimental-bool", "capabilities.experimental.x is true"),
    ("string-ids", "ids come back as strings"),
    ("no-jsonrpc", "answers lack `jsonrpc`"),
    ("batch", "answers come as one-element batches"),
    ("both", "answers have result and error"),
    ("neither", "answers have neither result nor error"),
    ("idless-error", "answers are errors without id"),
    ("bom", "every line begins with a byte order mark"),
    (
        "server-requests",
        "asks for roots, sampling, elicitation and a ping",
    ),
    ("helper", "leaves a helper that holds its pipes"),
    ("leaves", "ends instead of answering the 401st request"),
    ("quits", "ends before it reads anything"),
    ("plain-text", "says one thing that is no JSON, and ends"),
    ("ignore-eof", "stays when its stdin ends"),
    ("ignore-term", "stays at EOF and SIGTERM, with a helper"),
];

impl Scenario {
    fn polite() -> Self {
        Self {
            capabilities: json!({
                "tools": { "listChanged": true },
                "resources": { "listChanged": true },
                "prompts": { "listChanged": true },
                "completions": {},
                "logging": {},
            }),
            tools: content::tools(),
            resources: content::resources(),
            templates: content::templates(),
            prompts: content::prompts(),
            handshake: Handshake::Good,
            discovers: false,
            paging: Paging::Whole,
            shape: Shape::Right,
            refuses: Vec::new(),
            silent: Vec::new(),
            broken: Vec::new(),
            noise: Vec::new(),
            bad_bytes: false,
            after_handshake: Vec::new(),
            stderr_lines: 0,
            last_words: None,
            quits: None,
            helper: false,
            ignore_term: false,
            ignore_eof: false,
            ends_after: None,
            escapes: false,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        if !NAMES.iter().any(|(known, _)| *known == name) {
            return None;
        }
        let mut it = Self::polite();
        let only = |kind: &str| json!({ kind: {} });
        match name {
            "tools-only" => it.capabilities = only("tools"),
            "resources-only" => it.capabilities = only("resources"),
            "prompts-only" => it.capabilities = only("prompts"),
            "nothing" => it.capabilities = json!({}),
            "pages" => it.numbered(5, Paging::By(2)),
            "endless" => it.paging = Paging::Endless,
            "same-cursor" => it.numbered(2, Paging::Cursor("same")),
            "empty-cursor" => it.numbered(2, Paging::Cursor("")),
            "stall" => it.paging = Paging::Stall(3),
            "list-null" => {
                it.paging = Paging::Value(json!({
                    "tools": null, "resources": null, "resourceTemplates": null, "prompts": null,
                }));
            }
            "list-empty" => it.paging = Paging::Value(json!({})),
            "resources-unserved" => {
                it.refuses = vec!["resources/list", "resources/templates/list"];
            }
            "templates-unserved" => it.refuses = vec!["resources/templates/list"],
            "prompts-unserved" => it.refuses = vec!["prompts/list"],
            "prompts-silent" => it.silent = vec!["prompts/list"],
            "prompts-broken" => it.broken = vec!["prompts/list"],
            "twins" => it.twins(),
            "names" => {
                it.tools = ["createIssue", "create_issue_comment", "HTTPServerLog2"]
                    .map(|name| content::tool(name, "works on things"))
                    .to_vec();
            }
            "bad-tool" => {
                it.tools = (1..=5)
                    .map(|n| content::tool(&format!("tool_{n}"), "fine"))
                    .collect();
                it.tools[2].as_object_mut().unwrap().remove("inputSchema");
            }
            "huge" => it.describe(&"long ".repeat(20_000)),
            "escapes" => it.escape(),
            "noise" => {
                it.noise = [
                    "Welcome to the server!",
                    "",
                    r#"{"level":"info"}"#,
                    "[",
                    "42",
                ]
                .map(str::to_owned)
                .to_vec();
                it.bad_bytes = true;
            }
            "stderr-flood" => it.stderr_lines = 2000,
            "hang" => it.handshake = Handshake::Silent,
            "exit3" => {
                it.last_words = Some("fatal: no database");
                it.handshake = Handshake::Exit(3);
            }
            "init-error" => it.handshake = Handshake::Error(-32000, "go away"),
            "init-unknown" => it.modern(Handshake::Error(-32601, "Method not found")),
            "init-params" => it.modern(Handshake::Error(-32602, "Invalid params")),
            "init-revision" => it.modern(Handshake::Error(-32022, "Unsupported revision")),
            "init-exit-discover" => it.modern(Handshake::Exit(1)),
            "bad-version" => it.handshake = Handshake::Version("1999-01-01"),
            "modern-version" => it.handshake = Handshake::Version("2026-07-28"),
            "echo-version" => it.handshake = Handshake::Echo,
            "no-server-info" => it.handshake = Handshake::Without("serverInfo"),
            "no-server-version" => {
                it.handshake = Handshake::With("serverInfo", json!({ "name": "x" }));
            }
            "no-capabilities" => it.handshake = Handshake::Without("capabilities"),
            "no-version" => it.handshake = Handshake::Without("protocolVersion"),
            "caps-true" => it.capabilities = json!({ "tools": true, "prompts": false }),
            "experimental-bool" => {
                it.capabilities = json!({ "tools": {}, "experimental": { "x": true } });
            }
            "string-ids" => it.shape = Shape::StringId,
            "no-jsonrpc" => it.shape = Shape::NoVersion,
            "batch" => it.shape = Shape::Batch,
            "both" => it.shape = Shape::Both,
            "neither" => it.shape = Shape::Neither,
            "idless-error" => it.shape = Shape::IdlessError,
            "bom" => it.shape = Shape::Bom,
            "server-requests" => it.after_handshake = content::server_requests(),
            "helper" => it.helper = true,
            "leaves" => it.ends_after = Some(400),
            "quits" => it.quits = Some(4),
            "plain-text" => {
                it.last_words = Some("usage: fake_mcp SCENARIO");
                it.quits = Some(2);
            }
            "ignore-eof" => it.ignore_eof = true,
            "ignore-term" => {
                it.helper = true;
                it.ignore_eof = true;
                it.ignore_term = true;
            }
            _ => {}
        }
        Some(it)
    }

    /// `count` items of every kind.
    fn numbered(&mut self, count: usize, paging: Paging) {
        let all = 1..=count;
        self.tools = all
            .clone()
            .map(|n| content::tool(&format!("tool_{n}"), "a tool"))
            .collect();
        self.resources = all
            .clone()
            .map(|n| json!({ "uri": format!("page://resource/{n}"), "name": format!("resource_{n}") }))
            .collect();
        self.templates = all
            .clone()
            .map(|n| json!({ "uriTemplate": format!("page://{n}/{{id}}"), "name": format!("template_{n}") }))
            .collect();
        self.prompts = all
            .map(|n| json!({ "name": format!("prompt_{n}"), "description": "a prompt" }))
            .collect();
        self.paging = paging;
    }

    fn twins(&mut self) {
        self.tools = vec![content::tool("status", "the tool")];
        self.resources =
            vec![json!({ "uri": "status", "name": "status", "description": "the resource" })];
        self.prompts = vec![json!({ "name": "status", "description": "the prompt" })];
    }

    fn modern(&mut self, handshake: Handshake) {
        self.handshake = handshake;
        self.discovers = true;
    }

    fn lists(&mut self) -> impl Iterator<Item = &mut Value> {
        self.tools
            .iter_mut()
            .chain(&mut self.resources)
            .chain(&mut self.templates)
            .chain(&mut self.prompts)
    }

    fn describe(&mut self, description: &str) {
        for item in self.lists() {
            item["description"] = json!(description);
        }
    }

    /// Puts terminal sequences into every name, title and description.
    fn escape(&mut self) {
        self.escapes = true;
        self.last_words = Some(content::ESCAPES);
        for item in self.lists() {
            for key in ["title", "description"] {
                item[key] = json!(content::ESCAPES);
            }
            if let Some(arguments) = item.get_mut("arguments").and_then(Value::as_array_mut) {
                for argument in arguments {
                    argument["description"] = json!(content::ESCAPES);
                }
            }
        }
        let name = format!("evil{}", content::ESCAPES);
        self.tools.push(content::tool(&name, content::ESCAPES));
        self.prompts
            .push(json!({ "name": name, "description": content::ESCAPES }));
        self.resources
            .push(json!({ "uri": "evil://x", "name": name }));
    }

    pub fn decorate(&self, message: &str) -> String {
        if self.escapes {
            format!("{message}{}", content::ESCAPES)
        } else {
            message.to_owned()
        }
    }
}
