//! Calls as they arrive in pieces: keyed by what the server says, never by position in a list, so that no index
//! can make us allocate and no two calls are mixed into one.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Fault;
use crate::chat::{Arguments, CallId, ToolCall};

/// The most calls one answer may make.
const MAX_CALLS: usize = 256;
/// The most their arguments may hold, together.
const MAX_ARGUMENTS: usize = 16 * 1024 * 1024;

/// One piece of a call.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) arguments: &'a str,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct CallBook {
    slots: Vec<Slot>,
    size: usize,
}

impl CallBook {
    /// Adds a piece; the function's name when this piece begins a call.
    pub(super) fn add(&mut self, piece: Piece<'_>) -> Result<Option<String>, Fault> {
        let id = piece.id.filter(|id| !id.is_empty());
        let name = piece.name.filter(|name| !name.is_empty());
        self.size += piece.arguments.len();
        if self.size > MAX_ARGUMENTS {
            return Err(too_large());
        }
        let at = match self.find(piece.index, id, name) {
            Some(at) => at,
            None if self.slots.len() >= MAX_CALLS => {
                return Err(Fault::TooLarge(format!(
                    "it makes more than {MAX_CALLS} calls"
                )));
            }
            None => {
                self.slots.push(Slot {
                    index: piece.index,
                    ..Slot::default()
                });
                self.slots.len() - 1
            }
        };
        let Some(slot) = self.slots.get_mut(at) else {
            return Ok(None);
        };
        if let Some(id) = id
            && slot.id.is_empty()
        {
            id.clone_into(&mut slot.id);
        }
        let begins = slot.name.is_empty() && name.is_some();
        if let Some(name) = name
            && slot.name != name
        {
            // Some servers send a name in pieces, others repeat it whole.
            if name.starts_with(slot.name.as_str()) {
                slot.name.clear();
            }
            slot.name.push_str(crate::utils::text::prefix(name, 1024));
        }
        slot.arguments.push_str(piece.arguments);
        Ok(begins.then(|| slot.name.clone()))
    }

    /// Replaces the arguments of the call at `index`: a wire that repeats them whole at the end.
    pub(super) fn settle(&mut self, index: u64, arguments: &str) -> Result<(), Fault> {
        let Some(slot) = self
            .slots
            .iter_mut()
            .rfind(|slot| slot.index == Some(index))
        else {
            return Ok(());
        };
        self.size = self.size.saturating_sub(slot.arguments.len()) + arguments.len();
        if self.size > MAX_ARGUMENTS {
            return Err(too_large());
        }
        arguments.clone_into(&mut slot.arguments);
        Ok(())
    }

    fn find(&self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let last = match (index, id) {
            (Some(_), _) => self.slots.iter().rposition(|slot| slot.index == index)?,
            (None, Some(id)) => return self.slots.iter().rposition(|slot| slot.id == id),
            (None, None) => self.slots.len().checked_sub(1)?,
        };
        let slot = self.slots.get(last)?;
        // A new id on a used index is a new call; so is a new name once arguments have come.
        let other_id = id.is_some_and(|id| !slot.id.is_empty() && slot.id != id);
        let other_name = id.is_none()
            && name.is_some_and(|name| {
                !slot.name.is_empty()
                    && !slot.arguments.is_empty()
                    && (slot.name != name || index.is_none())
            });
        (!other_id && !other_name).then_some(last)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The calls in the order in which they began. Those without a name cannot be answered and are left out; ids
    /// that are missing or not unique are replaced by ours.
    pub(super) fn take(&mut self) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for slot in self.slots.drain(..) {
            if slot.name.is_empty() {
                continue;
            }
            let taken = calls.iter().any(|call| call.id.0 == slot.id);
            let id = if slot.id.is_empty() || taken {
                new_id()
            } else {
                slot.id
            };
            calls.push(ToolCall {
                id: CallId(id),
                name: slot.name,
                arguments: Arguments::parse(&slot.arguments),
            });
        }
        calls
    }
}

fn too_large() -> Fault {
    Fault::TooLarge("the arguments of its calls are over 16 MiB".to_owned())
}

/// An id for a call whose provider issued none; unique across the sessions it may be replayed in.
fn new_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    format!("call_{:016x}", hasher.finish())
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
