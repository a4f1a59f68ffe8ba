//! What the shell offers after an option: names from the configuration's files. Never a connection, never an error:
//! a file that cannot be read offers nothing.

use std::ffi::OsStr;

use clap_complete::CompletionCandidate;

/// Values of `--model`.
pub(super) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let _ = typed;
    Vec::new()
}

/// Values of `--role`.
pub(super) fn roles(typed: &OsStr) -> Vec<CompletionCandidate> {
    let _ = typed;
    Vec::new()
}

/// Values of `--session`.
pub(super) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let _ = typed;
    Vec::new()
}

/// Names of configured servers.
pub(super) fn servers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let _ = typed;
    Vec::new()
}
