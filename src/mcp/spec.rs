//! The server file: text in, one typed entry per server out (`M-10`..`M-12`).
//!
//! Decoded once; afterwards an illegal entry cannot exist. A bad entry costs that entry and says why.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::{ServerName, entry};
use crate::utils::Error;

/// How long a server may take to start and to come through the handshake, unless its entry says otherwise.
pub const DEFAULT_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Which file an entry came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The person's own file.
    User,
    /// A file of the directory coyote runs in: less trusted (`M-47`).
    Workspace,
    /// Part of coyote (the demo server).
    Builtin,
}

/// When a person is asked before a tool is called (`M-47`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirm {
    /// Never.
    Never,
    /// Before destructive tools, and on workspace servers before all that are not read-only.
    #[default]
    Destructive,
    /// Before every tool.
    Always,
}

/// Which protocol revision is spoken (`M-14`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProtocolChoice {
    /// `initialize`; where the server does not know that, a second connection in discovery mode.
    #[default]
    Auto,
    /// `initialize` only.
    Legacy,
    /// Exactly this revision.
    Revision(String),
}

/// How a server is reached. Every string is expanded already.
#[derive(Clone, PartialEq, Eq)]
pub enum TransportSpec {
    /// A child process that speaks on its stdin and stdout.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments, in order.
        args: Vec<String>,
        /// Its working directory; coyote's own when absent.
        cwd: Option<PathBuf>,
        /// Variables set on top of what it inherits.
        env: BTreeMap<String, String>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

/// One usable entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The configured name.
    pub name: ServerName,
    /// How it is reached.
    pub transport: TransportSpec,
    /// Never started.
    pub disabled: bool,
    /// For people.
    pub description: Option<String>,
    /// How long one request may take; the defaults depend on the kind of request (`M-15`).
    pub timeout: Option<Duration>,
    /// How long starting may take, the handshake included.
    pub startup_timeout: Duration,
    /// Which revision is spoken.
    pub protocol: ProtocolChoice,
    /// When a person is asked before a tool is called; the application's setting when absent.
    pub confirm: Option<Confirm>,
    /// Which file it came from.
    pub origin: Origin,
    /// That file, for hints.
    pub file: Option<PathBuf>,
    /// Variables that the child does not inherit (provider keys) unless its `env` names them (`M-12`).
    pub scrub_env: Vec<String>,
}

/// Why an entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SpecError {
    /// What is wrong, naming the field.
    pub reason: String,
    /// Which file the entry is in.
    pub origin: Origin,
    /// The file, for hints.
    pub file: PathBuf,
}

/// All entries of a file, or of two files merged.
#[derive(Debug, Clone, Default)]
pub struct McpConfig {
    /// By configured name: an entry or what is wrong with it.
    pub servers: BTreeMap<ServerName, Result<ServerSpec, SpecError>>,
    /// What the person should know once: unknown keys, names that cannot be.
    pub warnings: Vec<String>,
}

impl McpConfig {
    /// Both files' entries; where both have a name, the workspace's entry replaces the user's whole (`M-11`).
    #[must_use]
    pub fn merge(user: Self, workspace: Self) -> Self {
        let mut merged = user;
        merged.servers.extend(workspace.servers);
        merged.warnings.extend(workspace.warnings);
        merged
    }

    /// Keeps `variables` from every stdio server whose entry does not name them itself (`M-12`).
    pub fn scrub_env(&mut self, variables: &[String]) {
        for spec in self.servers.values_mut().flatten() {
            spec.scrub_env = variables.to_vec();
        }
    }
}

/// Reads a server file. `file` is named in errors, `env` expands `${VAR}` and `${VAR:-default}` (`M-12`).
///
/// # Errors
/// The text is not JSON, or not an object with an object `mcpServers`. Everything below that costs its entry only.
pub fn parse(
    text: &str,
    file: &Path,
    origin: Origin,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<McpConfig, Error> {
    let shown = file.display();
    let text = text.trim_start_matches('\u{feff}');
    let whole: Value = serde_json::from_str(text).map_err(|error| {
        Error::config(format!("`{shown}` is not valid JSON: {error}"))
            .hint(format!("edit `{shown}`"))
    })?;
    let no_servers = || {
        Error::config(format!("`{shown}` has no object `mcpServers`")).hint(format!(
            "edit `{shown}`: {{\"mcpServers\": {{\"name\": {{…}}}}}}"
        ))
    };
    let Value::Object(mut whole) = whole else {
        return Err(no_servers());
    };
    let entries = match whole.remove("mcpServers") {
        Some(Value::Object(entries)) => entries,
        Some(Value::Null) => Map::new(),
        None if whole.is_empty() => Map::new(),
        _ => return Err(no_servers()),
    };
    let mut config = McpConfig::default();
    for (name, entry) in entries {
        match ServerName::new(&name) {
            Ok(name) => {
                let mut warnings = Vec::new();
                let spec = entry::decode(&name, &entry, origin, env, &mut warnings);
                let named = |spec| ServerSpec {
                    file: Some(file.to_path_buf()),
                    ..spec
                };
                let spec = spec.map(named).map_err(|reason| SpecError {
                    reason,
                    origin,
                    file: file.to_path_buf(),
                });
                let warnings = warnings
                    .into_iter()
                    .map(|warning| format!("`{shown}`: server `{name}`: {warning}"));
                config.warnings.extend(warnings);
                config.servers.insert(name, spec);
            }
            Err(error) => {
                let warning = format!("`{shown}`: an entry is ignored: {error}");
                config.warnings.push(warning);
            }
        }
    }
    Ok(config)
}

impl fmt::Debug for TransportSpec {
    /// Values of variables and headers are secrets; only their names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio {
                command,
                args,
                cwd,
                env,
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &args.len())
                .field("cwd", cwd)
                .field("env", &env.keys().collect::<Vec<_>>())
                .finish(),
            Self::Http { headers, .. } => f
                .debug_struct("Http")
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .finish_non_exhaustive(),
        }
    }
}

impl TransportSpec {
    /// `stdio` or `http`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
        }
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
