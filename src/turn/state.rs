//! A turn as a pure machine: a signal in, effects out. No clock, no task, no lock; the driver in [`super`] performs
//! the effects and reports what came of them.
//!
//! ```text
//! Ready ──Start──▶ Streaming ──End with calls──▶ Calling ──all answered──▶ Streaming …
//!                      │                            │
//!                      └── End, Abort, failure ─────┴──▶ Over
//! ```
//!
//! What holds whatever the order of signals (`H-40`): every call that is recorded has exactly one answer, right
//! behind it and in call order; nothing is recorded twice; the machine comes to an end within its rounds.

use std::collections::HashSet;

use crate::chat::{
    Activity, CallId, Event, Message, Notice, ProviderState, StopReason, ToolCall, ToolOutput,
    ToolResult, Usage,
};

/// How many requests a turn makes, unless configured (`H-41`).
pub const MAX_ROUNDS: u32 = 50;

/// Most calls of one answer that are executed; more is a model running wild.
const MAX_CALLS: usize = 128;

/// Most bytes of one answer's text, and most calls that are even kept: beyond, the stream is endless.
const MAX_TEXT: usize = 32 * 1024 * 1024;
const MAX_CALLS_KEPT: usize = 1_024;

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// The turn begins.
    Start,
    /// The provider said something.
    Event(Event),
    /// The stream ended without [`Event::End`].
    StreamEnded,
    /// The provider refused or failed; the driver keeps the reason.
    StreamFailed,
    /// A call of the running round has its answer.
    Answered {
        /// Which call of [`Effect::Dispatch`].
        index: usize,
        /// Its answer.
        output: ToolOutput,
    },
    /// The person pressed Ctrl-C.
    Abort,
}

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Build a request from the history and [`Turn::messages`] and send it.
    Send,
    /// Show this.
    Show(Notice),
    /// Run these calls and report each answer by its index.
    Dispatch(Vec<ToolCall>),
    /// Drop the stream: the provider stops.
    CloseStream,
    /// Stop what runs; what it answers is no longer wanted.
    CancelCalls,
    /// The turn is over. Nothing follows.
    Finish(Ending),
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model was done.
    Done,
    /// The answer ended in the middle.
    Truncated,
    /// The model would have gone on calling functions.
    RoundLimit,
    /// The person interrupted it.
    Interrupted,
    /// The provider failed.
    Failed,
}

#[derive(Debug)]
enum Phase {
    Ready,
    Streaming {
        text: String,
        calls: Vec<ToolCall>,
    },
    Calling {
        text: String,
        state: Option<ProviderState>,
        calls: Vec<ToolCall>,
        /// One place for each call.
        answers: Vec<Option<ToolOutput>>,
    },
    Over,
}

/// A turn.
#[derive(Debug)]
pub struct Turn {
    phase: Phase,
    round: u32,
    max_rounds: u32,
    messages: Vec<Message>,
    last_text: String,
    usage: Option<Usage>,
}

impl Turn {
    /// A turn of at most `max_rounds` requests, at least one.
    pub fn new(max_rounds: u32) -> Self {
        Self {
            phase: Phase::Ready,
            round: 0,
            max_rounds: max_rounds.max(1),
            messages: Vec::new(),
            last_text: String::new(),
            usage: None,
        }
    }

    /// What the model said and was answered so far: legal behind the person's message at any moment.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Takes what [`Self::messages`] shows.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// The latest text of the model, which at the end is the answer.
    pub fn answer(&self) -> &str {
        &self.last_text
    }

    /// How many requests were made.
    pub fn rounds(&self) -> u32 {
        self.round
    }

    /// What all requests cost together, as far as the provider said.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Takes one signal. Signals that make no sense in the present phase change nothing: late answers of cancelled
    /// calls, events of a closed stream.
    pub fn step(&mut self, signal: Signal) -> Vec<Effect> {
        match signal {
            Signal::Start => self.start(),
            Signal::Event(event) => self.event(event),
            Signal::StreamEnded => self.stream_ended(),
            Signal::StreamFailed => self.leave_stream(Ending::Failed),
            Signal::Answered { index, output } => self.answered(index, output),
            Signal::Abort => self.abort(),
        }
    }

    fn start(&mut self) -> Vec<Effect> {
        match self.phase {
            Phase::Ready => self.next_round(),
            Phase::Streaming { .. } | Phase::Calling { .. } | Phase::Over => Vec::new(),
        }
    }

    fn next_round(&mut self) -> Vec<Effect> {
        self.round = self.round.saturating_add(1);
        self.phase = Phase::Streaming {
            text: String::new(),
            calls: Vec::new(),
        };
        vec![
            Effect::Show(Notice::Activity(Some(Activity::Thinking))),
            Effect::Send,
        ]
    }

    fn event(&mut self, event: Event) -> Vec<Effect> {
        let Phase::Streaming { text, calls } = &mut self.phase else {
            return Vec::new();
        };
        match event {
            Event::Text(more) if text.len().saturating_add(more.len()) > MAX_TEXT => {
                self.endless("its text is over 32 MiB")
            }
            Event::ToolCall(_) if calls.len() >= MAX_CALLS_KEPT => {
                self.endless("it calls more than 1024 functions")
            }
            Event::Text(more) => {
                text.push_str(&more);
                vec![Effect::Show(Notice::Text(more))]
            }
            Event::Reasoning(more) => vec![Effect::Show(Notice::Reasoning(more))],
            Event::ToolCallStarted { name } => {
                vec![Effect::Show(Notice::Activity(Some(Activity::Calling(
                    name,
                ))))]
            }
            Event::ToolCall(call) => {
                calls.push(call);
                Vec::new()
            }
            Event::End { stop, usage, state } => {
                let (text, calls) = (std::mem::take(text), std::mem::take(calls));
                self.add_usage(usage);
                self.round_ended(text, calls, &stop, state)
            }
        }
    }

    fn add_usage(&mut self, more: Option<Usage>) {
        let Some(more) = more else { return };
        let sum = self.usage.get_or_insert_default();
        sum.input = sum.input.saturating_add(more.input);
        sum.output = sum.output.saturating_add(more.output);
        sum.cached = sum.cached.saturating_add(more.cached);
    }

    /// A complete answer: either it calls functions and there is a round left for what they answer, or it is the
    /// last one.
    fn round_ended(
        &mut self,
        text: String,
        mut calls: Vec<ToolCall>,
        stop: &StopReason,
        state: Option<ProviderState>,
    ) -> Vec<Effect> {
        let mut effects = vec![Effect::Show(Notice::TextEnd)];
        if matches!(stop, StopReason::Refused) {
            calls.clear();
        }
        if calls.is_empty() {
            effects.extend(remark(stop, &text).map(Effect::Show));
            self.say(text, Vec::new(), state);
            effects.extend(self.finish(Ending::Done));
            return effects;
        }
        make_ids_unique(&mut calls);
        if self.round >= self.max_rounds {
            let why = format!("not executed: the turn ended after {} rounds", self.round);
            let answers = calls.iter().map(|_| ToolOutput::error(&why)).collect();
            self.commit(text, state, calls, answers);
            effects.push(Effect::Show(Notice::Warning(format!(
                "the turn was ended after {} rounds of function calls (`max_rounds`)",
                self.round
            ))));
            effects.extend(self.finish(Ending::RoundLimit));
            return effects;
        }
        let answers = (0..calls.len())
            .map(|at| {
                (at >= MAX_CALLS).then(|| {
                    ToolOutput::error(format!(
                        "not executed: more than {MAX_CALLS} calls in one answer; make fewer at a time"
                    ))
                })
            })
            .collect();
        effects.push(Effect::Dispatch(
            calls.iter().take(MAX_CALLS).cloned().collect(),
        ));
        self.phase = Phase::Calling {
            text,
            state,
            calls,
            answers,
        };
        effects
    }

    fn answered(&mut self, index: usize, output: ToolOutput) -> Vec<Effect> {
        let Phase::Calling { answers, .. } = &mut self.phase else {
            return Vec::new();
        };
        if let Some(place @ None) = answers.get_mut(index) {
            *place = Some(output);
        }
        if answers.iter().any(Option::is_none) {
            return Vec::new();
        }
        self.close_calls();
        self.next_round()
    }

    /// Records the running round; calls without an answer get one that says they were cancelled (`H-23`).
    fn close_calls(&mut self) {
        if let Phase::Calling {
            text,
            state,
            calls,
            answers,
        } = std::mem::replace(&mut self.phase, Phase::Over)
        {
            let answers = answers
                .into_iter()
                .map(|answer| answer.unwrap_or_else(|| ToolOutput::error("cancelled by the user")))
                .collect();
            self.commit(text, state, calls, answers);
        }
    }

    fn commit(
        &mut self,
        text: String,
        state: Option<ProviderState>,
        calls: Vec<ToolCall>,
        answers: Vec<ToolOutput>,
    ) {
        let results = calls
            .iter()
            .cloned()
            .zip(answers)
            .map(|(call, output)| ToolResult { call, output })
            .collect();
        self.say(text, calls, state);
        self.messages.push(Message::Tool(results));
    }

    /// Records what the model said, unless that is nothing: several providers refuse empty messages.
    fn say(&mut self, text: String, calls: Vec<ToolCall>, state: Option<ProviderState>) {
        self.last_text.clone_from(&text);
        if !text.is_empty() || !calls.is_empty() {
            self.messages
                .push(Message::Assistant { text, calls, state });
        }
    }

    fn endless(&mut self, why: &str) -> Vec<Effect> {
        let warning = format!("the answer was stopped: {why}");
        let mut effects = vec![Effect::CloseStream];
        effects.extend(self.leave_stream(Ending::Truncated));
        effects.insert(1, Effect::Show(Notice::Warning(warning)));
        effects
    }

    fn stream_ended(&mut self) -> Vec<Effect> {
        let mut effects = self.leave_stream(Ending::Truncated);
        if !effects.is_empty() {
            let warning = "the answer ended early: the provider closed the stream";
            effects.insert(1, Effect::Show(Notice::Warning(warning.to_owned())));
        }
        effects
    }

    /// Ends an answer in the middle: its text stays, its calls do not, since more of them may have been coming.
    fn leave_stream(&mut self, ending: Ending) -> Vec<Effect> {
        let Phase::Streaming { text, .. } = &mut self.phase else {
            return Vec::new();
        };
        let text = std::mem::take(text);
        self.say(text, Vec::new(), None);
        let mut effects = vec![Effect::Show(Notice::TextEnd)];
        effects.extend(self.finish(ending));
        effects
    }

    fn abort(&mut self) -> Vec<Effect> {
        match self.phase {
            Phase::Ready => self.finish(Ending::Interrupted),
            Phase::Streaming { .. } => {
                let mut effects = vec![Effect::CloseStream];
                effects.extend(self.leave_stream(Ending::Interrupted));
                effects
            }
            Phase::Calling { .. } => {
                self.close_calls();
                let mut effects = vec![Effect::CancelCalls];
                effects.extend(self.finish(Ending::Interrupted));
                effects
            }
            Phase::Over => Vec::new(),
        }
    }

    fn finish(&mut self, ending: Ending) -> Vec<Effect> {
        self.phase = Phase::Over;
        vec![Effect::Show(Notice::Activity(None)), Effect::Finish(ending)]
    }
}

/// What a person should know about the way an answer ended.
fn remark(stop: &StopReason, text: &str) -> Option<Notice> {
    match stop {
        StopReason::Length => Some(Notice::Warning(
            "the answer was cut at the output limit; `.continue` in the REPL asks for the rest"
                .to_owned(),
        )),
        StopReason::Refused => Some(Notice::Warning(
            "the provider withheld the answer or the rest of it".to_owned(),
        )),
        StopReason::Other(word) => Some(Notice::Info(format!(
            "the model stopped for another reason: `{word}`"
        ))),
        StopReason::Stop | StopReason::ToolCalls if text.is_empty() => {
            Some(Notice::Warning("the model gave an empty answer".to_owned()))
        }
        StopReason::Stop | StopReason::ToolCalls => None,
    }
}

/// Answers are tied to calls by id; a provider that repeats one gets the later calls renamed, here and therefore
/// also in what is replayed to it.
fn make_ids_unique(calls: &mut [ToolCall]) {
    let mut seen = HashSet::new();
    for call in calls {
        let original = call.id.0.clone();
        let mut attempt = 1_usize;
        while !seen.insert(call.id.clone()) {
            attempt = attempt.saturating_add(1);
            call.id = CallId(format!("{original}-{attempt}"));
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
