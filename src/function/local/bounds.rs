//! How much of a text a tool returns at once: the same page and ceiling as MCP text has, and footers that say how to
//! get the rest.

use crate::function::env::Limits;
use crate::utils::text;

/// Bytes of a page unless the call says otherwise.
pub(in crate::function) const PAGE: usize = 51_200;

/// Most bytes of any result.
pub(in crate::function) const CEILING: usize = 204_800;

/// What a footer may need.
const FOOTER: usize = 160;

/// Most bytes of a result in this context.
pub(in crate::function) fn room(limits: &Limits) -> usize {
    limits.max_tool_result_chars.map_or(CEILING, |chars| {
        chars.saturating_sub(FOOTER).clamp(4, CEILING)
    })
}

/// Size of the page that was asked for: absent or 0 is the default, and a character always fits.
pub(super) fn page(max_bytes: Option<u64>, room: usize) -> usize {
    match max_bytes {
        None | Some(0) => PAGE,
        Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
    }
    .min(room)
    .max(4)
}

/// `text` within `room` bytes, saying how much was cut.
pub(in crate::function) fn whole(text: String, room: usize) -> String {
    if text.len() <= room {
        return text;
    }
    let total = text.len();
    let kept = text::prefix(&text, room);
    format!("{kept}\n[cut: the first {} of {total} bytes]", kept.len())
}

/// One page of a text that is in memory, from `offset` on.
pub(super) fn page_of(text: &str, offset: u64, max: usize) -> String {
    let total = text.len();
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if start >= total {
        return past_end(offset, total as u64);
    }
    let start = text.ceil_char_boundary(start);
    let rest = text.get(start..).unwrap_or_default();
    let page = text::prefix(rest, max);
    with_footer(page, start as u64, page.len() as u64, total as u64)
}

/// The page and, unless it is everything, where it lies and how to go on. `size` is its size in the source.
pub(super) fn with_footer(page: &str, start: u64, size: u64, total: u64) -> String {
    let end = start.saturating_add(size);
    if start == 0 && end >= total {
        return page.to_owned();
    }
    let next = if end >= total {
        "this is the end".to_owned()
    } else {
        format!("next_offset: {end}")
    };
    format!("{page}\n[bytes {start} to {end} of {total}; {next}]")
}

/// A page at or past the end: empty, not an error.
pub(super) fn past_end(offset: u64, total: u64) -> String {
    if total == 0 {
        "[empty]".to_owned()
    } else {
        format!("[nothing at offset {offset}: there are {total} bytes]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_emoji_reassemble() {
        let text = "🦊".repeat(50);
        for max in [4, 5, 7, 13, 200] {
            let (mut offset, mut seen) = (0, String::new());
            loop {
                let page = page_of(&text, offset, max);
                let body = page.split("\n[").next().unwrap();
                seen.push_str(body);
                match page.split("next_offset: ").nth(1) {
                    Some(next) => offset = next.trim_end_matches(']').parse().unwrap(),
                    None => break,
                }
            }
            assert_eq!(seen, text, "pages of {max}");
        }
    }

    #[test]
    fn a_cut_inside_an_emoji_moves_back() {
        for room in 0..9 {
            let cut = whole("é🦊🦊🦊".to_owned(), room);
            assert!(cut.contains("[cut: the first"), "{cut}");
        }
        assert_eq!(whole("🦊".to_owned(), 4), "🦊");
    }

    #[test]
    fn a_page_holds_a_character_whatever_was_asked() {
        assert_eq!(page(Some(1), CEILING), 4);
        assert_eq!(page(Some(0), CEILING), PAGE);
        assert_eq!(page(None, 100), 100);
        assert_eq!(page(Some(u64::MAX), CEILING), CEILING);
        let tight = Limits {
            max_tool_result_chars: Some(0),
        };
        assert_eq!(room(&tight), 4);
    }
}
