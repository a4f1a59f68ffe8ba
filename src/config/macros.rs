//! Macros: lines that are done as if somebody had typed them, with variables filled in (`H-34`).
//!
//! The file and what its variables become are this module's business; doing the lines is the REPL's.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::app_config::unknown_key;
use super::paths::{NameKind, Paths};
use super::yaml;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::words::{self, SplitError};
use crate::utils::{Error, ErrorKind, Result};

/// Names that stay free for words after `.macro`.
pub const RESERVED_MACROS: [&str; 2] = ["enable", "disable"];

const KEYS: [&str; 4] = ["description", "isolated", "variables", "steps"];
const VARIABLE_KEYS: [&str; 3] = ["name", "default", "rest"];

/// What fills a `{{name}}` in the steps.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MacroVariable {
    /// Its name.
    pub name: String,
    /// What it is when nothing is given; without one, something must be.
    #[serde(default)]
    pub default: Option<String>,
    /// Whether it takes all that is left of the line; only the last one may.
    #[serde(default)]
    pub rest: bool,
}

#[derive(Debug, Deserialize, Default)]
struct Raw {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    isolated: Option<bool>,
    #[serde(default)]
    variables: Option<Vec<MacroVariable>>,
    #[serde(default)]
    steps: Option<Vec<String>>,
}

/// A macro.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    name: String,
    file: PathBuf,
    description: Option<String>,
    isolated: bool,
    variables: Vec<MacroVariable>,
    steps: Vec<String>,
}

impl Macro {
    /// Reads the text of a macro file; `file` is named in errors and warnings.
    ///
    /// # Errors
    /// It is no mapping of the right types, has no steps, or its variables contradict each other.
    pub fn parse(name: &str, text: &str, file: &Path) -> Result<(Self, Vec<String>)> {
        let raw: Raw = yaml::read_or_default(text, file)?;
        let warnings = unknown_keys(yaml::read_or_default(text, file)?, file);
        let found = Self {
            name: name.to_owned(),
            file: file.to_owned(),
            description: raw.description.filter(|text| !text.trim().is_empty()),
            isolated: raw.isolated.unwrap_or(true),
            variables: raw.variables.unwrap_or_default(),
            steps: raw.steps.unwrap_or_default(),
        };
        match found.contradiction() {
            None => Ok((found, warnings)),
            Some(wrong) => {
                Err(Error::config(wrong).context(format!("`{}` cannot be used", file.display())))
            }
        }
    }

    fn contradiction(&self) -> Option<String> {
        if self.steps.iter().all(|step| step.trim().is_empty()) {
            return Some("`steps` has no line to do".to_owned());
        }
        for (index, variable) in self.variables.iter().enumerate() {
            let (before, after) = self.variables.split_at_checked(index)?;
            let name = &variable.name;
            if name.trim().is_empty() || name.contains(['{', '}']) {
                return Some(format!("`{name}` cannot be the name of a variable"));
            }
            if before.iter().any(|other| other.name == *name) {
                return Some(format!("the variable `{name}` is there twice"));
            }
            if variable.rest && after.len() > 1 {
                return Some(format!(
                    "only the last variable can have `rest`, and `{name}` is not it"
                ));
            }
        }
        None
    }

    /// The macro of that name.
    ///
    /// # Errors
    /// There is none, with the nearest names; the name is reserved; or its file cannot be used.
    pub fn load(paths: &Paths, name: &str) -> Result<(Self, Vec<String>)> {
        let file = paths.macro_file(name)?;
        if RESERVED_MACROS.contains(&name) {
            return Err(
                Error::user(format!("`{name}` is reserved and cannot be a macro"))
                    .hint(format!("rename `{}`", file.display())),
            );
        }
        match std::fs::read_to_string(&file) {
            Ok(text) => Self::parse(name, &text, &file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unknown(paths, name)),
            Err(error) => Err(Error::new(ErrorKind::Config, error)
                .context(format!("cannot read `{}`", file.display()))),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What it says about itself.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Whether it runs in a context of its own, which leaves nothing behind.
    pub fn is_isolated(&self) -> bool {
        self.isolated
    }

    /// How it is used, without a command in front: `standup [since] [extra...]`.
    pub fn usage(&self) -> String {
        let mut usage = words::quote(&self.name).into_owned();
        for variable in &self.variables {
            let dots = if variable.rest { "..." } else { "" };
            let name = variable.name.to_uppercase();
            let (open, close) = match variable.default {
                Some(_) => ("[", "]"),
                None => ("", ""),
            };
            usage.extend([" ", open, name.as_str(), dots, close]);
        }
        usage
    }

    /// A line's arguments as values for the variables. What `rest` takes is taken as it stands, apostrophes included,
    /// unless it is one quoted word.
    ///
    /// # Errors
    /// A quote before that is never closed.
    pub fn split(&self, text: &str) -> std::result::Result<Vec<String>, SplitError> {
        let text = text.trim();
        let Some(single) = (self.variables.last())
            .filter(|last| last.rest)
            .map(|_| self.variables.len() - 1)
        else {
            return Ok(texts(words::split(text)?));
        };
        let partial = words::split_partial(text);
        let count = partial.done.len() + usize::from(!partial.last.span.is_empty());
        if count <= single {
            return Ok(texts(words::split(text)?));
        }
        let start =
            (partial.done.get(single)).map_or(partial.last.span.start, |word| word.span.start);
        let mut values = texts(partial.done.into_iter().take(single).collect());
        let rest = text.get(start..).unwrap_or_default();
        values.push(match words::split(rest).as_deref() {
            Ok([word]) => word.text.clone(),
            _ => rest.to_owned(),
        });
        Ok(values)
    }

    /// The lines to do for these arguments: each `{{name}}` of a variable is its value, put in once; other braces
    /// stay.
    ///
    /// # Errors
    /// A value is missing or there is one too many; the error says what the macro takes, `command` in front.
    pub fn steps(&self, arguments: &[String], command: &str) -> Result<Vec<String>> {
        let values = self.values(arguments).map_err(|wrong| {
            Error::user(format!("macro `{}`: {wrong}", self.name))
                .hint(format!("`{command} {}` is how it is used", self.usage()))
        })?;
        let fill = |step: &String| interpolate(step, &values);
        Ok(self.steps.iter().map(fill).collect())
    }

    fn values(&self, arguments: &[String]) -> std::result::Result<Vec<(&str, String)>, String> {
        let mut given = arguments.iter();
        let mut values = Vec::new();
        for variable in &self.variables {
            let value = if variable.rest {
                let rest: Vec<&str> = given.by_ref().map(String::as_str).collect();
                (!rest.is_empty()).then(|| rest.join(" "))
            } else {
                given.next().cloned()
            };
            let value = value
                .or_else(|| variable.default.clone())
                .ok_or_else(|| format!("`{}` is missing", variable.name))?;
            values.push((variable.name.as_str(), value));
        }
        match given.next() {
            Some(extra) => Err(format!("`{extra}` is one argument too many")),
            None => Ok(values),
        }
    }
}

fn texts(words: Vec<words::Word>) -> Vec<String> {
    words.into_iter().map(|word| word.text).collect()
}

/// Puts values in. They are not looked at again: a value that has braces stays as it was given.
fn interpolate(step: &str, values: &[(&str, String)]) -> String {
    let mut result = String::with_capacity(step.len());
    let mut rest = step;
    while let Some((before, after)) = rest.split_once("{{") {
        result.push_str(before);
        let known = after.split_once("}}").and_then(|(name, after)| {
            let value = values.iter().find(|(known, _)| *known == name.trim())?;
            Some((value.1.as_str(), after))
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

fn unknown(paths: &Paths, name: &str) -> Error {
    let names = paths.macro_names();
    let near = alternatives(&nearest(name, names.iter().map(String::as_str), 3));
    let error = Error::user(format!("there is no {} `{name}`", NameKind::Macro.as_str()));
    if near.is_empty() {
        error.hint(format!(
            "`.list macros` shows them; files go to {}",
            paths.macros_dir().display()
        ))
    } else {
        error.hint(format!("did you mean {near}?"))
    }
}

fn unknown_keys(file_keys: Option<Value>, file: &Path) -> Vec<String> {
    let Some(Value::Object(keys)) = file_keys else {
        return Vec::new();
    };
    let strange = |keys: &serde_json::Map<String, Value>, known: &[&'static str]| -> Vec<String> {
        (keys.keys())
            .filter(|key| !known.contains(&key.as_str()))
            .map(|key| unknown_key(key, known.iter().copied(), file))
            .collect()
    };
    let mut warnings = strange(&keys, &KEYS);
    let variables = keys.get("variables").and_then(Value::as_array);
    for variable in variables.into_iter().flatten().filter_map(Value::as_object) {
        warnings.extend(strange(variable, &VARIABLE_KEYS));
    }
    warnings
}

#[cfg(test)]
#[path = "macros_tests.rs"]
mod tests;
