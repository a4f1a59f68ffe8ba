//! `.prompt`: asking with a prompt of an MCP server (`P-01`..`P-07`).
//!
//! A prompt's text is the server's, so it goes where typed text goes *after* it was understood: [`Input::from_str`] and
//! the turn. Nothing here looks at what it begins with, and nothing here may name what does (`tests/architecture.rs`).

use crate::chat::{Activity, Answer, Notice, NoticeSink as _, Question};
use crate::config::Input;
use crate::mcp::prompt::{self, ArgumentError};
use crate::mcp::runtime::McpRuntime;
use crate::mcp::{
    CallContext, McpError, PromptArgument, ServerName, ServerState, ServerStatus, flatten,
};
use crate::repl::Repl;
use crate::repl::command::PromptCall;
use crate::repl::table;
use crate::utils::abort::unless_aborted;
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::text::{bounded, plural, sanitize_line};
use crate::utils::{AbortToken, Error, Result, words};

use super::mcp::CONNECTING_LIMIT;

/// Longest question for an argument, in bytes.
const QUESTION_BYTES: usize = 400;

/// The values of a prompt's arguments.
type Pairs = Vec<(String, String)>;

/// Asks with a prompt. Ctrl-C ends looking it up and getting it, Esc the questions; nothing is sent then.
pub(super) async fn run(repl: &mut Repl, call: PromptCall) -> Result<()> {
    let abort = repl.signals.work();
    match obtain(repl, &call, &abort).await {
        Ok(Some(block)) => send(repl, &call, &block).await,
        Ok(None) => {
            repl.ui.dim("nothing was sent");
            Ok(())
        }
        Err(_) if abort.is_cancelled() => {
            repl.ui.dim("interrupted; nothing was sent");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The prompt, filled in; `None` when the person did not answer a question.
async fn obtain(
    repl: &Repl,
    call: &PromptCall,
    abort: &AbortToken,
) -> Result<Option<flatten::FlatPrompt>> {
    let (runtime, server) = server(repl, &call.server, abort).await?;
    let cx = CallContext::new(abort.clone());
    let declared = waiting(repl, call, async {
        runtime.declared_prompt(&server, &call.name, &cx).await
    });
    let declared = declared
        .await
        .map_err(|error| Error::from(error).hint("`.list prompts` shows what there is"))?;
    let declared = declared.arguments.unwrap_or_default();
    let given = given(call, &declared)?;
    let Some(given) = complete(repl, &declared, given).await? else {
        return Ok(None);
    };
    let answer = waiting(repl, call, async {
        runtime.get_prompt(&server, &call.name, &given, &cx).await
    });
    Ok(Some(answer.await?.block?))
}

/// Shows that the server is being asked.
async fn waiting<T>(repl: &Repl, call: &PromptCall, asking: impl Future<Output = T>) -> T {
    let what = Activity::Calling(format!("{} {}", call.server, call.name));
    repl.ui.notice(Notice::Activity(Some(what)));
    let answer = asking.await;
    repl.ui.notice(Notice::Activity(None));
    answer
}

async fn send(repl: &mut Repl, call: &PromptCall, block: &flatten::FlatPrompt) -> Result<()> {
    let cut = if block.is_cut() { ", cut" } else { "" };
    repl.ui.dim(&sanitize_line(&format!(
        "prompt `{}` of `{}`: {}, {}{cut}",
        call.name,
        call.server,
        plural(block.messages, "message"),
        plural(block.text.len(), "byte"),
    )));
    if repl.ctx.read().app().dry_run {
        repl.ui.out(&format!("{}\n", block.text));
        return Ok(());
    }
    super::chat::submit(repl, Input::from_str(&block.text)).await
}

/// The values that were typed.
fn given(call: &PromptCall, declared: &[PromptArgument]) -> Result<Pairs> {
    let words = call
        .words
        .as_ref()
        .map_err(|error| misuse(error, declared))?;
    let given = prompt::pairs(words).map_err(|error| misuse(&error, declared))?;
    prompt::check_declared(declared, &given).map_err(|error| misuse(&error, declared))?;
    Ok(given)
}

/// An error with how the command is used and what the prompt takes (`P-02`).
fn misuse(error: &dyn std::error::Error, declared: &[PromptArgument]) -> Error {
    let usage = table::find(".prompt").map_or(".prompt", |spec| spec.usage);
    Error::user(error)
        .hint(format!("`{usage}` is how it is used"))
        .hint(prompt::takes(declared))
}

/// Asks for the required values that are missing, one by one; `None` when the person does not want to.
async fn complete(
    repl: &Repl,
    declared: &[PromptArgument],
    mut given: Pairs,
) -> Result<Option<Pairs>> {
    let missing: Vec<&PromptArgument> = prompt::missing(declared, &given);
    for argument in missing {
        let question = Question::Text {
            message: question(argument),
            default: None,
        };
        match repl.question(question).await {
            Answer::Text(value) => given.push((argument.name.clone(), value)),
            Answer::Unavailable => {
                let wrong = prompt::check_required(declared, &given);
                let nobody = || ArgumentError::Missing(vec![argument.name.clone()]);
                return Err(misuse(&wrong.err().unwrap_or_else(nobody), declared));
            }
            Answer::Cancelled
            | Answer::Interrupted
            | Answer::Yes
            | Answer::No
            | Answer::Always
            | Answer::Choices(_) => {
                return Ok(None);
            }
        }
    }
    Ok(Some(given))
}

fn question(argument: &PromptArgument) -> String {
    let description = argument.description.as_deref().unwrap_or_default().trim();
    let question = if description.is_empty() {
        format!("{}:", argument.name)
    } else {
        format!("{} ({description}):", argument.name)
    };
    sanitize_line(&bounded(&question, QUESTION_BYTES))
}

/// The running server of that name, in what the next request would see.
async fn server(repl: &Repl, name: &str, abort: &AbortToken) -> Result<(McpRuntime, ServerName)> {
    if let Some(found) = live(repl, name) {
        return Ok(found);
    }
    let (registry, enabled) = {
        let ctx = repl.ctx.read();
        (ctx.registry().clone(), ctx.selection().servers)
    };
    let Some(server) = enabled.iter().find(|enabled| enabled.as_str() == name) else {
        let configured = registry.statuses();
        return Err(not_enabled(repl, name, &configured));
    };
    let server = std::slice::from_ref(server);
    registry.start(server);
    if !registry.still_connecting(server).is_empty() {
        let connecting = Activity::Connecting(vec![name.to_owned()]);
        repl.ui.notice(Notice::Activity(Some(connecting)));
        let ready = registry.wait_ready(server, CONNECTING_LIMIT, abort);
        let waited = unless_aborted(abort, ready).await;
        repl.ui.notice(Notice::Activity(None));
        waited.map_err(|_| McpError::Cancelled)?;
    }
    live(repl, name).ok_or_else(|| {
        let status = server.first().and_then(|server| registry.status(server));
        not_running(name, status.as_ref())
    })
}

fn live(repl: &Repl, name: &str) -> Option<(McpRuntime, ServerName)> {
    let runtime = repl.ctx.read().live_servers();
    let found = runtime
        .names()
        .iter()
        .map(|(server, _)| server)
        .find(|server| server.as_str() == name)?;
    let found = found.clone();
    Some((runtime, found))
}

fn not_enabled(repl: &Repl, name: &str, configured: &[ServerStatus]) -> Error {
    let status = configured.iter().find(|known| known.name.as_str() == name);
    match status.map(|status| &status.state) {
        None => unknown(name, &with_prompts(repl)),
        Some(ServerState::Disabled | ServerState::Invalid { .. }) => not_running(name, status),
        Some(
            ServerState::Stopped
            | ServerState::Connecting
            | ServerState::Running
            | ServerState::Failed { .. },
        ) => Error::user(format!("MCP server `{name}` is not enabled here"))
            .hint(format!("`.mcp enable {}` enables it", words::quote(name))),
    }
}

/// `with` are the servers that could have been meant: they have prompts.
fn unknown(name: &str, with: &[String]) -> Error {
    let with: Vec<&str> = with.iter().map(String::as_str).collect();
    let error = Error::user(format!("no MCP server is called `{name}`"));
    if with.is_empty() {
        return error.hint("`.mcp list` shows the servers; none that runs here has prompts");
    }
    let verb = if with.len() == 1 { "has" } else { "have" };
    let names = alternatives(&with).replace(" or ", " and ");
    let error = error.hint(format!(
        "`.list prompts` shows more: {names} {verb} prompts"
    ));
    match nearest(name, with, 1).first() {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// The enabled, running servers that have prompts.
fn with_prompts(repl: &Repl) -> Vec<String> {
    let runtime = repl.ctx.read().live_servers();
    let has = |server: &ServerName| {
        runtime
            .server(server)
            .is_some_and(|handle| handle.capabilities().prompts)
    };
    runtime
        .names()
        .iter()
        .map(|(server, _)| server)
        .filter(|server| has(server))
        .map(ToString::to_string)
        .collect()
}

fn not_running(name: &str, status: Option<&ServerStatus>) -> Error {
    let error = |what: &str| Error::mcp(format!("MCP server `{name}` {what}"));
    let restart = format!("`.mcp restart {}` starts it anew", words::quote(name));
    match status.map(|status| &status.state) {
        Some(ServerState::Failed { reason } | ServerState::Invalid { reason }) => {
            error(&format!("is not available: {reason}"))
                .hint(restart)
                .hint(format!("`.info mcp {}` tells more", words::quote(name)))
        }
        Some(ServerState::Connecting) => {
            error("is still connecting").hint("`.mcp list` shows when it runs; then try again")
        }
        Some(ServerState::Disabled) => {
            error("is disabled in its file").hint("edit its `disabled` in `mcp.json`")
        }
        Some(ServerState::Stopped | ServerState::Running) | None => {
            error("is not running").hint(restart)
        }
    }
}
