//! Agents: instructions with variables, tools, servers, and whom they may ask for help (`H-32`).
//!
//! An agent is a directory with a `config.yaml`. Loaded, it is an [`Agent`]; with values for its variables it becomes
//! an [`AgentLayer`], which is what a context holds while the agent is active. Who is asked for values that are
//! missing is the caller's business.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::names::{Choice, present};
use super::paths::{NameKind, Paths, check_name};
use super::role::{LayerSettings, Variables};
use super::yaml;
use crate::function::{AgentSummary, DelegationLimits};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, ErrorKind, Result};

/// How many delegates of an agent run at once, unless configured.
const MAX_CONCURRENT: usize = 4;
/// How many levels of delegates there are below an agent, unless configured.
const MAX_DEPTH: usize = 3;
/// The most that may be configured for either: more is a mistake.
const MOST: usize = 64;

const KEYS: &[&str] = &[
    "name",
    "description",
    "version",
    "model",
    "temperature",
    "top_p",
    "instructions",
    "variables",
    "conversation_starters",
    "global_tools",
    "mcp_servers",
    "can_spawn_agents",
    "spawnable_agents",
    "max_concurrent_agents",
    "max_agent_depth",
    "agent_session",
];

/// An agent as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// The name of its directory.
    pub name: String,
    /// One line for people and for agents that look for help.
    pub description: String,
    /// What its instructions and starters leave open.
    pub variables: Vec<AgentVariable>,
    /// The session it works in, when its file names one.
    pub session: Option<String>,
    instructions: String,
    starters: Vec<String>,
    settings: LayerSettings,
    delegation: Delegation,
}

/// Something an agent's instructions leave open: `{{name}}`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentVariable {
    /// As it stands between the braces.
    pub name: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// What it is when nobody says otherwise.
    #[serde(default, deserialize_with = "scalar")]
    pub default: Option<String>,
}

/// A default as people write it: a word, a number, `true`.
fn scalar<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Array(_) | Value::Object(_) => Err(serde::de::Error::custom(
            "expected a text, a number or a boolean",
        )),
        other => Ok(Some(other.to_string())),
    }
}

/// Whom an agent may ask for help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// Whether it may at all.
    pub allowed: bool,
    /// Whom; `None`: every agent there is.
    pub agents: Option<Vec<String>>,
    /// How many at once.
    pub max_concurrent: usize,
    /// How many levels below it.
    pub max_depth: usize,
    /// How many levels above it: 0 for an agent that a person talks to.
    pub depth: usize,
}

impl Default for Delegation {
    fn default() -> Self {
        Self {
            allowed: false,
            agents: None,
            max_concurrent: MAX_CONCURRENT,
            max_depth: MAX_DEPTH,
            depth: 0,
        }
    }
}

impl Delegation {
    /// Whether a request offers the functions that start delegates.
    pub fn offered(&self) -> bool {
        self.allowed && self.depth < self.max_depth
    }

    /// What its supervisor keeps to.
    pub fn limits(&self) -> DelegationLimits {
        DelegationLimits {
            concurrent: self.max_concurrent,
        }
    }
}

/// What an agent contributes while it is active.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentLayer {
    /// Its name.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Its system prompt.
    pub instructions: String,
    /// What a conversation may begin with.
    pub starters: Vec<String>,
    /// The values of its variables.
    pub values: BTreeMap<String, String>,
    /// What it sets.
    pub settings: LayerSettings,
    /// Whom it may ask for help.
    pub delegation: Delegation,
    /// The session it works in, when its file names one.
    pub session: Option<String>,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Raw {
    description: Option<String>,
    instructions: Option<String>,
    variables: Option<Vec<AgentVariable>>,
    conversation_starters: Option<Vec<String>>,
    #[serde(deserialize_with = "present")]
    global_tools: Option<Choice>,
    #[serde(deserialize_with = "present")]
    mcp_servers: Option<Choice>,
    can_spawn_agents: bool,
    #[serde(deserialize_with = "present")]
    spawnable_agents: Option<Choice>,
    max_concurrent_agents: Option<usize>,
    max_agent_depth: Option<usize>,
    agent_session: Option<String>,
    model: Option<String>,
    temperature: Option<f64>,
    top_p: Option<f64>,
}

impl Agent {
    /// The agent of that name, and what its file makes worth a warning.
    ///
    /// # Errors
    /// There is none, with the nearest names; or its file cannot be used.
    pub fn load(paths: &Paths, name: &str) -> Result<(Self, Vec<String>)> {
        check_name(name, NameKind::Agent)?;
        let file = file(paths, name);
        match crate::utils::fs::read_text(&file) {
            Ok(text) => Self::parse(name, &text, &file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown(paths, name)),
            Err(error) => Err(Error::new(ErrorKind::Config, error)
                .context(format!("cannot read `{}`", file.display()))),
        }
    }

    /// Reads the text of an agent's file; `file` is named in errors and warnings.
    ///
    /// # Errors
    /// It is not a mapping of the right types, or a limit is not one.
    pub fn parse(name: &str, text: &str, file: &Path) -> Result<(Self, Vec<String>)> {
        let raw: Raw = yaml::read_or_default(text, file)?;
        let mut warnings = Vec::new();
        if let Some(Value::Object(keys)) = yaml::read_or_default::<Option<Value>>(text, file)? {
            for key in keys.keys().filter(|key| !KEYS.contains(&key.as_str())) {
                let known = KEYS.iter().copied();
                warnings.push(super::app_config::unknown_key(key, known, file));
            }
        }
        let delegation = Delegation {
            allowed: raw.can_spawn_agents,
            agents: match raw.spawnable_agents {
                None | Some(Choice::All) => None,
                Some(Choice::None) => Some(Vec::new()),
                Some(Choice::These(names)) => Some(names.iter().map(str::to_owned).collect()),
            },
            max_concurrent: limit(
                "max_concurrent_agents",
                raw.max_concurrent_agents.unwrap_or(MAX_CONCURRENT),
                file,
            )?,
            max_depth: limit(
                "max_agent_depth",
                raw.max_agent_depth.unwrap_or(MAX_DEPTH),
                file,
            )?,
            depth: 0,
        };
        let agent = Self {
            name: name.to_owned(),
            description: raw.description.unwrap_or_default().trim().to_owned(),
            variables: raw.variables.unwrap_or_default(),
            session: raw.agent_session.filter(|name| !name.trim().is_empty()),
            instructions: raw.instructions.unwrap_or_default().trim().to_owned(),
            starters: raw.conversation_starters.unwrap_or_default(),
            settings: LayerSettings {
                model: raw.model,
                temperature: raw.temperature,
                top_p: raw.top_p,
                enabled_tools: raw.global_tools,
                enabled_mcp_servers: raw.mcp_servers,
            },
            delegation,
        };
        Ok((agent, warnings))
    }

    /// Its own values for its variables: those of `given`, else the defaults; and the variables that have neither.
    pub fn values<'a>(
        &'a self,
        given: &BTreeMap<String, String>,
    ) -> (BTreeMap<String, String>, Vec<&'a AgentVariable>) {
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for variable in &self.variables {
            let value = given.get(&variable.name).or(variable.default.as_ref());
            match value {
                Some(value) => {
                    values.insert(variable.name.clone(), value.clone());
                }
                None => missing.push(variable),
            }
        }
        (values, missing)
    }

    /// Whether every given name is one of its variables.
    ///
    /// # Errors
    /// One is not, with the nearest.
    pub fn check_given(&self, given: &BTreeMap<String, String>) -> Result<()> {
        let known: BTreeSet<&str> = self
            .variables
            .iter()
            .map(|variable| variable.name.as_str())
            .collect();
        let Some(name) = given.keys().find(|name| !known.contains(name.as_str())) else {
            return Ok(());
        };
        let error = Error::user(format!("agent `{}` has no variable `{name}`", self.name));
        let near = alternatives(&nearest(name, known.iter().copied(), 1));
        let all: Vec<&str> = known.into_iter().collect();
        Err(match (near.is_empty(), all.is_empty()) {
            (false, _) => error.hint(format!("did you mean {near}?")),
            (true, false) => error.hint(format!("it has {}", all.join(", "))),
            (true, true) => error,
        })
    }

    /// The error about variables that nobody gave a value.
    pub fn missing(&self, variables: &[&AgentVariable]) -> Error {
        let names: Vec<String> = variables
            .iter()
            .map(|variable| format!("`{}`", variable.name))
            .collect();
        let first = variables
            .first()
            .map_or("NAME", |variable| variable.name.as_str());
        Error::user(format!(
            "agent `{}` needs a value for {}",
            self.name,
            names.join(", ")
        ))
        .hint(format!(
            "`--agent-variable {first}=VALUE`, or a `default` in its file"
        ))
    }

    /// The agent with these values, ready to be put into a context.
    pub fn into_layer(self, values: BTreeMap<String, String>, builtin: &Variables) -> AgentLayer {
        let fill = |text: &str| builtin.interpolate_with(text, &values);
        AgentLayer {
            instructions: fill(&self.instructions),
            starters: self.starters.iter().map(|text| fill(text)).collect(),
            name: self.name,
            description: self.description,
            values,
            settings: self.settings,
            delegation: self.delegation,
            session: self.session,
        }
    }

    /// What others may know about it.
    pub fn summary(&self) -> AgentSummary {
        AgentSummary {
            name: self.name.clone(),
            description: self.description.clone(),
        }
    }
}

fn limit(key: &str, value: usize, file: &Path) -> Result<usize> {
    if (1..=MOST).contains(&value) {
        return Ok(value);
    }
    Err(Error::config(format!(
        "`{key}` in `{}` must be between 1 and {MOST}, got {value}",
        file.display()
    )))
}

fn file(paths: &Paths, name: &str) -> PathBuf {
    paths.agents_dir().join(name).join("config.yaml")
}

fn unknown(paths: &Paths, name: &str) -> Error {
    let names = paths.agent_names();
    let near = alternatives(&nearest(name, names.iter().map(String::as_str), 3));
    let error = Error::user(format!("there is no {} `{name}`", NameKind::Agent.as_str()));
    if near.is_empty() {
        error.hint(format!(
            "{} is where agents are expected",
            paths
                .agents_dir()
                .join("NAME")
                .join("config.yaml")
                .display()
        ))
    } else {
        error.hint(format!("did you mean {near}?"))
    }
}

#[cfg(test)]
#[path = "agent_tests.rs"]
mod tests;
