//! Which tools and servers a request sees: one pure function (`H-35`), and what follows from it for the functions a
//! model is offered (`M-33`). Requests, `.info tools`, lists and completion all ask here.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::names::{Aliases, Choice};
use crate::function::Functions;
use crate::mcp::runtime::McpRuntime;
use crate::mcp::{MetaFunction, ServerName, meta_function_name};
use crate::utils::fuzzy::nearest;

/// What one layer says; `None` where it does not set the key and the next layer decides.
#[derive(Debug, Clone, Copy, Default)]
pub struct LayerChoices<'a> {
    /// `enabled_tools`
    pub tools: Option<&'a Choice>,
    /// `enabled_mcp_servers`
    pub servers: Option<&'a Choice>,
}

/// A configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownServer {
    /// Its configured name.
    pub name: ServerName,
    /// Whether its file switches it off: then it is never selected, not even by name.
    pub disabled: bool,
}

/// What there is to select from.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Tools, in the order in which they are declared; never a meta-function.
    pub tools: &'a [String],
    /// Servers.
    pub servers: &'a [KnownServer],
    /// `mapping_tools`
    pub tool_aliases: &'a Aliases,
    /// `mapping_mcp_servers`
    pub server_aliases: &'a Aliases,
}

/// Which key a name was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selected {
    /// `enabled_tools`
    Tool,
    /// `enabled_mcp_servers`
    Server,
}

/// A name that selects nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// Where it was written, or where the alias was that it is part of.
    pub what: Selected,
    /// The name.
    pub name: String,
    /// The nearest known name or alias.
    pub nearest: Option<String>,
    /// Whether it is the name of a server that its file switches off.
    pub disabled: bool,
}

impl Unknown {
    /// The warning about it.
    pub fn message(&self) -> String {
        let (what, list) = match self.what {
            Selected::Tool => ("tool", "enabled_tools"),
            Selected::Server => ("MCP server", "enabled_mcp_servers"),
        };
        if self.disabled {
            return format!("`{}` in `{list}` is disabled in its MCP file", self.name);
        }
        let near = match &self.nearest {
            Some(near) => format!(", did you mean `{near}`?"),
            None => String::new(),
        };
        format!(
            "there is no {what} `{}`, which `{list}` names{near}",
            self.name
        )
    }
}

/// What a request sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// Tools, in the order in which they are declared.
    pub tools: Vec<String>,
    /// Servers, sorted by name.
    pub servers: Vec<ServerName>,
    /// Names that select nothing, sorted.
    pub unknown: Vec<Unknown>,
}

/// Selects (`H-35`). `layers` are the active ones, the most specific first; for each key the first that sets it
/// decides alone. Where none does: all servers that are not disabled, and no tools.
pub fn select(layers: &[LayerChoices<'_>], known: &Known<'_>) -> Selection {
    let tools = layers
        .iter()
        .find_map(|layer| layer.tools)
        .unwrap_or(&Choice::None);
    let servers = layers
        .iter()
        .find_map(|layer| layer.servers)
        .unwrap_or(&Choice::All);
    let mut unknown = BTreeSet::new();
    let tools = select_tools(tools, known, &mut unknown);
    let servers = select_servers(servers, known, &mut unknown);
    Selection {
        tools,
        servers,
        unknown: unknown.into_iter().collect(),
    }
}

fn select_tools(
    choice: &Choice,
    known: &Known<'_>,
    unknown: &mut BTreeSet<Unknown>,
) -> Vec<String> {
    let names = match choice {
        Choice::None => return Vec::new(),
        Choice::All => return known.tools.to_vec(),
        Choice::These(names) => names,
    };
    let is_known = |name: &str| known.tools.iter().any(|tool| tool == name);
    let wanted = expand_all(names.iter(), known.tool_aliases, &is_known);
    for name in wanted.iter().filter(|name| !is_known(name)) {
        let candidates = known.tools.iter().map(String::as_str);
        unknown.insert(missing(
            Selected::Tool,
            name,
            candidates,
            known.tool_aliases,
        ));
    }
    known
        .tools
        .iter()
        .filter(|tool| wanted.contains(*tool))
        .cloned()
        .collect()
}

fn select_servers(
    choice: &Choice,
    known: &Known<'_>,
    unknown: &mut BTreeSet<Unknown>,
) -> Vec<ServerName> {
    let usable = |server: &&KnownServer| !server.disabled;
    let mut selected: Vec<ServerName> = match choice {
        Choice::None => return Vec::new(),
        Choice::All => known
            .servers
            .iter()
            .filter(usable)
            .map(|s| s.name.clone())
            .collect(),
        Choice::These(names) => {
            let find = |name: &str| known.servers.iter().find(|s| s.name.as_str() == name);
            let wanted = expand_all(names.iter(), known.server_aliases, &|name| {
                find(name).is_some()
            });
            for name in &wanted {
                let candidates = known.servers.iter().map(|server| server.name.as_str());
                match find(name) {
                    Some(server) if !server.disabled => {}
                    Some(_) => {
                        unknown.insert(Unknown {
                            what: Selected::Server,
                            name: name.clone(),
                            nearest: None,
                            disabled: true,
                        });
                    }
                    None => {
                        unknown.insert(missing(
                            Selected::Server,
                            name,
                            candidates,
                            known.server_aliases,
                        ));
                    }
                }
            }
            let chosen = |server: &&KnownServer| wanted.contains(server.name.as_str());
            known
                .servers
                .iter()
                .filter(usable)
                .filter(chosen)
                .map(|s| s.name.clone())
                .collect()
        }
    };
    selected.sort();
    selected
}

/// What names stand for, aliases expanded: the helper that completion and `.mcp enable` share (`P-43`).
pub fn expand_all<'a>(
    names: impl IntoIterator<Item = &'a str>,
    aliases: &Aliases,
    is_known: &dyn Fn(&str) -> bool,
) -> BTreeSet<String> {
    names
        .into_iter()
        .flat_map(|name| aliases.expand(name, is_known))
        .collect()
}

fn missing<'a>(
    what: Selected,
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
    aliases: &'a Aliases,
) -> Unknown {
    // Sorted, so that the same name is meant whatever the order of the file.
    let known: BTreeSet<&str> = candidates.chain(aliases.names()).collect();
    let near = nearest(name, known, 1);
    Unknown {
        what,
        name: name.to_owned(),
        nearest: near.first().map(|near| (*near).to_owned()),
        disabled: false,
    }
}

/// What a request offers, and what its calls run against.
#[derive(Debug, Clone, Default)]
pub struct ToolScope {
    /// The functions, declared and callable.
    pub functions: Arc<Functions>,
    /// The live servers among the selected ones.
    pub mcp: McpRuntime,
}

impl ToolScope {
    /// The functions of this selection: of `all`, the tools that are selected, and what each live server is capable
    /// of (`M-31`, `M-33`).
    pub fn new(all: &Functions, tools: &[String], mcp: McpRuntime) -> Self {
        Self {
            functions: Arc::new(select_enabled_functions(all, tools, &mcp)),
            mcp,
        }
    }

    /// The same for an agent: it may ask the person, and start others where it is allowed to (`H-33`).
    #[must_use]
    pub fn for_agent(mut self, may_delegate: bool) -> Self {
        let mut functions = Arc::unwrap_or_clone(self.functions);
        functions.append_agent_functions(may_delegate);
        self.functions = Arc::new(functions);
        self
    }

    /// The servers a model can reach, by configured name (`M-33`).
    pub fn servers(&self) -> Vec<ServerName> {
        select_enabled_mcp_servers(&self.functions, &self.mcp)
    }
}

/// The functions offered: of the tools those named in `tools`, and every meta-function of the live servers. The
/// pool that `enabled_tools` chooses from never holds a meta-function, and choosing never strips one (`M-33`).
pub fn select_enabled_functions(all: &Functions, tools: &[String], mcp: &McpRuntime) -> Functions {
    let mut functions = all.with_tools(tools);
    functions.append_mcp_meta_functions(mcp.server_features());
    functions
}

/// The servers that are enabled: those whose **search** function is declared, the one that every server has. Keyed on
/// the invoke function, a server with only resources would vanish (`M-33`).
pub fn select_enabled_mcp_servers(functions: &Functions, mcp: &McpRuntime) -> Vec<ServerName> {
    mcp.names()
        .iter()
        .filter(|(_, model)| {
            let search = meta_function_name(MetaFunction::Search, model);
            functions.declaration(&search).is_some()
        })
        .map(|(server, _)| server.clone())
        .collect()
}

#[cfg(test)]
#[path = "tool_scope_tests.rs"]
mod tests;
