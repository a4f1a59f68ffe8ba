//! `.tool`, `.list tools`, `.info tools`: which functions a request offers (`H-35`, `M-33`).

use std::fmt::Write as _;

use crate::config::{Layer, LayerSettings, RequestContext};
use crate::mcp::ServerName;
use crate::repl::Repl;
use crate::repl::command::Switch;
use crate::utils::Result;
use crate::utils::text::plural;

pub(super) fn switch(repl: &Repl, switch: Switch, names: &[String]) -> Result<()> {
    let enable = switch == Switch::On;
    let (layer, enabled) = {
        let mut ctx = repl.ctx.write();
        ctx.toggle_tools(names, enable)?;
        (ctx.active_layer(), ctx.selection().tools.len())
    };
    let count = plural(enabled, "tool");
    repl.ui
        .dim(&format!("{count} enabled ({})", layer.as_str()));
    Ok(())
}

/// Every local tool; never a meta-function of a server.
pub(super) fn list(repl: &Repl) {
    let ctx = repl.ctx.read();
    let selected = ctx.selection().tools;
    let rows: Vec<Vec<String>> = ctx
        .functions()
        .declarations()
        .iter()
        .map(|tool| {
            let on = if selected.contains(&tool.name) {
                "on"
            } else {
                "off"
            };
            let first = tool.description.lines().next().unwrap_or_default();
            vec![tool.name.clone(), on.to_owned(), first.to_owned()]
        })
        .collect();
    drop(ctx);
    repl.ui
        .out(&repl.ui.table(&["tool", "", "description"], &rows));
}

/// What the next request offers, and which layer decided so.
pub(super) fn info(repl: &Repl) {
    let mut text = String::new();
    {
        let ctx = repl.ctx.read();
        let selection = ctx.selection();
        let scope = ctx.tool_scope();
        let names = |names: Vec<&str>| {
            if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            }
        };
        let tools = names(selection.tools.iter().map(String::as_str).collect());
        let servers = names(selection.servers.iter().map(ServerName::as_str).collect());
        let offered: Vec<&str> = scope
            .functions
            .declarations()
            .iter()
            .map(|function| function.name.as_str())
            .collect();
        let rows = [
            (
                "tools",
                tools,
                decides(&ctx, |settings| settings.enabled_tools.is_some()),
            ),
            (
                "servers",
                servers,
                decides(&ctx, |settings| settings.enabled_mcp_servers.is_some()),
            ),
        ];
        for (what, names, layer) in rows {
            let _ = writeln!(text, "{what:<10}{names}  ({})", layer.as_str());
        }
        let _ = writeln!(text, "{:<10}{}", "offered", names(offered));
        for unknown in &selection.unknown {
            let _ = writeln!(text, "{:<10}{}", "unknown", unknown.message());
        }
    }
    repl.ui.out(&text);
}

/// The most specific layer that says something; where none does, the global one has its say or its default.
fn decides(ctx: &RequestContext, says: fn(&LayerSettings) -> bool) -> Layer {
    let layers = [
        (
            Layer::Session,
            ctx.session().map(|session| &session.settings),
        ),
        (Layer::Agent, ctx.agent().map(|agent| &agent.settings)),
        (Layer::Role, ctx.role().map(|role| &role.settings)),
    ];
    layers
        .into_iter()
        .find(|(_, settings)| settings.is_some_and(says))
        .map_or(Layer::Global, |(layer, _)| layer)
}
