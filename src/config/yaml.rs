//! YAML in and out, with positions in errors and with one set of bounds for files coyote wrote itself.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::utils::{Error, ErrorKind, Result};

/// How deep a file of ours nests: what JSON we accept from servers and models may (128), and the file around it.
const OWN_DEPTH: usize = 160;
/// Nodes and bytes of a file of ours: bounded by what fits into memory, and conversations with images are long.
const OWN_SIZE: usize = 1 << 30;
/// What the aliases (`*name`) of a file may add up to, in events of the parser: nobody repeats more by hand.
const REPLAYED: usize = 50_000;
/// Address space for the recursion that takes; only what is used becomes memory.
const DEEP_STACK: usize = 64 << 20;

/// Reads a hand-written file; an empty one is the default. The error has file, line, column and the lines around.
pub(super) fn read_or_default<T: DeserializeOwned + Default>(text: &str, file: &Path) -> Result<T> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    };
    if text.lines().all(blank) {
        return Ok(T::default());
    }
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| positioned(&error, file))
}

/// Reads a file that coyote wrote: as large and as deep as conversations get.
pub(super) fn read_own<T: DeserializeOwned + Send>(text: &str, file: &Path) -> Result<T> {
    deep(|| {
        let options = serde_saphyr::options! {
            alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPLAYED },
            budget: serde_saphyr::budget! {
                max_depth: OWN_DEPTH,
                max_nodes: OWN_SIZE,
                max_events: OWN_SIZE,
                max_total_scalar_bytes: OWN_SIZE,
            },
        };
        serde_saphyr::from_str_with_options(text, options).map_err(|error| positioned(&error, file))
    })
}

/// Writes a value.
pub(super) fn write<T: Serialize + Sync>(value: &T) -> Result<String> {
    deep(|| serde_saphyr::to_string(value).map_err(|error| Error::new(ErrorKind::Internal, error)))
}

/// Runs `work` where its recursion has room: a value as deep as JSON may be costs more stack than the threads of the
/// runtime have.
fn deep<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, work)
            .map_err(|error| Error::new(ErrorKind::Internal, error))?;
        thread
            .join()
            .unwrap_or_else(|_| Err(Error::internal("reading or writing YAML failed")))
    })
}

fn positioned(error: &serde_saphyr::Error, file: &Path) -> Error {
    let place = error.location().map_or_else(String::new, |location| {
        format!(":{}:{}", location.line(), location.column())
    });
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let formatter = serde_saphyr::UserMessageFormatter;
    let options = serde_saphyr::render_options! {
        formatter: &formatter,
        source_name: Some(&name),
    };
    let rendered = error.render_with_options(options);
    let reason = rendered.strip_prefix("error: ").unwrap_or(&rendered);
    Error::config(without_secrets(reason))
        .context(format!("`{}{place}` cannot be used", file.display()))
}

/// The rendered lines of a file without what stands behind a key that is likely to hold a secret, on that line and on
/// the next.
fn without_secrets(rendered: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut continues = false;
    for line in rendered.lines() {
        let (margin, text) = line.split_once('|').unwrap_or(("", line));
        let is_source = margin.trim().parse::<u64>().is_ok();
        match secret_value(text).filter(|_| is_source) {
            Some(end) => {
                lines.push(format!(
                    "{margin}|{} …",
                    text.get(..end).unwrap_or_default()
                ));
                continues = text.get(end..).is_some_and(opens_a_block);
            }
            None if is_source && continues => {
                lines.push(format!("{margin}| …"));
                continues = false;
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// Whether a value is still to come: nothing, or the mark of a block of text.
fn opens_a_block(value: &str) -> bool {
    matches!(value.trim().chars().next(), None | Some('|' | '>'))
}

/// Where the value begins on a line whose key is likely to hold a secret.
fn secret_value(line: &str) -> Option<usize> {
    const SECRET: [&str; 5] = ["key", "auth", "token", "secret", "password"];
    let folded = line.to_ascii_lowercase();
    let word = SECRET.iter().filter_map(|word| folded.find(word)).min()?;
    let colon = folded.get(word..)?.find(':')?;
    Some(word + colon + 1)
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
