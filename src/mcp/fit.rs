//! Keeping an answer below its ceiling (`M-54`): pieces are kept in order while they fit, the first text that does
//! not is cut, what comes after it is counted.
//!
//! Two sums are kept: bytes of text, which is what the ceiling is about, and bytes of the serialised answer, which
//! escaping can multiply by six.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::render::{Bounds, RenderedText};
use crate::chat::Image;
use crate::utils::abort::Aborted;
use crate::utils::text;

/// What the brackets, keys and flags around the items of an answer cost at most.
pub(crate) const WRAPPER_BYTES: usize = 64;
/// What the marker for omitted items costs at most.
const MARKER_BYTES: usize = 384;
/// What the facts that only a cut text has may cost more than those of a whole one.
const CUT_BYTES: usize = 64;

/// A rendered part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece<'a> {
    /// Text, which can be cut.
    Text(TextPiece<'a>),
    /// Anything else, which is there or not.
    Fact {
        /// The item.
        value: Map<String, Value>,
        /// The image it stands for.
        image: Option<Image>,
        /// Whether it says that something could not be rendered.
        failed: bool,
    },
}

impl Piece<'_> {
    pub(crate) fn fact(value: Map<String, Value>) -> Self {
        Self::Fact {
            value,
            image: None,
            failed: false,
        }
    }

    pub(crate) fn failure(value: Map<String, Value>) -> Self {
        Self::Fact {
            value,
            image: None,
            failed: true,
        }
    }

    /// The item, whole.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(piece) => piece.value(piece.page.text.len()),
            Self::Fact { value, .. } => Value::Object(value),
        }
    }
}

/// A page of text on its way into an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TextPiece<'a> {
    /// Keys before the text.
    head: Map<String, Value>,
    page: RenderedText<'a>,
    audience: Option<Vec<String>>,
    /// Whether the reader can ask for the next page.
    paged: bool,
}

impl<'a> TextPiece<'a> {
    pub(crate) fn new(
        head: Map<String, Value>,
        page: RenderedText<'a>,
        audience: Option<&[String]>,
        paged: bool,
    ) -> Self {
        Self {
            head,
            page,
            audience: audience.map(<[String]>::to_vec),
            paged,
        }
    }

    /// The item with the first `length` bytes of the page, which end at a character.
    fn value(&self, length: usize) -> Value {
        let page = &self.page;
        let cut = length < page.text.len();
        let next = if cut {
            Some(page.start + length as u64)
        } else {
            page.next_offset
        };
        let mut value = self.head.clone();
        value.insert("text".into(), text::prefix(&page.text, length).into());
        if self.paged {
            value.insert("truncated".into(), next.is_some().into());
            value.insert("total_bytes".into(), page.total_bytes.into());
            value.insert("next_offset".into(), next.into());
        } else if next.is_some() {
            value.insert("truncated".into(), true.into());
            value.insert("total_bytes".into(), page.total_bytes.into());
        }
        if let Some(audience) = &self.audience {
            value.insert("audience".into(), audience.clone().into());
        }
        let note = match &page.note {
            Some(note) => Some(note.clone()),
            None if !self.paged && next.is_some() => Some(format!(
                "cut after {length} bytes; call the tool again with narrower arguments for the rest"
            )),
            None => None,
        };
        if let Some(note) = note {
            value.insert("note".into(), note.into());
        }
        Value::Object(value)
    }
}

/// What fitted.
#[derive(Debug, Default)]
pub(crate) struct Fitted {
    /// The items, in order, and the marker for omitted ones.
    pub items: Vec<Value>,
    /// The images the items stand for.
    pub images: Vec<Image>,
    /// How many items say that something could not be rendered.
    pub failures: usize,
}

/// Takes pieces, `total` in number, while they fit beside the structured part of the answer, which counts first. Pieces
/// beyond are not even rendered; `note` says how to reach them.
pub(crate) fn fit<'a>(
    pieces: impl Iterator<Item = Result<Piece<'a>, Aborted>>,
    total: usize,
    bounds: Bounds,
    structured: Option<&Value>,
    note: impl Fn(usize) -> String,
) -> Result<Fitted, Aborted> {
    let spent = structured.map_or(0, serialised_len);
    let mut left = Left {
        text: bounds.slice.saturating_sub(spent),
        serialised: bounds
            .serialised
            .saturating_sub(spent + WRAPPER_BYTES + MARKER_BYTES),
    };
    let mut fitted = Fitted::default();
    for piece in pieces {
        // Whoever reads must get something, whatever it costs; each item alone is far below the ceiling.
        let must = structured.is_none() && fitted.items.is_empty();
        let (kept, whole) = match piece? {
            Piece::Text(piece) => left.text_piece(&piece, must),
            Piece::Fact {
                value,
                image,
                failed,
            } => {
                let kept = left.fact(Value::Object(value), must);
                let whole = kept.is_some();
                fitted.images.extend(image.filter(|_| whole));
                fitted.failures += usize::from(whole && failed);
                (kept, whole)
            }
        };
        fitted.items.extend(kept);
        if !whole {
            break;
        }
    }
    let omitted = total.saturating_sub(fitted.items.len());
    if omitted > 0 {
        fitted.items.push(json!({
            "truncated": true,
            "omitted_items": omitted,
            "note": note(omitted),
        }));
    }
    Ok(fitted)
}

/// What may still be spent.
struct Left {
    text: usize,
    serialised: usize,
}

impl Left {
    /// The item as far as it fits, and whether that is all of it.
    fn text_piece(&mut self, piece: &TextPiece<'_>, must: bool) -> (Option<Value>, bool) {
        let page = piece.page.text.as_ref();
        if page.len() <= self.text {
            let value = piece.value(page.len());
            let cost = serialised_len(&value) + 1;
            if cost <= self.serialised {
                self.text -= page.len();
                self.serialised -= cost;
                return (Some(value), true);
            }
        }
        let facts = serialised_len(&piece.value(0)) + CUT_BYTES;
        let room = self.serialised.saturating_sub(facts);
        let mut length = escaped_prefix(page, self.text, room);
        if length == 0 && must {
            length = page.chars().next().map_or(0, char::len_utf8);
        } else if length == 0 {
            return (None, false);
        }
        *self = Self {
            text: 0,
            serialised: 0,
        };
        (Some(piece.value(length)), false)
    }

    /// The item, if it fits or must.
    fn fact(&mut self, value: Value, must: bool) -> Option<Value> {
        let (text, cost) = (text_len(&value), serialised_len(&value) + 1);
        if !must && (text > self.text || cost > self.serialised) {
            return None;
        }
        self.text = self.text.saturating_sub(text);
        self.serialised = self.serialised.saturating_sub(cost);
        Some(value)
    }
}

/// How much of `text` has at most `max` bytes and at most `max_escaped` once it is a JSON string.
fn escaped_prefix(text: &str, max: usize, max_escaped: usize) -> usize {
    let mut escaped = 0;
    let mut end = text.len().min(max);
    for (index, byte) in text.bytes().take(max).enumerate() {
        escaped += match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..=0x1f => 6,
            _ => 1,
        };
        if escaped > max_escaped {
            end = index;
            break;
        }
    }
    text.floor_char_boundary(end)
}

/// Bytes of all string values.
fn text_len(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_len).sum(),
        Value::Object(fields) => fields.values().map(text_len).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Bounds every string value to `max` bytes.
pub(crate) fn bound_strings(value: &mut Value, max: usize) {
    match value {
        Value::String(text) if text.len() > max => *text = text::bounded(text, max).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(|item| bound_strings(item, max)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| bound_strings(field, max)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Bytes of the value as JSON, without building it.
pub(crate) fn serialised_len(value: &Value) -> usize {
    let mut counter = Counter(0);
    // Counting cannot fail, and a value has no keys that are no strings.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value as it is while its JSON has at most `max` bytes; otherwise the beginning of its JSON as text, cut so that the
/// whole stays below `max_serialised` (`M-66`).
pub(crate) fn bounded_json(value: &Value, max: usize, max_serialised: usize) -> Value {
    let total = serialised_len(value);
    if total <= max.min(max_serialised.saturating_sub(WRAPPER_BYTES + MARKER_BYTES)) {
        return value.clone();
    }
    let text = value.to_string();
    let room = max_serialised.saturating_sub(2 * WRAPPER_BYTES + MARKER_BYTES);
    let length = escaped_prefix(&text, max, room);
    json!({
        "truncated": true,
        "total_bytes": total,
        "text": text::prefix(&text, length),
    })
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
