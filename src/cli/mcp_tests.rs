use super::*;

#[test]
fn arguments_on_stdin_are_an_object_or_nothing() {
    assert_eq!(parse_arguments(b" \n").unwrap(), Map::new());
    assert_eq!(parse_arguments(b"{\"a\":[1]}").unwrap()["a"], json!([1]));
    for bytes in [&b"[1]"[..], b"\"x\"", b"{", b"\xff\xfe"] {
        assert!(parse_arguments(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn results_read_like_text_and_lose_nothing() {
    assert_eq!(
        result_text(&json!({ "content": [
            { "type": "text", "text": "one\n" },
            { "type": "image", "spilled": true, "path": "/x.png" },
        ], "structuredContent": { "n": 1 } })),
        "one\n{\n  \"type\": \"image\",\n  \"spilled\": true,\n  \"path\": \"/x.png\"\n}\n{\n  \"n\": 1\n}\n"
    );
    assert_eq!(
        read_text(&json!({ "uri": "x", "text": "exact\r\n" })),
        "exact\r\n"
    );
    assert_eq!(
        read_text(&json!([{ "text": "a" }, { "text": "b" }])),
        "a\nb"
    );
    assert!(read_text(&json!({ "tool_call_error": "no" })).contains("tool_call_error"));
}

#[test]
fn a_search_is_a_line_an_item_and_notes_stay_visible() {
    let shown = search_text(&json!([
        { "kind": "tool", "name": "add", "description": "Adds.\nMore." },
        { "kind": "resource", "name": "log", "uri": "demo://log", "description": "" },
        { "note": "prompts could not be listed" },
    ]));
    assert_eq!(
        shown,
        "tool  add  Adds.\nresource  demo://log\n{\n  \"note\": \"prompts could not be listed\"\n}\n"
    );
}
