//! `.mcp`, `.info mcp`, and which servers run: those that requests see start in the background and say so only when
//! they fail (`M-13`); a switch waits for the outcome and says it (`H-35`).

use std::fmt::Write as _;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use crate::chat::{Activity, Notice, NoticeSink as _};
use crate::mcp::{Origin, ServerName, ServerState, ServerStatus};
use crate::repl::Repl;
use crate::repl::command::Switch;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::{Error, Result, text};

/// Longer than any start may take by default; a server still connecting then is said to be.
const START_LIMIT: Duration = Duration::from_mins(1);

/// How long a command waits for a server that it needs and that is still connecting (`M-13`).
pub(super) const CONNECTING_LIMIT: Duration = Duration::from_secs(10);

/// Starts what the next request would see, in the background; what fails is said when it fails.
pub(in crate::repl) fn start_selected(repl: &Repl) {
    let servers = repl.ctx.read().selection().servers;
    let registry = repl.ctx.read().registry().clone();
    registry.start(&servers);
    say_changes(repl, &servers);
    watch(repl, servers);
}

/// Says in a dim line when a server announces that its lists changed; the next listing sees the change anyway.
pub(in crate::repl) fn hear_news(repl: &Repl) {
    let mut news = repl.ctx.read().registry().factory().news();
    let (ui, ended) = (repl.ui.clone(), repl.signals.ended().clone());
    tokio::spawn(async move {
        loop {
            let heard = tokio::select! {
                () = ended.cancelled() => return,
                heard = news.recv() => heard,
            };
            match heard {
                Ok(news) => ui.dim(&news.to_string()),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    });
}

/// A role, a session or an agent that came or went never loses or gains a server silently.
fn say_changes(repl: &Repl, servers: &[ServerName]) {
    let Some(before) = repl.seen.lock().replace(servers.to_vec()) else {
        return;
    };
    let gained = servers.iter().filter(|name| !before.contains(name));
    let lost = before.iter().filter(|name| !servers.contains(name));
    let changes: Vec<String> = (gained.map(|name| format!("+{name}")))
        .chain(lost.map(|name| format!("-{name}")))
        .collect();
    if !changes.is_empty() {
        let layer = repl.ctx.read().deciding_servers();
        repl.ui.dim(&format!(
            "MCP servers: {} ({})",
            changes.join(", "),
            layer.as_str()
        ));
    }
}

/// Says, once each, which of `servers` could not be started, as soon as that is known.
fn watch(repl: &Repl, servers: Vec<ServerName>) {
    let registry = repl.ctx.read().registry().clone();
    for name in servers {
        let (registry, reported) = (registry.clone(), repl.reported.clone());
        let (ui, ended) = (repl.ui.clone(), repl.signals.ended().clone());
        tokio::spawn(async move {
            registry
                .wait_ready(std::slice::from_ref(&name), START_LIMIT, &ended)
                .await;
            let failed = registry.status(&name).and_then(|status| failure(&status));
            if let Some(line) = failed.filter(|_| !ended.is_cancelled())
                && reported.lock().insert(line.clone())
            {
                ui.warn(&line);
            }
        });
    }
}

/// What to say about a server that does not run and should.
fn failure(status: &ServerStatus) -> Option<String> {
    let name = &status.name;
    match &status.state {
        ServerState::Failed { reason } | ServerState::Invalid { reason } => Some(format!(
            "MCP server `{name}` is not available: {reason}; `.info mcp {name}` tells more"
        )),
        ServerState::Disabled
        | ServerState::Stopped
        | ServerState::Connecting
        | ServerState::Running => None,
    }
}

/// Makes the running servers those that requests see, waits for the outcome and says what failed.
pub(super) async fn settle(repl: &Repl) {
    let registry = repl.ctx.read().registry().clone();
    let selected = repl.ctx.read().selection().servers;
    *repl.seen.lock() = Some(selected.clone());
    for status in registry.statuses() {
        let runs = matches!(status.state, ServerState::Running | ServerState::Connecting);
        if runs && !selected.contains(&status.name) {
            registry.stop(&status.name).await;
        }
    }
    registry.start(&selected);
    let pending = registry.still_connecting(&selected);
    if !pending.is_empty() {
        let names = pending.iter().map(ToString::to_string).collect();
        repl.ui
            .notice(Notice::Activity(Some(Activity::Connecting(names))));
        let abort = repl.signals.work();
        let late = registry.wait_ready(&pending, START_LIMIT, &abort).await;
        repl.ui.notice(Notice::Activity(None));
        for name in late {
            repl.ui
                .warn(&format!("MCP server `{name}` is still connecting"));
        }
    }
    for status in selected.iter().filter_map(|name| registry.status(name)) {
        if let Some(line) = failure(&status) {
            repl.reported.lock().insert(line.clone());
            repl.ui.warn(&line);
        }
    }
}

pub(super) async fn switch(repl: &Repl, switch: Switch, names: &[String]) -> Result<()> {
    let layer = {
        let mut ctx = repl.ctx.write();
        ctx.toggle_servers(names, switch == Switch::On)?;
        ctx.active_layer()
    };
    settle(repl).await;
    let selected = repl.ctx.read().selection().servers;
    let names: Vec<&str> = selected.iter().map(ServerName::as_str).collect();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    repl.ui
        .dim(&format!("MCP servers: {names} ({})", layer.as_str()));
    Ok(())
}

pub(super) async fn restart(repl: &Repl, name: &str) -> Result<()> {
    let registry = repl.ctx.read().registry().clone();
    let name = known(repl, name)?;
    repl.ui
        .notice(Notice::Activity(Some(Activity::Connecting(vec![
            name.to_string(),
        ]))));
    let abort = repl.signals.work();
    let outcome = tokio::select! {
        biased;
        () = abort.cancelled() => None,
        outcome = registry.restart(&name) => Some(outcome),
    };
    repl.ui.notice(Notice::Activity(None));
    match outcome {
        None => repl.ui.dim("interrupted"),
        Some(outcome) => {
            outcome?;
            repl.reported.lock().clear(); // what fails from here on is news
            repl.ui.dim(&format!("MCP server `{name}` runs"));
        }
    }
    Ok(())
}

fn known(repl: &Repl, name: &str) -> Result<ServerName> {
    let names = repl.ctx.read().registry().names();
    if let Some(found) = names.iter().find(|known| known.as_str() == name) {
        return Ok(found.clone());
    }
    let near = alternatives(&nearest(name, names.iter().map(ServerName::as_str), 3));
    let error = Error::user(format!("no MCP server is called `{name}`"));
    Err(if near.is_empty() {
        error.hint("`.mcp list` shows them")
    } else {
        error.hint(format!("`.mcp list` shows them; {near} is near"))
    })
}

/// All servers, each with how it is doing.
pub(super) fn list(repl: &Repl) {
    let statuses = repl.ctx.read().registry().statuses();
    if statuses.is_empty() {
        let file = repl.ctx.read().paths().mcp_file();
        repl.ui.dim(&format!(
            "no MCP server is configured; {} is where they go",
            file.display()
        ));
        return;
    }
    let selected = repl.ctx.read().selection().servers;
    let rows: Vec<Vec<String>> = statuses
        .iter()
        .map(|status| {
            let on = if selected.contains(&status.name) {
                "on"
            } else {
                "off"
            };
            vec![
                status.name.to_string(),
                on.to_owned(),
                status.state.word().to_owned(),
                status.transport.to_owned(),
                status.revision.clone().unwrap_or_default(),
                features(status),
                remark(status),
            ]
        })
        .collect();
    let headers = [
        "server",
        "",
        "state",
        "transport",
        "revision",
        "features",
        "",
    ];
    repl.ui.out(&repl.ui.table(&headers, &rows));
}

/// The reason of a server that is not available, else its description.
fn remark(status: &ServerStatus) -> String {
    match &status.state {
        ServerState::Failed { reason } | ServerState::Invalid { reason } => {
            text::sanitize_line(reason)
        }
        ServerState::Disabled
        | ServerState::Stopped
        | ServerState::Connecting
        | ServerState::Running => status.description.clone().unwrap_or_default(),
    }
}

fn features(status: &ServerStatus) -> String {
    let Some(capabilities) = &status.capabilities else {
        return String::new();
    };
    [
        ("tools", capabilities.tools),
        ("resources", capabilities.resources),
        ("prompts", capabilities.prompts),
    ]
    .into_iter()
    .filter(|(_, has)| *has)
    .map(|(word, _)| word)
    .collect::<Vec<_>>()
    .join(", ")
}

/// Everything about one server.
pub(super) fn info(repl: &Repl, name: &str) -> Result<()> {
    let name = known(repl, name)?;
    let Some(status) = repl.ctx.read().registry().status(&name) else {
        return Err(Error::internal(format!("nothing is known about `{name}`")));
    };
    let enabled = repl.ctx.read().selection().servers.contains(&name);
    repl.ui.out(&describe(&status, enabled));
    Ok(())
}

fn describe(status: &ServerStatus, enabled: bool) -> String {
    let mut lines = vec![
        ("server", status.name.to_string()),
        ("state", status.state.word().to_owned()),
        ("enabled", if enabled { "yes" } else { "no" }.to_owned()),
        ("transport", status.transport.to_owned()),
        ("from", origin(status.origin).to_owned()),
    ];
    let reason = status.state.reason().map(str::to_owned);
    let optional = [
        ("reason", reason),
        ("revision", status.revision.clone()),
        (
            "features",
            Some(features(status)).filter(|text| !text.is_empty()),
        ),
        ("about", status.description.clone()),
    ];
    for (label, value) in optional {
        lines.extend(value.map(|value| (label, value)));
    }
    lines.extend(status.notes.iter().map(|note| ("note", note.clone())));
    lines.extend(
        status
            .stderr_tail
            .iter()
            .map(|line| ("stderr", line.clone())),
    );
    let mut described = String::new();
    for (label, value) in lines {
        let _ = writeln!(described, "{label:<10} {}", text::sanitize_line(&value));
    }
    described
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::User => "your own mcp.json",
        Origin::Workspace => "the workspace's file",
        Origin::Builtin => "built in",
    }
}
