//! `.macro`, `.NAME` of a macro, `.list macros` (`H-34`, `P-11`): each step is done as if it had been typed.

use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Flow, chosen, leave, leave_unasked, start_selected};
use crate::config::{Macro, Paths, RESERVED_MACROS};
use crate::repl::Repl;
use crate::repl::command::ParseError;
use crate::repl::table;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, Result};

/// How deep macros may run macros: one that runs itself ends here.
const MAX_DEPTH: u8 = 8;

/// Runs a macro on the rest of a line; without a name the person chooses.
pub(super) async fn run(repl: &mut Repl, name: Option<String>, text: &str) -> Result<Flow> {
    let names = repl.ctx.read().paths().macro_names();
    let Some(name) = chosen(repl, name, "Which macro?", names, ".macro NAME").await? else {
        return Ok(Flow::Continue);
    };
    let found = load(repl, &name)?;
    let arguments = found.split(text).map_err(|error| {
        Error::user(error).hint(format!("`.macro {}` is how it is used", found.usage()))
    })?;
    perform(repl, &found, &arguments, ".macro").await
}

/// Runs a macro from the command line (`--macro`).
pub(in crate::repl) async fn once(
    repl: &mut Repl,
    name: &str,
    arguments: &[String],
) -> Result<Flow> {
    let found = load(repl, name)?;
    perform(repl, &found, arguments, "--macro").await
}

/// A line that begins like a command and is none: a macro's name, or `error` with the macros that are near.
pub(in crate::repl) async fn unknown(
    repl: &mut Repl,
    line: &str,
    error: ParseError,
) -> Result<Flow> {
    let line = line.trim();
    let (name, text) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.trim_start_matches('.');
    let paths = repl.ctx.read().paths().clone();
    if paths.macro_file(name).is_ok_and(|file| file.is_file()) {
        return run(repl, Some(name.to_owned()), text).await;
    }
    let names = paths.macro_names();
    let near = nearest(name, names.iter().map(String::as_str), 3);
    let error = Error::from(error);
    if near.is_empty() {
        return Err(error);
    }
    let near: Vec<String> = near.iter().map(|name| format!(".{name}")).collect();
    let near: Vec<&str> = near.iter().map(String::as_str).collect();
    Err(error.hint(format!("{} is a macro that is near", alternatives(&near))))
}

fn load(repl: &Repl, name: &str) -> Result<Macro> {
    let paths = repl.ctx.read().paths().clone();
    let (found, warnings) = Macro::load(&paths, name)?;
    for warning in warnings {
        repl.ui.warn(&warning);
    }
    Ok(found)
}

/// Does the steps: in a context of its own that is forgotten afterwards, or in the one in force.
async fn perform(
    repl: &mut Repl,
    found: &Macro,
    arguments: &[String],
    command: &str,
) -> Result<Flow> {
    let steps = found.steps(arguments, command)?;
    if repl.depth == MAX_DEPTH {
        let name = found.name();
        return Err(Error::user(format!(
            "macro `{name}` is not run: {MAX_DEPTH} macros run each other already"
        )));
    }
    let outer = found.is_isolated().then(|| {
        let fresh = repl.ctx.read().fresh();
        std::mem::replace(&mut repl.ctx, Arc::new(RwLock::new(fresh)))
    });
    if outer.is_some() {
        start_selected(repl);
    }
    repl.depth += 1;
    let outcome = Box::pin(each(repl, found.name(), &steps)).await;
    repl.depth -= 1;
    let Some(outer) = outer else {
        return outcome;
    };
    leave_unasked(repl);
    repl.ctx = outer;
    repl.apply_style();
    if matches!(outcome, Ok(Flow::Exit)) {
        // `.exit` left the macro's own context; this one may have a session to ask about.
        leave(repl).await?;
    }
    outcome
}

async fn each(repl: &mut Repl, name: &str, steps: &[String]) -> Result<Flow> {
    // What was interrupted before is of no account.
    let _ = repl.signals.work();
    for (index, step) in steps.iter().enumerate() {
        if repl.ui.stdout_is_terminal() {
            repl.ui.dim(&format!("> {}", step.trim_end()));
        }
        repl.quiet = None;
        let number = index + 1;
        let stopped = |error: Error| error.context(format!("macro `{name}`, step {number}"));
        if repl.do_line(step).await.map_err(stopped)? == Flow::Exit {
            return Ok(Flow::Exit);
        }
        if repl.signals.is_interrupted() {
            if number < steps.len() {
                repl.ui
                    .dim(&format!("macro `{name}` ends after step {number}"));
            }
            break;
        }
    }
    Ok(Flow::Continue)
}

/// Every macro with what it does, or why it does nothing, and whether a command hides it.
pub(super) fn list(repl: &Repl) {
    let paths = repl.ctx.read().paths().clone();
    let rows: Vec<Vec<String>> = (paths.macro_names().iter())
        .map(|name| {
            let (about, usage) = match Macro::load(&paths, name) {
                Ok((found, _)) => {
                    let about = found.description().unwrap_or_default().to_owned();
                    (about, found.usage())
                }
                Err(error) => (format!("cannot be used: {error}"), name.clone()),
            };
            let mark = shadow(&paths, name).map_or_else(String::new, |(_, mark)| mark);
            vec![usage, about, mark]
        })
        .collect();
    if rows.is_empty() {
        let dir = paths.macros_dir();
        repl.ui
            .dim(&format!("there are no macros in {}", dir.display()));
        return;
    }
    let table = repl.ui.table(&["macro", "what it does", ""], &rows);
    repl.ui.out(&table);
}

/// A warning for each macro that a command of the same name hides (`P-11`).
pub(in crate::repl) fn shadowed(repl: &Repl) -> Vec<String> {
    let paths = repl.ctx.read().paths().clone();
    let names = paths.macro_names();
    names
        .iter()
        .filter_map(|name| {
            let (command, mark) = shadow(&paths, name)?;
            Some(format!(
                "macro `{name}` does not run as `{command}`: {mark}"
            ))
        })
        .collect()
}

/// The command that hides a macro, and what there is to know about it.
fn shadow(paths: &Paths, name: &str) -> Option<(&'static str, String)> {
    if RESERVED_MACROS.contains(&name) {
        return None;
    }
    let command = table::find(&format!(".{name}"))?.name;
    let file = paths.macro_file(name).ok()?;
    let file = Path::display(&file);
    Some((
        command,
        format!("`{file}` is hidden by a command, `.macro {name}` runs it"),
    ))
}
