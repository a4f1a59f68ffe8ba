//! `.set key value`: the keys that can change while coyote runs, as an enum with one parser (`H-11`, `H-35`).

use super::app_config::{KeyKind, Wrap, confirm_word};
use super::names::Choice;
use crate::mcp::Confirm;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, Result};

/// One change.
///
/// `None` resets: a key that layers set falls through to the layer below, any other takes its default. For the lists
/// of names that word is `default`, since `null` is itself a value there: none.
#[derive(Debug, Clone, PartialEq)]
pub enum Setting {
    /// Sampling temperature, in the active layer.
    Temperature(Option<f64>),
    /// Nucleus sampling, in the active layer.
    TopP(Option<f64>),
    /// Tools, in the active layer.
    EnabledTools(Option<Choice>),
    /// MCP servers, in the active layer.
    EnabledMcpServers(Option<Choice>),
    /// Whether the session is kept; without a session, whether sessions are.
    SaveSession(Option<bool>),
    /// Whether answers are streamed.
    Stream(Option<bool>),
    /// Whether conversations without a session are recorded.
    Save(Option<bool>),
    /// Whether requests are shown instead of sent.
    DryRun(Option<bool>),
    /// Colours and styled Markdown.
    Highlight(Option<bool>),
    /// Where answers wrap.
    Wrap(Option<Wrap>),
    /// Whether models may call functions.
    FunctionCallingSupport(Option<bool>),
    /// Whether MCP servers are used.
    McpServerSupport(Option<bool>),
    /// Whether models that see get the images of MCP servers.
    McpImages(Option<bool>),
    /// When to ask before a tool of an MCP server.
    McpConfirm(Option<Confirm>),
    /// Longest result of a tool call.
    MaxToolResultChars(Option<usize>),
    /// Rounds of tool calls before a turn ends.
    MaxRounds(Option<u32>),
}

/// What can be set, for completion and for parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingSpec {
    /// As typed.
    pub name: &'static str,
    /// How its value is written.
    pub kind: KeyKind,
    /// Whether it changes the active layer (session, agent or role) rather than everything.
    pub layered: bool,
}

const fn spec(name: &'static str, kind: KeyKind, layered: bool) -> SettingSpec {
    SettingSpec {
        name,
        kind,
        layered,
    }
}

impl Setting {
    /// Everything that can be set.
    pub const ALL: &[SettingSpec] = &[
        spec("temperature", KeyKind::Number, true),
        spec("top_p", KeyKind::Number, true),
        spec("enabled_tools", KeyKind::Names, true),
        spec("enabled_mcp_servers", KeyKind::Names, true),
        spec("save_session", KeyKind::Bool, true),
        spec("stream", KeyKind::Bool, false),
        spec("save", KeyKind::Bool, false),
        spec("dry_run", KeyKind::Bool, false),
        spec("highlight", KeyKind::Bool, false),
        spec("wrap", KeyKind::Text, false),
        spec("function_calling_support", KeyKind::Bool, false),
        spec("mcp_server_support", KeyKind::Bool, false),
        spec("mcp_images", KeyKind::Bool, false),
        spec(
            "mcp_confirm",
            KeyKind::Word(&["never", "destructive", "always"]),
            false,
        ),
        spec("max_tool_result_chars", KeyKind::Integer, false),
        spec("max_rounds", KeyKind::Integer, false),
    ];

    /// Reads what was typed after `.set`.
    ///
    /// # Errors
    /// The key cannot be set, with the nearest one that can; or the value is not one of its values.
    pub fn parse(key: &str, value: &str) -> Result<Self> {
        let key = key.trim();
        let value = value.trim();
        if value.is_empty() {
            return Err(
                Error::user(format!("`{key}` needs a value")).hint(format!("`.set {key} VALUE`"))
            );
        }
        Ok(match key {
            "temperature" => Self::Temperature(number(key, value)?),
            "top_p" => Self::TopP(number(key, value)?),
            "enabled_tools" => Self::EnabledTools(names(value)),
            "enabled_mcp_servers" => Self::EnabledMcpServers(names(value)),
            "save_session" => Self::SaveSession(boolean(key, value)?),
            "stream" => Self::Stream(boolean(key, value)?),
            "save" => Self::Save(boolean(key, value)?),
            "dry_run" => Self::DryRun(boolean(key, value)?),
            "highlight" => Self::Highlight(boolean(key, value)?),
            "wrap" => Self::Wrap(parsed(key, value, str::parse)?),
            "function_calling_support" => Self::FunctionCallingSupport(boolean(key, value)?),
            "mcp_server_support" => Self::McpServerSupport(boolean(key, value)?),
            "mcp_images" => Self::McpImages(boolean(key, value)?),
            "mcp_confirm" => Self::McpConfirm(parsed(key, value, confirm_word)?),
            "max_tool_result_chars" => Self::MaxToolResultChars(parsed(key, value, whole)?),
            "max_rounds" => Self::MaxRounds(parsed(key, value, at_least_one)?),
            _ => return Err(unknown(key)),
        })
    }

    /// Whether it can change which servers are in use.
    pub fn concerns_servers(&self) -> bool {
        matches!(
            self,
            Self::EnabledMcpServers(_)
                | Self::McpServerSupport(_)
                | Self::FunctionCallingSupport(_)
        )
    }
}

fn unknown(key: &str) -> Error {
    let known = || Setting::ALL.iter().map(|spec| spec.name);
    let near = alternatives(&nearest(key, known(), 3));
    let error = Error::user(format!("`{key}` cannot be set"));
    if near.is_empty() {
        let all: Vec<&str> = known().collect();
        error.hint(format!("`.set` knows {}", all.join(", ")))
    } else {
        error.hint(format!("did you mean {near}?"))
    }
}

fn parsed<T>(
    key: &str,
    value: &str,
    read: impl FnOnce(&str) -> std::result::Result<T, String>,
) -> Result<Option<T>> {
    if matches!(value, "null" | "default") {
        return Ok(None);
    }
    read(value)
        .map(Some)
        .map_err(|reason| Error::user(format!("`{key}`: {reason}")))
}

fn names(value: &str) -> Option<Choice> {
    (value != "default").then(|| Choice::from_csv(value))
}

fn boolean(key: &str, value: &str) -> Result<Option<bool>> {
    parsed(key, value, |text| match text {
        "true" | "on" | "yes" => Ok(true),
        "false" | "off" | "no" => Ok(false),
        _ => Err(format!("expected `true`, `false` or `null`, got `{text}`")),
    })
}

fn number(key: &str, value: &str) -> Result<Option<f64>> {
    parsed(key, value, |text| match text.parse() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err(format!(
            "expected a number between 0 and 2 or `null`, got `{text}`"
        )),
    })
}

fn whole(text: &str) -> std::result::Result<usize, String> {
    text.parse()
        .map_err(|_| format!("expected a whole number or `null`, got `{text}`"))
}

fn at_least_one(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "expected a whole number above 0 or `null`, got `{text}`"
        )),
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
