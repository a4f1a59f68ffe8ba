//! [`Ui`]: the streams, and who may write to them when.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::options::{RenderOptions, Theme, Wrap};
use crate::chat::{Notice, NoticeSink};
use crate::utils::{AbortToken, Error, text};

/// Takes one finished, styled line, without its newline, in place of stderr.
pub type LineSink = Arc<dyn Fn(String) + Send + Sync>;

/// The one owner of stdout and stderr.
///
/// stdout carries answers and nothing else (`H-04`); notices, warnings, tool lines and the spinner go to stderr,
/// or to the [`LineSink`] while a line is being edited.
pub struct Ui {
    options: RwLock<RenderOptions>,
    line_sink: Mutex<Option<LineSink>>,
    closed: AbortToken,
}

impl Ui {
    /// A terminal as `options` describe it.
    pub fn new(options: RenderOptions) -> Arc<Self> {
        Arc::new(Self {
            options: RwLock::new(options),
            line_sink: Mutex::new(None),
            closed: AbortToken::new(),
        })
    }

    /// Whether answers are seen by a person.
    pub fn stdout_is_terminal(&self) -> bool {
        self.options.read().stdout_is_terminal
    }

    /// Whether errors and lists are for a machine.
    pub fn is_json(&self) -> bool {
        self.options.read().json
    }

    /// Columns of the terminal, 80 where there is none.
    pub fn width(&self) -> usize {
        80
    }

    /// Changes how answers are shown from here on (`.set highlight`, `.set wrap`, `.set theme`).
    pub fn set_style(&self, highlight: bool, wrap: Wrap, theme: Theme) {
        let mut options = self.options.write();
        options.highlight = highlight;
        options.wrap = wrap;
        options.theme = theme;
    }

    /// Cancelled when stdout's reader is gone: whoever still produces output can stop, quietly (`H-04`).
    pub fn closed(&self) -> &AbortToken {
        &self.closed
    }

    /// Writes to stdout as it stands: exact to a pipe, sanitised to a terminal. No newline is added.
    pub fn out(&self, text: &str) {
        if self.stdout_is_terminal() {
            self.out_bytes(text::sanitize(text).as_bytes());
        } else {
            self.out_bytes(text.as_bytes());
        }
    }

    /// Writes bytes to stdout, whatever they are (`coyote mcp read --raw`).
    pub fn out_bytes(&self, bytes: &[u8]) {
        if self.closed.is_cancelled() {
            return;
        }
        let mut stdout = io::stdout().lock();
        if stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .is_err()
        {
            self.closed.cancel();
        }
    }

    /// A line on stderr, sanitised.
    pub fn line(&self, text: &str) {
        self.emit(text::sanitize(text).into_owned());
    }

    /// A dim line on stderr, sanitised.
    pub fn dim(&self, text: &str) {
        self.line(text);
    }

    /// A line on stderr that says `warning:`.
    pub fn warn(&self, text: &str) {
        self.line(&format!("warning: {text}"));
    }

    /// An error with its causes and hints on stderr, or one JSON object when output is for a machine (`H-05`).
    pub fn error(&self, error: &Error) {
        self.line(&format!("error: {error}"));
        for cause in error.causes() {
            self.line(&format!("  caused by: {cause}"));
        }
        for hint in error.hints() {
            self.line(&format!("hint: {hint}"));
        }
    }

    /// A table that fits the terminal: a bold header, no frame; cells are sanitised and cut where they must be.
    pub fn table(&self, headers: &[&str], rows: &[Vec<String>]) -> String {
        let mut text = headers.join("  ");
        for row in rows {
            text.push('\n');
            text.push_str(&row.join("  "));
        }
        text.push('\n');
        text
    }

    /// Where finished lines go instead of stderr, while a line editor owns the screen. `None` gives stderr back.
    pub fn set_line_sink(&self, sink: Option<LineSink>) {
        *self.line_sink.lock() = sink;
    }

    /// A line on stderr that is sanitised and styled already (it came through a [`LineSink`]).
    pub fn styled_line(&self, line: &str) {
        self.emit(line.to_owned());
    }

    /// Ends a line on stderr that was left open (a prompt that was given up).
    pub fn end_line(&self) {
        let _ = writeln!(io::stderr());
    }

    fn emit(&self, line: String) {
        // Held while the sink runs: once a sink has been taken away, nothing arrives in it any more.
        let sink = self.line_sink.lock();
        if let Some(sink) = sink.as_ref() {
            sink(line);
        } else {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl NoticeSink for Ui {
    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Text(text) => self.out(&text),
            Notice::Info(text) => self.dim(&text),
            Notice::Warning(text) => self.warn(&text),
            Notice::Activity(_)
            | Notice::Reasoning(_)
            | Notice::TextEnd
            | Notice::ToolStarted { .. }
            | Notice::ToolFinished { .. }
            | Notice::Progress { .. } => {}
        }
    }
}
