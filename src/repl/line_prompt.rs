//! The visible prompt: `left_prompt` and `right_prompt` of `config.yaml` (`H-20`). Not to be confused with the
//! `.prompt` command.

use std::borrow::Cow;

use reedline::{Color, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus};

use crate::utils::text;

/// What `left_prompt` is when nobody set it.
pub const DEFAULT_LEFT: &str = "{color.green}{?session {session}{?role /}}{role}{!session {!role {model}}}{color.cyan}> {color.reset}";

/// What `right_prompt` is when nobody set it.
pub const DEFAULT_RIGHT: &str = "";

/// Templates nest no deeper than this; what is deeper stands for itself.
const MAX_DEPTH: usize = 16;

/// Longer templates are cut: finding where braces close takes time that grows with the square.
const MAX_BYTES: usize = 4096;

/// Fills in a template: `{var}` is a variable's value, `{?var ...}` its rest when the variable is set and
/// `{!var ...}` its rest when it is not, `{color.x}` a colour; pieces nest. A variable that is unset, empty, `false`
/// or `0` is not set. What is not of this form stands for itself. Pure.
///
/// Values are sanitised; colours are empty unless `color`, and a coloured prompt ends in a reset of its own.
pub fn render(template: &str, var: &dyn Fn(&str) -> Option<String>, color: bool) -> String {
    let mut fill = Fill {
        var,
        color,
        colored: false,
        out: String::new(),
    };
    fill.template(text::prefix(template, MAX_BYTES), 0);
    if fill.colored {
        fill.out.push_str(RESET);
    }
    fill.out
}

const RESET: &str = "\x1b[0m";

struct Fill<'a> {
    var: &'a dyn Fn(&str) -> Option<String>,
    color: bool,
    colored: bool,
    out: String,
}

impl Fill<'_> {
    fn template(&mut self, template: &str, depth: usize) {
        let mut rest = template;
        while let Some((before, from)) = rest.split_once('{') {
            self.out.push_str(before);
            let end = closing(from).filter(|_| depth < MAX_DEPTH);
            let Some((inner, after)) = end.and_then(|at| from.split_at_checked(at)) else {
                self.out.push('{');
                rest = from;
                continue;
            };
            self.piece(inner, depth);
            rest = after.strip_prefix('}').unwrap_or(after);
        }
        self.out.push_str(rest);
    }

    fn piece(&mut self, inner: &str, depth: usize) {
        if let Some(name) = inner.strip_prefix("color.") {
            self.paint(name);
        } else if let Some(rest) = inner.strip_prefix('?') {
            self.when(rest, true, depth);
        } else if let Some(rest) = inner.strip_prefix('!') {
            self.when(rest, false, depth);
        } else if is_name(inner) {
            let value = (self.var)(inner).unwrap_or_default();
            self.out.push_str(&text::sanitize_line(&value));
        } else {
            self.out.push('{');
            self.template(inner, depth + 1);
            self.out.push('}');
        }
    }

    fn when(&mut self, rest: &str, wanted: bool, depth: usize) {
        let (name, then) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_set =
            (self.var)(name).is_some_and(|value| !matches!(value.as_str(), "" | "false" | "0"));
        if is_set == wanted {
            self.template(then, depth + 1);
        }
    }

    fn paint(&mut self, name: &str) {
        if let Some(code) = color_code(name).filter(|_| self.color) {
            self.colored = code != "0";
            self.out.push_str("\x1b[");
            self.out.push_str(code);
            self.out.push('m');
        }
    }
}

/// Where the brace closes that was opened right before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => match depth.checked_sub(1) {
                None => return Some(at),
                Some(less) => depth = less,
            },
            _ => {}
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// The SGR parameters of a colour; names as in the configuration files of this program's kin.
fn color_code(name: &str) -> Option<&'static str> {
    Some(match name {
        "reset" => "0",
        "bold" => "1",
        "dim" => "2",
        "italic" => "3",
        "black" => "30",
        "red" => "31",
        "green" => "32",
        "yellow" => "33",
        "blue" => "34",
        "purple" | "magenta" => "35",
        "cyan" => "36",
        "white" => "37",
        "dark_gray" | "dark_grey" => "90",
        "light_red" => "91",
        "light_green" => "92",
        "light_yellow" => "93",
        "light_blue" => "94",
        "light_purple" | "light_magenta" => "95",
        "light_cyan" => "96",
        "light_gray" | "light_grey" => "97",
        _ => return None,
    })
}

/// A filled-in prompt as reedline wants it.
pub(super) struct LinePrompt {
    left: String,
    right: String,
}

impl LinePrompt {
    pub(super) fn new(left: String, right: String) -> Self {
        Self { left, right }
    }
}

impl Prompt for LinePrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.left.strip_suffix(' ').unwrap_or(&self.left))
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.right)
    }

    /// The left prompt's last space: in a window of two rows reedline counts the lines of the indicator and panics
    /// when there are none.
    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(if self.left.ends_with(' ') { " " } else { "" })
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing for ",
        };
        Cow::Owned(format!(
            "(history: {found}{}) ",
            text::sanitize_line(&search.term)
        ))
    }

    fn get_prompt_color(&self) -> Color {
        Color::Default
    }

    fn get_prompt_multiline_color(&self) -> Color {
        Color::DarkGray
    }

    fn get_indicator_color(&self) -> Color {
        Color::Default
    }

    fn get_prompt_right_color(&self) -> Color {
        Color::Default
    }
}

#[cfg(test)]
#[path = "line_prompt_tests.rs"]
mod tests;
