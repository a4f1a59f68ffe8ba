use super::*;
use crate::mcp::{NameTable, ServerName};

fn features(name: &str, tools: bool, resources: bool, prompts: bool) -> McpServerFeatures {
    let server = ServerName::new(name).unwrap();
    let table = NameTable::new([server.clone()]);
    McpServerFeatures {
        name: table.model_name(&server).unwrap().clone(),
        tools,
        resources,
        prompts,
    }
}

fn declared(servers: Vec<McpServerFeatures>) -> Vec<String> {
    let mut functions = Functions::default();
    functions.append_mcp_meta_functions(servers);
    functions
        .declarations()
        .iter()
        .map(|declaration| declaration.name.clone())
        .collect()
}

#[test]
fn emission_follows_the_features() {
    let row = |tools, resources, prompts| declared(vec![features("s", tools, resources, prompts)]);
    assert_eq!(
        row(true, false, false),
        ["mcp_invoke_s", "mcp_search_s", "mcp_describe_s"]
    );
    assert_eq!(
        row(true, true, false),
        [
            "mcp_invoke_s",
            "mcp_search_s",
            "mcp_describe_s",
            "mcp_read_s"
        ]
    );
    assert_eq!(
        row(false, true, false),
        ["mcp_search_s", "mcp_describe_s", "mcp_read_s"]
    );
    assert_eq!(row(false, false, false), ["mcp_search_s", "mcp_describe_s"]);
    assert_eq!(
        row(false, false, true),
        ["mcp_search_s", "mcp_describe_s", "mcp_prompt_s"]
    );
    assert_eq!(
        row(true, true, true),
        [
            "mcp_invoke_s",
            "mcp_search_s",
            "mcp_describe_s",
            "mcp_read_s",
            "mcp_prompt_s"
        ]
    );
}

#[test]
fn servers_are_declared_in_order_of_name() {
    let names = declared(vec![
        features("b", false, false, false),
        features("a", false, false, false),
    ]);
    assert_eq!(
        names,
        [
            "mcp_search_a",
            "mcp_describe_a",
            "mcp_search_b",
            "mcp_describe_b"
        ]
    );
}

#[test]
fn appending_again_replaces_instead_of_doubling() {
    let mut functions = Functions::built_in();
    let before = functions.declarations().len();
    for _ in 0..2 {
        functions.append_mcp_meta_functions(vec![features("s", true, false, false)]);
    }
    assert_eq!(functions.declarations().len(), before + 3);
}

#[test]
fn selection_of_tools_never_touches_meta_functions() {
    let mut functions = Functions::built_in();
    functions.append_mcp_meta_functions(vec![features("s", true, true, false)]);
    assert!(
        functions
            .pool()
            .iter()
            .all(|name| !name.starts_with("mcp_"))
    );
    assert!(
        functions
            .tool_names()
            .iter()
            .all(|name| !name.starts_with("mcp_"))
    );
    let narrowed = functions.with_tools(&["fs_cat", "mcp_invoke_s", "nothing"]);
    let names: Vec<_> = narrowed
        .declarations()
        .iter()
        .map(|d| d.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "fs_cat",
            "mcp_invoke_s",
            "mcp_search_s",
            "mcp_describe_s",
            "mcp_read_s"
        ]
    );
    assert_eq!(functions.with_tools::<&str>(&[]).declarations().len(), 4);
}

#[test]
fn every_declaration_is_legal_and_has_a_schema() {
    let mut functions = Functions::built_in();
    let long = "x".repeat(51);
    functions.append_mcp_meta_functions(vec![features(&long, true, true, true)]);
    for declaration in functions.declarations() {
        let name = &declaration.name;
        assert!(
            name.len() <= 64
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        );
        assert!(!declaration.description.is_empty(), "{name}");
        let schema = &declaration.parameters;
        assert_eq!(schema["type"], "object", "{name}");
        let properties = schema["properties"].as_object().unwrap();
        for required in schema["required"].as_array().unwrap() {
            assert!(
                properties.contains_key(required.as_str().unwrap()),
                "{name}"
            );
        }
        for (key, property) in properties {
            assert!(
                property["type"].is_string() && property["description"].is_string(),
                "{name}.{key}"
            );
            assert!(
                property.get("required").is_none(),
                "`required` belongs to the object: {name}.{key}"
            );
        }
    }
}
