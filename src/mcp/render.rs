//! The one content policy: what a server answered becomes what the *model* reads (`M-60`..`M-68`).
//!
//! ```text
//! answer ── decode ── pieces: text pages, spilled payloads, links, errors ── fit ── one JSON value
//! ```
//!
//! Text is paged, payloads are decoded and spilled or inlined as text, and the whole is kept below a ceiling. No
//! base64 of a payload ever enters a value that is built here. Nothing waits, nothing prints; the spill directory is
//! passed in. Work on large content checks the abort token every 64 KiB.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

pub use super::blob::{BLOB_CEILING_BYTES, BlobError, RenderedBlob, Spilled, render_blob};
use super::catalog::CatalogItem;
pub use super::catalog::FIELD_BYTES;
pub use super::spill::SPILL_TREE_BYTES;

use super::ServerName;
use super::decode::{Block, Content, ResourceContent, ToolAnswer};
use super::fit;
use super::pieces::Reading;
use super::spill::SpillDir;
use crate::chat::ToolOutput;
use crate::utils::AbortToken;
use crate::utils::abort::Aborted;
use crate::utils::grep::Filter;
use crate::utils::text;

/// Bytes of text a page holds when the call does not say (`M-60`).
pub const DEFAULT_PAGE_BYTES: usize = 51_200;
/// Most bytes of text one item, and one whole answer, may hold (`M-54`, `M-60`).
pub const SLICE_CEILING_BYTES: usize = 204_800;
/// Most bytes an answer may have once it is serialised, whatever escaping costs (`M-54`).
pub const SERIALISED_CEILING_BYTES: usize = 409_600;
/// Longest type that is shown, in bytes; real ones have at most 255.
pub(super) const MIME_BYTES: usize = 255;
/// The least an answer may be lowered to, in bytes: less would not hold the facts about one item.
const LEAST_ANSWER_BYTES: usize = 2_048;
/// The bounds of one answer: the policy's own, or tighter ones (`H-41`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of text of a page when the call does not say.
    pub page: usize,
    /// Most bytes of text.
    pub slice: usize,
    /// Most bytes of the serialised answer.
    pub serialised: usize,
    /// Most bytes of one field of metadata.
    pub field: usize,
}

impl Bounds {
    /// The policy's own bounds, lowered so that the serialised answer has at most `max_result` bytes. Pages get
    /// shorter; an answer stays whole JSON and its `next_offset` exact.
    pub fn new(max_result: Option<usize>) -> Self {
        let serialised = max_result.map_or(SERIALISED_CEILING_BYTES, |max| {
            max.clamp(LEAST_ANSWER_BYTES, SERIALISED_CEILING_BYTES)
        });
        Self {
            page: DEFAULT_PAGE_BYTES.min(serialised),
            slice: SLICE_CEILING_BYTES.min(serialised),
            serialised,
            field: FIELD_BYTES.min(serialised / 16),
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self::new(None)
    }
}

/// A page of text, borrowed from the text it is a page of (`M-61`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedText<'a> {
    /// The page.
    pub text: Cow<'a, str>,
    /// The type the server claims, bounded.
    pub mime_type: Option<Cow<'a, str>>,
    /// Whether more follows.
    pub truncated: bool,
    /// Size in bytes of the text, or, with a pattern, of what it kept of the text.
    pub total_bytes: u64,
    /// Where the next page begins, in bytes; `None` on the last page.
    pub next_offset: Option<u64>,
    /// What the reader should know about the page.
    pub note: Option<String>,
    /// Where the page begins, after rounding.
    pub(super) start: u64,
}

/// Cuts a page of at most `max_bytes` (absent or 0: [`DEFAULT_PAGE_BYTES`]; at most [`SLICE_CEILING_BYTES`]) out of
/// `text` from byte `offset` on.
///
/// `offset` rounds forward to a character, the end rounds back, and a page holds at least one character; an offset
/// at or past the end gives an empty page. With a pattern all of this walks what the filter keeps (`M-62`).
pub fn render_text<'a>(
    text: &'a str,
    mime: Option<&'a str>,
    pattern: Option<&Filter>,
    offset: u64,
    max_bytes: Option<u64>,
) -> RenderedText<'a> {
    let view = View {
        filter: pattern,
        offset,
        max_bytes,
    };
    view.page(text, mime, &Bounds::default(), &AbortToken::new())
        .unwrap_or_else(|Aborted| RenderedText::empty(mime))
}

impl<'a> RenderedText<'a> {
    fn empty(mime: Option<&'a str>) -> Self {
        Self {
            text: Cow::Borrowed(""),
            mime_type: mime.map(|mime| text::bounded(mime, MIME_BYTES)),
            truncated: false,
            total_bytes: 0,
            next_offset: None,
            note: None,
            start: 0,
        }
    }

    pub(super) fn into_owned(self) -> RenderedText<'static> {
        RenderedText {
            text: Cow::Owned(self.text.into_owned()),
            mime_type: self.mime_type.map(|mime| Cow::Owned(mime.into_owned())),
            truncated: self.truncated,
            total_bytes: self.total_bytes,
            next_offset: self.next_offset,
            note: self.note,
            start: self.start,
        }
    }
}

/// Which part of a text a reader wants.
#[derive(Debug, Clone, Copy, Default)]
pub struct View<'f> {
    /// Only these lines.
    pub filter: Option<&'f Filter>,
    /// From this byte on.
    pub offset: u64,
    /// At most so many bytes.
    pub max_bytes: Option<u64>,
}

impl View<'_> {
    pub(super) fn page<'a>(
        &self,
        text: &'a str,
        mime: Option<&'a str>,
        bounds: &Bounds,
        abort: &AbortToken,
    ) -> Result<RenderedText<'a>, Aborted> {
        let max = match self.max_bytes {
            None | Some(0) => bounds.page,
            Some(max) => usize::try_from(max).unwrap_or(usize::MAX),
        }
        .min(bounds.slice);
        let mut page = RenderedText::empty(mime);
        if let Some(filter) = self.filter {
            let window = filter.window_until(text.as_bytes(), self.offset, max, abort)?;
            page.text = Cow::Owned(window.text);
            page.start = window.start;
            page.total_bytes = window.total;
            page.note = (window.matches == 0).then(|| {
                format!(
                    "no line matches the pattern; {} searched",
                    lines(window.lines_searched)
                )
            });
        } else {
            let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
            let (start, slice) = text::page(text, offset, max);
            page.text = Cow::Borrowed(slice);
            page.start = start as u64;
            page.total_bytes = text.len() as u64;
        }
        let end = page.start + page.text.len() as u64;
        page.next_offset = (end < page.total_bytes && !page.text.is_empty()).then_some(end);
        page.truncated = page.next_offset.is_some();
        Ok(page)
    }
}

fn lines(count: u64) -> String {
    if count == 1 {
        "1 line was".to_owned()
    } else {
        format!("{count} lines were")
    }
}

/// Everything an answer is rendered with.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// Whose answer it is.
    pub server: &'a ServerName,
    /// Where payloads go.
    pub spill: &'a SpillDir,
    /// How large the answer may be.
    pub bounds: Bounds,
    /// The function that reads this server's resources, when there is one.
    pub read_function: Option<&'a str>,
    /// Ends the work.
    pub abort: &'a AbortToken,
}

/// Renders what `resources/read` answered (`M-53`..`M-55`): one content as an object, several as a list, none as an
/// object that says so.
pub fn render_contents(
    contents: &[ResourceContent<'_>],
    uri: &str,
    audience: Option<&[String]>,
    view: View<'_>,
    policy: &Policy<'_>,
) -> Result<ToolOutput, Aborted> {
    let reading = Reading {
        uri,
        audience,
        view,
        kind: None,
    };
    let pieces = contents
        .iter()
        .map(|content| policy.resource(content, &reading));
    let omitted = |count: usize| {
        format!(
            "{} left out: an answer holds at most {} bytes of text; read each by its own uri, or all with a \
             `pattern` or a smaller `max_bytes`",
            were(count, "content"),
            policy.bounds.slice
        )
    };
    let total = contents.len();
    let fitted = fit::fit(pieces, total, policy.bounds, None, omitted)?;
    let mut values = fitted.items;
    let value = match (contents.len(), values.pop()) {
        (0, _) | (_, None) => json!({
            "uri": text::bounded(uri, policy.bounds.field),
            "empty": true,
            "note": "the resource is empty: the server sent no content for it",
        }),
        (1, Some(only)) => only,
        (_, Some(last)) => {
            values.push(last);
            Value::Array(values)
        }
    };
    Ok(ToolOutput {
        value,
        is_error: fitted.failures > 0 && fitted.failures == contents.len(),
        images: fitted.images,
    })
}

/// Renders what `tools/call` answered (`M-66`).
pub fn render_tool_answer(
    answer: &ToolAnswer<'_>,
    policy: &Policy<'_>,
) -> Result<ToolOutput, Aborted> {
    let bounds = policy.bounds;
    let structured = answer
        .structured
        .map(|structured| fit::bounded_json(structured, bounds.slice, bounds.serialised));
    let repeated = answer.structured.and_then(|structured| {
        let mut texts = answer.blocks.iter().enumerate().filter_map(text_block);
        let only = texts.next().filter(|_| texts.next().is_none());
        only.filter(|(_, text)| says(text, structured))
            .map(|(index, _)| index)
    });
    let pieces = answer
        .blocks
        .iter()
        .enumerate()
        .filter(|(index, _)| Some(*index) != repeated)
        .map(|(_, block)| policy.block(block));
    let omitted = |count: usize| {
        format!(
            "{} left out: an answer holds at most {} bytes; call the tool again with narrower arguments",
            were(count, "content item"),
            bounds.slice
        )
    };
    let total = answer.blocks.len() - usize::from(repeated.is_some());
    let fitted = fit::fit(pieces, total, bounds, structured.as_ref(), omitted)?;
    let mut value = Map::new();
    value.insert("content".into(), Value::Array(fitted.items));
    if let Some(structured) = structured {
        value.insert("structuredContent".into(), structured);
    }
    if answer.is_error {
        value.insert("isError".into(), Value::Bool(true));
    }
    Ok(ToolOutput {
        value: Value::Object(value),
        is_error: answer.is_error,
        images: fitted.images,
    })
}

/// Renders search results: the items, then a note for each thing the reader should know about them (`M-42`).
pub fn render_items(items: &[&CatalogItem], notes: &[String], bounds: Bounds) -> ToolOutput {
    let notes: Vec<Value> = notes
        .iter()
        .map(|note| json!({ "note": text::bounded(note, bounds.field) }))
        .collect();
    let pieces = items
        .iter()
        .map(|item| Ok(fit::Piece::fact(search_result(item, bounds))));
    let omitted = |count: usize| {
        format!(
            "{} left out: an answer holds at most {} bytes; ask for fewer with `top_k`",
            were(count, "item"),
            bounds.slice
        )
    };
    let spent = Value::Array(notes.clone());
    let spent = (!notes.is_empty()).then_some(&spent);
    let fitted = fit::fit(pieces, items.len(), bounds, spent, omitted).unwrap_or_default();
    let mut values = fitted.items;
    values.extend(notes);
    ToolOutput::ok(values)
}

/// An item as search shows it; a prompt with very many arguments shows none.
fn search_result(item: &CatalogItem, bounds: Bounds) -> Map<String, Value> {
    // Built from our own types with string keys: nothing to fail.
    let mut value = serde_json::to_value(item).unwrap_or_default();
    fit::bound_strings(&mut value, bounds.field);
    let too_large = fit::serialised_len(&value) > bounds.serialised / 2;
    let Value::Object(mut fields) = value else {
        return Map::new();
    };
    if too_large && fields.shift_remove("arguments").is_some() {
        let note = "its arguments are too many to be listed here";
        fields.insert("note".into(), note.into());
    }
    fields
}

fn were(count: usize, noun: &str) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", text::plural(count, noun))
}

fn text_block<'a>((index, block): (usize, &'a Block<'_>)) -> Option<(usize, &'a str)> {
    match block.content {
        Content::Text(text) => Some((index, text)),
        Content::Media { .. }
        | Content::Resource(_)
        | Content::Link(_)
        | Content::Unknown { .. }
        | Content::Unreadable { .. } => None,
    }
}

/// Whether the text is nothing but the JSON of `structured`.
fn says(text: &str, structured: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
