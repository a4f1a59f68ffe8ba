//! Roles: a system prompt or a template for the input, with settings in front (`H-30`).

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::{Choice, present};
use super::paths::{NameKind, Paths};
use super::vars::Env;
use super::yaml;
use crate::utils::fs::{Access, write_atomic};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, ErrorKind, Result};

/// Where the input goes in a role that is a template.
const INPUT_PLACEHOLDER: &str = "__INPUT__";
/// The name of a role that has none.
const TEMP_ROLE: &str = "temp";

/// What is set on top of a layer below: in a role, a session, an agent. Absent falls through (`H-35`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LayerSettings {
    /// `client:model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Tools a model may use.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub enabled_tools: Option<Choice>,
    /// MCP servers a model may use.
    #[serde(deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub enabled_mcp_servers: Option<Choice>,
}

const FRONTMATTER_KEYS: &[&str] = &[
    "model",
    "temperature",
    "top_p",
    "enabled_tools",
    "enabled_mcp_servers",
];

/// A role.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    name: String,
    /// As written.
    prompt: String,
    /// With its variables replaced, once that has been done.
    words: Option<String>,
    temporary: bool,
    /// What it sets.
    pub settings: LayerSettings,
}

impl Role {
    /// A role of these words, with no settings.
    pub fn new(name: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            prompt: prompt.into(),
            words: None,
            temporary: false,
            settings: LayerSettings::default(),
        }
    }

    /// A role that has no file: `.temp-role`, `--temp-role`.
    pub fn temporary(prompt: impl Into<String>) -> Self {
        Self {
            temporary: true,
            ..Self::new(TEMP_ROLE, prompt)
        }
    }

    /// Reads the text of a role file. Settings stand in front, between a first line `---` and the next such line;
    /// anything else that looks like it is part of the prompt. `file` is named in errors and warnings.
    ///
    /// # Errors
    /// What stands between the lines is not a mapping of settings of the right types.
    pub fn parse(name: &str, text: &str, file: &Path) -> Result<(Self, Vec<String>)> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((front, prompt)) = split_frontmatter(text) else {
            return Ok((Self::new(name, text.trim()), Vec::new()));
        };
        // The opening line stays as a comment, so that positions in errors are those of the file.
        let front = format!("#\n{front}");
        let settings: LayerSettings = yaml::read_or_default(&front, file)?;
        let mut warnings = Vec::new();
        if let Some(Value::Object(keys)) = yaml::read_or_default::<Option<Value>>(&front, file)? {
            for key in keys
                .keys()
                .filter(|key| !FRONTMATTER_KEYS.contains(&key.as_str()))
            {
                let known = FRONTMATTER_KEYS.iter().copied();
                warnings.push(super::app_config::unknown_key(key, known, file));
            }
        }
        let role = Self {
            settings,
            ..Self::new(name, prompt.trim())
        };
        Ok((role, warnings))
    }

    /// The role of that name: a file, else a built-in one.
    ///
    /// # Errors
    /// There is none, with the nearest names; or its file cannot be read.
    pub fn load(paths: &Paths, name: &str) -> Result<(Self, Vec<String>)> {
        let file = paths.role(name)?;
        match crate::utils::fs::read_text(&file) {
            Ok(text) => Self::parse(name, &text, &file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::builtin(name)
                .map(|role| (role, Vec::new()))
                .ok_or_else(|| unknown(paths, name)),
            Err(error) => Err(Error::new(ErrorKind::Config, error)
                .context(format!("cannot read `{}`", file.display()))),
        }
    }

    /// A role that needs no file.
    pub fn builtin(name: &str) -> Option<Self> {
        let prompt = BUILTIN.iter().find(|(builtin, _)| *builtin == name)?.1;
        let mut role = Self::new(name, prompt);
        // They produce text of one kind; functions would only distract.
        role.settings.enabled_tools = Some(Choice::None);
        role.settings.enabled_mcp_servers = Some(Choice::None);
        Some(role)
    }

    /// Every role there is, sorted: files and built-in ones.
    pub fn names(paths: &Paths) -> Vec<String> {
        let mut names = paths.role_names();
        names.extend(BUILTIN.iter().map(|(name, _)| (*name).to_owned()));
        names.sort();
        names.dedup();
        names
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its words, as written.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }

    /// Whether it has no file and is part of the session instead.
    pub fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// Whether the prompt is a template for the input.
    pub fn embeds_input(&self) -> bool {
        self.prompt.contains(INPUT_PLACEHOLDER)
    }

    /// The same role with its `{{__os__}}` and the like replaced.
    pub fn interpolated(mut self, variables: &Variables) -> Self {
        self.words = Some(variables.interpolate(&self.prompt));
        self
    }

    /// The same role under another name; it is no longer temporary.
    pub fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self.temporary = false;
        self
    }

    fn words(&self) -> &str {
        self.words.as_deref().unwrap_or(&self.prompt)
    }

    /// The system prompt, if this role has one.
    pub fn system(&self) -> Option<&str> {
        (!self.words().is_empty() && !self.embeds_input()).then_some(self.words())
    }

    /// What is said for the person's `text`: the template around it, or itself. The text is put in once and never
    /// looked at for placeholders.
    pub fn embed(&self, text: &str) -> String {
        if !self.embeds_input() {
            return text.to_owned();
        }
        self.words()
            .split(INPUT_PLACEHOLDER)
            .collect::<Vec<_>>()
            .join(text)
    }

    /// The text of its file.
    pub fn to_text(&self) -> Result<String> {
        if self.settings == LayerSettings::default() {
            // A prompt that itself begins like settings must not be read as such.
            let guard = if split_frontmatter(&self.prompt).is_some() {
                "---\n---\n"
            } else {
                ""
            };
            return Ok(format!("{guard}{}\n", self.prompt));
        }
        let front = yaml::write(&self.settings)?;
        Ok(format!("---\n{}\n---\n{}\n", front.trim_end(), self.prompt))
    }

    /// Writes its file as `name`, whole or not at all (`H-14`).
    pub fn save(&self, paths: &Paths, name: &str) -> Result<std::path::PathBuf> {
        let file = paths.role(name)?;
        write_atomic(&file, self.to_text()?.as_bytes(), Access::Private).map_err(|error| {
            Error::new(ErrorKind::Internal, error)
                .context(format!("cannot write `{}`", file.display()))
        })?;
        Ok(file)
    }
}

fn unknown(paths: &Paths, name: &str) -> Error {
    let names = Role::names(paths);
    let near = alternatives(&nearest(name, names.iter().map(String::as_str), 3));
    let error = Error::user(format!("there is no {} `{name}`", NameKind::Role.as_str()));
    if near.is_empty() {
        error.hint(format!(
            "`.list roles` shows them; files go to {}",
            paths.roles_dir().display()
        ))
    } else {
        error.hint(format!("did you mean {near}?"))
    }
}

/// What stands between a first line `---` and the next such line, and what follows it.
fn split_frontmatter(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next()?;
    if first.trim_end() != "---" || !first.ends_with('\n') {
        return None;
    }
    let start = first.len();
    let mut end = start;
    for line in lines {
        let next = end + line.len();
        if line.trim_end() == "---" {
            return Some((text.get(start..end)?, text.get(next..)?));
        }
        end = next;
    }
    None
}

/// What `{{__name__}}` stands for in prompts.
#[derive(Debug, Clone, Default)]
pub struct Variables(Vec<(&'static str, String)>);

impl Variables {
    /// Their values now.
    pub fn now(env: &Env, cwd: &Path) -> Self {
        let now = chrono::Local::now()
            .format("%Y-%m-%dT%H:%M:%S%:z")
            .to_string();
        Self(vec![
            ("__os__", std::env::consts::OS.to_owned()),
            ("__os_family__", std::env::consts::FAMILY.to_owned()),
            ("__os_distro__", distribution()),
            ("__arch__", std::env::consts::ARCH.to_owned()),
            ("__shell__", shell(env)),
            ("__locale__", locale(env)),
            ("__now__", now),
            ("__cwd__", cwd.display().to_string()),
        ])
    }

    /// Replaces every `{{__name__}}` that is known; the rest stays as it is.
    pub fn interpolate(&self, text: &str) -> String {
        self.interpolate_with(text, &std::collections::BTreeMap::new())
    }

    /// The same with values of one's own, which come first and are never looked at for placeholders themselves.
    pub fn interpolate_with(
        &self,
        text: &str,
        own: &std::collections::BTreeMap<String, String>,
    ) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            result.push_str(before);
            let known = after.split_once("}}").and_then(|(name, after)| {
                let name = name.trim();
                let builtin = || self.0.iter().find(|(known, _)| *known == name);
                let value = own
                    .get(name)
                    .or_else(|| builtin().map(|(_, value)| value))?;
                Some((value.as_str(), after))
            });
            if let Some((value, after)) = known {
                result.push_str(value);
                rest = after;
            } else {
                result.push_str("{{");
                rest = after;
            }
        }
        result.push_str(rest);
        result
    }
}

/// The name of the shell commands are run with.
pub fn shell(env: &Env) -> String {
    let fallback = if cfg!(windows) { "powershell" } else { "sh" };
    env.get("SHELL")
        .and_then(|path| Some(Path::new(&path).file_stem()?.to_str()?.to_owned()))
        .unwrap_or_else(|| fallback.to_owned())
}

fn locale(env: &Env) -> String {
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| env.get(name))
        .and_then(|value| value.split(['.', '@']).next().map(str::to_owned))
        .filter(|value| !matches!(value.as_str(), "C" | "POSIX"))
        .unwrap_or_else(|| "en_US".to_owned())
}

fn distribution() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(
            || std::env::consts::OS.to_owned(),
            |name| name.trim_matches('"').to_owned(),
        )
}

/// Built-in roles: name and prompt.
const BUILTIN: &[(&str, &str)] = &[
    (
        "shell",
        "You turn a request into one command line for {{__shell__}} on {{__os_distro__}} ({{__arch__}}).\n\
         Answer with the command alone: no explanation, no Markdown, no code fence.\n\
         When several steps are needed, join them so that a failing step stops the rest.\n\
         When a detail is missing, choose the most common meaning that destroys nothing.",
    ),
    (
        "explain-shell",
        "You explain a command line for {{__shell__}} on {{__os_distro__}} to somebody who is about to run it.\n\
         Begin with one sentence that says what the whole does.\n\
         Then a short list: each program, option and operator with its effect here.\n\
         Say plainly what it deletes, overwrites or sends elsewhere. At most a hundred words, in Markdown.",
    ),
    (
        "code",
        "You write code for a request.\n\
         Answer with the code alone, complete and ready to run, without explanation and without Markdown outside \
         of it.\n\
         When no language is named, choose the one the request implies. Comments only where the code cannot say why.",
    ),
];

#[cfg(test)]
#[path = "role_tests.rs"]
mod tests;
