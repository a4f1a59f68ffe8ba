//! What the terminal is and how the person wants it: values, resolved once and passed in.

use std::io::IsTerminal as _;
use std::str::FromStr;

use super::theme::Paint;

/// How [`super::Ui`] shows things.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an independent fact of the machine or switch of the person"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderOptions {
    /// Whether answers on a terminal are styled (`highlight` in `config.yaml`).
    pub highlight: bool,
    /// Where lines of an answer are broken on a terminal (`wrap`).
    pub wrap: Wrap,
    /// Which colours are legible (`theme`).
    pub theme: Theme,
    /// Whether keys can be read.
    pub stdin_is_terminal: bool,
    /// Whether answers are seen by a person.
    pub stdout_is_terminal: bool,
    /// Whether notices are seen by a person.
    pub stderr_is_terminal: bool,
    /// Columns; `None` asks the terminal whenever it matters, so that a resized window is honoured.
    pub width: Option<u16>,
    /// `NO_COLOR`: no colour at all, and answers as they are.
    pub no_color: bool,
    /// Whether the terminal has 24-bit colours (`COLORTERM`); else code is coloured from its 256.
    pub true_color: bool,
    /// Machine output: errors are JSON.
    pub json: bool,
}

impl RenderOptions {
    /// What the process's own streams are and `NO_COLOR`, `TERM` and `COLORTERM` say, with everything else at its
    /// default. `env` looks a variable up.
    pub fn detect(env: &dyn Fn(&str) -> Option<String>) -> Self {
        let says = |name: &str, values: &[&str]| {
            env(name).is_some_and(|value| values.contains(&value.as_str()))
        };
        Self {
            highlight: true,
            wrap: Wrap::default(),
            theme: Theme::default(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            width: None,
            no_color: env("NO_COLOR").is_some() || says("TERM", &["dumb"]),
            true_color: says("COLORTERM", &["truecolor", "24bit"]),
            json: false,
        }
    }

    /// No terminal anywhere: what tests and pipes have.
    pub fn plain() -> Self {
        Self {
            highlight: false,
            wrap: Wrap::No,
            theme: Theme::default(),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            width: Some(80),
            no_color: true,
            true_color: false,
            json: false,
        }
    }

    /// How a stream is painted.
    pub(super) fn paint(&self, is_terminal: bool) -> Paint {
        Paint {
            theme: self.theme,
            color: is_terminal && !self.no_color,
            true_color: self.true_color,
        }
    }
}

/// Where lines of an answer are broken on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrap {
    /// Where the terminal breaks them.
    #[default]
    No,
    /// Between words, at the terminal's width.
    Auto,
    /// Between words, at this column or the terminal's width, whichever is less.
    Columns(u16),
}

impl FromStr for Wrap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "no" | "false" | "" => Ok(Self::No),
            "auto" | "true" => Ok(Self::Auto),
            number => match number.parse() {
                Ok(columns) if columns >= 20 => Ok(Self::Columns(columns)),
                _ => Err(format!(
                    "`{number}` is no wrap: expected `no`, `auto` or a number of columns from 20"
                )),
            },
        }
    }
}

/// Which background the colours are made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    /// Light text on a dark ground.
    #[default]
    Dark,
    /// Dark text on a light ground.
    Light,
}

impl FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "dark" | "" => Ok(Self::Dark),
            "light" => Ok(Self::Light),
            other => Err(format!("`{other}` is no theme: expected `dark` or `light`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_about_colour() {
        let with = |name: &'static str, value: &'static str| {
            RenderOptions::detect(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert!(with("NO_COLOR", "1").no_color);
        assert!(with("TERM", "dumb").no_color);
        assert!(!with("TERM", "xterm").no_color);
        assert!(with("COLORTERM", "truecolor").true_color);
        assert!(!with("COLORTERM", "1").true_color);
    }

    #[test]
    fn wrap_and_theme_are_words_of_the_configuration() {
        assert_eq!("auto".parse(), Ok(Wrap::Auto));
        assert_eq!("no".parse(), Ok(Wrap::No));
        assert_eq!("100".parse(), Ok(Wrap::Columns(100)));
        assert!("5".parse::<Wrap>().is_err());
        assert_eq!("light".parse(), Ok(Theme::Light));
        assert!("blue".parse::<Theme>().is_err());
    }
}
