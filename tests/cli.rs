//! The built binary, driven from outside: one file per feature in `tests/cli/`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    clippy::missing_panics_doc,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "a failing test is the point of a panic; the support code is shared by many tests"
)]

mod cli {
    mod agents;
    mod args;
    mod completion;
    mod config;
    mod demo;
    mod docs;
    mod hostile;
    mod hostile_web;
    mod images;
    mod macros;
    mod mcp;
    mod oneshot;
    mod prompts;
    mod providers;
    mod repl;
    mod samples;
    mod session;
    mod tools;
    mod world;
}
mod support;
