//! Tests of the module beside.

use super::*;
use crate::config::testing::Home;
use crate::config::{AppConfig, Env, Input};

#[test]
fn it_has_every_place_and_every_setting() {
    let home = Home::new();
    let context = home.context("enabled_tools: fs_cat");
    let json = context.info().to_json();
    let text = context.info().to_text();
    for place in [
        "config_file",
        "env_file",
        "mcp_file",
        "roles_dir",
        "sessions_dir",
        "agents_dir",
        "macros_dir",
        "functions_dir",
        "log_file",
        "history_dir",
        "spill_dir",
    ] {
        let shown = json["files"][place].as_str().unwrap();
        assert!(shown.starts_with(home.cwd().to_str().unwrap()), "{place}");
        assert!(text.contains(shown), "{place}");
    }
    assert_eq!(json["now"]["model"], "local:smol");
    assert_eq!(json["now"]["enabled_tools"], serde_json::json!(["fs_cat"]));
    assert_eq!(
        json["now"]["enabled_mcp_servers"],
        serde_json::json!(["docs", "github", "local git"])
    );
}

#[test]
fn it_never_shows_a_secret() {
    let home = Home::new();
    let mut context = home.context("");
    let env = Env::new([("OTHER_API_KEY", "sk-from-env")]);
    let text = "clients:\n- {type: openai, name: one, api_key: sk-from-file}\n- {type: openai, name: other}\n";
    let (app, _) = AppConfig::parse(text, &home.paths.config_file(), &env).unwrap();
    context.app = app;
    let shown = format!("{}{}", context.info().to_text(), context.info().to_json());
    assert!(shown.contains("key set"), "{shown}");
    assert!(!shown.contains("sk-"), "{shown}");
}

#[test]
fn role_and_session_are_shown_while_they_are_in_force() {
    let home = Home::new();
    home.write("roles/r.md", "---\ntemperature: 0.5\n---\nBe {{__os__}}");
    let mut context = home.context("");
    assert!(context.role_info().is_none() && context.session_info().is_none());
    context.use_role("r").unwrap();
    assert!(context.role_info().unwrap().contains("{{__os__}}"));
    context.enter_session(Some("ü")).unwrap();
    context.begin(&Input::from_str("x")).unwrap();
    context.record(Message::assistant("y"));
    context.commit().unwrap();
    let json = context.session_info().unwrap().to_json();
    assert_eq!(json["session"]["name"], "ü");
    assert_eq!(json["session"]["questions"], 1);
    assert_eq!(json["session"]["unsaved"], true);
}
