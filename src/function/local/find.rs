//! `fs_glob` and `fs_grep`: files by name, lines by content. Both walk like ripgrep does: what `.gitignore` names
//! and `.git` itself stay out.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use serde_json::json;

use super::{Spec, blocking, bounds, io_failure, read, resolve};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::utils::AbortToken;
use crate::utils::grep::Filter;
use crate::utils::text;

/// Most paths that are returned.
const PATHS: usize = 1_000;

/// Larger files are not searched: the filter needs them in memory.
const SEARCHED_MAX: u64 = 50 * 1024 * 1024;

/// A file with a NUL byte in its beginning is binary.
const PROBE: usize = 8 * 1024;

pub(super) fn glob_spec() -> Spec {
    Spec {
        description: "Finds files by name. Files that .gitignore names are left out.",
        properties: json!({
            "pattern": {
                "type": "string",
                "description": "Glob, relative to `path`: `*.rs` finds files of that name at any depth, \
                                `src/*.rs` only there, `src/**/*.rs` anywhere below, `*.{yaml,yml}` either"
            },
            "path": {
                "type": "string",
                "description": "Directory to search; the working directory if left out"
            },
        }),
        required: &["pattern"],
    }
}

pub(super) fn grep_spec() -> Spec {
    Spec {
        description: "Finds lines by a regular expression, in one file or in all files below a directory. Matching \
                      lines come as `number:text` with two lines of context as `number-text`. Binary files and \
                      files that .gitignore names are left out.",
        properties: json!({
            "pattern": { "type": "string", "description": "Regular expression, matched line by line; `(?i)` ignores case" },
            "path": {
                "type": "string",
                "description": "File or directory to search; the working directory if left out"
            },
            "glob": { "type": "string", "description": "Only files whose name fits, for example `*.rs`" },
        }),
        required: &["pattern"],
    }
}

pub(super) async fn glob(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let matcher = matcher("pattern", args.required_word("pattern")?)?;
    let base = resolve(&env.cwd, args.text("path")?.unwrap_or("."));
    let room = bounds::room(&env.limits);
    blocking(env, move |stop| find(&base, &matcher, room, stop)).await
}

/// Compiles a glob; one without a separator fits at any depth.
fn matcher(argument: &str, pattern: &str) -> Result<GlobMatcher, FunctionError> {
    let anywhere;
    let full = if pattern.contains('/') {
        pattern.trim_start_matches("./").trim_start_matches('/')
    } else {
        anywhere = format!("**/{pattern}");
        &anywhere
    };
    GlobBuilder::new(full)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| {
            FunctionError::argument(format!(
                "`{argument}` is not a glob: {} in `{}`",
                error.kind(),
                text::bounded(pattern, 200)
            ))
        })
}

fn find(
    base: &Path,
    matcher: &GlobMatcher,
    room: usize,
    stop: &AbortToken,
) -> Result<String, FunctionError> {
    let mut found: Vec<String> = Vec::new();
    let mut more = false;
    for path in files(base)? {
        if stop.is_cancelled() {
            return Err(FunctionError::Cancelled);
        }
        let relative = path.strip_prefix(base).unwrap_or(&path);
        if matcher.is_match(relative) {
            if found.len() == PATHS {
                more = true;
                break;
            }
            found.push(relative.to_string_lossy().into_owned());
        }
    }
    if found.is_empty() {
        return Ok(format!("[no file below `{}` fits]", base.display()));
    }
    let mut answer = found.join("\n");
    if more {
        answer.push_str("\n[there are more; use a narrower pattern]");
    }
    Ok(bounds::whole(answer, room))
}

/// The regular files below `base`, in order of path. Links are not followed.
fn files(base: &Path) -> Result<impl Iterator<Item = PathBuf>, FunctionError> {
    let facts = fs::metadata(base).map_err(|error| io_failure("search", base, &error))?;
    if !facts.is_dir() {
        return Err(FunctionError::failed(format!(
            "`{}` is not a directory",
            base.display()
        )));
    }
    let walk = WalkBuilder::new(base)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build();
    Ok(walk
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .map(ignore::DirEntry::into_path))
}

pub(super) async fn grep(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let filter = Filter::new(args.required_text("pattern")?).map_err(FunctionError::argument)?;
    let glob = match args.text("glob")? {
        None => None,
        Some(pattern) => Some(matcher("glob", pattern)?),
    };
    let base = resolve(&env.cwd, args.text("path")?.unwrap_or("."));
    let room = bounds::room(&env.limits);
    blocking(env, move |stop| {
        let search = Search::new(&filter, room, stop);
        if fs::metadata(&base).is_ok_and(|facts| !facts.is_dir()) {
            return search.one(&base);
        }
        search.below(&base, glob.as_ref())
    })
    .await
}

/// A search under way.
struct Search<'a> {
    filter: &'a Filter,
    room: usize,
    stop: &'a AbortToken,
    answer: String,
    files: usize,
    matches: u64,
    /// Files that were left out, and why.
    binary: usize,
    large: usize,
    unreadable: usize,
}

impl<'a> Search<'a> {
    fn new(filter: &'a Filter, room: usize, stop: &'a AbortToken) -> Self {
        Self {
            filter,
            room,
            stop,
            answer: String::new(),
            files: 0,
            matches: 0,
            binary: 0,
            large: 0,
            unreadable: 0,
        }
    }

    /// One file that was named: what is wrong with it is an error.
    fn one(mut self, path: &Path) -> Result<String, FunctionError> {
        let (_, size) = read::open(path)?;
        if size > SEARCHED_MAX {
            return Err(FunctionError::failed(format!(
                "`{}` has {size} bytes; files over 50 MiB are not searched",
                path.display()
            )));
        }
        self.add(path, &path.display().to_string())?;
        if self.binary > 0 {
            return Err(FunctionError::failed(format!(
                "`{}` is not text ({size} bytes)",
                path.display()
            )));
        }
        Ok(self.finish(false))
    }

    fn below(mut self, base: &Path, glob: Option<&GlobMatcher>) -> Result<String, FunctionError> {
        for path in files(base)? {
            let relative = path.strip_prefix(base).unwrap_or(&path);
            if glob.is_none_or(|glob| glob.is_match(relative)) {
                let shown = relative.to_string_lossy();
                self.add(&path, &shown)?;
            }
            if self.answer.len() >= self.room {
                return Ok(self.finish(true));
            }
        }
        Ok(self.finish(false))
    }

    fn add(&mut self, path: &Path, shown: &str) -> Result<(), FunctionError> {
        if self.stop.is_cancelled() {
            return Err(FunctionError::Cancelled);
        }
        let Ok((mut file, size)) = read::open(path) else {
            self.unreadable = self.unreadable.saturating_add(1);
            return Ok(());
        };
        if size > SEARCHED_MAX {
            self.large = self.large.saturating_add(1);
            return Ok(());
        }
        let mut bytes = Vec::new();
        let probed = file.by_ref().take(PROBE as u64).read_to_end(&mut bytes);
        if bytes.contains(&0) {
            self.binary = self.binary.saturating_add(1);
            return Ok(());
        }
        if probed.is_err() || file.take(SEARCHED_MAX).read_to_end(&mut bytes).is_err() {
            self.unreadable = self.unreadable.saturating_add(1);
            return Ok(());
        }
        self.files = self.files.saturating_add(1);
        let room = self.room.saturating_sub(self.answer.len());
        let kept = self.filter.window_until(&bytes, 0, room, self.stop)?;
        if kept.matches > 0 {
            self.matches = self.matches.saturating_add(kept.matches);
            if !self.answer.is_empty() {
                self.answer.push('\n');
            }
            self.answer.push_str(shown);
            self.answer.push_str(":\n");
            self.answer.push_str(&kept.text);
        }
        Ok(())
    }

    fn finish(self, stopped: bool) -> String {
        let searched = text::plural(self.files, "file");
        let mut notes = Vec::new();
        if self.matches == 0 {
            notes.push(format!("no line of {searched} matches"));
        }
        let left_out = [(self.large, "over 50 MiB"), (self.unreadable, "unreadable")];
        for (count, why) in left_out.into_iter().filter(|(count, _)| *count > 0) {
            notes.push(format!("{} left out: {why}", text::plural(count, "file")));
        }
        if stopped {
            notes
                .push("stopped here; use a narrower pattern, path or glob for the rest".to_owned());
        }
        let answer = bounds::whole(self.answer, self.room);
        if notes.is_empty() {
            return answer;
        }
        let joint = if answer.is_empty() { "" } else { "\n" };
        format!("{answer}{joint}[{}]", notes.join("; "))
    }
}
