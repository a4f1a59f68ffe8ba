//! The parser of a line: text → [`Parsed`].
//!
//! Which commands there are is the [table](super::table)'s business. Nothing here does anything: parsing is pure and
//! never fails loudly, a line that cannot be understood is a [`ParseError`] that teaches what can.

use std::collections::BTreeMap;

use super::args::Rest;
use super::table::{find, nearest};
use crate::utils::words::SplitError;
use crate::utils::{Error, fuzzy};

/// What a line means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Nothing was typed.
    Empty,
    /// Text for the model, verbatim.
    Ask(String),
    /// `!`: a command for the shell.
    Shell(String),
    /// A command of ours.
    Command(ReplCommand),
    /// A line that begins like a command and is none.
    Error(ParseError),
}

/// A command, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplCommand {
    /// `.help [COMMAND]`
    Help(Option<String>),
    /// `.exit`, `.exit role`, `.exit session`
    Exit(ExitFrom),
    /// `.info …`
    Info(InfoTopic),
    /// `.model [NAME]`; without a name the person chooses.
    Model(Option<String>),
    /// `.role [NAME [TEXT]]`; without a name the person chooses.
    Role {
        /// The role.
        name: Option<String>,
        /// Asked once with the role, which is left again afterwards.
        text: Option<String>,
    },
    /// `.temp-role TEXT`
    TempRole(String),
    /// `.agent [NAME [KEY=VALUE...]]`; without a name the person chooses.
    Agent {
        /// The agent.
        name: Option<String>,
        /// Values of its variables.
        variables: BTreeMap<String, String>,
    },
    /// `.starter [N]`; without a number the person chooses.
    Starter(Option<String>),
    /// `.session [NAME]`; without a name a temporary one.
    Session(Option<String>),
    /// `.empty`
    Empty,
    /// `.compress`
    Compress,
    /// `.save role|session [NAME]`
    Save {
        /// What is saved.
        what: Kept,
        /// Under which name; absent, under its own.
        name: Option<String>,
    },
    /// `.edit config|role|session`
    Edit(EditTarget),
    /// `.file PATH... [-- TEXT]`
    File {
        /// Files, globs and URLs.
        paths: Vec<String>,
        /// What is asked about them; may be empty.
        text: String,
    },
    /// `.prompt SERVER NAME [KEY=VALUE...]`
    Prompt(PromptCall),
    /// `.macro [NAME [ARGUMENTS]]`; without a name the person chooses.
    Macro {
        /// The macro.
        name: Option<String>,
        /// Its arguments, as they stand.
        text: String,
    },
    /// `.continue`
    Continue,
    /// `.regenerate`
    Regenerate,
    /// `.copy`
    Copy,
    /// `.set KEY VALUE`
    Set {
        /// The setting, as typed.
        key: String,
        /// Its new value, as typed.
        value: String,
    },
    /// `.list …`
    List(ListTopic),
    /// `.tool enable|disable NAME...`
    Tool {
        /// On or off.
        switch: Switch,
        /// Tools or aliases.
        names: Vec<String>,
    },
    /// `.mcp …`
    Mcp(McpCommand),
    /// `.delete role|session [NAME]`; without a name the person chooses.
    Delete {
        /// What is deleted.
        what: Kept,
        /// Which one.
        name: Option<String>,
    },
    /// `.undo`
    Undo,
}

/// What `.exit` leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitFrom {
    /// coyote.
    Program,
    /// The role.
    Role,
    /// The session.
    Session,
    /// The agent.
    Agent,
}

/// What `.info` is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InfoTopic {
    /// Everything in force, and where files are.
    System,
    /// The role.
    Role,
    /// The session.
    Session,
    /// The agent.
    Agent,
    /// Which tools and servers a request sees.
    Tools,
    /// MCP servers, or one of them.
    Mcp(Option<String>),
}

/// What can be saved and deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// A role.
    Role,
    /// A session.
    Session,
}

/// What the external editor opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditTarget {
    /// `config.yaml`.
    Config,
    /// The active role's file.
    Role,
    /// The active session's file.
    Session,
}

/// What `.list` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListTopic {
    /// Roles.
    Roles,
    /// Saved sessions.
    Sessions,
    /// Agents.
    Agents,
    /// Macros.
    Macros,
    /// Tools, built in and the user's own.
    Tools,
    /// Configured MCP servers.
    McpServers,
    /// Prompts of MCP servers.
    Prompts,
}

/// A prompt to ask with, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCall {
    /// The server's configured name.
    pub server: String,
    /// The prompt's name.
    pub name: String,
    /// The words after it, `KEY=VALUE` each. Held as a result, because what is wrong with them is said together with
    /// the arguments that the prompt declares (`P-02`).
    pub words: Result<Vec<String>, SplitError>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Enable.
    On,
    /// Disable.
    Off,
}

/// What `.mcp` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCommand {
    /// `.mcp list`
    List,
    /// `.mcp enable|disable NAME...`
    Switch {
        /// On or off.
        switch: Switch,
        /// Servers or aliases.
        names: Vec<String>,
    },
    /// `.mcp restart NAME`
    Restart(String),
}

/// Says what `line` means.
pub fn parse(line: &str) -> Parsed {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return Parsed::Empty;
    }
    if let Some(inner) = trimmed.strip_prefix(":::") {
        return multi_line(inner);
    }
    if let Some(command) = trimmed.strip_prefix('!') {
        return match command.trim() {
            "" => Parsed::Error(ParseError::Usage {
                usage: "!COMMAND",
                misuse: Misuse::Missing("COMMAND"),
            }),
            command => Parsed::Shell(command.to_owned()),
        };
    }
    if !trimmed.starts_with('.') {
        return Parsed::Ask(line.trim_end().trim_start_matches(['\n', '\r']).to_owned());
    }
    let (name, rest) = trimmed
        .split_once(char::is_whitespace)
        .unwrap_or((trimmed, ""));
    let Some(spec) = find(name) else {
        return Parsed::Error(ParseError::Unknown {
            name: name.to_owned(),
            nearest: nearest(name),
        });
    };
    match (spec.parse)(&Rest::new(rest)) {
        Ok(command) => Parsed::Command(command),
        Err(misuse) => Parsed::Error(ParseError::Usage {
            usage: spec.usage,
            misuse,
        }),
    }
}

/// The text between `:::` markers, of which the first is gone already. It is never a command: this is how text that
/// begins with a dot or an exclamation mark is sent.
fn multi_line(inner: &str) -> Parsed {
    let inner = inner.strip_suffix(":::").unwrap_or(inner).trim_end();
    let text = match inner.split_once('\n') {
        Some((first, rest)) if first.trim().is_empty() => rest,
        _ => inner.trim_start(),
    };
    if text.is_empty() {
        Parsed::Empty
    } else {
        Parsed::Ask(text.to_owned())
    }
}

/// Why a line that begins like a command is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No command has this name.
    #[error("unknown command `{name}`")]
    Unknown {
        /// As typed, dot included.
        name: String,
        /// Commands it may have meant, best first.
        nearest: Vec<&'static str>,
    },
    /// The command exists and its arguments are not what it takes.
    #[error("{misuse}")]
    Usage {
        /// The command with its arguments.
        usage: &'static str,
        /// What is wrong with them.
        misuse: Misuse,
    },
}

/// What is wrong with a command's arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A needed argument is absent.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// There is an argument too many.
    #[error("`{0}` is one argument too many")]
    Unexpected(String),
    /// An argument is none of the words it can be.
    #[error("`{given}` is not one of {known}")]
    NotOneOf {
        /// As typed.
        given: String,
        /// The words, as a sentence.
        known: String,
    },
    /// The arguments cannot be split into words.
    #[error(transparent)]
    Words(#[from] SplitError),
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        let hints = match &error {
            ParseError::Unknown { nearest, .. } => {
                let mut hints = Vec::new();
                if !nearest.is_empty() {
                    hints.push(format!("{} is near", fuzzy::alternatives(nearest)));
                }
                hints.push("`.help` lists the commands".to_owned());
                hints.push("`::: TEXT :::` sends text that begins with a dot".to_owned());
                hints
            }
            ParseError::Usage { usage, .. } => vec![format!("`{usage}` is how it is used")],
        };
        hints.into_iter().fold(Self::user(&error), Self::hint)
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
