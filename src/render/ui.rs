//! [`Ui`]: what is shown on which stream, and how.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::markdown::Markdown;
use super::notice::{self, FinishedCall};
use super::options::{RenderOptions, Theme, Wrap};
use super::screen::{LineSink, Screen, Shared, Stream};
use super::table;
use super::theme::{Paint, RESET, Style};
use crate::chat::{Activity, CallId, Notice, NoticeSink};
use crate::utils::text::{self, Sanitizer};
use crate::utils::{AbortToken, Error, ErrorKind};

/// Columns where there is no terminal to ask.
const COLUMNS: usize = 80;

/// Columns of a tool line where nobody's width is known.
const COLUMNS_IN_A_FILE: usize = 200;

/// The one owner of stdout and stderr.
///
/// stdout carries answers and nothing else (`H-04`); notices, warnings, tool lines and the spinner go to stderr,
/// or to the [`LineSink`] while a line is being edited.
pub struct Ui {
    options: RwLock<RenderOptions>,
    shared: Arc<Shared>,
    turn: Mutex<Turn>,
    closed: AbortToken,
}

/// Where the current turn's output is.
#[derive(Default)]
struct Turn {
    answer: Option<Answer>,
    reasoning: Sanitizer,
    activity: Option<Activity>,
    calls: Vec<(CallId, String)>,
    progress: String,
    /// What arrived while a question was open.
    held: Vec<Notice>,
}

/// How an answer is shown.
enum Answer {
    /// To a pipe: exact.
    Exact,
    /// To a terminal, without styles.
    Clean(Sanitizer),
    /// To a terminal.
    Styled(Box<Markdown>),
}

impl Ui {
    /// The process's own streams, as `options` describe them.
    pub fn new(options: RenderOptions) -> Arc<Self> {
        Self::with_streams(options, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    /// Other streams in place of stdout and stderr.
    pub fn with_streams(options: RenderOptions, stdout: Stream, stderr: Stream) -> Arc<Self> {
        let closed = AbortToken::new();
        let screen = Screen::new(&options, stdout, stderr, closed.clone());
        Arc::new(Self {
            options: RwLock::new(options),
            shared: Shared::new(screen),
            turn: Mutex::default(),
            closed,
        })
    }

    /// Whether something is being written at this moment: asked again and again, it tells when nobody reads.
    pub fn is_writing(&self) -> bool {
        self.shared.screen.is_locked()
    }

    /// Whether answers are seen by a person.
    pub fn stdout_is_terminal(&self) -> bool {
        self.options.read().stdout_is_terminal
    }

    /// Whether errors and lists are for a machine.
    pub fn is_json(&self) -> bool {
        self.options.read().json
    }

    /// Whether notices are coloured; prompts follow it.
    pub fn is_colored(&self) -> bool {
        self.notice_paint().color
    }

    /// Whether somebody can be asked something.
    pub(super) fn can_ask(&self) -> bool {
        let options = self.options.read();
        options.stdin_is_terminal && options.stderr_is_terminal
    }

    /// Columns of the terminal, 80 where there is none.
    pub fn width(&self) -> usize {
        let options = self.options.read();
        if let Some(width) = options.width {
            return usize::from(width);
        }
        if !options.stdout_is_terminal && !options.stderr_is_terminal {
            return COLUMNS;
        }
        match crossterm::terminal::size() {
            Ok((columns, _)) if columns > 0 => usize::from(columns),
            _ => COLUMNS,
        }
    }

    /// Changes how answers are shown from here on (`.set highlight`, `.set wrap`, `.set theme`).
    pub fn set_style(&self, highlight: bool, wrap: Wrap, theme: Theme) {
        let mut options = self.options.write();
        options.highlight = highlight;
        options.wrap = wrap;
        options.theme = theme;
    }

    /// Cancelled when stdout cannot be written to any more: whoever still produces output can stop. That is quiet
    /// when its reader is gone (`H-04`); anything else is in [`Self::failure`].
    pub fn closed(&self) -> &AbortToken {
        &self.closed
    }

    /// Why stdout could not be written, when it was not for a closed pipe: a full disk, say. Given once.
    pub fn failure(&self) -> Option<Error> {
        let failure: io::Error = self.shared.screen.lock().failure.take()?;
        Some(Error::new(ErrorKind::Internal, failure).context("cannot write the answer"))
    }

    /// Writes to stdout as it stands: exact to a pipe, sanitised to a terminal. No newline is added.
    pub fn out(&self, text: &str) {
        let text = if self.stdout_is_terminal() {
            text::sanitize(text)
        } else {
            Cow::Borrowed(text)
        };
        self.out_bytes(text.as_bytes());
    }

    /// Writes bytes to stdout, whatever they are (`coyote mcp read --raw`).
    pub fn out_bytes(&self, bytes: &[u8]) {
        self.shared.screen.lock().write(bytes);
    }

    /// A line on stderr, sanitised.
    pub fn line(&self, line: &str) {
        self.styled_line(&text::sanitize(line));
    }

    /// A dim line on stderr, sanitised.
    pub fn dim(&self, line: &str) {
        let paint = self.notice_paint();
        self.styled_line(&paint.paint(Style::DIM, &text::sanitize(line)));
    }

    /// A line on stderr that says `warning:`, sanitised.
    pub fn warn(&self, line: &str) {
        let label = self.notice_paint().paint(Style::WARNING, "warning:");
        self.styled_line(&format!("{label} {}", text::sanitize(line)));
    }

    /// An error with its causes and hints on stderr, or one JSON object when output is for a machine (`H-05`).
    pub fn error(&self, error: &Error) {
        let shown = if self.is_json() {
            notice::error_json(error)
        } else {
            notice::error(error, self.notice_paint())
        };
        self.styled_line(&shown);
    }

    /// A table without frame: the header, then the rows, columns lined up. On a terminal it fits its width, the widest
    /// column giving way; to a pipe nothing is cut. Cells are sanitised, on one line each.
    pub fn table(&self, headers: &[&str], rows: &[Vec<String>]) -> String {
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|cell| text::sanitize_line(cell)).collect())
            .collect();
        let columns = self.stdout_is_terminal().then(|| self.width());
        table::plain(headers, &rows, columns)
    }

    /// Where finished lines go instead of stderr, while a line editor owns the screen. `None` gives stderr back; once
    /// this returns, nothing arrives in the old sink any more.
    pub fn set_line_sink(&self, sink: Option<LineSink>) {
        let mut screen = self.shared.screen.lock();
        screen.erase_spinner();
        screen.sink = sink;
    }

    /// Lines on stderr that are sanitised and styled already (they came through a [`LineSink`]).
    pub fn styled_line(&self, line: &str) {
        self.shared.screen.lock().lines(line);
    }

    /// Takes the spinner off and ends open lines of the terminal; a pipe keeps exactly what it got.
    pub fn finish(&self) {
        let paint = self.notice_paint();
        let mut screen = self.shared.screen.lock();
        screen.spin(None, paint, 0);
        screen.end_stderr_line();
        screen.end_terminal_line();
    }

    /// Ends a line on stderr that somebody else left open (a prompt that was given up).
    pub fn end_line(&self) {
        let mut screen = self.shared.screen.lock();
        screen.write_open("\n");
        screen.stderr_line_ended();
    }

    /// Stops the spinner and holds notices back until the guard is dropped, while a question is open.
    pub(super) fn pause(self: &Arc<Self>) -> Pause {
        let mut screen = self.shared.screen.lock();
        screen.erase_spinner();
        screen.end_stdout_line();
        screen.end_stderr_line();
        screen.paused += 1;
        Pause(self.clone())
    }

    /// How notices are painted.
    fn notice_paint(&self) -> Paint {
        let options = self.options.read();
        options.paint(options.stderr_is_terminal)
    }

    fn text(&self, turn: &mut Turn, piece: &str) {
        let answer = turn.answer.get_or_insert_with(|| self.begin_answer());
        let shown = match answer {
            Answer::Exact => Cow::Borrowed(piece),
            Answer::Clean(sanitizer) => Cow::Owned(sanitizer.feed(piece)),
            Answer::Styled(markdown) => Cow::Owned(markdown.feed(piece, self.width())),
        };
        self.shared.screen.lock().write(shown.as_bytes());
    }

    fn begin_answer(&self) -> Answer {
        let options = self.options.read();
        let paint = options.paint(options.stdout_is_terminal);
        if !options.stdout_is_terminal {
            Answer::Exact
        } else if options.highlight && paint.color {
            Answer::Styled(Box::new(Markdown::new(paint, options.wrap)))
        } else {
            Answer::Clean(Sanitizer::default())
        }
    }

    fn end_text(&self, turn: &mut Turn) {
        turn.reasoning = Sanitizer::default();
        let rest = match turn.answer.take() {
            Some(Answer::Styled(mut markdown)) => markdown.finish(self.width()),
            Some(Answer::Exact | Answer::Clean(_)) | None => String::new(),
        };
        let mut screen = self.shared.screen.lock();
        screen.write(rest.as_bytes());
        screen.end_stderr_line();
        screen.end_stdout_line();
    }

    fn reasoning(&self, turn: &mut Turn, piece: &str) {
        let paint = self.notice_paint();
        let shown = if self.options.read().stderr_is_terminal {
            turn.reasoning.feed(piece)
        } else {
            piece.to_owned()
        };
        if shown.is_empty() {
            return;
        }
        let begin = paint.begin(Style::DIM);
        let end = if begin.is_empty() { "" } else { RESET };
        let mut screen = self.shared.screen.lock();
        screen.write_open(&format!("{begin}{shown}{end}"));
        if shown.ends_with('\n') {
            screen.stderr_line_ended();
        }
    }

    fn finished(&self, turn: &mut Turn, id: &CallId, call: &FinishedCall<'_>) {
        turn.calls.retain(|(running, _)| running != id);
        turn.progress.clear();
        let columns = if self.options.read().stderr_is_terminal {
            self.width()
        } else {
            COLUMNS_IN_A_FILE
        };
        let line = notice::tool_line(call, columns, self.notice_paint());
        self.styled_line(&line);
        self.spin(turn);
    }

    /// Brings the spinner up to date.
    fn spin(&self, turn: &Turn) {
        let calls: Vec<&str> = turn.calls.iter().map(|(_, name)| name.as_str()).collect();
        let label = match (&turn.activity, calls.as_slice()) {
            (_, [_, ..]) => Some(notice::calling(&calls)),
            (Some(activity), []) => Some(notice::activity(activity)),
            (None, []) => None,
        };
        let label = label.map(|label| format!("{label} {}", turn.progress).trim_end().to_owned());
        let (paint, columns) = (self.notice_paint(), self.width());
        self.shared.screen.lock().spin(label, paint, columns);
        self.shared.wake();
    }

    fn show(&self, turn: &mut Turn, notice: Notice) {
        match notice {
            Notice::Activity(activity) => {
                turn.progress.clear();
                if activity.is_none() {
                    turn.calls.clear();
                }
                turn.activity = activity;
                self.spin(turn);
            }
            Notice::Text(piece) => {
                self.stop_waiting(turn);
                self.text(turn, &piece);
            }
            Notice::Reasoning(piece) => {
                self.stop_waiting(turn);
                self.reasoning(turn, &piece);
            }
            Notice::Verbatim(text) => {
                self.stop_waiting(turn);
                self.out(&text);
            }
            Notice::TextEnd => self.end_text(turn),
            Notice::ToolStarted { id, name, .. } => {
                turn.calls.push((id, name));
                self.spin(turn);
            }
            Notice::ToolFinished {
                id,
                name,
                arguments,
                ok,
                elapsed,
                bytes,
            } => {
                let call = FinishedCall {
                    name: &name,
                    arguments: &arguments,
                    ok,
                    elapsed,
                    bytes,
                };
                self.finished(turn, &id, &call);
            }
            Notice::Progress { progress, .. } => {
                turn.progress = notice::progress(&progress);
                self.spin(turn);
            }
            Notice::Info(line) => self.dim(&line),
            Notice::Warning(line) => self.warn(&line),
        }
    }

    /// What was waited for has come.
    fn stop_waiting(&self, turn: &mut Turn) {
        if turn.activity.take().is_some() {
            self.spin(turn);
        }
    }
}

impl NoticeSink for Ui {
    fn notice(&self, notice: Notice) {
        let mut turn = self.turn.lock();
        if self.shared.screen.lock().paused > 0 {
            turn.held.push(notice);
        } else {
            self.show(&mut turn, notice);
        }
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        self.shared.quit();
    }
}

/// A question is open; dropped, output goes on with what was held back.
pub(super) struct Pause(Arc<Ui>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut turn = self.0.turn.lock();
        let mut screen = self.0.shared.screen.lock();
        screen.paused = screen.paused.saturating_sub(1);
        let still_paused = screen.paused > 0;
        drop(screen);
        if !still_paused {
            for notice in std::mem::take(&mut turn.held) {
                self.0.show(&mut turn, notice);
            }
        }
    }
}

#[cfg(test)]
#[path = "ui_tests.rs"]
mod tests;
