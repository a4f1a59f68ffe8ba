//! `fs_patch`: exact text replaced by other text, all edits or none.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};

use super::{LocalTool, Spec, approve, blocking, io_failure, read, resolve, write};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::function::permission::detail_lines;
use crate::utils::{AbortToken, text};

/// Larger files are not patched, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;

pub(super) fn spec() -> Spec {
    Spec {
        description: "Changes part of a text file: each edit replaces the text `search`, which must occur exactly \
                      once, by `replace`. Edits are applied in order, all or none. Copy `search` exactly from the \
                      file, with its indentation, and with enough lines around to make it unique.",
        properties: json!({
            "path": { "type": "string", "description": "Path of the file" },
            "edits": {
                "type": "array", "minItems": 1,
                "description": "What to replace",
                "items": {
                    "type": "object",
                    "properties": {
                        "search": { "type": "string", "description": "Text in the file, exactly as it is there" },
                        "replace": { "type": "string", "description": "What stands there afterwards; empty removes it" },
                        "all": {
                            "type": "boolean", "default": false,
                            "description": "Replace every occurrence instead of requiring exactly one"
                        },
                    },
                    "required": ["search", "replace"],
                },
            },
        }),
        required: &["path", "edits"],
    }
}

/// One replacement.
#[derive(Debug, PartialEq)]
struct Edit {
    search: String,
    replace: String,
    all: bool,
}

pub(super) async fn patch(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.required_word("path")?);
    let edits = edits(args.required_array("edits")?)?;
    let target = path.clone();
    let (before, after, count, preview) = blocking(env, move |stop| {
        let before = load(&target)?;
        let (after, count) = apply(&before, &edits, &target, stop)?;
        Ok((before, after, count, preview(&edits)))
    })
    .await?;
    if before == after {
        return Err(FunctionError::failed("the edits change nothing"));
    }
    let title = format!(
        "change the file `{}` in {}",
        path.display(),
        text::plural(count, "place")
    );
    let details = detail_lines(preview.iter().map(String::as_str));
    approve(env, LocalTool::FsPatch, title, details).await?;
    blocking(env, move |_| {
        // The question may have been open for long: what was read must still be what is there.
        if load(&path)? != before {
            return Err(FunctionError::failed(format!(
                "`{}` was changed meanwhile; read it again",
                path.display()
            )));
        }
        write::store(&path, after.as_bytes())?;
        let places = text::plural(count, "place");
        Ok(format!("changed `{}` in {places}", path.display()))
    })
    .await
}

fn edits(items: &[Value]) -> Result<Vec<Edit>, FunctionError> {
    if items.is_empty() {
        return Err(FunctionError::argument("`edits` must not be empty"));
    }
    let schema = spec().properties;
    let schema = schema.pointer("/edits/items").unwrap_or(&Value::Null);
    items
        .iter()
        .enumerate()
        .map(|(at, item)| {
            let name = format!("edits[{at}]");
            let Value::Object(map) = item else {
                return Err(FunctionError::argument(format!(
                    "`{name}` must be an object"
                )));
            };
            let args = Args::of(&name, map, schema)?;
            let search = args.required_text("search")?;
            if search.is_empty() {
                return Err(FunctionError::argument(format!(
                    "`search` of `{name}` must not be empty; fs_write makes new files"
                )));
            }
            Ok(Edit {
                search: search.to_owned(),
                replace: args.required_text("replace")?.to_owned(),
                all: args.flag("all")?,
            })
        })
        .collect()
}

fn load(path: &Path) -> Result<String, FunctionError> {
    let (file, size) = read::open(path)?;
    if size > FILE_MAX {
        return Err(FunctionError::failed(format!(
            "`{}` has {size} bytes; files over 16 MiB are not patched",
            path.display()
        )));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX)
        .read_to_end(&mut bytes)
        .map_err(|error| io_failure("read", path, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| FunctionError::failed(format!("`{}` is not UTF-8 text", path.display())))
}

/// The text after all edits and how many places changed.
fn apply(
    before: &str,
    edits: &[Edit],
    path: &Path,
    stop: &AbortToken,
) -> Result<(String, usize), FunctionError> {
    let mut text = before.to_owned();
    let mut places = 0_usize;
    for (at, edit) in edits.iter().enumerate() {
        if stop.is_cancelled() {
            return Err(FunctionError::Cancelled);
        }
        let (search, replace) = with_line_ends_of(&text, edit);
        let count = text.matches(search.as_str()).count();
        match count {
            0 => return Err(not_found(&text, edit, at, path)),
            1 => text = text.replacen(search.as_str(), &replace, 1),
            _ if edit.all => text = text.replace(search.as_str(), &replace),
            _ => {
                return Err(FunctionError::failed(format!(
                    "`search` of `edits[{at}]` occurs {count} times in `{}`; add lines around it to make it \
                     unique, or set `all`. Nothing was changed",
                    path.display()
                )));
            }
        }
        places = places.saturating_add(count);
        if text.len() as u64 > FILE_MAX.saturating_mul(2) {
            return Err(FunctionError::failed("the file would become too large"));
        }
    }
    Ok((text, places))
}

/// Models write `\n`; in a file whose lines end in `\r\n` both texts get these line ends.
fn with_line_ends_of(text: &str, edit: &Edit) -> (String, String) {
    let windows = text.contains("\r\n") && !edit.search.contains('\r');
    if !windows || text.contains(&edit.search) && !edit.replace.contains('\n') {
        return (edit.search.clone(), edit.replace.clone());
    }
    let crlf = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    (crlf(&edit.search), crlf(&edit.replace))
}

fn not_found(text: &str, edit: &Edit, at: usize, path: &Path) -> FunctionError {
    let first = edit.search.lines().find(|line| !line.trim().is_empty());
    let similar = first.map(str::trim).and_then(|wanted| {
        text.lines()
            .enumerate()
            .find(|(_, line)| line.trim() == wanted)
            .map(|(number, line)| (number.saturating_add(1), line))
    });
    let hint = match similar {
        Some((number, line)) => format!(
            "; line {number} is similar: `{}` (compare the indentation and the lines after it)",
            text::bounded(line, 200)
        ),
        None => "; read the file and copy the text exactly".to_owned(),
    };
    FunctionError::failed(format!(
        "`search` of `edits[{at}]` does not occur in `{}`{hint}. Nothing was changed",
        path.display()
    ))
}

fn preview(edits: &[Edit]) -> Vec<String> {
    edits
        .iter()
        .flat_map(|edit| {
            let removed = edit.search.lines().map(|line| format!("- {line}"));
            let added = edit.replace.lines().map(|line| format!("+ {line}"));
            removed.chain(added)
        })
        .take(200)
        .collect()
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
