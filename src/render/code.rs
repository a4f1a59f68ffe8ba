//! Code in answers: fences, highlighting, and taking the code out of an answer (`-c`).

use std::sync::OnceLock;

use syntect::easy::HighlightLines;
use syntect::highlighting::{Color, FontStyle, ThemeSet};
use syntect::parsing::SyntaxSet;

use super::options::Theme;
use super::theme::{Paint, RESET};

/// Longer lines are shown without colours: highlighting them could take seconds.
const MAX_LINE: usize = 4096;

/// A block beyond this many bytes goes on without colours.
const MAX_BLOCK: usize = 1024 * 1024;

/// The line that opens a code block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    /// The first word behind the marks; may be empty.
    pub(super) language: String,
}

impl Fence {
    /// Reads an opening line. Any indentation is taken: lists indent their code as they like.
    pub(super) fn open(line: &str) -> Option<Self> {
        let indented = line;
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        if length < 3 || (mark == '`' && info.contains('`')) {
            return None;
        }
        let mut words = info
            .trim_start()
            .split(|c: char| c.is_whitespace() || c == ',' || c == '{');
        Some(Self {
            mark,
            length,
            indent: indented.len() - line.len(),
            language: words.next().unwrap_or_default().to_owned(),
        })
    }

    /// A line of the block without the indentation that the block has as a whole.
    fn dedent<'a>(&self, line: &'a str) -> &'a str {
        let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(blanks.min(self.indent)..).unwrap_or_default()
    }

    /// Whether `line` closes the block.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.chars().count() >= self.length && line.chars().all(|c| c == self.mark)
    }
}

/// The code of an answer and nothing else: the contents of its code blocks, a blank line between them; an answer
/// without a block is all code. Ends in one newline unless it is empty.
pub fn extract_code(answer: &str) -> String {
    let mut blocks: Vec<String> = Vec::new();
    let mut open: Option<Fence> = None;
    for line in answer.lines() {
        match &open {
            Some(fence) if fence.is_closed_by(line) => open = None,
            Some(fence) => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(fence.dedent(line));
                    block.push('\n');
                }
            }
            None => {
                open = Fence::open(line);
                if open.is_some() {
                    blocks.push(String::new());
                }
            }
        }
    }
    if blocks.is_empty() {
        blocks.push(answer.trim_matches('\n').to_owned());
    }
    let mut code = blocks.join("\n");
    if !code.is_empty() && !code.ends_with('\n') {
        code.push('\n');
    }
    code
}

/// Colours the lines of one code block, in order.
pub(super) struct Highlighter {
    lines: Option<HighlightLines<'static>>,
    bytes: usize,
    true_color: bool,
}

impl Highlighter {
    /// For a block in `language`; one that is not known, or no colour, shows lines as they are.
    pub(super) fn new(language: &str, paint: Paint) -> Self {
        let lines = if paint.color && !language.is_empty() {
            highlight_lines(language, paint.theme)
        } else {
            None
        };
        Self {
            lines,
            bytes: 0,
            true_color: paint.true_color,
        }
    }

    /// `line`, which has no newline, in colours.
    pub(super) fn line(&mut self, line: &str) -> String {
        self.bytes = self.bytes.saturating_add(line.len());
        if self.bytes > MAX_BLOCK {
            self.lines = None;
        }
        let Some(lines) = self.lines.as_mut().filter(|_| line.len() <= MAX_LINE) else {
            return line.to_owned();
        };
        let with_end = format!("{line}\n");
        let Ok(pieces) = lines.highlight_line(&with_end, syntaxes()) else {
            self.lines = None;
            return line.to_owned();
        };
        let mut out = String::with_capacity(line.len() * 2);
        for (style, piece) in pieces {
            let piece = piece.trim_end_matches('\n');
            if piece.is_empty() {
                continue;
            }
            let bold = if style.font_style.contains(FontStyle::BOLD) {
                "1;"
            } else {
                ""
            };
            let foreground = foreground(style.foreground, self.true_color);
            out.extend(["\x1b[", bold, &foreground, "m", piece]);
        }
        out.push_str(RESET);
        out
    }
}

/// Loaded when the first fence opens: it takes tens of milliseconds and ten megabytes.
fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

fn highlight_lines(language: &str, theme: Theme) -> Option<HighlightLines<'static>> {
    static THEMES: OnceLock<ThemeSet> = OnceLock::new();
    let themes = THEMES.get_or_init(ThemeSet::load_defaults);
    let name = match theme {
        Theme::Dark => "base16-ocean.dark",
        Theme::Light => "InspiredGitHub",
    };
    let syntax = syntaxes().find_syntax_by_token(language)?;
    Some(HighlightLines::new(syntax, themes.themes.get(name)?))
}

fn foreground(color: Color, true_color: bool) -> String {
    if true_color {
        format!("38;2;{};{};{}", color.r, color.g, color.b)
    } else {
        format!("38;5;{}", nearest_of_256(color))
    }
}

/// The nearest entry of the 6×6×6 cube or of the grey ramp.
fn nearest_of_256(color: Color) -> u8 {
    const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];
    let level = |value: u8| -> u8 {
        match value {
            0..=47 => 0,
            48..=114 => 1,
            _ => (value - 35) / 40,
        }
    };
    let (r, g, b) = (level(color.r), level(color.g), level(color.b));
    let at = |level: u8| LEVELS.get(usize::from(level)).copied().unwrap_or(255);
    let cube = (at(r), at(g), at(b));
    let mean = (u16::from(color.r) + u16::from(color.g) + u16::from(color.b)) / 3;
    let step = u8::try_from((mean.max(8) - 8) / 10).unwrap_or(23).min(23);
    let grey = 8 + 10 * step;
    let distance = |(r, g, b): (u8, u8, u8)| -> u32 {
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(r, color.r) + square(g, color.g) + square(b, color.b)
    };
    if distance((grey, grey, grey)) < distance(cube) {
        232 + step
    } else {
        16 + 36 * r + 6 * g + b
    }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
