//! The two streams and what is on them right now: an unfinished line, a spinner.
//!
//! One lock guards all of it, so that a line of a notice never lands inside an answer or behind a spinner.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::options::RenderOptions;
use super::theme::{Paint, Style};
use crate::utils::{AbortToken, text};

/// Between two frames of the spinner; also what must pass before the first.
const TICK: Duration = Duration::from_millis(100);

/// A wait shorter than this is not counted out.
const COUNTED: Duration = Duration::from_secs(2);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Erases the line the cursor is in.
const ERASE: &str = "\r\x1b[2K";

/// Takes one finished, styled line, without its newline, in place of stderr.
pub type LineSink = Arc<dyn Fn(String) + Send + Sync>;

/// Where bytes go.
pub type Stream = Box<dyn Write + Send>;

/// What is on the streams.
pub(super) struct Screen {
    stdout: Side,
    stderr: Side,
    pub(super) sink: Option<LineSink>,
    spinner: Option<Spinner>,
    /// Questions that are open: nothing is drawn meanwhile.
    pub(super) paused: usize,
    closed: AbortToken,
    pub(super) failure: Option<io::Error>,
    quit: bool,
}

/// One of the streams.
struct Side {
    stream: Stream,
    is_terminal: bool,
    /// Its line is not ended.
    open: bool,
}

struct Spinner {
    label: String,
    since: Instant,
    frame: usize,
    drawn: bool,
    paint: Paint,
    columns: usize,
}

impl Screen {
    pub(super) fn new(
        options: &RenderOptions,
        stdout: Stream,
        stderr: Stream,
        closed: AbortToken,
    ) -> Self {
        Self {
            stdout: Side {
                stream: stdout,
                is_terminal: options.stdout_is_terminal,
                open: false,
            },
            stderr: Side {
                stream: stderr,
                is_terminal: options.stderr_is_terminal,
                open: false,
            },
            sink: None,
            spinner: None,
            paused: 0,
            closed,
            failure: None,
            quit: false,
        }
    }

    /// Writes to stdout. Once its reader is gone nothing is written any more.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.erase_spinner();
        self.end_stderr_line();
        self.write_stdout(bytes);
        self.stdout.open = *last != b'\n';
    }

    /// Ends stdout's line if it is open.
    pub(super) fn end_stdout_line(&mut self) {
        if self.stdout.open {
            self.erase_spinner();
            self.write_stdout(b"\n");
            self.stdout.open = false;
        }
    }

    /// Ends stdout's line where a person sees it.
    pub(super) fn end_terminal_line(&mut self) {
        if self.stdout.is_terminal {
            self.end_stdout_line();
        }
    }

    /// Writes text to stderr that may go on.
    pub(super) fn write_open(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.erase_spinner();
        self.leave_stdout_line();
        self.write_stderr(piece);
        self.stderr.open = true;
    }

    /// Marks stderr's line as ended by what was written last.
    pub(super) fn stderr_line_ended(&mut self) {
        self.stderr.open = false;
    }

    /// Ends stderr's line if it is open.
    pub(super) fn end_stderr_line(&mut self) {
        if self.stderr.open {
            self.write_stderr("\n");
            self.stderr.open = false;
        }
    }

    /// Writes finished lines to stderr, or to the sink.
    pub(super) fn lines(&mut self, lines: &str) {
        if let Some(sink) = &self.sink {
            for line in lines.split('\n') {
                sink(line.to_owned());
            }
            return;
        }
        self.erase_spinner();
        self.leave_stdout_line();
        self.end_stderr_line();
        self.write_stderr(&format!("{lines}\n"));
    }

    /// On a terminal both streams are one screen: stderr must not go on in an answer's line.
    fn leave_stdout_line(&mut self) {
        if self.stdout.is_terminal && self.stderr.is_terminal {
            self.end_stdout_line();
        }
    }

    fn write_stderr(&mut self, piece: &str) {
        let stderr = &mut self.stderr.stream;
        // A closed stderr has nobody to tell.
        let _ = (stderr.write_all(piece.as_bytes())).and_then(|()| stderr.flush());
    }

    fn write_stdout(&mut self, bytes: &[u8]) {
        if self.closed.is_cancelled() {
            return;
        }
        let stdout = &mut self.stdout.stream;
        if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.failure = Some(error);
            }
            self.closed.cancel();
        }
    }

    /// Shows what is being waited for, from the next tick on; `None` ends it.
    pub(super) fn spin(&mut self, label: Option<String>, paint: Paint, columns: usize) {
        let Some(label) = label.filter(|_| self.stderr.is_terminal) else {
            self.erase_spinner();
            self.spinner = None;
            return;
        };
        match &mut self.spinner {
            Some(spinner) => {
                spinner.label = label;
                spinner.columns = columns;
            }
            None => {
                self.spinner = Some(Spinner {
                    label,
                    since: Instant::now(),
                    frame: 0,
                    drawn: false,
                    paint,
                    columns,
                });
            }
        }
    }

    pub(super) fn erase_spinner(&mut self) {
        if let Some(spinner) = self.spinner.as_mut().filter(|spinner| spinner.drawn) {
            spinner.drawn = false;
            self.write_stderr(ERASE);
        }
    }

    fn draw_spinner(&mut self) {
        let busy = self.paused > 0 || self.sink.is_some() || self.stderr.open;
        if busy || (self.stdout.open && self.stdout.is_terminal) {
            return;
        }
        if let Some(spinner) = &mut self.spinner {
            let line = spinner.line();
            spinner.frame = spinner.frame.wrapping_add(1);
            spinner.drawn = true;
            self.write_stderr(&format!("{ERASE}{line}"));
        }
    }
}

impl Spinner {
    fn line(&self) -> String {
        let frame = FRAMES
            .get(self.frame % FRAMES.len())
            .copied()
            .unwrap_or("…");
        let waited = self.since.elapsed();
        let counted = if waited >= COUNTED {
            format!(" {} s", waited.as_secs())
        } else {
            String::new()
        };
        // One column is left free: a full line would make some terminals scroll.
        let line = format!("{frame} {}{counted}", self.label);
        let line = text::fit(&line, self.columns.saturating_sub(1));
        self.paint.paint(Style::DIM, &line)
    }
}

/// The screen, and the thread that turns its spinner.
pub(super) struct Shared {
    pub(super) screen: Mutex<Screen>,
    wake: Condvar,
}

impl Shared {
    pub(super) fn new(screen: Screen) -> Arc<Self> {
        let shared = Arc::new(Self {
            screen: Mutex::new(screen),
            wake: Condvar::new(),
        });
        if shared.screen.lock().stderr.is_terminal {
            let turned = shared.clone();
            // Without a thread there is no spinner; that is no reason to fail.
            let _ = std::thread::Builder::new()
                .name("spinner".to_owned())
                .spawn(move || turned.turn());
        }
        shared
    }

    /// Draws while there is something to wait for; sleeps otherwise.
    fn turn(&self) {
        let mut screen = self.screen.lock();
        while !screen.quit {
            if screen.spinner.is_none() {
                self.wake.wait(&mut screen);
                continue;
            }
            self.wake.wait_for(&mut screen, TICK);
            if !screen.quit {
                screen.draw_spinner();
            }
        }
    }

    /// A spinner was set.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Ends the thread and takes the spinner off the screen.
    pub(super) fn quit(&self) {
        let mut screen = self.screen.lock();
        screen.erase_spinner();
        screen.quit = true;
        self.wake.notify_one();
    }
}
