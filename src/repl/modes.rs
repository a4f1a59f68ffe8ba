//! The terminal's modes while no line is being read.
//!
//! While an answer streams, what is typed is neither shown amid the answer nor lost: it waits for the next prompt.
//! Ctrl-C still interrupts. In the terminal's usual mode a Ctrl-D typed ahead would vanish, and every key would be
//! echoed into the answer.

/// The modes at one moment, to be put back; nothing where stdin is no terminal.
#[cfg(unix)]
pub(super) struct Modes(Option<nix::sys::termios::Termios>);

#[cfg(unix)]
impl Modes {
    /// As they are.
    pub(super) fn now() -> Self {
        Self(nix::sys::termios::tcgetattr(std::io::stdin()).ok())
    }

    /// Puts them back; what has been typed meanwhile is kept.
    pub(super) fn restore(&self) {
        use nix::sys::termios::{SetArg, tcsetattr};
        if let Some(modes) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, modes);
        }
    }

    /// These, without echo and without waiting for the end of a line. A return stays a newline, which the line editor
    /// does not take for Enter: nothing that is typed, or pasted, during an answer is submitted by itself.
    fn quiet(&self) -> Self {
        use nix::sys::termios::LocalFlags;
        let mut modes = self.0.clone();
        if let Some(modes) = &mut modes {
            modes
                .local_flags
                .remove(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ECHONL);
        }
        Self(modes)
    }
}

#[cfg(not(unix))]
pub(super) struct Modes;

#[cfg(not(unix))]
impl Modes {
    pub(super) fn now() -> Self {
        Self
    }

    pub(super) fn restore(&self) {}

    fn quiet(&self) -> Self {
        Self
    }
}

/// Keeps the terminal quiet until it is dropped.
pub(super) struct Quiet {
    before: Modes,
    #[cfg(unix)]
    again: resumed::Again,
}

impl Quiet {
    /// From now on; must be called on the runtime.
    pub(super) fn begin() -> Self {
        let before = Modes::now();
        let quiet = before.quiet();
        quiet.restore();
        Self {
            before,
            #[cfg(unix)]
            again: resumed::Again::listen(quiet),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.again.end();
        self.before.restore();
    }
}

/// Ctrl-Z and `fg`: the shell sets the terminal's modes as it likes them, and they are ours again when we go on.
#[cfg(unix)]
mod resumed {
    use std::sync::Arc;

    use nix::sys::signal::Signal;
    use parking_lot::Mutex;
    use tokio::signal::unix::{SignalKind, signal};

    use super::Modes;

    /// Sets the modes each time the process goes on.
    pub(super) struct Again {
        /// Gone when it is over: nothing is set after that, not even by a task that was just about to.
        modes: Arc<Mutex<Option<Modes>>>,
        task: tokio::task::JoinHandle<()>,
    }

    impl Again {
        pub(super) fn listen(modes: Modes) -> Self {
            let modes = Arc::new(Mutex::new(Some(modes)));
            Self {
                task: tokio::spawn(listen(Arc::clone(&modes))),
                modes,
            }
        }

        pub(super) fn end(&self) {
            self.modes.lock().take();
            self.task.abort();
        }
    }

    async fn listen(modes: Arc<Mutex<Option<Modes>>>) {
        let Ok(mut resumed) = signal(SignalKind::from_raw(Signal::SIGCONT as i32)) else {
            return;
        };
        while resumed.recv().await.is_some() {
            // A question that is being asked has the terminal in modes of its own.
            if crossterm::terminal::is_raw_mode_enabled().unwrap_or(true) {
                continue;
            }
            if let Some(modes) = &*modes.lock() {
                modes.restore();
            }
        }
    }
}
