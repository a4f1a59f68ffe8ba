//! `!cmd`: a command of the person's own, in their shell, on their terminal.
//!
//! The child shares our process group, so that Ctrl-C reaches it and Ctrl-Z suspends both, as in any shell. What it
//! does to the terminal's modes is undone when it ends.

use std::process::Stdio;

use super::modes::Modes;
use crate::utils::abort::unless_aborted;
use crate::utils::error::ResultExt as _;
use crate::utils::{AbortToken, ErrorKind, Result};

/// Runs `command` with `shell` (else the platform's) and waits for it. A failure of the command is no error of ours:
/// it is described, for a line. Cancelling ends the child.
pub async fn run(shell: Option<&str>, command: &str, ended: &AbortToken) -> Result<Option<String>> {
    let (program, flag) = program(shell);
    let modes = Modes::now();
    let mut child = tokio::process::Command::new(program)
        .arg(flag)
        .arg(command)
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .or_fail(ErrorKind::User, || format!("cannot run `{program}`"))?;
    let waited = unless_aborted(ended, child.wait()).await;
    modes.restore();
    let Ok(status) = waited else {
        return Ok(None);
    };
    let status = status.or_fail(ErrorKind::Internal, || {
        format!("cannot wait for `{program}`")
    })?;
    Ok((!status.success()).then(|| status.to_string()))
}

fn program(shell: Option<&str>) -> (&str, &'static str) {
    if cfg!(windows) {
        return ("cmd", "/C");
    }
    (shell.unwrap_or("sh"), "-c")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_runs_in_the_shell_and_its_failure_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("made by us");
        let line = format!("printf '%s' \"a  b\" > '{}'", file.display());
        assert_eq!(run(None, &line, &AbortToken::new()).await.unwrap(), None);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a  b");
        let failed = run(None, "exit 3", &AbortToken::new()).await.unwrap();
        assert!(failed.unwrap().contains('3'));
    }

    #[tokio::test]
    async fn the_end_ends_the_command() {
        let ended = AbortToken::new();
        ended.cancel();
        assert_eq!(run(None, "exec sleep 600", &ended).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_shell_that_is_not_there_is_an_error() {
        let error = run(Some("/nowhere/shell"), "true", &AbortToken::new())
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "cannot run `/nowhere/shell`");
    }
}
