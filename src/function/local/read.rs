//! `fs_cat` and `fs_ls`: a page of a file, the entries of a directory.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Spec, blocking, bounds, io_failure, resolve};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::utils::{AbortToken, text};

/// Most entries of a listing.
const ENTRIES: usize = 1_000;

pub(super) fn cat_spec() -> Spec {
    Spec {
        description: "Reads a text file. Long files come in pages: when the last line says `next_offset`, call \
                      again with that `offset`. Use fs_grep to find lines.",
        properties: json!({
            "path": { "type": "string", "description": "Path of the file" },
            "offset": {
                "type": "integer", "default": 0, "minimum": 0,
                "description": "Byte at which the page begins"
            },
            "max_bytes": {
                "type": "integer", "default": bounds::PAGE,
                "description": "Most bytes to return (at most 204800)"
            },
        }),
        required: &["path"],
    }
}

pub(super) fn ls_spec() -> Spec {
    Spec {
        description: "Lists a directory: one entry a line, directories end in `/`, files are followed by their \
                      size in bytes.",
        properties: json!({
            "path": { "type": "string", "description": "Path of the directory; the working directory if left out" },
        }),
        required: &[],
    }
}

pub(super) async fn cat(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.required_word("path")?);
    let offset = args.unsigned("offset")?.unwrap_or(0);
    let max = bounds::page(args.unsigned("max_bytes")?, bounds::room(&env.limits));
    blocking(env, move |_| read_page(&path, offset, max)).await
}

/// Opens a regular file; anything else (a device, a pipe) could block for ever or never end.
pub(super) fn open(path: &Path) -> Result<(File, u64), FunctionError> {
    let facts = fs::metadata(path).map_err(|error| io_failure("read", path, &error))?;
    if facts.is_dir() {
        return Err(FunctionError::failed(format!(
            "`{}` is a directory; list it with fs_ls",
            path.display()
        )));
    }
    if !facts.is_file() {
        return Err(FunctionError::failed(format!(
            "`{}` is not a regular file",
            path.display()
        )));
    }
    let file = File::open(path).map_err(|error| io_failure("read", path, &error))?;
    Ok((file, facts.len()))
}

fn read_page(path: &Path, offset: u64, max: usize) -> Result<String, FunctionError> {
    let (mut file, size) = open(path)?;
    let failed = |error: std::io::Error| io_failure("read", path, &error);
    if file.seek(SeekFrom::Start(offset)).is_err() {
        return Ok(bounds::past_end(offset, size)); // beyond what the file system can address
    }
    let mut bytes = Vec::new();
    // Three bytes more on either side, so that both ends can be moved to a character's edge.
    let window = (max as u64).saturating_add(6);
    file.take(window).read_to_end(&mut bytes).map_err(failed)?;
    let total = size.max(offset.saturating_add(bytes.len() as u64));
    if bytes.is_empty() {
        return Ok(bounds::past_end(offset, size));
    }
    if bytes.contains(&0) {
        return Err(FunctionError::failed(format!(
            "`{}` is not text ({total} bytes)",
            path.display()
        )));
    }
    let skipped = if offset == 0 {
        0
    } else {
        continuation_bytes(&bytes)
    };
    let rest = bytes.get(skipped..).unwrap_or_default();
    let page = rest.get(..character_end(rest, max)).unwrap_or_default();
    let start = offset.saturating_add(skipped as u64);
    let shown = String::from_utf8_lossy(page);
    let mut answer = bounds::with_footer(&shown, start, page.len() as u64, total);
    if shown.len() != page.len() {
        answer.push_str("\n[not valid UTF-8: other bytes are shown as \u{FFFD}]");
    }
    Ok(answer)
}

/// How many bytes at the beginning belong to a character that began before.
fn continuation_bytes(bytes: &[u8]) -> usize {
    let count = bytes
        .iter()
        .take_while(|byte| **byte & 0xC0 == 0x80)
        .count();
    if count <= 3 { count } else { 0 }
}

/// The greatest end of at most `max` bytes that does not fall inside a character.
fn character_end(bytes: &[u8], max: usize) -> usize {
    if bytes.len() <= max {
        return bytes.len();
    }
    (max.saturating_sub(3)..=max)
        .rev()
        .find(|end| bytes.get(*end).is_none_or(|byte| byte & 0xC0 != 0x80))
        .unwrap_or(max)
}

pub(super) async fn ls(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.text("path")?.unwrap_or("."));
    let room = bounds::room(&env.limits);
    blocking(env, move |stop| list(&path, room, stop)).await
}

fn list(path: &Path, room: usize, stop: &AbortToken) -> Result<String, FunctionError> {
    let entries = fs::read_dir(path).map_err(|error| io_failure("list", path, &error))?;
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in entries {
        if stop.is_cancelled() {
            return Err(FunctionError::Cancelled);
        }
        paths.extend(entry.ok().map(|entry| entry.path()));
    }
    paths.sort();
    if paths.is_empty() {
        return Ok("[empty]".to_owned());
    }
    let mut lines: Vec<String> = paths.iter().take(ENTRIES).map(|path| line(path)).collect();
    if let Some(more @ 1..) = paths.len().checked_sub(ENTRIES) {
        let word = if more == 1 { "entry" } else { "entries" };
        lines.push(format!("[{more} more {word}; narrow it down with fs_glob]"));
    }
    Ok(bounds::whole(lines.join("\n"), room))
}

fn line(path: &Path) -> String {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let Ok(facts) = fs::symlink_metadata(path) else {
        return name;
    };
    if facts.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return format!(
            "{name} -> {}",
            text::bounded(&target.to_string_lossy(), 400)
        );
    }
    if facts.is_dir() {
        return format!("{name}/");
    }
    format!("{name} {}", facts.len())
}
