use serde_json::json;

use super::*;
use crate::mcp::{NameTable, ServerName};

fn passed(value: &Value) -> Arguments {
    Arguments::parse(&value.to_string())
}

fn features() -> McpServerFeatures {
    let server = ServerName::new("docs").unwrap();
    let table = NameTable::new([server.clone()]);
    McpServerFeatures {
        name: table.model_name(&server).unwrap().clone(),
        tools: true,
        resources: true,
        prompts: true,
    }
}

#[test]
fn read_takes_what_the_schema_says() {
    let request = read("f", &passed(&json!({"uri": "x://a"}))).unwrap();
    let plain = ReadRequest {
        uri: "x://a".into(),
        ..ReadRequest::default()
    };
    assert_eq!(request, plain);
    let nulls = json!({"uri": "x://a", "arguments": null, "pattern": null, "offset": null, "max_bytes": null});
    assert_eq!(read("f", &passed(&nulls)).unwrap(), plain);
    let all = json!({"uri": "x://{t}", "arguments": {"t": 1}, "pattern": "E", "offset": 7, "max_bytes": 9});
    let request = read("f", &passed(&all)).unwrap();
    assert_eq!(
        (
            request.offset,
            request.max_bytes,
            request.pattern.as_deref()
        ),
        (7, Some(9), Some("E"))
    );
    assert_eq!(request.arguments.unwrap()["t"], 1);
}

#[test]
fn wrong_types_teach() {
    let error = |value: Value| {
        read("mcp_read_docs", &passed(&value))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error(json!({"uri": "x", "offset": "10"})),
        "`offset` must be an integer, got the string \"10\""
    );
    assert_eq!(
        error(json!({"uri": "x", "arguments": []})),
        "`arguments` must be an object, got the array []"
    );
    assert_eq!(
        error(json!({"uri": ""})),
        "`uri` of `mcp_read_docs` must not be empty"
    );
    assert_eq!(error(json!({})), "`mcp_read_docs` needs the argument `uri`");
    assert!(error(json!({"url": "x"})).contains("did you mean `uri`?"));
}

#[test]
fn invoke_takes_an_object_null_or_nothing() {
    for arguments in [
        json!({"tool": "t"}),
        json!({"tool": "t", "arguments": null}),
        json!({"tool": "t", "arguments": {}}),
    ] {
        assert!(
            invoke("f", &passed(&arguments))
                .unwrap()
                .arguments
                .is_empty()
        );
    }
    for wrong in [json!([]), json!("{}"), json!(1)] {
        let error = invoke("f", &passed(&json!({"tool": "t", "arguments": wrong}))).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`arguments` must be an object, got ")
        );
    }
}

#[test]
fn search_bounds_top_k() {
    let top_k = |value: Value| {
        search("f", &passed(&json!({"query": "q", "top_k": value})))
            .unwrap()
            .top_k
    };
    assert_eq!(
        [
            top_k(json!(null)),
            top_k(json!(0)),
            top_k(json!(3)),
            top_k(json!(9999))
        ],
        [8, 1, 3, 20]
    );
}

#[test]
fn describe_knows_four_kinds_and_lists_them() {
    let kind = |word: Value| {
        describe("f", &passed(&json!({"tool": "x", "kind": word}))).map(|request| request.kind)
    };
    assert_eq!(kind(json!(null)).unwrap(), CatalogKind::Tool);
    for known in CatalogKind::ALL {
        assert_eq!(kind(json!(known.as_str())).unwrap(), known);
    }
    let error = kind(json!("tools")).unwrap_err().to_string();
    for known in CatalogKind::ALL {
        assert!(error.contains(known.as_str()), "{error}");
    }
}

#[test]
fn descriptions_teach_paging_filter_and_templates() {
    let text = |function| description(function, &features());
    let read = text(MetaFunction::Read);
    for word in ["next_offset", "pattern", "template", "mcp_search_docs"] {
        assert!(read.contains(word), "{word}");
    }
    assert!(text(MetaFunction::Invoke).contains("mcp_describe_docs"));
    assert!(text(MetaFunction::Search).contains("mcp_read_docs"));
    let only_resources = McpServerFeatures {
        tools: false,
        ..features()
    };
    assert!(!description(MetaFunction::Search, &only_resources).contains("mcp_invoke_docs"));
    let schema = parameters(MetaFunction::Read);
    assert_eq!(schema["required"], json!(["uri"]));
    assert_eq!(schema["properties"]["max_bytes"]["default"], 51_200);
    assert!(
        schema["properties"]["offset"]["description"]
            .as_str()
            .unwrap()
            .contains("filtered")
    );
}
