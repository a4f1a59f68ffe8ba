//! Everything that knows MCP: server files, connections, the catalog, content. Imports `chat` and `utils` only; it
//! never prints, never asks the person, and knows no configuration but [`spec::ServerSpec`].
//!
//! This file owns every name (`M-01`..`M-04`): what a server is called, what a model may call it, what a
//! meta-function is called, and what a server's directory is called. No other file builds, tests or splits one.
//!
//! ```text
//! spec ── registry ── factory ── connect ── connection ─┬─ transport ── process     what is connected, and by whom
//!                                                       ├─ handler                  what servers say unasked
//!                                                       └─ pager                    lists, bounded
//! runtime ─┬─ catalog, template, decode                              what the model can ask for
//!          ├─ prompt, flatten                                        prompts, for models and people
//!          └─ render, spill                                          what the model gets to read
//! ```

pub mod blob;
pub mod capability;
pub mod catalog;
pub mod connect;
mod connection;
pub mod decode;
pub mod describe;
mod entry;
pub mod error;
pub mod factory;
pub mod fit;
pub mod flatten;
pub mod handler;
mod handshake;
mod incoming;
pub mod kept;
mod link;
pub mod news;
pub mod pager;
pub mod pieces;
pub mod process;
pub mod prompt;
pub mod rank;
pub mod registry;
mod remote;
pub mod render;
pub mod runtime;
pub mod spec;
pub mod spill;
mod sse;
mod target;
pub mod template;
pub mod transport;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

pub use capability::{Capabilities, McpServerFeatures};
pub use catalog::{Catalog, CatalogItem, CatalogKind, PromptArgument};
pub use connect::{CallContext, ConnectedServer, ListKind, Listing, Revival};
pub use error::McpError;
pub use factory::McpFactory;
pub use kept::ToolHints;
pub use news::News;
pub use registry::{McpRegistry, ServerState, ServerStatus};
pub use runtime::{
    DescribeRequest, InvokeRequest, McpRuntime, RawContent, ReadRequest, SearchRequest,
};
pub use spec::{Confirm, McpConfig, Origin, ProtocolChoice, ServerSpec, SpecError, TransportSpec};
pub use spill::SpillDir;

/// Calls a tool of a server.
pub const MCP_INVOKE_META_FUNCTION_NAME_PREFIX: &str = "mcp_invoke";
/// Searches a server's catalog.
pub const MCP_SEARCH_META_FUNCTION_NAME_PREFIX: &str = "mcp_search";
/// Describes one item of a server's catalog.
pub const MCP_DESCRIBE_META_FUNCTION_NAME_PREFIX: &str = "mcp_describe";
/// Reads a resource of a server.
pub const MCP_READ_META_FUNCTION_NAME_PREFIX: &str = "mcp_read";
/// Renders a prompt of a server.
pub const MCP_PROMPT_META_FUNCTION_NAME_PREFIX: &str = "mcp_prompt";
/// All prefixes, in the order in which a server's functions are declared (`M-01`, `M-31`).
pub const MCP_META_FUNCTION_PREFIXES: [&str; 5] = [
    MCP_INVOKE_META_FUNCTION_NAME_PREFIX,
    MCP_SEARCH_META_FUNCTION_NAME_PREFIX,
    MCP_DESCRIBE_META_FUNCTION_NAME_PREFIX,
    MCP_READ_META_FUNCTION_NAME_PREFIX,
    MCP_PROMPT_META_FUNCTION_NAME_PREFIX,
];
/// What every name of this module's functions begins with; local tools that do too are hidden from lists (`M-02`).
const MCP_PREFIX: &str = "mcp_";
/// What providers accept as a function name, in bytes.
const FUNCTION_NAME_MAX: usize = 64;
/// What remains of it for the server, after the longest prefix and its underscore (`M-03`).
const MODEL_NAME_MAX: usize = FUNCTION_NAME_MAX - MCP_DESCRIBE_META_FUNCTION_NAME_PREFIX.len() - 1;
/// Longest path component that is a server's name unchanged; longer ones are cut and hashed.
const PATH_NAME_MAX: usize = 64;
/// Hexadecimal digits of a hash that makes a changed name distinct: 32 bits, extended in a table on a collision.
const NAME_HASH_DIGITS: usize = 8;
/// The same for path components, which have no table to look up collisions in: 64 bits.
const PATH_HASH_DIGITS: usize = 16;

/// One of the five functions through which a model reaches a server (`M-02`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MetaFunction {
    /// Calls a tool.
    Invoke,
    /// Searches the catalog.
    Search,
    /// Describes one catalog item.
    Describe,
    /// Reads a resource.
    Read,
    /// Renders a prompt.
    Prompt,
}

impl MetaFunction {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 5] = [
        Self::Invoke,
        Self::Search,
        Self::Describe,
        Self::Read,
        Self::Prompt,
    ];

    /// The constant part of the function's name, without the underscore that follows it.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Invoke => MCP_INVOKE_META_FUNCTION_NAME_PREFIX,
            Self::Search => MCP_SEARCH_META_FUNCTION_NAME_PREFIX,
            Self::Describe => MCP_DESCRIBE_META_FUNCTION_NAME_PREFIX,
            Self::Read => MCP_READ_META_FUNCTION_NAME_PREFIX,
            Self::Prompt => MCP_PROMPT_META_FUNCTION_NAME_PREFIX,
        }
    }
}

/// The function's name, at most 64 bytes of `[A-Za-z0-9_-]`.
pub fn meta_function_name(function: MetaFunction, server: &ModelServerName) -> String {
    format!("{}_{server}", function.prefix())
}

/// The names a server's functions have, in the order of [`MetaFunction::ALL`]; which of them are declared is
/// another question (`M-31`).
pub fn mcp_meta_function_names(server: &ModelServerName) -> [String; 5] {
    MetaFunction::ALL.map(|function| meta_function_name(function, server))
}

/// Splits a function's name into what it does and the model-visible name of the server it is for. The prefix must
/// match exactly and be followed by an underscore and a name (`M-02`).
pub fn split_meta_function(name: &str) -> Option<(MetaFunction, &str)> {
    MetaFunction::ALL.into_iter().find_map(|function| {
        let server = name.strip_prefix(function.prefix())?.strip_prefix('_')?;
        (!server.is_empty()).then_some((function, server))
    })
}

/// Whether the name is built like a meta-function's.
pub fn is_mcp_meta_function(name: &str) -> bool {
    split_meta_function(name).is_some()
}

/// Whether the name begins like a meta-function's, whatever follows: such local tools work, are hidden from
/// `.list tools` and cause a warning (`M-02`, `M-33`).
pub fn has_mcp_prefix(name: &str) -> bool {
    name.starts_with(MCP_PREFIX)
}

/// A server's name as configured: any non-empty text without control characters (`M-03`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// Why a text cannot be a server's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("a server's name is empty")]
    Empty,
    /// It contains a control character.
    #[error("a server's name contains a control character")]
    ControlCharacter,
}

impl ServerName {
    /// Checks the name.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if name.chars().any(char::is_control) {
            return Err(NameError::ControlCharacter);
        }
        Ok(Self(name.into()))
    }

    /// The name as configured.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl std::str::FromStr for ServerName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

/// What a model knows a server as: 1 to 51 bytes of `[A-Za-z0-9_-]` (`M-03`). Only a [`NameTable`] makes one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelServerName(Arc<str>);

impl ModelServerName {
    /// The name as a model writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ModelServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// The two names of each server of a tool scope, both ways. Independent of the servers' order, free of collisions,
/// never reverse-engineered from the text of a name (`M-03`).
#[derive(Debug, Clone, Default)]
pub struct NameTable {
    by_server: BTreeMap<ServerName, ModelServerName>,
    by_model: BTreeMap<ModelServerName, ServerName>,
}

impl NameTable {
    /// Names every server. A configured name that fits is kept; the others get theirs from a hash of the whole
    /// configured name, longer where it would collide.
    pub fn new(servers: impl IntoIterator<Item = ServerName>) -> Self {
        let servers: BTreeSet<ServerName> = servers.into_iter().collect();
        let mut table = Self::default();
        let (kept, changed): (Vec<_>, Vec<_>) = servers
            .into_iter()
            .partition(|server| fits_model(server.as_str()));
        for server in kept {
            let name = ModelServerName(Arc::clone(&server.0));
            table.insert(server, name);
        }
        for server in changed {
            let name = table.changed_name(&server);
            table.insert(server, name);
        }
        table
    }

    /// What a model knows the server as, when it is in the table.
    pub fn model_name(&self, server: &ServerName) -> Option<&ModelServerName> {
        self.by_server.get(server)
    }

    /// The server that a model means, by the exact model-visible name.
    pub fn server(&self, model_name: &str) -> Option<&ServerName> {
        self.by_model.get(&ModelServerName(model_name.into()))
    }

    /// Every server with its model-visible name, sorted by configured name.
    pub fn iter(&self) -> impl Iterator<Item = (&ServerName, &ModelServerName)> {
        self.by_server.iter()
    }

    fn insert(&mut self, server: ServerName, name: ModelServerName) {
        self.by_model.insert(name.clone(), server.clone());
        self.by_server.insert(server, name);
    }

    fn changed_name(&self, server: &ServerName) -> ModelServerName {
        let hash = hex_hash(server.as_str());
        let name = (NAME_HASH_DIGITS..MODEL_NAME_MAX)
            .map(|digits| hashed_name(server.as_str(), &hash, digits, MODEL_NAME_MAX, '_'))
            .find(|name| {
                !self
                    .by_model
                    .contains_key(&ModelServerName(name.as_str().into()))
            })
            // Two names that agree in 200 bits of SHA-256 do not exist.
            .unwrap_or(hash);
        ModelServerName(name.into())
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn fits_model(name: &str) -> bool {
    (1..=MODEL_NAME_MAX).contains(&name.len()) && name.chars().all(is_name_character)
}

/// `name` with every illegal character replaced, cut so that the joint and `digits` of the hash fit into `max`.
fn hashed_name(name: &str, hash: &str, digits: usize, max: usize, joint: char) -> String {
    let digits = digits.min(hash.len());
    let kept = name
        .chars()
        .map(|c| if is_name_character(c) { c } else { '_' })
        .take(max.saturating_sub(digits + joint.len_utf8()));
    let mut result: String = kept.collect();
    result.push(joint);
    result.extend(hash.chars().take(digits));
    result
}

fn hex_hash(text: &str) -> String {
    let mut hash = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// The directory name that stands for a server: no separators, no `..`, no reserved device name, and distinct from
/// every other server's even where case does not count (`M-03`).
pub fn path_component(server: &ServerName) -> String {
    let name = server.as_str();
    let plain = name.len() <= PATH_NAME_MAX
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        && !is_device_name(name)
        // What a hashed name looks like belongs to hashed names alone, else two servers could share a directory.
        && !looks_hashed(name);
    if plain {
        return name.to_owned();
    }
    let max = PATH_NAME_MAX + 1 + PATH_HASH_DIGITS;
    hashed_name(
        &name.to_ascii_lowercase(),
        &hex_hash(name),
        PATH_HASH_DIGITS,
        max,
        '-',
    )
}

fn looks_hashed(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, hash)| {
        hash.len() == PATH_HASH_DIGITS && hash.chars().all(|c| c.is_ascii_hexdigit())
    })
}

/// Names that open a device on Windows, whatever the directory.
fn is_device_name(name: &str) -> bool {
    matches!(name, "con" | "prn" | "aux" | "nul")
        || ["com", "lpt"].iter().any(|device| {
            name.strip_prefix(device).is_some_and(|number| {
                number.len() == 1 && number.chars().all(|c| c.is_ascii_digit())
            })
        })
}

#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
