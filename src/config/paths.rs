//! Where files live (`H-10`). Everything is derived from two directories, which tests and users can choose.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::vars::Env;
use crate::utils::{Error, Result};

/// The two directories and the files below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    config_dir: PathBuf,
    cache_dir: PathBuf,
}

/// What a name in a file name is for; decides the words of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// `roles/<name>.md`
    Role,
    /// `sessions/<name>.yaml`
    Session,
    /// `agents/<name>/`
    Agent,
    /// `macros/<name>.yaml`
    Macro,
}

impl NameKind {
    /// `role`, `session`, `agent` or `macro`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Session => "session",
            Self::Agent => "agent",
            Self::Macro => "macro",
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            Self::Role => "a role",
            Self::Session => "a session",
            Self::Agent => "an agent",
            Self::Macro => "a macro",
        }
    }
}

impl Paths {
    /// These two directories.
    pub fn new(config_dir: impl Into<PathBuf>, cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            config_dir: config_dir.into(),
            cache_dir: cache_dir.into(),
        }
    }

    /// `COYOTE_CONFIG_DIR`, else `$XDG_CONFIG_HOME/coyote`, else the platform's; the cache likewise (`H-10`).
    ///
    /// # Errors
    /// Neither variable is set and there is no home directory.
    pub fn resolve(env: &Env) -> Result<Self> {
        let config_dir = match chosen(env, "COYOTE_CONFIG_DIR", "XDG_CONFIG_HOME") {
            Some(dir) => dir,
            None => platform_config_dir(env)?,
        };
        let cache_dir = match chosen(env, "COYOTE_CACHE_DIR", "XDG_CACHE_HOME") {
            Some(dir) => dir,
            None => platform_cache_dir(env)?,
        };
        Ok(Self::new(config_dir, cache_dir))
    }

    /// The configuration directory.
    pub fn config_dir(&self) -> &Path {
        &self.config_dir
    }

    /// The cache directory.
    pub fn cache_dir(&self) -> &Path {
        &self.cache_dir
    }

    /// `config.yaml`
    pub fn config_file(&self) -> PathBuf {
        self.config_dir.join("config.yaml")
    }

    /// `.env`
    pub fn env_file(&self) -> PathBuf {
        self.config_dir.join(".env")
    }

    /// `mcp.json`
    pub fn mcp_file(&self) -> PathBuf {
        self.config_dir.join("mcp.json")
    }

    /// `functions/mcp.json`, read when [`Self::mcp_file`] is not there (`M-11`).
    pub fn mcp_fallback_file(&self) -> PathBuf {
        self.functions_dir().join("mcp.json")
    }

    /// Which workspace files may start programs, as answered by the person (`M-11`).
    pub fn trust_file(&self) -> PathBuf {
        self.config_dir.join("workspace-trust.json")
    }

    /// `roles/`
    pub fn roles_dir(&self) -> PathBuf {
        self.config_dir.join("roles")
    }

    /// `roles/<name>.md`
    ///
    /// # Errors
    /// The name cannot be a file's.
    pub fn role(&self, name: &str) -> Result<PathBuf> {
        check_name(name, NameKind::Role)?;
        Ok(self.roles_dir().join(format!("{name}.md")))
    }

    /// `sessions/`
    pub fn sessions_dir(&self) -> PathBuf {
        self.config_dir.join("sessions")
    }

    /// `sessions/<name>.yaml`
    ///
    /// # Errors
    /// The name cannot be a file's.
    pub fn session(&self, name: &str) -> Result<PathBuf> {
        check_name(name, NameKind::Session)?;
        Ok(self.sessions_dir().join(format!("{name}.yaml")))
    }

    /// `agents/`
    pub fn agents_dir(&self) -> PathBuf {
        self.config_dir.join("agents")
    }

    /// `macros/`
    pub fn macros_dir(&self) -> PathBuf {
        self.config_dir.join("macros")
    }

    /// `macros/<name>.yaml`
    ///
    /// # Errors
    /// The name cannot be a file's.
    pub fn macro_file(&self, name: &str) -> Result<PathBuf> {
        check_name(name, NameKind::Macro)?;
        Ok(self.macros_dir().join(format!("{name}.yaml")))
    }

    /// `functions/`
    pub fn functions_dir(&self) -> PathBuf {
        self.config_dir.join("functions")
    }

    /// `<cache>/coyote.log`
    pub fn log_file(&self) -> PathBuf {
        self.cache_dir.join("coyote.log")
    }

    /// `<cache>/repl-history/`
    pub fn history_dir(&self) -> PathBuf {
        self.cache_dir.join("repl-history")
    }

    /// `<cache>/mcp-resources`
    pub fn spill_dir(&self) -> PathBuf {
        self.cache_dir.join("mcp-resources")
    }

    /// The names of the role files, sorted.
    pub fn role_names(&self) -> Vec<String> {
        stems(&self.roles_dir(), "md")
    }

    /// The names of the saved sessions, sorted.
    pub fn session_names(&self) -> Vec<String> {
        stems(&self.sessions_dir(), "yaml")
    }

    /// The names of the macros, sorted.
    pub fn macro_names(&self) -> Vec<String> {
        stems(&self.macros_dir(), "yaml")
    }

    /// The names of the agents, sorted: directories with a `config.yaml`.
    pub fn agent_names(&self) -> Vec<String> {
        let mut names: Vec<String> = entries(&self.agents_dir())
            .filter(|path| path.join("config.yaml").is_file())
            .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }
}

fn chosen(env: &Env, ours: &str, base: &str) -> Option<PathBuf> {
    if let Some(dir) = env.get(ours) {
        return Some(expand_tilde(&dir, env));
    }
    env.get(base)
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute()) // the XDG rule: a relative path counts as unset
        .map(|dir| dir.join("coyote"))
}

/// `~` and `~/…` mean the home directory; everything else is itself.
pub(super) fn expand_tilde(path: &str, env: &Env) -> PathBuf {
    let rest = match path.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with(['/', std::path::MAIN_SEPARATOR]) => {
            rest.trim_start_matches(['/', std::path::MAIN_SEPARATOR])
        }
        _ => return PathBuf::from(path),
    };
    match home(env) {
        Some(home) if rest.is_empty() => home,
        Some(home) => home.join(rest),
        None => PathBuf::from(path),
    }
}

fn home(env: &Env) -> Option<PathBuf> {
    let given = if cfg!(windows) { None } else { env.get("HOME") };
    given
        .map(PathBuf::from)
        .or_else(|| etcetera::home_dir().ok())
}

fn platform_config_dir(env: &Env) -> Result<PathBuf> {
    if cfg!(target_os = "macos") {
        // Where coyote's users on a Mac have had it so far; a new user gets `~/.config`.
        let apple = home(env).map(|home| home.join("Library/Application Support/coyote"));
        if let Some(apple) = apple.filter(|dir| dir.is_dir()) {
            return Ok(apple);
        }
    }
    if cfg!(unix)
        && let Some(home) = home(env)
    {
        return Ok(home.join(".config/coyote"));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| no_home("COYOTE_CONFIG_DIR"))?;
    Ok(strategy.config_dir().join("coyote"))
}

fn platform_cache_dir(env: &Env) -> Result<PathBuf> {
    if cfg!(unix)
        && let Some(home) = home(env)
    {
        return Ok(home.join(".cache/coyote"));
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| no_home("COYOTE_CACHE_DIR"))?;
    Ok(strategy.cache_dir().join("coyote"))
}

fn no_home(variable: &str) -> Error {
    Error::config("there is no home directory to keep files in")
        .hint(format!("set `{variable}` to a directory"))
}

/// Longest name that still fits into a file name on every platform, with an ending and a conflict mark.
const NAME_MAX_BYTES: usize = 180;

/// Whether `name` can be part of a file name: no separators, nothing hidden, nothing that escapes its directory.
///
/// # Errors
/// It cannot; the error says why.
pub fn check_name(name: &str, kind: NameKind) -> Result<()> {
    let what = kind.with_article();
    let refuse = |why: &str| {
        Err(Error::user(format!(
            "`{}` cannot be the name of {what}: {why}",
            shown(name)
        )))
    };
    if name.trim().is_empty() {
        return Err(Error::user(format!("the name of {what} is empty")));
    }
    if name.len() > NAME_MAX_BYTES {
        return refuse(&format!("it is longer than {NAME_MAX_BYTES} bytes"));
    }
    if name.starts_with('.') {
        return refuse("it begins with a dot");
    }
    if name.trim() != name {
        return refuse("it begins or ends with a space");
    }
    let forbidden = |c: char| {
        c.is_control() || matches!(c, '/' | '\\') || (cfg!(windows) && r#"<>:"|?*"#.contains(c))
    };
    if let Some(c) = name.chars().find(|c| forbidden(*c)) {
        return refuse(&format!("it contains {c:?}"));
    }
    Ok(())
}

fn shown(name: &str) -> String {
    crate::utils::text::bounded(name, 80)
        .escape_debug()
        .to_string()
}

fn stems(dir: &Path, extension: &str) -> Vec<String> {
    let mut names: Vec<String> = entries(dir)
        .filter(|path| path.extension().is_some_and(|e| e == extension) && path.is_file())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// What a directory holds; one that cannot be read holds nothing.
fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
