//! The interactive line loop and its commands (`H-20`..`H-24`).
//!
//! ```text
//! editor ── line ── command::parse ─┬─ Ask ────── handlers::chat ── turn
//!                                   ├─ Command ── handlers::*
//!                                   └─ Shell ──── shell
//! ```
//!
//! The loop owns nothing but the order of things: what is true is the context's, what is shown is `Ui`'s, and what a
//! command does is its handler's. An error never ends it; a signal, Ctrl-D and `.exit` do.

mod args;
pub mod clipboard;
pub mod command;
pub mod completer;
pub mod editor;
pub mod external_editor;
mod files;
mod handlers;
mod highlighter;
pub mod line_prompt;
mod line_request;
mod menu;
mod modes;
mod printer;
mod prompt_source;
pub mod shell;
mod signals;
pub mod table;

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use self::command::{ParseError, Parsed};
use self::editor::{LineEditor, Read};
use self::handlers::Flow;
use self::modes::Quiet;
use self::signals::Signals;
use crate::chat::{Answer, Ask, Question};
use crate::config::RequestContext;
use crate::function::Approvals;
use crate::mcp::ServerName;
use crate::render::{Ui, restore_terminal};
use crate::turn::Deps;
use crate::utils::abort::unless_aborted;
use crate::utils::{Error, Exit, Result};

/// Every command's name, in the order of `.help`.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    table::COMMANDS.iter().map(|spec| spec.name)
}

/// What a command does, in a line.
pub fn command_help(name: &str) -> Option<&'static str> {
    table::find(name).map(|spec| spec.help)
}

/// What the loop starts from.
pub struct Start {
    /// What is true at the beginning: a role or session that was asked for is in force already.
    pub ctx: Arc<RwLock<RequestContext>>,
    /// The terminal.
    pub ui: Arc<Ui>,
    /// Who answers questions.
    pub ask: Arc<dyn Ask>,
    /// Whether tool calls run without asking (`-y`).
    pub approve_all: bool,
    /// Said below the welcome, a line each.
    pub hints: Vec<String>,
    /// A name or a line from `repl_prelude`; ignored when a role or session is in force.
    pub prelude: Option<String>,
}

/// The state of the loop.
struct Repl {
    ctx: Arc<RwLock<RequestContext>>,
    ui: Arc<Ui>,
    ask: Arc<dyn Ask>,
    approve_all: bool,
    approvals: Arc<Approvals>,
    signals: Signals,
    /// From the beginning of a turn to the next prompt.
    quiet: Option<Quiet>,
    /// What was said about servers, so that it is said once.
    reported: Arc<Mutex<HashSet<String>>>,
    /// The servers requests saw when that was last said.
    seen: Mutex<Option<Vec<ServerName>>>,
    /// How many macros are running, one in the other.
    depth: u8,
}

/// Reads and does lines until the person leaves or the process is told to end; servers are closed then, and a
/// session is saved as configured. Says how the process should end.
///
/// # Errors
/// The terminal cannot be read.
pub async fn run(start: Start) -> Result<Exit> {
    let signals = Signals::default();
    let _listening = signals.listen();
    let Start { hints, prelude, .. } = &start;
    let (hints, prelude) = (hints.clone(), prelude.clone());
    let mut repl = Repl::new(start, signals);
    repl.welcome(&hints);
    for warning in handlers::shadowed_macros(&repl) {
        repl.ui.warn(&warning);
    }
    handlers::hear_news(&repl);
    handlers::start_selected(&repl);
    let mut left = Flow::Continue;
    if let Some(prelude) = prelude {
        left = repl.prelude(&prelude).await;
    }
    let outcome = match left {
        Flow::Exit => Ok(()),
        Flow::Continue => repl.lines().await,
    };
    handlers::leave_unasked(&mut repl);
    let registry = repl.ctx.read().registry().clone();
    registry.close_all().await;
    outcome?;
    Ok(repl.signals.exit().unwrap_or(Exit::Success))
}

/// Does the lines of a macro and ends (`--macro`): without a line editor, otherwise as in [`run`].
///
/// # Errors
/// There is no such macro, its arguments are wrong, or one of its lines failed.
pub async fn run_macro(start: Start, name: &str, arguments: &[String]) -> Result<Exit> {
    let signals = Signals::default();
    let _listening = signals.listen();
    let mut repl = Repl::new(start, signals);
    handlers::start_selected(&repl);
    let outcome = handlers::run_macro(&mut repl, name, arguments).await;
    repl.quiet = None;
    handlers::leave_unasked(&mut repl);
    repl.say_warnings();
    let registry = repl.ctx.read().registry().clone();
    registry.close_all().await;
    let exit = repl.signals.exit();
    let interrupted = repl.signals.is_interrupted().then_some(Exit::Interrupted);
    match (exit.or(interrupted), outcome) {
        (Some(exit), _) => Ok(exit),
        (None, outcome) => outcome.map(|_| Exit::Success),
    }
}

impl Repl {
    fn new(start: Start, signals: Signals) -> Self {
        Self {
            ctx: start.ctx,
            ui: start.ui,
            ask: start.ask,
            approve_all: start.approve_all,
            approvals: Arc::default(),
            signals,
            quiet: None,
            reported: Arc::default(),
            seen: Mutex::default(),
            depth: 0,
        }
    }

    fn welcome(&self, hints: &[String]) {
        self.ui.dim(&format!(
            "coyote {}: `.help` lists the commands, Tab completes, Ctrl-D leaves",
            env!("CARGO_PKG_VERSION")
        ));
        for hint in hints {
            self.ui.dim(hint);
        }
    }

    /// `role:NAME`, `session:NAME`, or a command as it would be typed.
    async fn prelude(&mut self, prelude: &str) -> Flow {
        let in_force = {
            let ctx = self.ctx.read();
            ctx.role().is_some() || ctx.session().is_some() || ctx.agent().is_some()
        };
        if in_force {
            return Flow::Continue;
        }
        if prelude.trim_start().starts_with(['.', '!']) {
            return self.line(prelude).await;
        }
        let applied = self.ctx.write().apply_prelude(prelude);
        if let Err(error) = applied {
            self.ui.error(&error);
        }
        handlers::start_selected(self);
        Flow::Continue
    }

    async fn lines(&mut self) -> Result<()> {
        let mut editor = LineEditor::new(
            line_request::options(self),
            self.ui.clone(),
            tokio::runtime::Handle::current(),
        )?;
        loop {
            self.say_warnings();
            let request = line_request::build(self);
            self.quiet = None;
            match editor.read_line(request, self.signals.ended()).await? {
                Read::Line(line) => {
                    if self.line(&line).await == Flow::Exit {
                        return Ok(());
                    }
                }
                Read::Interrupted => self.ui.dim("`.exit` or Ctrl-D leaves"),
                Read::Eof => match handlers::leave(self).await {
                    Ok(()) => return Ok(()),
                    Err(error) => self.ui.error(&error),
                },
                Read::Aborted => return Ok(()),
            }
            if self.signals.ended().is_cancelled() {
                return Ok(());
            }
        }
    }

    /// Does what a line says; whatever goes wrong is shown and leaves everything usable.
    async fn line(&mut self, line: &str) -> Flow {
        match self.do_line(line).await {
            Ok(flow) => flow,
            Err(error) => {
                self.ui.error(&error);
                Flow::Continue
            }
        }
    }

    async fn do_line(&mut self, line: &str) -> Result<Flow> {
        match command::parse(line) {
            Parsed::Empty => {}
            Parsed::Ask(text) => handlers::ask(self, &text).await?,
            Parsed::Shell(command) => self.shell(&command).await?,
            Parsed::Command(command) => {
                self.check_available(line)?;
                return handlers::run(self, command).await;
            }
            Parsed::Error(error @ ParseError::Unknown { .. }) => {
                return handlers::unknown(self, line, error).await;
            }
            Parsed::Error(error @ ParseError::Usage { .. }) => return Err(error.into()),
        }
        Ok(Flow::Continue)
    }

    /// Whether the command `line` begins with makes sense now.
    fn check_available(&self, line: &str) -> Result<()> {
        let name = line.split_whitespace().next().unwrap_or_default();
        let state = line_request::state(&self.ctx.read());
        match table::find(name) {
            Some(spec) if !spec.available(&state) => {
                let (missing, remedy) = spec.needs.missing();
                Err(Error::user(missing).hint(remedy))
            }
            _ => Ok(()),
        }
    }

    async fn shell(&self, command: &str) -> Result<()> {
        let shell = self.ctx.read().env().get("SHELL");
        let failed = shell::run(shell.as_deref(), command, self.signals.ended()).await?;
        if let Some(status) = failed {
            self.ui.dim(&status);
        }
        Ok(())
    }

    /// What a turn needs that is not in the context; its token is the one Ctrl-C cancels.
    fn deps(&self) -> Deps {
        Deps {
            sink: self.ui.clone(),
            ask: self.ask.clone(),
            abort: self.signals.work(),
            approve_all: self.approve_all,
            approvals: self.approvals.clone(),
        }
    }

    /// Asks the person; whoever told coyote to end does not wait for the answer.
    async fn question(&self, question: Question) -> Answer {
        let answer = unless_aborted(self.signals.ended(), self.ask.ask(question)).await;
        answer.unwrap_or_else(|_| {
            restore_terminal();
            Answer::Unavailable
        })
    }

    /// What the context has to say: names that select nothing, once each.
    fn say_warnings(&self) {
        let warnings = self.ctx.write().take_warnings();
        for warning in warnings {
            self.ui.warn(&warning);
        }
    }

    /// Lets the terminal show answers as the settings in force say.
    fn apply_style(&self) {
        let ctx = self.ctx.read();
        line_request::style(&self.ui, ctx.app());
    }
}

#[cfg(test)]
#[path = "repl_tests.rs"]
mod tests;
