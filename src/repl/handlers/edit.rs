//! `.edit`: the person's own editor on a file of coyote's (`H-22`).

use crate::chat::{Answer, Question};
use crate::config::AppConfig;
use crate::repl::command::EditTarget;
use crate::repl::{Repl, external_editor};
use crate::utils::abort::unless_aborted;
use crate::utils::fs::{Access, write_atomic};
use crate::utils::{Error, Result};

pub(super) async fn run(repl: &Repl, target: EditTarget) -> Result<()> {
    match target {
        EditTarget::Config => config(repl).await,
        EditTarget::Role => role(repl).await,
        EditTarget::Session => session(repl).await,
    }
}

fn editor(repl: &Repl) -> Result<String> {
    let ctx = repl.ctx.read();
    let env = ctx.env().lookup();
    external_editor::resolve(ctx.app().editor.as_deref(), &env).ok_or_else(external_editor::missing)
}

/// Runs what blocks while the editor is open; an end of coyote does not wait for that.
async fn blocking<T: Send + 'static>(
    repl: &Repl,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let not_waited = || Error::internal("the editor was not waited for");
    unless_aborted(repl.signals.ended(), tokio::task::spawn_blocking(work))
        .await
        .map_err(|_| not_waited())?
        .map_err(|_| not_waited())?
}

/// The file is checked afterwards, so that a mistake is found now and not at the next start.
async fn config(repl: &Repl) -> Result<()> {
    let editor = editor(repl)?;
    let (paths, env) = {
        let ctx = repl.ctx.read();
        (ctx.paths().clone(), ctx.env().clone())
    };
    let file = paths.config_file();
    if !file.exists() {
        write_atomic(&file, b"", Access::Private)?;
    }
    blocking(repl, move || external_editor::edit_file(&editor, &file)).await?;
    let (_, warnings) = AppConfig::load(&paths, &env)?;
    for warning in warnings {
        repl.ui.warn(&warning);
    }
    repl.ui.dim("changes take effect at the next start");
    Ok(())
}

/// A role with a file is edited there; a built-in one becomes a file first; one without a name stays in memory.
async fn role(repl: &Repl) -> Result<()> {
    let editor = editor(repl)?;
    let role = repl.ctx.read().role().cloned();
    let Some(role) = role else {
        return Err(Error::user("no role is active").hint("`.role NAME` takes one on"));
    };
    if role.is_temporary() {
        let prompt = role.prompt().to_owned();
        let edited = blocking(repl, move || {
            external_editor::edit_text(&editor, &prompt, "md")
        })
        .await?;
        return repl.ctx.write().use_temp_role(&edited);
    }
    let name = role.name().to_owned();
    let file = repl.ctx.read().paths().role(&name)?;
    if !file.exists() {
        repl.ctx.write().save_role(None)?;
    }
    blocking(repl, move || external_editor::edit_file(&editor, &file)).await?;
    repl.ctx.write().use_role(&name)
}

/// The session as it is now, saved or not. A text that is no session any more can be edited on.
async fn session(repl: &Repl) -> Result<()> {
    let editor = editor(repl)?;
    let text = match repl.ctx.read().session() {
        Some(session) => session.to_text()?,
        None => {
            return Err(Error::user("no session is active").hint("`.session [NAME]` starts one"));
        }
    };
    let mut edited = text.clone();
    loop {
        let (command, before) = (editor.clone(), edited.clone());
        edited = blocking(repl, move || {
            external_editor::edit_text(&command, &before, "yaml")
        })
        .await?;
        if edited.trim() == text.trim() {
            return Ok(());
        }
        let replaced = repl.ctx.write().replace_session_text(&edited);
        let Err(error) = replaced else {
            super::autosave(repl);
            return Ok(());
        };
        repl.ui.error(&error);
        let again = Question::Confirm {
            message: "Edit again?".to_owned(),
            default: true,
        };
        if repl.question(again).await != Answer::Yes {
            return Err(Error::user("the session is as it was"));
        }
    }
}
