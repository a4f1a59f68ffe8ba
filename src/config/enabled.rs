//! What the state says about tools, servers and settings, and how it changes (`H-35`).

use std::collections::BTreeSet;

use super::names::Choice;
use super::request_context::{Layer, RequestContext};
use super::role::LayerSettings;
use super::settings::Setting;
use super::tool_scope::{
    Known, KnownServer, LayerChoices, Selection, ToolScope, expand_all, select,
};
use crate::mcp::runtime::McpRuntime;
use crate::mcp::spill::SpillDir;
use crate::mcp::{ServerName, ServerState};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, Result};

impl RequestContext {
    fn known_servers(&self) -> Vec<KnownServer> {
        let statuses = self.registry.statuses();
        let disabled = |name: &ServerName| {
            statuses
                .iter()
                .any(|status| status.name == *name && status.state == ServerState::Disabled)
        };
        let known = |name: ServerName| KnownServer {
            disabled: disabled(&name),
            name,
        };
        let mut names = self.registry.names();
        // A delegate may hold a server that the registry never saw.
        for server in self.own_servers.iter().flatten() {
            if !names.contains(server.name()) {
                names.push(server.name().clone());
            }
        }
        names.into_iter().map(known).collect()
    }

    /// Which tools and servers the next request sees (`H-35`). The one answer that requests, lists and completion
    /// share.
    pub fn selection(&self) -> Selection {
        let layers: Vec<LayerChoices<'_>> = self
            .layer_settings()
            .map(|settings| LayerChoices {
                tools: settings.enabled_tools.as_ref(),
                servers: settings.enabled_mcp_servers.as_ref(),
            })
            .chain([LayerChoices {
                tools: self.app.enabled_tools.as_ref(),
                servers: self.app.enabled_mcp_servers.as_ref(),
            }])
            .collect();
        let tools = self.functions.pool();
        let servers = self.known_servers();
        let known = Known {
            tools: &tools,
            servers: &servers,
            tool_aliases: &self.app.mapping_tools,
            server_aliases: &self.app.mapping_mcp_servers,
        };
        let mut selection = select(&layers, &known);
        if !self.app.mcp_server_support {
            selection.servers.clear();
        }
        selection
    }

    /// The functions of the next request, and the live servers they reach.
    pub fn tool_scope(&self) -> ToolScope {
        let selection = self.selection();
        let mcp = self.live(&selection.servers);
        let scope = ToolScope::new(&self.functions, &selection.tools, mcp);
        match &self.agent {
            Some(agent) => scope.for_agent(agent.delegation.offered()),
            None => scope,
        }
    }

    /// The live servers that the next request reaches: the runtime of [`Self::tool_scope`] without the functions
    /// (`P-43`).
    pub fn live_servers(&self) -> McpRuntime {
        self.live(&self.selection().servers)
    }

    /// The live ones among these servers.
    pub(super) fn live(&self, servers: &[ServerName]) -> McpRuntime {
        let spill = SpillDir::new(self.paths.spill_dir());
        let connected = match &self.own_servers {
            Some(own) => own
                .iter()
                .filter(|server| servers.contains(server.name()))
                .cloned()
                .collect(),
            None => self.registry.connected(servers),
        };
        McpRuntime::new(connected, spill)
    }

    /// Adds names to, or takes them from, what the active layer enables; what was in force before is written out
    /// there first. Aliases work both ways.
    pub fn toggle_tools(&mut self, names: &[String], enable: bool) -> Result<()> {
        let pool = self.functions.pool();
        let is_known = |name: &str| pool.iter().any(|tool| tool == name);
        let wanted = expand_all(
            names.iter().map(String::as_str),
            &self.app.mapping_tools,
            &is_known,
        );
        check_known(&wanted, pool.iter().map(String::as_str), "tool")?;
        let mut enabled: BTreeSet<String> = self.selection().tools.into_iter().collect();
        toggle(&mut enabled, wanted, enable);
        self.apply(Setting::EnabledTools(Some(choice_of(&enabled))));
        Ok(())
    }

    /// The same for MCP servers. Starting and stopping them is the caller's.
    pub fn toggle_servers(&mut self, names: &[String], enable: bool) -> Result<()> {
        let known = self.known_servers();
        let is_known = |name: &str| known.iter().any(|server| server.name.as_str() == name);
        let wanted = expand_all(
            names.iter().map(String::as_str),
            &self.app.mapping_mcp_servers,
            &is_known,
        );
        check_known(
            &wanted,
            known.iter().map(|server| server.name.as_str()),
            "MCP server",
        )?;
        let off = known
            .iter()
            .find(|server| enable && server.disabled && wanted.contains(server.name.as_str()));
        if let Some(server) = off {
            return Err(Error::user(format!(
                "MCP server `{}` is disabled in its file",
                server.name
            ))
            .hint(format!(
                "edit `disabled` in {}",
                self.paths.mcp_file().display()
            )));
        }
        let selected = self.selection().servers;
        let mut enabled: BTreeSet<String> = selected
            .iter()
            .map(|name| name.as_str().to_owned())
            .collect();
        toggle(&mut enabled, wanted, enable);
        self.apply(Setting::EnabledMcpServers(Some(choice_of(&enabled))));
        Ok(())
    }

    /// Changes a setting; a layered one in the active layer, which is returned.
    pub fn apply(&mut self, setting: Setting) -> Layer {
        let layer = self.active_layer();
        if let Some(setting) = self.apply_layered(setting) {
            self.apply_global(setting);
            return Layer::Global;
        }
        layer
    }

    /// Applies what a layer can take; gives back what none can.
    fn apply_layered(&mut self, setting: Setting) -> Option<Setting> {
        if let (Setting::SaveSession(keep), Some(session)) = (&setting, self.session.as_mut()) {
            session.save_session = *keep;
            session.touch();
            return None;
        }
        let set: Box<dyn FnOnce(&mut LayerSettings)> = match setting.clone() {
            Setting::Temperature(value) => Box::new(move |layer| layer.temperature = value),
            Setting::TopP(value) => Box::new(move |layer| layer.top_p = value),
            Setting::EnabledTools(value) => Box::new(move |layer| layer.enabled_tools = value),
            Setting::EnabledMcpServers(value) => {
                Box::new(move |layer| layer.enabled_mcp_servers = value)
            }
            _ => return Some(setting),
        };
        self.change_layer(set).map(|_| setting)
    }

    fn apply_global(&mut self, setting: Setting) {
        let default = &self.configured;
        let app = &mut self.app;
        match setting {
            Setting::Temperature(value) => app.temperature = value,
            Setting::TopP(value) => app.top_p = value,
            Setting::EnabledTools(value) => {
                app.enabled_tools = value.or_else(|| default.enabled_tools.clone());
            }
            Setting::EnabledMcpServers(value) => {
                app.enabled_mcp_servers = value.or_else(|| default.enabled_mcp_servers.clone());
            }
            Setting::SaveSession(value) => app.save_session = value,
            Setting::Stream(value) => app.stream = value.unwrap_or(default.stream),
            Setting::Save(value) => app.save = value.unwrap_or(default.save),
            Setting::DryRun(value) => app.dry_run = value.unwrap_or(default.dry_run),
            Setting::Highlight(value) => app.highlight = value.unwrap_or(default.highlight),
            Setting::Wrap(value) => app.wrap = value.unwrap_or(default.wrap),
            Setting::FunctionCallingSupport(value) => {
                app.function_calling_support = value.unwrap_or(default.function_calling_support);
            }
            Setting::McpServerSupport(value) => {
                app.mcp_server_support = value.unwrap_or(default.mcp_server_support);
            }
            Setting::McpImages(value) => app.mcp_images = value.unwrap_or(default.mcp_images),
            Setting::McpConfirm(value) => app.mcp_confirm = value.unwrap_or(default.mcp_confirm),
            Setting::MaxToolResultChars(value) => app.max_tool_result_chars = value,
            Setting::MaxRounds(value) => app.max_rounds = value.unwrap_or(default.max_rounds),
        }
    }
}

fn check_known<'a>(
    wanted: &BTreeSet<String>,
    known: impl Iterator<Item = &'a str> + Clone,
    what: &str,
) -> Result<()> {
    let Some(unknown) = wanted
        .iter()
        .find(|name| !known.clone().any(|known| known == name.as_str()))
    else {
        return Ok(());
    };
    let near = alternatives(&nearest(unknown, known, 3));
    let error = Error::user(format!("there is no {what} `{unknown}`"));
    Err(if near.is_empty() {
        error
    } else {
        error.hint(format!("did you mean {near}?"))
    })
}

fn toggle(enabled: &mut BTreeSet<String>, names: BTreeSet<String>, enable: bool) {
    for name in names {
        if enable {
            enabled.insert(name);
        } else {
            enabled.remove(&name);
        }
    }
}

fn choice_of(names: &BTreeSet<String>) -> Choice {
    Choice::from_exact(names.iter().map(String::as_str))
}
