//! What a piece of text is, and which escape codes show that on a dark or a light ground.

use super::options::Theme;

/// What a piece of text is: a set of properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style(u16);

impl Style {
    pub(super) const PLAIN: Self = Self(0);
    pub(super) const BOLD: Self = Self(1);
    pub(super) const ITALIC: Self = Self(1 << 1);
    pub(super) const STRIKE: Self = Self(1 << 2);
    pub(super) const CODE: Self = Self(1 << 3);
    pub(super) const LINK: Self = Self(1 << 4);
    pub(super) const HEADING: Self = Self(1 << 5);
    pub(super) const DIM: Self = Self(1 << 6);
    pub(super) const ERROR: Self = Self(1 << 7);
    pub(super) const WARNING: Self = Self(1 << 8);
    pub(super) const HINT: Self = Self(1 << 9);
    pub(super) const MARKER: Self = Self(1 << 10);

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0 && other.0 != 0
    }
}

/// Text and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) style: Style,
    pub(super) text: String,
}

/// How styles become escape codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paint {
    pub(super) theme: Theme,
    /// Without colour every style is the text itself.
    pub(super) color: bool,
    /// Whether colours have 24 bits; else they are of the 256.
    pub(super) true_color: bool,
}

/// Ends every style.
pub(super) const RESET: &str = "\x1b[0m";

impl Paint {
    /// `text` in `style`.
    pub(super) fn paint(self, style: Style, text: &str) -> String {
        let begin = self.begin(style);
        if begin.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        format!("{begin}{text}{RESET}")
    }

    /// The codes that begin `style`, from no style at all; empty where it looks like plain text.
    pub(super) fn begin(self, style: Style) -> String {
        if !self.color {
            return String::new();
        }
        let dark = self.theme == Theme::Dark;
        let codes: Vec<&str> = [
            (Style::BOLD, "1"),
            (Style::DIM, "2"),
            (Style::ITALIC, "3"),
            (Style::LINK, "4"),
            (Style::STRIKE, "9"),
            (Style::HEADING, if dark { "1;95" } else { "1;35" }),
            (Style::CODE, if dark { "96" } else { "34" }),
            (Style::MARKER, if dark { "93" } else { "33" }),
            (Style::ERROR, if dark { "1;91" } else { "1;31" }),
            (Style::WARNING, if dark { "1;93" } else { "1;33" }),
            (Style::HINT, if dark { "96" } else { "36" }),
        ]
        .into_iter()
        .filter_map(|(property, code)| style.has(property).then_some(code))
        .collect();
        if codes.is_empty() {
            return String::new();
        }
        format!("\x1b[{}m", codes.join(";"))
    }
}
