//! Names and ids that a provider takes (`H-42`). What is legal passes unchanged; what is not (a name a model made
//! up, an id another provider issued) is replaced by something legal that is the same every time.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::chat::FunctionDeclaration;

/// What a wire takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The longest call id in bytes.
    pub(super) max_id: usize,
    /// Whether ids may hold anything but `[A-Za-z0-9_-]`.
    pub(super) any_id: bool,
    /// Whether a function's name must begin with a letter or `_`.
    pub(super) name_starts_with_letter: bool,
}

const MAX_NAME: usize = 64;

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// `name` if legal, else a legal stand-in.
pub(super) fn name(name: &str, rules: &Rules) -> String {
    let starts_well = !rules.name_starts_with_letter
        || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !name.is_empty() && name.len() <= MAX_NAME && starts_well && name.chars().all(is_word) {
        return name.to_owned();
    }
    let stem: String = name
        .chars()
        .map(|c| if is_word(c) { c } else { '_' })
        .take(MAX_NAME - 11)
        .collect();
    format!("f_{stem}_{}", digest(name, 8))
}

/// `id` if legal, else a legal stand-in.
pub(super) fn id(id: &str, rules: &Rules) -> String {
    let legal =
        !id.is_empty() && id.len() <= rules.max_id && (rules.any_id || id.chars().all(is_word));
    if legal {
        id.to_owned()
    } else if rules.max_id < 16 {
        digest(id, rules.max_id)
    } else {
        format!("call_{}", digest(id, 24.min(rules.max_id - 5)))
    }
}

fn digest(text: &str, length: usize) -> String {
    use std::fmt::Write as _;
    let mut hex = String::new();
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(length);
    hex
}

/// Declared names that were replaced, to find the way back.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    pub(super) fn new(tools: &[FunctionDeclaration], rules: &Rules) -> Self {
        Self(
            tools
                .iter()
                .filter_map(|tool| {
                    let sent = name(&tool.name, rules);
                    (sent != tool.name).then(|| (sent, tool.name.clone()))
                })
                .collect(),
        )
    }

    /// The declared name behind a name that a model used.
    pub(super) fn declared(&self, used: String) -> String {
        self.0.get(&used).cloned().unwrap_or(used)
    }
}

#[cfg(test)]
#[path = "legal_tests.rs"]
mod tests;
