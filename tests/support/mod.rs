//! What the tests share: a throw-away home, the binary with a default expectation of silence, a scripted provider,
//! a pseudo-terminal, and waiting with a deadline instead of sleeping.

pub mod home;
pub mod provider;
#[cfg(unix)]
pub mod pty;
pub mod run;
pub mod served;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long anything that must happen may take before the test fails; generous, because it is never waited out
/// when things work.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The scripted MCP server, an example target: plain `cargo test` builds it.
#[track_caller]
pub fn fake_mcp() -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_BIN_EXE_coyote"));
    let path = dir
        .with_file_name("examples")
        .join(format!("fake_mcp{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "{} is missing: build it with `cargo test` or `cargo build --example fake_mcp`",
        path.display()
    );
    path
}

/// Polls `condition` until it gives a value; fails the test with `what` after [`PATIENCE`].
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "did not happen in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
