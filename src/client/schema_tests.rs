use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_schema_that_is_taken_is_sent_as_it_is() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": ["string", "null"], "description": "d" }, "b": { "$ref": "#/$defs/x" } },
        "required": ["a"],
        "additionalProperties": false,
        "$defs": { "x": { "type": "integer" } },
    });
    assert_eq!(object(&schema), schema);
}

#[test]
fn missing_properties_and_no_schema_at_all_become_an_object() {
    let empty = json!({ "type": "object", "properties": {} });
    for schema in [
        json!({}),
        json!({ "type": "object" }),
        json!(true),
        Value::Null,
        json!({ "type": "object", "properties": 3 }),
    ] {
        assert_eq!(object(&schema), empty, "{schema}");
        assert_eq!(plain_object(&schema), empty, "{schema}");
    }
}

#[test]
fn alternatives_at_the_top_are_joined() {
    let schema = json!({
        "oneOf": [
            { "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "type": "string" } } },
        ],
        "description": "d",
    });
    assert_eq!(
        object(&schema),
        json!({
            "description": "d",
            "type": "object",
            "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        })
    );
}

#[test]
fn references_are_replaced_and_lists_of_types_split() {
    let schema = json!({
        "$schema": "x",
        "type": "object",
        "properties": {
            "a": { "$ref": "#/$defs/x", "description": "beside" },
            "b": { "type": ["array", "null"], "items": { "type": ["integer"] }, "description": "d" },
        },
        "$defs": { "x": { "type": "integer", "description": "own" } },
    });
    assert_eq!(
        plain_object(&schema),
        json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer", "description": "beside" },
                "b": {
                    "description": "d",
                    "anyOf": [{ "type": "array", "items": { "type": "integer" } }, { "type": "null" }],
                },
            },
        })
    );
}

#[test]
fn properties_named_like_keywords_stay() {
    let schema = json!({ "type": "object", "properties": { "$ref": { "type": "string" }, "$defs": { "type": "string" } } });
    assert_eq!(plain_object(&schema)["properties"], schema["properties"]);
}

#[test]
fn references_in_circles_and_to_nowhere_accept_anything() {
    let schema = json!({
        "type": "object",
        "properties": { "child": { "$ref": "#" }, "lost": { "$ref": "#/nowhere" }, "far": { "$ref": "http://x/y" } },
    });
    let plain = plain_object(&schema);
    assert_eq!(plain["properties"]["lost"], json!({}));
    assert_eq!(plain["properties"]["far"], json!({}));
    assert_eq!(
        plain["properties"]["child"]["properties"]["child"],
        json!({})
    );
}

#[test]
fn references_that_multiply_are_bounded() {
    let mut defs = Map::new();
    for n in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(
            format!("d{n}"),
            json!({ "type": "object", "properties": { "a": next, "b": next, "c": next } }),
        );
    }
    let schema =
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": defs });
    assert!(plain_object(&schema).to_string().len() < 4_000_000);
}

proptest! {
    #[test]
    fn no_reference_survives_and_nothing_panics(
        targets in prop::collection::vec(prop::sample::select(vec!["#", "#/$defs/a", "#/$defs/b", "#/properties/p0", "x", "#/%"]), 0..6),
    ) {
        let properties: Map<String, Value> = targets
            .iter()
            .enumerate()
            .map(|(n, target)| (format!("p{n}"), json!({ "items": { "$ref": target } })))
            .collect();
        let schema = json!({ "properties": properties, "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
        prop_assert!(!plain_object(&schema).to_string().contains("$ref"));
    }
}
