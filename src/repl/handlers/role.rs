//! `.role`, `.temp-role`, `.exit role`, `.save role`, `.delete role`, `.list roles`.

use super::{chat, chosen, start_selected};
use crate::config::{Input, Role, remove_role};
use crate::repl::Repl;
use crate::utils::{Error, Result};

/// Takes on a role; with a text, only for that.
pub(super) async fn use_role(
    repl: &mut Repl,
    name: Option<String>,
    text: Option<String>,
) -> Result<()> {
    let names = Role::names(repl.ctx.read().paths());
    let Some(name) = chosen(repl, name, "Which role?", names, ".role NAME").await? else {
        return Ok(());
    };
    match text {
        None => {
            repl.ctx.write().use_role(&name)?;
            start_selected(repl);
            Ok(())
        }
        Some(text) => once(repl, &name, &text).await,
    }
}

/// Asks once with a role and takes the former one back, whatever came of it.
async fn once(repl: &mut Repl, name: &str, text: &str) -> Result<()> {
    let former = {
        let mut ctx = repl.ctx.write();
        let former = ctx.role().cloned();
        ctx.use_role(name)?;
        former
    };
    start_selected(repl);
    let outcome = chat::submit(repl, Input::from_str(text)).await;
    repl.ctx.write().restore_role(former);
    outcome
}

pub(super) fn temporary(repl: &Repl, text: &str) -> Result<()> {
    repl.ctx.write().use_temp_role(text)
}

pub(super) fn exit(repl: &Repl) -> Result<()> {
    repl.ctx.write().exit_role()?;
    start_selected(repl);
    Ok(())
}

pub(super) fn save(repl: &Repl, name: Option<&str>) -> Result<()> {
    let file = repl.ctx.write().save_role(name)?;
    repl.ui.dim(&format!("saved {}", file.display()));
    Ok(())
}

pub(super) async fn delete(repl: &Repl, name: Option<String>) -> Result<()> {
    let paths = repl.ctx.read().paths().clone();
    let own = paths.role_names();
    let Some(name) = chosen(repl, name, "Delete which role?", own, ".delete role NAME").await?
    else {
        return Ok(());
    };
    let in_use = repl
        .ctx
        .read()
        .role()
        .is_some_and(|role| role.name() == name);
    if in_use {
        return Err(Error::user(format!("role `{name}` is in use")).hint("`.exit role` leaves it"));
    }
    remove_role(&paths, &name)?;
    repl.ui.dim(&format!("deleted role `{name}`"));
    Ok(())
}

pub(super) fn list(repl: &Repl) {
    let ctx = repl.ctx.read();
    let own = ctx.paths().role_names();
    let active = ctx.role().map(|role| role.name().to_owned());
    let rows: Vec<Vec<String>> = Role::names(ctx.paths())
        .into_iter()
        .map(|name| {
            let origin = if own.contains(&name) {
                "your own"
            } else {
                "built in"
            };
            let mark = if active.as_ref() == Some(&name) {
                "active"
            } else {
                ""
            };
            vec![name, origin.to_owned(), mark.to_owned()]
        })
        .collect();
    drop(ctx);
    repl.ui.out(&repl.ui.table(&["role", "origin", ""], &rows));
}
