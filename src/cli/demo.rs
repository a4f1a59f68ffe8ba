//! `coyote demo` (`H-51`): without a terminal the tour, on one the REPL with the demo's server. The person's
//! configuration is read for a model and for nothing else, and never written.

use std::sync::Arc;

use parking_lot::RwLock;

use super::boot::Machine;
use super::plan::Setting;
use super::{chat, tour};
use crate::chat::NoticeSink;
use crate::config::{self, AppConfig, Input, RequestContext};
use crate::mcp::{McpFactory, McpRegistry, ServerSpec};
use crate::utils::{AbortToken, Error, Exit, Result};

/// What the model is asked at the end of the tour.
const QUESTION: &str = "There is an MCP server called `demo`. Find its guide, read how coyote keeps pictures out of \
                        your context, and tell me in two sentences.";

/// Runs it.
pub(super) async fn run(
    machine: &Machine,
    model: Option<&str>,
    abort: &AbortToken,
) -> Result<Exit> {
    let program = std::env::current_exe()?;
    let spec = tour::server(&program, None)?;
    if machine.stdin_is_terminal && machine.ui.stdout_is_terminal() {
        return repl(machine, spec, model).await;
    }
    let ui = &machine.ui;
    let say = |line: &str| ui.out(line);
    tour::tour(spec.clone(), &machine.paths.spill_dir(), abort, &say).await?;
    if let Some(model) = model {
        // What a model makes of it says nothing about coyote: it is shown and does not count.
        match ask(machine, spec, model, abort).await {
            Ok(()) => ui.out("✓ model: answered\n"),
            Err(error) => {
                ui.out(&format!("✗ model: {error} (this does not count)\n"));
                ui.error(&error);
            }
        }
    }
    Ok(Exit::Success)
}

/// One turn in which the model may use the demo's server.
async fn ask(machine: &Machine, spec: ServerSpec, model: &str, abort: &AbortToken) -> Result<()> {
    let context = Arc::new(RwLock::new(context(machine, spec, Some(model))?));
    chat::start_servers(&context);
    let sink = Arc::clone(&machine.ui) as Arc<dyn NoticeSink>;
    machine.ui.out(&format!("… model: {QUESTION}\n"));
    let outcome = chat::ask(
        machine,
        &context,
        Input::from_str(QUESTION),
        sink,
        false,
        abort,
    )
    .await?;
    if outcome.text.trim().is_empty() {
        return Err(Error::provider("the model said nothing"));
    }
    Ok(())
}

async fn repl(machine: &Machine, spec: ServerSpec, model: Option<&str>) -> Result<Exit> {
    let mut context = context(machine, spec, model)?;
    let mut hints = vec![
        "the server `demo` is built in: everything below works without a key".to_owned(),
        "`.mcp list` and `.info mcp demo` show it, `.list tools` what is local".to_owned(),
        "`.list prompts` shows its prompts, `.prompt demo <Tab>` asks with one".to_owned(),
        "`What is in demo://guide?` lets a model search and read it".to_owned(),
        "`coyote mcp --help` looks at your own servers the same way".to_owned(),
    ];
    if model.is_none() && context.model().is_none() {
        context.apply(config::Setting::DryRun(Some(true)));
        hints.push(
            "no model is configured: requests are shown instead of sent (`coyote demo -m client:model`)"
                .to_owned(),
        );
    }
    chat::open_repl(machine, context, None, false, hints).await
}

/// A context with the demo's server alone, and the person's models. A configuration that cannot be read counts as
/// none, with a warning.
fn context(machine: &Machine, spec: ServerSpec, model: Option<&str>) -> Result<RequestContext> {
    let file = machine.paths.env_file();
    let env = machine.env.clone().with_file(&file);
    let env = env.unwrap_or_else(|error| {
        machine.ui.warn(&error.to_string());
        machine.env.clone()
    });
    let mut app = match AppConfig::load(&machine.paths, &env) {
        Ok((app, _)) => app,
        Err(error) => {
            machine.ui.warn(&error.to_string());
            AppConfig::parse("", &machine.paths.config_file(), &env)?.0
        }
    };
    app.mcp_server_support = true;
    app.function_calling_support = true;
    app.enabled_mcp_servers = None;
    app.save_session = Some(false);
    let registry = McpRegistry::new(tour::only(spec), McpFactory::new());
    let setting = Setting {
        model: model.map(str::to_owned),
        ..Setting::default()
    };
    machine.context_of(env, app, registry, None, &setting)
}
