//! One turn, for one-shot, REPL and delegates alike: what the person said goes to the model, what the model calls is
//! run, what came of it goes back, until the model is done (`H-40`).
//!
//! Here effects are performed; which ones, and in what order, is decided by the pure machine in [`state`]. Speaks
//! to the person through [`NoticeSink`] and [`Ask`] only. `.continue` and `.regenerate` are turns whose
//! [`Input`] the [`RequestContext`] makes.

mod delegate;
mod preview;
pub mod state;
mod waiting;

pub use delegate::load_agent;

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::chat::{Ask, NoticeSink, ToolCall, Usage};
use crate::client::{self, Client, ClientError, EventStream};
use crate::config::{Input, RequestContext, Saved, ToolScope};
use crate::function::{Approvals, DispatchEnv, Supervisor, Tracker, dispatch};
use crate::utils::abort::unless_aborted;
use crate::utils::{AbortToken, Error, Result};
use state::{Effect, Ending, Signal, Turn};

/// What a turn needs from whoever runs it.
#[derive(Clone)]
pub struct Deps {
    /// Where notices go, the answer among them.
    pub sink: Arc<dyn NoticeSink>,
    /// Who is asked for permission.
    pub ask: Arc<dyn Ask>,
    /// Ctrl-C. A token for this turn alone.
    pub abort: AbortToken,
    /// `-y`.
    pub approve_all: bool,
    /// What was approved for the whole run: one for all turns.
    pub approvals: Arc<Approvals>,
}

/// How a turn went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The last answer; when interrupted, as far as it got.
    pub text: String,
    /// The person interrupted it (`H-23`).
    pub interrupted: bool,
    /// What all its requests cost together, as far as the provider said.
    pub usage: Option<Usage>,
    /// How many requests it took; none for a dry run.
    pub rounds: u32,
}

/// Runs one turn and records it. Waits for MCP servers that are being connected, but not long (`M-13`).
///
/// # Errors
/// There is no model, nothing was asked, or the provider failed. What was said until then is recorded; the context
/// stays usable.
pub async fn run(ctx: &Arc<RwLock<RequestContext>>, input: Input, deps: &Deps) -> Result<Outcome> {
    if ctx.read().app().dry_run {
        return preview::run(ctx, &input, deps).await;
    }
    find_model(ctx, deps).await;
    let client = client(ctx)?;
    ctx.write().begin(&input)?;
    if waiting::for_servers(ctx, deps, waiting::LIMIT)
        .await
        .is_err()
    {
        ctx.write().abandon();
        return Ok(interrupted());
    }
    let mut driver = Driver {
        ctx,
        input: &input,
        deps,
        client,
        turn: Turn::new(ctx.read().app().max_rounds),
        tracker: Tracker::default(),
        scope: ToolScope::default(),
        supervisor: supervisor(ctx, deps),
        stream: None,
        recorded: 0,
        failure: None,
    };
    let ending = driver.drive().await;
    if let Some(supervisor) = driver.supervisor.take() {
        end_delegates(&supervisor, deps).await;
    }
    let (turn, failure) = (driver.turn, driver.failure);
    keep(ctx, deps);
    match (ending, failure) {
        (Ending::Failed, Some(error)) => Err(error),
        (Ending::Failed, None) => Err(Error::internal("the turn failed without a reason")),
        (ending, _) => Ok(Outcome {
            text: turn.answer().to_owned(),
            interrupted: ending == Ending::Interrupted,
            usage: turn.usage(),
            rounds: turn.rounds(),
        }),
    }
}

/// Who runs the delegates of this turn, when the agent in force may have some.
fn supervisor(ctx: &Arc<RwLock<RequestContext>>, deps: &Deps) -> Option<Arc<Supervisor>> {
    let delegation = ctx.read().agent()?.delegation.clone();
    if !delegation.offered() {
        return None;
    }
    let runner = Arc::new(delegate::Delegates {
        ctx: Arc::clone(ctx),
        deps: deps.clone(),
    });
    Some(Supervisor::new(runner, delegation.limits(), &deps.abort))
}

/// Delegates end with their parent.
async fn end_delegates(supervisor: &Supervisor, deps: &Deps) {
    let unfinished = supervisor.end().await;
    if !unfinished.is_empty() && !deps.abort.is_cancelled() {
        deps.sink.notice(crate::chat::Notice::Info(format!(
            "ended with the turn, before they were done: {}",
            unfinished.join(", ")
        )));
    }
}

fn interrupted() -> Outcome {
    Outcome {
        text: String::new(),
        interrupted: true,
        usage: None,
        rounds: 0,
    }
}

/// Without any configured model, looks for a server on this machine (`H-13`).
async fn find_model(ctx: &RwLock<RequestContext>, deps: &Deps) {
    if !ctx.read().needs_local_model() {
        return;
    }
    let lookup = ctx.read().env().lookup();
    if let Ok(Some(provider)) = unless_aborted(&deps.abort, client::probe_local(&lookup)).await {
        ctx.write().add_provider(provider);
    }
}

fn client(ctx: &RwLock<RequestContext>) -> Result<Client> {
    let (provider, facts) = ctx.read().client_config()?;
    Ok(Client::new(&provider, &facts)?)
}

/// Commits what was recorded. That a session could not be written is worth a warning, and the answer is there
/// all the same.
fn keep(ctx: &RwLock<RequestContext>, deps: &Deps) {
    let warning = match ctx.write().commit() {
        Ok(None | Some(Saved::Written(_))) => return,
        Ok(Some(Saved::Conflict { original, copy })) => format!(
            "`{}` was changed by another coyote; this session goes on in `{}`",
            original.display(),
            copy.display()
        ),
        Err(error) => {
            let lines: Vec<String> = [error.to_string()]
                .into_iter()
                .chain(error.causes())
                .collect();
            lines.join(": ")
        }
    };
    deps.sink.notice(crate::chat::Notice::Warning(warning));
}

/// A turn under way.
struct Driver<'a> {
    ctx: &'a RwLock<RequestContext>,
    input: &'a Input,
    deps: &'a Deps,
    client: Client,
    turn: Turn,
    tracker: Tracker,
    /// What the last request offered, which is what its calls run against.
    scope: ToolScope,
    supervisor: Option<Arc<Supervisor>>,
    stream: Option<EventStream>,
    /// How many of the machine's messages the context has.
    recorded: usize,
    failure: Option<Error>,
}

impl Driver<'_> {
    /// Performs effects until the turn is over; with none left it waits for the provider.
    async fn drive(&mut self) -> Ending {
        let mut effects: VecDeque<Effect> = self.turn.step(Signal::Start).into();
        loop {
            self.record();
            let signals = match effects.pop_front() {
                None => vec![self.next_event().await],
                Some(Effect::Show(notice)) => {
                    self.deps.sink.notice(notice);
                    Vec::new()
                }
                Some(Effect::Send) => self.send().await.err().into_iter().collect(),
                Some(Effect::Dispatch(calls)) => self.dispatch(calls).await,
                Some(Effect::CloseStream) => {
                    self.stream = None;
                    Vec::new()
                }
                // The calls run inside `dispatch`, which hears of a cancellation by itself.
                Some(Effect::CancelCalls) => Vec::new(),
                Some(Effect::Finish(ending)) => return ending,
            };
            for signal in signals {
                effects.extend(self.turn.step(signal));
            }
        }
    }

    /// Passes on what the machine has finished, so that the next request has it.
    fn record(&mut self) {
        let new = self
            .turn
            .messages()
            .get(self.recorded..)
            .unwrap_or_default();
        if new.is_empty() {
            return;
        }
        let mut ctx = self.ctx.write();
        for message in new {
            ctx.record(message.clone());
        }
        self.recorded = self.turn.messages().len();
    }

    /// Sends the request that is due. Functions are looked up anew each time: a server that has connected meanwhile
    /// joins (`M-13`).
    async fn send(&mut self) -> Result<(), Signal> {
        if self.deps.abort.is_cancelled() {
            return Err(Signal::Abort);
        }
        let request = {
            let ctx = self.ctx.read();
            self.scope = ctx.tool_scope();
            ctx.request_with(self.input, &self.scope)
        };
        let request = request.map_err(|error| self.failed(error))?;
        let sent = self
            .client
            .send(&request, &self.deps.abort, self.deps.sink.as_ref());
        match unless_aborted(&self.deps.abort, sent).await {
            Ok(Ok(stream)) => {
                self.stream = Some(stream);
                Ok(())
            }
            Ok(Err(ClientError::Aborted(_))) | Err(_) => Err(Signal::Abort),
            Ok(Err(error)) => Err(self.failed(error.into())),
        }
    }

    fn failed(&mut self, error: Error) -> Signal {
        self.failure = Some(error);
        Signal::StreamFailed
    }

    async fn next_event(&mut self) -> Signal {
        let Some(stream) = self.stream.as_mut() else {
            return Signal::StreamEnded;
        };
        match unless_aborted(&self.deps.abort, stream.next()).await {
            Ok(Some(Ok(event))) => Signal::Event(event),
            Ok(None) => Signal::StreamEnded,
            Ok(Some(Err(ClientError::Aborted(_)))) | Err(_) => Signal::Abort,
            Ok(Some(Err(error))) => self.failed(error.into()),
        }
    }

    async fn dispatch(&mut self, calls: Vec<ToolCall>) -> Vec<Signal> {
        // The answer is complete: its connection can go back to the pool while the calls run.
        self.stream = None;
        let env = self.dispatch_env();
        dispatch(&env, calls, &mut self.tracker)
            .await
            .into_iter()
            .enumerate()
            .map(|(index, result)| Signal::Answered {
                index,
                output: result.output,
            })
            .collect()
    }

    fn dispatch_env(&self) -> DispatchEnv {
        let ctx = self.ctx.read();
        DispatchEnv {
            functions: Arc::clone(&self.scope.functions),
            mcp: self.scope.mcp.clone(),
            limits: ctx.limits(),
            mcp_confirm: ctx.app().mcp_confirm,
            approve_all: self.deps.approve_all,
            session_approvals: Arc::clone(&self.deps.approvals),
            ask: Arc::clone(&self.deps.ask),
            sink: Arc::clone(&self.deps.sink),
            abort: self.deps.abort.clone(),
            cwd: ctx.cwd().to_path_buf(),
            supervisor: self.supervisor.clone(),
            scrub_env: ctx.app().key_variables().into(),
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
