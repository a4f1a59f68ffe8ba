//! What was typed: the flags and words of the command line as clap hands them over, without a meaning yet.
//!
//! Reading them has no side effects; what they mean together is `plan`'s business (`H-01`, `H-02`).

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::complete;
use crate::demo::Spoil;

/// Everything on the command line.
#[derive(Debug, Parser)]
#[command(
    name = "coyote",
    version,
    about = "A terminal client for language models with MCP servers as first-class citizens",
    after_help = "Without text, files or piped input, coyote opens its REPL; type .help there.",
    disable_help_subcommand = true,
    override_usage = "coyote [OPTIONS] [TEXT]...\n       coyote mcp <VERB>\n       coyote demo"
)]
pub struct Typed {
    /// The flags.
    #[command(flatten)]
    pub options: Options,
    /// `mcp`, `demo` or nothing.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to say to the model; words are joined by spaces, piped input is appended
    #[arg(value_name = "TEXT")]
    pub text: Vec<String>,
}

/// The same without subcommands, for lines whose first word is text.
#[derive(Debug, Parser)]
#[command(name = "coyote", version, disable_help_flag = true)]
struct TypedText {
    #[command(flatten)]
    options: Options,
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    #[arg(short, long, action = clap::ArgAction::SetTrue)]
    help: bool,
}

/// The flags of the chat; those marked global may follow a subcommand too.
#[derive(Debug, Default, Args)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag as typed; `plan` turns them into choices"
)]
pub struct Options {
    /// Use this model (`client:model`)
    #[arg(short, long, value_name = "MODEL", add = ArgValueCompleter::new(complete::models))]
    pub model: Option<String>,
    /// Use this role
    #[arg(short, long, value_name = "ROLE", add = ArgValueCompleter::new(complete::roles))]
    pub role: Option<String>,
    /// Use this agent
    #[arg(short, long, value_name = "AGENT", add = ArgValueCompleter::new(complete::agents))]
    pub agent: Option<String>,
    /// Give the agent's variable a value; may be repeated
    #[arg(long = "agent-variable", value_name = "KEY=VALUE")]
    pub agent_variables: Vec<String>,
    /// Begin or resume a session; without a name, a temporary one
    #[arg(short, long, value_name = "NAME", num_args = 0..=1, add = ArgValueCompleter::new(complete::sessions))]
    pub session: Option<Option<String>>,
    /// Use this text as the role's prompt
    #[arg(long, value_name = "TEXT")]
    pub temp_role: Option<String>,
    /// Do the lines of a macro; the words after it are its arguments
    #[arg(long = "macro", value_name = "NAME", add = ArgValueCompleter::new(complete::macros))]
    pub macro_name: Option<String>,
    /// Attach a file, a URL or the files of a glob; may be repeated
    #[arg(short, long = "file", value_name = "PATH|URL|GLOB", value_hint = clap::ValueHint::FilePath)]
    pub files: Vec<String>,
    /// Print only the code of the answer
    #[arg(short, long)]
    pub code: bool,
    /// Get a shell command and choose what to do with it
    #[arg(short, long)]
    pub execute: bool,
    /// Wait for the whole answer instead of streaming it
    #[arg(short = 'S', long)]
    pub no_stream: bool,
    /// Print what would be sent instead of sending it
    #[arg(long)]
    pub dry_run: bool,
    /// Ignore the working directory's MCP server file
    #[arg(long, global = true)]
    pub no_workspace_mcp: bool,
    /// Approve every tool call without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Show the settings and where the files are
    #[arg(long, help_heading = "Looking around")]
    pub info: bool,
    /// List the configured models
    #[arg(long, help_heading = "Looking around")]
    pub list_models: bool,
    /// List the roles
    #[arg(long, help_heading = "Looking around")]
    pub list_roles: bool,
    /// List the saved sessions
    #[arg(long, help_heading = "Looking around")]
    pub list_sessions: bool,
    /// List the macros
    #[arg(long, help_heading = "Looking around")]
    pub list_macros: bool,
    /// List the agents
    #[arg(long, help_heading = "Looking around")]
    pub list_agents: bool,
    /// List the configured MCP servers
    #[arg(long, help_heading = "Looking around")]
    pub list_mcp_servers: bool,
    /// List the local tools
    #[arg(long, help_heading = "Looking around")]
    pub list_tools: bool,
    /// Print JSON (with --info, --list-* and mcp)
    #[arg(long, global = true, help_heading = "Looking around")]
    pub json: bool,
    /// Print what makes this shell complete coyote's options
    #[arg(long, value_name = "SHELL", help_heading = "Looking around")]
    pub completions: Option<clap_complete::Shell>,
}

/// What may stand where the text begins.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look at MCP servers through a model's eyes, without a model
    #[command(subcommand)]
    Mcp(McpVerb),
    /// Try coyote on a built-in MCP server, without any configuration
    Demo {
        /// End the tour with a turn of this model (`client:model`)
        #[arg(short, long, value_name = "MODEL", add = ArgValueCompleter::new(complete::models))]
        model: Option<String>,
    },
    /// The server behind `coyote demo`: MCP over stdin and stdout
    #[command(hide = true)]
    DemoServer {
        /// Get one thing wrong, for tests
        #[arg(long, hide = true)]
        spoil: Option<Spoil>,
    },
}

/// `coyote mcp <verb>` (`H-06`).
#[derive(Debug, Subcommand)]
pub enum McpVerb {
    /// Show the servers: state, transport, revision, features, counts
    Servers {
        /// Start none of them
        #[arg(long)]
        offline: bool,
    },
    /// List tools, of one server or of all enabled ones
    Tools(OneOrAll),
    /// List resources
    Resources(OneOrAll),
    /// List resource templates
    Templates(OneOrAll),
    /// List prompts
    Prompts(OneOrAll),
    /// Search a server's catalog
    Search {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
        /// Words to find
        #[arg(required = true)]
        query: Vec<String>,
        /// How many items at most
        #[arg(long, default_value_t = 8, value_name = "N")]
        top_k: u16,
    },
    /// Describe one item of a server's catalog
    Describe {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
        /// A tool's name, a resource's URI, a template or a prompt's name
        id: String,
        /// What it is
        #[arg(long, value_enum, default_value_t)]
        kind: Kind,
    },
    /// Call a tool; exits 1 when it reports an error
    Call {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
        /// The tool
        tool: String,
        /// key=value for strings, key:=json for anything else; or a JSON object on stdin
        #[arg(value_name = "KEY=VALUE|KEY:=JSON")]
        arguments: Vec<String>,
    },
    /// Read a resource
    Read {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
        /// Its URI, or a template whose variables are given as arguments
        uri: String,
        /// A value for each variable of a template
        #[arg(value_name = "KEY=VALUE|KEY:=JSON")]
        arguments: Vec<String>,
        /// Show only lines that match, with their numbers and two lines around
        #[arg(long, value_name = "REGEX")]
        pattern: Option<String>,
        /// Begin at this byte
        #[arg(long, default_value_t, value_name = "N")]
        offset: u64,
        /// Show at most so many bytes
        #[arg(long, value_name = "N")]
        max_bytes: Option<u64>,
        /// Write the content's own bytes
        #[arg(long, conflicts_with_all = ["pattern", "offset", "max_bytes"])]
        raw: bool,
        /// Which content, counted from 1, when there are several
        #[arg(long, requires = "raw", value_name = "N")]
        item: Option<usize>,
    },
    /// Show a prompt as a model would be asked with it; asks nobody
    Prompt {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
        /// The prompt
        name: String,
        /// A value for each argument of the prompt
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
    },
    /// Ask a server whether it is there
    Ping {
        /// The server
        #[arg(add = ArgValueCompleter::new(complete::servers))]
        server: String,
    },
}

/// A server, or all that are enabled.
#[derive(Debug, Args)]
pub struct OneOrAll {
    /// Only this one is started
    #[arg(add = ArgValueCompleter::new(complete::servers))]
    pub server: Option<String>,
}

/// What a catalog item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// A tool.
    #[default]
    Tool,
    /// A resource.
    Resource,
    /// A resource template.
    #[value(alias = "template", alias = "resource-template")]
    ResourceTemplate,
    /// A prompt.
    Prompt,
}

/// Reads the command line; `argv` begins with the program's name.
///
/// # Errors
/// Clap's own, which know how to print themselves: usage errors, `--help` and `--version`.
pub fn parse(argv: &[OsString]) -> Result<Typed, clap::Error> {
    if begins_with_subcommand(argv) {
        return Typed::try_parse_from(argv);
    }
    let typed = TypedText::try_parse_from(argv)?;
    if typed.help {
        let long = argv.iter().any(|word| word == "--help");
        let help = if long { "--help" } else { "-h" };
        return Typed::try_parse_from(["coyote", help]);
    }
    Ok(Typed {
        options: typed.options,
        command: None,
        text: typed.text,
    })
}

/// A usage error in clap's clothes: exit 2, with the usage below.
pub fn usage_error(kind: ErrorKind, message: impl std::fmt::Display) -> clap::Error {
    Typed::command().error(kind, message)
}

/// Whether the first word that is no option and no option's value is a subcommand. Later words never are, and
/// neither is anything after `--`: `coyote explain mcp servers` is text.
fn begins_with_subcommand(argv: &[OsString]) -> bool {
    let command = Typed::command();
    let mut words = argv.iter().skip(1).map(OsString::as_os_str).peekable();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else {
            return false;
        };
        if word == "--" {
            return false;
        }
        if !word.starts_with('-') || word == "-" {
            return command.find_subcommand(word).is_some();
        }
        match value_of(&command, word) {
            TakesValue::No => {}
            TakesValue::Always => {
                words.next();
            }
            TakesValue::Maybe => {
                words.next_if(|next| !is_option(next));
            }
        }
    }
    false
}

fn is_option(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

/// Whether the word after an option belongs to it.
enum TakesValue {
    No,
    Always,
    Maybe,
}

fn value_of(command: &clap::Command, word: &str) -> TakesValue {
    let find = |matches: &dyn Fn(&clap::Arg) -> bool| {
        command.get_arguments().find(|argument| matches(argument))
    };
    let takes = |argument: &clap::Arg| {
        if !argument.get_action().takes_values() {
            TakesValue::No
        } else if argument
            .get_num_args()
            .is_some_and(|count| count.min_values() == 0)
        {
            TakesValue::Maybe
        } else {
            TakesValue::Always
        }
    };
    if let Some(long) = word.strip_prefix("--") {
        return match find(&|argument| argument.get_long() == Some(long)) {
            Some(argument) => takes(argument),
            None => TakesValue::No, // unknown, or its value is attached
        };
    }
    // A cluster: the first letter that takes a value takes the rest of the word, or else the next word.
    let mut letters = word.strip_prefix('-').unwrap_or(word).chars();
    while let Some(letter) = letters.next() {
        match find(&|argument| argument.get_short() == Some(letter)).map(takes) {
            None | Some(TakesValue::No) => {}
            Some(value) if letters.as_str().is_empty() => return value,
            Some(_) => return TakesValue::No,
        }
    }
    TakesValue::No
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
