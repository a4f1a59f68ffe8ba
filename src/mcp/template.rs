//! URI templates, level 1 of RFC 6570 (`M-51`): `{name}` and nothing else is expanded.
//!
//! The whole grammar is understood, so that a template which asks for more is refused by name and its variables can
//! be listed; only the first level is expanded, because a model that writes `{?q}` should build the URI itself rather
//! than guess how lists and maps are spelled.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::utils::fuzzy::alternatives;
use crate::utils::text;

/// Longest piece of a template that an error quotes, in bytes.
const QUOTED: usize = 128;
/// How many names an error lists.
const NAMED: usize = 16;

/// A template, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Expression(Expression),
}

/// What stands between two braces.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expression {
    /// With its braces, for errors.
    source: String,
    operator: Option<char>,
    variables: Vec<Variable>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Variable {
    name: String,
    modifier: Option<Modifier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Modifier {
    Prefix,
    Explode,
}

/// Why a template cannot be expanded; the text teaches what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A `{` without its `}`.
    #[error("the expression `{0}` of the URI template is not closed: add the `}}`")]
    Unclosed(String),
    /// A `}` without its `{`, or a `{` within an expression.
    #[error(
        "the URI template has a stray brace at `{0}`: percent-encode it as %7B or %7D if it is meant literally"
    )]
    StrayBrace(String),
    /// What stands between the braces is no variable name.
    #[error(
        "`{0}` is not a variable: a name consists of letters, digits, `_` and inner dots, as in `{{user_id}}`"
    )]
    InvalidName(String),
    /// `{+x}`, `{?x}` and the like.
    #[error(
        "`{expression}` uses the operator `{operator}`: only plain `{{name}}` expressions are expanded (RFC 6570 level 1); write that part of the URI out yourself and pass no argument for it"
    )]
    Operator {
        /// The expression.
        expression: String,
        /// Its operator.
        operator: char,
    },
    /// `{a,b}`
    #[error(
        "`{0}` lists several variables: only plain `{{name}}` expressions are expanded (RFC 6570 level 1); write one expression for each, or that part of the URI out yourself"
    )]
    List(String),
    /// `{x:3}`
    #[error(
        "`{0}` asks for a prefix: only plain `{{name}}` expressions are expanded (RFC 6570 level 1); shorten the value yourself and use `{{name}}`"
    )]
    Prefix(String),
    /// `{x*}`
    #[error(
        "`{0}` asks for an exploded list: only plain `{{name}}` expressions are expanded (RFC 6570 level 1); write that part of the URI out yourself"
    )]
    Explode(String),
    /// Variables without a value.
    #[error("the URI template needs a value for {}: pass it in `arguments`", names(.0))]
    Missing(Vec<String>),
    /// Values without a variable.
    #[error("the URI template does not use {}; {}", names(.unused), has(.variables))]
    Unused {
        /// The arguments too many.
        unused: Vec<String>,
        /// The template's variables.
        variables: Vec<String>,
    },
    /// A value that is no scalar.
    #[error("the value of `{name}` is {found}: it must be a string, a number or a boolean")]
    Value {
        /// The variable.
        name: String,
        /// What was passed.
        found: &'static str,
    },
}

fn names(names: &[String]) -> String {
    let quoted: Vec<_> = names
        .iter()
        .take(NAMED)
        .map(|name| text::bounded(name, QUOTED))
        .collect();
    let quoted: Vec<&str> = quoted.iter().map(AsRef::as_ref).collect();
    alternatives(&quoted).replace(" or ", " and ")
}

fn has(variables: &[String]) -> String {
    if variables.is_empty() {
        "it has no variables".to_owned()
    } else {
        format!("its variables are {}", names(variables))
    }
}

fn quoted(source: &str) -> String {
    text::bounded(source, QUOTED).into_owned()
}

impl Template {
    /// Takes a template of any level apart.
    pub fn parse(template: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, after)) = rest.split_once('{') {
            push_literal(&mut parts, literal)?;
            let Some((inside, following)) = after.split_once('}') else {
                return Err(TemplateError::Unclosed(quoted(&format!("{{{after}"))));
            };
            if inside.contains('{') {
                return Err(TemplateError::StrayBrace(quoted(&format!("{{{inside}}}"))));
            }
            parts.push(Part::Expression(Expression::parse(inside)?));
            rest = following;
        }
        push_literal(&mut parts, rest)?;
        Ok(Self { parts })
    }

    /// The variables' names, each once, in the order in which they appear.
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for variable in self.expressions().flat_map(|e| &e.variables) {
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
        }
        names
    }

    /// Whether every expression is one that [`Self::expand`] can expand.
    pub fn check_level(&self) -> Result<(), TemplateError> {
        self.expressions().try_for_each(Expression::check_level)
    }

    /// The URI: values percent-encoded but for unreserved characters, literals but for what a URI may hold.
    pub fn expand(&self, arguments: &Map<String, Value>) -> Result<String, TemplateError> {
        self.check_level()?;
        let variables = self.variables();
        let missing = owned(
            variables
                .iter()
                .copied()
                .filter(|name| matches!(arguments.get(*name), None | Some(Value::Null))),
        );
        if !missing.is_empty() {
            return Err(TemplateError::Missing(missing));
        }
        let unused = owned(
            arguments
                .iter()
                .filter(|(name, value)| !value.is_null() && !variables.contains(&name.as_str()))
                .map(|(name, _)| name.as_str()),
        );
        if !unused.is_empty() {
            return Err(TemplateError::Unused {
                unused,
                variables: owned(variables.iter().copied()),
            });
        }
        let mut uri = String::new();
        for part in &self.parts {
            match part {
                Part::Literal(literal) => encode_literal(literal, &mut uri),
                Part::Expression(expression) => {
                    for variable in &expression.variables {
                        let value = scalar(&variable.name, arguments.get(&variable.name))?;
                        encode_value(&value, &mut uri);
                    }
                }
            }
        }
        Ok(uri)
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }
}

fn owned<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}

fn push_literal(parts: &mut Vec<Part>, literal: &str) -> Result<(), TemplateError> {
    if literal.contains('}') {
        return Err(TemplateError::StrayBrace(quoted(literal)));
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.to_owned()));
    }
    Ok(())
}

impl Expression {
    fn parse(inside: &str) -> Result<Self, TemplateError> {
        let source = format!("{{{inside}}}");
        let invalid = || TemplateError::InvalidName(quoted(&source));
        let first = inside.chars().next().ok_or_else(invalid)?;
        // The last six are reserved by the RFC for extensions; no template may use them.
        let operator = "+#./;?&=,!@|".contains(first).then_some(first);
        let list = match operator {
            Some(operator) => inside.strip_prefix(operator).unwrap_or(inside),
            None => inside,
        };
        let variables = list
            .split(',')
            .map(|item| Variable::parse(item).ok_or_else(invalid))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            source,
            operator,
            variables,
        })
    }

    fn check_level(&self) -> Result<(), TemplateError> {
        let expression = quoted(&self.source);
        if let Some(operator) = self.operator {
            return Err(TemplateError::Operator {
                expression,
                operator,
            });
        }
        match self.variables.as_slice() {
            [only] => match only.modifier {
                None => Ok(()),
                Some(Modifier::Prefix) => Err(TemplateError::Prefix(expression)),
                Some(Modifier::Explode) => Err(TemplateError::Explode(expression)),
            },
            _ => Err(TemplateError::List(expression)),
        }
    }
}

impl Variable {
    fn parse(item: &str) -> Option<Self> {
        let (name, modifier) = if let Some(name) = item.strip_suffix('*') {
            (name, Some(Modifier::Explode))
        } else if let Some((name, length)) = item.split_once(':') {
            let legal = (1..=4).contains(&length.len())
                && length.chars().all(|c| c.is_ascii_digit())
                && !length.starts_with('0');
            if !legal {
                return None;
            }
            (name, Some(Modifier::Prefix))
        } else {
            (item, None)
        };
        is_name(name).then(|| Self {
            name: name.to_owned(),
            modifier,
        })
    }
}

/// `varname` of the RFC: letters, digits, `_` and percent-encoded bytes, with single dots inside.
fn is_name(name: &str) -> bool {
    name.split('.').all(|piece| {
        !piece.is_empty()
            && piece
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '%'))
            && piece
                .split('%')
                .skip(1)
                .all(|after| starts_with_two_hex(after.as_bytes()))
    })
}

fn starts_with_two_hex(bytes: &[u8]) -> bool {
    matches!(bytes, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

fn scalar(name: &str, value: Option<&Value>) -> Result<String, TemplateError> {
    let found = match value {
        Some(Value::String(value)) => return Ok(value.clone()),
        Some(Value::Number(value)) => return Ok(value.to_string()),
        Some(Value::Bool(value)) => return Ok(value.to_string()),
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
        Some(Value::Null) | None => "missing",
    };
    Err(TemplateError::Value {
        name: quoted(name),
        found,
    })
}

fn encode_value(value: &str, uri: &mut String) {
    for byte in value.bytes() {
        if is_unreserved(byte) {
            uri.push(char::from(byte));
        } else {
            encode_byte(byte, uri);
        }
    }
}

/// Literals keep reserved characters and what is percent-encoded already.
fn encode_literal(literal: &str, uri: &mut String) {
    let bytes = literal.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let encoded_already =
            byte == b'%' && starts_with_two_hex(bytes.get(index + 1..).unwrap_or_default());
        if is_unreserved(byte) || b":/?#[]@!$&'()*+,;=".contains(&byte) || encoded_already {
            uri.push(char::from(byte));
        } else {
            encode_byte(byte, uri);
        }
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn encode_byte(byte: u8, uri: &mut String) {
    let _ = write!(uri, "%{byte:02X}");
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
