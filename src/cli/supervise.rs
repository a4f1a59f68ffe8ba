//! Running work so that every way out is an orderly one (`H-05`): the first signal cancels the work, ends the servers
//! and decides the exit code; the second one leaves at once.
//!
//! The REPL listens to signals itself, since there a Ctrl-C belongs to the answer and not to the program.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::mcp::McpRegistry;
use crate::render::Ui;
use crate::utils::{AbortToken, Exit, Result};

/// How long cancelled work may take to put things in order before it is dropped.
const GRACE: Duration = Duration::from_millis(500);
/// How long servers may take to end; the registry's own limit is shorter.
const CLOSING: Duration = Duration::from_secs(2);

/// The servers that have been started, wherever that was: ended on every way out.
#[derive(Clone, Default)]
pub(super) struct Started(Arc<Mutex<Vec<Arc<McpRegistry>>>>);

impl Started {
    /// Ends these servers too when the work is over.
    pub(super) fn add(&self, registry: &Arc<McpRegistry>) {
        self.0.lock().push(Arc::clone(registry));
    }

    async fn close(&self) {
        let registries = std::mem::take(&mut *self.0.lock());
        let closing = registries.iter().map(|registry| registry.close_all());
        let _ = tokio::time::timeout(CLOSING, futures::future::join_all(closing)).await;
    }
}

/// Who acts on signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signals {
    /// They end the work.
    End,
    /// The work itself listens.
    #[allow(dead_code, reason = "the REPL is wired next")]
    AreTheWorks,
}

/// Runs `work` until it is done, a signal ends it, or nobody reads stdout any more; then ends the servers. An error is
/// printed here and nowhere else.
pub(super) async fn supervise(
    work: impl Future<Output = Result<Exit>>,
    who: Signals,
    abort: &AbortToken,
    started: &Started,
    ui: &Ui,
) -> Exit {
    let mut signals = match who {
        Signals::End => Sources::open(),
        Signals::AreTheWorks => Sources::none(),
    };
    let exit = match until_ended(work, &mut signals, abort, ui).await {
        Ended::AtOnce(exit) => return exit,
        Ended::Signalled(exit) | Ended::Done(Ok(exit)) => exit,
        Ended::Closed => Exit::Success,
        Ended::Done(Err(error)) => {
            ui.error(&error);
            Exit::Failure
        }
    };
    tokio::select! {
        () = started.close() => exit,
        signal = signals.next() => if exit == Exit::Success { signal } else { exit },
    }
}

enum Ended {
    Done(Result<Exit>),
    /// By a signal: whatever the work still said, that is the outcome.
    Signalled(Exit),
    /// Nobody reads stdout any more: that is no failure.
    Closed,
    /// By a second signal.
    AtOnce(Exit),
}

async fn until_ended(
    work: impl Future<Output = Result<Exit>>,
    signals: &mut Sources,
    abort: &AbortToken,
    ui: &Ui,
) -> Ended {
    tokio::pin!(work);
    let mut cause = None;
    let mut closed = false;
    let mut deadline = Instant::now();
    loop {
        let given_up = cause.is_some() || closed;
        tokio::select! {
            biased;
            signal = signals.next() => {
                if let Some(exit) = cause {
                    return Ended::AtOnce(exit);
                }
                cause = Some(signal);
                deadline = Instant::now() + GRACE;
                abort.cancel();
            }
            () = ui.closed().cancelled(), if !closed => {
                closed = true;
                deadline = Instant::now() + GRACE;
                abort.cancel();
            }
            result = &mut work => return match cause {
                Some(exit) => Ended::Signalled(exit),
                None if closed => Ended::Closed,
                None => Ended::Done(result),
            },
            () = sleep_until(deadline), if given_up => {
                return cause.map_or(Ended::Closed, Ended::Signalled);
            }
        }
    }
}

#[cfg(unix)]
#[derive(Default)]
struct Sources([Option<(tokio::signal::unix::Signal, Exit)>; 3]);

#[cfg(unix)]
impl Sources {
    /// Listens from now on: the signals no longer end the process by themselves.
    fn open() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let open = |kind, exit| signal(kind).ok().map(|source| (source, exit));
        Self([
            open(SignalKind::interrupt(), Exit::Interrupted),
            open(SignalKind::terminate(), Exit::Terminated),
            open(SignalKind::hangup(), Exit::HungUp),
        ])
    }

    fn none() -> Self {
        Self::default()
    }

    /// The next signal, as what it makes of the exit code.
    async fn next(&mut self) -> Exit {
        async fn one(source: &mut Option<(tokio::signal::unix::Signal, Exit)>) -> Exit {
            if let Some((source, exit)) = source
                && source.recv().await.is_some()
            {
                return *exit;
            }
            std::future::pending().await
        }
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            exit = one(interrupt) => exit,
            exit = one(terminate) => exit,
            exit = one(hangup) => exit,
        }
    }
}

#[cfg(not(unix))]
struct Sources(Signals);

#[cfg(not(unix))]
impl Sources {
    fn open() -> Self {
        Self(Signals::End)
    }

    fn none() -> Self {
        Self(Signals::AreTheWorks)
    }

    async fn next(&mut self) -> Exit {
        if self.0 == Signals::End && tokio::signal::ctrl_c().await.is_ok() {
            return Exit::Interrupted;
        }
        std::future::pending().await
    }
}
