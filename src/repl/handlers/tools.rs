//! `.tool`, `.list tools`, `.info tools`: which functions a request offers (`H-35`, `M-33`).

use std::fmt::Write as _;

use crate::config::Why;
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

/// Why every tool and server is in the next request or out of it, and what it offers (`H-35`).
pub(super) fn info(repl: &Repl) {
    let (tools, servers, offered, unknown) = {
        let ctx = repl.ctx.read();
        let offered: Vec<String> = ctx
            .tool_scope()
            .functions
            .declarations()
            .iter()
            .map(|function| function.name.clone())
            .collect();
        (
            ctx.why_tools(),
            ctx.why_servers(),
            offered,
            ctx.selection().unknown,
        )
    };
    let mut text = String::new();
    for (what, whys) in [("tool", tools), ("server", servers)] {
        if whys.is_empty() {
            continue;
        }
        let row = |why: Why| {
            let mark = if why.included { "in" } else { "out" };
            vec![why.name, mark.to_owned(), why.reason]
        };
        let rows: Vec<Vec<String>> = whys.into_iter().map(row).collect();
        text.push_str(&repl.ui.table(&[what, "", "why"], &rows));
        text.push('\n');
    }
    let offered = if offered.is_empty() {
        "none".to_owned()
    } else {
        offered.join(", ")
    };
    let _ = writeln!(text, "{:<10}{offered}", "offered");
    for unknown in &unknown {
        let _ = writeln!(text, "{:<10}{}", "unknown", unknown.message());
    }
    repl.ui.out(&text);
}
