use super::*;

#[test]
fn a_kind_is_its_word_and_a_wrong_word_names_the_nearest() {
    for kind in ProviderKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
    assert_eq!("anthropic".parse(), Ok(ProviderKind::Claude));
    let error = "opnai".parse::<ProviderKind>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown client type `opnai`, did you mean `openai`?"
    );
    assert_eq!("response".parse::<Api>().unwrap_err().nearest, "responses");
}

#[test]
fn a_key_is_never_shown() {
    let mut config = ProviderConfig::new("x", ProviderKind::OpenAi);
    config.api_key = Some(Secret::new("sk-secret\n"));
    assert!(!format!("{config:?}").contains("sk-secret"));
    assert_eq!(config.api_key.unwrap().expose(), "sk-secret");
}

#[test]
fn the_environment_wins_over_the_file() {
    let env = |name: &str| match name {
        "MY_GW_API_KEY" => Some("own".to_owned()),
        "OPENAI_API_KEY" => Some("usual".to_owned()),
        _ => None,
    };
    let key = |name: &str, kind, base: Option<&str>| {
        let mut config = ProviderConfig::new(name, kind);
        config.api_key = Some(Secret::new("file"));
        config.api_base = base.map(str::to_owned);
        config
            .with_environment(&env)
            .api_key
            .unwrap()
            .expose()
            .to_owned()
    };
    assert_eq!(
        key("my-gw", ProviderKind::OpenAiCompatible, Some("http://x")),
        "own"
    );
    assert_eq!(key("openai", ProviderKind::OpenAi, None), "usual");
    assert_eq!(key("other", ProviderKind::OpenAi, None), "usual");
    assert_eq!(
        key(
            "other",
            ProviderKind::OpenAi,
            Some("https://api.openai.com")
        ),
        "usual"
    );
    assert_eq!(key("claude", ProviderKind::Claude, None), "file");
}

#[test]
fn a_usual_key_is_not_sent_to_somebody_else() {
    let mut config = ProviderConfig::new("gw", ProviderKind::OpenAi);
    config.api_base = Some("https://api.openai.com.evil.example/v1".to_owned());
    assert_eq!(config.key_variables(), ["GW_API_KEY"]);
}

#[test]
fn a_compatible_client_needs_an_address() {
    let config = ProviderConfig::new("gw", ProviderKind::OpenAiCompatible);
    assert_eq!(
        config.base(),
        Err(ClientError::Config(
            "client `gw` of type `openai-compatible` has no `api_base`".to_owned()
        ))
    );
}

#[test]
fn a_model_that_is_not_listed_is_guessed() {
    let mut config = ProviderConfig::new("openai", ProviderKind::OpenAi);
    config.models = vec![ModelFacts {
        max_input_tokens: Some(7),
        ..ModelFacts::named("mine")
    }];
    assert_eq!(config.model("mine").max_input_tokens, Some(7));
    let unknown = config.model("gpt-77");
    assert!(unknown.supports_vision && unknown.supports_function_calling);
    let local = ProviderConfig::new("l", ProviderKind::Ollama);
    assert!(!local.model("smol").supports_vision);
    assert!(local.model("qwen2.5-VL").supports_vision);
}
