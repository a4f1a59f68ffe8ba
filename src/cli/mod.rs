//! The command line: flags → plan → run → exit code.

/// Runs the program and says how it ends.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
