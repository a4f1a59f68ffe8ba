//! The way back to a usable terminal, whatever happens (`H-20`).

use std::sync::Arc;

use crossterm::{cursor, event, execute, terminal};

use super::ui::Ui;

/// Leaves raw mode and bracketed paste and shows the cursor. Safe to call at any time and more than once; call it
/// from panic hooks and before ending on a signal. Does nothing to a stream that is no terminal.
pub fn restore_terminal() {
    use std::io::IsTerminal as _;
    let was_raw = terminal::is_raw_mode_enabled().unwrap_or(false);
    if was_raw {
        let _ = terminal::disable_raw_mode();
    }
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = execute!(stderr, event::DisableBracketedPaste, cursor::Show);
        if was_raw {
            let _ = execute!(stderr, crossterm::style::Print("\r\n"));
        }
    }
}

/// Leaves the terminal usable when the program ends by returning or by a panic, whatever still reads from it.
pub struct TerminalGuard(Arc<Ui>);

impl TerminalGuard {
    /// Keep it until the program ends.
    pub fn new(ui: Arc<Ui>) -> Self {
        Self(ui)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        self.0.finish();
        if terminal::is_raw_mode_enabled().unwrap_or(false) || std::thread::panicking() {
            restore_terminal();
        }
    }
}

/// Raw mode for as long as it lives.
pub(super) struct RawMode(());

impl RawMode {
    /// `None` when there is no terminal or it is in raw mode already, by somebody else who will end it.
    pub(super) fn enter() -> Option<Self> {
        if terminal::is_raw_mode_enabled().unwrap_or(true) {
            return None;
        }
        terminal::enable_raw_mode().ok().map(|()| Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = terminal::disable_raw_mode();
    }
}
