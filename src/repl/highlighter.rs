//! Colours for the line being typed: commands that exist, commands that do not, shell lines.

use reedline::{Color, StyledText};

use super::table::{self, COMMANDS};
use crate::utils::text;

/// What the first word of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text for the model.
    Text,
    /// A command that is available now.
    Command,
    /// The beginning of one.
    Beginning,
    /// Begins like a command and is none.
    Unknown,
    /// `!` and a shell line.
    Shell,
}

/// Colours the first word, by the command table.
pub(super) struct Highlighter;

impl Kind {
    fn of(word: &str) -> Self {
        if word.starts_with('!') {
            return Self::Shell;
        }
        if !word.starts_with('.') {
            return Self::Text;
        }
        if table::find(word).is_some() {
            Self::Command
        } else if (COMMANDS.iter()).any(|command| command.name.starts_with(word)) {
            Self::Beginning
        } else {
            Self::Unknown
        }
    }
}

impl reedline::Highlighter for Highlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let plain = || Color::Default.normal();
        let line = defused(line);
        let start = line.len() - line.trim_start().len();
        let end = (line.get(start..))
            .and_then(|rest| rest.find(char::is_whitespace))
            .map_or(line.len(), |at| start + at);
        let piece = |range: std::ops::Range<usize>| line.get(range).unwrap_or_default().to_owned();
        let word = piece(start..end);
        let style = match Kind::of(&word) {
            Kind::Text => plain(),
            Kind::Command => Color::Green.normal(),
            Kind::Beginning => Color::Default.bold(),
            Kind::Unknown => Color::Red.normal(),
            Kind::Shell => Color::Yellow.normal(),
        };
        let mut styled = StyledText::new();
        styled.push((plain(), piece(0..start)));
        styled.push((style, word));
        styled.push((plain(), piece(end..line.len())));
        styled
    }
}

/// Pasted text may hold what a terminal would act on (`M-21`). Each such character is shown as one of as many bytes,
/// because the editor finds the cursor by byte offset; the line itself keeps it.
fn defused(line: &str) -> String {
    let stand_in = |c: char| match c.len_utf8() {
        _ if !text::is_hazard(c) => c,
        1 => '?',
        2 => '·',
        3 => '\u{FFFD}',
        _ => '\u{1F6AB}',
    };
    line.chars().map(stand_in).collect()
}

#[cfg(test)]
#[path = "highlighter_tests.rs"]
mod tests;
