//! coyote: a terminal client for language models in which MCP servers are first-class citizens.
//!
//! The library exists so that the binary stays thin and so that tests reach every layer; it promises no stable
//! API of its own. Read the modules in the order in which a line travels through them:
//!
//! ```text
//! user line ─ repl::command::parse ─┐                     (text → ReplCommand | Ask)
//! argv ────── cli::plan ────────────┤                     (flags → Plan)
//!                                   ▼
//!         config::input::Input      what the user wants said
//!                                   ▼
//!         config::RequestContext    what is true now → chat::Request (pure)
//!                                   ▼
//!         client                    request → provider → stream of chat::Event
//!                                   ▼
//!         turn                      collects events until the stream ended and every call is answered
//!                                   ▼ Vec<ToolCall>
//!         function::dispatch        name → target → one ToolResult each, order kept
//!                                   ▼
//!         mcp::runtime              server handle → protocol call, paging, timeout → protocol content
//!                                   ▼
//!         mcp::render               the one content policy: protocol content → what the model reads
//!                                   ▼
//!         turn                      appends the results and goes back to client, until no calls remain
//!                                   └── every step also yields chat::Notice → render (the terminal)
//! ```
//!
//! Two words, two meanings: `mcp::render` turns server content into what the *model* reads; `render` turns text
//! into what the *human* sees. Which module may import which is a table in `tests/architecture.rs`.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::string_slice,
        reason = "a failing test is the point of a panic"
    )
)]

pub mod chat;
pub mod cli;
pub mod client;
pub mod config;
pub mod demo;
pub mod function;
pub mod mcp;
pub mod render;
pub mod repl;
pub mod turn;
pub mod utils;
