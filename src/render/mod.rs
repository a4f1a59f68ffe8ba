//! Text → what the human sees: the one owner of the terminal.
//!
//! Everything that reaches stdout or stderr goes through [`Ui`], and every question through [`Prompter`]. This
//! layer never asks a server or a model anything and never decides anything: it shows. (`mcp::render` is another
//! thing: it turns server content into what the *model* reads.)
//!
//! Output to a pipe is exact; what a terminal gets is stripped of whatever could act on it (`M-21`).

mod block;
mod code;
mod inline;
mod markdown;
mod notice;
mod options;
mod prompt;
mod restore;
mod screen;
mod table;
mod theme;
mod ui;
mod writer;

pub use code::extract_code;
pub use options::{RenderOptions, Theme, Wrap};
pub use prompt::Prompter;
pub use restore::{TerminalGuard, restore_terminal};
pub use screen::{LineSink, Stream};
pub use ui::Ui;
