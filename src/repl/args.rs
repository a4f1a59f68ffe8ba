//! The arguments of a command: what stands after its name → the command, or what is wrong with them.

use super::command::{
    EditTarget, ExitFrom, InfoTopic, Kept, ListTopic, McpCommand, Misuse, PromptCall, ReplCommand,
    Switch,
};
use crate::utils::{fuzzy, words};

type Parse<T> = Result<T, Misuse>;

/// What stands after a command's name.
pub(super) struct Rest<'a> {
    text: &'a str,
}

impl<'a> Rest<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.trim() }
    }

    fn words(&self) -> Parse<Vec<String>> {
        let words = words::split(self.text)?;
        Ok(words.into_iter().map(|word| word.text).collect())
    }

    /// No arguments.
    pub(super) fn none(&self) -> Parse<()> {
        at_most(&self.words()?, 0)
    }

    /// One argument or none.
    pub(super) fn optional(&self) -> Parse<Option<String>> {
        let words = self.words()?;
        at_most(&words, 1)?;
        Ok(words.into_iter().next())
    }

    /// Nothing or the one word that may be left out.
    pub(super) fn only_word(&self, word: &'static str) -> Parse<()> {
        match self.optional()? {
            Some(given) => one_of(&given, &[(word, ())]),
            None => Ok(()),
        }
    }

    /// The text as it stands, which must not be blank.
    pub(super) fn text(&self, what: &'static str) -> Parse<String> {
        if self.text.is_empty() {
            return Err(Misuse::Missing(what));
        }
        Ok(self.text.to_owned())
    }

    /// The first word and, as it stands, what follows; quotes that are open in what follows do not matter.
    fn first(&self) -> Parse<Option<(String, &'a str)>> {
        let partial = words::split_partial(self.text);
        if let Some(first) = partial.done.into_iter().next() {
            let after = self.text.get(first.span.end..).unwrap_or_default().trim();
            return Ok(Some((first.text, after)));
        }
        match partial.open {
            Some(error) => Err(error.into()),
            None if partial.last.span.is_empty() => Ok(None),
            None => Ok(Some((partial.last.text, ""))),
        }
    }

    /// A first word out of `known`, and the words after it.
    fn choice<T: Copy>(
        &self,
        known: &[(&'static str, T)],
        what: &'static str,
    ) -> Parse<(T, Vec<String>)> {
        let mut words = self.words()?.into_iter();
        let first = words.next().ok_or(Misuse::Missing(what))?;
        Ok((one_of(&first, known)?, words.collect()))
    }
}

fn at_most(words: &[String], count: usize) -> Parse<()> {
    match words.get(count) {
        Some(word) => Err(Misuse::Unexpected(word.clone())),
        None => Ok(()),
    }
}

fn at_least_one(words: Vec<String>, what: &'static str) -> Parse<Vec<String>> {
    if words.is_empty() {
        return Err(Misuse::Missing(what));
    }
    Ok(words)
}

fn one_of<T: Copy>(given: &str, known: &[(&'static str, T)]) -> Parse<T> {
    known
        .iter()
        .find(|(word, _)| *word == given)
        .map(|(_, value)| *value)
        .ok_or_else(|| Misuse::NotOneOf {
            given: given.to_owned(),
            known: fuzzy::alternatives(&known.iter().map(|(word, _)| *word).collect::<Vec<_>>()),
        })
}

pub(super) fn info(rest: &Rest<'_>) -> Parse<ReplCommand> {
    #[derive(Clone, Copy)]
    enum Topic {
        Role,
        Session,
        Agent,
        Tools,
        Mcp,
    }
    if rest.text.is_empty() {
        return Ok(ReplCommand::Info(InfoTopic::System));
    }
    let known = [
        ("role", Topic::Role),
        ("session", Topic::Session),
        ("agent", Topic::Agent),
        ("tools", Topic::Tools),
        ("mcp", Topic::Mcp),
    ];
    let (topic, words) = rest.choice(&known, "TOPIC")?;
    at_most(&words, usize::from(matches!(topic, Topic::Mcp)))?;
    Ok(ReplCommand::Info(match topic {
        Topic::Role => InfoTopic::Role,
        Topic::Session => InfoTopic::Session,
        Topic::Agent => InfoTopic::Agent,
        Topic::Tools => InfoTopic::Tools,
        Topic::Mcp => InfoTopic::Mcp(words.into_iter().next()),
    }))
}

pub(super) fn role(rest: &Rest<'_>) -> Parse<ReplCommand> {
    Ok(match rest.first()? {
        None => ReplCommand::Role {
            name: None,
            text: None,
        },
        Some((name, text)) => ReplCommand::Role {
            name: Some(name),
            text: (!text.is_empty()).then(|| text.to_owned()),
        },
    })
}

/// `[NAME [KEY=VALUE...]]`
pub(super) fn agent(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let mut words = rest.words()?.into_iter();
    let name = words.next();
    let mut variables = std::collections::BTreeMap::new();
    for word in words {
        match word.split_once('=').filter(|(key, _)| !key.is_empty()) {
            Some((key, value)) => variables.insert(key.to_owned(), value.to_owned()),
            None => return Err(Misuse::Unexpected(word)),
        };
    }
    Ok(ReplCommand::Agent { name, variables })
}

/// `[NAME [ARGUMENTS]]`: how the arguments are split depends on the macro.
pub(super) fn macro_call(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let (name, text) = match rest.first()? {
        None => (None, ""),
        Some((name, text)) => (Some(name), text),
    };
    Ok(ReplCommand::Macro {
        name,
        text: text.to_owned(),
    })
}

/// A role or a session, and its name if there is one.
pub(super) fn kept(rest: &Rest<'_>) -> Parse<(Kept, Option<String>)> {
    let known = [("role", Kept::Role), ("session", Kept::Session)];
    let (what, words) = rest.choice(&known, "role|session")?;
    at_most(&words, 1)?;
    Ok((what, words.into_iter().next()))
}

pub(super) fn edit(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let known = [
        ("config", EditTarget::Config),
        ("role", EditTarget::Role),
        ("session", EditTarget::Session),
    ];
    let (target, words) = rest.choice(&known, "config|role|session")?;
    at_most(&words, 0)?;
    Ok(ReplCommand::Edit(target))
}

/// `PATH... [-- TEXT]`: the text is taken as it stands, apostrophes included.
pub(super) fn file(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let partial = words::split_partial(rest.text);
    let source = |span: std::ops::Range<usize>| rest.text.get(span).unwrap_or_default();
    let separator = partial
        .done
        .iter()
        .chain([&partial.last])
        .find(|word| source(word.span.clone()) == "--")
        .map(|word| word.span.clone());
    let (paths, text) = match separator {
        Some(span) => (source(0..span.start), source(span.end..rest.text.len())),
        None => (rest.text, ""),
    };
    let paths = at_least_one(Rest::new(paths).words()?, "PATH")?;
    Ok(ReplCommand::File {
        paths,
        text: text.trim().to_owned(),
    })
}

/// `SERVER NAME [KEY=VALUE...]`: what is wrong after the name is for the handler to say, which knows the prompt.
pub(super) fn prompt(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let partial = words::split_partial(rest.text);
    let open = partial.open;
    let last = (open.is_none() && !partial.last.span.is_empty()).then_some(partial.last);
    let mut words = partial.done.into_iter().chain(last).map(|word| word.text);
    let mut named = |what| match (words.next(), open) {
        (Some(word), _) => Ok(word),
        (None, Some(error)) => Err(Misuse::Words(error)),
        (None, None) => Err(Misuse::Missing(what)),
    };
    let (server, name) = (named("SERVER")?, named("NAME")?);
    Ok(ReplCommand::Prompt(PromptCall {
        server,
        name,
        words: open.map_or_else(|| Ok(words.collect()), Err),
    }))
}

/// `KEY VALUE`: a value that is one quoted word loses its quotes, any other is taken as it stands.
pub(super) fn set(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let (key, value) = rest.first()?.ok_or(Misuse::Missing("KEY"))?;
    if value.is_empty() {
        return Err(Misuse::Missing("VALUE"));
    }
    let value = match words::split(value).as_deref() {
        Ok([word]) => word.text.clone(),
        _ => value.to_owned(),
    };
    Ok(ReplCommand::Set { key, value })
}

pub(super) fn list(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let known = [
        ("roles", ListTopic::Roles),
        ("sessions", ListTopic::Sessions),
        ("agents", ListTopic::Agents),
        ("macros", ListTopic::Macros),
        ("tools", ListTopic::Tools),
        ("mcp-servers", ListTopic::McpServers),
        ("prompts", ListTopic::Prompts),
    ];
    let (topic, words) = rest.choice(
        &known,
        "roles|sessions|agents|macros|tools|mcp-servers|prompts",
    )?;
    at_most(&words, 0)?;
    Ok(ReplCommand::List(topic))
}

pub(super) fn tool(rest: &Rest<'_>) -> Parse<ReplCommand> {
    let known = [("enable", Switch::On), ("disable", Switch::Off)];
    let (switch, names) = rest.choice(&known, "enable|disable")?;
    let names = at_least_one(names, "NAME")?;
    Ok(ReplCommand::Tool { switch, names })
}

pub(super) fn mcp(rest: &Rest<'_>) -> Parse<ReplCommand> {
    #[derive(Clone, Copy)]
    enum Verb {
        List,
        Switch(Switch),
        Restart,
    }
    let known = [
        ("list", Verb::List),
        ("enable", Verb::Switch(Switch::On)),
        ("disable", Verb::Switch(Switch::Off)),
        ("restart", Verb::Restart),
    ];
    let (verb, names) = rest.choice(&known, "list|enable|disable|restart")?;
    Ok(ReplCommand::Mcp(match verb {
        Verb::List => {
            at_most(&names, 0)?;
            McpCommand::List
        }
        Verb::Switch(switch) => McpCommand::Switch {
            switch,
            names: at_least_one(names, "NAME")?,
        },
        Verb::Restart => {
            at_most(&names, 1)?;
            let name = names.into_iter().next().ok_or(Misuse::Missing("NAME"))?;
            McpCommand::Restart(name)
        }
    }))
}

pub(super) fn exit(rest: &Rest<'_>) -> Parse<ReplCommand> {
    if rest.text.is_empty() {
        return Ok(ReplCommand::Exit(ExitFrom::Program));
    }
    let known = [
        ("role", ExitFrom::Role),
        ("session", ExitFrom::Session),
        ("agent", ExitFrom::Agent),
    ];
    let (from, words) = rest.choice(&known, "role|session|agent")?;
    at_most(&words, 0)?;
    Ok(ReplCommand::Exit(from))
}
