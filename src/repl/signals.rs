//! What the operating system says while the loop runs: Ctrl-C, SIGTERM, SIGHUP (`H-05`, `H-23`), and that the terminal
//! is gone.
//!
//! While a line is edited Ctrl-C is a key and never arrives here. The one who works takes a token from
//! [`Signals::work`]; the next Ctrl-C cancels it, and so does the end.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::utils::{AbortToken, Exit};

/// Shared between the loop and the task that listens.
#[derive(Clone, Default)]
pub(super) struct Signals {
    current: Arc<Mutex<AbortToken>>,
    ended: AbortToken,
    exit: Arc<Mutex<Option<Exit>>>,
}

impl Signals {
    /// Cancelled when the process was told to end.
    pub(super) fn ended(&self) -> &AbortToken {
        &self.ended
    }

    /// How to end, when the process was told to.
    pub(super) fn exit(&self) -> Option<Exit> {
        *self.exit.lock()
    }

    /// A token for the work that begins now.
    pub(super) fn work(&self) -> AbortToken {
        let token = self.ended.child_token();
        *self.current.lock() = token.clone();
        token
    }

    /// Ctrl-C: gives up the work that was begun last.
    pub(super) fn interrupt(&self) {
        self.current.lock().cancel();
    }

    /// Whether the work that was begun last was given up.
    pub(super) fn is_interrupted(&self) -> bool {
        self.current.lock().is_cancelled()
    }

    /// Told to end: gives up all work, and the loop leaves. The first reason counts.
    pub(super) fn end(&self, exit: Exit) {
        self.exit.lock().get_or_insert(exit);
        self.ended.cancel();
    }

    /// Listens from now on until the guard is dropped; must be called on the runtime.
    pub(super) fn listen(&self) -> Listening {
        let sources = Sources::open();
        let over = AbortToken::new();
        watch_terminal(self.clone(), over.clone());
        Listening {
            task: tokio::spawn(listen(self.clone(), sources)),
            over,
        }
    }
}

/// Stops listening when dropped.
pub(super) struct Listening {
    task: tokio::task::JoinHandle<()>,
    /// Ends the watch over the terminal.
    over: AbortToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
        self.over.cancel();
    }
}

/// How soon the watch over the terminal notices that it is over.
#[cfg(unix)]
const WATCH_MS: u16 = 500;

/// Leaves as on SIGHUP when the terminal is gone. The signal comes only to the processes of the terminal's own
/// session; without it, whoever reads keys from a terminal that is gone would try so for ever.
#[cfg(unix)]
fn watch_terminal(signals: Signals, over: AbortToken) {
    use std::io::IsTerminal as _;
    use std::os::fd::AsFd as _;

    use nix::errno::Errno;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return;
    }
    let watch = move || {
        while !over.is_cancelled() {
            // Nothing is asked for but what is told anyway: the end.
            let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
            match poll(&mut watched, PollTimeout::from(WATCH_MS)) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => {
                    let told = watched.first().and_then(PollFd::revents);
                    if told.is_some_and(|told| told.contains(PollFlags::POLLHUP)) {
                        signals.end(Exit::HungUp);
                    }
                    return;
                }
                Err(_) => return,
            }
        }
    };
    let started = std::thread::Builder::new()
        .name("terminal-watch".to_owned())
        .spawn(watch);
    if let Err(error) = started {
        tracing::warn!(%error, "the terminal's end will not be noticed");
    }
}

#[cfg(not(unix))]
fn watch_terminal(_signals: Signals, _over: AbortToken) {}

#[cfg(unix)]
struct Sources {
    interrupt: Option<tokio::signal::unix::Signal>,
    terminate: Option<tokio::signal::unix::Signal>,
    hangup: Option<tokio::signal::unix::Signal>,
    /// Ctrl-\, which would otherwise leave the terminal as it is and the servers running.
    quit: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Sources {
    fn open() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            hangup: signal(SignalKind::hangup()).ok(),
            quit: signal(SignalKind::quit()).ok(),
        }
    }
}

#[cfg(unix)]
async fn listen(signals: Signals, mut sources: Sources) {
    async fn next(source: &mut Option<tokio::signal::unix::Signal>) {
        if let Some(open) = source
            && open.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
    loop {
        tokio::select! {
            () = next(&mut sources.interrupt) => signals.interrupt(),
            () = next(&mut sources.terminate) => signals.end(Exit::Terminated),
            () = next(&mut sources.hangup) => signals.end(Exit::HungUp),
            () = next(&mut sources.quit) => signals.end(Exit::Quit),
        }
    }
}

#[cfg(not(unix))]
struct Sources;

#[cfg(not(unix))]
impl Sources {
    fn open() -> Self {
        Self
    }
}

#[cfg(not(unix))]
async fn listen(signals: Signals, _sources: Sources) {
    while tokio::signal::ctrl_c().await.is_ok() {
        signals.interrupt();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_cancels_only_the_work_of_the_moment() {
        let signals = Signals::default();
        let first = signals.work();
        signals.interrupt();
        assert!(first.is_cancelled());
        let second = signals.work();
        assert!(!second.is_cancelled());
        assert!(!signals.ended().is_cancelled());
        assert_eq!(signals.exit(), None);
    }

    #[test]
    fn the_end_cancels_all_work_and_its_first_reason_counts() {
        let signals = Signals::default();
        let work = signals.work();
        signals.end(Exit::HungUp);
        signals.end(Exit::Terminated);
        assert!(work.is_cancelled());
        assert!(signals.work().is_cancelled());
        assert_eq!(signals.exit(), Some(Exit::HungUp));
    }
}
