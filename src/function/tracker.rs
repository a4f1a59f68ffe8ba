//! Repeat detection (`H-41`): a model that makes the same call a third time in a row is told so instead of being
//! obeyed. Pure; one tracker lives as long as a turn.

use crate::chat::{Arguments, ToolCall};

/// From which identical consecutive call on nothing is executed.
const LIMIT: usize = 3;

/// Name beginnings of functions that are meant to be called again: polling a delegate, asking the person.
const EXEMPT: [&str; 2] = ["agent__", "user__"];

/// Remembers the last call and how often it came in a row.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    last: Option<(String, Arguments)>,
    count: usize,
}

impl Tracker {
    /// Counts `call`; `Some(n)` when it is the `n`-th identical call in a row and must not be executed.
    pub fn observe(&mut self, call: &ToolCall) -> Option<usize> {
        let same = self
            .last
            .as_ref()
            .is_some_and(|(name, arguments)| *name == call.name && *arguments == call.arguments);
        if same {
            self.count = self.count.saturating_add(1);
        } else {
            self.last = Some((call.name.clone(), call.arguments.clone()));
            self.count = 1;
        }
        let exempt = EXEMPT.iter().any(|prefix| call.name.starts_with(prefix));
        (self.count >= LIMIT && !exempt).then_some(self.count)
    }
}

#[cfg(test)]
#[path = "tracker_tests.rs"]
mod tests;
