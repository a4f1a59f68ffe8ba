use serde_json::json;

use super::*;
use crate::mcp::ConnectedServer;
use crate::mcp::spill::SpillDir;
use crate::mcp::test_support::{connect_to, context, fake, server_name, with_env};
use std::sync::Arc;

fn argument(name: &str, required: bool) -> PromptArgument {
    PromptArgument {
        name: name.into(),
        description: Some(format!("the {name}")),
        required,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn a_pair_ends_its_key_at_the_first_equals_sign() {
    let pairs = pairs(&words(&["title=two words", "empty=", "eq=a=b", "é=😀"])).unwrap();
    let expected = [
        ("title", "two words"),
        ("empty", ""),
        ("eq", "a=b"),
        ("é", "😀"),
    ];
    let expected: Vec<(String, String)> = expected
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    assert_eq!(pairs, expected);
}

#[test]
fn words_that_are_no_pairs_are_refused() {
    let error = |given: &[&str]| pairs(&words(given)).unwrap_err().to_string();
    assert_eq!(error(&["word"]), "`word` is not `KEY=VALUE`");
    assert_eq!(error(&["=x"]), "`=x` has no key before its `=`");
    assert_eq!(error(&["a=x", "b=", "a=y"]), "`a` is given twice");
    let long = "é".repeat(10_000);
    assert!(error(&[&long]).len() < 400);
}

#[test]
fn keys_must_be_declared_and_required_ones_given() {
    let declared = [
        argument("title", true),
        argument("note", false),
        argument("title", true),
    ];
    let given = |keys: &[&str]| -> Vec<(String, String)> {
        keys.iter()
            .map(|key| ((*key).to_owned(), String::new()))
            .collect()
    };
    assert_eq!(
        check_declared(&declared, &given(&["title", "note"])),
        Ok(())
    );
    let error = check_declared(&declared, &given(&["note", "titel"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the prompt has no argument `titel`; did you mean `title`?"
    );
    assert_eq!(missing(&declared, &given(&["note"])), [&declared[0]]);
    assert_eq!(check_required(&declared, &given(&["title"])), Ok(()));
    let error = check_required(&[argument("a", true), argument("b", true)], &[]).unwrap_err();
    assert_eq!(error.to_string(), "the prompt needs `a` and `b`");
}

#[test]
fn what_a_prompt_takes_is_a_sentence() {
    assert_eq!(takes(&[]), "it takes no arguments");
    let bare = PromptArgument {
        description: None,
        ..argument("n", false)
    };
    assert_eq!(
        takes(&[argument("title", true), bare]),
        "it takes `title` (required): the title, `n`"
    );
    let many: Vec<_> = (0..1_000).map(|n| argument(&"x".repeat(n), true)).collect();
    assert!(takes(&many).ends_with(", and 968 more"));
    assert!(takes(&many).len() < 20_000);
    assert_eq!(
        starred(&[argument("a", true), argument("b", false)]),
        "a* b"
    );
}

/// A runtime of one scripted server that logs what it is asked.
struct Bench {
    runtime: McpRuntime,
    server: Arc<ConnectedServer>,
    home: tempfile::TempDir,
}

impl Bench {
    async fn new(scenario: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let log = home.path().join("log");
        let spec = with_env(fake("fake", scenario), "FAKE_LOG", log.to_str().unwrap());
        let server = connect_to(&spec).await.unwrap();
        let spill = SpillDir::new(home.path().join("mcp-resources"));
        Self {
            runtime: McpRuntime::new([server.clone()], spill),
            server,
            home,
        }
    }

    async fn prompt(&self, prompt: &str, arguments: Value) -> Result<ToolOutput, String> {
        let request = PromptRequest {
            prompt: prompt.into(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
        };
        let output = self
            .runtime
            .prompt(self.server.name(), request, &context())
            .await;
        output.map_err(|error| error.to_string())
    }

    async fn block(&self, prompt: &str, arguments: Value) -> String {
        let output = self.prompt(prompt, arguments).await.unwrap();
        assert!(!output.is_error);
        output.value.as_str().unwrap().to_owned()
    }

    /// The parameters of every `prompts/get` so far.
    fn gets(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.home.path().join("log")).unwrap();
        log.lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|message| message["method"] == "prompts/get")
            .map(|mut message| {
                let params = message["params"].as_object_mut().unwrap();
                params.shift_remove("_meta");
                message["params"].take()
            })
            .collect()
    }
}

#[tokio::test]
async fn only_declared_arguments_travel_and_only_as_text() {
    let bench = Bench::new("full").await;
    let block = bench
        .block("greet", json!({ "name": 4.5, "style": null }))
        .await;
    assert_eq!(block, "[user]\nSay hello to 4.5 in plain style");
    bench
        .block("greet", json!({ "name": true, "style": "" }))
        .await;
    bench.block("User Summary", json!({})).await;
    bench.block("optional", json!({ "b": "x" })).await;
    assert_eq!(
        bench.gets(),
        [
            json!({ "name": "greet", "arguments": { "name": "4.5" } }),
            json!({ "name": "greet", "arguments": { "name": "true", "style": "" } }),
            json!({ "name": "User Summary", "arguments": {} }),
            json!({ "name": "optional", "arguments": { "b": "x" } }),
        ]
    );
}

#[tokio::test]
async fn wrong_arguments_teach_and_the_server_is_not_asked() {
    let bench = Bench::new("full").await;
    let takes = "it takes `name` (required): the name, `style`: the style";
    let rows = [
        (json!({}), "the prompt needs `name`"),
        (json!({ "style": "x" }), "the prompt needs `name`"),
        (json!({ "name": null }), "the prompt needs `name`"),
        (
            json!({ "nam": "x" }),
            "the prompt has no argument `nam`; did you mean `name`?",
        ),
        (
            json!({ "name": ["x"] }),
            "`name` is a list, and a prompt's arguments are strings",
        ),
        (
            json!({ "name": {} }),
            "`name` is an object, and a prompt's arguments are strings",
        ),
    ];
    for (arguments, problem) in rows {
        let error = bench.prompt("greet", arguments).await.unwrap_err();
        assert_eq!(error, format!("{problem}; {takes}"));
    }
    let error = bench.prompt("gret", json!({})).await.unwrap_err();
    assert_eq!(
        error,
        "MCP server `fake` has no prompt `gret`; did you mean `greet`?"
    );
    let error = bench.prompt("zzzzzzzz", json!({})).await.unwrap_err();
    assert!(error.contains("`mcp_search_fake` finds"), "{error}");
    assert_eq!(bench.gets(), [Value::Null; 0]);
}

#[tokio::test]
async fn prompts_of_every_page_are_reached() {
    let bench = Bench::new("pages").await;
    assert_eq!(bench.block("prompt_5", json!({})).await, "[user]\nprompt_5");
}

#[tokio::test]
async fn a_dialog_with_a_picture_is_one_block_without_base64() {
    let bench = Bench::new("full").await;
    let block = bench.block("dialog", json!({})).await;
    let path = bench.home.path().join("mcp-resources/fake");
    let (before, after) = block.split_once(path.to_str().unwrap()).unwrap();
    assert_eq!(
        before,
        "[user]\nWhat is this?\n\n[assistant]\nA picture.\n\n[user]\nAnd this?\n\n[user]\n[image image/png 67 bytes: "
    );
    assert_eq!(
        after.split_once(".png]").unwrap().1,
        "\n\n[user]\n[resource doc://notes text/plain]\nsome notes"
    );
    assert!(!block.contains("iVBORw0KGgo"));
}

#[tokio::test]
async fn a_server_without_prompts_is_not_asked_for_any() {
    let bench = Bench::new("tools-only").await;
    let error = bench.prompt("greet", json!({})).await.unwrap_err();
    assert!(
        error.starts_with("MCP server `fake` has no prompts"),
        "{error}"
    );
    let declared = bench
        .runtime
        .declared_prompt(bench.server.name(), "greet", &context())
        .await;
    let server = server_name("fake");
    assert_eq!(declared, Err(PromptError::NoPrompts { server }));
    assert_eq!(bench.gets(), [Value::Null; 0]);
}

#[tokio::test]
async fn the_person_gets_the_raw_answer_beside_the_block() {
    let bench = Bench::new("full").await;
    let given = [("name".to_owned(), "Ada".to_owned())];
    let name = bench.server.name();
    let answer = bench
        .runtime
        .get_prompt(name, "greet", &given, &context())
        .await
        .unwrap();
    assert_eq!(answer.raw["messages"][0]["role"], "user");
    assert_eq!(
        answer.block.unwrap().text,
        "[user]\nSay hello to Ada in plain style"
    );
    let error = bench
        .runtime
        .get_prompt(name, "fail", &[], &context())
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("Unknown prompt: fail"),
        "{error}"
    );
}
