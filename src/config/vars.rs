//! The variables coyote reads: the process's own, then those of `<config>/.env`. Nothing is ever written to the
//! environment of the process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::utils::{self, Error, ErrorKind, Result};

/// A view of the variables; cheap to clone.
#[derive(Clone, Default)]
pub struct Env {
    process: Arc<BTreeMap<String, String>>,
    file: Arc<BTreeMap<String, String>>,
}

impl Env {
    /// Exactly these variables, for tests and embedders.
    pub fn new<K: Into<String>, V: Into<String>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let process = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            process: Arc::new(process),
            file: Arc::default(),
        }
    }

    /// The variables of this process.
    pub fn process() -> Self {
        Self::new(utils::env::all())
    }

    /// Adds the variables of a `.env` file below the ones that are set (`H-10`). A file that is not there adds none.
    ///
    /// # Errors
    /// The file cannot be read, or a line is not `NAME=value`; the line is named, never its value.
    pub fn with_file(self, file: &Path) -> Result<Self> {
        let text = match utils::fs::read_text(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(error) => {
                return Err(Error::new(ErrorKind::Config, error)
                    .context(format!("cannot read `{}`", file.display())));
            }
        };
        let variables = parse_dotenv(&text).map_err(|line| {
            Error::config(format!(
                "`{}`, line {line}: expected `NAME=value`",
                file.display()
            ))
        })?;
        Ok(Self {
            process: self.process,
            file: Arc::new(variables),
        })
    }

    /// The value of `name`, when it is set and not empty.
    pub fn get(&self, name: &str) -> Option<String> {
        self.process
            .get(name)
            .filter(|value| !value.is_empty())
            .or_else(|| self.file.get(name).filter(|value| !value.is_empty()))
            .cloned()
    }

    /// The same as a function, for modules that take one.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + Send + Sync + use<> {
        let env = self.clone();
        move |name: &str| env.get(name)
    }
}

impl std::fmt::Debug for Env {
    /// Values can be secrets; only their number is shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Env")
            .field("process", &self.process.len())
            .field("file", &self.file.len())
            .finish()
    }
}

/// Parses `NAME=value` lines; the error is the number of the line that is something else.
///
/// `export ` before the name is allowed. A value may be in single quotes (verbatim) or double quotes (`\n`, `\t`,
/// `\"` and `\\` mean what they do in a shell); an unquoted one ends at ` #`. Quoted values stay on one line.
fn parse_dotenv(text: &str) -> std::result::Result<BTreeMap<String, String>, usize> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').ok_or(index + 1)?;
        let name = name.trim();
        if name.is_empty() || name.chars().any(char::is_whitespace) {
            return Err(index + 1);
        }
        let value = dotenv_value(value.trim()).ok_or(index + 1)?;
        variables.insert(name.to_owned(), value);
    }
    Ok(variables)
}

fn dotenv_value(value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix('\'') {
        let (inner, after) = rest.split_once('\'')?;
        return only_comment(after).then(|| inner.to_owned());
    }
    let Some(rest) = value.strip_prefix('"') else {
        let end = value.find(" #").unwrap_or(value.len());
        return Some(value.get(..end)?.trim_end().to_owned());
    };
    let mut unescaped = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return only_comment(chars.as_str()).then_some(unescaped),
            '\\' => match chars.next()? {
                'n' => unescaped.push('\n'),
                't' => unescaped.push('\t'),
                'r' => unescaped.push('\r'),
                c @ ('"' | '\\' | '$' | '`') => unescaped.push(c),
                other => unescaped.extend(['\\', other]),
            },
            c => unescaped.push(c),
        }
    }
    None
}

fn only_comment(after: &str) -> bool {
    let after = after.trim_start();
    after.is_empty() || after.starts_with('#')
}

/// Where `${VAR}` in a value could not be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` needs the variable `{variable}`, which is not set")]
pub struct MissingVariable {
    /// The field, as a path of keys.
    pub field: String,
    /// The variable.
    pub variable: String,
}

/// Expands `${VAR}` and `${VAR:-default}`; everything else, a lone `$` included, stays (`H-11`).
///
/// # Errors
/// A variable is not set and has no default. `field` is only named in that error.
pub fn expand(text: &str, field: &str, env: &Env) -> std::result::Result<String, MissingVariable> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inner, after)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match env.get(name.trim()).or(default.map(str::to_owned)) {
            Some(value) => expanded.push_str(&value),
            None => {
                return Err(MissingVariable {
                    field: field.to_owned(),
                    variable: name.trim().to_owned(),
                });
            }
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The variables that [`expand`] would ask for.
pub(super) fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in text.split("${").skip(1) {
        if let Some((inner, _)) = part.split_once('}') {
            let name = inner.split_once(":-").map_or(inner, |(name, _)| name);
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[cfg(test)]
#[path = "vars_tests.rs"]
mod tests;
