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
