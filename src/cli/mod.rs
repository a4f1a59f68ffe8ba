//! The command line: what was typed (`args`) → what it means (`plan`) → doing it (`run`) → the exit code.
//!
//! The only layer that knows signals, exit codes and the runtime. Nothing is read, started or created before the
//! plan needs it, so that `--version` and completions cost nothing (`H-05`).

pub mod args;
mod complete;
pub mod mcp;
mod mcp_text;
pub mod plan;
pub mod tour;

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::demo;
use crate::utils::Exit;
use plan::Plan;

/// Runs the program and says how it ends.
pub fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(args::Typed::command).complete();
    let argv: Vec<_> = std::env::args_os().collect();
    match args::parse(&argv).and_then(plan::plan) {
        Ok(plan) => run(&plan).into(),
        Err(error) => usage(&error),
    }
}

/// Help and versions go to stdout and are no failure; clap knows. A closed pipe is none either.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.exit_code() {
        0 => Exit::Success.into(),
        _ => Exit::Usage.into(),
    }
}

fn run(plan: &Plan) -> Exit {
    match plan {
        Plan::DemoServer(spoil) => {
            match demo::serve(std::io::stdin().lock(), std::io::stdout(), *spoil) {
                Ok(()) => Exit::Success,
                Err(_) => Exit::Failure,
            }
        }
        Plan::Completions(_) | Plan::Demo { .. } | Plan::Configured(..) => Exit::Failure,
    }
}
