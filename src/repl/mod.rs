//! The interactive line loop and its commands.

mod args;
pub mod command;
pub mod completer;
pub mod editor;
pub mod external_editor;
mod highlighter;
pub mod line_prompt;
mod menu;
mod printer;
pub mod table;
