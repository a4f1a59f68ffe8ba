//! What each decoder makes of answers, right ones and broken ones.

use serde_json::{Value, json};

use super::super::attach::Images;
use super::super::config::ModelFacts;
use super::super::sse::Framing;
use super::{Decoder, Fault, Outgoing, Wire};
use crate::chat::{Arguments, Event, FunctionDeclaration, Request, StopReason, ToolCall, Usage};

/// Feeds `bytes` in pieces of `size` and ends the stream.
fn decode_in(wire: Wire, bytes: &[u8], size: usize) -> (Vec<Event>, Result<(), Fault>) {
    let request = Request {
        tools: vec![FunctionDeclaration {
            name: "get weather".to_owned(),
            description: String::new(),
            parameters: json!({}),
        }],
        ..Request::default()
    };
    let model = ModelFacts::named("m");
    let images = Images::default();
    let mut decoder = Decoder::new(
        wire,
        &Outgoing {
            request: &request,
            provider: "p",
            model: &model,
            images: &images,
            host: "h",
        },
    );
    let mut framing = Framing::default();
    let mut events = Vec::new();
    let mut run = || {
        for chunk in bytes.chunks(size) {
            let mut frames = Vec::new();
            framing.feed(chunk, &mut frames)?;
            for frame in &frames {
                decoder.frame(frame, &mut events)?;
            }
        }
        let mut frames = Vec::new();
        framing.finish(&mut frames);
        for frame in &frames {
            decoder.frame(frame, &mut events)?;
        }
        decoder.finish(&mut events)
    };
    let result = run();
    (events, result)
}

fn decode(wire: Wire, text: &str) -> (Vec<Event>, Result<(), Fault>) {
    decode_in(wire, text.as_bytes(), usize::MAX)
}

fn good(wire: Wire, text: &str) -> Vec<Event> {
    let (events, result) = decode(wire, text);
    assert_eq!(result, Ok(()), "{events:?}");
    events
}

fn sse(events: &[Value]) -> String {
    events.iter().fold(String::new(), |text, event| {
        text + "data: " + &event.to_string() + "\n\n"
    })
}

fn text_of(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn reasoning_of(events: &[Event]) -> String {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Reasoning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn calls_of(events: &[Event]) -> Vec<ToolCall> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCall(call) => Some(call.clone()),
            _ => None,
        })
        .collect()
}

fn end_of(events: &[Event]) -> (StopReason, Option<Usage>, Option<Value>) {
    match events.last() {
        Some(Event::End { stop, usage, state }) => (
            stop.clone(),
            *usage,
            state.as_ref().map(|state| state.data.clone()),
        ),
        other => panic!("no end but {other:?}"),
    }
}

fn chat_call(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({ "type": "function", "function": { "arguments": arguments } });
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] })
}

fn chat_end(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn chat_text(text: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "content": text } }] })
}

#[test]
fn chat_text_reasoning_two_calls_and_usage() {
    let events = good(
        Wire::OpenAiChat,
        &(sse(&[
            json!({ "choices": [{ "delta": { "role": "assistant", "content": null } }] }),
            json!({ "choices": [{ "delta": { "reasoning_content": "hm" } }] }),
            chat_text("look"),
            chat_call(Some(0), Some("c1"), Some("a"), ""),
            chat_call(Some(0), None, None, "{\"x\""),
            chat_call(Some(1), Some("c2"), Some("b"), "{}"),
            chat_call(Some(0), None, None, ":1}"),
            chat_end("tool_calls"),
            json!({ "choices": [], "usage": { "prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": { "cached_tokens": 3 } } }),
        ]) + "data: [DONE]\n\n"),
    );
    assert_eq!(
        (text_of(&events), reasoning_of(&events)),
        ("look".to_owned(), "hm".to_owned())
    );
    let calls = calls_of(&events);
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (calls[0].id.0.as_str(), calls[0].arguments.to_text()),
        ("c1", "{\"x\":1}".to_owned())
    );
    assert_eq!(
        (calls[1].id.0.as_str(), calls[1].name.as_str()),
        ("c2", "b")
    );
    assert!(events.contains(&Event::ToolCallStarted {
        name: "a".to_owned()
    }));
    let usage = Usage {
        input: 9,
        output: 4,
        cached: 3,
    };
    assert_eq!(end_of(&events), (StopReason::ToolCalls, Some(usage), None));
}

#[test]
fn chat_calls_without_an_index_are_calls() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(None, Some("c1"), Some("a"), "{\"n\":1}"),
            chat_call(None, Some("c2"), Some("a"), "{\"n\":"),
            chat_call(None, None, None, "2}"),
            chat_end("tool_calls"),
        ]),
    );
    let texts: Vec<_> = calls_of(&events)
        .iter()
        .map(|call| call.arguments.to_text())
        .collect();
    assert_eq!(texts, ["{\"n\":1}", "{\"n\":2}"]);
}

#[test]
fn chat_a_new_id_on_a_used_index_is_a_new_call() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(Some(0), Some("c1"), Some("a"), "{\"n\":1}"),
            chat_call(Some(0), Some("c2"), Some("a"), "{\"n\":2}"),
            chat_end("tool_calls"),
        ]),
    );
    let ids: Vec<_> = calls_of(&events)
        .iter()
        .map(|call| call.id.0.clone())
        .collect();
    assert_eq!(ids, ["c1", "c2"]);
}

#[test]
fn chat_calls_without_index_and_id_get_ids_of_their_own() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(None, None, Some("a"), "{\"n\":1}"),
            chat_call(None, None, Some("a"), "{\"n\":2}"),
            chat_end("stop"),
        ]),
    );
    let calls = calls_of(&events);
    assert_eq!(calls.len(), 2);
    assert!(
        calls[0].id != calls[1].id && calls[0].id.0.starts_with("call_"),
        "{calls:?}"
    );
    assert_eq!(end_of(&events).0, StopReason::ToolCalls);
}

#[test]
fn chat_a_huge_index_allocates_nothing() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(Some(400_000_000), Some("c"), Some("a"), "{}"),
            chat_call(Some(u64::MAX), Some("d"), Some("a"), "{}"),
            chat_end("tool_calls"),
        ]),
    );
    assert_eq!(calls_of(&events).len(), 2);
}

#[test]
fn chat_arguments_that_are_no_object_are_kept_as_written() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(Some(0), Some("c"), Some("a"), "{\"x\": "),
            chat_end("length"),
        ]),
    );
    assert_eq!(
        calls_of(&events)[0].arguments,
        Arguments::Malformed("{\"x\": ".to_owned())
    );
    assert_eq!(end_of(&events).0, StopReason::Length);
}

#[test]
fn the_number_of_calls_is_bounded() {
    let many: Vec<Value> = (0..300)
        .map(|n| chat_call(Some(n), Some(&format!("c{n}")), Some("a"), "{}"))
        .collect();
    let (_, result) = decode(Wire::OpenAiChat, &sse(&many));
    assert!(matches!(result, Err(Fault::TooLarge(_))), "{result:?}");
}

#[test]
fn the_arguments_of_calls_are_bounded() {
    let piece = "x".repeat(1 << 20);
    let mut parts = vec![chat_call(Some(0), Some("c"), Some("a"), "")];
    parts.extend((0..17).map(|_| chat_call(Some(0), None, None, &piece)));
    let (_, result) = decode(Wire::OpenAiChat, &sse(&parts));
    assert!(matches!(result, Err(Fault::TooLarge(_))), "{result:?}");
}

#[test]
fn a_stream_that_is_cut_is_truncated_and_keeps_its_text() {
    let cases = [
        (Wire::OpenAiChat, sse(&[chat_text("half an ans")])),
        (
            Wire::Responses,
            sse(&[json!({ "type": "response.output_text.delta", "delta": "half an ans" })]),
        ),
        (
            Wire::Anthropic,
            sse(&[
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "half an ans" } }),
            ]),
        ),
        (
            Wire::Gemini,
            sse(&[
                json!({ "candidates": [{ "content": { "parts": [{ "text": "half an ans" }] } }] }),
            ]),
        ),
    ];
    for (wire, stream) in cases {
        let (events, result) = decode(wire, &stream);
        assert_eq!(text_of(&events), "half an ans", "{wire:?}");
        assert!(
            matches!(result, Err(Fault::Truncated(_))),
            "{wire:?}: {result:?}"
        );
    }
}

#[test]
fn an_empty_answer_is_truncated() {
    for wire in [
        Wire::OpenAiChat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
    ] {
        for nothing in ["", "\n\n", ": keep-alive\n\n", "data: {}\n\n", "{}"] {
            let (_, result) = decode(wire, nothing);
            assert!(
                matches!(result, Err(Fault::Truncated(_))),
                "{wire:?} {nothing:?}: {result:?}"
            );
        }
    }
}

#[test]
fn a_finish_reason_without_done_is_an_end() {
    let events = good(
        Wire::OpenAiChat,
        &sse(&[chat_text("all of it"), chat_end("stop")]),
    );
    assert_eq!(
        (text_of(&events), end_of(&events).0),
        ("all of it".to_owned(), StopReason::Stop)
    );
}

#[test]
fn done_without_a_finish_reason_is_an_end() {
    let events = good(
        Wire::OpenAiChat,
        &(sse(&[chat_text("all of it")]) + "data: [DONE]"),
    );
    assert_eq!(
        (text_of(&events), end_of(&events).0),
        ("all of it".to_owned(), StopReason::Stop)
    );
}

#[test]
fn an_unknown_finish_reason_is_kept() {
    let events = good(Wire::OpenAiChat, &sse(&[chat_text("x"), chat_end("bored")]));
    assert_eq!(end_of(&events).0, StopReason::Other("bored".to_owned()));
}

#[test]
fn an_error_inside_an_answer_is_an_error_on_every_wire() {
    let error = json!({ "error": { "message": "boom", "type": "overloaded_error" } });
    let expected = Err(Fault::Reported {
        message: "boom".to_owned(),
        overflow: false,
        retryable: true,
    });
    for wire in [
        Wire::OpenAiChat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
    ] {
        for text in [
            format!("data: {error}\n\n"),
            format!("event: error\ndata: {error}\n\n"),
            format!("data: {{}}\n\n{error}\n"),
            format!("{error}\n"),
            format!("[{error}]"),
        ] {
            assert_eq!(decode(wire, &text).1, expected, "{wire:?} {text}");
        }
        let (_, plain) = decode(wire, "data: {\"error\":\"boom\"}\n\n");
        assert!(
            matches!(plain, Err(Fault::Reported { message, retryable: false, .. }) if message == "boom")
        );
    }
    let failed = json!({ "type": "response.failed", "response": { "error": { "code": "server_error", "message": "boom" } } });
    assert_eq!(decode(Wire::Responses, &sse(&[failed])).1, expected);
    let flat = json!({ "type": "error", "code": "server_error", "message": "boom" });
    assert_eq!(decode(Wire::Responses, &sse(&[flat])).1, expected);
    let in_choice = json!({ "choices": [{ "error": { "message": "boom", "code": 502 }, "finish_reason": "error" }] });
    assert_eq!(decode(Wire::OpenAiChat, &sse(&[in_choice])).1, expected);
}

#[test]
fn an_error_line_after_lines_of_json_is_an_error() {
    let (_, result) = decode(
        Wire::OpenAiChat,
        "{\"message\":{\"role\":\"assistant\",\"content\":\"par\"},\"done\":false}\n{\"error\":\"unexpected EOF\"}\n",
    );
    assert!(matches!(result, Err(Fault::Reported { message, .. }) if message == "unexpected EOF"));
}

#[test]
fn an_overflow_is_recognised_in_every_providers_words() {
    for error in [
        json!({ "code": "context_length_exceeded", "message": "too long" }),
        json!({ "type": "exceed_context_size_error", "message": "the request exceeds the available context size" }),
        json!({ "type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum" }),
        json!({ "code": 400, "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." }),
        json!({ "message": "This model's maximum context length is 8192 tokens." }),
    ] {
        let (_, result) = decode(Wire::OpenAiChat, &sse(&[json!({ "error": error })]));
        assert!(
            matches!(result, Err(Fault::Reported { overflow: true, .. })),
            "{error}"
        );
    }
}

#[test]
fn a_json_answer_to_a_streaming_request_is_understood_on_every_wire() {
    let chat = json!({ "choices": [{ "message": { "role": "assistant", "content": "hello", "tool_calls": [
        { "id": "c1", "type": "function", "function": { "name": "a", "arguments": "{\"x\":1}" } },
        { "id": "c2", "type": "function", "function": { "name": "a", "arguments": { "x": 2 } } },
    ] }, "finish_reason": "tool_calls" }], "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
    let responses = json!({ "object": "response", "status": "completed", "error": null, "output": [
        { "type": "message", "content": [{ "type": "output_text", "text": "hello" }] },
        { "type": "function_call", "call_id": "c1", "name": "a", "arguments": "{\"x\":1}" },
        { "type": "function_call", "call_id": "c2", "name": "a", "arguments": "{\"x\":2}" },
    ], "usage": { "input_tokens": 1, "output_tokens": 2 } });
    let anthropic = json!({ "type": "message", "content": [
        { "type": "text", "text": "hello" },
        { "type": "tool_use", "id": "c1", "name": "a", "input": { "x": 1 } },
        { "type": "tool_use", "id": "c2", "name": "a", "input": { "x": 2 } },
    ], "stop_reason": "tool_use", "usage": { "input_tokens": 1, "output_tokens": 2 } });
    let gemini = json!({ "candidates": [{ "content": { "parts": [
        { "text": "hello" },
        { "functionCall": { "id": "c1", "name": "a", "args": { "x": 1 } } },
        { "functionCall": { "id": "c2", "name": "a", "args": { "x": 2 } } },
    ] }, "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 2 } });
    for (wire, answer) in [
        (Wire::OpenAiChat, chat),
        (Wire::Responses, responses),
        (Wire::Anthropic, anthropic),
        (Wire::Gemini, gemini),
    ] {
        let pretty = serde_json::to_string_pretty(&answer).unwrap();
        for text in [
            answer.to_string(),
            pretty.clone(),
            pretty.replace('\n', "\r\n"),
            format!("\u{feff}\n {answer}\n"),
        ] {
            let events = good(wire, &text);
            assert_eq!(text_of(&events), "hello", "{wire:?}");
            let calls = calls_of(&events);
            let ids: Vec<_> = calls.iter().map(|call| call.id.0.as_str()).collect();
            assert_eq!(ids, ["c1", "c2"], "{wire:?}");
            assert_eq!(calls[1].arguments.to_text(), "{\"x\":2}", "{wire:?}");
            let usage = Usage {
                input: 1,
                output: 2,
                cached: 0,
            };
            assert_eq!(
                end_of(&events),
                (StopReason::ToolCalls, Some(usage), None),
                "{wire:?}"
            );
        }
    }
}

#[test]
fn responses_streams_text_calls_and_reasoning_to_replay() {
    let events = good(
        Wire::Responses,
        &sse(&[
            json!({ "type": "response.created", "response": { "error": null } }),
            json!({ "type": "response.reasoning_summary_text.delta", "delta": "hm" }),
            json!({ "type": "response.output_item.done", "item": { "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "E" } }),
            json!({ "type": "response.output_text.delta", "delta": "hel" }),
            json!({ "type": "response.output_text.delta", "delta": "lo" }),
            json!({ "type": "response.output_item.done", "item": { "type": "message", "content": [{ "type": "output_text", "text": "hello" }] } }),
            json!({ "type": "response.output_item.added", "item": { "id": "fc_1", "type": "function_call", "call_id": "c1", "name": "a", "arguments": "" } }),
            json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{\"x\":" }),
            json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "1}" }),
            json!({ "type": "response.output_item.done", "item": { "id": "fc_1", "type": "function_call", "call_id": "c1", "name": "a", "arguments": "{\"x\":1}" } }),
            json!({ "type": "response.future_event", "anything": 1 }),
            json!({ "type": "response.completed", "response": { "error": null, "usage": { "input_tokens": 5, "output_tokens": 6, "input_tokens_details": { "cached_tokens": 2 } } } }),
        ]),
    );
    assert_eq!(
        (text_of(&events), reasoning_of(&events)),
        ("hello".to_owned(), "hm".to_owned())
    );
    assert_eq!(calls_of(&events)[0].arguments.to_text(), "{\"x\":1}");
    let (stop, usage, state) = end_of(&events);
    assert_eq!(
        (stop, usage),
        (
            StopReason::ToolCalls,
            Some(Usage {
                input: 5,
                output: 6,
                cached: 2
            })
        )
    );
    assert_eq!(
        state.unwrap(),
        json!({ "items": [
            { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "hm" }], "encrypted_content": "E" },
            { "type": "text" },
            { "type": "call" },
        ] })
    );
}

#[test]
fn responses_incomplete_is_a_cut_answer() {
    let events = good(
        Wire::Responses,
        &sse(&[
            json!({ "type": "response.output_text.delta", "delta": "hel" }),
            json!({ "type": "response.incomplete", "response": { "incomplete_details": { "reason": "max_output_tokens" } } }),
        ]),
    );
    assert_eq!(end_of(&events).0, StopReason::Length);
}

#[test]
fn anthropic_streams_thinking_to_replay_and_parallel_calls() {
    let events = good(
        Wire::Anthropic,
        &sse(&[
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 1 } } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "hm" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "sig" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "redacted_thinking", "data": "R" } }),
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "c1", "name": "a" } }),
            json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "input_json_delta", "partial_json": "{\"x\":1}" } }),
            json!({ "type": "content_block_stop", "index": 2 }),
            json!({ "type": "content_block_start", "index": 3, "content_block": { "type": "tool_use", "id": "c2", "name": "b", "input": {} } }),
            json!({ "type": "content_block_stop", "index": 3 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 7 } }),
            json!({ "type": "message_stop" }),
        ]),
    );
    assert_eq!(reasoning_of(&events), "hm");
    let calls = calls_of(&events);
    assert_eq!(
        (calls.len(), calls[0].arguments.to_text()),
        (2, "{\"x\":1}".to_owned())
    );
    assert_eq!(calls[1].arguments.to_text(), "{}");
    let (stop, usage, state) = end_of(&events);
    assert_eq!(
        (stop, usage),
        (
            StopReason::ToolCalls,
            Some(Usage {
                input: 13,
                output: 7,
                cached: 10
            })
        )
    );
    assert_eq!(
        state.unwrap(),
        json!({ "blocks": [
            { "type": "thinking", "thinking": "hm", "signature": "sig" },
            { "type": "redacted_thinking", "data": "R" },
            { "type": "call" },
            { "type": "call" },
        ] })
    );
}

#[test]
fn anthropic_unknown_blocks_are_skipped_without_loss_of_text() {
    let events = good(
        Wire::Anthropic,
        &sse(&[
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{\"q\":1}" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "hello" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "citations_delta", "citation": {} } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": " world" } }),
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 5 } }),
            json!({ "type": "message_stop" }),
        ]),
    );
    assert_eq!(text_of(&events), "hello world");
    assert!(calls_of(&events).is_empty());
    assert_eq!(end_of(&events).0, StopReason::Stop);
}

#[test]
fn gemini_streams_thoughts_signatures_and_calls_without_ids() {
    let events = good(
        Wire::Gemini,
        &sse(&[
            json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "hm", "thought": true }] } }] }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "look" }] } }] }),
            json!({ "candidates": [{ "content": { "parts": [
                { "functionCall": { "name": "a", "args": { "x": 1 } }, "thoughtSignature": "s1" },
                { "functionCall": { "name": "a", "args": { "x": 1 } } },
            ] }, "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 4, "cachedContentTokenCount": 1 } }),
        ]),
    );
    assert_eq!(
        (text_of(&events), reasoning_of(&events)),
        ("look".to_owned(), "hm".to_owned())
    );
    let calls = calls_of(&events);
    assert!(calls.len() == 2 && calls[0].id != calls[1].id, "{calls:?}");
    let (stop, usage, state) = end_of(&events);
    assert_eq!(
        (stop, usage),
        (
            StopReason::ToolCalls,
            Some(Usage {
                input: 5,
                output: 6,
                cached: 1
            })
        )
    );
    assert_eq!(state.unwrap(), json!({ "calls": ["s1", null] }));
}

#[test]
fn gemini_a_blocked_prompt_is_a_refusal() {
    let events = good(
        Wire::Gemini,
        &sse(&[json!({ "promptFeedback": { "blockReason": "SAFETY" } })]),
    );
    assert_eq!(end_of(&events).0, StopReason::Refused);
}

#[test]
fn openrouter_reasoning_is_put_together_again() {
    let piece = |text: &str| {
        json!({ "choices": [{ "delta": { "reasoning": text, "reasoning_details": [
        { "type": "reasoning.text", "index": 0, "text": text },
    ] } }] })
    };
    let signed = json!({ "choices": [{ "delta": { "reasoning_details": [
        { "type": "reasoning.text", "index": 0, "signature": "s" },
    ] } }] });
    let events = good(
        Wire::OpenAiChat,
        &sse(&[piece("a"), piece("b"), signed, chat_end("stop")]),
    );
    assert_eq!(reasoning_of(&events), "ab");
    assert_eq!(
        end_of(&events).2.unwrap(),
        json!({ "reasoning_details": [{ "type": "reasoning.text", "index": 0, "text": "ab", "signature": "s" }] })
    );
}

#[test]
fn a_declared_name_that_was_made_legal_comes_back_as_declared() {
    let request_name = super::legal::name("get weather", &super::openai_chat::RULES);
    let events = good(
        Wire::OpenAiChat,
        &sse(&[
            chat_call(Some(0), Some("c"), Some(&request_name), "{}"),
            chat_end("tool_calls"),
        ]),
    );
    assert_eq!(calls_of(&events)[0].name, "get weather");
    assert!(events.contains(&Event::ToolCallStarted {
        name: "get weather".to_owned()
    }));
}

#[test]
fn an_event_that_is_not_json_is_named() {
    let (events, result) = decode(
        Wire::OpenAiChat,
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {oops\n\n",
    );
    assert_eq!(text_of(&events), "a");
    assert!(matches!(result, Err(Fault::Nonsense(message)) if message.contains("{oops")));
}

#[test]
fn an_answer_without_end_is_bounded() {
    let piece = sse(&[chat_text(&"x".repeat(1 << 20))]);
    let (_, result) = decode_in(Wire::OpenAiChat, piece.repeat(70).as_bytes(), 1 << 20);
    assert!(matches!(result, Err(Fault::TooLarge(_))), "{result:?}");
}

mod any {
    use super::*;
    use proptest::prelude::*;

    const WIRES: [Wire; 4] = [
        Wire::OpenAiChat,
        Wire::Responses,
        Wire::Anthropic,
        Wire::Gemini,
    ];

    /// A value made of words that decoders look for, so that their branches are reached.
    fn value() -> impl Strategy<Value = Value> {
        let word = prop::sample::select(vec![
            "choices",
            "delta",
            "message",
            "content",
            "tool_calls",
            "function",
            "arguments",
            "name",
            "id",
            "index",
            "finish_reason",
            "type",
            "text",
            "error",
            "usage",
            "response",
            "output",
            "item",
            "content_block",
            "content_block_start",
            "content_block_delta",
            "text_delta",
            "input_json_delta",
            "thinking",
            "tool_use",
            "response.output_item.added",
            "response.output_item.done",
            "function_call",
            "response.completed",
            "candidates",
            "parts",
            "functionCall",
            "args",
            "finishReason",
            "STOP",
            "stop",
            "reasoning_details",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            word.clone().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 48, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((word.clone(), inner), 0..6).prop_map(|pairs| pairs
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(size in 1_usize..40, wire in 0_usize..4, values in prop::collection::vec(value(), 0..6)) {
            let text = sse(&values);
            let whole = decode(WIRES[wire], &text);
            let pieces = decode_in(WIRES[wire], text.as_bytes(), size);
            prop_assert_eq!(
                (whole.0.len(), text_of(&whole.0), whole.1),
                (pieces.0.len(), text_of(&pieces.0), pieces.1)
            );
        }

        #[test]
        fn no_events_make_a_decoder_panic(wire in 0_usize..4, values in prop::collection::vec(value(), 0..8)) {
            let _ = decode(WIRES[wire], &sse(&values));
            let _ = decode(WIRES[wire], &Value::from(values).to_string());
        }

        #[test]
        fn no_bytes_make_a_decoder_panic(wire in 0_usize..4, size in 1_usize..9, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_in(WIRES[wire], &bytes, size);
        }
    }
}

#[test]
fn a_whole_chat_answer_needs_no_reason_to_end() {
    let body = json!({ "choices": [{ "message": { "role": "assistant", "content": "hi" } }] });
    assert_eq!(text_of(&good(Wire::OpenAiChat, &body.to_string())), "hi");
    // A piece of a stream does.
    let piece = json!({ "object": "chat.completion.chunk", "choices": [{ "message": { "content": "hi" } }] });
    assert!(decode(Wire::OpenAiChat, &sse(&[piece])).1.is_err());
}

#[test]
fn half_a_surrogate_pair_costs_one_character() {
    let event = json!({ "choices": [{ "delta": { "content": "x@" }, "finish_reason": "stop" }] });
    let text = sse(&[event]).replace('@', "\\ud83d");
    assert_eq!(text_of(&good(Wire::OpenAiChat, &text)), "x\u{fffd}");
}

/// The arguments of the calls in the order in which they began.
fn arguments_of(events: &[Event]) -> Vec<String> {
    (calls_of(events).iter())
        .map(|call| call.arguments.to_text())
        .collect()
}

#[test]
fn responses_calls_are_told_apart_by_whatever_the_server_gives() {
    let item = |id: Option<&str>, call_id: Option<&str>, arguments: &str| json!({ "type": "function_call", "name": "a", "id": id, "call_id": call_id, "arguments": arguments });
    let added = |place: Option<u64>, item: Value| json!({ "type": "response.output_item.added", "output_index": place, "item": item });
    let done = |place: Option<u64>, item: Value| json!({ "type": "response.output_item.done", "output_index": place, "item": item });
    let delta = |place: Option<u64>, id: Option<&str>, delta: &str| json!({ "type": "response.function_call_arguments.delta", "output_index": place, "item_id": id, "delta": delta });
    let (x, y) = ("{\"x\":1}", "{\"y\":2}");
    let (some, none) = (Some("fc"), None);
    let cases = [
        // Nothing but places, and the deltas interleaved.
        vec![
            added(Some(0), item(none, Some("c1"), "")),
            added(Some(1), item(none, Some("c2"), "")),
            delta(Some(0), none, x),
            delta(Some(1), none, y),
        ],
        // Nothing at all.
        vec![
            added(None, item(none, none, "")),
            delta(None, none, x),
            done(None, item(none, none, x)),
            added(None, item(none, none, "")),
            delta(None, none, y),
            done(None, item(none, none, y)),
        ],
        // One item id for every call.
        vec![
            added(Some(0), item(some, Some("c1"), "")),
            added(Some(1), item(some, Some("c2"), "")),
            delta(Some(0), some, "{"),
            done(Some(0), item(some, Some("c1"), x)),
            done(Some(1), item(some, Some("c2"), y)),
        ],
        // Another item id in every event.
        vec![
            added(Some(0), item(Some("1"), Some("c1"), "")),
            delta(Some(0), Some("2"), x),
            done(Some(0), item(Some("3"), Some("c1"), x)),
            added(Some(1), item(Some("4"), Some("c2"), "")),
            done(Some(1), item(Some("5"), Some("c2"), y)),
        ],
        // One place for every call, and an event that comes twice.
        vec![
            done(Some(0), item(Some("1"), Some("c1"), x)),
            done(Some(0), item(Some("1"), Some("c1"), x)),
            done(Some(0), item(Some("2"), Some("c2"), y)),
        ],
        // One call id for every call.
        vec![
            done(Some(0), item(Some("1"), Some("c"), x)),
            done(Some(1), item(Some("2"), Some("c"), y)),
        ],
    ];
    for mut events in cases {
        events.push(json!({ "type": "response.completed", "response": {} }));
        let decoded = good(Wire::Responses, &sse(&events));
        assert_eq!(arguments_of(&decoded), [x, y], "{events:#?}");
        let calls = calls_of(&decoded);
        assert_ne!(calls[0].id, calls[1].id, "{events:#?}");
    }
}

#[test]
fn responses_that_come_whole_at_the_end_are_not_empty() {
    let output = json!([
        { "type": "message", "content": [{ "type": "output_text", "text": "hello" }] },
        { "type": "function_call", "call_id": "c", "name": "a", "arguments": "{}" },
    ]);
    let completed = json!({ "type": "response.completed", "response": { "status": "completed", "output": output, "usage": null } });
    let events = good(Wire::Responses, &sse(std::slice::from_ref(&completed)));
    assert_eq!(text_of(&events), "hello");
    assert_eq!(calls_of(&events).len(), 1);
    // What has been said before is not said again.
    let delta = json!({ "type": "response.output_text.delta", "delta": "hello" });
    let events = good(Wire::Responses, &sse(&[delta, completed]));
    assert_eq!(text_of(&events), "hello");
}

#[test]
fn arguments_of_another_type_are_never_dropped() {
    let answers = |arguments: &Value| {
        [
            (
                Wire::OpenAiChat,
                json!({ "choices": [{ "delta": { "tool_calls": [{ "id": "c", "function": { "name": "a", "arguments": arguments } }] }, "finish_reason": "tool_calls" }] }),
            ),
            (
                Wire::Responses,
                json!({ "object": "response", "output": [{ "type": "function_call", "call_id": "c", "name": "a", "arguments": arguments }] }),
            ),
            (
                Wire::Anthropic,
                json!({ "type": "message", "content": [{ "type": "tool_use", "id": "c", "name": "a", "input": arguments }] }),
            ),
            (
                Wire::Gemini,
                json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": "a", "args": arguments } }] }, "finishReason": "STOP" }] }),
            ),
        ]
    };
    for object in [json!({ "x": 1 }), json!("{\"x\":1}")] {
        for (wire, answer) in answers(&object) {
            let events = good(wire, &sse(&[answer]));
            assert_eq!(arguments_of(&events), ["{\"x\":1}"], "{wire:?} {object}");
        }
    }
    for other in [json!(5), json!([1]), json!("half")] {
        for (wire, answer) in answers(&other) {
            let calls = calls_of(&good(wire, &sse(&[answer])));
            assert!(
                matches!(calls[0].arguments, Arguments::Malformed(_)),
                "{wire:?} {other}"
            );
        }
    }
    for empty in [json!(null), json!({}), json!([])] {
        for (wire, answer) in answers(&empty) {
            let events = good(wire, &sse(&[answer]));
            assert_eq!(arguments_of(&events), ["{}"], "{wire:?} {empty}");
        }
    }
}
