//! `config.yaml`: its keys, how they are read, and what the environment says over them (`H-11`). Nothing here
//! happens at run time; what changes lives in the request context.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::clients::{self, Client, RawClient};
use super::names::{Aliases, Choice, present};
use super::paths::Paths;
use super::vars::Env;
use super::yaml;
use crate::mcp::Confirm;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, ErrorKind, Result};

/// How a key's value is written, for `COYOTE_<KEY>`, `.set` and completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// Names, separated by commas or as a list; `all`; `null` for none.
    Names,
    /// A mapping or a list of mappings: in the file only.
    Structure,
}

/// A key of `config.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySpec {
    /// As written in the file.
    pub name: &'static str,
    /// How its value is written.
    pub kind: KeyKind,
    /// What it does, for people.
    pub help: &'static str,
}

/// Declares the keys once: the struct that is read, the table that is shown, the merge of two readings.
macro_rules! keys {
    ($( $(#[$attribute:meta])* $name:ident : $type:ty = $kind:expr, $help:literal; )*) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Raw { $( $(#[$attribute])* $name: Option<$type>, )* }

        impl Raw {
            /// What `over` has replaces what is here.
            fn overlay(&mut self, over: Self) {
                $( if over.$name.is_some() { self.$name = over.$name; } )*
            }
        }

        const KEYS: &[KeySpec] = &[
            $( KeySpec { name: stringify!($name), kind: $kind, help: $help }, )*
        ];
    };
}

keys! {
    model: String = KeyKind::Text, "model of new conversations, as `client:model`";
    temperature: f64 = KeyKind::Number, "sampling temperature";
    top_p: f64 = KeyKind::Number, "nucleus sampling";
    stream: bool = KeyKind::Bool, "show answers as they arrive (true)";
    save: bool = KeyKind::Bool, "keep a record of conversations without a session (false)";
    dry_run: bool = KeyKind::Bool, "show what would be sent instead of sending it (false)";
    keybindings: Keybindings = KeyKind::Word(&["emacs", "vi"]), "keys of the line editor (emacs)";
    editor: String = KeyKind::Text, "program for editing long text; $VISUAL or $EDITOR by default";
    wrap: Wrap = KeyKind::Text, "where answers wrap: `no`, `auto` or a width";
    highlight: bool = KeyKind::Bool, "colours and styled Markdown (true)";
    theme: String = KeyKind::Text, "colour theme: `dark`, `light` or a name";
    function_calling_support: bool = KeyKind::Bool, "let models call functions (true)";
    mapping_tools: Aliases = KeyKind::Structure, "names for groups of tools";
    #[serde(deserialize_with = "present")]
    enabled_tools: Choice = KeyKind::Names, "tools a model may use (none)";
    mcp_server_support: bool = KeyKind::Bool, "use MCP servers (true)";
    mapping_mcp_servers: Aliases = KeyKind::Structure, "names for groups of MCP servers";
    #[serde(deserialize_with = "present")]
    enabled_mcp_servers: Choice = KeyKind::Names, "MCP servers a model may use (all that are not disabled)";
    no_workspace_mcp: bool = KeyKind::Bool, "ignore the MCP file of the directory (false)";
    save_session: bool = KeyKind::Bool, "keep sessions: true, false, or ask when null";
    max_tool_result_chars: usize = KeyKind::Integer, "longest result of a tool call";
    mcp_images: bool = KeyKind::Bool, "show images of MCP servers to models that see (true)";
    #[serde(deserialize_with = "confirm")]
    mcp_confirm: Confirm = KeyKind::Word(&["never", "destructive", "always"]), "when to ask before a tool of an MCP server (destructive)";
    max_rounds: u32 = KeyKind::Integer, "rounds of tool calls before a turn ends (50)";
    repl_prelude: String = KeyKind::Text, "what the REPL starts with: `role:<name>` or `session:<name>`";
    cmd_prelude: String = KeyKind::Text, "the same for one-shot questions";
    left_prompt: String = KeyKind::Text, "template of the prompt";
    right_prompt: String = KeyKind::Text, "template of the prompt's right side";
    user_agent: String = KeyKind::Text, "User-Agent of requests to providers";
    clients: Vec<RawClient> = KeyKind::Structure, "the providers and their models";
}

/// Keys of the line editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keybindings {
    /// As in most shells.
    #[default]
    Emacs,
    /// Modal.
    Vi,
}

impl Keybindings {
    /// The word of the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Emacs => "emacs",
            Self::Vi => "vi",
        }
    }
}

/// Where answers wrap on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrap {
    /// Nowhere.
    No,
    /// At the terminal's width.
    #[default]
    Auto,
    /// At this column, or the terminal's width when that is smaller.
    At(u16),
}

impl std::str::FromStr for Wrap {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text.trim() {
            "no" | "false" => Ok(Self::No),
            "auto" | "true" => Ok(Self::Auto),
            width => match width.parse() {
                Ok(width) if width > 0 => Ok(Self::At(width)),
                _ => Err(format!("expected `no`, `auto` or a width, got `{width}`")),
            },
        }
    }
}

impl std::fmt::Display for Wrap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::No => f.write_str("no"),
            Self::Auto => f.write_str("auto"),
            Self::At(width) => write!(f, "{width}"),
        }
    }
}

impl<'de> Deserialize<'de> for Wrap {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => text.parse(),
            Value::Bool(on) => Ok(if on { Self::Auto } else { Self::No }),
            other => other.to_string().parse(),
        }
        .map_err(serde::de::Error::custom)
    }
}

fn confirm<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Confirm>, D::Error> {
    let Some(word) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    confirm_word(&word)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// The setting that a word of `mcp_confirm` means.
pub(super) fn confirm_word(word: &str) -> std::result::Result<Confirm, String> {
    match word.trim() {
        "never" => Ok(Confirm::Never),
        "destructive" => Ok(Confirm::Destructive),
        "always" => Ok(Confirm::Always),
        other => Err(format!(
            "expected `never`, `destructive` or `always`, got `{other}`"
        )),
    }
}

/// What is configured, complete: defaults, file and environment together.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the file")]
pub struct AppConfig {
    /// Model of new conversations, `client:model`.
    pub model: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Whether conversations without a session are recorded.
    pub save: bool,
    /// Whether requests are shown instead of sent.
    pub dry_run: bool,
    /// Keys of the line editor.
    pub keybindings: Keybindings,
    /// Program for editing long text.
    pub editor: Option<String>,
    /// Where answers wrap.
    pub wrap: Wrap,
    /// Colours and styled Markdown.
    pub highlight: bool,
    /// Colour theme.
    pub theme: Option<String>,
    /// Whether models may call functions.
    pub function_calling_support: bool,
    /// Names for groups of tools.
    pub mapping_tools: Aliases,
    /// Tools; `None` is the absent key: none.
    pub enabled_tools: Option<Choice>,
    /// Whether MCP servers are used.
    pub mcp_server_support: bool,
    /// Names for groups of MCP servers.
    pub mapping_mcp_servers: Aliases,
    /// MCP servers; `None` is the absent key: all that are not disabled.
    pub enabled_mcp_servers: Option<Choice>,
    /// Whether the directory's MCP file is ignored.
    pub no_workspace_mcp: bool,
    /// Whether sessions are saved; `None`: ask.
    pub save_session: Option<bool>,
    /// Longest result of a tool call, in characters.
    pub max_tool_result_chars: Option<usize>,
    /// Whether models that see get the images of MCP servers.
    pub mcp_images: bool,
    /// When to ask before a tool of an MCP server.
    pub mcp_confirm: Confirm,
    /// Rounds of tool calls before a turn ends.
    pub max_rounds: u32,
    /// What the REPL starts with.
    pub repl_prelude: Option<String>,
    /// What a one-shot question starts with.
    pub cmd_prelude: Option<String>,
    /// Template of the prompt.
    pub left_prompt: Option<String>,
    /// Template of the prompt's right side.
    pub right_prompt: Option<String>,
    /// The providers, those of the file first, then those of the environment (`H-13`).
    pub clients: Vec<Client>,
}

/// Rounds of tool calls before a turn ends, unless configured (`H-41`).
pub const DEFAULT_MAX_ROUNDS: u32 = 50;

impl Default for AppConfig {
    fn default() -> Self {
        Self::from_raw(Raw::default(), Vec::new())
    }
}

impl AppConfig {
    /// Reads `config.yaml`, if there is one, and what the environment says over it. The second value is what the
    /// person should know: unknown keys, with the nearest known one.
    ///
    /// # Errors
    /// The file is not YAML, or a value has the wrong type: with file, line and column. A variable has a value that
    /// its key cannot take.
    pub fn load(paths: &Paths, env: &Env) -> Result<(Self, Vec<String>)> {
        let file = paths.config_file();
        let text = match crate::utils::fs::read_text(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(Error::new(ErrorKind::Config, error)
                    .context(format!("cannot read `{}`", file.display())));
            }
        };
        Self::parse(&text, &file, env)
    }

    /// Reads the text of a `config.yaml`; `file` is named in errors and warnings.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn parse(text: &str, file: &Path, env: &Env) -> Result<(Self, Vec<String>)> {
        let mut warnings = Vec::new();
        let mut raw: Raw = yaml::read_or_default(text, file)?;
        if let Some(Value::Object(keys)) = yaml::read_or_default::<Option<Value>>(text, file)? {
            unknown_keys(&keys, file, &mut warnings);
        }
        raw.overlay(environment(env)?);
        check_numbers(&raw, file)?;
        let mut found = Vec::new();
        for (index, client) in raw
            .clients
            .take()
            .unwrap_or_default()
            .into_iter()
            .enumerate()
        {
            found.push(clients::resolve(
                client,
                index,
                file,
                env,
                raw.user_agent.as_deref(),
            )?);
        }
        clients::check_names(&found, file)?;
        clients::add_environment(&mut found, env, raw.user_agent.as_deref());
        Ok((Self::from_raw(raw, found), warnings))
    }

    /// The variables provider keys are read from, the configured clients' own and the usual ones, sorted: programs
    /// that coyote starts do not inherit them (`M-12`).
    pub fn key_variables(&self) -> Vec<String> {
        let own = self
            .clients
            .iter()
            .flat_map(Client::secret_variables)
            .cloned();
        let usual = crate::client::usual_key_variables().map(str::to_owned);
        let all: std::collections::BTreeSet<String> = own.chain(usual).collect();
        all.into_iter().collect()
    }

    /// Every key of the file, in the order of the documentation.
    pub fn keys() -> &'static [KeySpec] {
        KEYS
    }

    fn from_raw(raw: Raw, clients: Vec<Client>) -> Self {
        Self {
            model: filled(raw.model),
            temperature: raw.temperature,
            top_p: raw.top_p,
            stream: raw.stream.unwrap_or(true),
            save: raw.save.unwrap_or(false),
            dry_run: raw.dry_run.unwrap_or(false),
            keybindings: raw.keybindings.unwrap_or_default(),
            editor: filled(raw.editor),
            wrap: raw.wrap.unwrap_or_default(),
            highlight: raw.highlight.unwrap_or(true),
            theme: filled(raw.theme),
            function_calling_support: raw.function_calling_support.unwrap_or(true),
            mapping_tools: raw.mapping_tools.unwrap_or_default(),
            enabled_tools: raw.enabled_tools,
            mcp_server_support: raw.mcp_server_support.unwrap_or(true),
            mapping_mcp_servers: raw.mapping_mcp_servers.unwrap_or_default(),
            enabled_mcp_servers: raw.enabled_mcp_servers,
            no_workspace_mcp: raw.no_workspace_mcp.unwrap_or(false),
            save_session: raw.save_session,
            max_tool_result_chars: raw.max_tool_result_chars,
            mcp_images: raw.mcp_images.unwrap_or(true),
            mcp_confirm: raw.mcp_confirm.unwrap_or_default(),
            max_rounds: raw.max_rounds.unwrap_or(DEFAULT_MAX_ROUNDS),
            repl_prelude: filled(raw.repl_prelude),
            cmd_prelude: filled(raw.cmd_prelude),
            left_prompt: raw.left_prompt,
            right_prompt: raw.right_prompt,
            clients,
        }
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn unknown_keys(keys: &Map<String, Value>, file: &Path, warnings: &mut Vec<String>) {
    let known = || KEYS.iter().map(|key| key.name);
    for key in keys.keys().filter(|key| !known().any(|name| name == *key)) {
        warnings.push(unknown_key(key, known(), file));
    }
    if let Some(Value::Array(clients)) = keys.get("clients") {
        for client in clients.iter().filter_map(Value::as_object) {
            clients::unknown_keys(client, file, warnings);
        }
    }
}

/// The warning about a key nobody reads.
pub(super) fn unknown_key<'a>(
    key: &str,
    known: impl IntoIterator<Item = &'a str>,
    file: &Path,
) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    let near = alternatives(&nearest(last, known, 1));
    let question = if near.is_empty() {
        String::new()
    } else {
        format!(", did you mean {near}?")
    };
    format!("`{}` has an unknown key `{key}`{question}", file.display())
}

/// The keys that `COYOTE_<KEY>` sets.
fn environment(env: &Env) -> Result<Raw> {
    let mut keys = Map::new();
    for key in KEYS {
        let variable = format!("COYOTE_{}", key.name.to_uppercase());
        let Some(text) = env.get(&variable) else {
            continue;
        };
        let value =
            variable_value(key.kind, &text).ok_or_else(|| refused(&variable, key, &text))?;
        let one = Map::from_iter([(key.name.to_owned(), value.clone())]);
        serde_json::from_value::<Raw>(Value::Object(one))
            .map_err(|_| refused(&variable, key, &text))?;
        if key.kind != KeyKind::Structure {
            keys.insert(key.name.to_owned(), value);
        }
    }
    serde_json::from_value(Value::Object(keys))
        .map_err(|error| Error::new(ErrorKind::Config, error))
}

fn refused(variable: &str, key: &KeySpec, text: &str) -> Error {
    let expected = match key.kind {
        KeyKind::Text | KeyKind::Structure => "text".to_owned(),
        KeyKind::Bool => "`true` or `false`".to_owned(),
        KeyKind::Integer => "a whole number".to_owned(),
        KeyKind::Number => "a number".to_owned(),
        KeyKind::Word(words) => alternatives(words),
        KeyKind::Names => "names separated by commas".to_owned(),
    };
    Error::config(format!(
        "the variable `{variable}` must be {expected}, got `{}`",
        crate::utils::text::bounded(text, 200)
    ))
}

/// The text of a variable as the value its key takes; `None` when it is not one.
fn variable_value(kind: KeyKind, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    if trimmed == "null" {
        return Some(Value::Null);
    }
    match kind {
        KeyKind::Text | KeyKind::Word(_) | KeyKind::Names => Some(Value::from(trimmed)),
        KeyKind::Bool => match trimmed {
            "true" | "1" | "yes" | "on" => Some(Value::Bool(true)),
            "false" | "0" | "no" | "off" => Some(Value::Bool(false)),
            _ => None,
        },
        KeyKind::Integer => trimmed.parse::<u64>().ok().map(Value::from),
        KeyKind::Number => trimmed
            .parse::<f64>()
            .ok()
            .filter(|n| n.is_finite())
            .map(Value::from),
        KeyKind::Structure => Some(Value::Null),
    }
}

fn check_numbers(raw: &Raw, file: &Path) -> Result<()> {
    for (key, value) in [("temperature", raw.temperature), ("top_p", raw.top_p)] {
        if let Some(value) = value
            && !(0.0..=2.0).contains(&value)
        {
            return Err(out_of_range(
                key,
                &value.to_string(),
                "between 0 and 2",
                file,
            ));
        }
    }
    if raw.max_rounds == Some(0) {
        return Err(out_of_range("max_rounds", "0", "at least 1", file));
    }
    Ok(())
}

fn out_of_range(key: &str, value: &str, expected: &str, file: &Path) -> Error {
    Error::config(format!("`{key}` is {value} and must be {expected}"))
        .hint(format!("edit `{key}` in {}", file.display()))
}

#[cfg(test)]
#[path = "app_config_tests.rs"]
mod tests;
