use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::mcp::ServerName;
use crate::mcp::catalog::CatalogKind;
use crate::mcp::decode::catalog_item;

fn tool(name: &str, description: &str) -> CatalogItem {
    item(
        CatalogKind::Tool,
        json!({"name": name, "description": description, "inputSchema": {}}),
    )
}

fn item(kind: CatalogKind, raw: Value) -> CatalogItem {
    catalog_item(kind, &ServerName::new("s").unwrap(), raw)
}

fn names<'a>(items: &'a [CatalogItem], query: &str) -> Vec<&'a str> {
    rank(items, query, 20)
        .iter()
        .map(|item| item.name.as_str())
        .collect()
}

fn split(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    words(text, &mut |word| all.push(word.to_owned()));
    all
}

#[test]
fn words_split_where_case_and_digits_change() {
    assert_eq!(split("create_issue"), ["create", "issue"]);
    assert_eq!(split("createIssue"), ["create", "Issue", "createIssue"]);
    assert_eq!(
        split("HTTPServerLog2"),
        ["HTTP", "Server", "Log", "2", "HTTPServerLog2"]
    );
    assert_eq!(
        split("GitHub's v2"),
        ["Git", "Hub", "GitHub", "s", "v", "2", "v2"]
    );
    assert_eq!(split("naïveÜber"), ["naïve", "Über", "naïveÜber"]);
    assert_eq!(split("天気 ok"), ["天", "気", "ok"]);
    assert_eq!(split("--"), [""; 0]);
    assert_eq!(split("a天b"), ["a", "天", "b"]);
}

#[test]
fn parts_of_names_are_found() {
    let items = [
        tool("createIssue", ""),
        tool("create_issue_comment", ""),
        tool("HTTPServerLog2", ""),
        tool("unrelated", ""),
    ];
    assert_eq!(
        names(&items, "issue"),
        ["createIssue", "create_issue_comment"]
    );
    assert_eq!(
        names(&items, "create"),
        ["createIssue", "create_issue_comment"]
    );
    assert_eq!(names(&items, "server log"), ["HTTPServerLog2"]);
    assert_eq!(
        names(&items, "issues"),
        ["createIssue", "create_issue_comment"]
    );
    assert_eq!(names(&items, "nothing"), [""; 0]);
}

#[test]
fn whole_words_are_found_though_they_split() {
    let items = [tool("a", "talks to GitHub"), tool("b", "talks to nobody")];
    assert_eq!(names(&items, "github"), ["a"]);
}

#[test]
fn names_weigh_more_than_descriptions() {
    let items = [
        tool("other", "sends a mail to somebody"),
        tool("send_mail", "delivers"),
    ];
    assert_eq!(names(&items, "mail"), ["send_mail", "other"]);
}

#[test]
fn an_exact_name_or_uri_comes_first() {
    let items = [
        tool("log", "log"),
        tool("log_log", "log log log log"),
        item(
            CatalogKind::Resource,
            json!({"name": "status log log log", "uri": "x://log", "description": "log log log"}),
        ),
    ];
    assert_eq!(names(&items, "log")[0], "log");
    assert_eq!(names(&items, "log_log")[0], "log_log");
    assert_eq!(names(&items, "x://log")[0], "status log log log");
    // Even when no word of it counts.
    let odd = [tool("++", ""), tool("a", "")];
    assert_eq!(names(&odd, "++")[0], "++");
}

#[test]
fn ties_break_by_key_in_any_order() {
    let mut items: Vec<CatalogItem> = (0..30).map(|n| tool(&format!("same{n:02}"), "")).collect();
    items.push(item(CatalogKind::Prompt, json!({"name": "same00"})));
    let first = keys(&items, "same");
    items.reverse();
    assert_eq!(keys(&items, "same"), first);
    assert_eq!(first[0], "prompt:same00");
    assert_eq!(first[1], "tool:same00");
}

fn keys(items: &[CatalogItem], query: &str) -> Vec<String> {
    rank(items, query, 20)
        .iter()
        .map(|item| item.key())
        .collect()
}

#[test]
fn no_words_list_everything_by_key() {
    let items = [tool("b", ""), tool("a", "")];
    assert_eq!(names(&items, "  "), ["a", "b"]);
    assert_eq!(rank(&items, "", 1).len(), 1);
}

#[test]
fn parameters_count() {
    let items = [
        item(
            CatalogKind::Tool,
            json!({"name": "a", "inputSchema": {"properties": {"repository_owner": {}}}}),
        ),
        item(
            CatalogKind::Prompt,
            json!({"name": "b", "arguments": [{"name": "owner"}]}),
        ),
        tool("c", ""),
    ];
    let found = names(&items, "owner");
    assert_eq!(found.len(), 2);
    assert!(!found.contains(&"c"));
}

#[test]
fn queries_of_any_size_are_bounded() {
    let items = [tool("needle", "")];
    let query = format!("needle {}", "x y z w ".repeat(100_000));
    assert_eq!(names(&items, &query), ["needle"]);
}

proptest! {
    #[test]
    fn any_catalog_and_query_rank_the_same_twice(
        texts in proptest::collection::vec((".{0,12}", ".{0,24}"), 0..20), query in ".{0,16}", top in 0..25usize,
    ) {
        let mut items: Vec<_> = texts.iter().map(|(name, description)| tool(name, description)).collect();
        let forward: Vec<_> = rank(&items, &query, top).iter().map(|item| item.key()).collect();
        items.reverse();
        let backward: Vec<_> = rank(&items, &query, top).iter().map(|item| item.key()).collect();
        prop_assert!(forward.len() <= top);
        prop_assert_eq!(forward, backward);
    }
}
