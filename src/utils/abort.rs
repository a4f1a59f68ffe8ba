//! Cancellation: one token type for everything that a Ctrl-C must reach.
//!
//! A token is cheap to clone; a child ends with its parent and never the other way round. Nothing here installs
//! signal handlers: `cli` and `repl` own those and cancel the token of the running turn.

pub use tokio_util::sync::CancellationToken as AbortToken;

/// The work was cancelled by the person before it had an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Aborted;

/// Runs `work` until it is done or `abort` is cancelled, whichever is first; on cancellation `work` is dropped.
pub async fn unless_aborted<F: Future>(abort: &AbortToken, work: F) -> Result<F::Output, Aborted> {
    tokio::select! {
        biased;
        () = abort.cancelled() => Err(Aborted),
        output = work => Ok(output),
    }
}
