//! Talking to a model from a shell: one question and its answer (`H-03`, `H-04`), or the command it suggests (`-e`).

use std::io::Read as _;
use std::sync::Arc;

use parking_lot::RwLock;

use super::boot::{Machine, Trusting};
use super::execute;
use super::plan::{AnswerKind, Chat, MacroCall, RoleChoice, Setting, Streaming};
use crate::chat::{Ask, Notice, NoticeSink};
use crate::config::{self, Input, RequestContext, Saved, SessionFate};
use crate::function::Approvals;
use crate::mcp::ServerState;
use crate::render::extract_code;
use crate::repl;
use crate::turn::{self, Deps, Outcome};
use crate::utils::abort::unless_aborted;
use crate::utils::{AbortToken, Error, Exit, Result, fetch};

/// What may be piped in.
const STDIN_MAX: u64 = 64 * 1024 * 1024;

/// A context that turns run in.
pub(super) type Context = Arc<RwLock<RequestContext>>;

/// Asks once and prints the answer.
pub(super) async fn once(
    machine: &Machine,
    chat: &Chat,
    setting: &Setting,
    abort: &AbortToken,
) -> Result<Exit> {
    let piped = if machine.stdin_is_terminal {
        String::new()
    } else {
        piped(abort).await?
    };
    if !chat.says_something() && piped.trim().is_empty() {
        return Err(
            Error::user("there is nothing to ask: stdin is empty and is no terminal")
                .hint("`coyote \"question\"` asks; the REPL needs a terminal"),
        );
    }
    let setting = &with_default_role(chat.answer, setting);
    let mut context = machine.context(setting, Trusting::Ask).await?;
    prepare(&mut context, chat.dry_run, chat.stream);
    if chat.answer == AnswerKind::Whole {
        let prelude = context.app().cmd_prelude.clone();
        if let Some(prelude) = prelude.filter(|_| {
            setting.role.is_none() && setting.session.is_none() && setting.agent.is_none()
        }) {
            context.apply_prelude(&prelude)?;
        }
    }
    machine.warn(&context.take_warnings());
    let input = input(&context, chat, &piped, abort).await?;
    let context = Arc::new(RwLock::new(context));
    start_servers(&context);
    // A dry run shows the request, whatever would have become of the answer.
    let answer = if context.read().app().dry_run {
        AnswerKind::Whole
    } else {
        chat.answer
    };
    let exit = match answer {
        AnswerKind::Whole => {
            let sink = Arc::clone(&machine.ui) as Arc<dyn NoticeSink>;
            ask(machine, &context, input, sink, chat.approve_all, abort).await?;
            Exit::Success
        }
        AnswerKind::Code => {
            let answer = ask_silently(machine, &context, input, chat.approve_all, abort).await?;
            machine.ui.out(&extract_code(&answer.text));
            Exit::Success
        }
        AnswerKind::Command => {
            execute::run(machine, &context, input, chat.approve_all, abort).await?
        }
    };
    leave_session(machine, &context)?;
    Ok(exit)
}

/// The REPL: reads lines until the person leaves.
pub(super) async fn repl(machine: &Machine, chat: &Chat, setting: &Setting) -> Result<Exit> {
    if chat.answer != AnswerKind::Whole {
        return Err(Error::user("`-c` and `-e` need a question")
            .hint("`coyote -e \"list the largest files\"` asks for a command"));
    }
    let mut context = machine.context(setting, Trusting::Ask).await?;
    prepare(&mut context, chat.dry_run, chat.stream);
    machine.warn(&context.take_warnings());
    let prelude = context.app().repl_prelude.clone();
    open_repl(machine, context, prelude, chat.approve_all, Vec::new()).await
}

/// Does the lines of a macro as the REPL would, and ends.
pub(super) async fn run_macro(
    machine: &Machine,
    call: &MacroCall,
    setting: &Setting,
) -> Result<Exit> {
    let mut context = machine.context(setting, Trusting::Ask).await?;
    prepare(&mut context, call.dry_run, call.stream);
    machine.warn(&context.take_warnings());
    machine.started.repl();
    let start = start(machine, context, call.approve_all);
    repl::run_macro(start, &call.name, &call.arguments).await
}

fn start(machine: &Machine, context: RequestContext, approve_all: bool) -> repl::Start {
    repl::Start {
        ctx: Arc::new(RwLock::new(context)),
        ui: Arc::clone(&machine.ui),
        ask: Arc::clone(&machine.ask),
        approve_all,
        hints: Vec::new(),
        prelude: None,
    }
}

/// Hands the terminal to the REPL.
pub(super) async fn open_repl(
    machine: &Machine,
    context: RequestContext,
    prelude: Option<String>,
    approve_all: bool,
    hints: Vec<String>,
) -> Result<Exit> {
    machine.started.repl();
    repl::run(repl::Start {
        hints,
        prelude,
        ..start(machine, context, approve_all)
    })
    .await
}

/// `-c` and `-e` have roles of their own unless one was chosen.
fn with_default_role(answer: AnswerKind, setting: &Setting) -> Setting {
    let name = match answer {
        AnswerKind::Whole => return setting.clone(),
        AnswerKind::Code => "code",
        AnswerKind::Command => "shell",
    };
    let mut setting = setting.clone();
    if setting.role.is_none() {
        setting.role = Some(RoleChoice::Named(name.to_owned()));
    }
    setting
}

/// Applies the flags that change settings.
fn prepare(context: &mut RequestContext, dry_run: bool, stream: Streaming) {
    if dry_run {
        context.apply(config::Setting::DryRun(Some(true)));
    }
    if stream == Streaming::Off {
        context.apply(config::Setting::Stream(Some(false)));
    }
}

/// Starts the enabled servers in the background; the turn waits for those it needs (`M-13`).
pub(super) fn start_servers(context: &Context) {
    let context = context.read();
    let servers = context.selection().servers;
    context.registry().start(&servers);
}

/// Everything that is piped in, as text.
async fn piped(abort: &AbortToken) -> Result<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut bytes = Vec::new();
        let stdin = std::io::stdin().lock();
        let limit = STDIN_MAX.saturating_add(1);
        stdin.take(limit).read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = unless_aborted(abort, read)
        .await
        .map_err(|_| Error::user("cancelled"))?
        .map_err(Error::internal)?
        .map_err(|error| Error::from(error).context("cannot read stdin"))?;
    if bytes.len() as u64 > STDIN_MAX {
        return Err(Error::user(format!(
            "stdin has more than {} MiB",
            STDIN_MAX / (1024 * 1024)
        )));
    }
    String::from_utf8(bytes)
        .map_err(|_| Error::user("stdin is not text").hint("`-f FILE` attaches images"))
}

async fn input(
    context: &RequestContext,
    chat: &Chat,
    piped: &str,
    abort: &AbortToken,
) -> Result<Input> {
    let text = chat.text.as_deref().unwrap_or_default();
    let fetch = |url: String| async move { fetch::fetch(&url, abort).await };
    let input = Input::from_files(text, &chat.files, context.cwd(), fetch).await?;
    Ok(input.with_stdin(piped))
}

/// One turn that `sink` shows.
pub(super) async fn ask(
    machine: &Machine,
    context: &Context,
    input: Input,
    sink: Arc<dyn NoticeSink>,
    approve_all: bool,
    abort: &AbortToken,
) -> Result<Outcome> {
    let deps = Deps {
        sink,
        ask: Arc::clone(&machine.ask) as Arc<dyn Ask>,
        abort: abort.clone(),
        approve_all,
        approvals: Arc::new(Approvals::default()),
    };
    let outcome = turn::run(context, input, &deps).await;
    warn_of_servers(machine, context);
    outcome
}

/// Says which of the servers the question should have seen could not be started (`M-13`).
fn warn_of_servers(machine: &Machine, context: &Context) {
    let context = context.read();
    let statuses = context.selection().servers;
    let statuses = statuses
        .iter()
        .filter_map(|name| context.registry().status(name));
    for status in statuses {
        if let ServerState::Failed { reason } = &status.state {
            machine.ui.warn(&format!(
                "MCP server `{}` is not available: {reason}",
                status.name
            ));
        }
    }
}

/// One turn whose answer is not shown as it arrives: everything else is.
pub(super) async fn ask_silently(
    machine: &Machine,
    context: &Context,
    input: Input,
    approve_all: bool,
    abort: &AbortToken,
) -> Result<Outcome> {
    let sink = Arc::new(WithoutAnswer(Arc::clone(&machine.ui) as Arc<dyn NoticeSink>));
    ask(machine, context, input, sink, approve_all, abort).await
}

struct WithoutAnswer(Arc<dyn NoticeSink>);

impl NoticeSink for WithoutAnswer {
    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Text(_) | Notice::Verbatim(_) | Notice::TextEnd => {}
            other => self.0.notice(other),
        }
    }
}

/// Keeps the session, if it is one to keep: nobody is asked in a one-shot run.
fn leave_session(machine: &Machine, context: &Context) -> Result<()> {
    let mut context = context.write();
    let named = context
        .session()
        .is_some_and(|session| !session.is_temporary());
    let keep = match context.session_fate() {
        SessionFate::Save => true,
        SessionFate::Ask => named,
        SessionFate::Nothing | SessionFate::Drop => false,
    };
    if keep && let Saved::Conflict { original, copy } = context.save_session(None)? {
        machine.ui.warn(&format!(
            "`{}` was changed by another coyote; this session is kept in `{}`",
            original.display(),
            copy.display()
        ));
    }
    machine.warn(&context.take_warnings());
    Ok(())
}
