use super::*;
use crate::mcp::ServerName;
use crate::mcp::decode::catalog_item;

const FUNCTIONS: Functions<'_> = Functions {
    invoke: Some("INVOKE_s"),
    read: Some("READ_s"),
};

fn item(kind: CatalogKind, raw: Value) -> CatalogItem {
    catalog_item(kind, &ServerName::new("s").unwrap(), raw)
}

fn shown(kind: CatalogKind, raw: Value) -> Value {
    describe(&item(kind, raw), FUNCTIONS, Bounds::default())
}

#[test]
fn a_tool_is_shown_with_its_schema_as_sent_and_an_example() {
    let schema = json!({
        "type": "object", "x-vendor": {"$ref": "#/odd"},
        "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "flag": {"type": ["boolean", "null"]},
            "mode": {"enum": ["fast", "slow"]}, "list": {"type": "array"}, "optional": {"type": "string"},
            "given": {"type": "string", "default": "d"},
        },
        "required": ["text", "count", "flag", "mode", "list", "given", "undeclared"],
    });
    let raw = json!({
        "name": "echo", "title": "Echo", "description": "Says it", "inputSchema": schema,
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}, "_meta": {"secret": 1},
    });
    let arguments = json!({
        "text": "value", "count": 1, "flag": true, "mode": "fast", "list": [], "given": "d", "undeclared": "value",
    });
    let expected = json!({
        "name": "echo", "title": "Echo", "description": "Says it", "input_schema": schema,
        "output_schema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        "example": {"function": "INVOKE_s", "arguments": {"tool": "echo", "arguments": arguments}},
    });
    assert_eq!(shown(CatalogKind::Tool, raw), expected);
}

#[test]
fn an_unreadable_tool_says_why() {
    let value = shown(CatalogKind::Tool, json!({"name": "t", "inputSchema": 5}));
    assert_eq!(
        value["unreadable"],
        "`inputSchema` is a number, not an object"
    );
}

#[test]
fn a_schema_that_is_too_large_is_not_shown() {
    let fits = json!({ "x": "x".repeat(SCHEMA_BYTES - 8) });
    assert_eq!(serialised_len(&fits), SCHEMA_BYTES);
    let value = shown(CatalogKind::Tool, json!({"name": "t", "inputSchema": fits}));
    assert_eq!(value["input_schema"], fits);
    let large = json!({ "x": "x".repeat(SCHEMA_BYTES - 7) });
    let value = shown(
        CatalogKind::Tool,
        json!({"name": "t", "inputSchema": large}),
    );
    assert_eq!(value["input_schema"]["truncated"], true);
    assert_eq!(value["input_schema"]["total_bytes"], SCHEMA_BYTES + 1);
    assert!(
        value["input_schema"]["note"]
            .as_str()
            .unwrap()
            .contains("65536")
    );
}

#[test]
fn a_resource_is_shown_with_its_metadata() {
    let raw = json!({
        "uri": "x://a", "name": "a", "description": "d", "mimeType": "text/plain", "size": 3,
        "annotations": {"audience": ["user"]},
    });
    let expected = json!({
        "kind": "resource", "name": "a", "description": "d", "uri": "x://a", "mime_type": "text/plain", "size": 3,
        "audience": ["user"], "example": {"function": "READ_s", "arguments": {"uri": "x://a"}},
    });
    assert_eq!(shown(CatalogKind::Resource, raw), expected);
}

#[test]
fn a_template_is_shown_with_its_variables() {
    let value = shown(
        CatalogKind::ResourceTemplate,
        json!({"uriTemplate": "x://{owner}/{path}", "name": "file", "mimeType": "text/plain"}),
    );
    assert_eq!(value["uri_template"], "x://{owner}/{path}");
    assert_eq!(value["variables"], json!(["owner", "path"]));
    let example = json!({
        "function": "READ_s",
        "arguments": {"uri": "x://{owner}/{path}", "arguments": {"owner": "value", "path": "value"}},
    });
    assert_eq!(value["example"], example);
    let beyond = shown(
        CatalogKind::ResourceTemplate,
        json!({"uriTemplate": "x://{?q}"}),
    );
    assert_eq!(beyond["variables"], json!(["q"]));
    assert!(beyond["note"].as_str().unwrap().contains("operator"));
    assert_eq!(beyond.get("example"), None);
    let broken = shown(
        CatalogKind::ResourceTemplate,
        json!({"uriTemplate": "x://{t"}),
    );
    assert!(broken["note"].as_str().unwrap().contains("not closed"));
}

#[test]
fn a_prompt_has_arguments_and_never_types() {
    let raw = json!({
        "name": "p", "description": "d",
        "arguments": [{"name": "a", "description": "x", "required": true, "type": "integer"}, {"name": "b"}, 7],
    });
    let expected = json!({
        "name": "p", "description": "d",
        "arguments": [
            {"name": "a", "description": "x", "required": true}, {"name": "b", "description": "", "required": false},
        ],
        "note": "1 unreadable argument left out: no name",
    });
    assert_eq!(shown(CatalogKind::Prompt, raw), expected);
    assert_eq!(
        shown(CatalogKind::Prompt, json!({"name": "p"}))["arguments"],
        json!([])
    );
}

#[test]
fn everything_is_bounded_whatever_the_server_sends() {
    let long = "\u{1}".repeat(100_000);
    let wide: Map<String, Value> = (0..1000)
        .map(|n| (n.to_string(), Value::from("\u{2}".repeat(60))))
        .collect();
    let argument = json!({"name": long, "description": long});
    let raw = json!({
        "name": long, "title": long, "description": long, "uri": long, "uriTemplate": "{a}".repeat(50_000),
        "mimeType": long, "inputSchema": wide, "outputSchema": wide, "annotations": wide,
        "arguments": vec![argument; 300],
    });
    for kind in CatalogKind::ALL {
        for max in [None, Some(0), Some(3_000), Some(50_000)] {
            let bounds = Bounds::new(max);
            let value = describe(&item(kind, raw.clone()), FUNCTIONS, bounds);
            assert!(
                serialised_len(&value) <= bounds.serialised,
                "{kind} {max:?}"
            );
            assert!(value["name"].is_string());
        }
    }
}

#[test]
fn a_server_without_the_functions_has_no_examples() {
    let none = Functions {
        invoke: None,
        read: None,
    };
    let tool = item(CatalogKind::Tool, json!({"name": "t", "inputSchema": {}}));
    assert_eq!(
        describe(&tool, none, Bounds::default()).get("example"),
        None
    );
    let resource = item(CatalogKind::Resource, json!({"uri": "x://a"}));
    assert_eq!(
        describe(&resource, none, Bounds::default()).get("example"),
        None
    );
}
