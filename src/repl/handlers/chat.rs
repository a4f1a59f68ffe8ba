//! Asking the model: typed text, `.file`, `.continue`, `.regenerate`; and what is done with the last exchange: `.copy`,
//! `.undo`. Text goes to the turn as it stands; nothing on this path looks at what a line begins with (`P-05`).

use crate::config::Input;
use crate::repl::modes::Quiet;
use crate::repl::{Repl, clipboard};
use crate::turn;
use crate::utils::abort::unless_aborted;
use crate::utils::{Error, Result, fetch};

/// Asks what was typed.
pub(in crate::repl) async fn ask(repl: &mut Repl, text: &str) -> Result<()> {
    submit(repl, Input::from_str(text)).await
}

/// Runs one turn. Ctrl-C ends it and keeps what was said so far (`H-23`).
pub(super) async fn submit(repl: &mut Repl, input: Input) -> Result<()> {
    let deps = repl.deps();
    repl.quiet.get_or_insert_with(Quiet::begin);
    let outcome = turn::run(&repl.ctx, input, &deps).await?;
    if outcome.interrupted && repl.signals.exit().is_none() {
        repl.ui.dim("interrupted");
    }
    Ok(())
}

/// Asks about files; Ctrl-C also ends reading and fetching them.
pub(super) async fn file(repl: &mut Repl, paths: &[String], text: &str) -> Result<()> {
    let (cwd, home) = {
        let ctx = repl.ctx.read();
        (ctx.cwd().to_owned(), ctx.env().get("HOME"))
    };
    let paths: Vec<String> = paths
        .iter()
        .map(|path| expand_home(path, home.as_deref()))
        .collect();
    let abort = repl.signals.work();
    let fetch = |url: String| {
        let abort = abort.clone();
        async move { fetch::fetch(&url, &abort).await }
    };
    let reading = Input::from_files(text, &paths, &cwd, fetch);
    let Ok(input) = unless_aborted(&abort, reading).await else {
        repl.ui.dim("interrupted");
        return Ok(());
    };
    submit(repl, input?).await
}

/// `~/` as a shell would have it; quoting does not matter here.
fn expand_home(path: &str, home: Option<&str>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{}/{rest}", home.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

pub(super) async fn resume(repl: &mut Repl) -> Result<()> {
    let input = repl.ctx.read().continue_input()?;
    submit(repl, input).await
}

pub(super) async fn regenerate(repl: &mut Repl) -> Result<()> {
    let (before, input, kept) = {
        let mut ctx = repl.ctx.write();
        let before = ctx.messages().to_vec();
        let input = ctx.regenerate_input()?;
        (before, input, ctx.messages().len())
    };
    let outcome = submit(repl, input).await;
    let mut ctx = repl.ctx.write();
    if ctx.messages().len() == kept {
        ctx.replace_messages(before); // no new answer came: the old one stays
    }
    outcome
}

pub(super) async fn copy(repl: &Repl) -> Result<()> {
    let (answer, env) = {
        let ctx = repl.ctx.read();
        let answer = ctx.last_answer().map(str::to_owned);
        (answer, ctx.env().lookup())
    };
    let Some(answer) = answer else {
        return Err(Error::user("there is no answer to copy"));
    };
    let ui = repl.ui.clone();
    let write = move |bytes: &[u8]| ui.out_bytes(bytes);
    let terminal: Option<&clipboard::Terminal<'_>> =
        repl.ui.stdout_is_terminal().then_some(&write as _);
    clipboard::copy(answer.trim_end(), &env, terminal).await?;
    repl.ui.dim("copied the last answer");
    Ok(())
}

pub(super) fn undo(repl: &Repl) -> Result<()> {
    if repl.ctx.write().pop_last_exchange().is_none() {
        return Err(Error::user("there is no exchange to forget"));
    }
    super::autosave(repl);
    repl.ui.dim("forgot the last exchange");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_expanded_only_at_the_beginning() {
        let home = Some("/home/é/");
        assert_eq!(expand_home("~/a", home), "/home/é/a");
        assert_eq!(expand_home("~", home), "~");
        assert_eq!(expand_home("a~/b", home), "a~/b");
        assert_eq!(expand_home("~/a", None), "~/a");
    }
}
