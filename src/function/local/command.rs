//! `execute_command`: a shell command in a process group of its own, after asking.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::{LocalTool, Spec, approve, bounds, resolve};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::function::permission::detail_lines;
use crate::function::process::{self, Finished, Job};

/// How long a command may run, in seconds, unless the call says otherwise, and at most.
const TIMEOUT: u64 = 120;
const TIMEOUT_MAX: u64 = 3_600;

pub(super) fn spec() -> Spec {
    Spec {
        description: "Runs a shell command and returns what it wrote. It has no terminal and no input, and whatever \
                      it starts in the background ends with it.",
        properties: json!({
            "command": { "type": "string", "description": "The command line" },
            "cwd": { "type": "string", "description": "Where it runs; the working directory if left out" },
            "timeout": {
                "type": "integer", "default": TIMEOUT, "minimum": 1, "maximum": TIMEOUT_MAX,
                "description": "After how many seconds it is killed"
            },
        }),
        required: &["command"],
    }
}

pub(super) async fn execute(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let line = args.required_word("command")?;
    if line.contains('\0') {
        return Err(FunctionError::argument(
            "`command` contains a NUL character",
        ));
    }
    let cwd = resolve(&env.cwd, args.text("cwd")?.unwrap_or("."));
    let seconds = args.unsigned("timeout")?.unwrap_or(TIMEOUT);
    let timeout = Duration::from_secs(seconds.clamp(1, TIMEOUT_MAX));
    let title = format!("run a command in `{}`", cwd.display());
    approve(
        env,
        LocalTool::ExecuteCommand,
        title,
        detail_lines(line.lines()),
    )
    .await?;

    let job = Job {
        what: "the command".to_owned(),
        command: shell(line),
        cwd: &cwd,
        scrub_env: &env.scrub_env,
        stdin: None,
        timeout,
    };
    let finished = process::run(job, &env.abort).await?;
    let failure = process::failure(finished.status, timeout);
    let output = bounds::whole(said(finished), bounds::room(&env.limits));
    match failure {
        None if output.is_empty() => Ok("[no output]".to_owned()),
        None => Ok(output),
        Some(how) if output.is_empty() => Err(FunctionError::failed(format!("{how}, no output"))),
        Some(how) => Err(FunctionError::failed(format!("{how}\n{output}"))),
    }
}

#[cfg(not(windows))]
fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line);
    command
}

/// The line goes to the shell as it stands: it has quoting rules of its own.
#[cfg(windows)]
fn shell(line: &str) -> Command {
    use std::os::windows::process::CommandExt as _;
    let mut command = Command::new("cmd");
    command.arg("/C").raw_arg(line);
    command
}

/// Both streams; the second only when there is something on it.
fn said(finished: Finished) -> String {
    let Finished { stdout, stderr, .. } = finished;
    if stderr.trim().is_empty() {
        return stdout;
    }
    let joint = if stdout.is_empty() || stdout.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{stdout}{joint}[stderr]\n{stderr}")
}
