//! What the command line means: flags → one [`Plan`]. Combinations that mean nothing are rejected here, so that
//! whoever executes a plan needs no second look.

use std::collections::BTreeMap;

use clap::error::ErrorKind;

use super::args::{Command, Kind, McpVerb, OneOrAll, Options, Typed, usage_error};
use crate::demo::Spoil;

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Print the completion script of a shell.
    Completions(clap_complete::Shell),
    /// Be the demo's server.
    DemoServer(Option<Spoil>),
    /// The tour, or the REPL with the demo's server.
    Demo {
        /// Ends the tour with a turn of this model; the REPL's model.
        model: Option<String>,
    },
    /// Something that needs the configuration.
    Configured(Configured, Box<Setting>),
}

/// What needs the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum Configured {
    /// Show settings and places.
    Info,
    /// List what there is of a kind.
    List(Listed),
    /// Ask MCP servers.
    Mcp(Mcp),
    /// Talk to a model: once, or in the REPL.
    Chat(Chat),
    /// Do the lines of a macro.
    Macro(MacroCall),
}

/// What every configured command has in common.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setting {
    /// Print JSON.
    pub json: bool,
    /// Whether the working directory's server file counts.
    pub workspace: Workspace,
    /// Instead of the configured model.
    pub model: Option<String>,
    /// The role to begin with.
    pub role: Option<RoleChoice>,
    /// The session to begin with.
    pub session: Option<SessionChoice>,
    /// The agent to begin with.
    pub agent: Option<AgentChoice>,
}

/// Which agent, and what its variables are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentChoice {
    /// Its name.
    pub name: String,
    /// Values of its variables.
    pub variables: BTreeMap<String, String>,
}

/// Whether the working directory's server file counts (`M-11`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workspace {
    /// As the configuration says.
    #[default]
    Configured,
    /// Not in this run.
    Ignored,
}

/// Where the role comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoleChoice {
    /// A saved or built-in role.
    Named(String),
    /// This text.
    Temporary(String),
}

/// Which session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// One without a name.
    Temporary,
    /// A saved or new one.
    Named(String),
}

/// What can be listed without starting anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Models.
    Models,
    /// Roles.
    Roles,
    /// Sessions.
    Sessions,
    /// Macros.
    Macros,
    /// Agents.
    Agents,
    /// MCP servers.
    McpServers,
    /// Local tools.
    Tools,
}

/// A macro to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroCall {
    /// Which one.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Whether answers are streamed.
    pub stream: Streaming,
    /// Show requests instead of sending them.
    pub dry_run: bool,
    /// Approve tool calls without asking.
    pub approve_all: bool,
}

/// A question to a model, or the REPL.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chat {
    /// What was typed, joined by spaces.
    pub text: Option<String>,
    /// Attachments.
    pub files: Vec<String>,
    /// What of the answer is wanted.
    pub answer: AnswerKind,
    /// Whether the answer is streamed.
    pub stream: Streaming,
    /// Show the request instead of sending it.
    pub dry_run: bool,
    /// Approve tool calls without asking.
    pub approve_all: bool,
}

impl Chat {
    /// Whether there is something to send before anything is read from stdin.
    pub fn says_something(&self) -> bool {
        self.text.is_some() || !self.files.is_empty()
    }
}

/// What of the answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerKind {
    /// All of it.
    #[default]
    Whole,
    /// Only its code (`-c`).
    Code,
    /// A shell command, to choose what to do with (`-e`).
    Command,
}

/// Whether an answer is shown as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streaming {
    /// As the configuration says.
    #[default]
    Configured,
    /// When it is complete (`-S`).
    Off,
}

/// What to ask MCP servers.
#[derive(Debug, Clone, PartialEq)]
pub enum Mcp {
    /// The state of all servers.
    Servers {
        /// Start none.
        offline: bool,
    },
    /// One kind of catalog item, of one server or of all enabled ones.
    List(Kind, Option<String>),
    /// Something of one server.
    Ask {
        /// Which one.
        server: String,
        /// What.
        verb: Verb,
    },
}

/// What can be asked of one server.
#[derive(Debug, Clone, PartialEq)]
pub enum Verb {
    /// Search its catalog.
    Search {
        /// What for.
        query: String,
        /// How many items.
        top_k: u16,
    },
    /// Describe one item.
    Describe {
        /// Which one.
        id: String,
        /// What it is.
        kind: Kind,
    },
    /// Call a tool.
    Call {
        /// Which one.
        tool: String,
        /// With what; `None` when nothing was typed, then stdin may have it.
        arguments: Option<serde_json::Map<String, serde_json::Value>>,
    },
    /// Read a resource as a model would.
    Read {
        /// Which one.
        uri: String,
        /// A template's values.
        arguments: Option<serde_json::Map<String, serde_json::Value>>,
        /// Line filter.
        pattern: Option<String>,
        /// First byte.
        offset: u64,
        /// Page size.
        max_bytes: Option<u64>,
    },
    /// Write a resource's own bytes.
    ReadRaw {
        /// Which one.
        uri: String,
        /// A template's values.
        arguments: Option<serde_json::Map<String, serde_json::Value>>,
        /// Which content, from 1.
        item: Option<usize>,
    },
    /// A prompt, filled in.
    Prompt {
        /// The prompt.
        name: String,
        /// `KEY=VALUE` each.
        words: Vec<String>,
    },
    /// Is it there?
    Ping,
}

/// Gives the command line its meaning.
///
/// # Errors
/// What was typed contradicts itself; a usage error.
pub fn plan(typed: Typed) -> Result<Plan, clap::Error> {
    let Typed {
        mut options,
        command,
        text,
    } = typed;
    if let Some(shell) = options.completions {
        return Ok(Plan::Completions(shell));
    }
    match command {
        Some(Command::DemoServer { spoil }) => Ok(Plan::DemoServer(spoil)),
        Some(Command::Demo { model }) => {
            let model = model.or(options.model.take());
            only_with(&options, "demo")?;
            refuse_json(&options)?;
            Ok(Plan::Demo { model })
        }
        Some(Command::Mcp(verb)) => {
            only_with(&options, "mcp")?;
            let mcp = mcp(verb)?;
            Ok(Plan::Configured(Configured::Mcp(mcp), setting(options)?))
        }
        None => chat_or_look(options, &text),
    }
}

fn chat_or_look(mut options: Options, text: &[String]) -> Result<Plan, clap::Error> {
    let look = looked_at(&options)?;
    if let Some(name) = options.macro_name.take() {
        return macro_call(options, name, text, look);
    }
    let text = (!text.is_empty()).then(|| text.join(" "));
    let chat = Chat {
        answer: match (options.code, options.execute) {
            (true, true) => return Err(conflict("--code", "--execute")),
            (true, false) => AnswerKind::Code,
            (false, true) => AnswerKind::Command,
            (false, false) => AnswerKind::Whole,
        },
        text,
        files: std::mem::take(&mut options.files),
        stream: streaming(&options),
        dry_run: options.dry_run,
        approve_all: options.yes,
    };
    let what = match look {
        Some((flag, _)) if chat.says_something() => {
            return Err(usage_error(
                ErrorKind::ArgumentConflict,
                format!("`{flag}` asks no model: it takes no text and no files"),
            ));
        }
        Some((_, look)) => look,
        None => {
            refuse_json(&options)?;
            Configured::Chat(chat)
        }
    };
    Ok(Plan::Configured(what, setting(options)?))
}

/// A macro takes the words of the text one by one; what it says to a model, it says itself.
fn macro_call(
    options: Options,
    name: String,
    arguments: &[String],
    look: Option<(&'static str, Configured)>,
) -> Result<Plan, clap::Error> {
    let with = [
        (!options.files.is_empty(), "--file"),
        (options.code, "--code"),
        (options.execute, "--execute"),
    ];
    let with = with
        .into_iter()
        .find_map(|(typed, flag)| typed.then_some(flag));
    if let Some(flag) = look.map(|(flag, _)| flag).or(with) {
        return Err(conflict("--macro", flag));
    }
    refuse_json(&options)?;
    let call = MacroCall {
        name,
        arguments: arguments.to_vec(),
        stream: streaming(&options),
        dry_run: options.dry_run,
        approve_all: options.yes,
    };
    Ok(Plan::Configured(Configured::Macro(call), setting(options)?))
}

fn streaming(options: &Options) -> Streaming {
    if options.no_stream {
        Streaming::Off
    } else {
        Streaming::Configured
    }
}

/// The one flag that looks instead of talking.
fn looked_at(options: &Options) -> Result<Option<(&'static str, Configured)>, clap::Error> {
    let flags = [
        (options.info, "--info", Configured::Info),
        (
            options.list_models,
            "--list-models",
            Configured::List(Listed::Models),
        ),
        (
            options.list_roles,
            "--list-roles",
            Configured::List(Listed::Roles),
        ),
        (
            options.list_sessions,
            "--list-sessions",
            Configured::List(Listed::Sessions),
        ),
        (
            options.list_macros,
            "--list-macros",
            Configured::List(Listed::Macros),
        ),
        (
            options.list_agents,
            "--list-agents",
            Configured::List(Listed::Agents),
        ),
        (
            options.list_mcp_servers,
            "--list-mcp-servers",
            Configured::List(Listed::McpServers),
        ),
        (
            options.list_tools,
            "--list-tools",
            Configured::List(Listed::Tools),
        ),
    ];
    let mut set = flags
        .into_iter()
        .filter_map(|(set, flag, look)| set.then_some((flag, look)));
    let first = set.next();
    match (first, set.next()) {
        (Some((first, _)), Some((second, _))) => Err(conflict(first, second)),
        (first, _) => Ok(first),
    }
}

fn setting(options: Options) -> Result<Box<Setting>, clap::Error> {
    let agent = agent(&options)?;
    let role = match (options.role, options.temp_role) {
        (Some(_), Some(_)) => return Err(conflict("--role", "--temp-role")),
        (Some(name), None) => Some(RoleChoice::Named(name)),
        (None, Some(text)) => Some(RoleChoice::Temporary(text)),
        (None, None) => None,
    };
    Ok(Box::new(Setting {
        json: options.json,
        workspace: if options.no_workspace_mcp {
            Workspace::Ignored
        } else {
            Workspace::Configured
        },
        model: options.model,
        role,
        session: options.session.map(|name| match name {
            Some(name) => SessionChoice::Named(name),
            None => SessionChoice::Temporary,
        }),
        agent,
    }))
}

fn agent(options: &Options) -> Result<Option<AgentChoice>, clap::Error> {
    let Some(name) = options.agent.clone() else {
        if options.agent_variables.is_empty() {
            return Ok(None);
        }
        return Err(usage_error(
            ErrorKind::MissingRequiredArgument,
            "`--agent-variable` goes with `--agent`",
        ));
    };
    let role = [
        (options.role.is_some(), "--role"),
        (options.temp_role.is_some(), "--temp-role"),
    ];
    if let Some((_, flag)) = role.into_iter().find(|(typed, _)| *typed) {
        return Err(conflict("--agent", flag));
    }
    let mut variables = BTreeMap::new();
    for word in &options.agent_variables {
        let pair = word
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty());
        let Some((key, value)) = pair else {
            return Err(usage_error(
                ErrorKind::ValueValidation,
                format!("`{word}` is no variable: write `--agent-variable KEY=VALUE`"),
            ));
        };
        if variables
            .insert(key.trim().to_owned(), value.to_owned())
            .is_some()
        {
            return Err(usage_error(
                ErrorKind::ArgumentConflict,
                format!("the variable `{key}` is given twice"),
            ));
        }
    }
    Ok(Some(AgentChoice { name, variables }))
}

/// A subcommand takes none of the chat's own flags.
fn only_with(options: &Options, subcommand: &str) -> Result<(), clap::Error> {
    let typed = [
        (options.model.is_some(), "--model"),
        (options.role.is_some(), "--role"),
        (options.session.is_some(), "--session"),
        (options.agent.is_some(), "--agent"),
        (!options.agent_variables.is_empty(), "--agent-variable"),
        (options.temp_role.is_some(), "--temp-role"),
        (options.macro_name.is_some(), "--macro"),
        (!options.files.is_empty(), "--file"),
        (options.code, "--code"),
        (options.execute, "--execute"),
        (options.no_stream, "--no-stream"),
        (options.dry_run, "--dry-run"),
        (options.yes, "--yes"),
        (options.info, "--info"),
        (options.list_models, "--list-models"),
        (options.list_roles, "--list-roles"),
        (options.list_sessions, "--list-sessions"),
        (options.list_macros, "--list-macros"),
        (options.list_agents, "--list-agents"),
        (options.list_mcp_servers, "--list-mcp-servers"),
        (options.list_tools, "--list-tools"),
    ];
    match typed.into_iter().find(|(typed, _)| *typed) {
        Some((_, flag)) => Err(conflict(flag, subcommand)),
        None => Ok(()),
    }
}

fn refuse_json(options: &Options) -> Result<(), clap::Error> {
    if options.json {
        return Err(usage_error(
            ErrorKind::ArgumentConflict,
            "`--json` goes with `--info`, `--list-…` and `mcp`",
        ));
    }
    Ok(())
}

fn conflict(one: &str, other: &str) -> clap::Error {
    usage_error(
        ErrorKind::ArgumentConflict,
        format!("`{one}` cannot be used with `{other}`"),
    )
}

fn mcp(verb: McpVerb) -> Result<Mcp, clap::Error> {
    let list = |kind, OneOrAll { server }| Ok(Mcp::List(kind, server));
    let ask = |server, verb| Ok(Mcp::Ask { server, verb });
    match verb {
        McpVerb::Servers { offline } => Ok(Mcp::Servers { offline }),
        McpVerb::Tools(which) => list(Kind::Tool, which),
        McpVerb::Resources(which) => list(Kind::Resource, which),
        McpVerb::Templates(which) => list(Kind::ResourceTemplate, which),
        McpVerb::Prompts(which) => list(Kind::Prompt, which),
        McpVerb::Search {
            server,
            query,
            top_k,
        } => {
            let query = query.join(" ");
            ask(server, Verb::Search { query, top_k })
        }
        McpVerb::Describe { server, id, kind } => ask(server, Verb::Describe { id, kind }),
        McpVerb::Call {
            server,
            tool,
            arguments,
        } => {
            let arguments = key_values(&arguments)?;
            ask(server, Verb::Call { tool, arguments })
        }
        McpVerb::Read {
            server,
            uri,
            arguments,
            pattern,
            offset,
            max_bytes,
            raw,
            item,
        } => {
            let arguments = key_values(&arguments)?;
            let verb = if raw {
                Verb::ReadRaw {
                    uri,
                    arguments,
                    item,
                }
            } else {
                Verb::Read {
                    uri,
                    arguments,
                    pattern,
                    offset,
                    max_bytes,
                }
            };
            ask(server, verb)
        }
        McpVerb::Prompt {
            server,
            name,
            arguments: words,
        } => ask(server, Verb::Prompt { name, words }),
        McpVerb::Ping { server } => ask(server, Verb::Ping),
    }
}

/// `key=value` is a string, `key:=json` is JSON. The first `=` ends the key.
fn key_values(
    words: &[String],
) -> Result<Option<serde_json::Map<String, serde_json::Value>>, clap::Error> {
    if words.is_empty() {
        return Ok(None);
    }
    let wrong = |message: String| usage_error(ErrorKind::ValueValidation, message);
    let mut arguments = serde_json::Map::new();
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| {
            wrong(format!(
                "`{word}` is no argument: write `key=value` or `key:=json`"
            ))
        })?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => {
                let value = serde_json::from_str(value)
                    .map_err(|error| wrong(format!("`{key}:=` is followed by no JSON: {error}")))?;
                (key, value)
            }
            None => (key, serde_json::Value::from(value)),
        };
        if key.is_empty() {
            return Err(wrong(format!("`{word}` has an empty key")));
        }
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(wrong(format!("`{key}` is given twice")));
        }
    }
    Ok(Some(arguments))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
