//! What happened, for the person: data, never printed where it arises.

use std::time::Duration;

use super::CallId;

/// Something a person may want to see. Strings from servers are raw here; the sink sanitises (`M-21`).
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// What is being waited for, for the spinner; `None` ends it.
    Activity(Option<Activity>),
    /// More of the answer.
    Text(String),
    /// Text that is shown as it stands, never as Markdown: what a dry run would send.
    Verbatim(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// The answer of this round is complete: what was held back is shown, the line is ended.
    TextEnd,
    /// A tool call begins.
    ToolStarted {
        /// Ties it to its end.
        id: CallId,
        /// The function's name.
        name: String,
        /// Its arguments, as JSON text.
        arguments: String,
    },
    /// A tool call ended: one dim line (`H-24`).
    ToolFinished {
        /// The call's identity.
        id: CallId,
        /// The function's name.
        name: String,
        /// Its arguments, as JSON text.
        arguments: String,
        /// Whether it succeeded.
        ok: bool,
        /// How long it took.
        elapsed: Duration,
        /// Size of the answer in bytes, as the model gets it.
        bytes: usize,
    },
    /// Progress of a running call, as its server reports it.
    Progress {
        /// The running call.
        id: CallId,
        /// How far it is.
        progress: Progress,
    },
    /// Worth knowing: a dim line.
    Info(String),
    /// Worth acting on: a line that says `warning:`.
    Warning(String),
}

/// What a person is waiting for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// MCP servers that are still connecting, by configured name.
    Connecting(Vec<String>),
    /// The model has the request and has not said anything yet.
    Thinking,
    /// A function is running, by declared name.
    Calling(String),
    /// A retry is due.
    Retrying {
        /// Which attempt comes next, counted from 2.
        attempt: u32,
        /// After how long.
        after: Duration,
    },
}

/// A server's report on a running request.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Grows with every report.
    pub progress: f64,
    /// What it grows towards, if known.
    pub total: Option<f64>,
    /// For the person.
    pub message: Option<String>,
}

/// Takes notices. `render::Ui` is the terminal's; tests have their own. Must not block.
pub trait NoticeSink: Send + Sync {
    /// Takes one notice, in order.
    fn notice(&self, notice: Notice);
}
