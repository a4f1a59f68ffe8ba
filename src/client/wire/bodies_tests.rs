//! The exact body of every wire for every shape a transcript can have.

use serde_json::{Value, json};

use super::super::attach::Images;
use super::super::config::ModelFacts;
use super::{Outgoing, Wire};
use crate::chat::{
    Arguments, CallId, FunctionDeclaration, Image, ImageSource, Message, Part, ProviderState,
    Request, ToolCall, ToolChoice, ToolOutput, ToolResult,
};

const ALL: [Wire; 4] = [
    Wire::OpenAiChat,
    Wire::Responses,
    Wire::Anthropic,
    Wire::Gemini,
];

fn body_at(wire: Wire, request: &Request, host: &str, model: &ModelFacts) -> Value {
    let images = Images::load(request, model.supports_vision);
    wire.encode(&Outgoing {
        request,
        provider: "p",
        model,
        images: &images,
        host,
    })
}

fn seeing() -> ModelFacts {
    ModelFacts {
        supports_vision: true,
        ..ModelFacts::named("m")
    }
}

fn body(wire: Wire, request: &Request) -> Value {
    body_at(wire, request, "h", &seeing())
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: "weather".to_owned(),
        arguments: Arguments::parse(arguments),
    }
}

fn answered(call: &ToolCall, output: ToolOutput) -> ToolResult {
    ToolResult {
        call: call.clone(),
        output,
    }
}

fn said(text: &str, calls: &[ToolCall]) -> Message {
    Message::Assistant {
        text: text.to_owned(),
        calls: calls.to_vec(),
        state: None,
    }
}

fn tools() -> Vec<FunctionDeclaration> {
    vec![FunctionDeclaration {
        name: "weather".to_owned(),
        description: "d".to_owned(),
        parameters: json!({ "type": "object", "properties": { "city": { "type": "string" } } }),
    }]
}

/// Two parallel calls, one of which failed, then the question after them.
fn rounds() -> Vec<Message> {
    let (a, b) = (call("c1", r#"{"city":"Paris"}"#), call("c2", "{}"));
    vec![
        Message::user("w?"),
        said("look", &[a.clone(), b.clone()]),
        Message::Tool(vec![
            answered(&a, ToolOutput::ok("sunny")),
            answered(&b, ToolOutput::error("no")),
        ]),
    ]
}

fn image() -> Image {
    Image {
        mime_type: "image/png".to_owned(),
        source: ImageSource::Bytes([1_u8, 2, 3].as_slice().into()),
    }
}

const FAILED: &str = r#"{"tool_call_error":"no"}"#;

#[test]
fn plain_text_with_everything_set() {
    let request = Request {
        system: Some("sys".to_owned()),
        messages: vec![Message::user("hi")],
        temperature: Some(0.5),
        top_p: Some(0.9),
        stream: true,
        ..Request::default()
    };
    assert_eq!(
        body(Wire::OpenAiChat, &request),
        json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "sys" },
                { "role": "user", "content": "hi" },
            ],
            "temperature": 0.5,
            "top_p": 0.9,
            "stream": true,
            "stream_options": { "include_usage": true },
        })
    );
    assert_eq!(
        body(Wire::Responses, &request),
        json!({
            "model": "m",
            "instructions": "sys",
            "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] }],
            "temperature": 0.5,
            "top_p": 0.9,
            "store": false,
            "stream": true,
        })
    );
    assert_eq!(
        body(Wire::Anthropic, &request),
        json!({
            "model": "m",
            "max_tokens": 4096,
            "system": "sys",
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }],
            "temperature": 0.5,
            "top_p": 0.9,
            "stream": true,
        })
    );
    assert_eq!(
        body(Wire::Gemini, &request),
        json!({
            "systemInstruction": { "parts": [{ "text": "sys" }] },
            "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
            "generationConfig": { "temperature": 0.5, "topP": 0.9 },
        })
    );
}

#[test]
fn nothing_that_is_not_set_is_sent() {
    let request = Request {
        messages: vec![Message::user("hi")],
        ..Request::default()
    };
    for wire in ALL {
        let body = body(wire, &request);
        for absent in [
            "temperature",
            "top_p",
            "stream",
            "stream_options",
            "tools",
            "tool_choice",
            "system",
            "instructions",
            "generationConfig",
            "systemInstruction",
        ] {
            assert!(body.get(absent).is_none(), "{wire:?}: {absent}");
        }
    }
}

#[test]
fn the_configured_output_limit_is_sent_where_one_is_demanded() {
    let request = Request {
        messages: vec![Message::user("hi")],
        ..Request::default()
    };
    let model = ModelFacts {
        max_output_tokens: Some(99),
        ..seeing()
    };
    assert_eq!(
        body_at(Wire::Anthropic, &request, "h", &model)["max_tokens"],
        99
    );
    assert!(
        body_at(Wire::OpenAiChat, &request, "h", &model)
            .get("max_tokens")
            .is_none()
    );
}

#[test]
fn parallel_calls_and_results_keep_their_grouping() {
    let request = Request {
        messages: rounds(),
        tools: tools(),
        ..Request::default()
    };
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    assert_eq!(
        body(Wire::OpenAiChat, &request),
        json!({
            "model": "m",
            "messages": [
                { "role": "user", "content": "w?" },
                { "role": "assistant", "content": "look", "tool_calls": [
                    { "id": "c1", "type": "function", "function": { "name": "weather", "arguments": r#"{"city":"Paris"}"# } },
                    { "id": "c2", "type": "function", "function": { "name": "weather", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "c1", "content": "sunny" },
                { "role": "tool", "tool_call_id": "c2", "content": FAILED },
            ],
            "tools": [{ "type": "function", "function": { "name": "weather", "description": "d", "parameters": parameters } }],
        })
    );
    assert_eq!(
        body(Wire::Responses, &request),
        json!({
            "model": "m",
            "input": [
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "w?" }] },
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "look" }] },
                { "type": "function_call", "call_id": "c1", "name": "weather", "arguments": r#"{"city":"Paris"}"# },
                { "type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "c1", "output": "sunny" },
                { "type": "function_call_output", "call_id": "c2", "output": FAILED },
            ],
            "tools": [{ "type": "function", "name": "weather", "description": "d", "parameters": parameters, "strict": false }],
            "store": false,
        })
    );
    assert_eq!(
        body(Wire::Anthropic, &request),
        json!({
            "model": "m",
            "max_tokens": 4096,
            "messages": [
                { "role": "user", "content": [{ "type": "text", "text": "w?" }] },
                { "role": "assistant", "content": [
                    { "type": "text", "text": "look" },
                    { "type": "tool_use", "id": "c1", "name": "weather", "input": { "city": "Paris" } },
                    { "type": "tool_use", "id": "c2", "name": "weather", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "c1", "content": [{ "type": "text", "text": "sunny" }] },
                    { "type": "tool_result", "tool_use_id": "c2", "content": [{ "type": "text", "text": FAILED }], "is_error": true },
                ] },
            ],
            "tools": [{ "name": "weather", "description": "d", "input_schema": parameters }],
        })
    );
    assert_eq!(
        body(Wire::Gemini, &request),
        json!({
            "contents": [
                { "role": "user", "parts": [{ "text": "w?" }] },
                { "role": "model", "parts": [
                    { "text": "look" },
                    { "functionCall": { "name": "weather", "args": { "city": "Paris" } }, "thoughtSignature": "skip_thought_signature_validator" },
                    { "functionCall": { "name": "weather", "args": {} } },
                ] },
                { "role": "user", "parts": [
                    { "functionResponse": { "name": "weather", "response": { "output": "sunny" } } },
                    { "functionResponse": { "name": "weather", "response": { "error": { "tool_call_error": "no" } } } },
                ] },
            ],
            "tools": [{ "functionDeclarations": [{ "name": "weather", "description": "d", "parametersJsonSchema": parameters }] }],
        })
    );
}

#[test]
fn the_history_is_the_same_when_tools_are_off() {
    let with = Request {
        messages: rounds(),
        tools: tools(),
        ..Request::default()
    };
    let without = Request {
        tools: Vec::new(),
        ..with.clone()
    };
    let forbidden = Request {
        tool_choice: ToolChoice::None,
        ..with.clone()
    };
    for wire in ALL {
        for key in ["messages", "input", "contents"] {
            let expected = body(wire, &with).get(key).cloned();
            assert_eq!(body(wire, &without).get(key).cloned(), expected, "{wire:?}");
            assert_eq!(
                body(wire, &forbidden).get(key).cloned(),
                expected,
                "{wire:?}"
            );
        }
    }
    for wire in [Wire::OpenAiChat, Wire::Responses] {
        assert!(body(wire, &without).get("tools").is_none());
        assert_eq!(body(wire, &forbidden)["tools"], body(wire, &with)["tools"]);
        assert_eq!(body(wire, &forbidden)["tool_choice"], "none");
    }
    assert_eq!(
        body(Wire::Gemini, &forbidden)["toolConfig"],
        json!({ "functionCallingConfig": { "mode": "NONE" } })
    );
    assert_eq!(
        body(Wire::Anthropic, &forbidden)["tool_choice"],
        json!({ "type": "none" })
    );
    // Anthropic refuses calls in a history when nothing is declared.
    assert_eq!(
        body(Wire::Anthropic, &without)["tools"],
        json!([{ "name": "weather", "input_schema": { "type": "object", "properties": {} } }])
    );
    assert_eq!(
        body(Wire::Anthropic, &without)["tool_choice"],
        json!({ "type": "none" })
    );
}

#[test]
fn images_of_the_person_go_where_each_wire_has_them() {
    let request = Request {
        messages: vec![Message::User(vec![
            Part::Text("see".to_owned()),
            Part::Image(image()),
            Part::Image(Image {
                mime_type: "image/gif".to_owned(),
                source: ImageSource::Url("https://x/y.gif".to_owned()),
            }),
        ])],
        ..Request::default()
    };
    assert_eq!(
        body(Wire::OpenAiChat, &request)["messages"][0]["content"],
        json!([
            { "type": "text", "text": "see" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AQID" } },
            { "type": "image_url", "image_url": { "url": "https://x/y.gif" } },
        ])
    );
    assert_eq!(
        body(Wire::Responses, &request)["input"][0]["content"],
        json!([
            { "type": "input_text", "text": "see" },
            { "type": "input_image", "image_url": "data:image/png;base64,AQID" },
            { "type": "input_image", "image_url": "https://x/y.gif" },
        ])
    );
    assert_eq!(
        body(Wire::Anthropic, &request)["messages"][0]["content"],
        json!([
            { "type": "text", "text": "see" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AQID" } },
            { "type": "image", "source": { "type": "url", "url": "https://x/y.gif" } },
        ])
    );
    assert_eq!(
        body(Wire::Gemini, &request)["contents"][0]["parts"],
        json!([
            { "text": "see" },
            { "inlineData": { "mimeType": "image/png", "data": "AQID" } },
            { "fileData": { "mimeType": "image/gif", "fileUri": "https://x/y.gif" } },
        ])
    );
}

#[test]
fn images_of_a_tool_result_follow_their_result() {
    let made = call("c1", "{}");
    let output = ToolOutput {
        images: vec![image()],
        ..ToolOutput::ok("pic")
    };
    let request = Request {
        messages: vec![
            Message::user("w"),
            said("", std::slice::from_ref(&made)),
            Message::Tool(vec![answered(&made, output)]),
        ],
        tools: tools(),
        ..Request::default()
    };
    let chat = body(Wire::OpenAiChat, &request);
    assert_eq!(chat["messages"][1]["content"], Value::Null);
    assert_eq!(
        chat["messages"].as_array().unwrap()[2..],
        [
            json!({ "role": "tool", "tool_call_id": "c1", "content": "pic" }),
            json!({ "role": "user", "content": [
                { "type": "text", "text": "Images of the tool results:" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AQID" } },
            ] }),
        ]
    );
    assert_eq!(
        body(Wire::Responses, &request)["input"][2]["output"],
        json!([
            { "type": "input_text", "text": "pic" },
            { "type": "input_image", "image_url": "data:image/png;base64,AQID" },
        ])
    );
    assert_eq!(
        body(Wire::Anthropic, &request)["messages"][2]["content"],
        json!([{ "type": "tool_result", "tool_use_id": "c1", "content": [
            { "type": "text", "text": "pic" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AQID" } },
        ] }])
    );
    assert_eq!(
        body(Wire::Gemini, &request)["contents"][2]["parts"],
        json!([
            { "functionResponse": { "name": "weather", "response": { "output": "pic" } } },
            { "inlineData": { "mimeType": "image/png", "data": "AQID" } },
        ])
    );
}

#[test]
fn an_image_file_is_read_at_request_time_and_one_that_is_gone_is_said_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.png");
    std::fs::write(&path, [1, 2, 3]).unwrap();
    let request = Request {
        messages: vec![Message::User(vec![Part::Image(Image {
            mime_type: "image/png".to_owned(),
            source: ImageSource::File(path.clone()),
        })])],
        ..Request::default()
    };
    let part = |request| body(Wire::Gemini, request)["contents"][0]["parts"][0].clone();
    assert_eq!(part(&request)["inlineData"]["data"], "AQID");
    std::fs::remove_file(&path).unwrap();
    let text = part(&request)["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("a.png") && text.contains("not available"),
        "{text}"
    );
}

#[test]
fn a_model_that_does_not_see_is_told_that_an_image_was_there() {
    let request = Request {
        messages: vec![Message::User(vec![Part::Image(image())])],
        ..Request::default()
    };
    for wire in ALL {
        let text = body_at(wire, &request, "h", &ModelFacts::named("m")).to_string();
        assert!(!text.contains("AQID"), "{wire:?}");
        assert!(text.contains("this model cannot see"), "{wire:?}");
    }
}

#[test]
fn a_partial_answer_is_replayed_as_what_it_said() {
    let request = Request {
        messages: vec![
            Message::user("w"),
            Message::assistant("half an ans"),
            Message::user("go on"),
        ],
        ..Request::default()
    };
    assert_eq!(
        body(Wire::OpenAiChat, &request)["messages"][1],
        json!({ "role": "assistant", "content": "half an ans" })
    );
    assert_eq!(
        body(Wire::Responses, &request)["input"][1],
        json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "half an ans" }] })
    );
    assert_eq!(
        body(Wire::Anthropic, &request)["messages"][1],
        json!({ "role": "assistant", "content": [{ "type": "text", "text": "half an ans" }] })
    );
    assert_eq!(
        body(Wire::Gemini, &request)["contents"][1],
        json!({ "role": "model", "parts": [{ "text": "half an ans" }] })
    );
}

#[test]
fn a_blank_tool_result_is_sent_legally_and_unchanged() {
    let made = call("c1", "{}");
    for blank in ["", "  "] {
        let request = Request {
            messages: vec![
                Message::user("w"),
                said("", std::slice::from_ref(&made)),
                Message::Tool(vec![answered(&made, ToolOutput::ok(blank))]),
            ],
            tools: tools(),
            ..Request::default()
        };
        assert_eq!(
            body(Wire::OpenAiChat, &request)["messages"][2]["content"],
            blank
        );
        assert_eq!(body(Wire::Responses, &request)["input"][2]["output"], blank);
        assert_eq!(
            body(Wire::Anthropic, &request)["messages"][2]["content"],
            json!([{ "type": "tool_result", "tool_use_id": "c1" }])
        );
        assert_eq!(
            body(Wire::Gemini, &request)["contents"][2]["parts"][0]["functionResponse"]["response"],
            json!({ "output": blank })
        );
    }
}

#[test]
fn malformed_arguments_of_the_past_are_replayed_as_an_object() {
    let made = call("c1", r#"{"city": "Par"#);
    let request = Request {
        messages: vec![
            Message::user("w"),
            said("", std::slice::from_ref(&made)),
            Message::Tool(vec![answered(&made, ToolOutput::error("no"))]),
        ],
        tools: tools(),
        ..Request::default()
    };
    let wrapped = json!({ "malformed_arguments": r#"{"city": "Par"# });
    assert_eq!(
        body(Wire::OpenAiChat, &request)["messages"][1]["tool_calls"][0]["function"]["arguments"],
        wrapped.to_string()
    );
    assert_eq!(
        body(Wire::Responses, &request)["input"][1]["arguments"],
        wrapped.to_string()
    );
    assert_eq!(
        body(Wire::Anthropic, &request)["messages"][1]["content"][0]["input"],
        wrapped
    );
    assert_eq!(
        body(Wire::Gemini, &request)["contents"][1]["parts"][0]["functionCall"]["args"],
        wrapped
    );
}

#[test]
fn neighbours_of_one_role_become_one_message_where_roles_must_alternate() {
    let mut messages = rounds();
    messages.push(Message::user("and?"));
    let request = Request {
        messages,
        tools: tools(),
        ..Request::default()
    };
    let body = body(Wire::Anthropic, &request);
    let sent = body["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 3);
    let last = sent[2]["content"].as_array().unwrap();
    assert_eq!(last[1]["type"], "tool_result");
    assert_eq!(last[2], json!({ "type": "text", "text": "and?" }));
}

fn with_state(data: Value, text: &str, calls: &[ToolCall]) -> Request {
    let state = ProviderState {
        provider: "p".to_owned(),
        model: "m".to_owned(),
        data,
    };
    let results = calls
        .iter()
        .map(|call| answered(call, ToolOutput::ok("r")))
        .collect();
    Request {
        messages: vec![
            Message::user("w"),
            Message::Assistant {
                text: text.to_owned(),
                calls: calls.to_vec(),
                state: Some(state),
            },
            Message::Tool(results),
        ],
        tools: tools(),
        ..Request::default()
    }
}

#[test]
fn reasoning_is_replayed_in_its_order_to_the_model_that_reasoned() {
    let calls = [call("c1", "{}"), call("c2", "{}")];
    let thinking = json!({ "type": "thinking", "thinking": "t", "signature": "s" });
    let data =
        json!({ "blocks": [thinking, { "type": "text" }, { "type": "call" }, { "type": "call" }] });
    let sent = body(Wire::Anthropic, &with_state(data, "look", &calls));
    let blocks = sent["messages"][1]["content"].as_array().unwrap();
    assert_eq!(blocks[0], thinking);
    assert_eq!(blocks[1]["text"], "look");
    assert_eq!(
        (&blocks[2]["id"], &blocks[3]["id"]),
        (&json!("c1"), &json!("c2"))
    );

    let reasoning =
        |n: u8| json!({ "type": "reasoning", "summary": [], "encrypted_content": n.to_string() });
    let data =
        json!({ "items": [reasoning(1), { "type": "call" }, reasoning(2), { "type": "call" }] });
    let sent = body(Wire::Responses, &with_state(data, "", &calls));
    assert_eq!(sent["input"][1], reasoning(1));
    assert_eq!(sent["input"][2]["call_id"], "c1");
    assert_eq!(sent["input"][3], reasoning(2));
    assert_eq!(sent["input"][4]["call_id"], "c2");
    assert_eq!(sent["input"][5]["type"], "function_call_output");

    let data = json!({ "calls": ["s1", null], "text": "st" });
    let sent = body(Wire::Gemini, &with_state(data, "look", &calls));
    assert_eq!(
        sent["contents"][1]["parts"],
        json!([
            { "text": "look", "thoughtSignature": "st" },
            { "functionCall": { "name": "weather", "args": {} }, "thoughtSignature": "s1" },
            { "functionCall": { "name": "weather", "args": {} } },
        ])
    );

    let extra = json!({ "google": { "thought_signature": "x" } });
    let data = json!({ "calls": [extra], "reasoning_details": [{ "type": "reasoning.text", "text": "t" }] });
    let sent = body(Wire::OpenAiChat, &with_state(data, "", &calls));
    assert_eq!(sent["messages"][1]["tool_calls"][0]["extra_content"], extra);
    assert!(
        sent["messages"][1]["tool_calls"][1]
            .get("extra_content")
            .is_none()
    );
    assert_eq!(sent["messages"][1]["reasoning_details"][0]["text"], "t");
}

#[test]
fn reasoning_of_another_provider_or_model_is_not_replayed() {
    let thinking = json!({ "type": "thinking", "thinking": "t", "signature": "s" });
    let calls = [call("c1", "{}")];
    for (provider, model) in [("q", "m"), ("p", "n")] {
        let mut request = with_state(json!({ "blocks": [thinking] }), "look", &calls);
        if let Message::Assistant {
            state: Some(state), ..
        } = &mut request.messages[1]
        {
            state.provider = provider.to_owned();
            state.model = model.to_owned();
        }
        let sent = body(Wire::Anthropic, &request).to_string();
        assert!(!sent.contains("thinking"), "{provider}:{model}");
    }
}

#[test]
fn encrypted_reasoning_is_asked_for_where_a_model_reasons() {
    let request = Request {
        messages: vec![Message::user("hi")],
        ..Request::default()
    };
    let include = |name: &str| {
        body_at(Wire::Responses, &request, "h", &ModelFacts::named(name))
            .get("include")
            .is_some()
    };
    for name in ["o3", "o4-mini", "gpt-5.4", "gpt-6-sol", "openai/gpt-5"] {
        assert!(include(name), "{name}");
    }
    for name in ["gpt-4.1", "gpt-4o", "gpt-5.2-chat-latest", "olmo", "smol"] {
        assert!(!include(name), "{name}");
    }
}

#[test]
fn ids_and_names_of_elsewhere_are_made_legal_the_same_way_twice() {
    let foreign = ToolCall {
        id: CallId("functions.weather:0".to_owned()),
        name: "weather in Paris!".to_owned(),
        arguments: Arguments::parse("{}"),
    };
    let request = Request {
        messages: vec![
            Message::user("w"),
            said("", std::slice::from_ref(&foreign)),
            Message::Tool(vec![answered(&foreign, ToolOutput::ok("r"))]),
        ],
        ..Request::default()
    };
    let sent = body(Wire::Anthropic, &request);
    let used = sent["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(
        used.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        "{used}"
    );
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], used);
    let name = sent["messages"][1]["content"][0]["name"].as_str().unwrap();
    assert!(name.len() <= 64 && !name.contains(' '), "{name}");
    assert_eq!(sent["tools"][0]["name"], name);

    let sent = body_at(Wire::OpenAiChat, &request, "api.mistral.ai", &seeing());
    let id = sent["messages"][1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(
        (id.len(), &sent["messages"][2]["tool_call_id"]),
        (9, &json!(id))
    );
}

mod any {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        let call =
            (0_u8..6, "[{}a-z\":1]{0,8}").prop_map(|(id, text)| call(&format!("c{id}"), &text));
        let calls = prop::collection::vec(call, 0..4);
        let text = prop::sample::select(vec!["", " ", "text", "ä€"]);
        prop_oneof![
            text.clone().prop_map(Message::user),
            Just(Message::User(vec![Part::Image(image())])),
            (text.clone(), calls.clone()).prop_map(|(text, calls)| said(text, &calls)),
            (text, calls).prop_map(|(text, calls)| {
                Message::Tool(
                    calls
                        .iter()
                        .map(|call| answered(call, ToolOutput::ok(text)))
                        .collect(),
                )
            }),
        ]
    }

    /// How often `key` is a member of an object anywhere in `value`, with `wanted` as its value if given.
    fn count(value: &Value, key: &str, wanted: Option<&str>) -> usize {
        match value {
            Value::Array(values) => values.iter().map(|value| count(value, key, wanted)).sum(),
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| {
                    let hit = name == key && wanted.is_none_or(|wanted| value == wanted);
                    usize::from(hit) + count(value, key, wanted)
                })
                .sum(),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn every_call_of_any_transcript_is_answered_exactly_once(messages in prop::collection::vec(message(), 0..8)) {
            let request = Request { messages, ..Request::default() };
            let chat = body(Wire::OpenAiChat, &request);
            prop_assert_eq!(count(&chat, "type", Some("function")), count(&chat, "role", Some("tool")));
            let responses = body(Wire::Responses, &request);
            prop_assert_eq!(
                count(&responses, "type", Some("function_call")),
                count(&responses, "type", Some("function_call_output"))
            );
            let anthropic = body(Wire::Anthropic, &request);
            prop_assert_eq!(
                count(&anthropic, "type", Some("tool_use")),
                count(&anthropic, "type", Some("tool_result"))
            );
            let roles: Vec<_> = anthropic["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
            prop_assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", roles);
            let gemini = body(Wire::Gemini, &request);
            prop_assert_eq!(count(&gemini, "functionCall", None), count(&gemini, "functionResponse", None));
        }
    }
}
