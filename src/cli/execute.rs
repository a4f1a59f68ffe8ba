//! `-e`: the model suggests a shell command, the person says what becomes of it.

use std::sync::Arc;

use parking_lot::RwLock;

use super::boot::{Machine, Trusting};
use super::chat::{self, Context};
use super::plan::{RoleChoice, Setting, Workspace};
use crate::chat::{Answer, NoticeSink, Question};
use crate::config::Input;
use crate::render::extract_code;
use crate::repl::{clipboard, shell};
use crate::utils::{AbortToken, Error, Exit, Result};

/// The built-in role that explains a command.
const DESCRIBING_ROLE: &str = "explain-shell";

/// What can become of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Run,
    Revise,
    Describe,
    Copy,
    Quit,
}

impl Choice {
    const ALL: [Self; 5] = [
        Self::Run,
        Self::Revise,
        Self::Describe,
        Self::Copy,
        Self::Quit,
    ];

    fn words(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Revise => "revise",
            Self::Describe => "describe",
            Self::Copy => "copy",
            Self::Quit => "quit",
        }
    }
}

/// Asks for a command and offers it, until it is run, copied or left. Without anybody to ask, it is printed.
pub(super) async fn run(
    machine: &Machine,
    context: &Context,
    input: Input,
    approve_all: bool,
    abort: &AbortToken,
) -> Result<Exit> {
    let mut wish = input.text().to_owned();
    let mut input = input;
    loop {
        let answer = chat::ask_silently(machine, context, input, approve_all, abort).await?;
        let command = extract_code(&answer.text).trim().to_owned();
        if command.is_empty() {
            return Err(Error::provider("the model suggested no command"));
        }
        if !machine.interactive || context.read().app().dry_run {
            machine.ui.out(&format!("{command}\n"));
            return Ok(Exit::Success);
        }
        match choose(machine, context, &command, abort).await? {
            Some(exit) => return Ok(exit),
            None => match revision(machine).await {
                Some(change) => {
                    wish = format!("{wish}\n\nNot `{command}`, but: {change}");
                    input = Input::from_str(&wish);
                }
                None => return Ok(Exit::Success),
            },
        }
    }
}

/// Offers `command` until something final is chosen; `None` is a wish for another one.
async fn choose(
    machine: &Machine,
    context: &Context,
    command: &str,
    abort: &AbortToken,
) -> Result<Option<Exit>> {
    loop {
        match choice(machine, command).await {
            Choice::Run => return execute(context, command, abort).await.map(Some),
            Choice::Revise => return Ok(None),
            Choice::Describe => describe(machine, context, command, abort).await?,
            Choice::Copy => {
                copy(machine, context, command).await?;
                return Ok(Some(Exit::Success));
            }
            Choice::Quit => return Ok(Some(Exit::Success)),
        }
    }
}

async fn choice(machine: &Machine, command: &str) -> Choice {
    let question = Question::Select {
        message: command.to_owned(),
        options: Choice::ALL.map(|choice| choice.words().to_owned()).to_vec(),
    };
    match machine.ask.ask(question).await {
        Answer::Choices(chosen) => chosen
            .first()
            .and_then(|index| Choice::ALL.get(*index))
            .copied()
            .unwrap_or(Choice::Quit),
        Answer::Yes
        | Answer::No
        | Answer::Always
        | Answer::Text(_)
        | Answer::Cancelled
        | Answer::Interrupted
        | Answer::Unavailable => Choice::Quit,
    }
}

async fn revision(machine: &Machine) -> Option<String> {
    let question = Question::Text {
        message: "what should be different?".to_owned(),
        default: None,
    };
    match machine.ask.ask(question).await {
        Answer::Text(text) if !text.trim().is_empty() => Some(text),
        _ => None,
    }
}

async fn copy(machine: &Machine, context: &Context, command: &str) -> Result<()> {
    let lookup = context.read().env().lookup();
    let ui = Arc::clone(&machine.ui);
    let write = move |sequence: &[u8]| ui.out_bytes(sequence);
    let terminal: Option<&clipboard::Terminal<'_>> =
        machine.ui.stdout_is_terminal().then_some(&write);
    clipboard::copy(command, &lookup, terminal).await
}

/// The command's own exit code decides between success and failure.
async fn execute(context: &Context, command: &str, abort: &AbortToken) -> Result<Exit> {
    let program = context.read().env().get("SHELL");
    match shell::run(program.as_deref(), command, abort).await? {
        None => Ok(Exit::Success),
        Some(failed) => Err(Error::user(format!("the command failed: {failed}"))),
    }
}

/// Explains the command in a context of its own: the conversation about the command goes on undisturbed.
async fn describe(
    machine: &Machine,
    context: &Context,
    command: &str,
    abort: &AbortToken,
) -> Result<()> {
    let setting = Setting {
        model: context.read().model().map(|model| model.to_string()),
        role: Some(RoleChoice::Named(DESCRIBING_ROLE.to_owned())),
        workspace: Workspace::Ignored,
        ..Setting::default()
    };
    let own = machine.context(&setting, Trusting::Skip).await?;
    let own = Arc::new(RwLock::new(own));
    let sink = Arc::clone(&machine.ui) as Arc<dyn NoticeSink>;
    chat::ask(machine, &own, Input::from_str(command), sink, false, abort)
        .await
        .map(drop)
}
