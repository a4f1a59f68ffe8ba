//! A tool's image on every wire (`M-67`): a model that sees gets it as an image, one that does not is told about it.

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{Piece, Provider, Reply, chat_calls, chat_text, data};

/// How base64 of a PNG begins.
const PNG: &str = "iVBORw0KGgo";

/// A way to talk to a model.
struct Wire {
    kind: &'static str,
    /// More keys of the client.
    client: &'static str,
    /// The `type` of a part that is an image.
    image: &'static str,
    /// Calls the function, and then answers.
    script: fn() -> Vec<Reply>,
}

const CALL: &str = "mcp_invoke_demo";

fn arguments() -> Value {
    json!({ "tool": "draw_logo", "arguments": {} })
}

fn chat() -> Vec<Reply> {
    vec![
        chat_calls(&[("c1", CALL, arguments())]),
        chat_text("I saw it"),
    ]
}

fn responses() -> Vec<Reply> {
    let end = || data(&json!({ "type": "response.completed", "response": { "error": null } }));
    let item = |arguments: &str| json!({ "id": "fc_1", "type": "function_call", "call_id": "c1", "name": CALL, "arguments": arguments });
    let whole = arguments().to_string();
    let call = vec![
        data(&json!({ "type": "response.output_item.added", "item": item("") })),
        data(
            &json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": whole }),
        ),
        data(&json!({ "type": "response.output_item.done", "item": item(&whole) })),
        end(),
    ];
    let text = vec![
        data(&json!({ "type": "response.output_text.delta", "delta": "I saw it" })),
        end(),
    ];
    [call, text].map(stream).into()
}

fn claude() -> Vec<Reply> {
    let message = |start: Value, delta: Value, reason: &str| {
        stream(vec![
            event(json!({ "type": "message_start", "message": { "id": "m" } })),
            event(json!({ "type": "content_block_start", "index": 0, "content_block": start })),
            event(json!({ "type": "content_block_delta", "index": 0, "delta": delta })),
            event(json!({ "type": "content_block_stop", "index": 0 })),
            event(json!({ "type": "message_delta", "delta": { "stop_reason": reason } })),
            event(json!({ "type": "message_stop" })),
        ])
    };
    vec![
        message(
            json!({ "type": "tool_use", "id": "c1", "name": CALL, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments().to_string() }),
            "tool_use",
        ),
        message(
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "I saw it" }),
            "end_turn",
        ),
    ]
}

#[allow(clippy::needless_pass_by_value, reason = "built where it is given")]
fn event(value: Value) -> Piece {
    let kind = value["type"].as_str().unwrap();
    Piece::Bytes(format!("event: {kind}\ndata: {value}\n\n").into_bytes())
}

fn stream(pieces: Vec<Piece>) -> Reply {
    Reply::Stream { pieces, cut: false }
}

const WIRES: &[Wire] = &[
    Wire {
        kind: "openai-compatible",
        client: "",
        image: "image_url",
        script: chat,
    },
    Wire {
        kind: "openai",
        client: "  api: responses\n",
        image: "input_image",
        script: responses,
    },
    Wire {
        kind: "claude",
        client: "",
        image: "image",
        script: claude,
    },
];

/// Takes the parts that are images, which hold `base64`, out of a body and counts them.
fn take_images(value: &mut Value, kind: &str) -> usize {
    let is_image = |part: &Value| part["type"] == kind && part.to_string().contains(PNG);
    match value {
        Value::Array(items) => {
            let before = items.len();
            items.retain(|item| !is_image(item));
            let taken = before - items.len();
            let deeper = items.iter_mut().map(|item| take_images(item, kind));
            taken + deeper.sum::<usize>()
        }
        Value::Object(map) => map.values_mut().map(|value| take_images(value, kind)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[test]
fn every_wire_carries_a_tools_image_to_a_model_that_sees_and_to_no_other() {
    for wire in WIRES {
        for sees in [true, false] {
            let name = format!("{}, sees: {sees}", wire.image);
            let provider = Provider::new((wire.script)());
            let home = Home::new();
            home.provider_of(wire.kind, &provider.url(), wire.client, "");
            let file = home.config_dir().join("config.yaml");
            let text = std::fs::read_to_string(file).unwrap();
            let text = text.replace("vision: true", &format!("vision: {sees}"));
            home.config_file("config.yaml", &text);
            let demo = std::path::Path::new(env!("CARGO_BIN_EXE_coyote"));
            home.servers(&[("demo", demo, &["demo-server"])]);
            let output = home.coyote(&["draw it"]).any_stderr().ok();
            assert_eq!(output.stdout, "I saw it\n", "{name}: {}", output.stderr);
            let mut body = provider.asked()[1].body.clone();
            let images = take_images(&mut body, wire.image);
            assert_eq!(images, usize::from(sees), "{name}: {body}");
            let rest = body.to_string();
            assert!(rest.contains("image/png"), "{name}: {rest}");
            assert!(!rest.contains(PNG), "{name}: {rest}");
        }
    }
}
