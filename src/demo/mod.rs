//! The built-in MCP server of `coyote demo` (`H-50`): newline-delimited JSON-RPC over a pair of byte streams, written
//! out by hand so that it shares no code with the client it exercises.
//!
//! Blocking and free of configuration; what it serves is in `content`, how it answers in `server`. It knows
//! nothing of the rest of coyote: the tour (`cli::demo`) is a client like any other.

mod content;
mod server;

pub use content::{
    AUDIENCE_URI, GUIDE, GUIDE_URI, LESSON_PROMPT, LOG_LINES, LOG_URI, LOGO_URI, NOTES,
    NOTES_PROMPT, NOTES_QUESTION, NOTES_URI, TEMPLATE, error_lines, greeting, lesson, log_text,
    logo,
};
pub use server::serve;

/// The name under which the demo server is configured.
pub const SERVER: &str = "demo";

/// The hidden subcommand that serves it.
pub const SUBCOMMAND: &str = "demo-server";

/// How many entries of each kind there are, for whoever checks that none is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tools.
    pub tools: usize,
    /// Resources.
    pub resources: usize,
    /// Resource templates.
    pub templates: usize,
    /// Prompts.
    pub prompts: usize,
}

/// What an unspoiled server lists.
pub fn counts() -> Counts {
    Counts {
        tools: content::tools(None).len(),
        resources: content::resources(None).len(),
        templates: content::templates().len(),
        prompts: content::prompts().len(),
    }
}

/// One thing to get wrong, so that tests can show that the tour notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Spoil {
    /// Exits before the handshake is over.
    Start,
    /// Does not advertise resources.
    Capabilities,
    /// Loses every page of a list but the first.
    Pages,
    /// Hides the log under a name and a description that no search for it finds.
    Search,
    /// Leaves the parameters out of a tool's schema.
    Schema,
    /// Answers each read of the guide with another text.
    Guide,
    /// Loses one line of the log.
    Log,
    /// Greets somebody else.
    Template,
    /// Sends the mislabeled text with a byte that is not UTF-8.
    Notes,
    /// Sends another picture.
    Logo,
    /// Forgets whom a resource is for.
    Audience,
    /// Adds wrongly.
    Tool,
    /// Tells a prompt's messages backwards.
    Prompt,
    /// Puts a picture's base64 into a text block.
    Base64,
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
