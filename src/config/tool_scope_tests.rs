//! Tests of the module beside.

use proptest::prelude::*;

use super::*;
use crate::config::Names;

/// What the tables select from.
struct World {
    tools: Vec<String>,
    servers: Vec<KnownServer>,
    tool_aliases: Aliases,
    server_aliases: Aliases,
}

fn alias(name: &str, names: &str) -> (String, Names) {
    (name.to_owned(), Names::from_csv(names))
}

impl World {
    fn new() -> Self {
        let server = |name: &str, disabled| KnownServer {
            name: ServerName::new(name).unwrap(),
            disabled,
        };
        Self {
            tools: ["fs_cat", "fs_ls", "fetch_url", "wörter"]
                .map(str::to_owned)
                .to_vec(),
            servers: vec![
                server("docs", false),
                server("github", false),
                server("local git", false),
                server("old", true),
            ],
            tool_aliases: Aliases::new([alias("fs", " fs_cat , fs_ls ")]),
            server_aliases: Aliases::new([
                alias("code", "github, local git"),
                alias("stale", "github,gone"),
                alias("docs", "docs"),
            ]),
        }
    }

    fn select(&self, layers: &[(Option<Choice>, Option<Choice>)]) -> Selection {
        let layers: Vec<LayerChoices<'_>> = layers
            .iter()
            .map(|(tools, servers)| LayerChoices {
                tools: tools.as_ref(),
                servers: servers.as_ref(),
            })
            .collect();
        let known = Known {
            tools: &self.tools,
            servers: &self.servers,
            tool_aliases: &self.tool_aliases,
            server_aliases: &self.server_aliases,
        };
        select(&layers, &known)
    }

    fn servers(&self, text: &str) -> Vec<String> {
        names(&self.select(&[(None, Some(Choice::from_csv(text)))]).servers)
    }
}

fn names(servers: &[ServerName]) -> Vec<String> {
    servers
        .iter()
        .map(|name| name.as_str().to_owned())
        .collect()
}

#[test]
fn absent_everywhere_is_every_server_that_is_not_disabled_and_no_tool() {
    let selection = World::new().select(&[(None, None), (None, None)]);
    assert_eq!(names(&selection.servers), ["docs", "github", "local git"]);
    assert!(selection.tools.is_empty() && selection.unknown.is_empty());
}

#[test]
fn the_first_layer_that_sets_a_key_decides_it_alone() {
    // Each of session, agent, role and global: absent, none, all, or one name. All 256 combinations, both keys.
    let options = [None, Some("null"), Some("all"), Some("one")];
    let choice = |option: Option<&str>, one: &str| {
        option.map(|text| Choice::from_csv(if text == "one" { one } else { text }))
    };
    let world = World::new();
    for a in options {
        for b in options {
            for c in options {
                for d in options {
                    let layers = [a, b, c, d];
                    let choices: Vec<_> = layers
                        .iter()
                        .map(|o| (choice(*o, "fs_ls"), choice(*o, "github")))
                        .collect();
                    let selection = world.select(&choices);
                    let (tools, servers): (&[&str], &[&str]) = match layers.iter().find_map(|o| *o)
                    {
                        None => (&[], &["docs", "github", "local git"]),
                        Some("null") => (&[], &[]),
                        Some("all") => (
                            &["fs_cat", "fs_ls", "fetch_url", "wörter"],
                            &["docs", "github", "local git"],
                        ),
                        Some(_) => (&["fs_ls"], &["github"]),
                    };
                    assert_eq!(selection.tools, tools, "{layers:?}");
                    assert_eq!(names(&selection.servers), servers, "{layers:?}");
                }
            }
        }
    }
}

#[test]
fn the_two_keys_fall_through_on_their_own() {
    let selection = World::new().select(&[
        (Some(Choice::from_csv("fs")), None),
        (Some(Choice::All), Some(Choice::from_csv("docs"))),
    ]);
    assert_eq!(selection.tools, ["fs_cat", "fs_ls"]);
    assert_eq!(names(&selection.servers), ["docs"]);
}

#[test]
fn an_alias_loses_no_server() {
    let world = World::new();
    assert_eq!(world.servers("code"), ["github", "local git"]);
    assert_eq!(
        world.servers(" docs , code "),
        ["docs", "github", "local git"]
    );
    assert_eq!(world.servers("local git"), ["local git"]);
    // One that is gone is said, and the rest of its alias stays.
    let selection = world.select(&[(None, Some(Choice::from_csv("stale")))]);
    assert_eq!(names(&selection.servers), ["github"]);
    assert_eq!(selection.unknown.len(), 1);
    assert_eq!(selection.unknown[0].name, "gone");
}

#[test]
fn an_unknown_name_is_said_once_with_the_nearest() {
    let world = World::new();
    let selection = world.select(&[(
        Some(Choice::from_csv("fs_cta,worter")),
        Some(Choice::from_csv("dosc,coed,zzzzzz,docs")),
    )]);
    assert_eq!(names(&selection.servers), ["docs"]);
    let said: Vec<(&str, Option<&str>)> = selection
        .unknown
        .iter()
        .map(|u| (u.name.as_str(), u.nearest.as_deref()))
        .collect();
    assert_eq!(
        said,
        [
            ("fs_cta", Some("fs_cat")),
            ("worter", Some("wörter")),
            ("coed", Some("code")),
            ("dosc", Some("docs")),
            ("zzzzzz", None),
        ]
    );
    assert!(
        selection.unknown[3]
            .message()
            .contains("did you mean `docs`?")
    );
}

#[test]
fn a_disabled_server_is_never_selected_and_naming_it_says_why() {
    let world = World::new();
    assert_eq!(world.servers("all"), ["docs", "github", "local git"]);
    let selection = world.select(&[(None, Some(Choice::from_csv("old,docs")))]);
    assert_eq!(names(&selection.servers), ["docs"]);
    assert!(
        selection.unknown[0].message().contains("disabled"),
        "{:?}",
        selection.unknown
    );
}

/// A server inside this process that says it has `capabilities` and nothing more.
async fn live(name: &str, capabilities: serde_json::Value) -> Arc<crate::mcp::ConnectedServer> {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let (input, mut output) = tokio::io::split(theirs);
        let mut lines = tokio::io::BufReader::new(input).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: serde_json::Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "initialize" {
                let answer = serde_json::json!({"jsonrpc": "2.0", "id": message["id"], "result": {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": capabilities,
                    "serverInfo": {"name": "test", "version": "1"},
                }});
                output
                    .write_all(format!("{answer}\n").as_bytes())
                    .await
                    .unwrap();
            }
        }
    });
    let spec = crate::mcp::test_support::program(name, "unused", &[]);
    let (input, output) = tokio::io::split(ours);
    crate::mcp::ConnectedServer::over_streams(&spec, input, output)
        .await
        .unwrap()
}

fn declared(functions: &Functions) -> Vec<&str> {
    functions
        .declarations()
        .iter()
        .map(|declaration| declaration.name.as_str())
        .collect()
}

fn meta(function: MetaFunction, server: &str) -> String {
    let table = crate::mcp::NameTable::new([ServerName::new(server).unwrap()]);
    meta_function_name(
        function,
        table.model_name(&ServerName::new(server).unwrap()).unwrap(),
    )
}

#[tokio::test]
async fn a_server_with_resources_alone_stays_enabled() {
    let server = live("docs", serde_json::json!({"resources": {}})).await;
    let mcp = McpRuntime::new([server], crate::mcp::spill::SpillDir::default());
    let scope = ToolScope::new(&Functions::built_in(), &[], mcp);
    let wanted = [
        MetaFunction::Search,
        MetaFunction::Describe,
        MetaFunction::Read,
    ]
    .map(|f| meta(f, "docs"));
    assert_eq!(declared(&scope.functions), wanted);
    assert_eq!(names(&scope.servers()), ["docs"]);
}

#[tokio::test]
async fn a_server_with_nothing_is_enabled_and_one_that_is_absent_is_not() {
    let server = live("a.b", serde_json::json!({})).await;
    let mcp = McpRuntime::new([server], crate::mcp::spill::SpillDir::default());
    let scope = ToolScope::new(&Functions::built_in(), &[], mcp.clone());
    assert_eq!(names(&scope.servers()), ["a.b"]);
    assert!(
        select_enabled_mcp_servers(&Functions::built_in(), &mcp).is_empty(),
        "nothing is declared there"
    );
}

#[tokio::test]
async fn choosing_tools_never_adds_or_strips_a_meta_function() {
    let all = Functions::built_in();
    let server = live("docs", serde_json::json!({"tools": {}, "resources": {}})).await;
    let mcp = McpRuntime::new([server], crate::mcp::spill::SpillDir::default());
    let search = meta(MetaFunction::Search, "docs");
    let tools = |functions: &Functions| {
        declared(functions)
            .into_iter()
            .filter(|name| !crate::mcp::has_mcp_prefix(name))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let none = select_enabled_functions(&all, &[], &mcp);
    assert_eq!(declared(&none).len(), 4);
    let one = select_enabled_functions(&all, &["fs_cat".to_owned()], &mcp);
    assert_eq!(tools(&one), ["fs_cat"]);
    assert_eq!(declared(&one).len(), 5, "the four of the server stay");
    // Named as if it were a tool, a meta-function is neither in the pool nor declared without its server.
    assert!(!one.pool().contains(&search));
    let named = select_enabled_functions(&all, &[search], &McpRuntime::default());
    assert!(declared(&named).is_empty());
}

fn any_choice() -> impl Strategy<Value = Option<Choice>> {
    let word = prop_oneof![
        "[a-z]{1,3}",
        Just("docs".to_owned()),
        Just("code".to_owned()),
        Just("old".to_owned()),
        Just("fs".to_owned()),
        Just("wörter".to_owned()),
        Just("stale".to_owned()),
        "\\PC{0,6}"
    ];
    prop_oneof![
        Just(None),
        Just(Some(Choice::None)),
        Just(Some(Choice::All)),
        proptest::collection::vec(word, 0..6)
            .prop_map(|names| Some(Choice::from_exact(names.iter().map(String::as_str)))),
    ]
}

fn reversed(choice: Option<Choice>) -> Option<Choice> {
    choice.map(|choice| match choice {
        Choice::These(names) => {
            let mut names: Vec<&str> = names.iter().collect();
            names.reverse();
            Choice::from_exact(names)
        }
        other => other,
    })
}

proptest! {
    #[test]
    fn the_order_of_names_and_of_servers_never_matters(tools in any_choice(), servers in any_choice()) {
        let mut world = World::new();
        let one = world.select(&[(tools.clone(), servers.clone())]);
        world.servers.reverse();
        let other = world.select(&[(reversed(tools), reversed(servers))]);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn what_is_selected_exists(layers in proptest::collection::vec((any_choice(), any_choice()), 0..5)) {
        let world = World::new();
        let selection = world.select(&layers);
        prop_assert!(selection.tools.iter().all(|tool| world.tools.contains(tool)));
        prop_assert!(selection.servers.iter().all(|name| world.servers.iter().any(|s| s.name == *name && !s.disabled)));
        prop_assert!(selection.servers.is_sorted());
    }
}
