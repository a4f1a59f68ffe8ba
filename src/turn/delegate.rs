//! A delegate's turn (`H-33`): a context of its own, servers of its own, and the same loop as everyone's.
//!
//! What it shows goes to its parent's sink under its name, without its answer; what it asks goes to the person its
//! parent would ask.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::join_all;
use parking_lot::RwLock;

use super::{Deps, run};
use crate::chat::{Answer, Ask, CallId, Notice, NoticeSink, Question};
use crate::config::{Agent, AgentLayer, Input, RequestContext};
use crate::function::{AgentSummary, DelegateRunner, Job, Report};
use crate::mcp::{ConnectedServer, ServerName};
use crate::utils::{AbortToken, Error, Result};

/// Starts the delegates of the agent in `ctx`.
pub(super) struct Delegates {
    pub(super) ctx: Arc<RwLock<RequestContext>>,
    pub(super) deps: Deps,
}

impl DelegateRunner for Delegates {
    fn available(&self) -> Vec<AgentSummary> {
        let ctx = self.ctx.read();
        let Some(agent) = ctx.agent().filter(|agent| agent.delegation.offered()) else {
            return Vec::new();
        };
        let allowed = |name: &String| {
            let only = agent.delegation.agents.as_ref();
            only.is_none_or(|only| only.contains(name))
        };
        ctx.paths()
            .agent_names()
            .into_iter()
            .filter(allowed)
            .map(|name| match Agent::load(ctx.paths(), &name) {
                Ok((agent, _)) => agent.summary(),
                Err(error) => AgentSummary {
                    name,
                    description: format!("cannot be used: {error}"),
                },
            })
            .collect()
    }

    fn run(
        &self,
        job: Job,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<Report, String>> + Send>> {
        let (ctx, deps) = (Arc::clone(&self.ctx), self.deps.clone());
        Box::pin(async move {
            delegate(&ctx, &deps, &job)
                .await
                .map_err(|error| said(&error))
        })
    }
}

async fn delegate(parent: &RwLock<RequestContext>, deps: &Deps, job: &Job) -> Result<Report> {
    let ask: Arc<dyn Ask> = Arc::new(Asking {
        id: job.id.clone(),
        ask: Arc::clone(&deps.ask),
    });
    let sink: Arc<dyn NoticeSink> = Arc::new(Under {
        id: job.id.clone(),
        sink: Arc::clone(&deps.sink),
    });
    let mut ctx = context(parent, &job.agent, ask.as_ref()).await?;
    let mut notes = ctx.take_warnings();
    let (servers, failed) = acquire(&ctx, &job.abort).await;
    ctx.set_own_servers(servers);
    notes.extend(failed);
    for note in &notes {
        sink.notice(Notice::Warning(note.clone()));
    }
    let deps = Deps {
        sink,
        ask,
        abort: job.abort.clone(),
        approve_all: deps.approve_all,
        approvals: Arc::clone(&deps.approvals),
    };
    let input = Input::from_str(&job.prompt);
    let outcome = run(&Arc::new(RwLock::new(ctx)), input, &deps).await?;
    if outcome.interrupted {
        return Err(Error::user("cancelled"));
    }
    Ok(Report {
        text: outcome.text,
        notes,
    })
}

/// The delegate's own context: nothing of what was said, the agent's layer, and its parent's model unless it names
/// one.
async fn context(
    parent: &RwLock<RequestContext>,
    name: &str,
    ask: &dyn Ask,
) -> Result<RequestContext> {
    let (agent, warnings, given) = {
        let ctx = parent.read();
        let (agent, warnings) = Agent::load(ctx.paths(), name)?;
        let given = ctx.agent().map(|agent| agent.values.clone());
        (agent, warnings, given.unwrap_or_default())
    };
    let values = agent_values(&agent, &given, ask).await?;
    let ctx = parent.read();
    let mut layer = agent.into_layer(values, &ctx.variables());
    if let Some(parent) = ctx.agent() {
        layer.delegation.depth = parent.delegation.depth + 1;
        let deepest = parent.delegation.max_depth;
        layer.delegation.max_depth = layer.delegation.max_depth.min(deepest);
    }
    let model = ctx.model().map(|model| model.to_string());
    layer.settings.model = layer.settings.model.or(model);
    let mut delegate = ctx.for_delegate(layer);
    delegate.warn(warnings);
    Ok(delegate)
}

/// Values for all variables of an agent: given, by default, or as the person says.
///
/// # Errors
/// One has none and nobody can be asked, or they declined.
async fn agent_values(
    agent: &Agent,
    given: &BTreeMap<String, String>,
    ask: &dyn Ask,
) -> Result<BTreeMap<String, String>> {
    let (mut values, missing) = agent.values(given);
    for (at, variable) in missing.iter().enumerate() {
        let about = match variable.description.as_str() {
            "" => String::new(),
            about => format!(" ({about})"),
        };
        let question = Question::Text {
            message: format!("{}: value of `{}`{about}", agent.name, variable.name),
            default: None,
        };
        match ask.ask(question).await {
            Answer::Text(text) if !text.trim().is_empty() => {
                values.insert(variable.name.clone(), text.trim().to_owned());
            }
            Answer::Text(_)
            | Answer::Yes
            | Answer::No
            | Answer::Always
            | Answer::Choices(_)
            | Answer::Cancelled
            | Answer::Interrupted
            | Answer::Unavailable => {
                return Err(agent.missing(missing.get(at..).unwrap_or_default()));
            }
        }
    }
    Ok(values)
}

/// The agent's layer with values for its variables, ready to be put into a context, and what its file makes worth a
/// warning.
///
/// # Errors
/// There is no such agent or variable, or a variable has no value and nobody can be asked.
pub async fn load_agent(
    paths: &crate::config::Paths,
    name: &str,
    given: &BTreeMap<String, String>,
    builtin: &crate::config::Variables,
    ask: &dyn Ask,
) -> Result<(AgentLayer, Vec<String>)> {
    let (agent, warnings) = Agent::load(paths, name)?;
    agent.check_given(given)?;
    let values = agent_values(&agent, given, ask).await?;
    Ok((agent.into_layer(values, builtin), warnings))
}

/// The servers the delegate is to see, from the factory everyone shares, all at once; and a sentence about each that
/// cannot be had.
async fn acquire(
    ctx: &RequestContext,
    abort: &AbortToken,
) -> (Vec<Arc<ConnectedServer>>, Vec<String>) {
    let may_call = ctx
        .client_config()
        .is_ok_and(|(_, facts)| ctx.may_call_functions(&facts));
    if !may_call {
        return (Vec::new(), Vec::new());
    }
    let registry = ctx.registry();
    let selected = ctx.selection().servers;
    let acquired = join_all(selected.iter().map(|name: &ServerName| async move {
        match registry.spec(name) {
            Some(spec) => {
                let acquired = registry.factory().acquire(spec, abort).await;
                acquired.map_err(|error| format!("MCP server `{name}` is not available: {error}"))
            }
            None => Err(format!(
                "MCP server `{name}` is not available: its entry cannot be used"
            )),
        }
    }))
    .await;
    let mut servers = Vec::new();
    let mut failed = Vec::new();
    for one in acquired {
        match one {
            Ok(server) => servers.push(server),
            Err(reason) => failed.push(reason),
        }
    }
    (servers, failed)
}

fn said(error: &Error) -> String {
    let lines: Vec<String> = [error.to_string()]
        .into_iter()
        .chain(error.causes())
        .collect();
    lines.join(": ")
}

/// Shows what a delegate does under its name: its calls and what is worth knowing, not its words.
struct Under {
    id: String,
    sink: Arc<dyn NoticeSink>,
}

impl Under {
    fn name(&self, name: &str) -> String {
        format!("{} {name}", self.id)
    }

    /// Providers number calls alike for everyone.
    fn call(&self, id: &CallId) -> CallId {
        CallId(format!("{}/{id}", self.id))
    }
}

impl NoticeSink for Under {
    fn notice(&self, notice: Notice) {
        let notice = match notice {
            Notice::Activity(_)
            | Notice::Text(_)
            | Notice::Verbatim(_)
            | Notice::Reasoning(_)
            | Notice::TextEnd => return,
            Notice::ToolStarted {
                id,
                name,
                arguments,
            } => Notice::ToolStarted {
                id: self.call(&id),
                name: self.name(&name),
                arguments,
            },
            Notice::ToolFinished {
                id,
                name,
                arguments,
                ok,
                elapsed,
                bytes,
            } => Notice::ToolFinished {
                id: self.call(&id),
                name: self.name(&name),
                arguments,
                ok,
                elapsed,
                bytes,
            },
            Notice::Progress { id, progress } => Notice::Progress {
                id: self.call(&id),
                progress,
            },
            Notice::Info(text) => Notice::Info(format!("{}: {text}", self.id)),
            Notice::Warning(text) => Notice::Warning(format!("{}: {text}", self.id)),
        };
        self.sink.notice(notice);
    }
}

/// Asks the person in a delegate's name.
struct Asking {
    id: String,
    ask: Arc<dyn Ask>,
}

impl Ask for Asking {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        let named = |text: String| format!("{}: {text}", self.id);
        self.ask.ask(match question {
            Question::Permission { title, details } => Question::Permission {
                title: named(title),
                details,
            },
            Question::Confirm { message, default } => Question::Confirm {
                message: named(message),
                default,
            },
            Question::Text { message, default } => Question::Text {
                message: named(message),
                default,
            },
            Question::Select { message, options } => Question::Select {
                message: named(message),
                options,
            },
            Question::MultiSelect { message, options } => Question::MultiSelect {
                message: named(message),
                options,
            },
        })
    }
}

#[cfg(test)]
#[path = "delegate_tests.rs"]
mod tests;
