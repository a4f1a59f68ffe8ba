//! Files as an existing user has them: they load without a warning and mean what they say.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{Provider, chat_calls, chat_text};

/// A picture of one pixel.
pub const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4,
    0x89, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x64, 0xf8, 0xcf, 0x50,
    0x0f, 0x00, 0x03, 0x86, 0x01, 0x80, 0x5a, 0x34, 0x7d, 0x6b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45,
    0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A home that holds every sample; the client called `local` points at `url`.
fn home(url: &str) -> Home {
    let home = Home::new();
    let samples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/samples");
    copy(&samples, &home.config_dir());
    let config = home.config_dir().join("config.yaml");
    let text = std::fs::read_to_string(&config)
        .unwrap()
        .replace("http://127.0.0.1:8080/v1", url)
        .replace(
            "    max_input_tokens: 4096",
            "    max_input_tokens: 4096\n    supports_vision: true",
        );
    std::fs::write(config, text).unwrap();
    home
}

fn keys(run: crate::support::run::Run) -> crate::support::run::Run {
    run.env("WORK_API_KEY", "k-work")
        .env("ANTHROPIC_API_KEY", "k-claude")
}

#[test]
fn listing_them_warns_of_nothing() {
    let home = home("http://127.0.0.1:1/v1");
    keys(home.coyote(&["--info"])).ok();
    let roles = keys(home.coyote(&["--list-roles"])).ok().stdout;
    assert!(
        roles.contains("reviewer") && roles.contains("translate"),
        "{roles}"
    );
    let sessions = keys(home.coyote(&["--list-sessions"])).ok().stdout;
    assert!(sessions.contains("bugfix"), "{sessions}");
    let models = keys(home.coyote(&["--list-models"])).ok().stdout;
    for model in ["work:gpt-5-mini", "local:smol", "claude:claude-sonnet-4-5"] {
        assert!(models.contains(model), "{model}: {models}");
    }
}

#[test]
fn the_servers_mean_what_they_say() {
    let home = home("http://127.0.0.1:1/v1");
    let output = keys(home.coyote(&["mcp", "servers", "--offline", "--json"])).ok();
    let servers: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = servers.to_string();
    for name in ["github", "local git", "docs", "old"] {
        assert!(text.contains(name), "{name}: {text}");
    }
}

#[test]
fn the_session_resumes_with_the_history_it_had() {
    let provider = Provider::new(vec![chat_text("still one pixel")]);
    let home = home(&provider.url());
    let output = keys(home.coyote(&["-s", "bugfix", "and now?"]))
        .any_stderr()
        .ok();
    assert_eq!(output.stdout, "still one pixel\n");
    let body = &provider.asked()[0].body;
    assert_eq!(body["model"], "smol");
    assert_eq!(body["temperature"], 0.1);
    let messages: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] != "system")
        .collect();
    assert_eq!(
        messages[0]["content"],
        "What does the guide say about retries?"
    );
    let calls = messages[1]["tool_calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "both calls are one parallel group: {body}");
    assert_eq!(calls[0]["id"], "call_1");
    assert_eq!(calls[1]["function"]["name"], "mcp_read_docs");
    assert_eq!(
        (&messages[2]["tool_call_id"], &messages[3]["tool_call_id"]),
        (&json!("call_1"), &json!("call_2"))
    );
    let output: Value = serde_json::from_str(messages[3]["content"].as_str().unwrap()).unwrap();
    assert_eq!(output["text"], "3:retry twice\n");
    assert_eq!(messages[4]["content"], "It says to retry twice.");
    assert_eq!(messages[5]["content"][0]["text"], "And this picture?");
    assert!(
        messages[5]["content"][1]["image_url"]["url"]
            .as_str()
            .unwrap()
            .starts_with("data:image/png;base64,")
    );
    assert_eq!(messages[6]["content"], "One pixel.");
    assert_eq!(messages[7]["content"], "and now?");
}

#[cfg(unix)]
#[test]
fn the_user_tool_runs() {
    let provider = Provider::new(vec![
        chat_calls(&[("c1", "word_count", json!({ "text": "one two three" }))]),
        chat_text("three"),
    ]);
    let home = home(&provider.url());
    std::fs::write(
        home.config_dir().join("config.yaml"),
        format!("model: local:smol\nenabled_tools: word_count\nenabled_mcp_servers: null\nclients:\n- type: openai-compatible\n  name: local\n  api_base: {}\n  models:\n  - name: smol\n", provider.url()),
    )
    .unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    let tool = home.config_dir().join("functions/bin/word_count");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.coyote(&["count"]).any_stderr().ok();
    let messages = &provider.asked()[1].body["messages"];
    assert_eq!(
        messages[2]["content"].as_str().unwrap().trim(),
        "3",
        "{messages}"
    );
}
