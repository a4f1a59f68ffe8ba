//! What is configured, and what is true now.
//!
//! ```text
//! vars, paths, yaml, names      where things are, what words mean
//! app_config, clients           config.yaml → AppConfig, once
//! role, session (session_file)  what people keep
//! agent                         who does what with which tools
//! mcp_files                     which MCP files count, and whether a directory's may
//! input                         what the person wants said
//! macros                        lines to do, with variables
//! tool_scope                    which tools and servers a request sees: one pure function
//! settings                      what `.set` can change
//! request_context               what is true now; models, enabled, request, info, snapshot are parts
//! ```
//!
//! Never prints, never asks the person, never waits for a server or a provider.

mod agent;
mod app_config;
mod clients;
mod enabled;
#[cfg(test)]
mod gating_tests;
mod info;
mod input;
mod macros;
mod mcp_files;
mod models;
mod names;
mod paths;
mod request;
mod request_context;
mod role;
mod session;
mod session_file;
mod settings;
mod snapshot;
#[cfg(test)]
mod testing;
mod tool_scope;
mod vars;
mod why;
mod yaml;

pub use agent::{Agent, AgentLayer, AgentVariable, Delegation};
pub use app_config::{AppConfig, DEFAULT_MAX_ROUNDS, KeyKind, KeySpec, Keybindings, Wrap};
pub use clients::Client;
pub use info::Info;
pub use input::{Input, Source, image_type, sources};
pub use macros::{Macro, MacroVariable, RESERVED_MACROS};
pub use mcp_files::{McpFiles, Trust, WorkspaceFile, load_mcp};
pub use models::ModelRef;
pub use names::{ALL, Aliases, Choice, Names};
pub use paths::{NameKind, Paths, check_name};
pub use request_context::{Bootstrap, Layer, RequestContext, SessionFate, remove_role};
pub use role::{LayerSettings, Role, Variables, shell};
pub use session::{Saved, Session, TEMP_SESSION, remove as remove_session};
pub use settings::{Setting, SettingSpec};
pub use snapshot::Snapshot;
pub use tool_scope::{
    Known, KnownServer, LayerChoices, Selected, Selection, ToolScope, Unknown, expand_all, select,
    select_enabled_functions, select_enabled_mcp_servers,
};
pub use vars::{Env, MissingVariable, expand};
pub use why::Why;
