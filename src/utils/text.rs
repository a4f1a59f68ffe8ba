//! Text for people, without ever cutting inside a character: bounds, widths, plurals, sanitising (`M-21`).

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// Removes what could act on a terminal (`M-21`): escape sequences whole, C0 and C1 controls but newline and tab.
///
/// `\r\n` becomes `\n` and a lone `\r` goes, so nothing can be written over. Characters that reorder text or are
/// meant not to be seen are shown as `<U+202E>`: what was hidden becomes visible instead of vanishing. Joiners and
/// variation selectors stay, because emoji and scripts need them. Idempotent; a clean text is not copied.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hazard) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Sanitizer::default().feed(text))
}

/// [`sanitize`], on one line: newlines and tabs become spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace(['\n', '\t'], " ")
}

/// Whether [`sanitize`] removes or replaces `c`.
pub fn is_hazard(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || is_hidden(c)
}

/// Bidirectional embeddings, overrides and isolates; characters without width or ink that no script needs; separators
/// that some programs take for a line's end.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        | '\u{200B}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{00AD}' | '\u{180E}'
        | '\u{2028}' | '\u{2029}' | '\u{E0000}'..='\u{E007F}')
}

/// [`sanitize`] for text that arrives in pieces: a sequence split over pieces is removed like a whole one.
#[derive(Debug, Default)]
pub struct Sanitizer {
    place: Place,
}

/// Where in a control function (ECMA-48) a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Text,
    /// After ESC, or after its intermediate bytes.
    Escape,
    /// In a control sequence: parameters follow, a letter ends it.
    Sequence,
    /// In a control string (OSC, DCS, SOS, PM, APC): anything follows, up to ST or BEL.
    String,
    /// After an ESC in a control string: `\` ends it, anything else begins another escape.
    StringEscape,
}

impl Sanitizer {
    /// What of `text` may be shown, given all that came before.
    pub fn feed(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.step(c, &mut out);
        }
        out
    }

    fn step(&mut self, c: char, out: &mut String) {
        if let Some(place) = introduced_by(c) {
            let in_string = matches!(self.place, Place::String | Place::StringEscape);
            self.place = match place {
                Place::Escape if in_string => Place::StringEscape,
                place => place,
            };
            return;
        }
        self.place = match (self.place, c) {
            // A line's end ends everything: a sequence that is never finished must not swallow the text after it.
            // What is no part of a sequence ends it as well.
            (_, '\n') | (Place::Text, _) => plain(c, out),
            (Place::Sequence, _) if !c.is_ascii() && !c.is_control() => plain(c, out),
            // CAN, SUB and ST end everything, BEL and `ESC \` a string, a letter a sequence.
            (_, '\u{18}' | '\u{1A}' | '\u{9C}')
            | (Place::String, '\u{07}')
            | (Place::StringEscape, '\\')
            | (Place::Sequence, '@'..='~') => Place::Text,
            (Place::Escape | Place::StringEscape, _) => after_escape(c, out),
            (place @ (Place::String | Place::Sequence), _) => place,
        };
    }
}

/// What a control character begins, wherever it stands.
fn introduced_by(c: char) -> Option<Place> {
    match c {
        '\u{1B}' => Some(Place::Escape),
        '\u{9B}' => Some(Place::Sequence),
        '\u{90}' | '\u{98}' | '\u{9D}' | '\u{9E}' | '\u{9F}' => Some(Place::String),
        _ => None,
    }
}

fn after_escape(c: char, out: &mut String) -> Place {
    match c {
        '[' => Place::Sequence,
        ']' | 'P' | 'X' | '^' | '_' => Place::String,
        ' '..='/' => Place::Escape,
        '0'..='~' => Place::Text,
        _ if c.is_control() => Place::Escape,
        _ => plain(c, out),
    }
}

/// Ordinary text.
fn plain(c: char, out: &mut String) -> Place {
    show(c, out);
    Place::Text
}

fn show(c: char, out: &mut String) {
    if is_hidden(c) {
        let _ = write!(out, "<U+{:04X}>", u32::from(c));
    } else if !is_hazard(c) {
        out.push(c);
    }
}

/// Columns `text` takes on a terminal, counted without tabs and newlines.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` cut to `columns`, with `…` in place of what was cut; what is seen as one character is never cut in two.
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(room) = columns.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut end = 0;
    for (at, cluster) in clusters(text) {
        let next = at + cluster.len();
        if width(text.get(..next).unwrap_or_default()) > room {
            break;
        }
        end = next;
    }
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
}

/// The pieces of `text` that are seen as one character each, with their offsets: a base with its marks, joined emoji,
/// flags.
pub fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, mut last) = rest.next()?;
        let mut end = start + last.len_utf8();
        let mut flag = is_regional(last);
        while let Some(&(at, next)) = rest.peek() {
            let second_of_flag = flag && is_regional(next);
            if !(second_of_flag || continues(last, next)) {
                break;
            }
            flag &= !second_of_flag;
            last = next;
            end = at + next.len_utf8();
            rest.next();
        }
        Some((start, text.get(start..end)?))
    })
}

/// Whether `next` is drawn onto or together with the character before it.
fn continues(last: char, next: char) -> bool {
    let joiner = '\u{200D}';
    let is_mark = !next.is_control() && UnicodeWidthChar::width(next) == Some(0);
    let is_skin = matches!(next, '\u{1F3FB}'..='\u{1F3FF}');
    !last.is_control() && (is_mark || is_skin || last == joiner)
}

fn is_regional(c: char) -> bool {
    matches!(c, '\u{1F1E6}'..='\u{1F1FF}')
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
