//! Lines that arrive while a line is being edited: queued here, handed to reedline a few at a time, and never lost
//! when the line ends first.
//!
//! reedline's printer has a bounded channel whose `send` blocks, which a sink of notices must not. So lines wait in a
//! queue of our own. [`Printer::pass_on`] runs once per round of the editor's loop, right after reedline has printed
//! all that was in its channel; hence what was passed on in the last round is exactly what the channel still holds
//! when the loop ends, and [`Printer::drain`] gives it back.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};

use parking_lot::Mutex;
use reedline::ExternalPrinter;

/// Lines reedline is given at once.
const CHANNEL_LINES: usize = 64;

/// Lines that may wait; of more, the oldest are dropped and counted.
const WAITING_LINES: usize = 1000;

/// The queue.
#[derive(Default)]
pub(super) struct Printer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    dropped: usize,
    passed_on: Vec<String>,
    channel: Option<SyncSender<String>>,
}

impl Printer {
    /// Queues a line. Never blocks.
    pub(super) fn push(&self, line: String) {
        let mut state = self.state.lock();
        if state.waiting.len() >= WAITING_LINES {
            state.waiting.pop_front();
            state.dropped += 1;
        }
        state.waiting.push_back(line);
    }

    /// Hands over as many lines as the channel takes.
    pub(super) fn pass_on(&self) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.passed_on.clear();
        let Some(channel) = &state.channel else {
            return;
        };
        if state.dropped > 0 && channel.try_send(note(state.dropped)).is_ok() {
            state.dropped = 0;
        }
        while let Some(line) = state.waiting.pop_front() {
            match channel.try_send(line.clone()) {
                Ok(()) => state.passed_on.push(line),
                Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) => {
                    state.waiting.push_front(line);
                    break;
                }
            }
        }
    }

    /// A new channel for reedline. The old one is forgotten with what it holds.
    pub(super) fn renew(&self) -> ExternalPrinter<String> {
        let printer = ExternalPrinter::new(CHANNEL_LINES);
        self.state.lock().channel = Some(printer.sender());
        printer
    }

    /// What has not been printed, oldest first.
    pub(super) fn drain(&self) -> Vec<String> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut lines = std::mem::take(&mut state.passed_on);
        if state.dropped > 0 {
            lines.push(note(std::mem::take(&mut state.dropped)));
        }
        lines.extend(state.waiting.drain(..));
        lines
    }
}

fn note(dropped: usize) -> String {
    format!("… {dropped} lines were not shown")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(printer: &ExternalPrinter<String>) -> Vec<String> {
        std::iter::from_fn(|| printer.get_line()).collect()
    }

    #[test]
    fn lines_pass_in_order_and_pushing_never_blocks() {
        let queue = Printer::default();
        let channel = queue.renew();
        for n in 0..200 {
            queue.push(n.to_string());
        }
        let mut printed = Vec::new();
        for _ in 0..10 {
            queue.pass_on();
            printed.extend(all(&channel));
        }
        let expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        assert_eq!(printed, expected);
    }

    #[test]
    fn a_line_that_reedline_had_no_time_to_print_is_given_back() {
        let queue = Printer::default();
        let channel = queue.renew();
        queue.push("printed".to_owned());
        queue.pass_on();
        assert_eq!(all(&channel), ["printed"]);
        queue.push("stuck".to_owned());
        queue.pass_on();
        queue.push("waiting".to_owned());
        let _next = queue.renew();
        assert_eq!(queue.drain(), ["stuck", "waiting"]);
        assert_eq!(queue.drain(), Vec::<String>::new());
    }

    #[test]
    fn a_flood_is_bounded_and_says_so() {
        let queue = Printer::default();
        for n in 0..WAITING_LINES + 5 {
            queue.push(n.to_string());
        }
        let lines = queue.drain();
        assert_eq!(lines.len(), WAITING_LINES + 1);
        assert_eq!(
            lines.first().map(String::as_str),
            Some("… 5 lines were not shown")
        );
        assert_eq!(lines.get(1).map(String::as_str), Some("5"));
    }
}
