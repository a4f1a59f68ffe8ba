use proptest::prelude::*;
use serde_json::json;

use super::*;

fn server() -> ServerName {
    ServerName::new("s").unwrap()
}

fn item(kind: CatalogKind, raw: Value) -> CatalogItem {
    catalog_item(kind, &server(), raw)
}

fn unreadable(item: &Value) -> (String, String) {
    match block(item).content {
        Content::Unreadable { kind, reason } => (kind, reason),
        other => panic!("{other:?}"),
    }
}

/// Any JSON, shallow, with the keys that results have.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("type"),
        Just("text"),
        Just("data"),
        Just("blob"),
        Just("uri"),
        Just("name"),
        Just("mimeType"),
        Just("resource"),
        Just("content"),
        Just("contents"),
        Just("structuredContent"),
        Just("isError"),
        Just("annotations"),
        Just("audience"),
        Just("size"),
        Just("arguments"),
        Just("inputSchema"),
        Just("x"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof![
            Just("text"),
            Just("image"),
            Just("audio"),
            Just("resource"),
            Just("resource_link")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..6).prop_map(|fields| fields
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Map<_, _>>()
                .into()),
        ]
    })
}

#[test]
fn blocks_of_every_kind_are_read() {
    assert_eq!(
        block(&json!({"type": "text", "text": "a"})).content,
        Content::Text("a")
    );
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let expected = Content::Media {
        kind: "image",
        data: "QQ==",
        mime_type: Some("image/png"),
    };
    assert_eq!(block(&image).content, expected);
    let audio = json!({"type": "audio", "data": "QQ=="});
    assert!(matches!(
        block(&audio).content,
        Content::Media {
            kind: "audio",
            mime_type: None,
            ..
        }
    ));
    let embedded = json!({"type": "resource", "resource": {"uri": "x://a", "text": "t"}});
    let Content::Resource(content) = block(&embedded).content else {
        panic!()
    };
    assert_eq!(
        (content.uri, content.body),
        (Some("x://a"), Body::Text("t"))
    );
    let link = json!({"type": "resource_link", "uri": "x://a", "name": "n", "size": 3});
    let Content::Link(link) = block(&link).content else {
        panic!()
    };
    assert_eq!(
        (link.uri, link.name, link.size),
        ("x://a", Some("n"), Some(3))
    );
}

#[test]
fn malformed_blocks_say_what_is_wrong() {
    let rows = [
        (json!(7), "content", "it is a number, not an object"),
        (json!({}), "content", "it has no `type`"),
        (
            json!({"type": 1}),
            "content",
            "`type` is a number, not a string",
        ),
        (json!({"type": "text"}), "text", "it has no `text`"),
        (
            json!({"type": "text", "text": null}),
            "text",
            "`text` is null, not a string",
        ),
        (
            json!({"type": "image", "data": []}),
            "image",
            "`data` is a list, not a string",
        ),
        (json!({"type": "audio"}), "audio", "it has no `data`"),
        (
            json!({"type": "resource"}),
            "resource",
            "it has no `resource`",
        ),
        (
            json!({"type": "resource_link"}),
            "resource_link",
            "it has no `uri`",
        ),
    ];
    for (item, kind, reason) in rows {
        assert_eq!(unreadable(&item), (kind.to_owned(), reason.to_owned()));
    }
}

#[test]
fn unknown_blocks_are_described_by_shape_alone() {
    let item = json!({
        "type": "hologram", "depth": 3, "flat": false, "data": "SECRETPAYLOAD", "list": [1], "map": {"a": 1, "b": 2},
    });
    let Content::Unknown { kind, fields } = block(&item).content else {
        panic!()
    };
    assert_eq!(kind, "hologram");
    let expected = json!({
        "depth": "3", "flat": "false", "data": "a string of 13 bytes", "list": "a list of 1 item",
        "map": "an object of 2 fields",
    });
    assert_eq!(Value::Object(fields), expected);

    let many: Map<_, _> = (0..1000)
        .map(|n| (format!("{n}{}", "k".repeat(1000)), json!(n)))
        .collect();
    let mut item = Value::Object(many);
    item["type"] = json!("t".repeat(100_000));
    let Content::Unknown { kind, fields } = block(&item).content else {
        panic!()
    };
    assert!(kind.len() <= 128);
    assert!(Value::Object(fields).to_string().len() < 4096);
}

#[test]
fn tool_answers_of_any_shape_are_answers() {
    assert!(tool_answer(&json!({})).blocks.is_empty());
    assert!(tool_answer(&json!({"content": null})).blocks.is_empty());
    assert!(!tool_answer(&json!({"isError": "true"})).is_error);
    assert!(tool_answer(&json!({"isError": true})).is_error);
    let odd = json!({"content": "hello"});
    let blocks = tool_answer(&odd).blocks;
    assert!(
        matches!(&blocks[0].content, Content::Unreadable { reason, .. } if reason.contains("a string, not a list"))
    );
    let null = json!({"structuredContent": null});
    assert_eq!(tool_answer(&null).structured, None);
    // Keys of other results change nothing.
    let shadowed = json!({"content": [{"type": "text", "text": "a"}], "tools": [], "contents": [], "action": "x"});
    assert_eq!(tool_answer(&shadowed).blocks[0].content, Content::Text("a"));
}

#[test]
fn one_malformed_block_costs_one() {
    let answer =
        json!({"content": [{"type": "text", "text": "a"}, 5, {"type": "text", "text": "b"}]});
    let blocks = tool_answer(&answer).blocks;
    assert_eq!(blocks.len(), 3);
    assert_eq!(blocks[2].content, Content::Text("b"));
}

#[test]
fn resource_contents_are_text_or_blob_or_say_why_not() {
    let result = json!({"contents": [
        {"uri": "x://a", "text": "t", "mimeType": "text/plain"},
        {"uri": "x://a", "blob": "QQ=="},
        {"uri": "x://a", "text": "t", "blob": "QQ=="},
        {"uri": "x://a"},
        {"text": 5},
        {"blob": {}},
        {"text": null, "blob": "QQ=="},
        "nothing",
    ]});
    let bodies: Vec<_> = resource_contents(&result)
        .unwrap()
        .into_iter()
        .map(|content| content.body)
        .collect();
    let no = |reason: &str| Body::Unreadable(reason.into());
    assert_eq!(
        bodies,
        [
            Body::Text("t"),
            Body::Blob("QQ=="),
            no("it has both `text` and `blob`"),
            no("it has neither `text` nor `blob`"),
            no("`text` is a number, not a string"),
            no("`blob` is an object, not a string"),
            Body::Blob("QQ=="),
            no("it is a string, not an object"),
        ]
    );
    assert!(resource_contents(&json!({})).is_err());
    assert!(resource_contents(&json!({"contents": {}})).is_err());
    assert!(
        resource_contents(&json!({"contents": []}))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn audiences_are_lenient_and_bounded() {
    let of = |annotations: Value| audience(&json!({ "annotations": annotations }));
    assert_eq!(of(json!({"audience": ["user"]})), Some(vec!["user".into()]));
    assert_eq!(of(json!({"audience": "user"})), Some(vec!["user".into()]));
    assert_eq!(
        of(json!({"audience": ["system", 7]})),
        Some(vec!["system".into()])
    );
    assert_eq!(of(json!({"audience": []})), None);
    assert_eq!(of(json!({"audience": 7})), None);
    assert_eq!(of(json!("x")), None);
    let long = of(json!({"audience": vec!["x".repeat(1000); 1000]})).unwrap();
    assert_eq!(long.len(), 8);
    assert!(long.iter().all(|entry| entry.len() <= 64));
}

#[test]
fn malformed_items_stay_visible() {
    let rows = [
        (
            CatalogKind::Tool,
            json!({"name": "a"}),
            "a",
            "it has no `inputSchema`",
        ),
        (
            CatalogKind::Tool,
            json!({"name": "a", "inputSchema": null}),
            "a",
            "`inputSchema` is null, not an object",
        ),
        (
            CatalogKind::Tool,
            json!({"inputSchema": {}}),
            "unreadable tool",
            "it has no `name`",
        ),
        (
            CatalogKind::Tool,
            json!(5),
            "unreadable tool",
            "it is a number, not an object",
        ),
        (
            CatalogKind::Resource,
            json!({"name": "a"}),
            "a",
            "it has no `uri`",
        ),
        (
            CatalogKind::Resource,
            json!({"uri": ""}),
            "unreadable resource",
            "`uri` is empty",
        ),
        (
            CatalogKind::ResourceTemplate,
            json!({}),
            "unreadable resource template",
            "it has no `uriTemplate`",
        ),
        (
            CatalogKind::Prompt,
            json!({"name": 7}),
            "unreadable prompt",
            "`name` is a number, not a string",
        ),
    ];
    for (kind, raw, name, reason) in rows {
        let item = item(kind, raw);
        assert_eq!(item.name, name);
        assert_eq!(item.unreadable.as_deref(), Some(reason));
        assert!(
            item.description.starts_with("unreadable "),
            "{}",
            item.description
        );
    }
}

#[test]
fn odd_facts_cost_themselves() {
    let resource = item(
        CatalogKind::Resource,
        json!({"uri": "x://a", "size": -5, "mimeType": 7, "description": [], "title": null, "annotations": "x"}),
    );
    assert_eq!(resource.unreadable, None);
    assert_eq!(
        resource.name, "x://a",
        "a resource without a name is called by its URI"
    );
    assert_eq!(
        (resource.size, resource.mime_type, resource.title),
        (None, None, None)
    );
    let prompt = item(
        CatalogKind::Prompt,
        json!({"name": "p", "arguments": [{"name": "a", "required": true}, {"required": true}, 5, {"name": "b"}]}),
    );
    let names: Vec<_> = prompt
        .arguments
        .unwrap()
        .into_iter()
        .map(|a| (a.name, a.required))
        .collect();
    assert_eq!(names, [("a".into(), true), ("b".into(), false)]);
    let titled = item(
        CatalogKind::Tool,
        json!({"name": "t", "inputSchema": {}, "annotations": {"title": "T"}}),
    );
    assert_eq!(titled.title.as_deref(), Some("T"));
}

#[test]
fn hints_are_what_the_server_says() {
    let hints =
        tool_hints(&json!({"annotations": {"readOnlyHint": true, "destructiveHint": "no"}}));
    assert_eq!((hints.read_only, hints.destructive), (Some(true), None));
    assert_eq!(tool_hints(&json!({})), ToolHints::default());
}

proptest! {
    #[test]
    fn any_json_decodes(value in any_json()) {
        let _ = tool_answer(&value);
        let _ = resource_contents(&value);
        let _ = block(&value);
        let _ = tool_hints(&value);
        for kind in CatalogKind::ALL {
            let item = catalog_item(kind, &server(), value.clone());
            prop_assert!(!item.name.is_empty());
        }
    }
}
