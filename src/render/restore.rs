//! The way back to a usable terminal, whatever happens (`H-20`).

use crossterm::{cursor, event, execute, terminal};

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
