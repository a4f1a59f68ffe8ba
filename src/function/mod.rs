//! From "the model asked" to "here is the answer": the functions a request offers, and what runs when one is called.
//!
//! Three kinds share one list: tools built in (`local`), the person's own programs (`user_tools`), and the
//! meta-functions through which models reach MCP servers (`meta`). Knows no configuration: which of them a request
//! offers is decided above and arrives as a list of names. Never prints: what happened goes to the
//! [`NoticeSink`](crate::chat::NoticeSink), what is asked to [`Ask`](crate::chat::Ask).

mod args;
mod dispatch;
mod env;
mod error;
mod images;
mod local;
mod meta;
mod permission;
mod process;
mod questions;
pub mod supervisor;
#[cfg(test)]
mod testing;
mod tracker;
mod user_tools;

use std::collections::BTreeMap;
use std::path::Path;

pub use dispatch::dispatch;
pub use env::{Approvals, DispatchEnv, Limits};
pub use error::FunctionError;
pub use supervisor::{AgentSummary, DelegateRunner, DelegationLimits, Job, Report, Supervisor};
pub use tracker::Tracker;

use crate::chat::FunctionDeclaration;
use crate::mcp::{McpServerFeatures, has_mcp_prefix};
use local::LocalTool;
use user_tools::UserTool;

/// The functions of a request. Cheap to narrow and to extend, so that each request gets its own.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    declarations: Vec<FunctionDeclaration>,
    local: BTreeMap<&'static str, LocalTool>,
    user: BTreeMap<String, UserTool>,
}

impl Functions {
    /// The built-in tools and nothing else.
    pub fn built_in() -> Self {
        Self {
            declarations: LocalTool::ALL
                .iter()
                .map(|tool| tool.declaration())
                .collect(),
            local: LocalTool::ALL
                .iter()
                .map(|tool| (tool.name(), *tool))
                .collect(),
            user: BTreeMap::new(),
        }
    }

    /// The built-in tools and those of `dir/functions.json` with their programs in `dir/bin` (`H-43`). A missing
    /// file is no tools. What is wrong is a warning each and costs only the tool concerned.
    pub fn load(dir: &Path) -> (Self, Vec<String>) {
        let mut functions = Self::built_in();
        let (tools, warnings) = user_tools::load(dir);
        for tool in tools {
            functions.declarations.push(tool.declaration.clone());
            functions.user.insert(tool.declaration.name.clone(), tool);
        }
        (functions, warnings)
    }

    /// What a request tells the model, in a stable order.
    pub fn declarations(&self) -> &[FunctionDeclaration] {
        &self.declarations
    }

    /// The declaration of one function.
    pub fn declaration(&self, name: &str) -> Option<&FunctionDeclaration> {
        self.declarations
            .iter()
            .find(|declaration| declaration.name == name)
    }

    /// The tools that lists show: all but the `mcp_*` (`M-33`).
    pub fn tool_names(&self) -> Vec<String> {
        self.pool()
            .into_iter()
            .filter(|name| !has_mcp_prefix(name))
            .collect()
    }

    /// The names `enabled_tools` can mean: every tool, also one that lists hide, and never a meta-function
    /// (`M-33`).
    pub fn pool(&self) -> Vec<String> {
        self.declarations
            .iter()
            .map(|declaration| &declaration.name)
            .filter(|name| self.is_tool(name))
            .cloned()
            .collect()
    }

    /// Only the tools named, in their stable order; names that are unknown are ignored. Meta-functions are neither
    /// added nor removed (`M-33`).
    #[must_use]
    pub fn with_tools<S: AsRef<str>>(&self, names: &[S]) -> Self {
        let wanted = |name: &str| names.iter().any(|wanted| wanted.as_ref() == name);
        let mut narrowed = self.clone();
        narrowed
            .declarations
            .retain(|declaration| !self.is_tool(&declaration.name) || wanted(&declaration.name));
        narrowed.local.retain(|name, _| wanted(name));
        narrowed.user.retain(|name, _| wanted(name));
        narrowed
    }

    /// Declares each server's meta-functions, by its features alone: invoke iff it has tools, search and describe
    /// always, read iff it has resources; servers in order of name (`M-31`).
    pub fn append_mcp_meta_functions(&mut self, mut servers: Vec<McpServerFeatures>) {
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        for declaration in servers.iter().flat_map(meta::declarations) {
            // Two functions of one name are refused by every provider. The server's wins: a user's tool can be
            // renamed by the user.
            if self.user.remove(&declaration.name).is_some() {
                tracing::warn!(name = %declaration.name, "a tool is hidden by an MCP server's function of that name");
            }
            self.declarations
                .retain(|other| other.name != declaration.name);
            self.declarations.push(declaration);
        }
    }

    /// Declares what agents have besides: questions to the person and, where it is allowed, delegates (`H-33`).
    pub fn append_agent_functions(&mut self, may_delegate: bool) {
        let questions = questions::UserFunction::ALL.map(questions::UserFunction::declaration);
        let delegation = supervisor::AgentFunction::ALL.map(supervisor::AgentFunction::declaration);
        let delegation = delegation.into_iter().filter(|_| may_delegate);
        for declaration in questions.into_iter().chain(delegation) {
            self.user.remove(&declaration.name);
            self.declarations
                .retain(|other| other.name != declaration.name);
            self.declarations.push(declaration);
        }
    }

    fn is_tool(&self, name: &str) -> bool {
        self.local.contains_key(name) || self.user.contains_key(name)
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
