//! Leaf helpers, one job a file; this layer imports nothing of ours.
//!
//! What belongs here is what three modules need and none of them owns. Whatever knows a protocol, a provider or a
//! configuration key belongs elsewhere.

pub mod abort;
pub mod env;
pub mod error;
pub mod fetch;
pub mod fs;
pub mod fuzzy;
pub mod grep;
pub mod http;
pub mod json;
pub mod log;
pub mod text;
pub mod words;

pub use abort::AbortToken;
pub use error::{Error, ErrorKind, Exit, Result};
