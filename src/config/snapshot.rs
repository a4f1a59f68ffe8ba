//! A copy of what completion, prompts and lists need, taken under a short read lock and used without one (`P-42`).

use super::macros::Macro;
use super::models::ModelRef;
use super::request_context::{Layer, RequestContext};
use super::role::Role;
use super::session::Session;
use crate::mcp::runtime::McpRuntime;
use crate::mcp::{ServerName, ServerStatus};

/// The state at one moment. What needs the disk is read when it is asked for.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The model in force.
    pub model: Option<ModelRef>,
    /// The role in force.
    pub role: Option<String>,
    /// The session in force.
    pub session: Option<String>,
    /// Whether the session has said something.
    pub session_has_messages: bool,
    /// The agent in force.
    pub agent: Option<String>,
    /// How a conversation with it may begin.
    pub starters: Vec<String>,
    /// The layer that settings change.
    pub layer: Layer,
    /// Whether there is an answer to copy, continue or ask for again.
    pub has_answer: bool,
    /// Whether requests are shown instead of sent.
    pub dry_run: bool,
    /// Every model that clients list.
    pub models: Vec<ModelRef>,
    /// Every tool that lists show.
    pub tools: Vec<String>,
    /// Aliases of tools.
    pub tool_aliases: Vec<String>,
    /// The tools that are enabled.
    pub enabled_tools: Vec<String>,
    /// How every configured server is doing.
    pub servers: Vec<ServerStatus>,
    /// Aliases of servers.
    pub server_aliases: Vec<String>,
    /// The servers that are enabled, running or not.
    pub enabled_servers: Vec<ServerName>,
    /// The live servers among them.
    pub mcp: McpRuntime,
    paths: super::paths::Paths,
}

impl Snapshot {
    /// The roles there are.
    pub fn roles(&self) -> Vec<String> {
        Role::names(&self.paths)
    }

    /// The saved sessions.
    pub fn sessions(&self) -> Vec<String> {
        self.paths.session_names()
    }

    /// The agents.
    pub fn agents(&self) -> Vec<String> {
        self.paths.agent_names()
    }

    /// The macros.
    pub fn macros(&self) -> Vec<String> {
        self.paths.macro_names()
    }

    /// What a macro says about itself, or else how it is used; `None` for one that cannot be run.
    pub fn macro_description(&self, name: &str) -> Option<String> {
        let (found, _) = Macro::load(&self.paths, name).ok()?;
        let described = found.description().map(str::to_owned);
        Some(described.unwrap_or_else(|| found.usage()))
    }
}

impl RequestContext {
    /// The state now.
    pub fn snapshot(&self) -> Snapshot {
        let selection = self.selection();
        let app = self.app();
        Snapshot {
            model: self.model(),
            role: self.role().map(|role| role.name().to_owned()),
            session: self.session().map(|session| session.name().to_owned()),
            session_has_messages: !self.session().is_none_or(Session::is_empty),
            agent: self.agent().map(|agent| agent.name.clone()),
            starters: (self.agent()).map_or_else(Vec::new, |agent| agent.starters.clone()),
            layer: self.active_layer(),
            has_answer: self.last_answer().is_some(),
            dry_run: app.dry_run,
            models: self.models(),
            tools: self.functions().tool_names(),
            tool_aliases: app.mapping_tools.names().map(str::to_owned).collect(),
            enabled_tools: selection.tools,
            servers: self.registry().statuses(),
            server_aliases: app.mapping_mcp_servers.names().map(str::to_owned).collect(),
            mcp: self.live(&selection.servers),
            enabled_servers: selection.servers,
            paths: self.paths().clone(),
        }
    }
}
