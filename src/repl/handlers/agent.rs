//! `.agent`, `.starter`, `.exit agent`, `.info agent`, `.list agents` (`H-32`).

use std::collections::BTreeMap;

use super::{chat, chosen, session, start_selected};
use crate::config::{Agent, AgentLayer, Input};
use crate::repl::Repl;
use crate::turn::load_agent;
use crate::utils::{Error, Result};

/// Takes on an agent; the session that is active is left, and the agent's own is entered.
pub(super) async fn enter(
    repl: &mut Repl,
    name: Option<String>,
    variables: &BTreeMap<String, String>,
) -> Result<()> {
    let names = repl.ctx.read().paths().agent_names();
    let Some(name) = chosen(repl, name, "Which agent?", names, ".agent NAME").await? else {
        return Ok(());
    };
    let (paths, builtin) = {
        let ctx = repl.ctx.read();
        (ctx.paths().clone(), ctx.variables())
    };
    let (agent, warnings) =
        load_agent(&paths, &name, variables, &builtin, repl.ask.as_ref()).await?;
    session::leave(repl).await?;
    let own_session = agent.session.clone();
    {
        let mut ctx = repl.ctx.write();
        ctx.warn(warnings);
        ctx.set_agent(Some(agent));
    }
    if let Some(own) = own_session {
        session::enter(repl, Some(&own)).await?;
    }
    start_selected(repl);
    greet(repl);
    Ok(())
}

/// Says who is there, and how a conversation may begin.
fn greet(repl: &Repl) {
    let (about, starters) = match repl.ctx.read().agent() {
        Some(agent) => (about(agent), agent.starters.clone()),
        None => return,
    };
    repl.ui.dim(&about);
    for (at, starter) in starters.iter().enumerate() {
        repl.ui.dim(&format!("  .starter {}: {starter}", at + 1));
    }
}

fn about(agent: &AgentLayer) -> String {
    match agent.description.lines().next() {
        Some(first) => format!("agent `{}`: {first}", agent.name),
        None => format!("agent `{}`", agent.name),
    }
}

/// Leaves the agent, and the session that was its own.
pub(super) async fn exit(repl: &mut Repl) -> Result<()> {
    let in_own_session = {
        let ctx = repl.ctx.read();
        let Some(agent) = ctx.agent() else {
            return Err(Error::user("no agent is active"));
        };
        let session = ctx.session().map(crate::config::Session::name);
        session.is_some() && agent.session.as_deref() == session
    };
    if in_own_session {
        session::leave(repl).await?;
    }
    repl.ctx.write().exit_agent()?;
    start_selected(repl);
    Ok(())
}

/// Asks with one of the agent's starters: by number, or the one the person chooses.
pub(super) async fn starter(repl: &mut Repl, number: Option<String>) -> Result<()> {
    let starters = {
        let ctx = repl.ctx.read();
        ctx.agent()
            .map(|agent| agent.starters.clone())
            .unwrap_or_default()
    };
    if starters.is_empty() {
        return Err(Error::user("the agent has no conversation starters"));
    }
    let text = match number {
        Some(number) => {
            let count = starters.len();
            let at = number
                .parse::<usize>()
                .ok()
                .and_then(|at| at.checked_sub(1));
            let Some(text) = at.and_then(|at| starters.into_iter().nth(at)) else {
                return Err(Error::user(format!("there is no starter `{number}`"))
                    .hint(format!("`.starter N` with N between 1 and {count}")));
            };
            Some(text)
        }
        None => chosen(repl, None, "Which starter?", starters, ".starter N").await?,
    };
    match text {
        Some(text) => chat::submit(repl, Input::from_str(&text)).await,
        None => Ok(()),
    }
}

pub(super) fn info(repl: &Repl) -> Result<()> {
    let info = repl.ctx.read().agent_info();
    let info =
        info.ok_or_else(|| Error::user("no agent is active").hint("`.agent NAME` takes one on"))?;
    repl.ui.out(&info.to_text());
    Ok(())
}

pub(super) fn list(repl: &Repl) {
    let (paths, active) = {
        let ctx = repl.ctx.read();
        (
            ctx.paths().clone(),
            ctx.agent().map(|agent| agent.name.clone()),
        )
    };
    let names = paths.agent_names();
    if names.is_empty() {
        repl.ui.dim(&format!(
            "there are no agents; {} is where they go",
            paths
                .agents_dir()
                .join("NAME")
                .join("config.yaml")
                .display()
        ));
        return;
    }
    let rows: Vec<Vec<String>> = names
        .into_iter()
        .map(|name| {
            let about = match Agent::load(&paths, &name) {
                Ok((agent, _)) => agent
                    .description
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
                Err(error) => format!("cannot be used: {error}"),
            };
            let mark = if active.as_ref() == Some(&name) {
                "active"
            } else {
                ""
            };
            vec![name, mark.to_owned(), about]
        })
        .collect();
    repl.ui
        .out(&repl.ui.table(&["agent", "", "description"], &rows));
}
