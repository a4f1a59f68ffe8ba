use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::chat::Arguments;

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.into()),
        name: "f".into(),
        arguments: Arguments::parse("{}"),
    }
}

fn text(text: &str) -> Signal {
    Signal::Event(Event::Text(text.into()))
}

fn called(id: &str) -> Signal {
    Signal::Event(Event::ToolCall(call(id)))
}

fn end(stop: StopReason) -> Signal {
    Signal::Event(Event::End {
        stop,
        usage: Some(Usage {
            input: 10,
            output: 2,
            cached: 1,
        }),
        state: None,
    })
}

fn answered(index: usize, value: &str) -> Signal {
    Signal::Answered {
        index,
        output: ToolOutput::ok(value),
    }
}

/// Feeds signals and returns the effects of the last.
fn feed(turn: &mut Turn, signals: impl IntoIterator<Item = Signal>) -> Vec<Effect> {
    let mut last = Vec::new();
    for signal in signals {
        last = turn.step(signal);
    }
    last
}

fn ending(effects: &[Effect]) -> Option<Ending> {
    effects.iter().find_map(|effect| match effect {
        Effect::Finish(ending) => Some(*ending),
        _ => None,
    })
}

fn answers(message: &Message) -> Vec<String> {
    match message {
        Message::Tool(results) => results
            .iter()
            .map(|result| result.output.to_text())
            .collect(),
        other => panic!("not tool results: {other:?}"),
    }
}

#[test]
fn plain_answer_ends_the_turn() {
    let mut turn = Turn::new(50);
    assert_eq!(
        turn.step(Signal::Start),
        [
            Effect::Show(Notice::Activity(Some(Activity::Thinking))),
            Effect::Send
        ]
    );
    assert_eq!(
        turn.step(text("hel")),
        [Effect::Show(Notice::Text("hel".into()))]
    );
    let effects = feed(&mut turn, [text("lo"), end(StopReason::Stop)]);
    assert_eq!(
        effects,
        [
            Effect::Show(Notice::TextEnd),
            Effect::Show(Notice::Activity(None)),
            Effect::Finish(Ending::Done)
        ]
    );
    assert_eq!(turn.messages(), [Message::assistant("hello")]);
    assert_eq!((turn.answer(), turn.rounds()), ("hello", 1));
    assert_eq!(turn.usage().unwrap().input, 10);
}

#[test]
fn calls_are_answered_in_call_order_and_the_next_round_sent() {
    let mut turn = Turn::new(50);
    let effects = feed(
        &mut turn,
        [
            Signal::Start,
            text("let me see"),
            called("a"),
            called("b"),
            end(StopReason::ToolCalls),
        ],
    );
    assert_eq!(effects[1], Effect::Dispatch(vec![call("a"), call("b")]));
    assert_eq!(turn.step(answered(1, "second")), []);
    assert_eq!(
        turn.step(answered(1, "again")),
        [],
        "a second answer is ignored"
    );
    let effects = turn.step(answered(0, "first"));
    assert_eq!(effects.last(), Some(&Effect::Send));
    assert_eq!(answers(&turn.messages()[1]), ["first", "second"]);
    let effects = feed(&mut turn, [text("done"), end(StopReason::Stop)]);
    assert_eq!(ending(&effects), Some(Ending::Done));
    assert_eq!(
        (turn.answer(), turn.rounds(), turn.messages().len()),
        ("done", 2, 3)
    );
    assert_eq!(
        turn.usage().unwrap(),
        Usage {
            input: 20,
            output: 4,
            cached: 2
        }
    );
}

#[test]
fn calls_count_whatever_the_stop_reason_says() {
    for stop in [
        StopReason::Stop,
        StopReason::Length,
        StopReason::Other("eos".into()),
    ] {
        let mut turn = Turn::new(50);
        let effects = feed(&mut turn, [Signal::Start, called("a"), end(stop)]);
        assert!(matches!(effects[1], Effect::Dispatch(_)));
    }
    let mut turn = Turn::new(50);
    let effects = feed(
        &mut turn,
        [
            Signal::Start,
            text("no"),
            called("a"),
            end(StopReason::Refused),
        ],
    );
    assert_eq!(ending(&effects), Some(Ending::Done));
    assert_eq!(turn.messages(), [Message::assistant("no")]);
}

#[test]
fn abort_while_streaming_keeps_the_text_and_no_calls() {
    let mut turn = Turn::new(50);
    let effects = feed(
        &mut turn,
        [
            Signal::Start,
            text("par"),
            text("tial"),
            called("a"),
            Signal::Abort,
        ],
    );
    assert_eq!(effects[0], Effect::CloseStream);
    assert_eq!(ending(&effects), Some(Ending::Interrupted));
    assert_eq!(turn.messages(), [Message::assistant("partial")]);
    assert_eq!(turn.answer(), "partial");
    assert_eq!(feed(&mut turn, [text("late"), end(StopReason::Stop)]), []);
    assert_eq!(turn.messages().len(), 1);
}

#[test]
fn abort_before_anything_was_said_records_nothing() {
    for signals in [vec![], vec![Signal::Start]] {
        let mut turn = Turn::new(50);
        feed(&mut turn, signals);
        assert_eq!(ending(&turn.step(Signal::Abort)), Some(Ending::Interrupted));
        assert!(turn.messages().is_empty());
    }
}

#[test]
fn abort_while_calling_answers_the_open_calls() {
    let mut turn = Turn::new(50);
    feed(
        &mut turn,
        [
            Signal::Start,
            called("a"),
            called("b"),
            end(StopReason::ToolCalls),
            answered(0, "here"),
        ],
    );
    let effects = turn.step(Signal::Abort);
    assert_eq!(effects[0], Effect::CancelCalls);
    assert_eq!(ending(&effects), Some(Ending::Interrupted));
    let cancelled = json!({"tool_call_error": "cancelled by the user"}).to_string();
    assert_eq!(answers(&turn.messages()[1]), ["here".to_owned(), cancelled]);
    assert_eq!(turn.step(answered(1, "late")), []);
}

#[test]
fn a_stream_without_an_end_runs_none_of_its_calls() {
    let mut turn = Turn::new(50);
    let effects = feed(
        &mut turn,
        [Signal::Start, text("so"), called("a"), Signal::StreamEnded],
    );
    assert_eq!(ending(&effects), Some(Ending::Truncated));
    assert!(
        effects
            .iter()
            .any(|e| matches!(e, Effect::Show(Notice::Warning(w)) if w.contains("ended early")))
    );
    assert!(!effects.iter().any(|e| matches!(e, Effect::Dispatch(_))));
    assert_eq!(turn.messages(), [Message::assistant("so")]);
}

#[test]
fn provider_failure_keeps_finished_rounds_and_partial_text() {
    let mut turn = Turn::new(50);
    let effects = feed(
        &mut turn,
        [
            Signal::Start,
            called("a"),
            end(StopReason::ToolCalls),
            answered(0, "x"),
            text("half"),
            Signal::StreamFailed,
        ],
    );
    assert_eq!(ending(&effects), Some(Ending::Failed));
    assert_eq!(turn.messages().len(), 3);
    assert_eq!(turn.messages()[2], Message::assistant("half"));
}

#[test]
fn round_limit_ends_the_turn_with_a_notice_and_answers() {
    let mut turn = Turn::new(3);
    turn.step(Signal::Start);
    let mut effects = Vec::new();
    for round in 0..3 {
        effects = feed(
            &mut turn,
            [called(&format!("c{round}")), end(StopReason::ToolCalls)],
        );
        if round < 2 {
            turn.step(answered(0, "ok"));
        }
    }
    assert_eq!(ending(&effects), Some(Ending::RoundLimit));
    assert!(
        effects
            .iter()
            .any(|e| matches!(e, Effect::Show(Notice::Warning(w)) if w.contains("3 rounds")))
    );
    assert!(answers(turn.messages().last().unwrap())[0].contains("not executed"));
    assert_eq!(turn.rounds(), 3);
}

#[test]
fn cut_refused_and_empty_answers_are_remarked_on() {
    let warning = |stop, said: &str| {
        let mut turn = Turn::new(1);
        turn.step(Signal::Start);
        if !said.is_empty() {
            turn.step(text(said));
        }
        let effects = turn.step(end(stop));
        effects.into_iter().find_map(|effect| match effect {
            Effect::Show(Notice::Warning(text) | Notice::Info(text)) => Some(text),
            _ => None,
        })
    };
    assert!(
        warning(StopReason::Length, "x")
            .unwrap()
            .contains("output limit")
    );
    assert!(
        warning(StopReason::Refused, "x")
            .unwrap()
            .contains("withheld")
    );
    assert!(
        warning(StopReason::Other("odd".into()), "x")
            .unwrap()
            .contains("`odd`")
    );
    assert!(warning(StopReason::Stop, "").unwrap().contains("empty"));
    assert_eq!(warning(StopReason::Stop, "x"), None);
}

#[test]
fn repeated_ids_are_made_unique() {
    let mut turn = Turn::new(5);
    let effects = feed(
        &mut turn,
        [
            Signal::Start,
            called("a"),
            called("a"),
            called("a-2"),
            called(""),
            called(""),
            end(StopReason::ToolCalls),
        ],
    );
    let Effect::Dispatch(calls) = &effects[1] else {
        panic!()
    };
    let ids: HashSet<_> = calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), 5);
    assert_eq!(calls[0].id.0, "a");
}

#[test]
fn a_flood_of_calls_is_bounded_and_still_answered() {
    let mut turn = Turn::new(5);
    turn.step(Signal::Start);
    for at in 0..1_000 {
        turn.step(called(&at.to_string()));
    }
    let effects = turn.step(end(StopReason::ToolCalls));
    let Effect::Dispatch(calls) = &effects[1] else {
        panic!()
    };
    assert_eq!(calls.len(), MAX_CALLS);
    let count = calls.len();
    let last = feed(&mut turn, (0..count).map(|at| answered(at, "x")));
    assert_eq!(last.last(), Some(&Effect::Send));
    let answers = answers(&turn.messages()[1]);
    assert_eq!(answers.len(), 1_000);
    assert!(answers[999].contains("fewer at a time"));
}

#[test]
fn an_endless_answer_is_stopped_and_its_text_kept() {
    let mut turn = Turn::new(5);
    turn.step(Signal::Start);
    let chunk = "🦊".repeat(1 << 18);
    let effects = (0..100)
        .map(|_| turn.step(text(&chunk)))
        .find(|effects| ending(effects).is_some())
        .expect("it ends");
    assert_eq!(effects[0], Effect::CloseStream);
    assert_eq!(ending(&effects), Some(Ending::Truncated));
    assert!(turn.answer().len() > 1 << 20 && turn.answer().len() <= MAX_TEXT);

    let mut turn = Turn::new(5);
    turn.step(Signal::Start);
    let effects = (0..5_000)
        .map(|at| turn.step(called(&at.to_string())))
        .find(|effects| ending(effects).is_some())
        .expect("it ends");
    assert_eq!(effects[0], Effect::CloseStream);
    assert!(turn.messages().is_empty());
}

fn any_signal() -> impl Strategy<Value = Signal> {
    let stop = prop_oneof![
        3 => Just(StopReason::ToolCalls),
        1 => Just(StopReason::Stop),
        1 => Just(StopReason::Length),
        1 => Just(StopReason::Refused),
        1 => Just(StopReason::Other("x".into())),
    ];
    prop_oneof![
        3 => Just(Signal::Start),
        4 => "[a-z]{0,3}".prop_map(|word| text(&word)),
        1 => Just(Signal::Event(Event::Reasoning("r".into()))),
        1 => Just(Signal::Event(Event::ToolCallStarted { name: "f".into() })),
        6 => "[ab]{0,1}".prop_map(|id| called(&id)),
        6 => stop.prop_map(end),
        6 => (0..4_usize).prop_map(|index| answered(index, "x")),
        1 => Just(Signal::StreamEnded),
        1 => Just(Signal::StreamFailed),
        1 => Just(Signal::Abort),
    ]
}

/// Calls and answers alternate, one answer for each call, in order, with ids of their own; no message is empty.
fn assert_legal(messages: &[Message]) {
    let mut open: Option<&Vec<ToolCall>> = None;
    for message in messages {
        match message {
            Message::Assistant { text, calls, .. } => {
                assert!(open.is_none(), "calls without answers");
                assert!(!text.is_empty() || !calls.is_empty(), "an empty message");
                let ids: HashSet<_> = calls.iter().map(|call| &call.id).collect();
                assert_eq!(ids.len(), calls.len(), "an id twice");
                open = (!calls.is_empty()).then_some(calls);
            }
            Message::Tool(results) => {
                let calls = open.take().expect("answers without calls");
                let answered: Vec<_> = results.iter().map(|result| result.call.clone()).collect();
                assert_eq!(calls, &answered);
            }
            Message::User(_) => panic!("the machine invents no user"),
        }
    }
    assert!(open.is_none(), "calls without answers at the end");
}

proptest! {
    #[test]
    fn any_signals_leave_a_legal_history(
        max_rounds in 0..5_u32,
        signals in proptest::collection::vec(any_signal(), 0..60),
    ) {
        let mut turn = Turn::new(max_rounds);
        let (mut sends, mut dispatched, mut finished) = (0, 0, 0);
        for signal in signals.into_iter().chain([Signal::Abort]) {
            let effects = turn.step(signal);
            prop_assert!(finished == 0 || effects.is_empty(), "something after the end");
            for effect in effects {
                match effect {
                    Effect::Send => sends += 1,
                    Effect::Dispatch(_) => dispatched += 1,
                    Effect::Finish(_) => finished += 1,
                    Effect::Show(_) | Effect::CloseStream | Effect::CancelCalls => {}
                }
            }
            assert_legal(turn.messages());
        }
        prop_assert_eq!(finished, 1);
        prop_assert!(sends <= max_rounds.max(1));
        prop_assert!(dispatched <= sends);
        prop_assert_eq!(turn.rounds(), sends);
    }
}
