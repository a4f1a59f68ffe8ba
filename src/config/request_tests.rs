//! Tests of the module beside.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat::{Arguments, CallId, Image, ImageSource, ProviderState, ToolCall};
use crate::config::testing::Home;
use crate::config::{AgentLayer, Choice, LayerSettings, Setting};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

fn ask(text: &str) -> Input {
    Input::from_str(text)
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: "fs_cat".to_owned(),
        arguments: Arguments::parse(r#"{"path": "ü"}"#),
    }
}

fn calls(ids: &[&str]) -> Message {
    Message::Assistant {
        text: String::new(),
        calls: ids.iter().map(|id| call(id)).collect(),
        state: None,
    }
}

fn results(ids: &[&str]) -> Message {
    let result = |id: &&str| ToolResult {
        call: call(id),
        output: ToolOutput::ok("inhalt"),
    };
    Message::Tool(ids.iter().map(result).collect())
}

fn texts(request: &Request) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(parts) => match parts.first() {
            Some(Part::Text(text)) => format!("u:{text}"),
            _ => "u".to_owned(),
        },
        Message::Assistant { text, calls, .. } => format!("a{}:{text}", calls.len()),
        Message::Tool(results) => format!("t{}", results.len()),
    };
    request.messages.iter().map(text).collect()
}

fn turn(context: &mut RequestContext, text: &str, messages: &[Message]) {
    context.begin(&ask(text)).unwrap();
    for message in messages {
        context.record(message.clone());
    }
    context.commit().unwrap();
}

#[test]
fn without_a_session_each_question_stands_alone() {
    let mut context = Home::new().context("stream: false\ntop_p: 0.5");
    turn(&mut context, "eins", &[Message::assistant("1")]);
    let request = context.request(&ask("zwei")).unwrap();
    assert_eq!(texts(&request), ["u:zwei"]);
    assert_eq!(request.system, None);
    assert_eq!(request.top_p, Some(0.5));
    assert!(!request.stream);
    assert_eq!(context.last_answer(), Some("1"));
}

#[test]
fn a_session_remembers_tool_rounds_in_their_grouping() {
    let mut context = Home::new().context("enabled_tools: fs_cat");
    context.enter_session(None).unwrap();
    context.begin(&ask("eins")).unwrap();
    assert_eq!(texts(&context.request(&ask("eins")).unwrap()), ["u:eins"]);
    context.record(calls(&["a", "b"]));
    context.record(results(&["a", "b"]));
    assert_eq!(
        texts(&context.request(&ask("eins")).unwrap()),
        ["u:eins", "a2:", "t2"]
    );
    assert!(
        context.messages().is_empty(),
        "the transcript waits for the turn to end"
    );
    context.record(Message::assistant("fertig"));
    context.commit().unwrap();
    let request = context.request(&ask("zwei")).unwrap();
    assert_eq!(
        texts(&request),
        ["u:eins", "a2:", "t2", "a0:fertig", "u:zwei"]
    );
    assert_eq!(request.tools.len(), 1);
    assert_eq!(request.tool_choice, ToolChoice::Auto);
}

#[test]
fn a_failed_turn_leaves_no_trace() {
    let mut context = Home::new().context("");
    context.enter_session(None).unwrap();
    turn(&mut context, "eins", &[Message::assistant("1")]);
    context.begin(&ask("zwei")).unwrap();
    context.record(calls(&["a"]));
    context.abandon();
    assert_eq!(context.messages().len(), 2);
    context.begin(&ask("drei")).unwrap();
    context.commit().unwrap();
    assert_eq!(
        context.messages().len(),
        2,
        "a question nobody answered is not kept"
    );
    context.record(Message::assistant("niemand fragte"));
    assert_eq!(context.commit().unwrap(), None);
    assert_eq!(context.messages().len(), 2);
}

#[test]
fn every_call_is_answered_whatever_was_recorded() {
    let mut context = Home::new().context("");
    context.enter_session(None).unwrap();
    turn(
        &mut context,
        "eins",
        &[calls(&["a", "b"]), results(&["b"]), calls(&["c"])],
    );
    let answers: Vec<(Vec<String>, Vec<bool>)> = context
        .messages()
        .iter()
        .filter_map(|message| match message {
            Message::Tool(results) => Some((
                results.iter().map(|r| r.call.id.0.clone()).collect(),
                results.iter().map(|r| r.output.is_error).collect(),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        answers,
        [
            (vec!["a".to_owned(), "b".to_owned()], vec![true, false]),
            (vec!["c".to_owned()], vec![true]),
        ]
    );
}

#[test]
fn tools_that_are_off_stay_declared_while_the_history_has_calls() {
    let mut context = Home::new().context("enabled_tools: fs_cat,fs_ls");
    context.enter_session(None).unwrap();
    let request = context.request(&ask("x")).unwrap();
    assert_eq!(request.tools.len(), 2);
    context.apply(Setting::FunctionCallingSupport(Some(false)));
    assert!(
        context.request(&ask("x")).unwrap().tools.is_empty(),
        "no history, no declarations"
    );
    turn(
        &mut context,
        "eins",
        &[calls(&["a"]), results(&["a"]), Message::assistant("1")],
    );
    let before = context.messages().to_vec();
    let request = context.request(&ask("x")).unwrap();
    assert_eq!(request.tool_choice, ToolChoice::None);
    assert_eq!(request.tools.len(), 2);
    assert_eq!(
        request.messages.get(..before.len()).unwrap(),
        before,
        "the history is whole"
    );
    // Also when the tool that was called is no longer selected, or the model calls none.
    context.apply(Setting::FunctionCallingSupport(None));
    context.apply(Setting::EnabledTools(Some(Choice::None)));
    let request = context.request(&ask("x")).unwrap();
    assert_eq!(
        (request.tools.len(), request.tool_choice),
        (1, ToolChoice::None)
    );
    assert_eq!(request.tools[0].name, "fs_cat");
    context.set_model("local:mute").unwrap();
    assert_eq!(
        context.request(&ask("x")).unwrap().tool_choice,
        ToolChoice::None
    );
}

#[test]
fn a_template_goes_around_what_is_said_and_is_remembered_so() {
    let home = Home::new();
    home.write("roles/t.md", "Übersetze: __INPUT__");
    let mut context = home.context("");
    context.use_role("t").unwrap();
    context.enter_session(None).unwrap();
    turn(
        &mut context,
        "__INPUT__ {{__os__}}",
        &[Message::assistant("1")],
    );
    assert_eq!(
        context.messages()[0],
        Message::user("Übersetze: __INPUT__ {{__os__}}")
    );
    let input = context.regenerate_input().unwrap();
    assert!(context.messages().is_empty());
    let request = context.request(&input).unwrap();
    assert_eq!(
        texts(&request),
        ["u:Übersetze: __INPUT__ {{__os__}}"],
        "once, not twice"
    );
}

#[test]
fn regenerating_asks_the_same_again() {
    let mut context = Home::new().context("model: local:eyes");
    assert!(context.regenerate_input().is_err());
    let mut input = ask("sieh");
    input.attach("x.png", PNG.to_vec()).unwrap();
    context.begin(&input).unwrap();
    let said = context.turn_messages().to_vec();
    context.record(Message::assistant("1"));
    context.commit().unwrap();
    let again = context.regenerate_input().unwrap();
    context.begin(&again).unwrap();
    assert_eq!(context.turn_messages(), said);
}

#[test]
fn continuing_grows_the_last_answer() {
    for session in [false, true] {
        let mut context = Home::new().context("");
        if session {
            context.enter_session(None).unwrap();
        }
        assert!(context.continue_input().is_err());
        let state = ProviderState {
            provider: "p".into(),
            model: "m".into(),
            data: json!(1),
        };
        let answer = Message::Assistant {
            text: "Anf".into(),
            calls: Vec::new(),
            state: Some(state),
        };
        turn(&mut context, "eins", &[answer]);
        let input = context.continue_input().unwrap();
        context.begin(&input).unwrap();
        let request = context.request(&input).unwrap();
        assert_eq!(texts(&request).get(..2).unwrap(), ["u:eins", "a0:Anf"]);
        assert_eq!(request.messages.len(), 3);
        context.record(Message::assistant("ang"));
        context.commit().unwrap();
        assert_eq!(
            context.messages(),
            [Message::user("eins"), Message::assistant("Anfang")]
        );
    }
}

#[test]
fn undo_takes_one_exchange() {
    let mut context = Home::new().context("");
    context.enter_session(None).unwrap();
    turn(&mut context, "eins", &[Message::assistant("1")]);
    turn(
        &mut context,
        "zwei",
        &[calls(&["a"]), results(&["a"]), Message::assistant("2")],
    );
    assert_eq!(context.pop_last_exchange().unwrap().len(), 4);
    assert_eq!(context.pop_last_exchange().unwrap().len(), 2);
    assert_eq!(context.pop_last_exchange(), None);
}

#[test]
fn images_need_a_model_that_sees() {
    let mut context = Home::new().context("");
    let mut input = ask("sieh");
    input.attach("x.png", PNG.to_vec()).unwrap();
    let error = context.begin(&input).unwrap_err();
    assert!(
        error.to_string().contains("`local:smol` takes no images"),
        "{error:?}"
    );
    context.set_model("local:eyes").unwrap();
    context.begin(&input).unwrap();
    assert!(ask("").is_empty());
    assert!(context.begin(&ask(" \n")).is_err());
}

#[test]
fn images_of_tools_can_be_switched_off() {
    let mut context = Home::new().context("model: local:eyes");
    context.enter_session(None).unwrap();
    let mut answered = results(&["a"]);
    if let Message::Tool(results) = &mut answered {
        results[0].output.images = vec![
            Image {
                mime_type: "image/png".into(),
                source: ImageSource::File(PathBuf::from("/cache/x.png")),
            },
            Image {
                mime_type: "image/png".into(),
                source: ImageSource::Bytes(Arc::from(PNG)),
            },
        ];
    }
    turn(
        &mut context,
        "eins",
        &[calls(&["a"]), answered, Message::assistant("1")],
    );
    let images = |context: &RequestContext| {
        let request = context.request(&ask("x")).unwrap();
        let count = |message: &Message| match message {
            Message::Tool(results) => results[0].output.images.len(),
            _ => 0,
        };
        request.messages.iter().map(count).sum::<usize>()
    };
    assert_eq!(images(&context), 2);
    context.apply(Setting::McpImages(Some(false)));
    assert_eq!(images(&context), 0);
}

#[test]
fn the_system_prompt_is_the_agents_then_the_roles() {
    let mut context = Home::new().context("");
    context.use_temp_role("Rolle").unwrap();
    assert_eq!(context.system().as_deref(), Some("Rolle"));
    context.set_agent(Some(AgentLayer {
        name: "a".into(),
        instructions: "Agent".into(),
        settings: LayerSettings {
            temperature: Some(0.4),
            ..LayerSettings::default()
        },
        ..AgentLayer::default()
    }));
    assert_eq!(context.system().as_deref(), Some("Agent"));
    assert_eq!(context.temperature(), Some(0.4));
}

#[test]
fn a_session_keeps_the_model_it_began_with() {
    let home = Home::new();
    let mut context = home.context("model: local:eyes");
    context.enter_session(Some("s")).unwrap();
    turn(&mut context, "eins", &[Message::assistant("1")]);
    context.save_session(None).unwrap();
    let mut other = home.context("model: local:mute");
    other.enter_session(Some("s")).unwrap();
    assert_eq!(other.model().unwrap().model, "eyes");
    home.write("roles/r.md", "---\nmodel: other:only\n---\nx");
    other.use_role("r").unwrap();
    assert_eq!(
        other.model().unwrap().model,
        "only",
        "a role that names a model means it"
    );
    other.set_model("local:smol").unwrap();
    assert_eq!(
        other.model().unwrap().model,
        "smol",
        "and `.model` after it too"
    );
}

#[test]
fn saving_without_a_session_appends_to_the_record() {
    let home = Home::new();
    let mut context = home.context("save: true");
    turn(&mut context, "Frage ü", &[Message::assistant("Antwort")]);
    turn(
        &mut context,
        "zwei",
        &[calls(&["a"]), results(&["a"]), Message::assistant("2")],
    );
    let text = std::fs::read_to_string(home.paths.config_dir().join("messages.md")).unwrap();
    assert!(
        text.contains("Frage ü") && text.contains("Antwort") && text.contains("local:smol"),
        "{text}"
    );
    assert_eq!(text.matches("**assistant**").count(), 2);
}

#[test]
fn the_record_keeps_what_it_holds_whatever_that_is() {
    let home = Home::new();
    let mut context = home.context("save: true");
    let file = home.paths.config_dir().join("messages.md");
    std::fs::create_dir_all(home.paths.config_dir()).unwrap();
    std::fs::write(&file, b"Latin-1: \xe9\n").unwrap();
    turn(&mut context, "Frage", &[Message::assistant("Antwort")]);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"Latin-1: \xe9\n# "), "{bytes:?}");
    assert!(bytes.ends_with(b"Antwort\n\n"), "{bytes:?}");
}

fn any_recorded() -> impl Strategy<Value = Vec<Message>> {
    let ids = || proptest::collection::vec("[a-e]", 0..4);
    let message = prop_oneof![
        ".{0,5}".prop_map(Message::assistant),
        ids().prop_map(|ids| calls(&ids.iter().map(String::as_str).collect::<Vec<_>>())),
        ids().prop_map(|ids| results(&ids.iter().map(String::as_str).collect::<Vec<_>>())),
        ".{0,5}".prop_map(Message::user),
    ];
    proptest::collection::vec(message, 0..8)
}

proptest! {
    #[test]
    fn whatever_is_recorded_can_be_sent_again(recorded in any_recorded()) {
        let mut context = Home::new().context("");
        context.enter_session(None).unwrap();
        turn(&mut context, "eins", &recorded);
        let messages = context.messages();
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::Assistant { calls, .. } if !calls.is_empty() => {
                    let Some(Message::Tool(results)) = messages.get(index + 1) else {
                        return Err(TestCaseError::fail(format!("{messages:#?}")));
                    };
                    let answered: Vec<_> = results.iter().map(|r| r.call.clone()).collect();
                    prop_assert_eq!(&answered, calls);
                }
                Message::Tool(_) => {
                    let before = messages.get(index - 1);
                    let asked = matches!(before, Some(Message::Assistant { calls, .. }) if !calls.is_empty());
                    prop_assert!(asked, "{:#?}", messages);
                }
                Message::Assistant { .. } | Message::User(_) => {}
            }
        }
    }
}
