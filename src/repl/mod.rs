//! The interactive line loop and its commands.

mod args;
pub mod command;
pub mod table;
