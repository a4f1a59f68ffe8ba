//! What is in force, for `.info` and `--info`: data and its plain text. Never a secret: of clients only names, kinds
//! and whether there is a key (`H-10`).

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::request_context::RequestContext;
use super::role::Role;
use super::session::Session;
use crate::chat::Message;
use crate::mcp::ServerName;

/// Everything in force, as sections of named values.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Info(Map<String, Value>);

impl Info {
    /// Machine output.
    pub fn to_json(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// For people: a name and a value a line, sections apart.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (section, values) in &self.0 {
            if !text.is_empty() {
                text.push('\n');
            }
            let Value::Object(values) = values else {
                let _ = writeln!(text, "{section:<28}{}", shown(values));
                continue;
            };
            let _ = writeln!(text, "{section}");
            for (name, value) in values {
                let _ = writeln!(text, "  {name:<26}{}", shown(value));
            }
        }
        text
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

impl RequestContext {
    /// Everything in force, and where files are.
    pub fn info(&self) -> Info {
        let mut sections = Map::new();
        sections.insert("now".to_owned(), self.info_now());
        sections.insert("settings".to_owned(), self.info_settings());
        sections.insert("clients".to_owned(), self.info_clients());
        sections.insert("files".to_owned(), self.info_files());
        Info(sections)
    }

    fn info_now(&self) -> Value {
        let selection = self.selection();
        let servers: Vec<&str> = selection.servers.iter().map(ServerName::as_str).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "model": self.model().map(|model| model.to_string()),
            "temperature": self.temperature(),
            "top_p": self.top_p(),
            "role": self.role().map(Role::name),
            "session": self.session().map(Session::name),
            "agent": self.agent().map(|agent| agent.name.as_str()),
            "enabled_tools": selection.tools,
            "enabled_mcp_servers": servers,
        })
    }

    fn info_settings(&self) -> Value {
        let app = self.app();
        json!({
            "stream": app.stream,
            "save": app.save,
            "save_session": app.save_session,
            "dry_run": app.dry_run,
            "keybindings": app.keybindings.as_str(),
            "editor": app.editor,
            "wrap": app.wrap.to_string(),
            "highlight": app.highlight,
            "theme": app.theme,
            "function_calling_support": app.function_calling_support,
            "mcp_server_support": app.mcp_server_support,
            "no_workspace_mcp": app.no_workspace_mcp,
            "mcp_confirm": format!("{:?}", app.mcp_confirm).to_lowercase(),
            "mcp_images": app.mcp_images,
            "max_tool_result_chars": app.max_tool_result_chars,
            "max_rounds": app.max_rounds,
        })
    }

    fn info_clients(&self) -> Value {
        let client = |client: &super::clients::Client| {
            let state = match client.provider() {
                Ok(provider) if provider.api_key.is_some() => "key set",
                Ok(_) => "no key",
                Err(_) => "a variable is not set",
            };
            (
                client.name.clone(),
                json!(format!("{} ({state})", client.kind)),
            )
        };
        Value::Object(self.clients().iter().map(client).collect())
    }

    fn info_files(&self) -> Value {
        let paths = self.paths();
        let files = [
            ("config_dir", paths.config_dir().to_path_buf()),
            ("config_file", paths.config_file()),
            ("env_file", paths.env_file()),
            ("mcp_file", paths.mcp_file()),
            ("roles_dir", paths.roles_dir()),
            ("sessions_dir", paths.sessions_dir()),
            ("agents_dir", paths.agents_dir()),
            ("macros_dir", paths.macros_dir()),
            ("functions_dir", paths.functions_dir()),
            ("cache_dir", paths.cache_dir().to_path_buf()),
            ("log_file", paths.log_file()),
            ("history_dir", paths.history_dir()),
            ("spill_dir", paths.spill_dir()),
        ];
        let shown = |(name, path): (&str, std::path::PathBuf)| {
            (name.to_owned(), json!(path.display().to_string()))
        };
        Value::Object(files.into_iter().map(shown).collect())
    }

    /// The role in force, as its file would be; `None` without one.
    pub fn role_info(&self) -> Option<String> {
        self.role()?.to_text().ok()
    }

    /// The agent in force: what its file says, with its variables filled in; `None` without one.
    pub fn agent_info(&self) -> Option<Info> {
        let agent = self.agent()?;
        let choice = |choice: &Option<super::names::Choice>| {
            choice
                .as_ref()
                .map_or("as configured".to_owned(), ToString::to_string)
        };
        let delegation = &agent.delegation;
        let there = self.paths().agent_names();
        let may_start: Vec<String> = match &delegation.agents {
            _ if !delegation.allowed => Vec::new(),
            None => there,
            Some(names) => names
                .iter()
                .map(|name| {
                    if there.contains(name) {
                        name.clone()
                    } else {
                        format!("{name} (not there)")
                    }
                })
                .collect(),
        };
        let rows = json!({
            "name": agent.name,
            "description": agent.description,
            "file": self.paths().agents_dir().join(&agent.name).join("config.yaml").display().to_string(),
            "model": self.model().map(|model| model.to_string()),
            "tools": choice(&agent.settings.enabled_tools),
            "mcp_servers": choice(&agent.settings.enabled_mcp_servers),
            "may_start": may_start,
            "max_concurrent_agents": delegation.max_concurrent,
            "max_agent_depth": delegation.max_depth,
            "session": agent.session,
            "starters": agent.starters.len(),
        });
        let mut sections = Map::new();
        sections.insert("agent".to_owned(), rows);
        if !agent.values.is_empty() {
            sections.insert("variables".to_owned(), json!(agent.values));
        }
        sections.insert("instructions".to_owned(), json!(agent.instructions));
        Some(Info(sections))
    }

    /// The session in force: name, settings, how much was said.
    pub fn session_info(&self) -> Option<Info> {
        let session = self.session()?;
        let said = |wanted: fn(&Message) -> bool| {
            session
                .messages()
                .iter()
                .filter(|message| wanted(message))
                .count()
        };
        let mut values = Map::new();
        let rows = json!({
            "name": session.name(),
            "file": session.path().map(|path| path.display().to_string()),
            "model": self.model().map(|model| model.to_string()),
            "role": session.role().map(Role::name),
            "save_session": session.keeps(self.app().save_session),
            "questions": said(|message| matches!(message, Message::User(_))),
            "answers": said(|message| matches!(message, Message::Assistant { .. })),
            "tool_rounds": said(|message| matches!(message, Message::Tool(_))),
            "unsaved": session.is_dirty(),
        });
        values.insert("session".to_owned(), rows);
        Some(Info(values))
    }
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
