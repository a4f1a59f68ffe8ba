//! `--info` and `--list-*`: what is configured. Starts nothing and asks nobody.

use serde_json::Value;

use super::plan::Listed;
use crate::config::{RequestContext, Role};
use crate::render::Ui;
use crate::utils::Exit;

/// Prints settings and places, never a secret (`H-10`).
pub(super) fn info(context: &RequestContext, json: bool, ui: &Ui) -> Exit {
    let info = context.info();
    if json {
        ui.out(&format!("{}\n", info.to_json()));
    } else {
        ui.out(&info.to_text());
    }
    Exit::Success
}

/// Prints one name a line, or a JSON array of them. An empty list of models is explained, since a server on this
/// machine may yet be found.
pub(super) fn list(context: &RequestContext, what: Listed, json: bool, ui: &Ui) -> Exit {
    let names: Vec<String> = match what {
        Listed::Models => context.models().iter().map(ToString::to_string).collect(),
        Listed::Roles => Role::names(context.paths()),
        Listed::Sessions => context.paths().session_names(),
        Listed::Macros => context.paths().macro_names(),
        Listed::Agents => context.paths().agent_names(),
        Listed::McpServers => context
            .registry()
            .names()
            .iter()
            .map(ToString::to_string)
            .collect(),
        Listed::Tools => context.functions().tool_names(),
    };
    if json {
        ui.out(&format!("{}\n", Value::from(names)));
    } else {
        if names.is_empty() && matches!(what, Listed::Models) {
            ui.line(
                "no models are configured; a server on this machine is looked for when there is something to ask",
            );
        }
        for name in names {
            ui.out(&format!("{name}\n"));
        }
    }
    Exit::Success
}
