//! Who may do what without being asked: the one place where that is decided, for local tools (`H-43`) and for MCP
//! tool calls (`M-47`).

use serde_json::{Map, Value};

use super::env::DispatchEnv;
use super::error::FunctionError;
use crate::chat::{Activity, Answer, Notice, Question};
use crate::mcp::kept::ToolHints;
use crate::mcp::{CallContext, Confirm, ConnectedServer, Origin, ServerName};
use crate::utils::abort::unless_aborted;
use crate::utils::text;

/// How many lines of arguments a question shows, and how long each may be in bytes.
const DETAIL_LINES: usize = 24;
const DETAIL_WIDTH: usize = 400;

/// What an "always" covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Approval {
    /// Every use of a local tool.
    Local(&'static str),
    /// Every use of one tool of one server.
    Mcp { server: ServerName, tool: String },
}

/// Asks for `approval` unless it was given before. `Ok` means: go ahead.
pub(super) async fn obtain(
    env: &DispatchEnv,
    approval: Approval,
    title: String,
    details: Vec<String>,
) -> Result<(), FunctionError> {
    if env.approve_all || env.session_approvals.has(&approval) {
        return Ok(());
    }
    let asked = async {
        let _one_at_a_time = env.session_approvals.asking.lock().await;
        if env.session_approvals.has(&approval) {
            return Answer::Yes;
        }
        env.sink.notice(Notice::Activity(None));
        env.ask.ask(Question::Permission { title, details }).await
    };
    let goes_on = match &approval {
        Approval::Local(name) => (*name).to_owned(),
        Approval::Mcp { tool, .. } => tool.clone(),
    };
    match unless_aborted(&env.abort, asked).await? {
        answer @ (Answer::Yes | Answer::Always) => {
            if answer == Answer::Always {
                env.session_approvals.grant(approval);
            }
            env.sink
                .notice(Notice::Activity(Some(Activity::Calling(goes_on))));
            Ok(())
        }
        Answer::Unavailable => Err(FunctionError::Refused(
            "not done: this needs the user's approval and there is no terminal to ask on; the user can run \
             coyote with `-y` to approve tools, or use it on a terminal"
                .to_owned(),
        )),
        // Ctrl-C at a question is what it is anywhere in a turn (`H-23`).
        Answer::Interrupted => {
            env.abort.cancel();
            Err(FunctionError::Cancelled)
        }
        Answer::No | Answer::Cancelled | Answer::Text(_) | Answer::Choices(_) => {
            Err(FunctionError::Refused(
                "not done: the user declined; ask what they want instead of trying again".to_owned(),
            ))
        }
    }
}

/// Whether a call of `tool` on `server` is asked for first (`M-47`). Nothing is listed when the answer does not
/// depend on it.
pub(super) async fn mcp_call_asks(
    env: &DispatchEnv,
    server: &ConnectedServer,
    tool: &str,
    cx: &CallContext,
) -> bool {
    if env.approve_all {
        return false;
    }
    let approval = mcp_approval(server.name(), tool);
    if env.session_approvals.has(&approval) {
        return false;
    }
    match server.spec().confirm.unwrap_or(env.mcp_confirm) {
        Confirm::Never => false,
        Confirm::Always => true,
        Confirm::Destructive => {
            let quiet = CallContext::new(cx.abort.clone());
            let hints = env.mcp.tool_hints(server.name(), tool, &quiet).await;
            asks(hints.ok().flatten(), server.spec().origin)
        }
    }
}

/// A tool nobody listed may do anything.
fn asks(hints: Option<ToolHints>, origin: Origin) -> bool {
    let Some(hints) = hints else { return true };
    hints.destructive == Some(true)
        || match origin {
            Origin::Workspace => hints.read_only != Some(true),
            Origin::User | Origin::Builtin => false,
        }
}

/// Asks for a call of `tool` on `server`.
pub(super) async fn obtain_for_mcp(
    env: &DispatchEnv,
    server: &ServerName,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<(), FunctionError> {
    let title = format!(
        "call `{}` on MCP server `{server}`",
        text::bounded(tool, DETAIL_WIDTH)
    );
    obtain(
        env,
        mcp_approval(server, tool),
        title,
        argument_lines(arguments),
    )
    .await
}

fn mcp_approval(server: &ServerName, tool: &str) -> Approval {
    Approval::Mcp {
        server: server.clone(),
        tool: tool.to_owned(),
    }
}

fn argument_lines(arguments: &Map<String, Value>) -> Vec<String> {
    let lines = arguments
        .iter()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect::<Vec<_>>();
    detail_lines(lines.iter().map(String::as_str))
}

/// Lines fit for a question: bounded in number and length, saying what was left out.
pub(super) fn detail_lines<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<String> {
    let mut rest = lines;
    let mut shown: Vec<String> = rest
        .by_ref()
        .take(DETAIL_LINES)
        .map(|line| text::bounded(line, DETAIL_WIDTH).into_owned())
        .collect();
    let left_out = rest.count();
    if left_out > 0 {
        shown.push(format!("… {}", text::plural(left_out, "more line")));
    }
    shown
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
