//! `.prompt` and `.list prompts`: prompts of MCP servers.

use crate::repl::Repl;
use crate::repl::command::PromptCall;
use crate::utils::{Error, Result};

/// Asks with a prompt (`P-01`..`P-07`).
pub(super) async fn run(_repl: &mut Repl, _call: PromptCall) -> Result<()> {
    std::future::ready(()).await;
    Err(Error::user("prompts are not available yet"))
}

/// The prompts of the enabled servers (`P-10`).
pub(super) async fn list(_repl: &Repl) -> Result<()> {
    std::future::ready(()).await;
    Err(Error::user("prompts are not available yet"))
}
