//! Lists, page by page, within bounds (`M-19`). Pure: asking is the caller's.
//!
//! Cursors mean nothing to us: any string, the empty one included, may lead to more. What ends a list is a page
//! without a cursor, a cursor that was followed before and leads to nothing new, or a bound.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value};

use super::{ListKind, Listing};

/// Most pages of one list.
pub const MAX_PAGES: usize = 1_000;
/// Most items of one list.
pub const MAX_ITEMS: usize = 50_000;
/// Most bytes of one list, estimated: no list grows beyond what a single message may hold.
pub const MAX_BYTES: usize = super::transport::MESSAGE_MAX;

/// What to do after a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask with this cursor.
    Page(String),
    /// The list is complete, or was stopped.
    Done,
}

/// A list that is being gathered.
#[derive(Debug)]
pub(crate) struct Pager {
    kind: ListKind,
    pages: usize,
    bytes: usize,
    items: Vec<Value>,
    seen_items: HashSet<u64>,
    seen_cursors: HashSet<String>,
    warning: Option<String>,
}

impl Pager {
    pub(crate) fn new(kind: ListKind) -> Self {
        Self {
            kind,
            pages: 0,
            bytes: 0,
            items: Vec::new(),
            seen_items: HashSet::new(),
            seen_cursors: HashSet::new(),
            warning: None,
        }
    }

    /// The parameters that ask for a page.
    pub(crate) fn params(cursor: Option<&str>) -> Map<String, Value> {
        cursor
            .map(|cursor| ("cursor".to_owned(), Value::from(cursor)))
            .into_iter()
            .collect()
    }

    /// Takes a page.
    pub(crate) fn page(&mut self, mut result: Value) -> Next {
        self.pages += 1;
        let cursor = match result.get("nextCursor") {
            Some(Value::String(cursor)) => Some(cursor.clone()),
            _ => None,
        };
        let page = if let Some(Value::Array(items)) = result.get_mut(self.kind.key()) {
            std::mem::take(items)
        } else {
            self.warn("an answer has no such list");
            Vec::new()
        };
        let mut new = 0;
        for item in &page {
            let mut hasher = DefaultHasher::new();
            item.to_string().hash(&mut hasher);
            new += usize::from(self.seen_items.insert(hasher.finish()));
        }
        let repeated = cursor
            .as_ref()
            .is_some_and(|cursor| !self.seen_cursors.insert(cursor.clone()));
        if repeated && new == 0 {
            self.warn("the server repeats a cursor that leads to nothing new");
            return Next::Done;
        }
        for item in page {
            self.bytes += size(&item);
            if self.items.len() == MAX_ITEMS || self.bytes > MAX_BYTES {
                self.warn("there are more than coyote takes");
                return Next::Done;
            }
            self.items.push(item);
        }
        match cursor {
            Some(_) if self.pages == MAX_PAGES => {
                self.warn("there are more pages than coyote follows");
                Next::Done
            }
            Some(cursor) => Next::Page(cursor),
            None => Next::Done,
        }
    }

    /// Whether there is something to keep if the rest cannot be had.
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// Notes why the list is not complete. The first reason counts.
    pub(crate) fn warn(&mut self, reason: &str) {
        let (kind, pages) = (self.kind.words(), self.pages);
        self.warning.get_or_insert_with(|| {
            format!("the list of {kind} was stopped at page {pages}: {reason}")
        });
    }

    pub(crate) fn finish(self) -> Listing {
        Listing {
            items: self.items,
            warning: self.warning,
            unsupported: false,
        }
    }
}

/// About how much memory a value takes.
fn size(value: &Value) -> usize {
    const NODE: usize = 16;
    NODE + match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
    }
}

#[cfg(test)]
#[path = "pager_tests.rs"]
mod tests;
