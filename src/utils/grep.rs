//! The line filter: the lines of a text that match a pattern, numbered, with their context (`M-62`).
//!
//! One implementation serves `mcp_read_*` and `fs_grep`. It works line by line on ripgrep's engine, which never
//! backtracks, and keeps only the part of its output that the caller wants to see, so memory does not grow with
//! what matches.

use std::borrow::Cow;
use std::io::{self, Read};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkError, SinkMatch,
};

use crate::utils::AbortToken;
use crate::utils::abort::Aborted;

/// Lines shown before and after each match.
pub const CONTEXT_LINES: usize = 2;
/// Bound on a compiled pattern, in bytes: `(a{1000}){1000}` is refused, not compiled.
const PATTERN_SIZE_LIMIT: usize = 10 * 1024 * 1024;
/// Bound on the states the engine keeps while it searches, in bytes; it slows down at the bound and stays linear.
const CACHE_SIZE_LIMIT: usize = 16 * 1024 * 1024;
/// How much is searched between two looks at the abort token, in bytes.
const SLICE: usize = 64 * 1024;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Filter {
    matcher: RegexMatcher,
}

/// Why a pattern is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PatternError {
    /// The parser's message.
    pub message: String,
    /// Where in the pattern, as a byte offset; `None` when it is the pattern as a whole.
    pub position: Option<usize>,
}

impl std::fmt::Display for PatternError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.position {
            Some(position) => write!(
                f,
                "the pattern is not a regular expression: {} at byte {position}",
                self.message
            ),
            None => write!(f, "the pattern cannot be used: {}", self.message),
        }
    }
}

/// What a filter kept of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered {
    /// Matching lines `N:text`, context lines `N-text`, groups separated by `--`, each line ended by a newline.
    pub text: String,
    /// How many lines matched.
    pub matches: u64,
    /// How many lines there were.
    pub lines_searched: u64,
}

/// A window on what a filter keeps of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredWindow {
    /// The part of the filtered text that was asked for.
    pub text: String,
    /// Where `text` begins in the filtered text, in bytes.
    pub start: u64,
    /// Size of the whole filtered text in bytes.
    pub total: u64,
    /// How many lines matched.
    pub matches: u64,
    /// How many lines there were.
    pub lines_searched: u64,
}

impl Filter {
    /// Compiles a pattern. It is matched against single lines, without their terminator.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        check_syntax(pattern)?;
        let matcher = RegexMatcherBuilder::new()
            .crlf(true)
            .size_limit(PATTERN_SIZE_LIMIT)
            .dfa_size_limit(CACHE_SIZE_LIMIT)
            .build(pattern)
            .map_err(|error| PatternError {
                message: one_line(&error.to_string()),
                position: None,
            })?;
        Ok(Self { matcher })
    }

    /// The whole filtered text.
    pub fn apply(&self, text: &str) -> Filtered {
        let window = self.window(text, 0, usize::MAX);
        Filtered {
            text: window.text,
            matches: window.matches,
            lines_searched: window.lines_searched,
        }
    }

    /// At most `max` bytes of the filtered text from `offset` on. The start rounds forward to a character, the end
    /// rounds back, and one character is always kept.
    pub fn window(&self, text: &str, offset: u64, max: usize) -> FilteredWindow {
        // Without a token there is nothing that could cancel.
        self.window_until(text.as_bytes(), offset, max, &AbortToken::new())
            .unwrap_or_else(|Aborted| FilteredWindow {
                text: String::new(),
                start: 0,
                total: 0,
                matches: 0,
                lines_searched: 0,
            })
    }

    /// [`Self::window`] of bytes that need not be UTF-8 (what is not, is replaced), given up soon after `abort`.
    pub fn window_until(
        &self,
        text: &[u8],
        offset: u64,
        max: usize,
        abort: &AbortToken,
    ) -> Result<FilteredWindow, Aborted> {
        let mut lines = Lines::new(offset, max);
        let reader = Slices { rest: text, abort };
        let searched = searcher().search_reader(&self.matcher, reader, &mut lines);
        if abort.is_cancelled() || searched.is_err() {
            return Err(Aborted);
        }
        Ok(lines.finish(count_lines(text)))
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(true)
        .before_context(CONTEXT_LINES)
        .after_context(CONTEXT_LINES)
        .binary_detection(BinaryDetection::none())
        .bom_sniffing(false)
        .build()
}

/// The engine's own errors are formatted text; the parser below it says where.
fn check_syntax(pattern: &str) -> Result<(), PatternError> {
    let Err(error) = regex_syntax::Parser::new().parse(pattern) else {
        return Ok(());
    };
    let (message, position) = match &error {
        regex_syntax::Error::Parse(error) => {
            (error.kind().to_string(), Some(error.span().start.offset))
        }
        regex_syntax::Error::Translate(error) => {
            (error.kind().to_string(), Some(error.span().start.offset))
        }
        _ => (one_line(&error.to_string()), None),
    };
    Err(PatternError { message, position })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count_lines(text: &[u8]) -> u64 {
    let ended = bstr::ByteSlice::find_iter(text, b"\n").count();
    let open = text.last().is_some_and(|&byte| byte != b'\n');
    (ended + usize::from(open)) as u64
}

/// The text in slices, with a look at the abort token between them.
struct Slices<'a> {
    rest: &'a [u8],
    abort: &'a AbortToken,
}

impl Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.abort.is_cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let size = self.rest.len().min(buffer.len()).min(SLICE);
        let (slice, rest) = self.rest.split_at(size);
        if let Some(place) = buffer.get_mut(..size) {
            place.copy_from_slice(slice);
        }
        self.rest = rest;
        Ok(size)
    }
}

/// What is written here is counted; what lies in the window is kept.
struct Lines {
    /// First byte that is wanted.
    offset: u64,
    /// How many are wanted.
    max: usize,
    /// How many are kept: a few more, so that both ends can be rounded to a character.
    capacity: usize,
    kept: Vec<u8>,
    total: u64,
    matches: u64,
}

impl Lines {
    fn new(offset: u64, max: usize) -> Self {
        Self {
            offset,
            max,
            capacity: max.saturating_add(8),
            kept: Vec::new(),
            total: 0,
            matches: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let skipped = usize::try_from(self.offset.saturating_sub(self.total)).unwrap_or(usize::MAX);
        self.total += bytes.len() as u64;
        let room = self.capacity - self.kept.len();
        if room == 0 {
            return;
        }
        let wanted = bytes.get(skipped..).unwrap_or_default();
        self.kept
            .extend_from_slice(wanted.get(..room).unwrap_or(wanted));
    }

    fn line(&mut self, number: Option<u64>, mark: &[u8], line: &[u8]) {
        let mut digits = [0; 20];
        self.put(decimal(number.unwrap_or(0), &mut digits));
        self.put(mark);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.put_text(line.strip_suffix(b"\r").unwrap_or(line));
        self.put(b"\n");
    }

    /// Valid text as it is; replacement happens before counting, so that offsets stay exact.
    fn put_text(&mut self, line: &[u8]) {
        match std::str::from_utf8(line) {
            Ok(line) => self.put(line.as_bytes()),
            Err(_) => self.put(String::from_utf8_lossy(line).as_bytes()),
        }
    }

    fn finish(self, lines_searched: u64) -> FilteredWindow {
        let skipped = self
            .kept
            .iter()
            .take_while(|&&byte| is_continuation(byte))
            .count();
        let kept = self.kept.get(skipped..).unwrap_or_default();
        // The kept bytes may end inside a character; that tail is beyond the window.
        let kept = match std::str::from_utf8(kept) {
            Ok(kept) => Cow::Borrowed(kept),
            Err(error) => {
                String::from_utf8_lossy(kept.get(..error.valid_up_to()).unwrap_or_default())
            }
        };
        let (_, text) = super::text::page(&kept, 0, self.max);
        FilteredWindow {
            start: self.offset.min(self.total) + skipped as u64,
            text: text.to_owned(),
            total: self.total,
            matches: self.matches,
            lines_searched,
        }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The digits of `number`; formatting through `fmt` would be half of the search's time.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    for (index, place) in digits.iter_mut().enumerate().rev() {
        *place = b'0' + u8::try_from(number % 10).unwrap_or(0);
        start = index;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}

/// A sink that never fails; reading does, when it is cancelled.
#[derive(Debug)]
struct Cancelled;

impl SinkError for Cancelled {
    fn error_message<T: std::fmt::Display>(_message: T) -> Self {
        Self
    }
}

impl Sink for &mut Lines {
    type Error = Cancelled;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Cancelled> {
        self.matches += 1;
        self.line(found.line_number(), b":", found.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Cancelled> {
        self.line(context.line_number(), b"-", context.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, Cancelled> {
        self.put(b"--\n");
        Ok(true)
    }
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
