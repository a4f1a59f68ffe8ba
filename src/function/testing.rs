//! For the tests of this module: an environment in a temporary directory, a person with prepared answers, a sink that
//! remembers.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::{Approvals, DispatchEnv, Functions, Limits, Tracker, dispatch};
use crate::chat::{
    Answer, Arguments, Ask, CallId, Notice, NoticeSink, Question, ToolCall, ToolOutput,
};
use crate::mcp::Confirm;
use crate::mcp::runtime::McpRuntime;
use crate::utils::AbortToken;

/// Answers in order; nobody is there when the answers are used up.
#[derive(Default)]
pub(super) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    pub(super) asked: Mutex<Vec<Question>>,
}

impl Ask for Scripted {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        self.asked.lock().push(question);
        let answer = self
            .answers
            .lock()
            .pop_front()
            .unwrap_or(Answer::Unavailable);
        Box::pin(async move { answer })
    }
}

/// Remembers notices.
#[derive(Default)]
pub(super) struct Recorder(pub(super) Mutex<Vec<Notice>>);

impl NoticeSink for Recorder {
    fn notice(&self, notice: Notice) {
        self.0.lock().push(notice);
    }
}

pub(super) struct Bench {
    _dir: tempfile::TempDir,
    pub(super) env: DispatchEnv,
    pub(super) ask: Arc<Scripted>,
    pub(super) sink: Arc<Recorder>,
    pub(super) tracker: Tracker,
}

impl Bench {
    /// Everything built in, nobody to ask.
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (ask, sink) = (Arc::new(Scripted::default()), Arc::new(Recorder::default()));
        let env = DispatchEnv {
            functions: Arc::new(Functions::built_in()),
            mcp: McpRuntime::default(),
            limits: Limits::default(),
            mcp_confirm: Confirm::default(),
            approve_all: false,
            session_approvals: Arc::new(Approvals::default()),
            ask: Arc::clone(&ask) as Arc<dyn Ask>,
            sink: Arc::clone(&sink) as Arc<dyn NoticeSink>,
            abort: AbortToken::new(),
            cwd: std::fs::canonicalize(dir.path()).unwrap(),
            supervisor: None,
            scrub_env: Arc::from([]),
        };
        Self {
            _dir: dir,
            env,
            ask,
            sink,
            tracker: Tracker::default(),
        }
    }

    /// `-y`.
    pub(super) fn approving() -> Self {
        let mut bench = Self::new();
        bench.env.approve_all = true;
        bench
    }

    pub(super) fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let bench = Self::new();
        bench.ask.answers.lock().extend(answers);
        bench
    }

    pub(super) fn path(&self) -> &Path {
        &self.env.cwd
    }

    pub(super) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// One call as a model makes it.
    pub(super) async fn call(&mut self, name: &str, arguments: Value) -> ToolOutput {
        // Repeats are another test's business.
        self.tracker = Tracker::default();
        let results = self.batch(&[(name, arguments)]).await;
        results.into_iter().next().unwrap()
    }

    /// One answer's calls.
    pub(super) async fn batch(&mut self, calls: &[(&str, Value)]) -> Vec<ToolOutput> {
        let calls: Vec<ToolCall> = calls
            .iter()
            .enumerate()
            .map(|(at, (name, arguments))| call(&format!("c{at}"), name, arguments))
            .collect();
        let results = dispatch(&self.env, calls.clone(), &mut self.tracker).await;
        let answered: Vec<&ToolCall> = results.iter().map(|result| &result.call).collect();
        assert_eq!(
            answered,
            calls.iter().collect::<Vec<_>>(),
            "one answer each, in order"
        );
        results.into_iter().map(|result| result.output).collect()
    }

    pub(super) async fn ok(&mut self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments).await;
        assert!(!output.is_error, "{}", output.to_text());
        output.to_text()
    }

    pub(super) async fn error(&mut self, name: &str, arguments: Value) -> String {
        let output = self.call(name, arguments).await;
        assert!(output.is_error, "{}", output.to_text());
        output.value["tool_call_error"].as_str().unwrap().to_owned()
    }
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
    let arguments = match arguments {
        Value::String(text) => Arguments::parse(text),
        other => Arguments::parse(&other.to_string()),
    };
    ToolCall {
        id: CallId(id.into()),
        name: name.into(),
        arguments,
    }
}

/// A scripted MCP server inside this process: two resources' worth of everything, and a log of what it was asked.
pub(super) struct Peer {
    pub(super) server: Arc<crate::mcp::ConnectedServer>,
    pub(super) log: Arc<Mutex<Vec<Value>>>,
}

impl Peer {
    /// Connects; `adjust` changes the entry it is connected from.
    pub(super) async fn connect(
        name: &str,
        adjust: impl FnOnce(&mut crate::mcp::ServerSpec),
    ) -> Self {
        let mut spec = crate::mcp::test_support::program(name, "unused", &[]);
        adjust(&mut spec);
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let log = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(serve(theirs, Arc::clone(&log)));
        let server = crate::mcp::ConnectedServer::over_streams(&spec, input, output)
            .await
            .unwrap();
        Self { server, log }
    }

    /// The methods it was asked for, without the handshake and notifications of it.
    pub(super) fn methods(&self) -> Vec<String> {
        let log = self.log.lock();
        let methods = log.iter().filter_map(|message| message["method"].as_str());
        methods
            .filter(|method| !matches!(*method, "initialize" | "notifications/initialized"))
            .map(str::to_owned)
            .collect()
    }

    pub(super) fn asked(&self, method: &str) -> Vec<Value> {
        let log = self.log.lock();
        let fits = |message: &&Value| message["method"] == method;
        log.iter().filter(fits).cloned().collect()
    }
}

impl Bench {
    /// Puts servers into the environment, with their functions declared.
    pub(super) fn with_servers(mut self, peers: &[&Peer]) -> Self {
        let spill = crate::mcp::spill::SpillDir::new(self.path().join("spill"));
        let servers = peers.iter().map(|peer| Arc::clone(&peer.server));
        self.env.mcp = McpRuntime::new(servers, spill);
        let mut functions = (*self.env.functions).clone();
        functions.append_mcp_meta_functions(self.env.mcp.server_features());
        self.env.functions = Arc::new(functions);
        self
    }
}

async fn serve(stream: tokio::io::DuplexStream, log: Arc<Mutex<Vec<Value>>>) {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let (input, mut output) = tokio::io::split(stream);
    let mut lines = tokio::io::BufReader::new(input).lines();
    // Calls of `pair` are answered two at a time.
    let mut waiting: Option<Value> = None;
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        log.lock().push(message.clone());
        let Some(id) = message.get("id").cloned() else {
            continue;
        };
        let answer = |id: &Value, result: Value| {
            serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string() + "\n"
        };
        let tool = message.pointer("/params/name").and_then(Value::as_str);
        let is_call = message["method"] == "tools/call";
        let mut text = String::new();
        if is_call && tool == Some("pair") {
            if let Some(first) = waiting.take() {
                text = answer(&id, result_of(&message)) + &answer(&first, result_of(&message));
            } else {
                waiting = Some(id);
            }
        } else if is_call && tool == Some("hang") {
            let token = &message["params"]["_meta"]["progressToken"];
            text = serde_json::json!({
                "jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1, "total": 4, "message": "working"},
            })
            .to_string()
                + "\n";
        } else {
            text = answer(&id, result_of(&message));
        }
        if output.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn result_of(message: &Value) -> Value {
    use serde_json::json;
    let tool = |name: &str, annotations: Value| json!({"name": name, "description": "d", "inputSchema": {"type": "object"}, "annotations": annotations});
    match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "peer", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            tool("look", json!({"readOnlyHint": true})),
            tool("plain", json!({})),
            tool("pair", json!({})),
            tool("hang", json!({})),
            tool("wipe", json!({"destructiveHint": true})),
        ]}),
        "resources/list" => {
            json!({"resources": [{"uri": "x://long", "name": "long", "mimeType": "text/plain"}]})
        }
        "resources/templates/list" => {
            json!({"resourceTemplates": [{"uriTemplate": "x://t/{id}", "name": "t"}]})
        }
        "resources/read" => json!({"contents": [
            {"uri": message["params"]["uri"], "mimeType": "text/plain", "text": "é🦊 line\n".repeat(20_000)}
        ]}),
        "prompts/list" => json!({"prompts": [{"name": "greet"}]}),
        "prompts/get" => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Say hello"}}]})
        }
        "tools/call" => {
            json!({"content": [{"type": "text", "text": format!("called {}", message["params"]["name"])}]})
        }
        _ => json!({}),
    }
}
