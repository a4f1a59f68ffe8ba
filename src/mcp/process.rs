//! A server's process: started in a group of its own, its stderr drained, its end watched, and never outliving
//! coyote (`M-17`).
//!
//! Closing is stdin EOF, then SIGTERM and SIGKILL to the whole group, half a second apart. Whatever way coyote
//! leaves (return, panic, a runtime that is dropped), `Group` kills what is left when it is dropped.

use std::collections::VecDeque;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;
#[cfg(unix)]
use tokio::time::{Instant, sleep};

use super::{ServerName, ServerSpec, TransportSpec};
use crate::utils::{AbortToken, text};

/// How long each step of closing may take before the next one.
const GRACE: Duration = Duration::from_millis(500);
/// How long what is left of a server that is gone may take: helpers to leave by themselves, stderr to be read.
const HELPERS_GRACE: Duration = Duration::from_millis(100);
/// How long output that a dead server left in its pipe is read (`M-16`).
pub(crate) const DRAIN: Duration = Duration::from_millis(200);
/// How many lines of stderr are kept for the status.
const STDERR_LINES: usize = 20;
/// The longest line of stderr that is logged and kept, in bytes.
const STDERR_LINE_MAX: usize = 2048;

/// The end of a process as it becomes known: `None` while it runs, then how it ended, in words.
pub(crate) type Exit = watch::Receiver<Option<String>>;

/// The last lines a server wrote to its stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// A started server. Dropping it closes the process in the background; [`Self::close`] waits for that.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    closing: AbortToken,
    exit: Exit,
    stderr: StderrTail,
    /// Cancelled when nothing more can come on stderr.
    silent: AbortToken,
}

/// The two ends of the protocol.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl ServerProcess {
    /// Starts the program of a stdio server.
    ///
    /// # Errors
    /// In plain words: what could not be started and why.
    pub(crate) fn spawn(spec: &ServerSpec) -> Result<(Self, Pipes), String> {
        let mut child = command(spec)?
            .spawn()
            .map_err(|error| spawn_error(spec, &error))?;
        let group = Group::of(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its pipes could not be opened".into());
        };
        let tail = StderrTail::default();
        let silent = AbortToken::new();
        let guard = silent.clone().drop_guard();
        let draining = drain_stderr(stderr, spec.name.clone(), tail.clone());
        tokio::spawn(async move {
            draining.await;
            drop(guard);
        });
        let closing = AbortToken::new();
        let (report, exit) = watch::channel(None);
        tokio::spawn(supervise(child, group, closing.clone(), report));
        let process = Self {
            closing,
            exit,
            stderr: tail,
            silent,
        };
        Ok((process, Pipes { stdin, stdout }))
    }

    /// Becomes `Some` when the process has ended.
    pub(crate) fn exit(&self) -> Exit {
        self.exit.clone()
    }

    /// Cancelled when the process is to end: whoever holds its stdin lets go of it.
    pub(crate) fn closing(&self) -> AbortToken {
        self.closing.clone()
    }

    /// The last lines of its stderr.
    pub(crate) fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// Ends the process and its whole group; returns when they are gone, after about a second at most.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let mut exit = self.exit.clone();
        // The supervisor drops its end when everything is over, which ends this wait as an error.
        while exit.changed().await.is_ok() {}
        // Its last words may still be on their way.
        let _ = timeout(HELPERS_GRACE, self.silent.cancelled()).await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

fn command(spec: &ServerSpec) -> Result<Command, String> {
    let TransportSpec::Stdio {
        command,
        args,
        cwd,
        env,
    } = &spec.transport
    else {
        return Err("it has no program to start".into());
    };
    let mut started = Command::new(command);
    started
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for variable in &spec.scrub_env {
        started.env_remove(variable);
    }
    started.envs(env);
    if let Some(cwd) = cwd {
        if !cwd.is_dir() {
            return Err(format!("its `cwd` `{}` is not a directory", cwd.display()));
        }
        started.current_dir(cwd);
    }
    #[cfg(unix)]
    started.process_group(0);
    Ok(started)
}

fn spawn_error(spec: &ServerSpec, error: &io::Error) -> String {
    let command = match &spec.transport {
        TransportSpec::Stdio { command, .. } => command.as_str(),
        TransportSpec::Http { .. } => "",
    };
    match error.kind() {
        io::ErrorKind::NotFound => format!("there is no program `{command}`"),
        io::ErrorKind::PermissionDenied => format!("`{command}` may not be executed"),
        _ => format!("`{command}` could not be started: {error}"),
    }
}

/// Owns the child until it is gone, and the group until nobody of it is left.
async fn supervise(
    mut child: Child,
    group: Group,
    closing: AbortToken,
    report: watch::Sender<Option<String>>,
) {
    let died = tokio::select! {
        status = child.wait() => Some(status),
        () = closing.cancelled() => None,
    };
    if let Some(status) = died {
        report.send_replace(Some(exit_words(&status)));
        // What it left in the pipe is still being read, and a helper may be the one that writes it.
        let _ = timeout(DRAIN, closing.cancelled()).await;
    } else {
        let status = end(&mut child, &group).await;
        report.send_replace(Some(exit_words(&status)));
    }
    group.end().await;
}

/// Waits for the child after EOF, then insists.
async fn end(child: &mut Child, group: &Group) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.terminate();
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.kill();
    child.kill().await?;
    child.wait().await
}

fn exit_words(status: &io::Result<ExitStatus>) -> String {
    let Ok(status) = status else {
        return "its process ended".into();
    };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status) {
        let name = nix::sys::signal::Signal::try_from(signal)
            .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
        return format!("its process was ended by {name}");
    }
    match status.code() {
        Some(code) => format!("its process exited with status {code}"),
        None => "its process ended".into(),
    }
}

/// The process group of a server. What is left of it is killed when this is dropped, also while a panic unwinds.
#[derive(Debug)]
struct Group {
    #[cfg(unix)]
    leader: Mutex<Option<nix::unistd::Pid>>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(nix::unistd::Pid::from_raw);
        Self {
            leader: Mutex::new(leader),
        }
    }

    /// Whether the group still has members that got the signal (`None` only asks).
    fn signal(&self, signal: Option<nix::sys::signal::Signal>) -> bool {
        let leader = *self.leader.lock();
        leader.is_some_and(|leader| nix::sys::signal::killpg(leader, signal).is_ok())
    }

    fn terminate(&self) {
        self.signal(Some(nix::sys::signal::Signal::SIGTERM));
    }

    fn kill(&self) {
        self.signal(Some(nix::sys::signal::Signal::SIGKILL));
    }

    /// Ends the helpers that outlived their server, then forgets the group: its number may be given to others.
    async fn end(&self) {
        if self.signal(Some(nix::sys::signal::Signal::SIGTERM)) {
            let deadline = Instant::now() + HELPERS_GRACE;
            while self.signal(None) && Instant::now() < deadline {
                sleep(Duration::from_millis(5)).await;
            }
            self.kill();
        }
        self.leader.lock().take();
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Without process groups only the server itself is ended (`kill_on_drop`).
#[cfg(not(unix))]
#[allow(
    clippy::unused_self,
    clippy::unused_async,
    reason = "the interface is that of platforms with process groups"
)]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn kill(&self) {}

    async fn end(&self) {}
}

/// Reads stderr for as long as anybody holds it: a full pipe would stop the server.
async fn drain_stderr(mut stderr: impl AsyncRead + Unpin, server: ServerName, tail: StderrTail) {
    let mut chunk = vec![0; 8192];
    let mut line = Vec::new();
    while let Ok(read) = stderr.read(&mut chunk).await {
        if read == 0 {
            break;
        }
        for byte in chunk.iter().take(read) {
            match byte {
                b'\n' => flush_line(&mut line, &server, &tail),
                // The rest of an over-long line is dropped; its beginning says enough.
                _ if line.len() < STDERR_LINE_MAX => line.push(*byte),
                _ => {}
            }
        }
    }
    flush_line(&mut line, &server, &tail);
}

fn flush_line(line: &mut Vec<u8>, server: &ServerName, tail: &StderrTail) {
    let text = String::from_utf8_lossy(line);
    let text = text::bounded(text.trim_end(), STDERR_LINE_MAX).into_owned();
    line.clear();
    if text.is_empty() {
        return;
    }
    tracing::info!(target: "mcp.stderr", %server, "{text}");
    tail.push(text);
}
