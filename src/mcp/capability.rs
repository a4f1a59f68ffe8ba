//! What a server advertised, as a small set of facts (`M-30`).

use serde_json::{Map, Value};

use super::ModelServerName;

/// What decides which of a server's functions are declared to the model (`M-31`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerFeatures {
    /// What the model knows the server as.
    pub name: ModelServerName,
    /// It has tools.
    pub tools: bool,
    /// It has resources.
    pub resources: bool,
    /// It has prompts.
    pub prompts: bool,
}

/// What a server said it can do when it was connected.
#[allow(clippy::struct_excessive_bools, reason = "four independent facts")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// It has tools.
    pub tools: bool,
    /// It has resources, and maybe resource templates.
    pub resources: bool,
    /// It has prompts.
    pub prompts: bool,
    /// It completes prompt and template arguments.
    pub completions: bool,
}

impl Capabilities {
    /// What holds of a server whose handshake nobody saw: tools, so that its tools keep working, and nothing else,
    /// so that it is never asked for what it may not know (`M-30`, fail open).
    pub const UNKNOWN: Self = Self {
        tools: true,
        resources: false,
        prompts: false,
        completions: false,
    };

    /// Reads the `capabilities` object of a handshake. A key that is present counts, whatever its value, unless
    /// that says no itself: `null` or `false`.
    pub fn from_handshake(capabilities: &Map<String, Value>) -> Self {
        let has = |key: &str| {
            !matches!(
                capabilities.get(key),
                None | Some(Value::Null | Value::Bool(false))
            )
        };
        Self {
            tools: has("tools"),
            resources: has("resources"),
            prompts: has("prompts"),
            completions: has("completions"),
        }
    }

    /// These facts under the name that the model knows the server as.
    pub fn features(self, name: ModelServerName) -> McpServerFeatures {
        McpServerFeatures {
            name,
            tools: self.tools,
            resources: self.resources,
            prompts: self.prompts,
        }
    }
}
