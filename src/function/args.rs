//! From what a model passed to typed values, with errors that teach: they name the argument, what it must be and
//! what it was. An optional argument given as JSON `null` is absent (`M-45`).

use serde_json::{Map, Value};

use super::error::FunctionError;
use crate::chat::Arguments;
use crate::utils::{fuzzy, text};

/// How much of a wrong value an error quotes, in bytes.
const QUOTED: usize = 200;

/// The arguments of one call.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    function: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Args<'a> {
    /// Takes the arguments of a call to `function`; `schema` is its JSON Schema, whose properties are all there are.
    pub(crate) fn new(
        function: &'a str,
        arguments: &'a Arguments,
        schema: &Value,
    ) -> Result<Self, FunctionError> {
        match arguments {
            Arguments::Object(map) => Self::of(function, map, schema),
            Arguments::Malformed(raw) => Err(FunctionError::Malformed {
                function: function.to_owned(),
                quoted: text::bounded(raw, QUOTED).into_owned(),
            }),
        }
    }

    /// Takes an object: the arguments, or one inside them that `function` then names.
    pub(crate) fn of(
        function: &'a str,
        map: &'a Map<String, Value>,
        schema: &Value,
    ) -> Result<Self, FunctionError> {
        let known: Vec<&str> = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        for key in map.keys() {
            if !known.contains(&key.as_str()) {
                return Err(unknown_key(function, key, &known));
            }
        }
        Ok(Self { function, map })
    }

    /// The value, unless it is absent or `null`.
    fn value(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// An optional string.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, FunctionError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(key, "a string", other)),
        }
    }

    /// A string that must be there; it may be empty.
    pub(crate) fn required_text(&self, key: &str) -> Result<&'a str, FunctionError> {
        self.text(key)?.ok_or_else(|| self.missing(key))
    }

    /// A string that must be there and say something.
    pub(crate) fn required_word(&self, key: &str) -> Result<&'a str, FunctionError> {
        let text = self.required_text(key)?;
        if text.trim().is_empty() {
            return Err(FunctionError::argument(format!(
                "`{key}` of `{}` must not be empty",
                self.function
            )));
        }
        Ok(text)
    }

    /// An optional integer of at least zero. A float without a fraction counts: models write `10.0`.
    pub(crate) fn unsigned(&self, key: &str) -> Result<Option<u64>, FunctionError> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        if let Some(number) = value.as_u64().or_else(|| whole(value)) {
            return Ok(Some(number));
        }
        let wanted = if value.as_i64().is_some() {
            "an integer of at least 0"
        } else {
            "an integer"
        };
        Err(wrong_type(key, wanted, value))
    }

    /// An optional boolean; absent is `false`.
    pub(crate) fn flag(&self, key: &str) -> Result<bool, FunctionError> {
        match self.value(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(wrong_type(key, "true or false", other)),
        }
    }

    /// An optional object.
    pub(crate) fn object(
        &self,
        key: &str,
    ) -> Result<Option<&'a Map<String, Value>>, FunctionError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(wrong_type(key, "an object", other)),
        }
    }

    /// An array that must be there.
    pub(crate) fn required_array(&self, key: &str) -> Result<&'a [Value], FunctionError> {
        match self.value(key) {
            None => Err(self.missing(key)),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(wrong_type(key, "an array", other)),
        }
    }

    fn missing(&self, key: &str) -> FunctionError {
        FunctionError::argument(format!("`{}` needs the argument `{key}`", self.function))
    }
}

/// `10.0` as 10; anything with a fraction, a sign or beyond exact floats is not an integer.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number between 0 and 2^53"
)]
fn whole(value: &Value) -> Option<u64> {
    let number = value.as_f64()?;
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number))
        .then_some(number as u64)
}

/// `` `offset` must be an integer, got the string "10" ``.
fn wrong_type(key: &str, wanted: &str, got: &Value) -> FunctionError {
    FunctionError::argument(format!("`{key}` must be {wanted}, got {}", describe(got)))
}

/// A value as an error names it.
fn describe(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".to_owned(),
        Value::Bool(flag) => return format!("the boolean {flag}"),
        Value::Number(_) => "the number",
        Value::String(_) => "the string",
        Value::Array(_) => "the array",
        Value::Object(_) => "the object",
    };
    format!("{kind} {}", text::bounded(&value.to_string(), QUOTED))
}

fn unknown_key(function: &str, key: &str, known: &[&str]) -> FunctionError {
    let key = text::bounded(key, QUOTED);
    let hint = match fuzzy::nearest(&key, known.iter().copied(), 1).first() {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    };
    FunctionError::argument(if known.is_empty() {
        format!("`{function}` takes no arguments, got `{key}`")
    } else {
        let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
        format!(
            "`{function}` has no argument `{key}`{hint} (it takes {})",
            names.join(", ")
        )
    })
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
