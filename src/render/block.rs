//! What a line of Markdown is, told from its beginning, as early as it can be. Pure.

use super::code::Fence;
use super::inline::Rest;
use super::theme::Style;

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// More of it is needed to tell. Never of a complete line.
    Unclear,
    Blank,
    /// A horizontal rule.
    Rule,
    /// Opens a code block.
    Fence(Fence),
    /// Perhaps of a table.
    Row,
    /// Text: what it begins with (shown in place of `skip` bytes), and how it looks.
    Text {
        lead: String,
        skip: usize,
        style: Style,
    },
}

/// What a line is, from what there is of it. Once it is clear, more of the line does not change it.
pub(super) fn classify(line: &str, rest: Rest) -> Kind {
    let open = rest == Rest::Open;
    let body = line.trim_start_matches([' ', '\t']);
    let indent = line.len() - body.len();
    let Some(first) = body.chars().next() else {
        return if open { Kind::Unclear } else { Kind::Blank };
    };
    let paragraph = || {
        let lead = line.get(..indent).unwrap_or_default().to_owned();
        Kind::Text {
            lead,
            skip: indent,
            style: Style::PLAIN,
        }
    };
    match first {
        '`' | '~' => {
            let run = body.len() - body.trim_start_matches(first).len();
            match Fence::open(line) {
                Some(fence) if !open => Kind::Fence(fence),
                _ if open && (run >= 3 || run == body.len()) => Kind::Unclear,
                _ => paragraph(),
            }
        }
        '|' if open => Kind::Unclear,
        '|' => Kind::Row,
        '#' => heading(body, indent, open).unwrap_or_else(paragraph),
        '>' => quote(body, indent, open).unwrap_or_else(paragraph),
        '-' | '*' | '+' | '_' => marker(line, body, first, open).unwrap_or_else(paragraph),
        '0'..='9' => ordered(line, body, open).unwrap_or_else(paragraph),
        _ => paragraph(),
    }
}

fn heading(body: &str, indent: usize, open: bool) -> Option<Kind> {
    let marks = body.len() - body.trim_start_matches('#').len();
    let after = body.get(marks..)?;
    if marks > 6 {
        return None;
    }
    let title = after.trim_start_matches([' ', '\t']);
    if title.is_empty() && open {
        return Some(Kind::Unclear);
    }
    if title.len() == after.len() && !after.is_empty() {
        return None;
    }
    Some(Kind::Text {
        lead: String::new(),
        skip: indent + body.len() - title.len(),
        style: Style::HEADING,
    })
}

fn quote(body: &str, indent: usize, open: bool) -> Option<Kind> {
    let text = body.trim_start_matches(['>', ' ']);
    if text.is_empty() && open {
        return Some(Kind::Unclear);
    }
    let marks = body.get(..body.len() - text.len())?;
    let depth = marks.chars().filter(|c| *c == '>').count().min(8);
    Some(Kind::Text {
        lead: "│ ".repeat(depth),
        skip: indent + marks.len(),
        style: Style::ITALIC,
    })
}

/// A bullet, or a rule of at least three equal marks.
fn marker(line: &str, body: &str, mark: char, open: bool) -> Option<Kind> {
    let only_marks = body.chars().all(|c| c == mark || c == ' ' || c == '\t');
    let count = body.chars().filter(|c| *c == mark).count();
    if only_marks && open {
        return Some(Kind::Unclear);
    }
    if only_marks && count >= 3 && mark != '+' {
        return Some(Kind::Rule);
    }
    let after = body.get(mark.len_utf8()..)?;
    let text = after.trim_start_matches([' ', '\t']);
    if mark == '_' || (text.len() == after.len() && !after.is_empty()) {
        return None;
    }
    let indent = line.get(..line.len() - body.len())?;
    Some(Kind::Text {
        lead: format!("{indent}• "),
        skip: line.len() - text.len(),
        style: Style::PLAIN,
    })
}

/// `1.` or `1)`.
fn ordered(line: &str, body: &str, open: bool) -> Option<Kind> {
    let after = body.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = body.len() - after.len();
    if digits > 9 {
        return None;
    }
    if after.is_empty() && open {
        return Some(Kind::Unclear);
    }
    let rest = after.strip_prefix(['.', ')'])?;
    let text = rest.trim_start_matches([' ', '\t']);
    if text.is_empty() && open {
        return Some(Kind::Unclear);
    }
    if text.len() == rest.len() {
        return None;
    }
    let lead = line.get(..line.len() - rest.len())?;
    Some(Kind::Text {
        lead: format!("{lead} "),
        skip: line.len() - text.len(),
        style: Style::PLAIN,
    })
}
