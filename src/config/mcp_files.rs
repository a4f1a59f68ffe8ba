//! Which MCP files count (`M-11`): the person's own, and the directory's once the person trusts it. A directory's
//! file can start programs, so whether it may is remembered per path and content; the question itself is asked above.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::paths::Paths;
use super::vars::Env;
use crate::mcp::spec::{self, TransportSpec};
use crate::mcp::{McpConfig, Origin};
use crate::utils::fs::{Access, write_atomic};
use crate::utils::{Error, ErrorKind, Result};

/// Where a directory's file may be, the first that is there counts.
const WORKSPACE_PLACES: [&str; 2] = [".coyote/mcp.json", ".mcp.json"];

/// What the person said about a directory's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Its servers may be used.
    Granted,
    /// They may not.
    Refused,
    /// This content has not been asked about.
    Unknown,
}

/// A directory's file.
#[derive(Debug, Clone)]
pub struct WorkspaceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What the person said about this content.
    pub trust: Trust,
    /// Its servers.
    pub config: McpConfig,
    digest: String,
}

/// The files that were found.
#[derive(Debug, Clone, Default)]
pub struct McpFiles {
    /// The person's own servers.
    pub user: McpConfig,
    /// The directory's file, unless it is to be ignored.
    pub workspace: Option<WorkspaceFile>,
}

/// Finds and reads the files. `no_workspace` ignores the directory's (`--no-workspace-mcp`, `no_workspace_mcp`).
///
/// # Errors
/// The person's file cannot be read or is no server file. A directory's file that is no server file is a warning in
/// the result: a directory must not be able to keep coyote from starting.
pub fn load_mcp(paths: &Paths, cwd: &Path, no_workspace: bool, env: &Env) -> Result<McpFiles> {
    let lookup = env.lookup();
    let mut user = McpConfig::default();
    for file in [paths.mcp_file(), paths.mcp_fallback_file()] {
        if let Some(text) = read(&file)? {
            user = spec::parse(&text, &file, Origin::User, &lookup)?;
            break;
        }
    }
    if no_workspace {
        return Ok(McpFiles {
            user,
            workspace: None,
        });
    }
    let mut workspace = None;
    for place in WORKSPACE_PLACES {
        let path = cwd.join(place);
        // The person's own directory may be where coyote runs; its file is not a stranger's.
        if path == paths.mcp_file() {
            continue;
        }
        let text = match read(&path) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                user.warnings.push(error.to_string());
                continue;
            }
        };
        match spec::parse(&text, &path, Origin::Workspace, &lookup) {
            Ok(config) => {
                let digest = digest(&text);
                let trust = known_trust(paths, &path, &digest);
                workspace = Some(WorkspaceFile {
                    path,
                    trust,
                    config,
                    digest,
                });
            }
            Err(error) => user.warnings.push(error.to_string()),
        }
        break;
    }
    Ok(McpFiles { user, workspace })
}

impl McpFiles {
    /// The servers that count now: the directory's only where it is trusted.
    pub fn into_config(self) -> McpConfig {
        match self.workspace {
            Some(file) if file.trust == Trust::Granted => McpConfig::merge(self.user, file.config),
            _ => self.user,
        }
    }
}

impl WorkspaceFile {
    /// What it would start or reach, a line a server, raw: whoever shows it sanitises.
    pub fn actions(&self) -> Vec<String> {
        let action =
            |(name, spec): (&crate::mcp::ServerName, &Result<crate::mcp::ServerSpec, _>)| {
                let Ok(spec) = spec else {
                    return format!("{name}: cannot be used");
                };
                match &spec.transport {
                    TransportSpec::Stdio { command, args, .. } => {
                        let words: Vec<&str> = std::iter::once(command)
                            .chain(args)
                            .map(String::as_str)
                            .collect();
                        format!("{name}: runs {}", words.join(" "))
                    }
                    TransportSpec::Http { url, .. } => format!("{name}: connects to {url}"),
                }
            };
        self.config.servers.iter().map(action).collect()
    }

    /// Remembers what the person said, for this path and content, and applies it.
    ///
    /// # Errors
    /// It cannot be remembered; it is applied all the same.
    pub fn decide(&mut self, paths: &Paths, granted: bool) -> Result<()> {
        self.trust = if granted {
            Trust::Granted
        } else {
            Trust::Refused
        };
        let mut store = Store::load(paths);
        let decision = Decision {
            sha256: self.digest.clone(),
            trusted: granted,
        };
        store.0.insert(key(&self.path), decision);
        store.save(paths)
    }
}

/// The decisions, by path; a changed file is a new question.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Store(BTreeMap<String, Decision>);

#[derive(Debug, Serialize, Deserialize)]
struct Decision {
    sha256: String,
    trusted: bool,
}

impl Store {
    /// A store that cannot be read trusts nothing.
    fn load(paths: &Paths) -> Self {
        crate::utils::fs::read_text(&paths.trust_file())
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default()
    }

    fn save(&self, paths: &Paths) -> Result<()> {
        let file = paths.trust_file();
        let text = serde_json::to_string_pretty(self).map_err(Error::internal)?;
        write_atomic(&file, text.as_bytes(), Access::Private).map_err(|error| {
            Error::new(ErrorKind::Internal, error)
                .context(format!("cannot write `{}`", file.display()))
        })
    }
}

fn known_trust(paths: &Paths, path: &Path, digest: &str) -> Trust {
    match Store::load(paths).0.get(&key(path)) {
        Some(decision) if decision.sha256 == digest && decision.trusted => Trust::Granted,
        Some(decision) if decision.sha256 == digest => Trust::Refused,
        _ => Trust::Unknown,
    }
}

fn key(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    path.to_string_lossy().into_owned()
}

fn digest(text: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

fn read(file: &Path) -> Result<Option<String>> {
    match crate::utils::fs::read_text(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(ErrorKind::Config, error)
            .context(format!("cannot read `{}`", file.display()))),
    }
}

#[cfg(test)]
#[path = "mcp_files_tests.rs"]
mod tests;
