//! Search, describe, call and read on the scripted server, as the model sees them.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::mcp::kept::ResourceFacts;
use crate::mcp::meta_function_name;
use crate::mcp::spec::ServerSpec;
use crate::mcp::test_support::{call, connect_to, context, fake, server_name, with_env};

/// A runtime of one scripted server that logs what it is asked.
struct Bench {
    runtime: McpRuntime,
    name: ServerName,
    home: tempfile::TempDir,
}

impl Bench {
    async fn new(scenario: &str) -> Self {
        Self::of(fake("fake", scenario)).await
    }

    async fn of(spec: ServerSpec) -> Self {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("log");
        let name = spec.name.clone();
        let spec = with_env(spec, "FAKE_LOG", log.to_str().unwrap());
        let server = connect_to(&spec).await.unwrap();
        let spill = SpillDir::new(home.path().join("mcp-resources"));
        Self {
            runtime: McpRuntime::new([server], spill),
            name,
            home,
        }
    }

    fn server(&self) -> &Arc<ConnectedServer> {
        self.runtime.server(&self.name).unwrap()
    }

    async fn search(&self, query: &str) -> Value {
        let request = SearchRequest {
            query: query.into(),
            top_k: 20,
        };
        self.runtime
            .search(&self.name, request, &context())
            .await
            .unwrap()
            .value
    }

    async fn describe(&self, id: &str, kind: CatalogKind) -> Result<Value, String> {
        let request = DescribeRequest {
            id: id.into(),
            kind,
        };
        let output = self.runtime.describe(&self.name, request, &context()).await;
        output
            .map(|output| output.value)
            .map_err(|error| error.to_string())
    }

    async fn invoke(&self, tool: &str) -> Result<ToolOutput, String> {
        let request = InvokeRequest {
            tool: tool.into(),
            arguments: Map::new(),
        };
        let output = self.runtime.invoke(&self.name, request, &context()).await;
        output.map_err(|error| error.to_string())
    }

    async fn read_as(&self, request: ReadRequest) -> Result<Value, String> {
        let output = self.runtime.read(&self.name, request, &context()).await;
        output
            .map(|output| output.value)
            .map_err(|error| error.to_string())
    }

    async fn read(&self, uri: &str) -> Result<Value, String> {
        self.read_as(ReadRequest {
            uri: uri.into(),
            ..ReadRequest::default()
        })
        .await
    }

    async fn read_template(&self, uri: &str, arguments: Value) -> Result<Value, String> {
        let arguments = arguments.as_object().cloned();
        self.read_as(ReadRequest {
            uri: uri.into(),
            arguments,
            ..ReadRequest::default()
        })
        .await
    }

    /// What the server was asked since the handshake.
    fn asked(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        log.lines()
            .map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["method"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .filter(|method| method != "initialize" && !method.starts_with("notifications/"))
            .collect()
    }

    fn asked_for(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == method).count()
    }
}

fn names(items: &Value) -> Vec<&str> {
    items
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect()
}

fn notes(items: &Value) -> Vec<&str> {
    items
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["note"].as_str())
        .collect()
}

// --- catalog ------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn every_page_of_every_kind_is_in_the_catalog() {
    let bench = Bench::new("pages").await;
    let catalog = bench
        .runtime
        .catalog_items(&bench.name, &CatalogKind::ALL, &context())
        .await
        .unwrap();
    for kind in CatalogKind::ALL {
        assert_eq!(
            catalog
                .items
                .iter()
                .filter(|item| item.kind == kind)
                .count(),
            5,
            "{kind}"
        );
    }
    assert_eq!(names(&bench.search("").await).len(), 20);
    assert!(names(&bench.search("prompt_5").await).first() == Some(&"prompt_5"));
}

#[tokio::test]
async fn kinds_that_are_not_advertised_are_never_asked_for() {
    let bench = Bench::new("tools-only").await;
    bench.search("echo").await;
    let refused = bench.describe("x", CatalogKind::Prompt).await.unwrap_err();
    assert!(refused.contains("has no prompts"), "{refused}");
    let refused = bench.read("doc://notes").await.unwrap_err();
    assert!(refused.contains("has no resources"), "{refused}");
    assert_eq!(bench.asked(), ["tools/list"]);

    let bench = Bench::new("resources-only").await;
    let refused = bench.invoke("echo").await.unwrap_err();
    assert!(refused.contains("has no tools"), "{refused}");
    assert!(bench.asked().is_empty());
}

#[tokio::test]
async fn describing_lists_the_one_kind_it_needs() {
    let bench = Bench::new("full").await;
    bench.describe("echo", CatalogKind::Tool).await.unwrap();
    assert_eq!(bench.asked(), ["tools/list"]);
}

#[tokio::test]
async fn nothing_is_kept_between_searches() {
    let bench = Bench::new("full").await;
    bench.search("echo").await;
    bench.search("echo").await;
    for method in [
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    ] {
        assert_eq!(bench.asked_for(method), 2, "{method}");
    }
}

#[tokio::test]
async fn all_kinds_are_asked_for_before_one_has_answered() {
    let bench = Bench::new("stall").await; // no list ever ends
    let cx = context();
    let listing = bench
        .runtime
        .catalog_items(&bench.name, &CatalogKind::ALL, &cx);
    let all_asked = async {
        let asked = || {
            CatalogKind::ALL
                .iter()
                .all(|kind| bench.asked_for(kind.list().method()) > 0)
        };
        crate::mcp::test_support::eventually("a request for each kind", asked).await;
        cx.abort.cancel();
    };
    let (result, ()) = tokio::join!(listing, all_asked);
    assert_eq!(result, Err(McpError::Cancelled));
}

#[tokio::test]
async fn one_name_and_several_kinds_are_several_items() {
    let bench = Bench::new("twins").await;
    let found = bench.search("status").await;
    let kinds: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.len(), 3);
    for (kind, description) in [
        (CatalogKind::Tool, "the tool"),
        (CatalogKind::Resource, "the resource"),
        (CatalogKind::Prompt, "the prompt"),
    ] {
        let described = bench.describe("status", kind).await.unwrap();
        assert_eq!(described["description"], description);
    }
}

#[tokio::test]
async fn parts_of_names_are_found_in_the_same_order_each_time() {
    let bench = Bench::new("names").await;
    let first = bench.search("issue").await;
    assert_eq!(names(&first)[..2], ["createIssue", "create_issue_comment"]);
    assert_eq!(bench.search("issue").await, first);
    assert_eq!(
        names(&bench.search("server log").await)[0],
        "HTTPServerLog2"
    );
}

#[tokio::test]
async fn a_bad_tool_costs_itself() {
    let bench = Bench::new("bad-tool").await;
    let found = bench.search("tool").await;
    assert_eq!(
        names(&found)
            .iter()
            .filter(|name| name.starts_with("tool_"))
            .count(),
        5
    );
    let bad = bench.describe("tool_3", CatalogKind::Tool).await.unwrap();
    assert_eq!(bad["unreadable"], "it has no `inputSchema`");
    bench.describe("tool_4", CatalogKind::Tool).await.unwrap();
    assert!(bench.invoke("tool_4").await.is_ok());
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_noted_and_costs_no_other() {
    let bench = Bench::new("resources-unserved").await;
    let found = bench.search("echo").await;
    assert_eq!(names(&found)[0], "echo");
    let found_notes = notes(&found);
    assert_eq!(found_notes.len(), 1, "{found_notes:?}");
    assert!(
        found_notes[0].contains("resources could not be listed"),
        "{found_notes:?}"
    );

    let bench = Bench::new("templates-unserved").await;
    assert!(
        notes(&bench.search("echo").await).is_empty(),
        "templates alone are no failure"
    );
}

#[tokio::test]
async fn a_search_without_a_match_says_so() {
    let bench = Bench::new("tools-only").await;
    let found = bench.search("zzzzzz").await;
    assert!(notes(&found)[0].starts_with("nothing matches"), "{found}");
    let bench = Bench::new("nothing").await;
    assert_eq!(
        notes(&bench.search("x").await),
        ["the server lists nothing"]
    );
}

#[tokio::test]
async fn audiences_are_in_search_results() {
    let bench = Bench::new("full").await;
    let found = bench.search("doc://private").await;
    assert_eq!(found[0]["audience"], json!(["user"]));
}

#[tokio::test]
async fn an_unknown_id_gets_the_nearest() {
    let bench = Bench::new("full").await;
    let error = bench.describe("ecco", CatalogKind::Tool).await.unwrap_err();
    assert!(
        error.contains("did you mean") && error.contains("`echo`"),
        "{error}"
    );
    let error = bench
        .describe("doc://notes", CatalogKind::Tool)
        .await
        .unwrap_err();
    assert!(error.contains("`resource`"), "{error}");
    let error = bench
        .describe("zzzzzzzzzzzz", CatalogKind::Prompt)
        .await
        .unwrap_err();
    assert!(error.contains("mcp_search_fake"), "{error}");
}

#[tokio::test]
async fn a_description_points_to_the_functions_by_name() {
    let bench = Bench::of(fake("a b", "full")).await;
    let model_name = bench
        .runtime
        .names()
        .model_name(&bench.name)
        .unwrap()
        .clone();
    let echo = bench.describe("echo", CatalogKind::Tool).await.unwrap();
    assert_eq!(
        echo["example"]["function"],
        meta_function_name(MetaFunction::Invoke, &model_name)
    );
    assert_eq!(
        echo["example"]["arguments"],
        json!({"tool": "echo", "arguments": {"text": "value"}})
    );
    let notes = bench
        .describe("doc://notes", CatalogKind::Resource)
        .await
        .unwrap();
    assert_eq!(
        notes["example"]["function"],
        meta_function_name(MetaFunction::Read, &model_name)
    );
}

#[tokio::test]
async fn huge_descriptions_stay_below_the_ceiling() {
    let bench = Bench::new("huge").await;
    let found = bench.search("").await;
    assert!(found.to_string().len() <= 409_600);
    assert!(found[0]["description"].as_str().unwrap().len() <= 4096);
}

#[tokio::test]
async fn features_come_from_the_live_handles() {
    let bench = Bench::new("resources-only").await;
    let features = bench.runtime.server_features();
    assert_eq!(features.len(), 1);
    assert_eq!(
        (
            features[0].tools,
            features[0].resources,
            features[0].prompts
        ),
        (false, true, false)
    );

    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let unseen = ConnectedServer::without_handshake(&fake("a-unseen", "full"), input, output);
    let both = [Arc::clone(bench.server()), unseen];
    let runtime = McpRuntime::new(both, SpillDir::default());
    let features = runtime.server_features();
    let names: Vec<_> = features
        .iter()
        .map(|features| features.name.as_str())
        .collect();
    assert_eq!(names, ["a-unseen", "fake"]);
    assert_eq!(
        (
            features[0].tools,
            features[0].resources,
            features[0].prompts
        ),
        (true, false, false)
    );
    drop(theirs);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_nearest() {
    let bench = Bench::new("full").await;
    let request = SearchRequest {
        query: String::new(),
        top_k: 1,
    };
    let error = bench
        .runtime
        .search(&server_name("fakee"), request, &context())
        .await
        .unwrap_err();
    let expected = McpError::UnknownServer {
        name: "fakee".into(),
        nearest: vec!["fake".into()],
    };
    assert_eq!(error, expected);
}

#[tokio::test]
async fn hints_are_listed_once_per_connection() {
    let bench = Bench::new("full").await;
    let hints = async |tool: &str| {
        bench
            .runtime
            .tool_hints(&bench.name, tool, &context())
            .await
            .unwrap()
    };
    assert_eq!(hints("delete_all").await.unwrap().destructive, Some(true));
    assert_eq!(hints("look").await.unwrap().read_only, Some(true));
    assert_eq!(hints("pid").await, Some(ToolHints::default()));
    assert_eq!(hints("nope").await, None);
    assert_eq!(bench.asked_for("tools/list"), 1);

    let before = bench.server().generation(ListKind::Tools);
    call(bench.server(), "change", json!({})).await.unwrap();
    crate::mcp::test_support::eventually("the change", || {
        bench.server().generation(ListKind::Tools) > before
    })
    .await;
    hints("look").await;
    assert_eq!(
        bench.asked_for("tools/list"),
        2,
        "a change is a reason to list again"
    );
}

// --- calls --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn results_of_every_kind_go_through_the_content_policy() {
    let bench = Bench::new("full").await;
    let of = async |tool: &str| bench.invoke(tool).await.unwrap();
    let failure = of("error").await;
    assert!(failure.is_error);
    assert_eq!(failure.value["content"].as_array().unwrap().len(), 3);
    assert!(!of("says_error").await.is_error);
    let hologram = of("hologram").await.value;
    assert_eq!(hologram["content"][1]["type"], "hologram");
    assert_eq!(hologram["content"][2]["text"], "after");
    for (tool, extension) in [
        ("audio", "wav"),
        ("image", "png"),
        ("pdf", "pdf"),
        ("mislabeled", "bin"),
    ] {
        let item = of(tool).await.value["content"][0].clone();
        let path = PathBuf::from(item["path"].as_str().unwrap());
        assert_eq!(path.extension().unwrap(), extension);
        assert_eq!(
            std::fs::metadata(&path).unwrap().len(),
            item["size_bytes"].as_u64().unwrap()
        );
    }
    let link = of("link").await.value["content"][0].clone();
    let expected = json!({"function": "mcp_read_fake", "arguments": {"uri": "doc://linked"}});
    assert_eq!(link["read_with"], expected);
    let followed = bench
        .read(link["read_with"]["arguments"]["uri"].as_str().unwrap())
        .await
        .unwrap();
    assert_eq!(followed["text"], "what was linked");
    assert_eq!(
        of("embedded_text").await.value["content"][0]["text"],
        "some notes"
    );
    assert_eq!(
        of("shadowed").await.value["content"][0]["text"],
        "still here"
    );
    assert_eq!(
        of("bad_role").await.value["content"][0]["audience"],
        json!(["system"])
    );
    assert_eq!(
        of("big_text").await.value["content"][0]["total_bytes"],
        5_000_000
    );
    let rows = json!({"rows": [1, 2]});
    for tool in ["empty", "structured", "structured_same"] {
        assert_eq!(
            of(tool).await.value,
            json!({"content": [], "structuredContent": rows}),
            "{tool}"
        );
    }
    assert_eq!(
        of("structured_other").await.value["content"][0]["text"],
        "two rows"
    );
    assert_eq!(
        of("structured_empty").await.value["structuredContent"],
        json!({})
    );
    assert_eq!(
        of("structured_big").await.value["structuredContent"]["truncated"],
        true
    );
    assert_eq!(of("no_content").await.value, json!({"content": []}));
}

#[tokio::test]
async fn a_refused_call_says_what_to_do_next() {
    let bench = Bench::new("full").await;
    let error = bench.invoke("no_such_tool").await.unwrap_err();
    assert!(
        error.contains("Unknown tool") && error.contains("mcp_describe_fake"),
        "{error}"
    );
    let error = bench.invoke("input_required").await.unwrap_err();
    assert!(error.contains("input"), "{error}");
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let bench = Bench::new("full").await;
    let cx = context();
    let request = InvokeRequest {
        tool: "never".into(),
        arguments: Map::new(),
    };
    let call = bench.runtime.invoke(&bench.name, request, &cx);
    let cancel = async {
        crate::mcp::test_support::eventually("the call", || bench.asked_for("tools/call") == 1)
            .await;
        cx.abort.cancel();
    };
    let (result, ()) = tokio::join!(call, cancel);
    assert_eq!(result, Err(McpError::Cancelled));
    assert!(bench.invoke("look").await.is_ok());
}

// --- reads --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn texts_blobs_and_what_is_neither() {
    let bench = Bench::new("full").await;
    let of = async |uri: &str| bench.read(uri).await.unwrap();
    assert_eq!(of("doc://notes").await["text"], "some notes");
    assert!(
        of("doc://both").await["error"]
            .as_str()
            .unwrap()
            .contains("both")
    );
    assert!(
        of("doc://neither").await["error"]
            .as_str()
            .unwrap()
            .contains("neither")
    );
    assert_eq!(of("doc://nothing").await["empty"], true);
    let several = of("doc://several").await;
    assert_eq!(several.as_array().unwrap().len(), 3);
    assert_eq!(several[2]["text"], "third");
    assert_eq!(of("blob://json").await["text"], r#"{"a":1}"#);
    let rows = [
        ("blob://png", "png"),
        ("blob://png-as-text", "bin"),
        ("blob://untyped", "bin"),
        ("blob://url-safe", "bin"),
        ("mime://traversal", "bin"),
        ("mime://parameters", "html"),
        ("mime://case", "png"),
        ("mime://long", "bin"),
    ];
    for (uri, extension) in rows {
        let value = of(uri).await;
        let path = PathBuf::from(value["path"].as_str().unwrap());
        assert_eq!(path.extension().unwrap(), extension, "{uri}");
        assert!(path.starts_with(bench.home.path().join("mcp-resources/fake")));
        assert_eq!(value["sniffed"], false);
    }
    assert!(
        of("blob://bad").await["error"]
            .as_str()
            .unwrap()
            .contains("at byte 4")
    );
    assert!(
        of("blob://60mb").await["error"]
            .as_str()
            .unwrap()
            .contains("50 MiB")
    );
}

#[tokio::test]
async fn wide_text_is_paged_exactly() {
    let bench = Bench::new("full").await;
    let mut joined = String::new();
    let mut offset = 0;
    loop {
        let request = ReadRequest {
            uri: "text://wide".into(),
            offset,
            max_bytes: Some(204_799),
            ..ReadRequest::default()
        };
        let page = bench.read_as(request).await.unwrap();
        joined.push_str(page["text"].as_str().unwrap());
        match page["next_offset"].as_u64() {
            Some(next) => offset = next,
            None => break,
        }
    }
    assert!(joined == "𝄞".repeat(512 * 1024));
}

#[tokio::test]
async fn patterns_filter_and_bad_ones_teach() {
    let bench = Bench::new("full").await;
    let read = async |uri: &str, pattern: &str| {
        let pattern = Some(pattern.to_owned());
        bench
            .read_as(ReadRequest {
                uri: uri.into(),
                pattern,
                ..ReadRequest::default()
            })
            .await
    };
    let log = read("text://log", "ERROR").await.unwrap();
    let text = log["text"].as_str().unwrap();
    assert!(text.contains("\n1000:2026-11-29 ERROR line 1000"), "{text}");
    assert!(text.contains("\n1002-2026-11-29 info line 1002"));
    assert!(text.contains("\n--\n1998-"));
    assert_eq!(
        read("text://backtrack", "(a+)+$").await.unwrap()["text"],
        ""
    );
    let none = read("text://log", "no such thing").await.unwrap();
    assert!(
        none["note"]
            .as_str()
            .unwrap()
            .contains("30000 lines were searched")
    );
    let asked = bench.asked().len();
    let error = read("text://log", "[").await.unwrap_err();
    assert!(error.contains("at byte 0"), "{error}");
    assert_eq!(
        bench.asked().len(),
        asked,
        "a bad pattern asks the server nothing"
    );
}

#[tokio::test]
async fn templates_are_expanded_or_teach() {
    let bench = Bench::new("full").await;
    let read = bench
        .read_template("x://e/{t}", json!({"t": "a/b é"}))
        .await
        .unwrap();
    assert_eq!(read["uri"], "x://e/a%2Fb%20%C3%A9");
    let rows = [
        ("x://e/{t}", json!({}), "a value for `t`"),
        ("x://e/{t}", json!({"u": "1"}), "a value for `t`"),
        ("x://e/{t}", json!({"t": "1", "u": "1"}), "does not use `u`"),
        ("x://{?q}", json!({"q": "1"}), "operator"),
        (
            "x://{a,b}",
            json!({"a": "1", "b": "2"}),
            "several variables",
        ),
        ("x://{t:3}", json!({"t": "1"}), "prefix"),
        ("x://{t", json!({"t": "1"}), "not closed"),
    ];
    let asked = bench.asked_for("resources/read");
    for (uri, arguments, message) in rows {
        let error = bench.read_template(uri, arguments).await.unwrap_err();
        assert!(error.contains(message), "{uri}: {error}");
    }
    let error = bench.read("file://{owner}/{path}").await.unwrap_err();
    assert!(error.contains("`owner` and `path`"), "{error}");
    assert_eq!(bench.asked_for("resources/read"), asked);
    // What is no template is for the server to judge.
    let error = bench.read("x://{t").await.unwrap_err();
    assert!(error.contains("mcp_search_fake"), "{error}");
}

#[tokio::test]
async fn a_uri_that_is_listed_as_it_stands_is_no_template() {
    let bench = Bench::new("full").await;
    let facts = ResourceFacts {
        resources: [("x://e/{t}".to_owned(), Vec::new())].into(),
        ..ResourceFacts::default()
    };
    let generation = (
        bench.server().generation(ListKind::Resources),
        bench.server().generation(ListKind::ResourceTemplates),
    );
    assert!(bench.read("x://e/{t}").await.is_err());
    let (_, finder) = bench.server().kept().resources().find(generation);
    finder.unwrap().send_replace(Some(Arc::new(facts)));
    assert_eq!(bench.read("x://e/{t}").await.unwrap()["text"], "x://e/{t}");
}

#[tokio::test]
async fn the_first_read_learns_the_audience_and_later_ones_ask_once() {
    let bench = Bench::new("full").await;
    let private = bench.read("doc://private").await.unwrap();
    assert_eq!(private["audience"], json!(["user"]));
    assert_eq!(bench.asked_for("resources/list"), 1);
    assert_eq!(bench.asked_for("resources/templates/list"), 1);
    let asked = bench.asked().len();
    let expanded = bench
        .read_template("file://{owner}/{path}", json!({"owner": "a", "path": "b"}))
        .await
        .unwrap();
    assert_eq!(expanded["audience"], json!(["assistant"]));
    let plain = bench.read("doc://notes").await.unwrap();
    assert_eq!(plain.get("audience"), None);
    assert_eq!(bench.asked().len(), asked + 2, "one request a read");

    let before = bench.server().generation(ListKind::Resources);
    call(bench.server(), "change", json!({})).await.unwrap();
    crate::mcp::test_support::eventually("the change", || {
        bench.server().generation(ListKind::Resources) > before
    })
    .await;
    bench.read("doc://private").await.unwrap();
    assert_eq!(
        bench.asked_for("resources/list"),
        2,
        "a change is a reason to walk again"
    );
}

#[tokio::test]
async fn reads_at_once_share_one_walk() {
    let bench = Bench::new("full").await;
    let (one, other) = tokio::join!(bench.read("doc://private"), bench.read("doc://private"));
    assert_eq!(one.unwrap()["audience"], json!(["user"]));
    assert_eq!(other.unwrap()["audience"], json!(["user"]));
    assert_eq!(bench.asked_for("resources/list"), 1);
    assert_eq!(bench.asked_for("resources/read"), 2);
}

#[tokio::test]
async fn a_walk_that_fails_or_hangs_costs_the_read_nothing() {
    for scenario in ["resources-unserved", "list-null", "stall"] {
        let bench = Bench::new(scenario).await;
        let read = bench.read("doc://private").await.unwrap();
        assert_eq!(read["text"], "secret", "{scenario}");
        assert_eq!(read.get("audience"), None, "{scenario}");
        let lists = bench.asked_for("resources/list");
        bench.read("doc://private").await.unwrap();
        assert_eq!(
            bench.asked_for("resources/list"),
            lists,
            "{scenario}: one walk"
        );
    }
}

#[tokio::test]
async fn lowered_results_are_whole_json() {
    let bench = Bench::new("full").await;
    let mut cx = context();
    cx.max_result = Some(3_000);
    let request = ReadRequest {
        uri: "text://log".into(),
        ..ReadRequest::default()
    };
    let page = bench.runtime.read(&bench.name, request, &cx).await.unwrap();
    let text = page.to_text();
    assert!(text.len() <= 3_000);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["next_offset"], value["text"].as_str().unwrap().len());
    let request = SearchRequest {
        query: String::new(),
        top_k: 20,
    };
    let found = bench
        .runtime
        .search(&bench.name, request, &cx)
        .await
        .unwrap();
    assert!(found.to_text().len() <= 3_000);
}

#[tokio::test]
async fn bytes_are_read_whole() {
    let bench = Bench::new("full").await;
    let read = async |uri: &str| {
        bench
            .runtime
            .read_bytes(&bench.name, uri, None, &context())
            .await
    };
    assert_eq!(read("doc://notes").await.unwrap()[0].bytes, b"some notes");
    let png = read("blob://png").await.unwrap().remove(0);
    assert!(png.bytes.starts_with(b"\x89PNG"));
    assert_eq!(
        (png.uri.as_str(), png.mime_type.as_deref()),
        ("blob://png", Some("image/png"))
    );
    assert_eq!(
        read("blob://url-safe").await.unwrap()[0].bytes,
        [0xfb, 0xff, 0xfe, 0xff]
    );
    assert!(read("doc://nothing").await.unwrap().is_empty());
    for (uri, message) in [
        ("blob://60mb", "50 MiB"),
        ("doc://both", "both"),
        ("blob://bad", "at byte 4"),
    ] {
        let error = read(uri).await.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// What becomes of `result` as the answer to the first request of each function.
async fn whatever_happens_to(result: &Value) -> Vec<Result<ToolOutput, McpError>> {
    let home = tempfile::tempdir().unwrap();
    let runtime = || {
        let answers = (0..4).map(|id| {
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            format!("{answer}\n").into_bytes()
        });
        let server = crate::mcp::transport::tests::scripted(answers.collect());
        let spill = SpillDir::new(home.path().join("mcp-resources"));
        (server.name().clone(), McpRuntime::new([server], spill))
    };
    let mut outcomes = Vec::new();
    let (name, it) = runtime();
    let request = SearchRequest {
        query: "content".into(),
        top_k: 20,
    };
    outcomes.push(it.search(&name, request, &context()).await);
    let (name, it) = runtime();
    let request = DescribeRequest {
        id: "content".into(),
        kind: CatalogKind::Tool,
    };
    outcomes.push(it.describe(&name, request, &context()).await);
    let (name, it) = runtime();
    let request = InvokeRequest {
        tool: "content".into(),
        arguments: Map::new(),
    };
    outcomes.push(it.invoke(&name, request, &context()).await);
    let (name, it) = runtime();
    let request = ReadRequest {
        uri: "x://y".into(),
        arguments: None,
        pattern: Some("a".into()),
        offset: 1,
        max_bytes: None,
    };
    outcomes.push(it.read(&name, request, &context()).await);
    outcomes
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// `M-20`, `M-54`, §7: whatever a server answers, every function ends with a bounded answer or an error that says
    /// something.
    #[test]
    fn any_answer_of_a_server_ends_every_function(
        whole in crate::mcp::decode::tests::any_json(),
        items in proptest::collection::vec(crate::mcp::decode::tests::any_json(), 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mixed = json!({
            "tools": items, "contents": items, "content": items, "structuredContent": whole, "nextCursor": whole,
        });
        for result in [whole, mixed] {
            for outcome in runtime.block_on(whatever_happens_to(&result)) {
                match outcome {
                    Ok(output) => proptest::prop_assert!(output.value.to_string().len() <= 409_600),
                    Err(error) => proptest::prop_assert!(!error.to_string().is_empty()),
                }
            }
        }
    }
}
