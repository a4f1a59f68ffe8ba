//! `.list prompts` (`P-10`): what the enabled servers have, asked for now and all at once; a server that cannot say
//! costs a line under the table.

use std::time::Duration;

use futures::future::join_all;

use crate::chat::{Activity, Notice, NoticeSink as _};
use crate::mcp::catalog::{Catalog, CatalogItem, CatalogKind};
use crate::mcp::runtime::McpRuntime;
use crate::mcp::{CallContext, McpError, ServerName, ServerState, prompt};
use crate::repl::Repl;
use crate::utils::abort::unless_aborted;
use crate::utils::fuzzy::alternatives;
use crate::utils::text::sanitize_line;
use crate::utils::{AbortToken, Result};

/// How long servers that are still connecting are waited for: a list is worth a moment, not more.
const MOMENT: Duration = Duration::from_secs(2);
/// Stands behind a name that is not shown as it is, and can therefore not be typed.
const MARK: &str = " (!)";

pub(super) async fn list(repl: &Repl) -> Result<()> {
    let abort = repl.signals.work();
    let (enabled, runtime) = settled(repl, &abort).await;
    let with: Vec<ServerName> = runtime
        .names()
        .iter()
        .map(|(server, _)| server.clone())
        .filter(|server| has_prompts(&runtime, server))
        .collect();
    let listed = catalogs(repl, &runtime, &with, &abort).await;
    if abort.is_cancelled() {
        repl.ui.dim("interrupted");
        return Ok(());
    }
    let mut rows = Vec::new();
    let mut remarks = Vec::new();
    for (server, listing) in listed {
        match listing {
            Ok(Catalog { items, notes }) => {
                rows.extend(items.iter().map(row));
                remarks.extend(notes.iter().map(|note| format!("`{server}`: {note}")));
            }
            Err(error) => remarks.push(format!("`{server}` failed: {error}")),
        }
    }
    remarks.extend(not_running(repl, &enabled, &runtime));
    if rows.is_empty() {
        repl.ui.line(&why_empty(repl, &enabled, &with));
    } else {
        let marked = rows.iter().flatten().any(|cell| cell.ends_with(MARK));
        let headers = ["server", "name", "description", "args"];
        repl.ui.out(&repl.ui.table(&headers, &rows));
        if rows.iter().any(|row| row[3].contains('*')) {
            repl.ui.dim("* is required");
        }
        if marked {
            let mark = MARK.trim();
            repl.ui.dim(&format!(
                "{mark} has characters that are not shown; Tab does not offer it"
            ));
        }
    }
    for remark in remarks {
        repl.ui.dim(&sanitize_line(&remark));
    }
    Ok(())
}

/// What is enabled, and what of it runs once those that connect have had a moment.
async fn settled(repl: &Repl, abort: &AbortToken) -> (Vec<ServerName>, McpRuntime) {
    let (registry, enabled) = {
        let ctx = repl.ctx.read();
        (ctx.registry().clone(), ctx.selection().servers)
    };
    registry.start(&enabled);
    let connecting = registry.still_connecting(&enabled);
    if !connecting.is_empty() {
        let names = connecting.iter().map(ToString::to_string).collect();
        repl.ui
            .notice(Notice::Activity(Some(Activity::Connecting(names))));
        let ready = registry.wait_ready(&connecting, MOMENT, abort);
        let _ = unless_aborted(abort, ready).await;
        repl.ui.notice(Notice::Activity(None));
    }
    (enabled, repl.ctx.read().live_servers())
}

fn has_prompts(runtime: &McpRuntime, server: &ServerName) -> bool {
    runtime
        .server(server)
        .is_some_and(|handle| handle.capabilities().prompts)
}

/// Asks all at once.
async fn catalogs<'s>(
    repl: &Repl,
    runtime: &McpRuntime,
    servers: &'s [ServerName],
    abort: &AbortToken,
) -> Vec<(&'s ServerName, Result<Catalog, McpError>)> {
    if servers.is_empty() {
        return Vec::new();
    }
    let asking = Activity::Calling("prompts".to_owned());
    repl.ui.notice(Notice::Activity(Some(asking)));
    let cx = CallContext::new(abort.clone());
    let listed = join_all(servers.iter().map(|server| {
        let (runtime, cx) = (runtime, &cx);
        async move {
            let kinds = [CatalogKind::Prompt];
            (server, runtime.catalog_items(server, &kinds, cx).await)
        }
    }))
    .await;
    repl.ui.notice(Notice::Activity(None));
    listed
}

fn row(item: &CatalogItem) -> Vec<String> {
    let arguments = item.arguments.as_deref().unwrap_or_default();
    let about = item
        .description
        .lines()
        .find(|line| !line.trim().is_empty());
    let about = about.or(item.title.as_deref()).unwrap_or_default().trim();
    vec![
        marked(item.server.as_str()),
        marked(item.id()),
        sanitize_line(about),
        marked(&prompt::starred(arguments)),
    ]
}

/// A name, with a mark when it is not what is shown.
fn marked(name: &str) -> String {
    let shown = sanitize_line(name);
    if shown == name {
        shown
    } else {
        format!("{shown}{MARK}")
    }
}

/// A line for each enabled server that does not run.
fn not_running(repl: &Repl, enabled: &[ServerName], runtime: &McpRuntime) -> Vec<String> {
    let registry = repl.ctx.read().registry().clone();
    enabled
        .iter()
        .filter(|server| runtime.server(server).is_none())
        .filter_map(|server| registry.status(server))
        .map(|status| {
            let name = &status.name;
            match &status.state {
                ServerState::Failed { reason } => format!("`{name}` failed: {reason}"),
                ServerState::Invalid { reason } => format!("`{name}` is invalid: {reason}"),
                ServerState::Connecting => format!("`{name}` is still connecting"),
                ServerState::Disabled => format!("`{name}` is disabled in its file"),
                ServerState::Stopped | ServerState::Running => {
                    format!("`{name}` is stopped; `.mcp restart {name}` starts it")
                }
            }
        })
        .collect()
}

fn why_empty(repl: &Repl, enabled: &[ServerName], with: &[ServerName]) -> String {
    if repl.ctx.read().registry().names().is_empty() {
        return "no prompts: no MCP server is configured".to_owned();
    }
    if enabled.is_empty() {
        return "no prompts: no MCP server is enabled; `.mcp enable NAME` enables one".to_owned();
    }
    let names = |servers: &[ServerName]| {
        let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
        alternatives(&names).replace(" or ", " and ")
    };
    let why = if with.is_empty() {
        format!("no running server among {} offers any", names(enabled))
    } else {
        format!("{} offered none", names(with))
    };
    sanitize_line(&format!("no prompts: {why}"))
}
