//! The tools that are built in (`H-43`): what each is called, what the model is told, and what runs. They work on
//! this machine's files, commands and the web; they know nothing of MCP.
//!
//! Results are text, bounded like MCP text. Whatever changes something asks first through the rules of
//! [`permission`].

pub(in crate::function) mod bounds;
mod command;
mod fetch;
mod find;
mod html;
mod patch;
mod read;
mod time;
mod write;

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::args::Args;
use super::env::DispatchEnv;
use super::error::FunctionError;
use super::permission::{self, Approval};
use crate::chat::{Arguments, FunctionDeclaration};
use crate::utils::AbortToken;
use crate::utils::abort::unless_aborted;

/// A tool that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalTool {
    FsCat,
    FsLs,
    FsGlob,
    FsGrep,
    FsWrite,
    FsPatch,
    FsMkdir,
    FsRm,
    ExecuteCommand,
    FetchUrl,
    GetCurrentTime,
}

/// What the model is told about a tool.
pub(super) struct Spec {
    description: &'static str,
    properties: Value,
    required: &'static [&'static str],
}

impl LocalTool {
    /// All of them, in the order in which they are declared.
    pub(super) const ALL: [Self; 11] = [
        Self::FsCat,
        Self::FsLs,
        Self::FsGlob,
        Self::FsGrep,
        Self::FsWrite,
        Self::FsPatch,
        Self::FsMkdir,
        Self::FsRm,
        Self::ExecuteCommand,
        Self::FetchUrl,
        Self::GetCurrentTime,
    ];

    /// The declared name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FsCat => "fs_cat",
            Self::FsLs => "fs_ls",
            Self::FsGlob => "fs_glob",
            Self::FsGrep => "fs_grep",
            Self::FsWrite => "fs_write",
            Self::FsPatch => "fs_patch",
            Self::FsMkdir => "fs_mkdir",
            Self::FsRm => "fs_rm",
            Self::ExecuteCommand => "execute_command",
            Self::FetchUrl => "fetch_url",
            Self::GetCurrentTime => "get_current_time",
        }
    }

    /// Whether it only looks: such calls run concurrently and ask nobody.
    pub(super) fn is_read_only(self) -> bool {
        match self {
            Self::FsCat
            | Self::FsLs
            | Self::FsGlob
            | Self::FsGrep
            | Self::FetchUrl
            | Self::GetCurrentTime => true,
            Self::FsWrite | Self::FsPatch | Self::FsMkdir | Self::FsRm | Self::ExecuteCommand => {
                false
            }
        }
    }

    fn spec(self) -> Spec {
        match self {
            Self::FsCat => read::cat_spec(),
            Self::FsLs => read::ls_spec(),
            Self::FsGlob => find::glob_spec(),
            Self::FsGrep => find::grep_spec(),
            Self::FsWrite => write::write_spec(),
            Self::FsPatch => patch::spec(),
            Self::FsMkdir => write::mkdir_spec(),
            Self::FsRm => write::rm_spec(),
            Self::ExecuteCommand => command::spec(),
            Self::FetchUrl => fetch::spec(),
            Self::GetCurrentTime => time::spec(),
        }
    }

    /// What the model is told.
    pub(super) fn declaration(self) -> FunctionDeclaration {
        let spec = self.spec();
        FunctionDeclaration {
            name: self.name().to_owned(),
            description: spec.description.to_owned(),
            parameters: spec.schema(),
        }
    }
}

impl Spec {
    fn schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
        })
    }
}

/// Runs `tool` and returns what the model reads.
pub(super) async fn run(
    tool: LocalTool,
    env: &DispatchEnv,
    arguments: &Arguments,
) -> Result<String, FunctionError> {
    let args = Args::new(tool.name(), arguments, &tool.spec().schema())?;
    match tool {
        LocalTool::FsCat => read::cat(env, &args).await,
        LocalTool::FsLs => read::ls(env, &args).await,
        LocalTool::FsGlob => find::glob(env, &args).await,
        LocalTool::FsGrep => find::grep(env, &args).await,
        LocalTool::FsWrite => write::write(env, &args).await,
        LocalTool::FsPatch => patch::patch(env, &args).await,
        LocalTool::FsMkdir => write::mkdir(env, &args).await,
        LocalTool::FsRm => write::rm(env, &args).await,
        LocalTool::ExecuteCommand => command::execute(env, &args).await,
        LocalTool::FetchUrl => fetch::fetch(env, &args).await,
        LocalTool::GetCurrentTime => time::now(&args),
    }
}

/// Asks before `tool` does what `title` says.
async fn approve(
    env: &DispatchEnv,
    tool: LocalTool,
    title: String,
    details: Vec<String>,
) -> Result<(), FunctionError> {
    permission::obtain(env, Approval::Local(tool.name()), title, details).await
}

/// How many calls of one answer work on files, or fetch, at the same time; each may hold tens of megabytes.
const AT_ONCE: usize = 4;
static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// A place among those that work; waits for one.
async fn place(env: &DispatchEnv) -> Result<SemaphorePermit<'static>, FunctionError> {
    unless_aborted(&env.abort, PLACES.acquire())
        .await?
        .map_err(|_| FunctionError::Cancelled)
}

/// Runs file work off the async threads. It is told to stop when the call is cancelled or dropped.
async fn blocking<T: Send + 'static>(
    env: &DispatchEnv,
    work: impl FnOnce(&AbortToken) -> Result<T, FunctionError> + Send + 'static,
) -> Result<T, FunctionError> {
    let place = place(env).await?;
    let stop = env.abort.child_token();
    let _stops_when_dropped = stop.clone().drop_guard();
    let work = move || {
        let result = work(&stop);
        drop(place); // kept until the work has really ended, also when nobody waits for it any more
        result
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err(FunctionError::failed("the tool ended unexpectedly")),
    }
}

/// The path an argument means: relative ones start in the working directory, `~` is the home directory.
fn resolve(cwd: &Path, path: &str) -> PathBuf {
    let home = || etcetera::home_dir().ok();
    let expanded = match path.strip_prefix('~') {
        Some("") => home(),
        Some(rest) => rest
            .strip_prefix(std::path::is_separator)
            .and_then(|rest| Some(home()?.join(rest))),
        None => None,
    };
    tidy(&cwd.join(expanded.unwrap_or_else(|| PathBuf::from(path))))
}

/// The path without `.` components; `..` stays, because links may stand before it.
fn tidy(path: &Path) -> PathBuf {
    path.components()
        .filter(|component| *component != Component::CurDir)
        .collect()
}

/// `` cannot read `x`: … ``, in the words of the operating system.
fn io_failure(what: &str, path: &Path, error: &std::io::Error) -> FunctionError {
    FunctionError::failed(format!("cannot {what} `{}`: {error}", path.display()))
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
