//! The command line: what was typed (`args`) → what it means (`plan`) → doing it → the exit code.
//!
//! The only layer that knows signals, exit codes and the runtime. Nothing is read, started or created before the
//! plan needs it, so that `--version` and completions cost nothing (`H-05`).
//!
//! ```text
//! boot              configuration → context; the question about a directory's server file
//! chat, execute     one question, the REPL; -e
//! look              --info, --list-*
//! mcp (mcp_text)    coyote mcp <verb>
//! demo, tour        coyote demo
//! complete          what the shell offers
//! supervise         signals, servers and exit codes around all of it
//! ```

pub mod args;
mod boot;
mod chat;
mod complete;
mod demo;
mod execute;
mod look;
pub mod mcp;
mod mcp_text;
pub mod plan;
mod supervise;
pub mod tour;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::CommandFactory as _;

use crate::config::Env;
use crate::mcp::spill::SpillDir;
use crate::render::{RenderOptions, TerminalGuard, Ui};
use crate::utils::{AbortToken, Error, Exit, Result};
use boot::{Machine, Trusting};
use plan::{Configured, Mcp, Plan, Setting};
use supervise::{Started, supervise};

/// Worker threads: turns wait far more than they compute.
const WORKERS: usize = 2;
/// How long threads that cannot be cancelled (a read from stdin) are waited for.
const LEAVING: Duration = Duration::from_millis(100);

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
    let printed = error.print();
    match error.exit_code() {
        0 if printed.is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) => {
            Exit::Failure.into()
        }
        0 => Exit::Success.into(),
        _ => Exit::Usage.into(),
    }
}

fn run(plan: &Plan) -> Exit {
    let options = RenderOptions {
        json: matches!(plan, Plan::Configured(_, setting) if setting.json),
        ..RenderOptions::detect(&Env::process().lookup())
    };
    let ui = Ui::new(options.clone());
    let done = match plan {
        Plan::DemoServer(spoil) => {
            let output = std::io::stdout();
            crate::demo::serve(std::io::stdin().lock(), output, *spoil)
                .map(|()| Exit::Success)
                .map_err(Error::from)
        }
        Plan::Completions(shell) => completions(*shell, &ui),
        Plan::Demo { .. } | Plan::Configured(..) => on_runtime(plan, &ui, &options),
    };
    let exit = done.unwrap_or_else(|error| {
        ui.error(&error);
        Exit::Failure
    });
    match ui.failure() {
        // What was asked for has not arrived where it should go; a closed pipe is no such case (`H-04`).
        Some(error) => {
            ui.error(&error);
            exit.or_failure()
        }
        None => exit,
    }
}

/// The script that makes `shell` ask coyote itself: the same as `COMPLETE=<shell> coyote` prints.
fn completions(shell: clap_complete::Shell, ui: &Ui) -> Result<Exit> {
    let shells = clap_complete::env::Shells::builtins();
    let name = shell.to_string();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| Error::internal(format!("no completion for `{name}`")))?;
    let program = std::env::args_os().next().unwrap_or_default();
    let mut script = Vec::new();
    shell.write_registration(
        "COMPLETE",
        "coyote",
        "coyote",
        &program.to_string_lossy(),
        &mut script,
    )?;
    ui.out_bytes(&script);
    Ok(Exit::Success)
}

fn on_runtime(plan: &Plan, ui: &Arc<Ui>, options: &RenderOptions) -> Result<Exit> {
    let _terminal = TerminalGuard::new(Arc::clone(ui));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()?;
    let abort = AbortToken::new();
    let started = Started::default();
    let work = execute(plan, ui, options, &started, &abort);
    let exit = runtime.block_on(supervise(work, &abort, &started, ui));
    runtime.shutdown_timeout(LEAVING);
    Ok(exit)
}

async fn execute(
    plan: &Plan,
    ui: &Arc<Ui>,
    options: &RenderOptions,
    started: &Started,
    abort: &AbortToken,
) -> Result<Exit> {
    let machine = Machine::look(Arc::clone(ui), started.clone(), options)?;
    match plan {
        Plan::Configured(configured, setting) => {
            configured_command(&machine, configured, setting, abort).await
        }
        Plan::Demo { model } => demo::run(&machine, model.as_deref(), abort).await,
        Plan::DemoServer(_) | Plan::Completions(_) => Ok(Exit::Success),
    }
}

async fn configured_command(
    machine: &Machine,
    configured: &Configured,
    setting: &Setting,
    abort: &AbortToken,
) -> Result<Exit> {
    let ui = &machine.ui;
    match configured {
        Configured::Info => {
            let context = machine.context(setting, Trusting::Skip).await?;
            Ok(look::info(&context, setting.json, ui))
        }
        Configured::List(what) => {
            let context = machine.context(setting, Trusting::Skip).await?;
            Ok(look::list(&context, *what, setting.json, ui))
        }
        Configured::Mcp(what) => mcp_command(machine, what, setting, abort).await,
        Configured::Macro(call) => chat::run_macro(machine, call, setting).await,
        Configured::Chat(chat) if machine.stdin_is_terminal && !chat.says_something() => {
            chat::repl(machine, chat, setting).await
        }
        Configured::Chat(chat) => chat::once(machine, chat, setting, abort).await,
    }
}

async fn mcp_command(
    machine: &Machine,
    what: &Mcp,
    setting: &Setting,
    abort: &AbortToken,
) -> Result<Exit> {
    let trusting = match what {
        Mcp::Servers { offline: true } => Trusting::Skip,
        Mcp::Servers { offline: false } | Mcp::List(..) | Mcp::Ask { .. } => Trusting::Ask,
    };
    let context = machine.context(setting, trusting).await?;
    let tools = mcp::Tools {
        registry: Arc::clone(context.registry()),
        enabled: context.selection().servers,
        spill: SpillDir::new(context.paths().spill_dir()),
        ui: Arc::clone(&machine.ui),
        json: setting.json,
        stdin_is_terminal: machine.stdin_is_terminal,
        abort: abort.clone(),
    };
    mcp::run(&tools, what).await
}
