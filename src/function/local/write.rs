//! `fs_write`, `fs_mkdir`, `fs_rm`: what changes files asks first.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{LocalTool, Spec, approve, blocking, io_failure, resolve};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::function::permission::detail_lines;
use crate::utils::fs::{Access, write_atomic};
use crate::utils::text;

pub(super) fn write_spec() -> Spec {
    Spec {
        description: "Writes a text file, replacing what was there; missing directories are made. To change part of \
                      a file, use fs_patch.",
        properties: json!({
            "path": { "type": "string", "description": "Path of the file" },
            "content": { "type": "string", "description": "The whole new content" },
        }),
        required: &["path", "content"],
    }
}

pub(super) fn mkdir_spec() -> Spec {
    Spec {
        description: "Makes a directory and its missing parents.",
        properties: json!({ "path": { "type": "string", "description": "Path of the directory" } }),
        required: &["path"],
    }
}

pub(super) fn rm_spec() -> Spec {
    Spec {
        description: "Removes a file, a link (not what it points to) or a directory.",
        properties: json!({
            "path": { "type": "string", "description": "What to remove" },
            "recursive": {
                "type": "boolean", "default": false,
                "description": "Needed for a directory that is not empty: everything below goes too"
            },
        }),
        required: &["path"],
    }
}

pub(super) async fn write(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.required_word("path")?);
    let content = args.required_text("content")?;
    let before = fs::metadata(&path).ok();
    if before.as_ref().is_some_and(|facts| !facts.is_file()) {
        return Err(not_a_file(&path));
    }
    let title = match &before {
        Some(facts) => format!(
            "replace the file `{}` ({} bytes)",
            path.display(),
            facts.len()
        ),
        None => format!("write the file `{}`", path.display()),
    };
    approve(
        env,
        LocalTool::FsWrite,
        title,
        detail_lines(content.lines()),
    )
    .await?;
    let content = content.to_owned();
    blocking(env, move |_| {
        store(&path, content.as_bytes())?;
        let verb = if before.is_some() {
            "replaced"
        } else {
            "wrote"
        };
        let size = text::plural(content.len(), "byte");
        Ok(format!("{verb} `{}` ({size})", path.display()))
    })
    .await
}

pub(super) fn not_a_file(path: &Path) -> FunctionError {
    FunctionError::failed(format!("`{}` is not a regular file", path.display()))
}

/// Replaces a file of the person's in one step; directories on the way get the usual modes.
pub(super) fn store(path: &Path, bytes: &[u8]) -> Result<(), FunctionError> {
    let failed = |error: std::io::Error| io_failure("write", path, &error);
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed)?;
    }
    write_atomic(path, bytes, Access::Shared).map_err(failed)
}

pub(super) async fn mkdir(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.required_word("path")?);
    if path.is_dir() {
        return Ok(format!("`{}` exists already", path.display()));
    }
    let title = format!("make the directory `{}`", path.display());
    approve(env, LocalTool::FsMkdir, title, Vec::new()).await?;
    fs::create_dir_all(&path).map_err(|error| io_failure("make", &path, &error))?;
    Ok(format!("made `{}`", path.display()))
}

pub(super) async fn rm(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let path = resolve(&env.cwd, args.required_word("path")?);
    let recursive = args.flag("recursive")?;
    let facts = fs::symlink_metadata(&path).map_err(|error| io_failure("remove", &path, &error))?;
    if facts.is_dir() {
        refuse_foundations(&path, &env.cwd)?;
    }
    let title = if facts.is_dir() && recursive {
        format!(
            "remove the directory `{}` and everything below it",
            path.display()
        )
    } else {
        format!("remove `{}`", path.display())
    };
    approve(env, LocalTool::FsRm, title, Vec::new()).await?;
    let directory = facts.is_dir();
    blocking(env, move |_| {
        match (directory, recursive) {
            (false, _) => fs::remove_file(&path),
            (true, false) => fs::remove_dir(&path),
            (true, true) => fs::remove_dir_all(&path),
        }
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::DirectoryNotEmpty => FunctionError::failed(format!(
                "`{}` is not empty; set `recursive` to remove everything below it",
                path.display()
            )),
            _ => io_failure("remove", &path, &error),
        })?;
        Ok(format!("removed `{}`", path.display()))
    })
    .await
}

/// Never, not even with approval: the directory everything happens in, one above it, or the home directory. A
/// mistyped path is far more likely than the wish.
fn refuse_foundations(path: &Path, cwd: &Path) -> Result<(), FunctionError> {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let wanted = real(path);
    let home: Option<PathBuf> = etcetera::home_dir().ok().map(|home| real(&home));
    let foundation =
        real(cwd).starts_with(&wanted) || home.is_some_and(|home| home.starts_with(&wanted));
    if foundation {
        return Err(FunctionError::Refused(format!(
            "`{}` is not removed: the working directory or the home directory is in it",
            path.display()
        )));
    }
    Ok(())
}
