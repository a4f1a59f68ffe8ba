//! Runs a program for a function: a process group of its own, bounded output, a deadline, and no survivor.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::error::FunctionError;
use crate::utils::AbortToken;
use crate::utils::text;

/// Of each stream this much is kept from its beginning, and as much from its end; in bytes.
const KEPT: usize = 51_200;

/// How long the output of helpers that outlive the program is still read.
const DRAIN: Duration = Duration::from_millis(200);

/// A program to run.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// For errors: what runs.
    pub(super) what: String,
    /// The program and its arguments, without streams and directory.
    pub(super) command: std::process::Command,
    /// Where it runs.
    pub(super) cwd: &'a Path,
    /// Variables it does not inherit.
    pub(super) scrub_env: &'a [String],
    /// Written to its standard input, which is empty otherwise.
    pub(super) stdin: Option<Vec<u8>>,
    /// After this it is killed.
    pub(super) timeout: Duration,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// Its exit status; `None` when it was killed at its deadline.
    pub(super) status: Option<ExitStatus>,
    /// What it wrote, cut in the middle when long.
    pub(super) stdout: String,
    /// What it complained about, cut in the middle when long.
    pub(super) stderr: String,
}

/// Kills the group when dropped: whatever happens to the future, nothing survives it.
struct Group {
    id: Option<u32>,
}

impl Drop for Group {
    fn drop(&mut self) {
        kill_group(self.id);
    }
}

#[cfg(unix)]
fn kill_group(id: Option<u32>) {
    use nix::sys::signal::{Signal, killpg};
    if let Some(id) = id.and_then(|id| i32::try_from(id).ok()) {
        let _ = killpg(nix::unistd::Pid::from_raw(id), Signal::SIGKILL);
    }
}

/// `kill_on_drop` ends the program itself; its children are the platform's business.
#[cfg(not(unix))]
fn kill_group(_id: Option<u32>) {}

/// Runs `job` until it ends, its time is up, or `abort` is cancelled.
pub(super) async fn run(job: Job<'_>, abort: &AbortToken) -> Result<Finished, FunctionError> {
    let Job {
        what,
        command,
        cwd,
        scrub_env,
        stdin,
        timeout,
    } = job;
    let mut child = spawn(&what, command, cwd, scrub_env, stdin.is_some())?;
    let group = Group { id: child.id() };
    let work = collect(&mut child, stdin, timeout, &group);
    let finished = tokio::select! {
        biased;
        () = abort.cancelled() => Err(FunctionError::Cancelled),
        finished = work => finished.map_err(|error| {
            FunctionError::failed(format!("cannot run {what}: {error}"))
        }),
    };
    drop(group);
    finished
}

fn spawn(
    what: &str,
    command: std::process::Command,
    cwd: &Path,
    scrub_env: &[String],
    piped_stdin: bool,
) -> Result<Child, FunctionError> {
    let mut command = Command::from(command);
    command
        .current_dir(cwd)
        .stdin(if piped_stdin {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for name in scrub_env {
        command.env_remove(name);
    }
    #[cfg(unix)]
    command.process_group(0);
    command
        .spawn()
        .map_err(|error| FunctionError::failed(format!("cannot start {what}: {error}")))
}

async fn collect(
    child: &mut Child,
    stdin: Option<Vec<u8>>,
    timeout: Duration,
    group: &Group,
) -> std::io::Result<Finished> {
    let input = child.stdin.take();
    let (mut out, mut err) = (Capture::default(), Capture::default());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let status = {
        let streams = async {
            tokio::join!(
                feed(input, stdin.unwrap_or_default()),
                out.read(stdout),
                err.read(stderr)
            );
        };
        tokio::pin!(streams);
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut drained = false;
        let status = loop {
            tokio::select! {
                () = &mut streams, if !drained => drained = true,
                status = child.wait() => break Some(status?),
                () = &mut deadline => break None,
            }
        };
        if status.is_none() {
            kill_group(group.id);
            let _ = child.start_kill();
            let _ = child.wait().await;
        }
        if !drained {
            let _ = tokio::time::timeout(DRAIN, &mut streams).await;
        }
        status
    };
    Ok(Finished {
        status,
        stdout: out.into_text(),
        stderr: err.into_text(),
    })
}

/// A program that does not read its input is no failure.
async fn feed(pipe: Option<tokio::process::ChildStdin>, bytes: Vec<u8>) {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(&bytes).await;
        let _ = pipe.shutdown().await;
    }
}

/// The beginning and the end of a stream of any length.
#[derive(Debug, Default)]
struct Capture {
    head: Vec<u8>,
    tail: std::collections::VecDeque<u8>,
    total: u64,
}

impl Capture {
    async fn read(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            self.push(buffer.get(..count).unwrap_or_default());
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = KEPT.saturating_sub(self.head.len()).min(bytes.len());
        let (to_head, to_tail) = bytes.split_at(room);
        self.head.extend_from_slice(to_head);
        self.tail.extend(to_tail);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..surplus);
    }

    /// Bytes that are no text become replacement characters; the cut falls between characters.
    fn into_text(self) -> String {
        let Self { head, tail, total } = self;
        let tail: Vec<u8> = tail.into();
        let kept = (head.len() as u64).saturating_add(tail.len() as u64);
        if total == kept {
            let whole: Vec<u8> = [head, tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        let head = whole_characters(&head);
        let start = tail
            .iter()
            .take(3)
            .take_while(|byte| (**byte & 0xC0) == 0x80)
            .count();
        let tail = String::from_utf8_lossy(tail.get(start..).unwrap_or_default());
        let omitted = total
            .saturating_sub(head.len() as u64)
            .saturating_sub(tail.len() as u64);
        format!("{head}\n[... {omitted} bytes left out ...]\n{tail}")
    }
}

/// `bytes` as text without the beginning of a character that was cut off at the end.
fn whole_characters(bytes: &[u8]) -> String {
    let end = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// How a program ended, in words; `None` for success.
pub(super) fn failure(status: Option<ExitStatus>, timeout: Duration) -> Option<String> {
    let Some(status) = status else {
        return Some(format!("killed after {} seconds", timeout.as_secs()));
    };
    if status.success() {
        return None;
    }
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return Some(format!("ended by signal {signal}"));
    }
    Some(match status.code() {
        Some(code) => format!("exit code {code}"),
        None => "ended abnormally".to_owned(),
    })
}

/// The last lines of `text` that fit into `max` bytes, for an error.
pub(super) fn tail(text: &str, max: usize) -> &str {
    let trimmed = text.trim_end();
    let start = trimmed.ceil_char_boundary(trimmed.len().saturating_sub(max));
    trimmed
        .get(start..)
        .unwrap_or_else(|| text::prefix(trimmed, max))
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
