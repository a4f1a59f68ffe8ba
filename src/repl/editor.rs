//! The line editor: reedline on a thread of its own (`H-20`).
//!
//! Reading a line blocks, so it never happens on a worker of the runtime. The terminal is in raw mode only while a
//! line is being read; whatever ends that (a line, a signal, a panic, a dropped future) gives it back as it was.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use reedline::{
    EditCommand, EditMode, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    Keybindings as KeyTable, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::completer::{Completer, Shared, Snapshot};
use super::external_editor;
use super::highlighter::Highlighter;
use super::line_prompt::LinePrompt;
use super::menu::{self, CompletionMenu};
use super::printer::Printer;
use crate::render::{Ui, restore_terminal};
use crate::utils::{AbortToken, Error, ErrorKind, Result, fs as files};

/// Lines kept in the history file.
const HISTORY_LINES: usize = 10_000;

/// How soon the editor notices what is not a key: a cancelled token, an answer, a notice to print.
const POLL: Duration = Duration::from_millis(50);

/// How long the editor may take to give up a line.
const WIND_UP: Duration = Duration::from_millis(500);

/// What the key binding of Ctrl-O sends through reedline.
const EDIT_ELSEWHERE: &str = "edit";

/// Which keys do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keybindings {
    /// As in emacs and most shells.
    #[default]
    Emacs,
    /// As in vi.
    Vi,
}

/// How lines are edited.
#[derive(Debug, Clone, Default)]
pub struct EditorOptions {
    /// Which keys do what.
    pub keybindings: Keybindings,
    /// Where lines are remembered, created private; `None` remembers them until the process ends.
    pub history_file: Option<PathBuf>,
    /// What Ctrl-O runs on the line, with arguments (`super::external_editor::resolve`).
    pub external_editor: Option<String>,
    /// Whether colours are wanted (`NO_COLOR`).
    pub color: bool,
}

/// One line to be read.
#[derive(Clone, Default)]
pub struct LineRequest {
    /// The prompt, escape sequences of ours included ([`super::line_prompt::render`]).
    pub left: String,
    /// Shown at the right edge.
    pub right: String,
    /// What `Tab` can offer and which commands exist.
    pub snapshot: Arc<Snapshot>,
}

/// How reading a line ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A line, or several.
    Line(String),
    /// Ctrl-C: the line was given up.
    Interrupted,
    /// Ctrl-D on an empty line.
    Eof,
    /// The caller's token was cancelled.
    Aborted,
}

/// Reads lines from the terminal; the terminal is as it was whenever no line is being read.
pub struct LineEditor {
    jobs: mpsc::Sender<Job>,
    stop: Arc<AtomicBool>,
}

/// A line somebody waits for.
struct Job {
    request: LineRequest,
    given_up: Arc<AtomicBool>,
    reply: oneshot::Sender<io::Result<Read>>,
}

impl LineEditor {
    /// An editor on the terminal of `ui`; completions run on `runtime`.
    pub fn new(options: EditorOptions, ui: Arc<Ui>, runtime: Handle) -> Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut worker = Worker::new(options, ui, runtime, stop.clone());
        std::thread::Builder::new()
            .name("line-editor".to_owned())
            .spawn(move || {
                let _guard = RestoreOnPanic;
                while let Ok(job) = queue.recv() {
                    worker.serve(job);
                }
            })?;
        Ok(Self { jobs, stop })
    }

    /// Reads one line. Notices that arrive meanwhile are printed above it. Dropping the future gives up the line, as
    /// does cancelling `abort`.
    pub async fn read_line(&mut self, request: LineRequest, abort: &AbortToken) -> Result<Read> {
        let (reply, mut answer) = oneshot::channel();
        let given_up = Arc::new(AtomicBool::new(false));
        let _giving_up = GiveUp {
            given_up: given_up.clone(),
            stop: self.stop.clone(),
        };
        let job = Job {
            request,
            given_up: given_up.clone(),
            reply,
        };
        self.jobs.send(job).map_err(|_| gone())?;
        let outcome = tokio::select! {
            biased;
            outcome = &mut answer => outcome,
            () = abort.cancelled() => {
                given_up.store(true, Ordering::SeqCst);
                self.stop.store(true, Ordering::SeqCst);
                let Ok(outcome) = tokio::time::timeout(WIND_UP, &mut answer).await else {
                    // The terminal is gone: reading from it never comes back.
                    restore_terminal();
                    return Ok(Read::Aborted);
                };
                outcome
            }
        };
        match outcome {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(error)) => {
                Err(Error::new(ErrorKind::Internal, error).context("cannot read from the terminal"))
            }
            Err(_) => Err(gone()),
        }
    }
}

fn gone() -> Error {
    Error::internal("the line editor has stopped")
}

/// Stops the editor when nobody waits for its line any more.
struct GiveUp {
    given_up: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
}

impl Drop for GiveUp {
    fn drop(&mut self) {
        // In this order: the worker clears `stop` first and looks at `given_up` then.
        self.given_up.store(true, Ordering::SeqCst);
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// Gives the terminal back when the editor's thread ends by a panic.
struct RestoreOnPanic;

impl Drop for RestoreOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            restore_terminal();
        }
    }
}

/// What lives on the editor's thread.
struct Worker {
    options: EditorOptions,
    ui: Arc<Ui>,
    stop: Arc<AtomicBool>,
    shared: Arc<Shared>,
    printer: Arc<Printer>,
    editor: Option<Reedline>,
    runtime: Handle,
}

impl Worker {
    fn new(options: EditorOptions, ui: Arc<Ui>, runtime: Handle, stop: Arc<AtomicBool>) -> Self {
        Self {
            options,
            ui,
            stop,
            shared: Arc::default(),
            printer: Arc::default(),
            editor: None,
            runtime,
        }
    }

    fn serve(&mut self, job: Job) {
        self.stop.store(false, Ordering::SeqCst);
        if job.given_up.load(Ordering::SeqCst) {
            let _ = job.reply.send(Ok(Read::Aborted));
            return;
        }
        let mut editor = match self.editor.take() {
            Some(editor) => editor,
            None => self.build(),
        };
        self.shared.begin(job.request.snapshot.clone());
        let printer = self.printer.clone();
        self.ui
            .set_line_sink(Some(Arc::new(move |line| printer.push(line))));
        let outcome = self.read(&mut editor, &job.request);
        self.ui.set_line_sink(None);
        self.shared.begin(Arc::default());
        editor = editor.with_external_printer(self.printer.renew());
        for line in self.printer.drain() {
            self.ui.styled_line(&line);
        }
        if let Ok(Read::Line(_)) = outcome {
            self.remember(&mut editor);
        }
        self.editor = Some(editor);
        let _ = job.reply.send(outcome);
    }

    fn read(&self, editor: &mut Reedline, request: &LineRequest) -> io::Result<Read> {
        let prompt = LinePrompt::new(request.left.clone(), request.right.clone());
        loop {
            match editor.read_line(&prompt)? {
                Signal::Success(line) => return Ok(Read::Line(line)),
                Signal::CtrlC => return Ok(Read::Interrupted),
                Signal::CtrlD => return Ok(Read::Eof),
                Signal::HostCommand(command) if command == EDIT_ELSEWHERE => {
                    self.edit_elsewhere(editor);
                }
                Signal::ExternalBreak(_) => {
                    editor.run_edit_commands(&[EditCommand::Clear]);
                    self.ui.end_line();
                    return Ok(Read::Aborted);
                }
                _ => {}
            }
        }
    }

    /// Ctrl-O: the line in the person's own editor. What went wrong is said above the line, which stays.
    fn edit_elsewhere(&self, editor: &mut Reedline) {
        let text = editor.current_buffer_contents().to_owned();
        let edited = match &self.options.external_editor {
            Some(command) => external_editor::edit_text(command, &text, "md"),
            None => Err(external_editor::missing()),
        };
        match edited {
            Ok(edited) => {
                editor.run_edit_commands(&[EditCommand::Clear, EditCommand::InsertString(edited)]);
            }
            Err(error) => self.ui.error(&error),
        }
    }

    fn build(&self) -> Reedline {
        let printer = self.printer.clone();
        let completer = Completer::new(
            self.shared.clone(),
            Some(self.runtime.clone()),
            Box::new(move || printer.pass_on()),
        );
        let menu = CompletionMenu::new(self.shared.clone());
        let editor = Reedline::create()
            .with_ansi_colors(self.options.color)
            .use_bracketed_paste(true)
            .with_poll_interval(POLL)
            .with_break_signal(self.stop.clone())
            .with_external_printer(self.printer.renew())
            .with_completer(Box::new(completer))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_highlighter(Box::new(Highlighter))
            .with_validator(Box::new(Blocks))
            .with_history_exclusion_prefix(Some(" ".to_owned()))
            .with_edit_mode(edit_mode(self.options.keybindings));
        match self.history() {
            Some(history) => editor.with_history(Box::new(history)),
            None => editor,
        }
    }

    fn history(&self) -> Option<FileBackedHistory> {
        let path = self.options.history_file.as_deref()?;
        let history = private_file(path)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                FileBackedHistory::with_file(HISTORY_LINES, path.to_owned())
                    .map_err(|error| error.to_string())
            });
        match history {
            Ok(history) => Some(history),
            Err(reason) => {
                let path = path.display();
                self.ui.warn(&format!(
                    "lines are not remembered: cannot use `{path}`: {reason}"
                ));
                None
            }
        }
    }

    /// Writes the history now, so that an end without goodbye loses nothing. Failing to is no reason to stop.
    fn remember(&self, editor: &mut Reedline) {
        if let Some(path) = &self.options.history_file {
            let _ = private_file(path);
            let _ = editor.sync_history();
        }
    }
}

/// Makes sure that `path` exists before somebody less careful creates it: mode 0600 in a directory of mode 0700.
fn private_file(path: &Path) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        files::create_private_dir(dir)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn edit_mode(keybindings: Keybindings) -> Box<dyn EditMode> {
    match keybindings {
        Keybindings::Emacs => {
            let mut keys = default_emacs_keybindings();
            bind(&mut keys);
            Box::new(Emacs::new(keys))
        }
        Keybindings::Vi => {
            let mut insert = default_vi_insert_keybindings();
            bind(&mut insert);
            let mut normal = default_vi_normal_keybindings();
            bind_editor(&mut normal);
            Box::new(Vi::new(insert, normal, default_vi_visual_keybindings()))
        }
    }
}

/// Our keys, in every mode that takes text.
fn bind(keys: &mut KeyTable) {
    let tab = ReedlineEvent::UntilFound(vec![
        ReedlineEvent::Menu(menu::NAME.to_owned()),
        ReedlineEvent::MenuNext,
    ]);
    let newline = || ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
    keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, tab);
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('j'), newline());
    keys.add_binding(KeyModifiers::ALT, KeyCode::Enter, newline());
    bind_editor(keys);
}

fn bind_editor(keys: &mut KeyTable) {
    let event = ReedlineEvent::ExecuteHostCommand(EDIT_ELSEWHERE.to_owned());
    keys.add_binding(KeyModifiers::CONTROL, KeyCode::Char('o'), event);
}

/// `:::` begins a text of several lines and `:::` ends it; Enter goes on until then.
struct Blocks;

impl Validator for Blocks {
    fn validate(&self, line: &str) -> ValidationResult {
        let is_open = (line.trim_start().strip_prefix(":::"))
            .is_some_and(|rest| !rest.trim_end().ends_with(":::"));
        if is_open {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

#[cfg(test)]
#[path = "editor_tests.rs"]
mod tests;
