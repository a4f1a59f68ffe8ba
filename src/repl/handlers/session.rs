//! `.session`, `.exit session`, `.empty`, `.compress`, `.save session`, `.delete session`, `.list sessions`, and when a
//! session is saved (`H-31`, `H-14`).

use super::{chosen, start_selected, summary};
use crate::chat::{Answer, Question};
use crate::config::{Saved, Session, SessionFate, remove_session};
use crate::repl::Repl;
use crate::utils::text::plural;
use crate::utils::{Error, Result};

/// Starts or resumes a session, leaving the one that is active.
pub(super) async fn enter(repl: &mut Repl, name: Option<&str>) -> Result<()> {
    let same = |repl: &Repl| {
        let ctx = repl.ctx.read();
        name.is_some() && ctx.session().map(Session::name) == name
    };
    if same(repl) {
        return Err(Error::user("this session is active already"));
    }
    leave(repl).await?;
    repl.ctx.write().enter_session(name)?;
    start_selected(repl);
    let resumed = repl.ctx.read().session().map(|session| {
        let count = plural(session.messages().len(), "message");
        (!session.is_empty()).then(|| format!("session `{}`: {count}", session.name()))
    });
    if let Some(line) = resumed.flatten() {
        repl.ui.dim(&line);
    }
    Ok(())
}

pub(super) async fn exit(repl: &mut Repl) -> Result<()> {
    if repl.ctx.read().session().is_none() {
        return Err(Error::user("no session is active"));
    }
    leave(repl).await?;
    start_selected(repl);
    Ok(())
}

/// Leaves the session, if there is one: saved, dropped or as the person says.
///
/// # Errors
/// It could not be saved, or the person changed their mind: it is still active.
pub(in crate::repl) async fn leave(repl: &mut Repl) -> Result<()> {
    let fate = repl.ctx.read().session_fate();
    match fate {
        SessionFate::Nothing | SessionFate::Drop => {}
        SessionFate::Save => write(repl, None)?,
        SessionFate::Ask => match keep(repl).await {
            Keep::Drop => {}
            Keep::Save(name) => write(repl, name.as_deref())?,
            Keep::Stay => return Err(Error::user("the session is still active")),
        },
    }
    quit(repl);
    Ok(())
}

/// Leaves the session when nobody can be asked any more: one that has a name is saved.
pub(in crate::repl) fn leave_unasked(repl: &mut Repl) {
    let fate = repl.ctx.read().session_fate();
    let save = match fate {
        SessionFate::Nothing | SessionFate::Drop => false,
        SessionFate::Save => true,
        SessionFate::Ask => has_name(repl),
    };
    if save && let Err(error) = write(repl, None) {
        repl.ui.error(&error);
    }
    quit(repl);
}

fn quit(repl: &Repl) {
    let mut ctx = repl.ctx.write();
    if ctx.session().is_some() {
        let _ = ctx.exit_session(); // fails only without a session
    }
}

/// What the person wants done with a session they leave.
enum Keep {
    Save(Option<String>),
    Drop,
    Stay,
}

async fn keep(repl: &Repl) -> Keep {
    let (name, temporary) = match repl.ctx.read().session() {
        Some(session) => (session.name().to_owned(), session.is_temporary()),
        None => return Keep::Drop,
    };
    let message = if temporary {
        "Save the session?".to_owned()
    } else {
        format!("Save session `{name}`?")
    };
    let question = Question::Confirm {
        message,
        default: !temporary,
    };
    match repl.question(question).await {
        Answer::Yes | Answer::Always if temporary => new_name(repl).await,
        Answer::No => Keep::Drop,
        Answer::Unavailable if temporary => Keep::Drop,
        Answer::Yes | Answer::Always | Answer::Unavailable => Keep::Save(None),
        Answer::Text(_) | Answer::Choices(_) | Answer::Cancelled | Answer::Interrupted => {
            Keep::Stay
        }
    }
}

async fn new_name(repl: &Repl) -> Keep {
    let suggested = repl
        .ctx
        .read()
        .session()
        .map(|session| session.auto_name(chrono::Local::now()));
    let question = Question::Text {
        message: "Name of the session:".to_owned(),
        default: suggested,
    };
    match repl.question(question).await {
        Answer::Text(name) if !name.trim().is_empty() => Keep::Save(Some(name.trim().to_owned())),
        Answer::Text(_) | Answer::Yes | Answer::Always | Answer::Unavailable => Keep::Save(None),
        Answer::No | Answer::Choices(_) | Answer::Cancelled | Answer::Interrupted => Keep::Stay,
    }
}

fn has_name(repl: &Repl) -> bool {
    let ctx = repl.ctx.read();
    ctx.session().is_some_and(|session| !session.is_temporary())
}

/// Saves after an exchange when sessions are kept, so that a sudden end loses at most the running turn.
pub(in crate::repl) fn autosave(repl: &Repl) {
    if repl.ctx.read().session_fate() != SessionFate::Save {
        return;
    }
    let saved = repl.ctx.write().save_session(None);
    match saved {
        Ok(Saved::Written(_)) => {}
        Ok(conflict @ Saved::Conflict { .. }) => say_saved(repl, &conflict),
        Err(error) => repl.ui.error(&error),
    }
}

fn write(repl: &Repl, name: Option<&str>) -> Result<()> {
    let saved = repl.ctx.write().save_session(name)?;
    say_saved(repl, &saved);
    Ok(())
}

fn say_saved(repl: &Repl, saved: &Saved) {
    match saved {
        Saved::Written(path) => repl.ui.dim(&format!("saved {}", path.display())),
        Saved::Conflict { original, copy } => repl.ui.warn(&format!(
            "another coyote changed {} meanwhile: this session goes on in {}",
            original.display(),
            copy.display()
        )),
    }
}

pub(super) fn save(repl: &Repl, name: Option<&str>) -> Result<()> {
    write(repl, name)
}

pub(super) fn empty(repl: &Repl) -> Result<()> {
    repl.ctx.write().empty_session()?;
    autosave(repl);
    Ok(())
}

/// Replaces the transcript by the model's own summary of it. Nothing changes unless there is one.
pub(super) async fn compress(repl: &mut Repl) -> Result<()> {
    let count = repl
        .ctx
        .read()
        .session()
        .map_or(0, |session| session.messages().len());
    if count == 0 {
        return Err(Error::user("the session has no messages to summarise"));
    }
    let Some(summary) = summary::of(repl).await? else {
        repl.ui.dim("interrupted");
        return Ok(());
    };
    repl.ctx.write().replace_messages(summary);
    repl.ui
        .dim(&format!("{} became a summary", plural(count, "message")));
    autosave(repl);
    Ok(())
}

pub(super) async fn delete(repl: &Repl, name: Option<String>) -> Result<()> {
    let paths = repl.ctx.read().paths().clone();
    let saved = paths.session_names();
    let Some(name) = chosen(
        repl,
        name,
        "Delete which session?",
        saved,
        ".delete session NAME",
    )
    .await?
    else {
        return Ok(());
    };
    let active = repl
        .ctx
        .read()
        .session()
        .is_some_and(|session| session.name() == name);
    if active {
        return Err(
            Error::user(format!("session `{name}` is active")).hint("`.exit session` leaves it")
        );
    }
    remove_session(&paths, &name)?;
    repl.ui.dim(&format!("deleted session `{name}`"));
    Ok(())
}

pub(super) fn list(repl: &Repl) {
    let ctx = repl.ctx.read();
    let names = ctx.paths().session_names();
    let active = ctx.session().map(|session| session.name().to_owned());
    drop(ctx);
    if names.is_empty() {
        repl.ui
            .dim("no session is saved; `.session NAME` starts one");
        return;
    }
    let rows: Vec<Vec<String>> = names
        .into_iter()
        .map(|name| {
            let mark = if active.as_ref() == Some(&name) {
                "active"
            } else {
                ""
            };
            vec![name, mark.to_owned()]
        })
        .collect();
    repl.ui.out(&repl.ui.table(&["session", ""], &rows));
}
