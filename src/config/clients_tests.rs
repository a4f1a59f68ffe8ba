//! Tests of the module beside.

use super::*;
use crate::config::AppConfig;

fn load(text: &str, env: &Env) -> Result<AppConfig> {
    AppConfig::parse(text, Path::new("/c/config.yaml"), env).map(|(app, _)| app)
}

fn key(app: &AppConfig, index: usize) -> Option<String> {
    let provider = app.clients[index].provider().unwrap();
    provider.api_key.as_ref().map(|key| key.expose().to_owned())
}

#[test]
fn an_unknown_type_names_the_nearest_and_the_entry() {
    let error = load("clients:\n- type: ollama\n- type: opnai\n", &Env::default()).unwrap_err();
    let text = format!("{error:?}");
    assert!(
        text.contains("`opnai`") && text.contains("`openai`") && text.contains("client 2"),
        "{text}"
    );
    let error = load(
        "clients:\n- type: openai\n  api: response\n",
        &Env::default(),
    )
    .unwrap_err();
    assert!(format!("{error:?}").contains("`responses`"));
}

#[test]
fn a_missing_type_is_an_error_with_its_line() {
    let error = load("clients:\n- name: x\n", &Env::default()).unwrap_err();
    assert!(
        format!("{error:?}").contains("/c/config.yaml:2"),
        "{error:?}"
    );
}

#[test]
fn names_are_distinct_and_have_no_colon() {
    let two = "clients:\n- type: openai\n- type: claude\n  name: openai\n";
    assert!(
        load(two, &Env::default())
            .unwrap_err()
            .to_string()
            .contains("two clients are called `openai`")
    );
    let colon = load("clients:\n- type: openai\n  name: a:b\n", &Env::default()).unwrap_err();
    assert!(format!("{colon:?}").contains("colon"));
}

#[test]
fn the_environment_wins_over_the_file_and_saves_an_unset_variable() {
    let text = "clients:\n- type: openai\n  name: my-work\n  api_key: ${UNSET}\n- type: claude\n  api_key: from-file\n";
    let env = Env::new([("MY_WORK_API_KEY", "own"), ("ANTHROPIC_API_KEY", "usual")]);
    let app = load(text, &env).unwrap();
    assert_eq!(key(&app, 0).as_deref(), Some("own"));
    assert_eq!(key(&app, 1).as_deref(), Some("usual"));
    let app = load(text, &Env::default()).unwrap();
    assert!(app.clients[0].provider().is_err());
    assert_eq!(key(&app, 1).as_deref(), Some("from-file"));
}

#[test]
fn an_unset_variable_in_a_header_or_base_names_its_field() {
    let header =
        "clients:\n- type: openai\n  patch: {chat_completions: {m: {headers: {X: '${H}'}}}}\n";
    let app = load(header, &Env::default()).unwrap();
    let text = format!("{:?}", app.clients[0].provider().unwrap_err());
    assert!(
        text.contains("patch.chat_completions.m.headers.X") && text.contains("`H`"),
        "{text}"
    );
    let base = "clients:\n- type: openai-compatible\n  api_base: 'http://${HOST}/v1'\n";
    let app = load(base, &Env::default()).unwrap();
    let text = format!("{:?}", app.clients[0].provider().unwrap_err());
    assert!(
        text.contains("clients[0].api_base") && text.contains("`HOST`"),
        "{text}"
    );
}

#[test]
fn an_error_never_shows_a_key() {
    let text = "clients:\n- type: openai\n  api_key: sk-secret\n";
    let app = load(text, &Env::default()).unwrap();
    assert!(!format!("{app:?}").contains("sk-secret"));
}

#[test]
fn patches_keep_the_order_of_the_file() {
    let text = "clients:\n- type: openai\n  patch: {chat_completions: {'gpt-.*': {url: a}, '.*': {url: b}}}\n- type: claude\n  patch: {chat_completions: }\n";
    let app = load(text, &Env::default()).unwrap();
    let models = |index: usize| {
        let provider = app.clients[index].provider().unwrap();
        let patches = provider.patches.iter();
        patches.map(|patch| patch.model.clone()).collect::<Vec<_>>()
    };
    assert_eq!(models(0), ["gpt-.*", ".*"]);
    assert!(models(1).is_empty());
}

#[test]
fn models_that_only_embed_are_no_models_to_ask() {
    let text = "clients:\n- type: openai\n  models:\n  - {name: e, type: embedding}\n  - {name: c, type: chat}\n";
    let app = load(text, &Env::default()).unwrap();
    let names: Vec<&str> = app.clients[0]
        .models
        .iter()
        .map(|model| model.name.as_str())
        .collect();
    assert_eq!(names, ["c"]);
}

#[test]
fn every_variable_that_holds_a_secret_is_known() {
    let text = "clients:\n- type: openai\n  name: my.work\n  api_key: ${A:-x}${B}\n  \
                patch: {chat_completions: {m: {headers: {X: 'Bearer ${C}'}}}}\n";
    let app = load(text, &Env::default()).unwrap();
    let all = app.key_variables();
    for name in [
        "A",
        "B",
        "C",
        "MY_WORK_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
    ] {
        assert!(
            all.iter().any(|variable| variable == name),
            "{name}: {all:?}"
        );
    }
}
