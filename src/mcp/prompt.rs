//! Prompts of servers: what one declares, whether what is passed to it fits, and getting it.
//!
//! Declarations are looked up live, in the one listing that everything uses (`P-03`, `M-41`). The same rules hold for a
//! person's `key=value` and for a model's object; only who says what is wrong differs.

use serde_json::{Map, Value};

use super::catalog::{CatalogItem, CatalogKind, PromptArgument};
use super::decode::{article, protocol_error};
use super::flatten::{FlatPrompt, FlattenError, flatten};
use super::runtime::McpRuntime;
use super::target::{NEAREST, QUOTED_BYTES, Target, blocking};
use super::{CallContext, McpError, MetaFunction, ServerName};
use crate::chat::ToolOutput;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, text};

/// How many arguments a sentence about them names.
const NAMED_ARGUMENTS: usize = 32;
/// How much of what an argument is for such a sentence repeats, in bytes.
const DESCRIPTION_BYTES: usize = 200;

/// What `mcp_prompt_*` was asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptRequest {
    /// The prompt's name.
    pub prompt: String,
    /// Its arguments, as the model passed them.
    pub arguments: Map<String, Value>,
}

/// A prompt, with its arguments filled in by the server.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptAnswer {
    /// What the server answered.
    pub raw: Value,
    /// The same as one block, or why it cannot be one.
    pub block: Result<FlatPrompt, McpError>,
}

/// Why a prompt cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The server does not advertise any.
    #[error("MCP server `{server}` has no prompts")]
    NoPrompts {
        /// The server.
        server: ServerName,
    },
    /// It has others.
    #[error("MCP server `{server}` has no prompt `{name}`")]
    Unknown {
        /// The server.
        server: ServerName,
        /// What was asked for, bounded.
        name: String,
        /// Its prompts with names like that.
        nearest: Vec<String>,
        /// What kept the list from being whole, if anything.
        notes: Vec<String>,
    },
    /// It did not say which it has.
    #[error(transparent)]
    Mcp(#[from] McpError),
}

/// What is wrong with arguments (`P-02`, `P-30`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A word that is not `key=value`.
    #[error("`{0}` is not `KEY=VALUE`")]
    NotAPair(String),
    /// `=value`
    #[error("`{0}` has no key before its `=`")]
    EmptyKey(String),
    /// A key came twice.
    #[error("`{0}` is given twice")]
    Repeated(String),
    /// The prompt does not declare it.
    #[error("the prompt has no argument `{key}`{}", near(.nearest.as_deref()))]
    Undeclared {
        /// The key.
        key: String,
        /// The declared one that is like it.
        nearest: Option<String>,
    },
    /// Required ones were left out.
    #[error("the prompt needs {}", listed(.0))]
    Missing(Vec<String>),
    /// A value that has no text.
    #[error("`{key}` is {got}, and a prompt's arguments are strings")]
    NotText {
        /// The key.
        key: String,
        /// What it is.
        got: &'static str,
    },
}

fn near(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

fn listed(names: &[String]) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    alternatives(&names).replace(" or ", " and ")
}

/// `KEY=VALUE` words as pairs. The first `=` ends the key; a value may be empty, and then it is there.
///
/// # Errors
/// A word without `=`, one without a key, a key that comes twice.
pub fn pairs(words: &[String]) -> Result<Vec<(String, String)>, ArgumentError> {
    let mut pairs: Vec<(String, String)> = Vec::with_capacity(words.len());
    for word in words {
        let quoted = || text::bounded(word, QUOTED_BYTES).into_owned();
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| ArgumentError::NotAPair(quoted()))?;
        if key.is_empty() {
            return Err(ArgumentError::EmptyKey(quoted()));
        }
        if pairs.iter().any(|(known, _)| known == key) {
            return Err(ArgumentError::Repeated(key.to_owned()));
        }
        pairs.push((key.to_owned(), value.to_owned()));
    }
    Ok(pairs)
}

/// Whether every key is declared.
///
/// # Errors
/// The first that is not.
pub fn check_declared(
    declared: &[PromptArgument],
    given: &[(String, String)],
) -> Result<(), ArgumentError> {
    let is_declared = |key: &str| declared.iter().any(|argument| argument.name == key);
    let Some((key, _)) = given.iter().find(|(key, _)| !is_declared(key)) else {
        return Ok(());
    };
    let names = declared.iter().map(|argument| argument.name.as_str());
    let quoted = |key: &str| text::bounded(key, QUOTED_BYTES).into_owned();
    Err(ArgumentError::Undeclared {
        key: quoted(key),
        nearest: nearest(key, names, 1).first().map(|near| quoted(near)),
    })
}

/// The required arguments that were not given; one with an empty value was.
pub fn missing<'d>(
    declared: &'d [PromptArgument],
    given: &[(String, String)],
) -> Vec<&'d PromptArgument> {
    let mut missing: Vec<&PromptArgument> = Vec::new();
    for argument in declared.iter().filter(|argument| argument.required) {
        let is_there = given.iter().any(|(key, _)| *key == argument.name)
            || missing.iter().any(|known| known.name == argument.name);
        if !is_there {
            missing.push(argument);
        }
    }
    missing
}

/// Whether every required argument is given.
///
/// # Errors
/// Those that are not.
pub fn check_required(
    declared: &[PromptArgument],
    given: &[(String, String)],
) -> Result<(), ArgumentError> {
    let missing: Vec<String> = missing(declared, given)
        .into_iter()
        .take(NAMED_ARGUMENTS)
        .map(|argument| text::bounded(&argument.name, QUOTED_BYTES).into_owned())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(ArgumentError::Missing(missing))
}

/// A sentence about what a prompt takes: names, which are required, what they are for.
pub fn takes(declared: &[PromptArgument]) -> String {
    if declared.is_empty() {
        return "it takes no arguments".to_owned();
    }
    let mut arguments: Vec<String> = declared
        .iter()
        .take(NAMED_ARGUMENTS)
        .map(|argument| {
            let name = text::bounded(&argument.name, QUOTED_BYTES);
            let required = if argument.required { " (required)" } else { "" };
            let description = argument.description.as_deref().unwrap_or_default();
            let description = text::bounded(description.trim(), DESCRIPTION_BYTES);
            let colon = if description.is_empty() { "" } else { ": " };
            format!("`{name}`{required}{colon}{description}")
        })
        .collect();
    if let Some(more @ 1..) = declared.len().checked_sub(NAMED_ARGUMENTS) {
        arguments.push(format!("and {more} more"));
    }
    format!("it takes {}", arguments.join(", "))
}

/// The arguments' names, those that are required with a star: `title* note`.
pub fn starred(declared: &[PromptArgument]) -> String {
    let star = |argument: &PromptArgument| {
        let star = if argument.required { "*" } else { "" };
        format!("{}{star}", argument.name)
    };
    let names: Vec<String> = declared.iter().map(star).collect();
    names.join(" ")
}

/// A model's object as pairs: numbers and booleans as their text, `null` as absent (`M-45`, `P-30`).
fn as_text(arguments: Map<String, Value>) -> Result<Vec<(String, String)>, ArgumentError> {
    let mut pairs = Vec::with_capacity(arguments.len());
    for (key, value) in arguments {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(ArgumentError::NotText {
                    key: text::bounded(&key, QUOTED_BYTES).into_owned(),
                    got: article(&value),
                });
            }
        };
        pairs.push((key, value));
    }
    Ok(pairs)
}

impl From<PromptError> for Error {
    fn from(error: PromptError) -> Self {
        match error {
            PromptError::Mcp(error) => error.into(),
            PromptError::NoPrompts { .. } => Self::mcp(error),
            PromptError::Unknown {
                ref nearest,
                ref notes,
                ..
            } => {
                let near: Vec<&str> = nearest.iter().map(String::as_str).collect();
                let near =
                    (!near.is_empty()).then(|| format!("did you mean {}?", alternatives(&near)));
                let hints = near.into_iter().chain(notes.iter().cloned());
                hints.fold(Self::user(&error), Self::hint)
            }
        }
    }
}

impl McpRuntime {
    /// What the server declares about a prompt, now.
    ///
    /// # Errors
    /// The server has no prompts, not this one, or cannot be asked.
    pub async fn declared_prompt(
        &self,
        server: &ServerName,
        name: &str,
        cx: &CallContext,
    ) -> Result<CatalogItem, PromptError> {
        let target = self.target(server)?;
        if !target.offers(CatalogKind::Prompt) {
            let server = server.clone();
            return Err(PromptError::NoPrompts { server });
        }
        let mut catalog = self
            .catalog_items(server, &[CatalogKind::Prompt], cx)
            .await?;
        let readable = |item: &CatalogItem| item.unreadable.is_none();
        let found = catalog
            .items
            .iter()
            .position(|item| readable(item) && item.id() == name);
        if let Some(at) = found {
            return Ok(catalog.items.swap_remove(at));
        }
        let known = catalog.items.iter().filter(|item| readable(item));
        let bounded = |name: &str| text::bounded(name, QUOTED_BYTES).into_owned();
        Err(PromptError::Unknown {
            server: server.clone(),
            name: bounded(name),
            nearest: nearest(name, known.map(CatalogItem::id), NEAREST)
                .into_iter()
                .map(bounded)
                .collect(),
            notes: catalog.notes,
        })
    }

    /// Gets a prompt with these arguments, which were checked against its declaration. Only they are sent (`P-04`).
    ///
    /// # Errors
    /// The server cannot be asked or refuses. An answer that is no prompt is in [`PromptAnswer::block`].
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: &[(String, String)],
        cx: &CallContext,
    ) -> Result<PromptAnswer, McpError> {
        let target = self.target(server)?;
        let arguments: Map<String, Value> = arguments
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        // An empty object too: some servers take its absence for an error.
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(name)),
            ("arguments".to_owned(), Value::Object(arguments)),
        ]);
        let raw = target.request("prompts/get", params, cx).await?;
        let renderer = target.renderer(self.spill(), cx);
        let owner = server.clone();
        blocking(&cx.abort, move |abort| {
            let block = flatten(&raw, &renderer.policy(abort)).map_err(|error| match error {
                FlattenError::Cancelled => McpError::Cancelled,
                FlattenError::Malformed(reason) => protocol_error(&owner, "prompts/get", reason),
            });
            PromptAnswer { raw, block }
        })
        .await
    }

    /// Renders a prompt for a model (`P-30`, `P-31`): the block as it stands. Asks nobody anything.
    pub async fn prompt(
        &self,
        server: &ServerName,
        request: PromptRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let target = self.target(server)?;
        let declared = self
            .declared_prompt(server, &request.prompt, cx)
            .await
            .map_err(|error| teach(target, error))?;
        let declared = declared.arguments.unwrap_or_default();
        let wrong =
            |error: ArgumentError| McpError::Request(format!("{error}; {}", takes(&declared)));
        let given = as_text(request.arguments).map_err(wrong)?;
        check_declared(&declared, &given).map_err(wrong)?;
        check_required(&declared, &given).map_err(wrong)?;
        let answer = self.get_prompt(server, &request.prompt, &given, cx).await?;
        Ok(ToolOutput::ok(answer.block?.text))
    }
}

/// The error as a model can act on it (`M-56`).
fn teach(target: Target<'_>, error: PromptError) -> McpError {
    match error {
        PromptError::Mcp(error) => error,
        PromptError::NoPrompts { .. } => target.lacks(CatalogKind::Prompt),
        PromptError::Unknown {
            ref nearest,
            ref notes,
            ..
        } => {
            let near: Vec<&str> = nearest.iter().map(String::as_str).collect();
            let mut message = if near.is_empty() {
                let search = target.function(MetaFunction::Search);
                format!("{error}; `{search}` finds what there is")
            } else {
                format!("{error}; did you mean {}?", alternatives(&near))
            };
            for note in notes {
                message = format!("{message} ({note})");
            }
            McpError::Request(message)
        }
    }
}

#[cfg(test)]
#[path = "prompt_tests.rs"]
mod tests;
