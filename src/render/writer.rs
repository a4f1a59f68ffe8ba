//! Styled text in lines, broken between words where that is wanted.
//!
//! What comes out depends on the text and its styles alone, not on the pieces it arrives in: a style's codes are
//! written where it begins and where it ends, and a word waits until it is complete.

use super::theme::{Paint, RESET, Style};
use crate::utils::text;

/// A word longer than this is not waited for.
const MAX_WORD: usize = 512;

pub(super) struct Writer {
    paint: Paint,
    /// Where lines are broken; `None` leaves that to the terminal.
    columns: Option<usize>,
    style: Style,
    column: usize,
    /// What further lines of the paragraph begin with.
    hang: String,
    /// Blanks that are written once a word follows on the same line.
    blanks: String,
    word: Vec<(Style, char)>,
    out: String,
}

impl Writer {
    pub(super) fn new(paint: Paint) -> Self {
        Self {
            paint,
            columns: None,
            style: Style::PLAIN,
            column: 0,
            hang: String::new(),
            blanks: String::new(),
            word: Vec::new(),
            out: String::new(),
        }
    }

    /// Begins a line: where it is broken, and what its further lines begin with.
    pub(super) fn begin_line(&mut self, columns: Option<usize>, hang: String) {
        self.columns = columns;
        self.hang = hang;
    }

    /// Goes on behind a lead of `column` columns that has been pushed.
    pub(super) fn begin_text_at(&mut self, columns: Option<usize>, hang: String, column: usize) {
        self.begin_line(columns, hang);
        self.column = column;
    }

    /// Adds text without newlines.
    pub(super) fn push(&mut self, style: Style, piece: &str) {
        if self.columns.is_none() {
            self.set(style);
            self.out.push_str(piece);
            return;
        }
        for c in piece.chars() {
            if c == ' ' || c == '\t' {
                self.end_word();
                self.blanks.push(c);
            } else {
                self.word.push((style, c));
                if self.word.len() >= MAX_WORD {
                    self.end_word();
                }
            }
        }
    }

    /// Adds what is styled already and must not be broken.
    pub(super) fn push_raw(&mut self, raw: &str) {
        self.end_word();
        self.set(Style::PLAIN);
        self.out.push_str(raw);
    }

    pub(super) fn end_line(&mut self) {
        self.end_word();
        self.set(Style::PLAIN);
        self.out.push('\n');
        self.column = 0;
        self.blanks.clear();
    }

    /// What can be shown by now.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let plain: String = word.iter().map(|(_, c)| *c).collect();
        let width = text::width(&plain);
        let blanks = std::mem::take(&mut self.blanks);
        let needed = self.column + text::width(&blanks) + width;
        let at_start = self.column <= text::width(&self.hang);
        if self.columns.is_some_and(|columns| needed > columns) && !at_start {
            self.set(Style::PLAIN);
            self.out.push('\n');
            let hang = self.hang.clone();
            self.out.push_str(&hang);
            self.column = text::width(&hang);
        } else {
            self.out.push_str(&blanks);
            self.column += text::width(&blanks);
        }
        for (style, c) in word {
            self.set(style);
            self.out.push(c);
        }
        self.column += width;
    }

    fn set(&mut self, style: Style) {
        if style == self.style {
            return;
        }
        if !self.paint.begin(self.style).is_empty() {
            self.out.push_str(RESET);
        }
        self.out.push_str(&self.paint.begin(style));
        self.style = style;
    }
}
