//! What commands do: one file per family, each a set of small functions over [`Repl`]. They change the context, start
//! and stop servers, and speak through `Ui` and `Ask`; what goes wrong is an error for the loop to show.

mod agent;
mod chat;
mod edit;
mod info;
mod macros;
mod mcp;
mod prompt;
mod prompts;
mod role;
mod session;
mod settings;
mod summary;
mod tools;

use super::Repl;
use super::command::{ExitFrom, InfoTopic, Kept, ListTopic, McpCommand, ReplCommand};
use crate::chat::{Answer, Question};
use crate::utils::{Error, Result};

pub(super) use chat::ask;
pub(super) use macros::{once as run_macro, shadowed as shadowed_macros, unknown};
pub(super) use mcp::{hear_news, start_selected};
pub(super) use session::{autosave, leave, leave_unasked};

/// Whether the loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// It reads the next line.
    Continue,
    /// It ends.
    Exit,
}

/// Does what `command` says.
pub(super) async fn run(repl: &mut Repl, command: ReplCommand) -> Result<Flow> {
    match command {
        ReplCommand::Help(topic) => info::help(repl, topic.as_deref())?,
        ReplCommand::Exit(ExitFrom::Program) => return exit(repl).await,
        ReplCommand::Exit(ExitFrom::Role) => role::exit(repl)?,
        ReplCommand::Exit(ExitFrom::Session) => session::exit(repl).await?,
        ReplCommand::Exit(ExitFrom::Agent) => agent::exit(repl).await?,
        ReplCommand::Info(topic) => match topic {
            InfoTopic::System => info::system(repl),
            InfoTopic::Role => info::role(repl)?,
            InfoTopic::Session => info::session(repl)?,
            InfoTopic::Agent => agent::info(repl)?,
            InfoTopic::Tools => tools::info(repl),
            InfoTopic::Mcp(None) => mcp::list(repl),
            InfoTopic::Mcp(Some(name)) => mcp::info(repl, &name)?,
        },
        ReplCommand::Model(name) => settings::model(repl, name).await?,
        ReplCommand::Role { name, text } => role::use_role(repl, name, text).await?,
        ReplCommand::TempRole(text) => role::temporary(repl, &text)?,
        ReplCommand::Agent { name, variables } => agent::enter(repl, name, &variables).await?,
        ReplCommand::Starter(number) => agent::starter(repl, number).await?,
        ReplCommand::Session(name) => session::enter(repl, name.as_deref()).await?,
        ReplCommand::Empty => session::empty(repl)?,
        ReplCommand::Compress => session::compress(repl).await?,
        ReplCommand::Save { what, name } => match what {
            Kept::Role => role::save(repl, name.as_deref())?,
            Kept::Session => session::save(repl, name.as_deref())?,
        },
        ReplCommand::Edit(target) => edit::run(repl, target).await?,
        ReplCommand::File { paths, text } => chat::file(repl, &paths, &text).await?,
        ReplCommand::Prompt(call) => prompt::run(repl, call).await?,
        ReplCommand::Macro { name, text } => return macros::run(repl, name, &text).await,
        ReplCommand::Continue => chat::resume(repl).await?,
        ReplCommand::Regenerate => chat::regenerate(repl).await?,
        ReplCommand::Copy => chat::copy(repl).await?,
        ReplCommand::Undo => chat::undo(repl)?,
        ReplCommand::Set { key, value } => settings::set(repl, &key, &value).await?,
        ReplCommand::List(topic) => match topic {
            ListTopic::Roles => role::list(repl),
            ListTopic::Sessions => session::list(repl),
            ListTopic::Agents => agent::list(repl),
            ListTopic::Macros => macros::list(repl),
            ListTopic::Tools => tools::list(repl),
            ListTopic::McpServers => mcp::list(repl),
            ListTopic::Prompts => prompts::list(repl).await?,
        },
        ReplCommand::Tool { switch, names } => tools::switch(repl, switch, &names)?,
        ReplCommand::Mcp(command) => match command {
            McpCommand::List => mcp::list(repl),
            McpCommand::Switch { switch, names } => mcp::switch(repl, switch, &names).await?,
            McpCommand::Restart(name) => mcp::restart(repl, &name).await?,
        },
        ReplCommand::Delete { what, name } => match what {
            Kept::Role => role::delete(repl, name).await?,
            Kept::Session => session::delete(repl, name).await?,
        },
    }
    Ok(Flow::Continue)
}

async fn exit(repl: &mut Repl) -> Result<Flow> {
    leave(repl).await?;
    Ok(Flow::Exit)
}

/// The name that was given, or the one the person chooses; `None` when they choose none.
async fn chosen(
    repl: &Repl,
    given: Option<String>,
    message: &str,
    options: Vec<String>,
    usage: &'static str,
) -> Result<Option<String>> {
    if given.is_some() {
        return Ok(given);
    }
    if options.is_empty() {
        return Err(Error::user("there is nothing to choose from"));
    }
    let question = Question::Select {
        message: message.to_owned(),
        options: options.clone(),
    };
    match repl.question(question).await {
        Answer::Choices(indices) => Ok(indices
            .first()
            .and_then(|index| options.into_iter().nth(*index))),
        Answer::Unavailable => {
            Err(Error::user("there is nobody to ask").hint(format!("`{usage}`")))
        }
        Answer::Yes
        | Answer::No
        | Answer::Always
        | Answer::Text(_)
        | Answer::Cancelled
        | Answer::Interrupted => Ok(None),
    }
}
