//! Running work so that every way out is an orderly one (`H-05`): the first signal cancels the work, ends the servers
//! and decides the exit code; the second one leaves at once.
//!
//! Once it runs, the REPL acts on signals itself: there, a Ctrl-C belongs to the answer and not to the program.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::mcp::McpRegistry;
use crate::render::Ui;
use crate::utils::{AbortToken, Exit, Result};

/// How long cancelled work may take to put things in order before it is dropped.
const GRACE: Duration = Duration::from_millis(500);
/// How long servers may take to end; the registry's own limit is shorter.
const CLOSING: Duration = Duration::from_secs(2);
/// How long writing may go on, a signal being unheard, before the work counts as stuck.
const STUCK: Duration = Duration::from_millis(80);

/// What has been started and needs an end: servers, and maybe a REPL that listens to signals itself.
#[derive(Clone, Default)]
pub(super) struct Started {
    registries: Arc<Mutex<Vec<Arc<McpRegistry>>>>,
    repl: AbortToken,
}

impl Started {
    /// Ends these servers too when the work is over.
    pub(super) fn add(&self, registry: &Arc<McpRegistry>) {
        self.registries.lock().push(Arc::clone(registry));
    }

    /// From now on the REPL acts on signals.
    pub(super) fn repl(&self) {
        self.repl.cancel();
    }

    async fn close(&self) {
        let registries = std::mem::take(&mut *self.registries.lock());
        let closing = registries.iter().map(|registry| registry.close_all());
        let _ = timeout(CLOSING, futures::future::join_all(closing)).await;
    }
}

/// Runs `work` until it is done, a signal ends it, or nobody reads stdout any more; then ends the servers. An error is
/// printed here and nowhere else.
pub(super) async fn supervise(
    work: impl Future<Output = Result<Exit>>,
    abort: &AbortToken,
    started: &Started,
    ui: &Arc<Ui>,
) -> Exit {
    let mut signals = Sources::open();
    tokio::spawn(last_resort(abort.clone(), started.clone(), Arc::clone(ui)));
    let exit = match until_ended(work, &mut signals, abort, started, ui).await {
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

/// Leaves in place of work whose thread is stuck in the system, where it hears of no signal: it writes to a pipe that
/// is full and that nobody reads. Runs on another thread, and prints nothing: the work holds the screen.
async fn last_resort(abort: AbortToken, started: Started, ui: Arc<Ui>) {
    let mut signals = Sources::open();
    let exit = loop {
        let exit = signals.next().await;
        if !started.repl.is_cancelled() {
            break exit;
        }
    };
    let heard = async {
        abort.cancelled().await;
        // Work that goes on in order is over before this is.
        tokio::select! {
            () = sleep(GRACE + CLOSING) => {}
            _ = signals.next() => sleep(STUCK).await,
        }
    };
    tokio::select! {
        () = stuck(&abort, &ui) => {}
        () = heard => {}
    }
    tokio::select! {
        () = started.close() => {}
        _ = signals.next() => {}
    }
    std::process::exit(i32::from(exit as u8));
}

/// Returns when something has been written for too long before the signal was heard. A thread that is only slow to be
/// woken writes nothing meanwhile, and keeps its time to save what is to be saved.
async fn stuck(abort: &AbortToken, ui: &Ui) {
    let mut since = None;
    while !abort.is_cancelled() {
        if !ui.is_writing() {
            since = None;
        } else if since.get_or_insert_with(Instant::now).elapsed() >= STUCK {
            return;
        }
        sleep(STUCK / 16).await;
    }
    std::future::pending::<()>().await;
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
    started: &Started,
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
                if started.repl.is_cancelled() {
                    continue;
                }
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
struct Sources([Option<(tokio::signal::unix::Signal, Exit)>; 4]);

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
            open(SignalKind::quit(), Exit::Quit),
        ])
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
        let [interrupt, terminate, hangup, quit] = &mut self.0;
        tokio::select! {
            exit = one(interrupt) => exit,
            exit = one(terminate) => exit,
            exit = one(hangup) => exit,
            exit = one(quit) => exit,
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

    async fn next(&mut self) -> Exit {
        if tokio::signal::ctrl_c().await.is_ok() {
            return Exit::Interrupted;
        }
        std::future::pending().await
    }
}
