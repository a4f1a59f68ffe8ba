//! What `Tab` offers (`H-20`, `P-40`–`P-45`): a pure look-up in a [`Snapshot`] taken before the line was begun, or
//! an answer that arrives while the person goes on typing.
//!
//! Nothing here does I/O, and no lock is held across a key press. A [`LiveSource`] is asked on the runtime, at most
//! once per press of `Tab`; whatever the editor asks in between is answered from the listing in hand, and an answer
//! that comes late, for another line or for a menu that was closed, is dropped.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use reedline::{CompletionResult, CompletionStatus, Span, Suggestion};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::table::{self, ArgKind, COMMANDS, State, Typing};
use crate::utils::fuzzy;
use crate::utils::text;
use crate::utils::words::{self, Word};

/// How long a [`LiveSource`] may take in all; then nothing is offered.
pub const LIVE_LIMIT: Duration = Duration::from_secs(2);

/// Descriptions are one line in a menu; longer ones only cost time.
const DESCRIPTION_BYTES: usize = 512;

/// Most entries of a menu: the editor lays all of them out with every key, and nobody reads more.
const MAX_OFFERED: usize = 500;

/// Something that may be inserted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Candidate {
    /// What is inserted: the real name, quoted where it needs quotes. One that sanitising would change is not offered.
    pub value: String,
    /// Shown beside it.
    pub description: Option<String>,
    /// Whether the person goes on typing right behind it (`key=`), so that no space is appended.
    pub glue: bool,
}

impl Candidate {
    /// A name alone.
    pub fn new(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            ..Self::default()
        }
    }

    /// A name and what it is.
    pub fn described(value: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            description: Some(description.into()).filter(|text| !text.is_empty()),
            glue: false,
        }
    }
}

/// Asked while the person goes on typing, at most once per press of `Tab`.
///
/// The future must not start, connect or authenticate anything, and its errors are an empty list (`P-41`).
pub trait LiveSource: Send + Sync {
    /// What may stand where the cursor is: `before` are the finished arguments, `word` the one being typed.
    fn candidates(
        &self,
        before: Vec<String>,
        word: String,
    ) -> Pin<Box<dyn Future<Output = Vec<Candidate>> + Send>>;

    /// The part of `word` that the listing depends on (a directory). While it stays the same, the listing in hand is
    /// filtered; nothing, for most sources.
    fn scope<'a>(&self, _word: &'a str) -> &'a str {
        ""
    }
}

/// What can be completed now; taken before each line, so that completing needs no lock and no I/O.
#[derive(Clone, Default)]
pub struct Snapshot {
    /// Which commands are available.
    pub state: State,
    /// Roles.
    pub roles: Vec<Candidate>,
    /// Sessions.
    pub sessions: Vec<Candidate>,
    /// Agents.
    pub agents: Vec<Candidate>,
    /// Numbers of the active agent's starters.
    pub starters: Vec<Candidate>,
    /// Macros.
    pub macros: Vec<Candidate>,
    /// Model ids, `client:model`.
    pub models: Vec<Candidate>,
    /// Tools that can be enabled, aliases included.
    pub tools: Vec<Candidate>,
    /// MCP servers, aliases included.
    pub servers: Vec<Candidate>,
    /// `.set` keys in order, each with the values to offer.
    pub settings: Vec<(Candidate, Vec<Candidate>)>,
    /// Paths, for `.file`.
    pub files: Option<Arc<dyn LiveSource>>,
    /// Servers with prompts, their prompts and the arguments of these, for `.prompt`.
    pub prompts: Option<Arc<dyn LiveSource>>,
}

/// Where the candidates for the word being typed come from.
enum Source {
    /// At hand.
    Listed(Vec<Candidate>),
    /// Asked when `Tab` is pressed.
    Live(Arc<dyn LiveSource>),
}

impl Source {
    fn live(source: Option<&Arc<dyn LiveSource>>) -> Self {
        source.map_or_else(
            || Self::Listed(Vec::new()),
            |source| Self::Live(Arc::clone(source)),
        )
    }
}

impl Snapshot {
    fn source(&self, typing: &Typing) -> Source {
        Source::Listed(match typing.kind {
            ArgKind::None => Vec::new(),
            ArgKind::Command => self.commands(),
            ArgKind::Choice(choices) => choices
                .iter()
                .map(|choice| Candidate::described(choice.word, choice.help))
                .collect(),
            ArgKind::Model => self.models.clone(),
            ArgKind::Role => self.roles.clone(),
            ArgKind::Session => self.sessions.clone(),
            ArgKind::Agent => self.agents.clone(),
            ArgKind::Starter => self.starters.clone(),
            ArgKind::Macro => self.macros.clone(),
            ArgKind::Server => self.servers.clone(),
            ArgKind::Servers => not_yet(&self.servers, &typing.before),
            ArgKind::Tools => not_yet(&self.tools, &typing.before),
            ArgKind::Setting => self.settings.iter().map(|(key, _)| key.clone()).collect(),
            ArgKind::SettingValue => {
                let key = typing.before.last();
                let setting = (self.settings.iter()).find(|(name, _)| Some(&name.value) == key);
                setting
                    .map(|(_, values)| values.clone())
                    .unwrap_or_default()
            }
            ArgKind::Files => return Source::live(self.files.as_ref()),
            ArgKind::Prompt => return Source::live(self.prompts.as_ref()),
        })
    }

    fn commands(&self) -> Vec<Candidate> {
        // A macro that a command hides, or whose name is several words, is not run like that.
        let macros = self.macros.iter().filter_map(|found| {
            let value = format!(".{}", found.value);
            let runs = table::find(&value).is_none() && !value.contains(char::is_whitespace);
            runs.then(|| Candidate {
                value,
                ..found.clone()
            })
        });
        (COMMANDS.iter())
            .filter(|command| command.available(&self.state))
            .map(|command| Candidate::described(command.name, command.help))
            .chain(macros)
            .collect()
    }
}

/// Of a list that takes any number of names, those that are not there yet.
fn not_yet(candidates: &[Candidate], before: &[String]) -> Vec<Candidate> {
    let is_new = |candidate: &&Candidate| !before.contains(&candidate.value);
    candidates.iter().filter(is_new).cloned().collect()
}

/// What the editor's pieces share: the snapshot of the line, and which press of `Tab` is being answered.
#[derive(Default)]
pub(super) struct Shared {
    snapshot: Mutex<Arc<Snapshot>>,
    press: AtomicU64,
    open: AtomicBool,
}

impl Shared {
    /// The snapshot of the line being edited.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.lock().clone()
    }

    /// Begins a line.
    pub(super) fn begin(&self, snapshot: Arc<Snapshot>) {
        *self.snapshot.lock() = snapshot;
        self.close();
    }

    /// `Tab` opened the menu: a new generation.
    pub(super) fn pressed(&self) {
        self.press.fetch_add(1, Ordering::SeqCst);
        self.open.store(true, Ordering::SeqCst);
    }

    /// The menu was closed: whatever is being asked is of no use any more.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }
}

/// What a listing is for: the finished arguments, and the part of the word it depends on.
type Place = (Vec<String>, String);

/// The one question that is being asked or was answered in this generation.
enum Query {
    None,
    Running {
        place: Place,
        answer: oneshot::Receiver<Vec<Candidate>>,
        task: AbortHandle,
    },
    Done {
        place: Place,
        listing: Vec<Candidate>,
    },
}

/// reedline's completer over the shared snapshot.
pub(super) struct Completer {
    shared: Arc<Shared>,
    runtime: Option<Handle>,
    press: u64,
    query: Query,
    limit: Duration,
    each_iteration: Box<dyn FnMut() + Send>,
}

impl Completer {
    /// `each_iteration` is called whenever the editor's loop comes round, which is several times a second.
    pub(super) fn new(
        shared: Arc<Shared>,
        runtime: Option<Handle>,
        each_iteration: Box<dyn FnMut() + Send>,
    ) -> Self {
        Self {
            shared,
            runtime,
            press: 0,
            query: Query::None,
            limit: LIVE_LIMIT,
            each_iteration,
        }
    }

    /// Forgets the question, and stops whoever is working on it.
    fn forget(&mut self) {
        if let Query::Running { task, .. } = std::mem::replace(&mut self.query, Query::None) {
            task.abort();
        }
    }

    /// Takes the answer if there is one; whether the question is settled now.
    fn settle(&mut self) -> bool {
        let Query::Running { place, answer, .. } = &mut self.query else {
            return false;
        };
        let listing = match answer.try_recv() {
            Ok(listing) => listing,
            Err(oneshot::error::TryRecvError::Empty) => return false,
            // The runtime is gone or the source panicked: nothing is offered.
            Err(oneshot::error::TryRecvError::Closed) => Vec::new(),
        };
        let place = std::mem::take(place);
        self.query = Query::Done { place, listing };
        true
    }

    /// Whether this is the first thing asked since `Tab` was pressed; what is left of an earlier press is dropped.
    fn is_new_press(&mut self) -> bool {
        let press = self.shared.press.load(Ordering::SeqCst);
        let new = press != self.press;
        if new {
            self.press = press;
            self.forget();
        }
        new
    }

    fn live(
        &mut self,
        source: &Arc<dyn LiveSource>,
        typing: &Typing,
        new: bool,
    ) -> CompletionResult {
        let scope = source.scope(&typing.word.text).to_owned();
        let here = (typing.before.clone(), scope);
        if new {
            self.query = self.ask(source, typing, here.clone());
        }
        self.settle();
        match &self.query {
            Query::Running { place, .. } if *place == here => CompletionResult::Pending,
            Query::Done { place, listing } if *place == here => offer(listing, &typing.word),
            // The line went on to something else: that takes another press of `Tab`.
            Query::None | Query::Running { .. } | Query::Done { .. } => nothing(),
        }
    }

    fn ask(&self, source: &Arc<dyn LiveSource>, typing: &Typing, place: Place) -> Query {
        let Some(runtime) = &self.runtime else {
            return Query::None;
        };
        let (sender, answer) = oneshot::channel();
        let work = source.candidates(typing.before.clone(), typing.word.text.clone());
        let limit = self.limit;
        let task = runtime.spawn(async move {
            let listing = tokio::time::timeout(limit, work).await;
            let _ = sender.send(listing.unwrap_or_default());
        });
        Query::Running {
            place,
            answer,
            task: task.abort_handle(),
        }
    }
}

impl reedline::Completer for Completer {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let new = self.is_new_press();
        let Some(typing) = table::typing(text::prefix(line, pos)) else {
            return nothing();
        };
        let snapshot = self.shared.snapshot();
        match snapshot.source(&typing) {
            Source::Live(source) => self.live(&source, &typing, new),
            Source::Listed(candidates) => offer(&candidates, &typing.word),
        }
    }

    fn poll_completion(&mut self) -> CompletionStatus {
        (self.each_iteration)();
        if !self.shared.open.load(Ordering::SeqCst) {
            self.forget();
            return CompletionStatus::Idle;
        }
        if self.settle() {
            return CompletionStatus::Ready;
        }
        match self.query {
            Query::Running { .. } => CompletionStatus::Pending,
            Query::None | Query::Done { .. } => CompletionStatus::Idle,
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        self.forget();
    }
}

fn nothing() -> CompletionResult {
    CompletionResult::fresh(Vec::new())
}

/// Those of `candidates` that fit the word being typed, as the editor wants them.
fn offer(candidates: &[Candidate], word: &Word) -> CompletionResult {
    let shown: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| {
            !candidate.value.is_empty() && text::sanitize_line(&candidate.value) == candidate.value
        })
        .collect();
    let names: Vec<&str> = shown
        .iter()
        .map(|candidate| candidate.value.as_str())
        .collect();
    let span = Span::new(word.span.start, word.span.end);
    let suggestions: Vec<Suggestion> = fuzzy::filter(&word.text, &names)
        .into_iter()
        .take(MAX_OFFERED)
        .filter_map(|fit| {
            let candidate = shown.get(fit.index)?;
            let description = candidate.description.as_deref().map(|description| {
                text::sanitize_line(text::prefix(description, DESCRIPTION_BYTES))
            });
            Some(Suggestion {
                value: words::quote(&candidate.value).into_owned(),
                display_override: Some(candidate.value.clone()),
                description,
                span,
                append_whitespace: !candidate.glue,
                match_indices: Some(fit.places),
                ..Suggestion::default()
            })
        })
        .collect();
    CompletionResult::fresh(suggestions)
}

#[cfg(test)]
#[path = "completer_tests.rs"]
mod tests;
