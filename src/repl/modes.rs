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
}

impl Quiet {
    /// From now on.
    pub(super) fn begin() -> Self {
        let before = Modes::now();
        before.quiet().restore();
        Self { before }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        self.before.restore();
    }
}
