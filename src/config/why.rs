//! Why each tool and server is in the next request or out of it, for `.info tools` (`H-35`).

use super::names::{Aliases, Choice};
use super::request_context::{Layer, RequestContext};
use super::role::LayerSettings;
use crate::mcp::{ServerName, ServerState};

/// One tool or server, whether the next request has it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// Its name.
    pub name: String,
    /// Whether the next request has it.
    pub included: bool,
    /// Why, in a few words.
    pub reason: String,
}

impl RequestContext {
    /// About every tool that lists show, in the order of declaration.
    pub fn why_tools(&self) -> Vec<Why> {
        let selected = self.selection().tools;
        let (layer, choice) = self.deciding(|settings| settings.enabled_tools.as_ref());
        let choice = choice.or(self.app().enabled_tools.as_ref());
        let off = self.calls_are_off();
        let why = |name: String| {
            let chosen = selected.contains(&name);
            let reason = said(choice, &name, &self.app().mapping_tools, Key::Tools, layer);
            with_obstacle(name, chosen, reason, off.clone())
        };
        self.functions().tool_names().into_iter().map(why).collect()
    }

    /// About every configured server, sorted.
    pub fn why_servers(&self) -> Vec<Why> {
        let selected = self.selection().servers;
        let (layer, choice) = self.deciding(|settings| settings.enabled_mcp_servers.as_ref());
        let choice = choice.or(self.app().enabled_mcp_servers.as_ref());
        let why = |name: ServerName| {
            let aliases = &self.app().mapping_mcp_servers;
            let reason = said(choice, name.as_str(), aliases, Key::Servers, layer);
            let chosen = selected.contains(&name);
            let obstacle = self.server_obstacle(&name, chosen);
            with_obstacle(name.to_string(), chosen, reason, obstacle)
        };
        let names = self.registry().names();
        names.into_iter().map(why).collect()
    }

    /// The layer that decides which servers a request sees.
    pub fn deciding_servers(&self) -> Layer {
        self.deciding(|settings| settings.enabled_mcp_servers.as_ref())
            .0
    }

    /// The most specific layer that says something, and what; where none does, the global one.
    fn deciding(
        &self,
        says: impl Fn(&LayerSettings) -> Option<&Choice>,
    ) -> (Layer, Option<&Choice>) {
        let layers = [
            (
                Layer::Session,
                self.session().map(|session| &session.settings),
            ),
            (Layer::Agent, self.agent().map(|agent| &agent.settings)),
            (Layer::Role, self.role().map(|role| &role.settings)),
        ];
        layers
            .into_iter()
            .find_map(|(layer, settings)| Some((layer, Some(says(settings?)?))))
            .unwrap_or((Layer::Global, None))
    }

    /// What keeps every function out of the next request.
    fn calls_are_off(&self) -> Option<String> {
        if !self.app().function_calling_support {
            return Some("`function_calling_support` is off".to_owned());
        }
        let (_, facts) = self.client_config().ok()?;
        (!facts.supports_function_calling)
            .then(|| format!("model `{}` calls no functions", facts.name))
    }

    fn server_obstacle(&self, name: &ServerName, chosen: bool) -> Option<String> {
        let state = self.registry().status(name)?.state;
        match state {
            ServerState::Disabled => return Some("`disabled` in its file".to_owned()),
            ServerState::Invalid { reason } => {
                return Some(format!("its entry cannot be used: {reason}"));
            }
            ServerState::Failed { reason } if chosen => {
                return Some(format!("not available: {reason}"));
            }
            ServerState::Connecting if chosen => {
                return Some("still connecting: in as soon as it is ready".to_owned());
            }
            ServerState::Stopped if chosen => {
                return Some("not started yet".to_owned());
            }
            ServerState::Failed { .. }
            | ServerState::Connecting
            | ServerState::Stopped
            | ServerState::Running => {}
        }
        if !self.app().mcp_server_support {
            return Some("`mcp_server_support` is off".to_owned());
        }
        self.calls_are_off()
    }
}

/// Which list decides.
#[derive(Debug, Clone, Copy)]
enum Key {
    Tools,
    Servers,
}

impl Key {
    fn name(self, layer: Layer) -> &'static str {
        match (self, layer) {
            (Self::Tools, Layer::Agent) => "global_tools",
            (Self::Servers, Layer::Agent) => "mcp_servers",
            (Self::Tools, Layer::Session | Layer::Role | Layer::Global) => "enabled_tools",
            (Self::Servers, Layer::Session | Layer::Role | Layer::Global) => "enabled_mcp_servers",
        }
    }
}

/// What the deciding layer says about a name.
fn said(choice: Option<&Choice>, name: &str, aliases: &Aliases, key: Key, layer: Layer) -> String {
    let place = format!("`{}` of the {}", key.name(layer), layer_words(layer));
    match choice {
        None => match key {
            Key::Tools => "no tools unless `enabled_tools` names them".to_owned(),
            Key::Servers => "all servers unless `enabled_mcp_servers` says otherwise".to_owned(),
        },
        Some(Choice::None) => format!("{place} is none"),
        Some(Choice::All) => format!("{place} is all"),
        Some(Choice::These(names)) => {
            if names.iter().any(|known| known == name) {
                return format!("named in {place}");
            }
            let is_known = |known: &str| known == name;
            let alias = names
                .iter()
                .find(|alias| aliases.expand(alias, &is_known).contains(name));
            match alias {
                Some(alias) => format!("through alias `{alias}` in {place}"),
                None => format!("not named in {place}"),
            }
        }
    }
}

fn layer_words(layer: Layer) -> &'static str {
    match layer {
        Layer::Session | Layer::Agent | Layer::Role => layer.as_str(),
        Layer::Global => "configuration",
    }
}

/// Something that is chosen and cannot be had is out, and that is why.
fn with_obstacle(name: String, chosen: bool, reason: String, obstacle: Option<String>) -> Why {
    match obstacle {
        Some(obstacle) => Why {
            name,
            included: false,
            reason: obstacle,
        },
        None => Why {
            name,
            included: chosen,
            reason,
        },
    }
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
