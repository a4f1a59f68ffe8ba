//! From the state to a request, and from what came back to the state: one turn at a time (`H-40`, `H-31`).
//!
//! A turn is begun, recorded message by message, and then committed to the session or abandoned. Until then the
//! transcript is untouched, so a failure leaves it as it was.

use std::collections::BTreeSet;

use super::input::Input;
use super::request_context::RequestContext;
use super::session::Saved;
use super::tool_scope::ToolScope;
use crate::chat::{
    FunctionDeclaration, Message, Part, Request, ToolChoice, ToolOutput, ToolResult,
};
use crate::client::ModelFacts;
use crate::function::Limits;
use crate::utils::fs::append_private;
use crate::utils::{Error, ErrorKind, Result};

/// What `.continue` asks for.
const CONTINUE: &str =
    "Continue your last answer exactly where it stopped. Repeat nothing and add no introduction.";

/// The turn that is open.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    messages: Vec<Message>,
    continues: bool,
}

impl RequestContext {
    /// Begins a turn with what the person says. A turn that was left open is abandoned.
    ///
    /// # Errors
    /// There is nothing to say, or an image for a model that takes none.
    pub fn begin(&mut self, input: &Input) -> Result<()> {
        self.turn = None;
        if input.is_empty() {
            return Err(Error::user("there is nothing to ask"));
        }
        self.check_images(input)?;
        self.turn = Some(Turn {
            messages: vec![self.user_message(input)],
            continues: input.continues(),
        });
        Ok(())
    }

    /// The request that is due: the transcript, and the open turn or, before it is begun, what `input` would say.
    /// The functions offered are those of [`Self::tool_scope`] at this moment.
    ///
    /// # Errors
    /// There is no model, or its client cannot be used.
    pub fn request(&self, input: &Input) -> Result<Request> {
        self.request_with(input, &self.tool_scope())
    }

    /// The same with functions the caller has in hand, so that what is offered is what will be called.
    ///
    /// # Errors
    /// There is no model, or its client cannot be used.
    pub fn request_with(&self, input: &Input, scope: &ToolScope) -> Result<Request> {
        let (_, facts) = self.client_config()?;
        Ok(self.request_for(input, scope, &facts))
    }

    /// The same for a model the caller names, who may not have one that works: a dry run.
    pub fn request_for(&self, input: &Input, scope: &ToolScope, facts: &ModelFacts) -> Request {
        let continues = self
            .turn
            .as_ref()
            .map_or(input.continues(), |turn| turn.continues);
        let mut messages = self.history(continues).to_vec();
        if let Some(turn) = &self.turn {
            messages.extend(turn.messages.iter().cloned());
        } else {
            messages.push(self.user_message(input));
        }
        // A model that does not see has the metadata, whatever was seen before.
        if !self.app().mcp_images || !facts.supports_vision {
            messages.iter_mut().for_each(drop_tool_images);
        }
        let may_call = self.may_call_functions(facts);
        let (tools, tool_choice) = offered(scope.functions.declarations(), &messages, may_call);
        Request {
            system: self.system(),
            messages,
            tools,
            tool_choice,
            temperature: self.temperature(),
            top_p: self.top_p(),
            stream: self.app().stream,
        }
    }

    /// Whether the next request lets its model call functions.
    pub fn may_call_functions(&self, facts: &ModelFacts) -> bool {
        self.app().function_calling_support && facts.supports_function_calling
    }

    /// The system prompt: the agent's, the role's, or the one the session's file carries.
    pub fn system(&self) -> Option<String> {
        let agent = self.agent().map(|agent| agent.instructions.as_str());
        let agent = agent.filter(|instructions| !instructions.is_empty());
        let role = self.role().and_then(|role| role.system());
        let own = self.session().and_then(|session| session.system.as_deref());
        agent.or(role).or(own).map(str::to_owned)
    }

    /// Sampling temperature, by the cascade.
    pub fn temperature(&self) -> Option<f64> {
        self.layer_settings()
            .find_map(|settings| settings.temperature)
            .or(self.app().temperature)
    }

    /// Nucleus sampling, by the cascade.
    pub fn top_p(&self) -> Option<f64> {
        self.layer_settings()
            .find_map(|settings| settings.top_p)
            .or(self.app().top_p)
    }

    /// Bounds on results of tool calls.
    pub fn limits(&self) -> Limits {
        Limits {
            max_tool_result_chars: self.app().max_tool_result_chars,
        }
    }

    /// The transcript without the open turn: the session's, or what was said last.
    pub fn messages(&self) -> &[Message] {
        match self.session() {
            Some(session) => session.messages(),
            None => &self.last,
        }
    }

    /// What the open turn has so far.
    pub fn turn_messages(&self) -> &[Message] {
        self.turn.as_ref().map_or(&[], |turn| &turn.messages)
    }

    /// Appends to the open turn: an answer, a partial one, or the results of its calls. Without an open turn nothing
    /// is recorded.
    pub fn record(&mut self, message: Message) {
        if let Some(turn) = self.turn.as_mut() {
            turn.messages.push(message);
        }
    }

    /// Ends the open turn and keeps it. Calls that nobody answered get an error for an answer, so that every
    /// transcript can be sent again; a question that got no answer at all is dropped. A session that is kept is
    /// written now, so that a crash loses nothing; what that did is returned.
    ///
    /// # Errors
    /// The session could not be written; the turn is kept in memory all the same.
    pub fn commit(&mut self) -> Result<Option<Saved>> {
        let Some(turn) = self.turn.take() else {
            return Ok(None);
        };
        let messages = answered(turn.messages);
        if messages.len() < 2 {
            return Ok(None);
        }
        self.keep(messages, turn.continues);
        self.autosave()
    }

    /// Ends the open turn and forgets it.
    pub fn abandon(&mut self) {
        self.turn = None;
    }

    /// Takes back the last exchange: question, tool rounds and answer. `None` when there is none.
    pub fn pop_last_exchange(&mut self) -> Option<Vec<Message>> {
        if let Some(session) = self.session.as_mut() {
            return session.pop_exchange();
        }
        (!self.last.is_empty()).then(|| std::mem::take(&mut self.last))
    }

    /// Takes back the last exchange and returns its question, to be asked again word for word (`.regenerate`).
    ///
    /// # Errors
    /// Nothing has been asked.
    pub fn regenerate_input(&mut self) -> Result<Input> {
        let exchange = self.pop_last_exchange();
        match exchange.and_then(|messages| messages.into_iter().next()) {
            Some(Message::User(parts)) => Ok(Input::verbatim(parts)),
            _ => Err(Error::user("there is no question to ask again")),
        }
    }

    /// What continues the last answer (`.continue`): the answer grows, nothing is added to the transcript.
    ///
    /// # Errors
    /// There is no answer.
    pub fn continue_input(&self) -> Result<Input> {
        if self.last_answer().is_none() {
            return Err(Error::user("there is no answer to continue"));
        }
        Ok(Input::continuing(CONTINUE))
    }

    fn user_message(&self, input: &Input) -> Message {
        let role = self.role().filter(|_| !input.continues());
        Message::User(input.parts(|text| match role {
            Some(role) => role.embed(text),
            None => text.to_owned(),
        }))
    }

    /// What precedes the turn: a session remembers; without one only `.continue` looks back.
    fn history(&self, continues: bool) -> &[Message] {
        if self.session().is_some() || continues {
            self.messages()
        } else {
            &[]
        }
    }

    fn check_images(&self, input: &Input) -> Result<()> {
        let has_image = input
            .attachments()
            .iter()
            .any(|part| matches!(part, Part::Image(_)));
        if !has_image {
            return Ok(());
        }
        let (provider, facts) = self.client_config()?;
        if facts.supports_vision {
            return Ok(());
        }
        Err(Error::user(format!(
            "model `{}:{}` takes no images",
            provider.name, facts.name
        ))
        .hint(format!(
            "choose another with `-m`, or set `supports_vision: true` for it in {}",
            self.paths().config_file().display()
        )))
    }

    fn keep(&mut self, messages: Vec<Message>, continues: bool) {
        let model = self.model().map(|model| model.to_string());
        let transcript = match self.session.as_mut() {
            Some(session) => {
                // A session stays with the model it began with, until `.model` says otherwise.
                session.settings.model = session.settings.model.take().or(model);
                session.messages().to_vec()
            }
            None => std::mem::take(&mut self.last),
        };
        let transcript = match (continues, self.session.is_some()) {
            (true, _) => continued(transcript, messages),
            (false, true) => {
                let mut transcript = transcript;
                transcript.extend(messages);
                transcript
            }
            (false, false) => messages,
        };
        match self.session.as_mut() {
            Some(session) => session.set_messages(transcript),
            None => self.last = transcript,
        }
    }

    fn autosave(&mut self) -> Result<Option<Saved>> {
        let keep = self.app.save_session;
        let Some(session) = self.session.as_mut() else {
            self.append_record()?;
            return Ok(None);
        };
        if session.keeps(keep) != Some(true) {
            return Ok(None);
        }
        self.save_session(None).map(Some)
    }

    /// `save: true` without a session: the exchange is appended to `messages.md`.
    fn append_record(&self) -> Result<()> {
        if !self.app.save {
            return Ok(());
        }
        let file = self.paths.config_dir().join("messages.md");
        let text = record(&self.last, self.model().map(|model| model.to_string()));
        append_private(&file, text.as_bytes()).map_err(|error| {
            Error::new(ErrorKind::Internal, error)
                .context(format!("cannot write `{}`", file.display()))
        })
    }
}

/// An exchange as Markdown.
fn record(messages: &[Message], model: Option<String>) -> String {
    let now = chrono::Local::now().format("%Y-%m-%d %H:%M:%S");
    let mut text = format!("# {now} {}\n\n", model.unwrap_or_default());
    for message in messages {
        match message {
            Message::User(parts) => {
                for part in parts {
                    match part {
                        Part::Text(said) => text.extend(["**user**\n\n", said, "\n\n"]),
                        Part::Image(image) => text.extend(["*", &image.mime_type, "*\n\n"]),
                    }
                }
            }
            Message::Assistant { text: said, .. } if !said.is_empty() => {
                text.extend(["**assistant**\n\n", said, "\n\n"]);
            }
            Message::Assistant { .. } | Message::Tool(_) => {}
        }
    }
    text
}

/// The last answer that says something.
pub(super) fn last_answer(messages: &[Message]) -> Option<&str> {
    messages.iter().rev().find_map(|message| match message {
        Message::Assistant { text, .. } if !text.is_empty() => Some(text.as_str()),
        _ => None,
    })
}

/// Every call answered, no empty message at the end.
fn answered(messages: Vec<Message>) -> Vec<Message> {
    let mut kept: Vec<Message> = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(message) = rest.next() {
        let calls = match &message {
            Message::Assistant { text, calls, .. } if text.is_empty() && calls.is_empty() => {
                continue;
            }
            Message::Assistant { calls, .. } => calls.clone(),
            Message::User(_) => Vec::new(),
            Message::Tool(_) => continue, // answers to nothing
        };
        kept.push(message);
        if calls.is_empty() {
            continue;
        }
        let given = match rest.next_if(|next| matches!(next, Message::Tool(_))) {
            Some(Message::Tool(results)) => results,
            _ => Vec::new(),
        };
        let answer = |call: crate::chat::ToolCall| {
            let found = given
                .iter()
                .find(|result| result.call.id == call.id)
                .cloned();
            found.unwrap_or_else(|| ToolResult {
                call,
                output: ToolOutput::error("cancelled before it was done"),
            })
        };
        kept.push(Message::Tool(calls.into_iter().map(answer).collect()));
    }
    kept
}

/// The transcript with its last answer continued by that of `turn`.
fn continued(mut transcript: Vec<Message>, turn: Vec<Message>) -> Vec<Message> {
    let more = match turn.as_slice() {
        [Message::User(_), Message::Assistant { text, calls, .. }] if calls.is_empty() => {
            text.clone()
        }
        _ => {
            transcript.extend(turn);
            return transcript;
        }
    };
    match transcript.last_mut() {
        Some(Message::Assistant { text, state, .. }) => {
            text.push_str(&more);
            *state = None; // it signs the part, not the whole
        }
        _ => transcript.extend(turn),
    }
    transcript
}

/// The functions a request declares. Where none may be called but the transcript has calls, they stay declared, since
/// some wires refuse such a transcript otherwise; what is no longer there is declared by its name alone.
fn offered(
    declared: &[FunctionDeclaration],
    messages: &[Message],
    may_call: bool,
) -> (Vec<FunctionDeclaration>, ToolChoice) {
    let may_call = may_call && !declared.is_empty();
    if may_call {
        return (declared.to_vec(), ToolChoice::Auto);
    }
    let called: BTreeSet<&str> = messages
        .iter()
        .flat_map(|message| match message {
            Message::Assistant { calls, .. } => calls.as_slice(),
            Message::User(_) | Message::Tool(_) => &[],
        })
        .map(|call| call.name.as_str())
        .collect();
    if called.is_empty() {
        return (Vec::new(), ToolChoice::Auto);
    }
    let mut tools = declared.to_vec();
    for name in called {
        if !tools.iter().any(|tool| tool.name == name) {
            tools.push(FunctionDeclaration {
                name: name.to_owned(),
                description: "Not available any more.".to_owned(),
                parameters: serde_json::json!({ "type": "object", "properties": {} }),
            });
        }
    }
    (tools, ToolChoice::None)
}

/// Leaves of the results of tool calls what can be read (`mcp_images: false`, `M-67`).
fn drop_tool_images(message: &mut Message) {
    if let Message::Tool(results) = message {
        for result in results {
            result.output.images.clear();
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
