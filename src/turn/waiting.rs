//! Waiting for MCP servers that are still connecting: not long, naming them, and never in the way of a Ctrl-C
//! (`M-13`).

use std::time::Duration;

use parking_lot::RwLock;

use super::Deps;
use crate::chat::{Activity, Notice};
use crate::config::RequestContext;
use crate::utils::abort::{Aborted, unless_aborted};
use crate::utils::fuzzy;

/// How long a turn waits in all.
pub(super) const LIMIT: Duration = Duration::from_secs(10);

/// Starts the servers the request would see and waits for those that are connecting. One that is not ready in time
/// is left out, which is said; the next request looks again.
pub(super) async fn for_servers(
    ctx: &RwLock<RequestContext>,
    deps: &Deps,
    limit: Duration,
) -> Result<(), Aborted> {
    let (registry, servers) = {
        let ctx = ctx.read();
        let may_call = match ctx.client_config() {
            Ok((_, facts)) => ctx.may_call_functions(&facts),
            Err(_) => ctx.app().function_calling_support,
        };
        if !may_call || ctx.owns_servers() {
            return Ok(());
        }
        (
            std::sync::Arc::clone(ctx.registry()),
            ctx.selection().servers,
        )
    };
    registry.start(&servers);
    let connecting = registry.still_connecting(&servers);
    if connecting.is_empty() {
        return Ok(());
    }
    let names = connecting.iter().map(ToString::to_string).collect();
    deps.sink
        .notice(Notice::Activity(Some(Activity::Connecting(names))));
    let waited = registry.wait_ready(&servers, limit, &deps.abort);
    let late = unless_aborted(&deps.abort, waited).await;
    deps.sink.notice(Notice::Activity(None));
    if deps.abort.is_cancelled() {
        return Err(Aborted);
    }
    let late = late?;
    if !late.is_empty() {
        let names: Vec<&str> = late.iter().map(crate::mcp::ServerName::as_str).collect();
        let verb = if late.len() == 1 { "is" } else { "are" };
        deps.sink.notice(Notice::Info(format!(
            "{} {verb} still connecting and left out of this request",
            fuzzy::alternatives(&names).replace(" or ", " and ")
        )));
    }
    Ok(())
}
