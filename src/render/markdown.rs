//! Markdown for the terminal, while it arrives.
//!
//! What cannot change any more is shown at once: words as they come, emphasis when it closes, code line by line, a
//! table when it ends. Nothing that was shown is ever taken back, so no cursor movement is needed, and what comes out
//! does not depend on the pieces the answer came in. Input is sanitised first (`M-21`); the only escape sequences in
//! the output are our own.

use super::block::{Kind, classify};
use super::code::{Fence, Highlighter};
use super::inline::{self, Rest};
use super::options::Wrap;
use super::table::{self, Cell, Overflow};
use super::theme::{Paint, Style};
use super::writer::Writer;
use crate::utils::text::{self, Sanitizer};

/// A line that must be held is held up to this many bytes, then shown as it is.
const MAX_HELD: usize = 64 * 1024;

/// A table with more rows is not waited for.
const MAX_ROWS: usize = 500;

/// A renderer of one answer.
pub(super) struct Markdown {
    paint: Paint,
    wrap: Wrap,
    sanitizer: Sanitizer,
    writer: Writer,
    place: Place,
    line: Line,
    /// What of the current line has not been shown.
    held: String,
}

/// Between which lines we are.
enum Place {
    Text,
    Code(Fence, Box<Highlighter>),
    /// Rows that may be a table, as they were written.
    Table(Vec<String>),
}

/// How far the current line is understood.
enum Line {
    /// Nothing of it has been shown.
    Undecided,
    /// It is text in this style, and is being shown; `before` is the last character that was.
    Text { style: Style, before: Option<char> },
    /// Too long to be understood: shown as it is, to its end.
    Raw,
}

impl Markdown {
    pub(super) fn new(paint: Paint, wrap: Wrap) -> Self {
        Self {
            paint,
            wrap,
            sanitizer: Sanitizer::default(),
            writer: Writer::new(paint),
            place: Place::Text,
            line: Line::Undecided,
            held: String::new(),
        }
    }

    /// Takes more of the answer; gives what can be shown by now. `columns` is the terminal's width.
    pub(super) fn feed(&mut self, piece: &str, columns: usize) -> String {
        let clean = self.sanitizer.feed(piece);
        for part in clean.split_inclusive('\n') {
            if let Some(rest) = part.strip_suffix('\n') {
                self.extend(rest, columns);
                self.end_line(columns);
            } else {
                self.extend(part, columns);
                self.show_part(columns);
            }
        }
        self.writer.take()
    }

    /// The answer is complete: gives what was held back. Output that is not empty ends in a newline, all in all.
    pub(super) fn finish(&mut self, columns: usize) -> String {
        if !self.held.is_empty() || !matches!(self.line, Line::Undecided) {
            self.end_line(columns);
        }
        self.flush_table(columns);
        self.place = Place::Text;
        self.sanitizer = Sanitizer::default();
        self.writer.take()
    }

    fn extend(&mut self, part: &str, columns: usize) {
        self.held.push_str(part);
        if self.held.len() <= MAX_HELD || matches!(self.line, Line::Text { .. }) {
            return;
        }
        // What is decided about a line this long depends on its first `MAX_HELD` bytes alone.
        let end = self.held.floor_char_boundary(MAX_HELD);
        let is_code = matches!(self.place, Place::Code(..));
        if matches!(self.line, Line::Undecided) && !is_code {
            let kind = classify(text::prefix(&self.held, end), Rest::Open);
            self.flush_table(columns);
            if let Kind::Text { lead, skip, style } = kind {
                self.begin_text(&lead, skip, style, columns);
                return;
            }
        }
        self.line = Line::Raw;
        self.writer.begin_line(None, String::new());
        let shown = std::mem::take(&mut self.held);
        self.writer.push(Style::PLAIN, &shown);
    }

    /// Shows what can be shown of a line that is still arriving.
    fn show_part(&mut self, columns: usize) {
        if matches!(self.place, Place::Code(..)) {
            return;
        }
        if matches!(self.line, Line::Undecided) {
            let Kind::Text { lead, skip, style } = classify(&self.held, Rest::Open) else {
                return;
            };
            self.flush_table(columns);
            self.begin_text(&lead, skip, style, columns);
        }
        self.show_inline(Rest::Open);
    }

    fn end_line(&mut self, columns: usize) {
        let line = std::mem::replace(&mut self.line, Line::Undecided);
        match line {
            Line::Raw => self.end_raw(),
            Line::Text { style, before } => {
                self.line = Line::Text { style, before };
                self.show_inline(Rest::Ended);
                self.line = Line::Undecided;
                self.writer.end_line();
            }
            Line::Undecided => {
                let line = std::mem::take(&mut self.held);
                self.whole_line(line, columns);
            }
        }
    }

    fn end_raw(&mut self) {
        let rest = std::mem::take(&mut self.held);
        self.writer.push(Style::PLAIN, &rest);
        self.writer.end_line();
    }

    /// A line that is complete and of which nothing has been shown.
    fn whole_line(&mut self, line: String, columns: usize) {
        self.writer.begin_line(None, String::new());
        if let Place::Code(fence, highlighter) = &mut self.place {
            if fence.is_closed_by(&line) {
                self.place = Place::Text;
                self.writer.push(Style::DIM, &line);
            } else {
                let shown = highlighter.line(&line);
                self.writer.push_raw(&shown);
            }
            self.writer.end_line();
            return;
        }
        let kind = classify(&line, Rest::Ended);
        if kind == Kind::Row {
            self.row(line, columns);
            return;
        }
        self.flush_table(columns);
        match kind {
            Kind::Blank | Kind::Row | Kind::Unclear => self.writer.end_line(),
            Kind::Rule => {
                self.writer
                    .push(Style::DIM, &"─".repeat(columns.clamp(3, 40)));
                self.writer.end_line();
            }
            Kind::Fence(fence) => {
                self.writer.push(Style::DIM, &line);
                self.writer.end_line();
                let highlighter = Highlighter::new(&fence.language, self.paint);
                self.place = Place::Code(fence, Box::new(highlighter));
            }
            Kind::Text { lead, skip, style } => {
                self.held = line;
                self.begin_text(&lead, skip, style, columns);
                self.show_inline(Rest::Ended);
                self.line = Line::Undecided;
                self.writer.end_line();
            }
        }
    }

    fn begin_text(&mut self, lead: &str, skip: usize, style: Style, columns: usize) {
        self.held.drain(..skip);
        self.line = Line::Text {
            style,
            before: None,
        };
        let limit = match self.wrap {
            Wrap::No => None,
            Wrap::Auto => Some(columns),
            Wrap::Columns(most) => Some(columns.min(usize::from(most))),
        };
        // A quote's bar is repeated on further lines, a list's marker is not.
        let hang: String = lead
            .chars()
            .map(|c| if c == '│' { c } else { ' ' })
            .collect();
        let hang = if text::width(&hang) * 2 > columns {
            String::new()
        } else {
            hang
        };
        self.writer.begin_line(None, String::new());
        let is_marker = !lead.trim().is_empty();
        let lead_style = if is_marker {
            Style::MARKER
        } else {
            Style::PLAIN
        };
        self.writer.push(lead_style, lead);
        self.writer.begin_text_at(limit, hang, text::width(lead));
    }

    fn show_inline(&mut self, rest: Rest) {
        let Line::Text { style, before } = self.line else {
            return;
        };
        let (spans, taken) = inline::spans(&self.held, before, style, rest);
        for span in spans {
            self.writer.push(span.style, &span.text);
        }
        let shown: String = self.held.drain(..taken).collect();
        let before = shown.chars().next_back().or(before);
        self.line = Line::Text { style, before };
    }

    fn row(&mut self, line: String, columns: usize) {
        match &mut self.place {
            Place::Table(rows) => rows.push(line),
            Place::Text | Place::Code(..) => self.place = Place::Table(vec![line]),
        }
        if matches!(&self.place, Place::Table(rows) if rows.len() >= MAX_ROWS) {
            self.flush_table(columns);
        }
    }

    /// Shows the rows that were held: as a table when the second says it is one, else as they are.
    fn flush_table(&mut self, columns: usize) {
        let Place::Table(rows) = &mut self.place else {
            return;
        };
        let rows = std::mem::take(rows);
        self.place = Place::Text;
        self.writer.begin_line(None, String::new());
        if !rows.get(1).is_some_and(|row| is_delimiter(row)) {
            for row in rows {
                let (spans, _) = inline::spans(&row, None, Style::PLAIN, Rest::Ended);
                for span in spans {
                    self.writer.push(span.style, &span.text);
                }
                self.writer.end_line();
            }
            return;
        }
        let mut cells: Vec<Vec<Cell>> = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            let style = if index == 0 {
                Style::BOLD
            } else {
                Style::PLAIN
            };
            if index != 1 {
                cells.push(split_row(row, style));
            }
        }
        let separator = self.paint.paint(Style::DIM, " │ ");
        let widths = table::widths(&cells, columns, 3);
        for (index, row) in cells.iter().enumerate() {
            let lines = table::lines(row, &widths, &separator, Overflow::Wrap, self.paint);
            self.writer.push_raw(&lines);
            if index == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                let rule = self.paint.paint(Style::DIM, &rules.join("─┼─"));
                self.writer.push_raw(&format!("{rule}\n"));
            }
        }
    }
}

/// The cells of a table's row.
fn split_row(row: &str, style: Style) -> Vec<Cell> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in row.chars() {
        if c == '|' && !escaped {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            if c == '|' {
                cell.pop(); // the backslash
            }
            cell.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    (cells.iter())
        .map(|cell| inline::spans(cell.trim(), None, style, Rest::Ended).0)
        .collect()
}

/// Whether a row is the one under a table's header.
fn is_delimiter(row: &str) -> bool {
    let row = row.trim().trim_matches('|');
    row.contains('-')
        && row
            .chars()
            .all(|c| matches!(c, '-' | ':' | '|' | ' ' | '\t'))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
