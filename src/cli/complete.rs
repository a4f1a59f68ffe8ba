//! What the shell offers after an option: names from the configuration's files. Never a connection, never an error:
//! a file that cannot be read offers nothing.

use std::ffi::OsStr;

use clap_complete::CompletionCandidate;

use crate::config::{self, AppConfig, Env, Paths, Role};

/// Values of `--model`.
pub(super) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, env| {
        let (app, _) = AppConfig::load(paths, env).ok()?;
        let models = app.clients.iter().flat_map(|client| {
            let models = client.models.iter();
            models.map(|model| format!("{}:{}", client.name, model.name))
        });
        Some(models.collect())
    })
}

/// Values of `--role`.
pub(super) fn roles(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, _| Some(Role::names(paths)))
}

/// Values of `--session`.
pub(super) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, _| Some(paths.session_names()))
}

/// Values of `--agent`.
pub(super) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, _| Some(paths.agent_names()))
}

/// Values of `--macro`.
pub(super) fn macros(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, _| Some(paths.macro_names()))
}

/// Names of configured servers; a directory's file counts only where it is trusted.
pub(super) fn servers(typed: &OsStr) -> Vec<CompletionCandidate> {
    offer(typed, |paths, env| {
        let cwd = std::env::current_dir().ok()?;
        let servers = config::load_mcp(paths, &cwd, false, env)
            .ok()?
            .into_config();
        Some(servers.servers.keys().map(ToString::to_string).collect())
    })
}

fn offer(
    typed: &OsStr,
    names: impl FnOnce(&Paths, &Env) -> Option<Vec<String>>,
) -> Vec<CompletionCandidate> {
    let names = || {
        let env = Env::process();
        let paths = Paths::resolve(&env).ok()?;
        let env = env.with_file(&paths.env_file()).ok()?;
        names(&paths, &env)
    };
    let typed = typed.to_string_lossy();
    names()
        .unwrap_or_default()
        .into_iter()
        .filter(|name| name.starts_with(&*typed))
        .map(CompletionCandidate::new)
        .collect()
}
