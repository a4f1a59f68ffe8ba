//! Tests of the module beside.

use super::*;
use crate::client::ProviderKind;
use crate::config::testing::Home;

fn set(config: &str, text: &str) -> Result<String> {
    Home::new()
        .context(config)
        .set_model(text)
        .map(|model| model.to_string())
}

#[test]
fn a_model_is_named_with_its_client_or_alone_where_that_is_clear() {
    assert_eq!(set("", "local:eyes").unwrap(), "local:eyes");
    assert_eq!(set("", " local : eyes ").unwrap(), "local:eyes");
    assert_eq!(set("", "only").unwrap(), "other:only");
    assert_eq!(set("", "other").unwrap(), "other:smol");
    let error = set("", "smol").unwrap_err();
    assert!(
        error.hints()[0].contains("`local:smol` or `other:smol`"),
        "{error:?}"
    );
}

#[test]
fn an_unknown_model_or_client_names_the_nearest() {
    let error = set("", "local:eys").unwrap_err();
    assert_eq!(error.to_string(), "there is no model `local:eys`");
    assert!(error.hints()[0].contains("`local:eyes`"), "{error:?}");
    let error = set("", "othr:smol").unwrap_err();
    assert_eq!(error.to_string(), "there is no client `othr`");
    assert!(error.hints()[0].contains("`other`"), "{error:?}");
    for bad in ["", ":", "local:", "zzz", "日本:語"] {
        assert!(set("", bad).is_err(), "{bad:?}");
    }
}

#[test]
fn a_model_without_a_client_is_shown_as_it_was_written() {
    let context = Home::new().context("model: 42");
    assert_eq!(context.model().unwrap().to_string(), "42");
    let error = context.client_config().unwrap_err().to_string();
    assert_eq!(error, "there is no model `42`");
}

#[test]
fn the_first_model_is_the_default() {
    let home = Home::new();
    assert_eq!(home.context("").model().unwrap().to_string(), "local:smol");
    assert_eq!(
        home.context("model: other:only")
            .model()
            .unwrap()
            .to_string(),
        "other:only"
    );
    // What cannot be found stays visible, and is an error when it is used.
    let context = home.context("model: gone:x");
    assert_eq!(context.model().unwrap().to_string(), "gone:x");
    assert!(
        context
            .client_config()
            .unwrap_err()
            .to_string()
            .contains("`gone`")
    );
}

#[test]
fn the_most_specific_layer_has_the_model() {
    let home = Home::new();
    home.write("roles/r.md", "---\nmodel: local:eyes\n---\nx");
    let mut context = home.context("model: local:mute");
    context.use_role("r").unwrap();
    assert_eq!(context.model().unwrap().model, "eyes");
    context.enter_session(None).unwrap();
    assert_eq!(
        context.model().unwrap().model,
        "eyes",
        "the session has none of its own yet"
    );
    context.set_model("other:only").unwrap();
    assert_eq!(context.model().unwrap().model, "only");
    context.exit_session().unwrap();
    assert_eq!(context.model().unwrap().model, "eyes");
    context.exit_role().unwrap();
    assert_eq!(context.model().unwrap().model, "mute");
}

#[test]
fn without_a_model_the_error_lists_the_three_ways() {
    let context = Home::new().context_of("");
    assert!(context.needs_local_model());
    let error = context.client_config().unwrap_err();
    let hints = error.hints().join("\n");
    assert_eq!(error.hints().len(), 3, "{error:?}");
    assert!(
        hints.contains("OPENAI_API_KEY")
            && hints.contains("ollama")
            && hints.contains("config.yaml"),
        "{hints}"
    );
}

#[test]
fn a_found_local_server_gives_the_model() {
    let mut context = Home::new().context_of("");
    let mut provider = ProviderConfig::new("ollama", ProviderKind::Ollama);
    provider.models = vec![ModelFacts::named("llama3")];
    context.add_provider(provider);
    assert!(!context.needs_local_model());
    assert_eq!(context.model().unwrap().to_string(), "ollama:llama3");
    assert_eq!(context.client_config().unwrap().1.name, "llama3");
    assert_eq!(
        context.set_model("ollama:other").unwrap().model,
        "other",
        "its list is what it has now"
    );
}

#[test]
fn a_local_model_can_be_named_before_its_server_is_found() {
    let mut context = Home::new().context("");
    assert_eq!(
        context.set_model("ollama:llama3").unwrap().to_string(),
        "ollama:llama3"
    );
    assert!(context.needs_local_model());
    let error = context.client_config().unwrap_err();
    assert!(
        error
            .hints()
            .iter()
            .any(|hint| hint.contains("ollama serve")),
        "{error:?}"
    );
    context.add_provider(ProviderConfig::new("ollama", ProviderKind::Ollama));
    assert!(!context.needs_local_model());
    assert_eq!(context.client_config().unwrap().1.name, "llama3");
}

#[test]
fn a_configured_client_without_models_takes_any() {
    let mut context = Home::new().context_of("clients: [{type: ollama}]");
    assert!(context.needs_local_model());
    assert!(context.client_config().unwrap_err().hints()[0].contains("`-m ollama:MODEL`"));
    assert_eq!(context.set_model("ollama:x:7b").unwrap().model, "x:7b");
    assert!(!context.needs_local_model());
}

#[test]
fn an_unset_key_variable_is_an_error_only_for_its_client() {
    let mut context = Home::new().context("");
    assert!(context.client_config().is_ok());
    context.set_model("other:only").unwrap();
    let error = context.client_config().unwrap_err();
    assert!(format!("{error:?}").contains("UNSET_KEY"), "{error:?}");
    assert!(
        context
            .app()
            .key_variables()
            .contains(&"UNSET_KEY".to_owned())
    );
}
