//! Runs the calls of one answer and answers each exactly once, in call order (`H-40`, `M-04`).
//!
//! Meta-functions and read-only local tools run concurrently ([`eval_mcp`]), everything that changes something or
//! asks first runs in order ([`eval`]). Both end in [`run_meta`], the one match over [`MetaFunction`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::Value;

use super::env::DispatchEnv;
use super::error::FunctionError;
use super::local::{self, LocalTool};
use super::questions::{self, UserFunction};
use super::supervisor::{self, AgentFunction};
use super::tracker::Tracker;
use super::user_tools::{self, UserTool};
use super::{images, meta, permission};
use crate::chat::{Activity, Notice, ToolCall, ToolOutput, ToolResult};
use crate::mcp::{
    CallContext, McpError, MetaFunction, ServerName, has_mcp_prefix, split_meta_function,
};
use crate::utils::{fuzzy, text};

/// After a Ctrl-C, how long a call may take to wind up (an MCP server is told, a process group is killed) before
/// it is dropped.
const WIND_UP: Duration = Duration::from_millis(80);

/// Longest unknown name an error quotes, in bytes.
const NAME_QUOTED: usize = 100;

/// What a name means.
#[derive(Debug, Clone)]
enum Target<'f> {
    /// A server's function; `server` is `None` when no server of this request is called that.
    Meta {
        function: MetaFunction,
        server: Option<ServerName>,
    },
    /// A tool built in.
    Local(LocalTool),
    /// A program of the person's.
    User(&'f UserTool),
    /// A question of an agent to the person.
    Ask(UserFunction),
    /// Something about an agent's delegates.
    Agent(AgentFunction),
    /// Nothing.
    Unknown,
}

/// Where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// With the others of the batch.
    Concurrent,
    /// After those, one by one.
    InOrder,
}

/// Answers `calls`: one result each, in their order, whatever happens. After a cancellation the calls without an
/// answer get one that says so.
pub async fn dispatch(
    env: &DispatchEnv,
    calls: Vec<ToolCall>,
    tracker: &mut Tracker,
) -> Vec<ToolResult> {
    let mut outputs: Vec<Option<ToolOutput>> = calls
        .iter()
        .map(|call| tracker.observe(call).map(|count| repeated(call, count)))
        .collect();
    let targets: Vec<Target<'_>> = calls.iter().map(|call| resolve(env, call)).collect();
    let lanes = lanes(env, &calls, &targets, &outputs).await;

    let batch: Vec<usize> = (0..calls.len())
        .filter(|at| lanes.get(*at) == Some(&Lane::Concurrent))
        .filter(|at| outputs.get(*at).is_some_and(Option::is_none))
        .collect();
    for (at, output) in eval_mcp(env, &calls, &targets, &batch).await {
        if let Some(slot) = outputs.get_mut(at) {
            *slot = Some(output);
        }
    }
    let mut results = Vec::with_capacity(calls.len());
    for ((call, target), output) in calls.into_iter().zip(&targets).zip(outputs) {
        let output = match output {
            Some(output) => output,
            None => eval(env, &call, target).await,
        };
        results.push(ToolResult { call, output });
    }
    images::limit(&mut results);
    results
}

/// The concurrent batch: all are in flight before the first is answered.
async fn eval_mcp(
    env: &DispatchEnv,
    calls: &[ToolCall],
    targets: &[Target<'_>],
    batch: &[usize],
) -> Vec<(usize, ToolOutput)> {
    join_all(batch.iter().filter_map(|at| {
        let (call, target) = (calls.get(*at)?, targets.get(*at)?);
        Some(async move { (*at, answer(env, call, target).await) })
    }))
    .await
}

/// One call, in order: single calls, calls that change something, calls that ask first.
async fn eval(env: &DispatchEnv, call: &ToolCall, target: &Target<'_>) -> ToolOutput {
    answer(env, call, target).await
}

/// Decides what a name means. What a request declares comes first; a tool of the person's whose name begins like a
/// meta-function's comes before the last resort (`M-02`); any other such name is a failed invoke (`M-04`).
fn resolve<'f>(env: &'f DispatchEnv, call: &ToolCall) -> Target<'f> {
    let functions = &env.functions;
    if let Some(tool) = functions.user.get(&call.name) {
        return Target::User(tool);
    }
    if let Some(tool) = functions.local.get(call.name.as_str()) {
        return Target::Local(*tool);
    }
    // Declared for agents only.
    if functions.declaration(&call.name).is_some() {
        if let Some(function) = UserFunction::named(&call.name) {
            return Target::Ask(function);
        }
        if let Some(function) = AgentFunction::named(&call.name) {
            return Target::Agent(function);
        }
    }
    if let Some((function, server)) = split_meta_function(&call.name) {
        let server = env.mcp.names().server(server).cloned();
        return Target::Meta { function, server };
    }
    if has_mcp_prefix(&call.name) {
        return Target::Meta {
            function: MetaFunction::Invoke,
            server: None,
        };
    }
    Target::Unknown
}

/// Chooses each call's lane. A read-only local tool that follows a change in the same batch waits for it: a model
/// that writes and then reads means the new content.
async fn lanes(
    env: &DispatchEnv,
    calls: &[ToolCall],
    targets: &[Target<'_>],
    outputs: &[Option<ToolOutput>],
) -> Vec<Lane> {
    if calls.len() == 1 {
        return vec![Lane::InOrder];
    }
    let asks = join_all(calls.iter().zip(targets).zip(outputs).map(
        async |((call, target), output)| output.is_none() && asks_first(env, call, target).await,
    ))
    .await;
    let mut changed = false;
    let mut lanes = Vec::with_capacity(calls.len());
    for (target, asks) in targets.iter().zip(asks) {
        let lane = match target {
            Target::Meta { .. } if asks => Lane::InOrder,
            Target::Meta { .. } | Target::Agent(_) | Target::Unknown => Lane::Concurrent,
            Target::Local(tool) if tool.is_read_only() && !changed => Lane::Concurrent,
            Target::Local(_) | Target::User(_) | Target::Ask(_) => Lane::InOrder,
        };
        changed |= match target {
            Target::Local(tool) => !tool.is_read_only(),
            Target::User(_) => true,
            Target::Meta { .. } | Target::Ask(_) | Target::Agent(_) | Target::Unknown => false,
        };
        lanes.push(lane);
    }
    lanes
}

/// Whether a meta-function's call opens a question (`M-47`).
async fn asks_first(env: &DispatchEnv, call: &ToolCall, target: &Target<'_>) -> bool {
    let Target::Meta {
        function: MetaFunction::Invoke,
        server: Some(name),
    } = target
    else {
        return false;
    };
    let (Ok(request), Some(server)) = (
        meta::invoke(&call.name, &call.arguments),
        env.mcp.server(name),
    ) else {
        return false;
    };
    let cx = CallContext::new(env.abort.clone());
    permission::mcp_call_asks(env, server, &request.tool, &cx).await
}

/// Runs one call with its notices; this is where cancellation and bounds are.
async fn answer(env: &DispatchEnv, call: &ToolCall, target: &Target<'_>) -> ToolOutput {
    if env.abort.is_cancelled() {
        return FunctionError::Cancelled.into();
    }
    let arguments = call.arguments.to_text();
    env.sink
        .notice(Notice::Activity(Some(Activity::Calling(call.name.clone()))));
    env.sink.notice(Notice::ToolStarted {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments: arguments.clone(),
    });
    let started = Instant::now();
    let output = match until_wound_up(env, execute(env, call, target)).await {
        Ok(output) => bound(env, target, output),
        Err(error) => bound(env, target, error.into()),
    };
    env.sink.notice(Notice::ToolFinished {
        id: call.id.clone(),
        name: call.name.clone(),
        arguments,
        ok: !output.is_error,
        elapsed: started.elapsed(),
        bytes: output.to_text().len(),
    });
    output
}

/// Waits for `work`; after a cancellation only as long as it needs to wind up.
async fn until_wound_up(
    env: &DispatchEnv,
    work: impl Future<Output = Result<ToolOutput, FunctionError>>,
) -> Result<ToolOutput, FunctionError> {
    tokio::pin!(work);
    tokio::select! {
        biased;
        output = &mut work => output,
        () = env.abort.cancelled() => tokio::time::timeout(WIND_UP, work)
            .await
            .unwrap_or(Err(FunctionError::Cancelled)),
    }
}

async fn execute(
    env: &DispatchEnv,
    call: &ToolCall,
    target: &Target<'_>,
) -> Result<ToolOutput, FunctionError> {
    match target {
        Target::Meta {
            function,
            server: Some(server),
        } => run_meta(env, *function, server, call).await,
        Target::Meta {
            function,
            server: None,
        } => Err(unknown_server(env, *function, call)),
        Target::Local(tool) => local::run(*tool, env, &call.arguments)
            .await
            .map(ToolOutput::ok),
        Target::User(tool) => user_tools::run(tool, env, &call.arguments)
            .await
            .map(ToolOutput::ok),
        Target::Ask(function) => questions::run(*function, env, &call.arguments).await,
        Target::Agent(function) => supervisor::run(*function, env, &call.arguments).await,
        Target::Unknown => Err(unknown_function(env, &call.name)),
    }
}

/// The one place where a meta-function becomes a request to a server.
async fn run_meta(
    env: &DispatchEnv,
    function: MetaFunction,
    server: &ServerName,
    call: &ToolCall,
) -> Result<ToolOutput, FunctionError> {
    let cx = call_context(env, call);
    let (name, passed) = (call.name.as_str(), &call.arguments);
    let answered = match function {
        MetaFunction::Invoke => {
            let request = meta::invoke(name, passed)?;
            if let Some(handle) = env.mcp.server(server)
                && permission::mcp_call_asks(env, handle, &request.tool, &cx).await
            {
                permission::obtain_for_mcp(env, server, &request.tool, &request.arguments).await?;
            }
            env.mcp.invoke(server, request, &cx).await
        }
        MetaFunction::Search => {
            let request = meta::search(name, passed)?;
            env.mcp.search(server, request, &cx).await
        }
        MetaFunction::Describe => {
            let request = meta::describe(name, passed)?;
            env.mcp.describe(server, request, &cx).await
        }
        MetaFunction::Read => {
            let request = meta::read(name, passed)?;
            env.mcp.read(server, request, &cx).await
        }
        MetaFunction::Prompt => {
            let request = meta::prompt(name, passed)?;
            env.mcp.prompt(server, request, &cx).await
        }
    };
    answered.map_err(|error| match error {
        McpError::Cancelled => FunctionError::Cancelled,
        other => FunctionError::failed(other),
    })
}

fn call_context(env: &DispatchEnv, call: &ToolCall) -> CallContext {
    let (sink, id) = (Arc::clone(&env.sink), call.id.clone());
    CallContext {
        progress: Some(Arc::new(move |progress| {
            sink.notice(Notice::Progress {
                id: id.clone(),
                progress,
            });
        })),
        max_result: env.limits.max_tool_result_chars,
        ..CallContext::new(env.abort.clone())
    }
}

fn repeated(call: &ToolCall, count: usize) -> ToolOutput {
    ToolOutput::error(format!(
        "not executed: this is the {count}th identical call of `{}` in a row and its answer would be the same; use \
         the answers you have, or call it with other arguments",
        quoted(&call.name)
    )
    .replace("3th", "3rd"))
}

fn unknown_function(env: &DispatchEnv, name: &str) -> FunctionError {
    let known = env.functions.declarations();
    let near = fuzzy::nearest(name, known.iter().map(|known| known.name.as_str()), 3);
    FunctionError::Unknown(with_nearest(
        &format!("there is no function `{}`", quoted(name)),
        &near,
        "call one of the functions you were given",
    ))
}

/// The failed invoke of `M-04`: a name that no server of this request has.
fn unknown_server(env: &DispatchEnv, function: MetaFunction, call: &ToolCall) -> FunctionError {
    let known: Vec<&str> = env
        .functions
        .declarations()
        .iter()
        .map(|known| known.name.as_str())
        .filter(|name| has_mcp_prefix(name))
        .collect();
    let mut near = fuzzy::nearest(&call.name, known.iter().copied(), 3);
    if near.is_empty() {
        // The server's name may be right and the verb invented.
        let own = call.name.rsplit('_').next().filter(|own| !own.is_empty());
        let same_server = |name: &&str| own.is_some_and(|own| name.ends_with(own));
        near = known.into_iter().filter(same_server).take(5).collect();
    }
    let verb = match function {
        MetaFunction::Invoke => "call a tool",
        MetaFunction::Search => "search",
        MetaFunction::Describe => "describe an item",
        MetaFunction::Read => "read a resource",
        MetaFunction::Prompt => "render a prompt",
    };
    FunctionError::Unknown(with_nearest(
        &format!(
            "cannot {verb}: no connected MCP server belongs to the function `{}`",
            quoted(&call.name)
        ),
        &near,
        "call one of the functions you were given",
    ))
}

fn with_nearest(problem: &str, near: &[&str], otherwise: &str) -> String {
    if near.is_empty() {
        format!("{problem}; {otherwise}")
    } else {
        format!("{problem}; did you mean {}?", fuzzy::alternatives(near))
    }
}

fn quoted(name: &str) -> std::borrow::Cow<'_, str> {
    text::bounded(name, NAME_QUOTED)
}

/// Applies `max_tool_result_chars` (`H-41`). A meta-function's success has obeyed it already and stays whole JSON.
fn bound(env: &DispatchEnv, target: &Target<'_>, output: ToolOutput) -> ToolOutput {
    let Some(limit) = env.limits.max_tool_result_chars else {
        return output;
    };
    match target {
        Target::Meta { .. } if !output.is_error => output,
        Target::Meta { .. }
        | Target::Local(_)
        | Target::User(_)
        | Target::Ask(_)
        | Target::Agent(_)
        | Target::Unknown => cut_output(output, limit),
    }
}

fn cut_output(mut output: ToolOutput, limit: usize) -> ToolOutput {
    output.value = match output.value {
        Value::String(text) => Value::String(cut(text, limit)),
        Value::Object(mut map) if output.is_error => {
            if let Some(Value::String(message)) = map.get_mut("tool_call_error") {
                *message = cut(std::mem::take(message), limit);
            }
            Value::Object(map)
        }
        other => other,
    };
    output
}

/// The first `limit` characters; when there is room, the last of them say how much is missing.
fn cut(text: String, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else {
        return text;
    };
    let total = text.chars().count();
    let note = format!("\n[cut to {limit} of {total} characters]");
    let room = limit.saturating_sub(note.chars().count());
    if room == 0 || room < limit / 2 {
        return text::prefix(&text, end).to_owned();
    }
    let end = text.char_indices().nth(room).map_or(end, |(at, _)| at);
    format!("{}{note}", text::prefix(&text, end))
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "dispatch_mcp_tests.rs"]
mod mcp_tests;
