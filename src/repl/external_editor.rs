//! Running the person's own editor on a text (`H-20`: Ctrl-O; `.edit`). Blocks while it runs; the terminal must not be
//! in raw mode.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::utils::error::ResultExt as _;
use crate::utils::{Error, ErrorKind, Result, words};

/// The command to run: `configured`, else `$VISUAL`, else `$EDITOR`.
pub fn resolve(configured: Option<&str>, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let given = |command: &String| !command.trim().is_empty();
    (configured.map(str::to_owned).filter(given))
        .or_else(|| env("VISUAL").filter(given))
        .or_else(|| env("EDITOR").filter(given))
}

/// What to say when [`resolve`] finds none.
pub fn missing() -> Error {
    Error::user("no editor is configured")
        .hint("set `editor` in `config.yaml`, or `VISUAL` or `EDITOR` before starting coyote")
}

/// Opens `text` in `command` and gives back what was saved, without the newlines at its end. The file it is in is
/// private and gone afterwards; `extension` lets the editor know what it is (`md`).
pub fn edit_text(command: &str, text: &str, extension: &str) -> Result<String> {
    let failed = || "cannot make a file for the editor".to_owned();
    let mut file = tempfile::Builder::new()
        .prefix("coyote-")
        .suffix(&format!(".{extension}"))
        .tempfile()
        .or_fail(ErrorKind::Internal, failed)?;
    (file.write_all(text.as_bytes()))
        .and_then(|()| file.flush())
        .or_fail(ErrorKind::Internal, failed)?;
    let path = file.into_temp_path(); // closed: an editor may replace it by another
    edit_file(command, &path)?;
    let saved = std::fs::read_to_string(&path).or_fail(ErrorKind::User, || {
        format!("cannot read what `{command}` saved")
    })?;
    Ok(saved.trim_end_matches(['\n', '\r']).to_owned())
}

/// Opens the file `path` in `command` and waits until the editor ends.
pub fn edit_file(command: &str, path: &Path) -> Result<()> {
    let mut words = split(command)?.into_iter();
    let Some(program) = words.next() else {
        return Err(missing());
    };
    let status = Command::new(&program)
        .args(words)
        .arg(path)
        .status()
        .map_err(|error| {
            Error::new(ErrorKind::User, error)
                .context(format!("cannot run the editor `{program}`"))
                .hint("set `editor` in `config.yaml`, or `VISUAL` or `EDITOR`")
        })?;
    if status.success() {
        return Ok(());
    }
    Err(Error::user(format!(
        "the editor `{program}` failed: {status}"
    )))
}

/// The words of an editor command; where backslashes are in paths, only blanks separate them.
fn split(command: &str) -> Result<Vec<String>> {
    if cfg!(windows) {
        if Path::new(command).is_file() {
            return Ok(vec![command.to_owned()]);
        }
        return Ok(command.split_whitespace().map(str::to_owned).collect());
    }
    let words = words::split(command).or_fail(ErrorKind::User, || {
        format!("the editor command `{command}` is not understood")
    })?;
    Ok(words.into_iter().map(|word| word.text).collect())
}

#[cfg(all(test, unix))]
#[path = "external_editor_tests.rs"]
mod tests;
