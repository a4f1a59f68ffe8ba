//! Splitting a line into words like a shell does, without any of a shell's expansions (`P-02`).
//!
//! Single quotes keep everything verbatim; inside double quotes a backslash escapes `"`, `\`, `$`, `` ` `` and a line
//! end, and stands for itself otherwise; outside quotes it escapes any character. Nothing is ever expanded. The same
//! splitter serves the commands and their completion, so that both agree on what a half-typed word is.

use std::borrow::Cow;
use std::ops::Range;

/// A word and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// What it means: quotes and escapes resolved.
    pub text: String,
    /// The bytes of the line it was written with, quotes included.
    pub span: Range<usize>,
}

/// A line that ends inside a word it has begun with a quote or a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A quote has no partner.
    #[error("the quote {mark} at column {column} is never closed")]
    UnmatchedQuote {
        /// `'` or `"`.
        mark: char,
        /// Where it stands, counted in characters from 1.
        column: usize,
    },
    /// The line ends in a backslash that has nothing to escape.
    #[error("the line ends in a backslash that escapes nothing")]
    DanglingEscape,
}

/// A line as far as it has been typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partial {
    /// The words that are complete: something separates them from what follows.
    pub done: Vec<Word>,
    /// The word being typed. It is empty, with an empty span at the line's end, when the line is blank or ends in a
    /// separator.
    pub last: Word,
    /// Why the line is not complete yet, when the last word is inside a quote or an escape.
    pub open: Option<SplitError>,
}

/// Splits a complete line.
pub fn split(line: &str) -> Result<Vec<Word>, SplitError> {
    let partial = split_partial(line);
    if let Some(error) = partial.open {
        return Err(error);
    }
    let mut words = partial.done;
    if !partial.last.span.is_empty() {
        words.push(partial.last);
    }
    Ok(words)
}

/// Splits a line that is still being typed; never fails.
pub fn split_partial(line: &str) -> Partial {
    let mut scan = Scan::default();
    for (at, mark) in line.char_indices() {
        scan.step(at, mark);
    }
    scan.finish(line)
}

/// `text` written so that [`split`] gives it back as one word; unchanged where that needs no quotes.
pub fn quote(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '\'' | '"' | '\\');
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    if !text.contains('\'') {
        return Cow::Owned(format!("'{text}'"));
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// Where the scanner stands between two characters.
#[derive(Clone, Copy, Default)]
enum Place {
    /// Between words.
    #[default]
    Between,
    /// In a word, outside quotes.
    Bare,
    /// In single quotes that began at this byte.
    Single(usize),
    /// In double quotes that began at this byte.
    Double(usize),
    /// After a backslash outside quotes.
    BareEscape,
    /// After a backslash in double quotes that began at this byte.
    DoubleEscape(usize),
}

#[derive(Default)]
struct Scan {
    words: Vec<Word>,
    place: Place,
    text: String,
    start: usize,
}

impl Scan {
    fn step(&mut self, at: usize, mark: char) {
        self.place = match self.place {
            Place::Between if mark.is_whitespace() => Place::Between,
            Place::Between => {
                self.start = at;
                self.bare(at, mark)
            }
            Place::Bare if mark.is_whitespace() => {
                self.end_word(at);
                Place::Between
            }
            Place::Bare => self.bare(at, mark),
            Place::Single(_) if mark == '\'' => Place::Bare,
            Place::Double(_) if mark == '"' => Place::Bare,
            Place::Double(from) if mark == '\\' => Place::DoubleEscape(from),
            Place::Single(_) | Place::Double(_) => {
                self.text.push(mark);
                self.place
            }
            Place::BareEscape => {
                if mark != '\n' {
                    self.text.push(mark);
                }
                Place::Bare
            }
            Place::DoubleEscape(from) => {
                if !matches!(mark, '"' | '\\' | '$' | '`' | '\n') {
                    self.text.push('\\');
                }
                if mark != '\n' {
                    self.text.push(mark);
                }
                Place::Double(from)
            }
        };
    }

    /// A character of a word outside quotes.
    fn bare(&mut self, at: usize, mark: char) -> Place {
        match mark {
            '\'' => Place::Single(at),
            '"' => Place::Double(at),
            '\\' => Place::BareEscape,
            _ => {
                self.text.push(mark);
                Place::Bare
            }
        }
    }

    fn end_word(&mut self, end: usize) {
        self.words.push(Word {
            text: std::mem::take(&mut self.text),
            span: self.start..end,
        });
    }

    fn finish(self, line: &str) -> Partial {
        let column = |at: usize| line.get(..at).map_or(0, |before| before.chars().count()) + 1;
        let (begun, open) = match self.place {
            Place::Between => (false, None),
            Place::Bare => (true, None),
            Place::BareEscape => (true, Some(SplitError::DanglingEscape)),
            Place::Single(at) => (true, Some(unmatched('\'', column(at)))),
            Place::Double(at) | Place::DoubleEscape(at) => (true, Some(unmatched('"', column(at)))),
        };
        let start = if begun { self.start } else { line.len() };
        Partial {
            done: self.words,
            last: Word {
                text: self.text,
                span: start..line.len(),
            },
            open,
        }
    }
}

fn unmatched(mark: char, column: usize) -> SplitError {
    SplitError::UnmatchedQuote { mark, column }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
