//! Inline Markdown of one line: emphasis, code, links. Pure, and made for text that is still arriving.
//!
//! A mark that may open something is held back until what closes it has arrived, the line has ended, or so much has
//! come that it will not be waited for ([`LOOKAHEAD`]); a mark that nothing closes stands for itself. The decision
//! depends on the text alone, never on where it was cut on its way here.

use super::theme::{Span, Style};

/// How far behind an opening mark its partner may be, in bytes.
const LOOKAHEAD: usize = 1000;

/// What may begin something.
const MARKS: [char; 7] = ['`', '*', '_', '~', '[', '!', '\\'];

/// Nesting of emphasis that is followed.
const MAX_DEPTH: usize = 8;

/// Whether more of the line can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// The line is complete.
    Ended,
    /// It is still arriving.
    Open,
}

/// The spans of `text` as far as they can be decided, and how many bytes of it they took.
///
/// `before` is the character right before `text` on its line. With [`Rest::Ended`] everything is decided.
pub(super) fn spans(
    text: &str,
    before: Option<char>,
    style: Style,
    rest: Rest,
) -> (Vec<Span>, usize) {
    let mut parser = Parser {
        text,
        rest,
        style,
        depth: 0,
        out: Vec::new(),
    };
    let taken = parser.run(before);
    (parser.out, taken)
}

/// What a mark turned out to be.
enum Found {
    /// It can not be told yet.
    Undecided,
    /// It stands for itself: this many bytes of text.
    Literal(usize),
    /// It was something, which has been emitted: this many bytes.
    Taken(usize),
}

struct Parser<'a> {
    text: &'a str,
    rest: Rest,
    style: Style,
    depth: usize,
    out: Vec<Span>,
}

impl Parser<'_> {
    fn run(&mut self, mut before: Option<char>) -> usize {
        let mut at = 0;
        while let Some(c) = self.from(at).chars().next() {
            let found = match c {
                '`' => self.code(at),
                '*' | '_' | '~' => self.emphasis(at, c, before),
                '[' => self.link(at, 0),
                '!' if self.from(at).starts_with("![") => self.link(at, 1),
                '!' if self.rest == Rest::Open && self.from(at).len() == 1 => Found::Undecided,
                '\\' => self.escape(at),
                _ => Found::Literal(self.plain_run(at, c)),
            };
            let taken = match found {
                Found::Undecided => return at,
                Found::Taken(bytes) => bytes,
                Found::Literal(bytes) => {
                    let literal = prefix(self.from(at), bytes).to_owned();
                    self.push(self.style, &literal);
                    bytes
                }
            };
            before = prefix(self.from(at), taken).chars().next_back();
            at += taken;
        }
        at
    }

    fn from(&self, at: usize) -> &str {
        self.text.get(at..).unwrap_or_default()
    }

    /// What is looked at to decide about the mark at `at`, and whether that is all that will ever be looked at.
    fn view(&self, at: usize) -> (&str, Rest) {
        let text = self.from(at);
        if text.len() > LOOKAHEAD {
            (
                prefix(text, text.floor_char_boundary(LOOKAHEAD)),
                Rest::Ended,
            )
        } else {
            (text, self.rest)
        }
    }

    /// How much behind `at` is no mark, the character `c` there included.
    fn plain_run(&self, at: usize, c: char) -> usize {
        let behind = self.from(at + c.len_utf8());
        c.len_utf8() + behind.find(MARKS).unwrap_or(behind.len())
    }

    fn push(&mut self, style: Style, text: &str) {
        match self.out.last_mut() {
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.out.push(Span {
                style,
                text: text.to_owned(),
            }),
        }
    }

    /// Not decided while it can still come; otherwise the mark stands for itself.
    fn absent(&self, at: usize, mark: usize) -> Found {
        if self.view(at).1 == Rest::Open {
            Found::Undecided
        } else {
            Found::Literal(mark)
        }
    }

    fn code(&mut self, at: usize) -> Found {
        let (text, rest) = self.view(at);
        let ticks = run_length(text, '`');
        if ticks == text.len() {
            return self.absent(at, ticks);
        }
        let mut from = ticks;
        while let Some(offset) = tail(text, from).find('`') {
            let start = from + offset;
            let length = run_length(text.get(start..).unwrap_or_default(), '`');
            let end = start + length;
            if end == text.len() && rest == Rest::Open {
                return self.absent(at, ticks); // the run may go on
            }
            if length == ticks {
                let inner = text.get(ticks..start).unwrap_or_default();
                let padded = inner
                    .strip_prefix(' ')
                    .and_then(|inner| inner.strip_suffix(' '));
                let inner = padded
                    .filter(|inner| !inner.trim().is_empty())
                    .unwrap_or(inner)
                    .to_owned();
                self.push(self.style.with(Style::CODE), &inner);
                return Found::Taken(end);
            }
            from = end;
        }
        self.absent(at, ticks)
    }

    fn emphasis(&mut self, at: usize, mark: char, before: Option<char>) -> Found {
        let (text, rest) = self.view(at);
        let length = run_length(text, mark);
        let Some(after) = text.get(length..).and_then(|rest| rest.chars().next()) else {
            return self.absent(at, length);
        };
        let intraword = mark == '_' && before.is_some_and(char::is_alphanumeric);
        let style = match (mark, length) {
            ('~', 2) => Style::STRIKE,
            ('*' | '_', 1) => Style::ITALIC,
            ('*' | '_', 2) => Style::BOLD,
            ('*' | '_', 3) => Style::BOLD.with(Style::ITALIC),
            _ => return Found::Literal(length),
        };
        if after.is_whitespace() || intraword || self.depth >= MAX_DEPTH {
            return Found::Literal(length);
        }
        let Some(close) = closing(text, mark, length, rest) else {
            return self.absent(at, length);
        };
        let inner = text.get(length..close).unwrap_or_default().to_owned();
        let mut nested = Parser {
            text: &inner,
            rest: Rest::Ended,
            style: self.style.with(style),
            depth: self.depth + 1,
            out: Vec::new(),
        };
        nested.run(Some(mark));
        for span in nested.out {
            self.push(span.style, &span.text);
        }
        Found::Taken(close + length)
    }

    /// `[text](target)`, or with a `!` before it. The target stays visible: a text can say anything.
    fn link(&mut self, at: usize, skip: usize) -> Found {
        let (text, _) = self.view(at);
        let Some(close) = bracket(text, skip, '[', ']') else {
            return self.absent(at, skip + 1);
        };
        match text.get(close + 1..).and_then(|rest| rest.chars().next()) {
            None => return self.absent(at, skip + 1),
            Some('(') => {}
            Some(_) => return Found::Literal(skip + 1),
        }
        let Some(end) = bracket(text, close + 1, '(', ')') else {
            return self.absent(at, skip + 1);
        };
        let label = text.get(skip + 1..close).unwrap_or_default().to_owned();
        let target = text
            .get(close + 2..end)
            .unwrap_or_default()
            .trim()
            .to_owned();
        let shown = if label.is_empty() { &target } else { &label };
        self.push(self.style.with(Style::LINK), shown);
        if !target.is_empty() && *shown != target {
            self.push(self.style.with(Style::DIM), &format!(" ({target})"));
        }
        Found::Taken(end + 1)
    }

    fn escape(&mut self, at: usize) -> Found {
        match self.from(at).chars().nth(1) {
            None => self.absent(at, 1),
            Some(c) if c.is_ascii_punctuation() => {
                self.push(self.style, c.encode_utf8(&mut [0; 4]));
                Found::Taken(1 + c.len_utf8())
            }
            Some(_) => Found::Literal(1),
        }
    }
}

/// Where the run begins that closes the one of `length` marks at the beginning of `text`.
fn closing(text: &str, mark: char, length: usize, rest: Rest) -> Option<usize> {
    let mut from = length;
    while let Some(offset) = tail(text, from).find([mark, '`', '\\']) {
        let start = from + offset;
        let found = text.get(start..)?;
        if found.starts_with('\\') {
            from = start + 1 + found.chars().nth(1).map_or(0, char::len_utf8);
            continue;
        }
        if found.starts_with('`') {
            from = after_code(text, start, rest)?;
            continue;
        }
        let run = run_length(found, mark);
        let next = found.get(run..).and_then(|rest| rest.chars().next());
        if next.is_none() && rest == Rest::Open {
            return None; // it may go on
        }
        let previous = text.get(..start)?.chars().next_back();
        let is_closer = previous.is_some_and(|c| !c.is_whitespace())
            && !(mark == '_' && next.is_some_and(char::is_alphanumeric));
        // A run of three closes a nested one first: the outer one's marks are its last.
        let fits = run == length || (run == 3 && length < 3 && mark != '~');
        if is_closer && fits {
            return Some(start + run - length);
        }
        from = start + run;
    }
    None
}

/// Past the code span that begins at `start`, or past its ticks where none does; `None` while that can not be told.
fn after_code(text: &str, start: usize, rest: Rest) -> Option<usize> {
    let ticks = run_length(tail(text, start), '`');
    let mut from = start + ticks;
    while let Some(offset) = tail(text, from).find('`') {
        let at = from + offset;
        let length = run_length(tail(text, at), '`');
        from = at + length;
        if from == text.len() && rest == Rest::Open {
            return None; // the run may go on
        }
        if length == ticks {
            return Some(from);
        }
    }
    (rest == Rest::Ended).then_some(start + ticks)
}

/// Where the bracket closes that opens at `at`.
fn bracket(text: &str, at: usize, open: char, close: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut escaped = false;
    for (offset, c) in tail(text, at).char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == open {
            depth += 1;
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at + offset);
            }
        }
    }
    None
}

fn tail(text: &str, from: usize) -> &str {
    text.get(from..).unwrap_or_default()
}

fn run_length(text: &str, mark: char) -> usize {
    text.len() - text.trim_start_matches(mark).len()
}

fn prefix(text: &str, bytes: usize) -> &str {
    text.get(..bytes).unwrap_or_default()
}

#[cfg(test)]
#[path = "inline_tests.rs"]
mod tests;
