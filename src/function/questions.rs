//! `user__*`: how an agent asks the person (`H-33`). A delegate's question waits its turn behind the others: one is
//! open at a time, and every one of them is asked at the root.

use serde_json::{Value, json};

use super::args::Args;
use super::env::DispatchEnv;
use super::error::FunctionError;
use crate::chat::{Activity, Answer, Arguments, FunctionDeclaration, Notice, Question, ToolOutput};
use crate::utils::abort::unless_aborted;
use crate::utils::text;

/// The most options a question has, and the longest text of one and of a question, in bytes.
const OPTIONS: usize = 100;
const OPTION: usize = 400;
const MESSAGE: usize = 4_096;

/// A question an agent may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserFunction {
    Select,
    Confirm,
    Input,
    Checkbox,
}

impl UserFunction {
    pub(super) const ALL: [Self; 4] = [Self::Select, Self::Confirm, Self::Input, Self::Checkbox];

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|function| function.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Select => "user__select",
            Self::Confirm => "user__confirm",
            Self::Input => "user__input",
            Self::Checkbox => "user__checkbox",
        }
    }

    pub(super) fn declaration(self) -> FunctionDeclaration {
        let message = json!({ "type": "string", "description": "The question, in one sentence." });
        let options = json!({
            "type": "array",
            "items": { "type": "string" },
            "description": "What there is to choose from.",
        });
        let (description, more, required): (_, Option<(&str, Value)>, &[&str]) = match self {
            Self::Select => (
                "Ask the user to choose one of several options. Only for what you cannot find out yourself.",
                Some(("options", options)),
                &["message", "options"],
            ),
            Self::Confirm => (
                "Ask the user a question that is answered with yes or no.",
                Some((
                    "default",
                    json!({ "type": "boolean", "description": "What Enter means; no when absent." }),
                )),
                &["message"],
            ),
            Self::Input => (
                "Ask the user for a line of text.",
                Some((
                    "default",
                    json!({ "type": "string", "description": "Offered as it stands." }),
                )),
                &["message"],
            ),
            Self::Checkbox => (
                "Ask the user to choose any number of options, also none.",
                Some(("options", options)),
                &["message", "options"],
            ),
        };
        let mut properties = serde_json::Map::from_iter([("message".to_owned(), message)]);
        properties.extend(more.map(|(name, schema)| (name.to_owned(), schema)));
        FunctionDeclaration {
            name: self.name().to_owned(),
            description: description.to_owned(),
            parameters: json!({ "type": "object", "properties": properties, "required": required }),
        }
    }
}

/// Asks and waits for the answer.
pub(super) async fn run(
    function: UserFunction,
    env: &DispatchEnv,
    arguments: &Arguments,
) -> Result<ToolOutput, FunctionError> {
    let schema = function.declaration().parameters;
    let args = Args::new(function.name(), arguments, &schema)?;
    let message = text::bounded(args.required_word("message")?, MESSAGE).into_owned();
    let mut options = Vec::new();
    let question = match function {
        UserFunction::Select => {
            options = read_options(&args)?;
            let options = shown(&options);
            Question::Select { message, options }
        }
        UserFunction::Checkbox => {
            options = read_options(&args)?;
            let options = shown(&options);
            Question::MultiSelect { message, options }
        }
        UserFunction::Confirm => Question::Confirm {
            message,
            default: args.flag("default")?,
        },
        UserFunction::Input => Question::Text {
            message,
            default: args.text("default")?.map(str::to_owned),
        },
    };
    let asked = async {
        let _one_at_a_time = env.session_approvals.asking.lock().await;
        env.sink.notice(Notice::Activity(None));
        env.ask.ask(question).await
    };
    let answer = unless_aborted(&env.abort, asked).await?;
    let name = function.name().to_owned();
    env.sink
        .notice(Notice::Activity(Some(Activity::Calling(name))));
    let chosen = |indices: &[usize]| -> Vec<&str> {
        indices
            .iter()
            .filter_map(|at| options.get(*at).copied())
            .collect()
    };
    Ok(ToolOutput::ok(match answer {
        Answer::Yes | Answer::Always => json!({ "answer": true }),
        Answer::No => json!({ "answer": false }),
        Answer::Text(text) => json!({ "answer": text }),
        Answer::Choices(indices) if function == UserFunction::Select => {
            json!({ "answer": chosen(&indices).first() })
        }
        Answer::Choices(indices) => json!({ "answer": chosen(&indices) }),
        Answer::Cancelled => {
            json!({ "answer": null, "note": "the user declined to answer; go on without it or stop" })
        }
        Answer::Interrupted => {
            env.abort.cancel();
            return Err(FunctionError::Cancelled);
        }
        Answer::Unavailable => {
            return Err(FunctionError::Refused(
                "not asked: there is no terminal to ask the user on; decide yourself and say what you assumed"
                    .to_owned(),
            ));
        }
    }))
}

fn read_options<'a>(args: &Args<'a>) -> Result<Vec<&'a str>, FunctionError> {
    let items = args.required_array("options")?;
    if items.is_empty() || items.len() > OPTIONS {
        return Err(FunctionError::argument(format!(
            "`options` must have between 1 and {OPTIONS} items, got {}",
            items.len()
        )));
    }
    items
        .iter()
        .map(|item| {
            item.as_str().ok_or_else(|| {
                FunctionError::argument("`options` must be strings, got something else among them")
            })
        })
        .collect()
}

fn shown(options: &[&str]) -> Vec<String> {
    let bounded = |option: &&str| text::bounded(option, OPTION).into_owned();
    options.iter().map(bounded).collect()
}
