use serde_json::json;

use super::*;

fn server() -> ServerName {
    ServerName::new("s").unwrap()
}

fn listing(items: Vec<Value>) -> Listing {
    Listing {
        items,
        warning: None,
        unsupported: false,
    }
}

fn unsupported() -> Listing {
    Listing {
        unsupported: true,
        ..Listing::default()
    }
}

#[test]
fn kinds_are_read_as_they_are_written() {
    for kind in CatalogKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    let error = "tools".parse::<CatalogKind>().unwrap_err().to_string();
    for kind in CatalogKind::ALL {
        assert!(error.contains(kind.as_str()), "{error}");
    }
}

#[test]
fn absent_fields_are_left_out() {
    let tool = catalog_item(
        CatalogKind::Tool,
        &server(),
        json!({"name": "t", "inputSchema": {}}),
    );
    let expected = json!({"kind": "tool", "name": "t", "server": "s", "description": ""});
    assert_eq!(serde_json::to_value(&tool).unwrap(), expected);
    let raw = json!({
        "uriTemplate": "x://{a}", "name": "n", "title": "T", "description": "d", "mimeType": "text/plain",
        "annotations": {"audience": ["user"]},
    });
    let template = catalog_item(CatalogKind::ResourceTemplate, &server(), raw);
    let expected = json!({
        "kind": "resource_template", "name": "n", "server": "s", "description": "d", "title": "T", "uri": "x://{a}",
        "mime_type": "text/plain", "audience": ["user"],
    });
    assert_eq!(serde_json::to_value(&template).unwrap(), expected);
    let prompt = catalog_item(
        CatalogKind::Prompt,
        &server(),
        json!({"name": "p", "arguments": [{"name": "a"}]}),
    );
    let value = serde_json::to_value(&prompt).unwrap();
    assert_eq!(
        value["arguments"],
        json!([{"name": "a", "required": false}])
    );
}

#[test]
fn serialised_fields_are_bounded_and_kept_ones_are_whole() {
    let long = "é".repeat(10_000);
    let item = catalog_item(
        CatalogKind::Tool,
        &server(),
        json!({"name": long, "description": long, "inputSchema": {}}),
    );
    assert_eq!(item.name, long);
    let value = serde_json::to_value(&item).unwrap();
    assert!(value["name"].as_str().unwrap().len() <= FIELD_BYTES);
    assert!(value["description"].as_str().unwrap().len() <= FIELD_BYTES);
}

#[test]
fn items_of_one_name_and_different_kinds_coexist() {
    let listed = vec![
        (
            CatalogKind::Tool,
            Ok(listing(vec![json!({"name": "status", "inputSchema": {}})])),
        ),
        (
            CatalogKind::Resource,
            Ok(listing(vec![json!({"uri": "status", "name": "status"})])),
        ),
        (
            CatalogKind::Prompt,
            Ok(listing(vec![
                json!({"name": "status"}),
                json!({"name": "status"}),
            ])),
        ),
    ];
    let catalog = Catalog::new(listed, &server());
    let keys: Vec<_> = catalog.items.iter().map(CatalogItem::key).collect();
    assert_eq!(keys, ["tool:status", "resource:status", "prompt:status"]);
    assert!(catalog.notes.is_empty());
}

#[test]
fn unreadable_items_all_stay() {
    let listed = vec![(
        CatalogKind::Tool,
        Ok(listing(vec![json!({}), json!(5), json!(null)])),
    )];
    assert_eq!(Catalog::new(listed, &server()).items.len(), 3);
}

#[test]
fn what_could_not_be_listed_is_noted() {
    let failure = McpError::Request("no way".into());
    let early = Listing {
        warning: Some("stopped early".into()),
        ..listing(vec![json!({"name": "p"})])
    };
    let listed = vec![
        (CatalogKind::Tool, Err(failure)),
        (CatalogKind::Resource, Ok(unsupported())),
        (CatalogKind::ResourceTemplate, Ok(unsupported())),
        (CatalogKind::Prompt, Ok(early)),
    ];
    let catalog = Catalog::new(listed, &server());
    let expected = [
        "the server's tools could not be listed: no way",
        "the server's resources could not be listed: it advertises them but does not know `resources/list`",
        "the list of the server's prompts is incomplete: stopped early",
    ];
    assert_eq!(catalog.notes, expected);
    assert_eq!(catalog.items.len(), 1);
}

#[test]
fn the_words_of_a_failure_are_bounded() {
    let failure = McpError::Request("x".repeat(1_000_000));
    let catalog = Catalog::new(vec![(CatalogKind::Tool, Err(failure))], &server());
    assert!(catalog.notes[0].len() < FIELD_BYTES + 100);
}
