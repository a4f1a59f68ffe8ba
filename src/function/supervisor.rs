//! Delegates: agents that an agent starts, asks and ends (`H-33`).
//!
//! The supervisor keeps their ids, their limits and the queue of those that wait for a place; how a delegate
//! thinks is the business of a [`DelegateRunner`], which `turn` implements. A supervisor lives as long as the turn of
//! the agent it belongs to, and whatever it started ends with it. Waiting is for a change of state and never a
//! polling sleep.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::args::Args;
use super::env::DispatchEnv;
use super::error::FunctionError;
use crate::chat::{Arguments, FunctionDeclaration, ToolOutput};
use crate::utils::abort::unless_aborted;
use crate::utils::{AbortToken, fuzzy, text};

/// How many delegates an agent starts in one turn, all in all.
const MOST: usize = 64;
/// The most of a delegate's answer that its parent gets, in bytes.
const ANSWER: usize = 204_800;
/// The most of an error or a note, in bytes.
const NOTE: usize = 4_096;
/// How long a delegate that was cancelled may take to wind up before it is dropped.
const WIND_UP: Duration = Duration::from_millis(80);

/// What agents may know about each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSummary {
    /// Its name.
    pub name: String,
    /// What it is good for.
    pub description: String,
}

/// What a supervisor keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelegationLimits {
    /// How many delegates run at once; the others wait.
    pub concurrent: usize,
}

/// What a delegate is to do.
#[derive(Debug, Clone)]
pub struct Job {
    /// What it is called, for people.
    pub id: String,
    /// Which agent it is.
    pub agent: String,
    /// What it is asked.
    pub prompt: String,
    /// Ends it.
    pub abort: AbortToken,
}

/// What a delegate came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Its answer.
    pub text: String,
    /// What its parent should know besides: servers it had to do without.
    pub notes: Vec<String>,
}

/// Runs delegates. A future that is dropped leaves nothing behind.
pub trait DelegateRunner: Send + Sync {
    /// The agents that may be started.
    fn available(&self) -> Vec<AgentSummary>;

    /// Runs one to its end; an error is a sentence for the agent that started it.
    fn run(&self, job: Job) -> Pin<Box<dyn Future<Output = Result<Report, String>> + Send>>;
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Queued,
    Running,
    Done(Report),
    Failed(String),
    Cancelled,
}

impl State {
    fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done(_) => "done",
            Self::Failed(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Done(_) | Self::Failed(_) | Self::Cancelled => true,
        }
    }
}

struct Delegate {
    id: String,
    agent: String,
    state: watch::Receiver<State>,
    abort: AbortToken,
    task: JoinHandle<()>,
}

/// The delegates of one agent's turn.
pub struct Supervisor {
    runner: Arc<dyn DelegateRunner>,
    places: Arc<Semaphore>,
    abort: AbortToken,
    delegates: Mutex<Vec<Delegate>>,
}

impl Supervisor {
    /// Without delegates; `abort` is the agent's own, which ends them all.
    pub fn new(
        runner: Arc<dyn DelegateRunner>,
        limits: DelegationLimits,
        abort: &AbortToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            runner,
            places: Arc::new(Semaphore::new(limits.concurrent.max(1))),
            abort: abort.child_token(),
            delegates: Mutex::default(),
        })
    }

    /// Ends every delegate and waits until they are gone, not long; returns the ids of those that were not done.
    pub async fn end(&self) -> Vec<String> {
        let delegates = std::mem::take(&mut *self.delegates.lock());
        let unfinished: Vec<String> = delegates
            .iter()
            .filter(|delegate| !delegate.state.borrow().is_over())
            .map(|delegate| delegate.id.clone())
            .collect();
        self.abort.cancel();
        join_all(delegates.into_iter().map(|mut delegate| async move {
            let ended = tokio::time::timeout(WIND_UP * 2, &mut delegate.task).await;
            if ended.is_err() {
                delegate.task.abort();
            }
        }))
        .await;
        unfinished
    }

    fn spawn(&self, agent: &str, prompt: &str) -> Result<Value, FunctionError> {
        let available = self.runner.available();
        if !available.iter().any(|known| known.name == agent) {
            return Err(unknown_agent(agent, &available));
        }
        let mut delegates = self.delegates.lock();
        if delegates.len() >= MOST {
            return Err(FunctionError::failed(format!(
                "not started: this turn has had {MOST} delegates, which is the limit; go on with their answers"
            )));
        }
        if self.abort.is_cancelled() {
            return Err(FunctionError::Cancelled);
        }
        let id = format!("{agent}-{}", delegates.len() + 1);
        let abort = self.abort.child_token();
        let job = Job {
            id: id.clone(),
            agent: agent.to_owned(),
            prompt: prompt.to_owned(),
            abort: abort.clone(),
        };
        let has_place = self.places.available_permits() > 0;
        let begins = if has_place {
            State::Running
        } else {
            State::Queued
        };
        let answer = json!({ "id": id, "agent": agent, "status": begins.word() });
        let (sender, state) = watch::channel(begins);
        let work = work(
            Arc::clone(&self.runner),
            Arc::clone(&self.places),
            job,
            sender,
        );
        delegates.push(Delegate {
            id,
            agent: agent.to_owned(),
            state,
            abort,
            task: tokio::spawn(work),
        });
        Ok(answer)
    }

    /// The state of one, and its token.
    fn find(
        &self,
        id: &str,
    ) -> Result<(watch::Receiver<State>, AbortToken, String), FunctionError> {
        let delegates = self.delegates.lock();
        let found = delegates.iter().find(|delegate| delegate.id == id);
        if let Some(found) = found {
            return Ok((
                found.state.clone(),
                found.abort.clone(),
                found.agent.clone(),
            ));
        }
        let ids: Vec<&str> = delegates.iter().map(|known| known.id.as_str()).collect();
        let id = text::bounded(id, 100);
        Err(FunctionError::argument(if ids.is_empty() {
            format!("there is no delegate `{id}`: none was started in this turn")
        } else {
            format!("there is no delegate `{id}`; there are {}", ids.join(", "))
        }))
    }

    fn list_running(&self) -> Value {
        let delegates = self.delegates.lock();
        let items: Vec<Value> = delegates
            .iter()
            .filter(|delegate| !delegate.state.borrow().is_over())
            .map(|delegate| {
                let status = delegate.state.borrow().word();
                json!({ "id": delegate.id, "agent": delegate.agent, "status": status })
            })
            .collect();
        Value::Array(items)
    }

    fn list_available(&self) -> Value {
        let item = |agent: AgentSummary| {
            let description = text::bounded(&agent.description, NOTE).into_owned();
            json!({ "agent": agent.name, "description": description })
        };
        Value::Array(self.runner.available().into_iter().map(item).collect())
    }
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor")
            .field("delegates", &self.delegates.lock().len())
            .finish_non_exhaustive()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.abort.cancel();
        for delegate in self.delegates.get_mut() {
            delegate.task.abort();
        }
    }
}

/// One delegate from its place in the queue to its end.
async fn work(
    runner: Arc<dyn DelegateRunner>,
    places: Arc<Semaphore>,
    job: Job,
    state: watch::Sender<State>,
) {
    let abort = job.abort.clone();
    let Ok(Ok(_place)) = unless_aborted(&abort, places.acquire_owned()).await else {
        state.send_replace(State::Cancelled);
        return;
    };
    state.send_replace(State::Running);
    let run = runner.run(job);
    tokio::pin!(run);
    let outcome = tokio::select! {
        biased;
        outcome = &mut run => Some(outcome),
        () = abort.cancelled() => {
            // It hears of it itself and tells its servers.
            let _ = tokio::time::timeout(WIND_UP, run).await;
            None
        }
    };
    state.send_replace(match outcome {
        _ if abort.is_cancelled() => State::Cancelled,
        Some(Ok(report)) => State::Done(report),
        Some(Err(reason)) => State::Failed(reason),
        None => State::Cancelled,
    });
}

fn unknown_agent(name: &str, available: &[AgentSummary]) -> FunctionError {
    let names = available.iter().map(|agent| agent.name.as_str());
    let near = fuzzy::nearest(name, names.clone(), 3);
    let name = text::bounded(name, 100);
    FunctionError::argument(if !near.is_empty() {
        format!(
            "there is no agent `{name}` that you may start; did you mean {}?",
            fuzzy::alternatives(&near)
        )
    } else if available.is_empty() {
        format!("there is no agent `{name}`: there is none that you may start")
    } else {
        let names: Vec<&str> = names.take(20).collect();
        format!(
            "there is no agent `{name}` that you may start; there are {}",
            names.join(", ")
        )
    })
}

/// How a delegate is described to its parent.
fn described(id: &str, agent: &str, state: &State, limit: usize) -> Value {
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    map.insert("agent".to_owned(), json!(agent));
    map.insert("status".to_owned(), json!(state.word()));
    match state {
        State::Queued | State::Running | State::Cancelled => {}
        State::Failed(reason) => {
            map.insert("error".to_owned(), json!(text::bounded(reason, NOTE)));
        }
        State::Done(report) => {
            let cut = text::prefix(&report.text, limit);
            map.insert("result".to_owned(), json!(cut));
            if cut.len() < report.text.len() {
                map.insert("truncated".to_owned(), json!(true));
                map.insert("total_bytes".to_owned(), json!(report.text.len()));
            }
            if !report.notes.is_empty() {
                let note = |note: &String| text::bounded(note, NOTE).into_owned();
                let notes: Vec<String> = report.notes.iter().take(20).map(note).collect();
                map.insert("notes".to_owned(), json!(notes));
            }
        }
    }
    Value::Object(map)
}

/// What an agent can do about delegates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentFunction {
    Spawn,
    Check,
    Collect,
    Cancel,
    ListRunning,
    ListAvailable,
}

impl AgentFunction {
    pub(super) const ALL: [Self; 6] = [
        Self::Spawn,
        Self::Check,
        Self::Collect,
        Self::Cancel,
        Self::ListRunning,
        Self::ListAvailable,
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|function| function.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Spawn => "agent__spawn",
            Self::Check => "agent__check",
            Self::Collect => "agent__collect",
            Self::Cancel => "agent__cancel",
            Self::ListRunning => "agent__list_running",
            Self::ListAvailable => "agent__list_available",
        }
    }

    pub(super) fn declaration(self) -> FunctionDeclaration {
        let description = match self {
            Self::Spawn => {
                "Start another agent on a task of its own. It runs concurrently, knows nothing of this conversation, \
                 and ends when your turn ends: collect its answer before you give yours. Returns its id."
            }
            Self::Check => "Look at how an agent you started is doing, without waiting.",
            Self::Collect => "Wait for an agent you started and get its answer.",
            Self::Cancel => "End an agent you started; it gives no answer.",
            Self::ListRunning => "List the agents you started that are not done.",
            Self::ListAvailable => "List the agents you may start, with what each is good for.",
        };
        let id =
            json!({ "id": { "type": "string", "description": "As `agent__spawn` returned it." } });
        let (properties, required): (Value, &[&str]) = match self {
            Self::Spawn => (
                json!({
                    "agent": { "type": "string", "description": "Which one; see agent__list_available." },
                    "prompt": {
                        "type": "string",
                        "description": "The whole task, with everything the agent has to know.",
                    },
                }),
                &["agent", "prompt"],
            ),
            Self::Check | Self::Collect | Self::Cancel => (id, &["id"]),
            Self::ListRunning | Self::ListAvailable => (json!({}), &[]),
        };
        FunctionDeclaration {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters: json!({
                "type": "object", "properties": properties, "required": required
            }),
        }
    }
}

/// Does what an agent asked about its delegates.
pub(super) async fn run(
    function: AgentFunction,
    env: &DispatchEnv,
    arguments: &Arguments,
) -> Result<ToolOutput, FunctionError> {
    let Some(supervisor) = &env.supervisor else {
        return Err(FunctionError::failed("this agent may not start others"));
    };
    let schema = function.declaration().parameters;
    let args = Args::new(function.name(), arguments, &schema)?;
    let limit = env
        .limits
        .max_tool_result_chars
        .unwrap_or(ANSWER)
        .min(ANSWER);
    Ok(ToolOutput::ok(match function {
        AgentFunction::Spawn => {
            supervisor.spawn(args.required_word("agent")?, args.required_word("prompt")?)?
        }
        AgentFunction::ListRunning => supervisor.list_running(),
        AgentFunction::ListAvailable => supervisor.list_available(),
        AgentFunction::Check => {
            let id = args.required_word("id")?;
            let (state, _, agent) = supervisor.find(id)?;
            let state = state.borrow().clone();
            described(id, &agent, &state, limit)
        }
        AgentFunction::Cancel => {
            let id = args.required_word("id")?;
            let (mut state, abort, agent) = supervisor.find(id)?;
            abort.cancel();
            let state = over(&mut state, &env.abort).await?;
            described(id, &agent, &state, limit)
        }
        AgentFunction::Collect => {
            let id = args.required_word("id")?;
            let (mut state, _, agent) = supervisor.find(id)?;
            let state = over(&mut state, &env.abort).await?;
            described(id, &agent, &state, limit)
        }
    }))
}

/// Waits until a delegate is over.
async fn over(
    state: &mut watch::Receiver<State>,
    abort: &AbortToken,
) -> Result<State, FunctionError> {
    let over = unless_aborted(abort, state.wait_for(State::is_over)).await?;
    Ok(match over {
        Ok(state) => state.clone(),
        // Its task is gone without a word: it broke.
        Err(_) => State::Failed("it ended without an answer".to_owned()),
    })
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
