//! Names: identities that round-trip, look-alikes that do not.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn name(text: &str) -> ServerName {
    ServerName::new(text).unwrap()
}

fn table(names: &[&str]) -> NameTable {
    NameTable::new(names.iter().map(|text| name(text)))
}

fn model_name(table: &NameTable, server: &str) -> String {
    table.model_name(&name(server)).unwrap().to_string()
}

/// `M-02`: the exact prefix and the underscore after it.
#[test]
fn look_alikes_are_no_meta_functions() {
    for text in [
        "mcp_invoker",
        "mcp_invoke",
        "mcp_invoke_",
        "mcp_bogus_x",
        "mcp_readx_y",
        "xmcp_read_y",
        "Mcp_read_y",
        "mcp__read_x",
        "",
    ] {
        assert_eq!(split_meta_function(text), None, "{text}");
        assert!(!is_mcp_meta_function(text), "{text}");
    }
    assert!(has_mcp_prefix("mcp_invoker"));
    assert!(has_mcp_prefix("mcp_bogus_x"));
    assert!(!has_mcp_prefix("fs_mcp_read"));
}

/// `M-02`: a server whose own name looks like a function round-trips.
#[test]
fn servers_named_like_functions_round_trip() {
    for server in ["my_mcp_read_x", "mcp_invoke_x", "_", "read", "mcp_prompt"] {
        let table = table(&[server]);
        let model = table.model_name(&name(server)).unwrap();
        for function in MetaFunction::ALL {
            let whole = meta_function_name(function, model);
            assert_eq!(split_meta_function(&whole), Some((function, server)));
        }
    }
}

/// `M-01`, `M-31`: five names, in the order in which they are declared.
#[test]
fn the_five_names_come_in_emission_order() {
    let table = table(&["github"]);
    let model = table.model_name(&name("github")).unwrap();
    assert_eq!(
        mcp_meta_function_names(model),
        [
            "mcp_invoke_github",
            "mcp_search_github",
            "mcp_describe_github",
            "mcp_read_github",
            "mcp_prompt_github",
        ]
    );
    let prefixes = MetaFunction::ALL.map(MetaFunction::prefix);
    assert_eq!(prefixes, MCP_META_FUNCTION_PREFIXES);
}

/// `M-03`, case 15.
#[test]
fn names_that_fit_are_kept_and_others_are_made_distinct() {
    let long = "l".repeat(60);
    let names = [
        "github",
        "../../x",
        "a/b",
        "con",
        "日本",
        "Internet Search (X)",
        "a.b",
        "a_b",
        long.as_str(),
    ];
    let table = table(&names);
    assert_eq!(model_name(&table, "github"), "github");
    assert_eq!(model_name(&table, "a_b"), "a_b");
    assert!(model_name(&table, "a.b").starts_with("a_b_"));
    assert!(model_name(&table, "Internet Search (X)").starts_with("Internet_Search__X__"));
    assert_eq!(model_name(&table, &long).len(), 51);
    for server in names {
        let model = model_name(&table, server);
        assert_eq!(table.server(&model), Some(&name(server)));
    }
}

#[test]
fn names_that_are_equal_after_cutting_stay_distinct() {
    let names: Vec<String> = (0..3).map(|n| format!("{}{n}", "x".repeat(60))).collect();
    let table = NameTable::new(names.iter().map(|text| name(text)));
    let distinct: HashSet<_> = names.iter().map(|text| model_name(&table, text)).collect();
    assert_eq!(distinct.len(), 3);
}

/// A server that is called what another would be renamed to keeps its name.
#[test]
fn a_name_that_another_would_get_is_not_taken_from_its_owner() {
    let renamed = model_name(&table(&["a.b"]), "a.b");
    let both = table(&["a.b", &renamed]);
    assert_eq!(model_name(&both, &renamed), renamed);
    assert_ne!(model_name(&both, "a.b"), renamed);
    assert_eq!(both.server(&renamed), Some(&name(&renamed)));
}

#[test]
fn names_without_text_or_with_controls_are_refused() {
    assert_eq!(ServerName::new(""), Err(NameError::Empty));
    for text in ["a\nb", "\u{1b}[31m", "a\u{9b}b", "\0"] {
        assert_eq!(
            ServerName::new(text),
            Err(NameError::ControlCharacter),
            "{text:?}"
        );
    }
}

/// `M-03`: directories stay inside the tree and apart, also where case does not count.
#[test]
fn directories_are_plain_and_distinct() {
    assert_eq!(path_component(&name("github")), "github");
    let odd = [
        "..", ".", "../../x", "a/b", "a\\b", "con", "CON", "nul", "com1", "lpt9", "A", "a", "é",
        "É", "a.b", "a_b", "C:", "x ", "日本",
    ];
    let parts: HashSet<String> = odd
        .iter()
        .map(|text| path_component(&name(text)).to_lowercase())
        .collect();
    assert_eq!(parts.len(), odd.len());
    let taken = path_component(&name("A"));
    assert_ne!(path_component(&name(&taken)), taken);
}

fn any_name() -> impl Strategy<Value = String> {
    let odd = "[a-zA-Z0-9_./ -]{1,70}";
    prop_oneof![odd, "[ab_.]{1,3}", any::<String>()]
        .prop_filter("a legal name", |text| ServerName::new(text).is_ok())
}

proptest! {
    #[test]
    fn any_names_get_legal_distinct_functions_that_round_trip(
        names in proptest::collection::hash_set(any_name(), 1..12),
    ) {
        let table = NameTable::new(names.iter().map(|text| name(text)));
        let mut functions = HashSet::new();
        for server in &names {
            let model = table.model_name(&name(server)).unwrap();
            for (function, whole) in MetaFunction::ALL.into_iter().zip(mcp_meta_function_names(model)) {
                prop_assert!(whole.len() <= 64, "{whole}");
                prop_assert!(whole.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                let (split, model) = split_meta_function(&whole).unwrap();
                prop_assert_eq!(split, function);
                prop_assert_eq!(table.server(model), Some(&name(server)));
                prop_assert!(functions.insert(whole));
            }
        }
    }

    #[test]
    fn the_order_of_servers_does_not_matter(names in proptest::collection::vec(any_name(), 1..8)) {
        let forwards = NameTable::new(names.iter().map(|text| name(text)));
        let backwards = NameTable::new(names.iter().rev().map(|text| name(text)));
        for server in &names {
            prop_assert_eq!(forwards.model_name(&name(server)), backwards.model_name(&name(server)));
        }
    }

    #[test]
    fn any_name_gets_a_harmless_directory_of_its_own(a in any_name(), b in any_name()) {
        let part = path_component(&name(&a));
        prop_assert!(!part.is_empty() && part.len() <= 100, "{part}");
        prop_assert!(part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-'));
        prop_assert!(!is_device_name(&part));
        if a != b {
            prop_assert_ne!(part, path_component(&name(&b)));
        }
    }

    #[test]
    fn splitting_never_panics(text in any::<String>()) {
        let _ = split_meta_function(&text);
    }
}
