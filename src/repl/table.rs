//! The one table of commands (`H-21`): name, usage, help, availability, arguments.
//!
//! `.help`, completion, usage errors and availability all come from [`COMMANDS`]. A new command is one entry here, a
//! variant of [`ReplCommand`] with the function that parses its arguments, and a handler.

use super::args::{self, Rest};
use super::command::{Misuse, ReplCommand};
use crate::utils::fuzzy;
use crate::utils::words::{self, Word};

/// A command as it is described to people and to completion.
pub struct CommandSpec {
    /// With its dot.
    pub name: &'static str,
    /// One line: the command with its arguments.
    pub usage: &'static str,
    /// One line: what it does.
    pub help: &'static str,
    /// When it makes sense.
    pub needs: Need,
    /// What its arguments are, for completion.
    pub args: ArgKind,
    pub(super) parse: fn(&Rest<'_>) -> Result<ReplCommand, Misuse>,
}

impl CommandSpec {
    /// Whether the command can do anything in `state`.
    pub fn available(&self, state: &State) -> bool {
        self.needs.met(state)
    }
}

/// What availability depends on.
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent facts, read by name"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// A session is active.
    pub session: bool,
    /// A role is active.
    pub role: bool,
    /// An agent is active.
    pub agent: bool,
    /// Something was asked, so that it can be answered again.
    pub exchange: bool,
    /// An MCP server is configured.
    pub servers: bool,
}

/// What a command needs to make sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// An active session.
    Session,
    /// An active agent.
    Agent,
    /// An active role or session.
    RoleOrSession,
    /// An exchange in the current conversation.
    Exchange,
    /// A configured MCP server.
    Servers,
}

impl Need {
    /// Whether `state` has it.
    pub fn met(self, state: &State) -> bool {
        match self {
            Self::Nothing => true,
            Self::Session => state.session,
            Self::Agent => state.agent,
            Self::RoleOrSession => state.role || state.session,
            Self::Exchange => state.exchange,
            Self::Servers => state.servers,
        }
    }

    /// What is missing when it is not met, and what brings it.
    pub fn missing(self) -> (&'static str, &'static str) {
        match self {
            Self::Nothing => ("nothing is missing", "`.help` lists the commands"),
            Self::Session => ("no session is active", "`.session [NAME]` starts one"),
            Self::Agent => ("no agent is active", "`.agent NAME` takes one on"),
            Self::RoleOrSession => (
                "no role and no session is active",
                "`.role NAME` or `.session [NAME]` starts one",
            ),
            Self::Exchange => ("nothing has been asked yet", "type a question first"),
            Self::Servers => (
                "no MCP server is configured",
                "`.info` shows where `mcp.json` is expected",
            ),
        }
    }
}

/// What an argument is, for completion.
#[derive(Clone, Copy)]
pub enum ArgKind {
    /// There is nothing to complete.
    None,
    /// A command's name.
    Command,
    /// One of some words, each with what follows it.
    Choice(&'static [Choice]),
    /// A model id.
    Model,
    /// A role.
    Role,
    /// A saved session.
    Session,
    /// An agent.
    Agent,
    /// The number of one of the agent's starters.
    Starter,
    /// A macro.
    Macro,
    /// Any number of MCP servers.
    Servers,
    /// One MCP server.
    Server,
    /// An MCP server with prompts, then one of its prompts, then `key=value` for its arguments.
    Prompt,
    /// Any number of tools.
    Tools,
    /// Any number of files, up to `--`.
    Files,
    /// A setting's key, then its value.
    Setting,
    /// The value of the setting named by the word before.
    SettingValue,
}

/// A word that an argument can be.
#[derive(Clone, Copy)]
pub struct Choice {
    /// The word.
    pub word: &'static str,
    /// One line: what it means.
    pub help: &'static str,
    /// What follows it.
    pub then: ArgKind,
}

const fn choice(word: &'static str, help: &'static str, then: ArgKind) -> Choice {
    Choice { word, help, then }
}

impl ArgKind {
    /// The kind of the argument that follows `before`, arguments of one that is of this kind; `None` when nothing
    /// may follow.
    pub fn after(self, before: &[String]) -> Option<Self> {
        match self {
            Self::None => None,
            Self::Servers | Self::Tools | Self::Prompt => Some(self),
            Self::Files => (!before.iter().any(|word| word == "--")).then_some(self),
            Self::Setting => match before.len() {
                0 => Some(self),
                1 => Some(Self::SettingValue),
                _ => None,
            },
            Self::Choice(choices) => match before.split_first() {
                None => Some(self),
                Some((first, rest)) => choices
                    .iter()
                    .find(|choice| choice.word == first)
                    .and_then(|choice| choice.then.after(rest)),
            },
            Self::Command
            | Self::Model
            | Self::Role
            | Self::Session
            | Self::Agent
            | Self::Starter
            | Self::Macro
            | Self::Server
            | Self::SettingValue => before.is_empty().then_some(self),
        }
    }
}

/// What is being typed at the end of a line.
pub struct Typing {
    /// What it is; [`ArgKind::Command`] with an empty `before` for the command itself.
    pub kind: ArgKind,
    /// The word as far as it has been typed; its span is of the line.
    pub word: Word,
    /// The complete arguments before it.
    pub before: Vec<String>,
}

/// What is being typed at the end of `line`, the text up to the cursor; `None` when it is no command's business.
pub fn typing(line: &str) -> Option<Typing> {
    if !line.trim_start().starts_with('.') {
        return None;
    }
    let partial = words::split_partial(line);
    let mut before = partial.done.into_iter().map(|word| word.text);
    let Some(name) = before.next() else {
        return Some(Typing {
            kind: ArgKind::Command,
            word: partial.last,
            before: Vec::new(),
        });
    };
    let before: Vec<String> = before.collect();
    let kind = find(&name)?.args.after(&before)?;
    Some(Typing {
        kind,
        word: partial.last,
        before,
    })
}

/// The command called `name`, dot included.
pub fn find(name: &str) -> Option<&'static CommandSpec> {
    COMMANDS.iter().find(|spec| spec.name == name)
}

/// The commands nearest to `name`, which is none.
pub fn nearest(name: &str) -> Vec<&'static str> {
    fuzzy::nearest(name, COMMANDS.iter().map(|spec| spec.name), 3)
}

const SESSION_WORD: ArgKind = ArgKind::Choice(&[choice(
    "session",
    "the active session (may be left out)",
    ArgKind::None,
)]);

/// Every command, in the order in which `.help` shows them.
pub const COMMANDS: &[CommandSpec] = &[
    CommandSpec {
        name: ".help",
        usage: ".help [COMMAND]",
        help: "Show the commands, or how one is used",
        needs: Need::Nothing,
        args: ArgKind::Command,
        parse: |rest| Ok(ReplCommand::Help(rest.optional()?)),
    },
    CommandSpec {
        name: ".info",
        usage: ".info [role|session|agent|tools|mcp [SERVER]]",
        help: "Show what is in force and where files are",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("role", "the active role", ArgKind::None),
            choice("session", "the active session", ArgKind::None),
            choice("agent", "the active agent", ArgKind::None),
            choice(
                "tools",
                "which tools and servers a request sees",
                ArgKind::None,
            ),
            choice("mcp", "the MCP servers, or one of them", ArgKind::Server),
        ]),
        parse: args::info,
    },
    CommandSpec {
        name: ".model",
        usage: ".model [NAME]",
        help: "Use another model",
        needs: Need::Nothing,
        args: ArgKind::Model,
        parse: |rest| Ok(ReplCommand::Model(rest.optional()?)),
    },
    CommandSpec {
        name: ".role",
        usage: ".role [NAME [TEXT]]",
        help: "Take on a role, or ask once with it",
        needs: Need::Nothing,
        args: ArgKind::Role,
        parse: args::role,
    },
    CommandSpec {
        name: ".temp-role",
        usage: ".temp-role TEXT",
        help: "Take on a role that is not saved",
        needs: Need::Nothing,
        args: ArgKind::None,
        parse: |rest| Ok(ReplCommand::TempRole(rest.text("TEXT")?)),
    },
    CommandSpec {
        name: ".agent",
        usage: ".agent [NAME [KEY=VALUE...]]",
        help: "Work with an agent",
        needs: Need::Nothing,
        args: ArgKind::Agent,
        parse: args::agent,
    },
    CommandSpec {
        name: ".starter",
        usage: ".starter [N]",
        help: "Begin with one of the agent's questions",
        needs: Need::Agent,
        args: ArgKind::Starter,
        parse: |rest| Ok(ReplCommand::Starter(rest.optional()?)),
    },
    CommandSpec {
        name: ".session",
        usage: ".session [NAME]",
        help: "Start or resume a session",
        needs: Need::Nothing,
        args: ArgKind::Session,
        parse: |rest| Ok(ReplCommand::Session(rest.optional()?)),
    },
    CommandSpec {
        name: ".empty",
        usage: ".empty [session]",
        help: "Forget the session's messages",
        needs: Need::Session,
        args: SESSION_WORD,
        parse: |rest| rest.only_word("session").map(|()| ReplCommand::Empty),
    },
    CommandSpec {
        name: ".compress",
        usage: ".compress [session]",
        help: "Replace the session's messages by a summary",
        needs: Need::Session,
        args: SESSION_WORD,
        parse: |rest| rest.only_word("session").map(|()| ReplCommand::Compress),
    },
    CommandSpec {
        name: ".save",
        usage: ".save role|session [NAME]",
        help: "Save the active role or session",
        needs: Need::RoleOrSession,
        args: ArgKind::Choice(&[
            choice("role", "the active role", ArgKind::Role),
            choice("session", "the active session", ArgKind::Session),
        ]),
        parse: |rest| args::kept(rest).map(|(what, name)| ReplCommand::Save { what, name }),
    },
    CommandSpec {
        name: ".edit",
        usage: ".edit config|role|session",
        help: "Open a file in the editor",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("config", "config.yaml", ArgKind::None),
            choice("role", "the active role", ArgKind::None),
            choice("session", "the active session", ArgKind::None),
        ]),
        parse: args::edit,
    },
    CommandSpec {
        name: ".file",
        usage: ".file PATH... [-- TEXT]",
        help: "Ask about files, globs or URLs",
        needs: Need::Nothing,
        args: ArgKind::Files,
        parse: args::file,
    },
    CommandSpec {
        name: ".prompt",
        usage: ".prompt SERVER NAME [KEY=VALUE...]",
        help: "Ask with a prompt of an MCP server",
        needs: Need::Servers,
        args: ArgKind::Prompt,
        parse: args::prompt,
    },
    CommandSpec {
        name: ".macro",
        usage: ".macro [NAME [ARGUMENT...]]",
        help: "Do the lines of a macro; `.NAME` does too",
        needs: Need::Nothing,
        args: ArgKind::Macro,
        parse: args::macro_call,
    },
    CommandSpec {
        name: ".continue",
        usage: ".continue",
        help: "Have the last answer continued",
        needs: Need::Exchange,
        args: ArgKind::None,
        parse: |rest| rest.none().map(|()| ReplCommand::Continue),
    },
    CommandSpec {
        name: ".regenerate",
        usage: ".regenerate",
        help: "Have the last question answered anew",
        needs: Need::Exchange,
        args: ArgKind::None,
        parse: |rest| rest.none().map(|()| ReplCommand::Regenerate),
    },
    CommandSpec {
        name: ".undo",
        usage: ".undo",
        help: "Forget the last exchange",
        needs: Need::Exchange,
        args: ArgKind::None,
        parse: |rest| rest.none().map(|()| ReplCommand::Undo),
    },
    CommandSpec {
        name: ".copy",
        usage: ".copy",
        help: "Copy the last answer to the clipboard",
        needs: Need::Exchange,
        args: ArgKind::None,
        parse: |rest| rest.none().map(|()| ReplCommand::Copy),
    },
    CommandSpec {
        name: ".set",
        usage: ".set KEY VALUE",
        help: "Change a setting of the active session, role or run",
        needs: Need::Nothing,
        args: ArgKind::Setting,
        parse: args::set,
    },
    CommandSpec {
        name: ".list",
        usage: ".list roles|sessions|agents|macros|tools|mcp-servers|prompts",
        help: "List what there is",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("roles", "roles, built in and your own", ArgKind::None),
            choice("sessions", "saved sessions", ArgKind::None),
            choice("agents", "agents", ArgKind::None),
            choice("macros", "your macros", ArgKind::None),
            choice("tools", "tools, built in and your own", ArgKind::None),
            choice("mcp-servers", "configured MCP servers", ArgKind::None),
            choice("prompts", "prompts of MCP servers", ArgKind::None),
        ]),
        parse: args::list,
    },
    CommandSpec {
        name: ".tool",
        usage: ".tool enable|disable NAME...",
        help: "Switch tools on or off",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("enable", "let the model use them", ArgKind::Tools),
            choice("disable", "keep them from the model", ArgKind::Tools),
        ]),
        parse: args::tool,
    },
    CommandSpec {
        name: ".mcp",
        usage: ".mcp list | enable|disable NAME... | restart NAME",
        help: "Show, switch or restart MCP servers",
        needs: Need::Servers,
        args: ArgKind::Choice(&[
            choice("list", "servers with their state", ArgKind::None),
            choice(
                "enable",
                "start them and let the model use them",
                ArgKind::Servers,
            ),
            choice(
                "disable",
                "keep them from the model and stop them",
                ArgKind::Servers,
            ),
            choice("restart", "end one and start it anew", ArgKind::Server),
        ]),
        parse: args::mcp,
    },
    CommandSpec {
        name: ".delete",
        usage: ".delete role|session [NAME]",
        help: "Delete a saved role or session",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("role", "a role of your own", ArgKind::Role),
            choice("session", "a saved session", ArgKind::Session),
        ]),
        parse: |rest| args::kept(rest).map(|(what, name)| ReplCommand::Delete { what, name }),
    },
    CommandSpec {
        name: ".exit",
        usage: ".exit [role|session|agent]",
        help: "Leave the role, the session, the agent or coyote",
        needs: Need::Nothing,
        args: ArgKind::Choice(&[
            choice("role", "leave the role", ArgKind::None),
            choice("session", "leave the session", ArgKind::None),
            choice("agent", "leave the agent", ArgKind::None),
        ]),
        parse: args::exit,
    },
];
