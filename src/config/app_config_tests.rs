//! Tests of the module beside.

use super::*;
use crate::client::{Api, ProviderKind};

const SAMPLE: &str = include_str!("../../tests/data/home/config.yaml");

fn file() -> &'static Path {
    Path::new("/c/config.yaml")
}

fn load(text: &str) -> (AppConfig, Vec<String>) {
    load_with(text, &Env::default())
}

fn load_with(text: &str, env: &Env) -> (AppConfig, Vec<String>) {
    AppConfig::parse(text, file(), env).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn fails(text: &str) -> String {
    format!(
        "{:?}",
        AppConfig::parse(text, file(), &Env::default()).unwrap_err()
    )
}

fn names(choice: Option<&Choice>) -> String {
    choice.map_or("absent".to_owned(), ToString::to_string)
}

#[test]
fn the_sample_loads_without_a_warning_and_means_what_it_says() {
    let env = Env::new([("WORK_API_KEY", "w-key"), ("ANTHROPIC_API_KEY", "a-key")]);
    let (app, warnings) = load_with(SAMPLE, &env);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(app.model.as_deref(), Some("work:gpt-5-mini"));
    assert_eq!(app.temperature, Some(0.2));
    assert_eq!(app.top_p, None);
    assert!(
        app.stream
            && app.save
            && app.highlight
            && app.function_calling_support
            && app.mcp_server_support
    );
    assert_eq!(app.keybindings, Keybindings::Vi);
    assert_eq!(app.editor.as_deref(), Some("hx"));
    assert_eq!(app.wrap, Wrap::Auto);
    assert_eq!(app.theme.as_deref(), Some("dark"));
    let fs: Vec<&str> = app.mapping_tools.get("fs").unwrap().iter().collect();
    assert_eq!(fs, ["fs_cat", "fs_ls", "fs_grep", "fs_glob"]);
    assert_eq!(names(app.enabled_tools.as_ref()), "fs,get_current_time");
    let code: Vec<&str> = app
        .mapping_mcp_servers
        .get("code")
        .unwrap()
        .iter()
        .collect();
    assert_eq!(
        code,
        ["github", "local git"],
        "trimmed, the space inside kept"
    );
    assert_eq!(names(app.enabled_mcp_servers.as_ref()), "code,docs");
    assert_eq!(app.save_session, None);
    assert_eq!(app.max_tool_result_chars, Some(100_000));
    assert_eq!(app.repl_prelude.as_deref(), Some("role:reviewer"));
    assert!(app.left_prompt.unwrap().starts_with("{color.green}"));
    let clients: Vec<(&str, ProviderKind)> = app
        .clients
        .iter()
        .map(|c| (c.name.as_str(), c.kind))
        .collect();
    assert_eq!(
        clients.get(..4).unwrap(),
        [
            ("work", ProviderKind::OpenAi),
            ("local", ProviderKind::OpenAiCompatible),
            ("claude", ProviderKind::Claude),
            ("ollama", ProviderKind::Ollama),
        ]
    );
    let work = app.clients[0].provider().unwrap();
    assert_eq!(work.api_key.as_ref().unwrap().expose(), "w-key");
    let facts = work.model("gpt-5-mini");
    assert_eq!(facts.max_input_tokens, Some(400_000));
    assert!(facts.supports_vision && facts.supports_function_calling);
    assert_eq!(
        app.clients[1].provider().unwrap().api_base.as_deref(),
        Some("http://127.0.0.1:8080/v1")
    );
    assert_eq!(
        app.clients[2]
            .provider()
            .unwrap()
            .model("claude-sonnet-4-5")
            .max_output_tokens,
        Some(64_000)
    );
}

#[test]
fn an_unset_variable_costs_only_its_client() {
    let (app, warnings) = load(SAMPLE);
    assert!(warnings.is_empty());
    let error = app.clients[0].provider().unwrap_err();
    let text = format!("{error:?}");
    assert!(
        text.contains("WORK_API_KEY") && text.contains("clients[0].api_key"),
        "{text}"
    );
    assert!(app.clients[1].provider().is_ok());
}

#[test]
fn nothing_configured_is_the_defaults() {
    for text in [
        "",
        "\n# only a comment\n",
        "{}",
        "---\n",
        "model:\nclients:\nmapping_tools:\n",
    ] {
        let (app, warnings) = load(text);
        assert!(warnings.is_empty(), "{text:?} {warnings:?}");
        assert!(
            app.stream && app.highlight && app.function_calling_support && app.mcp_server_support
        );
        assert!(app.mcp_images && !app.save && !app.dry_run && !app.no_workspace_mcp);
        assert_eq!(app.max_rounds, 50);
        assert_eq!(app.mcp_confirm, Confirm::Destructive);
        assert_eq!(app.enabled_tools, None);
        assert_eq!(app.enabled_mcp_servers, None);
        assert_eq!(app.save_session, None);
        assert!(app.clients.is_empty());
    }
}

#[test]
fn a_list_key_tells_absent_from_null() {
    assert_eq!(load("model: a").0.enabled_mcp_servers, None);
    for none in ["null", "", "[]", "''", "~"] {
        let (app, _) = load(&format!(
            "enabled_mcp_servers: {none}\nenabled_tools: {none}\n"
        ));
        assert_eq!(app.enabled_mcp_servers, Some(Choice::None), "{none:?}");
        assert_eq!(app.enabled_tools, Some(Choice::None), "{none:?}");
    }
    for all in ["all", "' all '", "[all]", "[docs, all]"] {
        assert_eq!(
            load(&format!("enabled_tools: {all}\n")).0.enabled_tools,
            Some(Choice::All)
        );
    }
    for list in [
        "docs, local git ,ü",
        "[docs, ' local git', ü]",
        "\n- docs\n- local git \n- ü\n- docs\n",
    ] {
        let (app, _) = load(&format!("enabled_mcp_servers: {list}\n"));
        assert_eq!(
            names(app.enabled_mcp_servers.as_ref()),
            "docs,local git,ü",
            "{list:?}"
        );
    }
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest() {
    let (app, warnings) = load(
        "temprature: 1\nstream: false\nclients:\n- type: openai\n  api_kee: x\n  extra: {proxi: y}\n  \
         models:\n  - name: m\n    supports_vison: true\n",
    );
    assert!(!app.stream);
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(
        warnings[0].contains("`temprature`") && warnings[0].contains("`temperature`"),
        "{warnings:?}"
    );
    assert!(
        warnings
            .iter()
            .any(|w| w.contains("`clients.api_kee`") && w.contains("`api_key`")),
        "{warnings:?}"
    );
    assert!(
        warnings
            .iter()
            .any(|w| w.contains("proxi") && w.contains("`proxy`")),
        "{warnings:?}"
    );
    assert!(
        warnings.iter().any(|w| w.contains("`supports_vision`")),
        "{warnings:?}"
    );
    assert!(warnings.iter().all(|w| w.contains("/c/config.yaml")));
}

#[test]
fn a_wrong_type_names_file_line_and_column() {
    let cases = [
        ("model: a\nstream: maybe\n", ":2:9"),
        ("model: a\n\ntemperature: warm\n", ":3:14"),
        ("max_rounds: -1\n", ":1:13"),
        ("keybindings: nano\n", ":1:14"),
        (
            "clients:\n- type: openai\n  models:\n  - name: m\n    max_input_tokens: many\n",
            ":5:23",
        ),
        ("clients: openai\n", ":1:10"),
        ("mapping_tools: [a]\n", ":1:16"),
        ("enabled_tools: {a: b}\n", ":1:16"),
        ("mcp_confirm: sometimes\n", ":1:14"),
        ("wrap: wide\n", ":1:7"),
        ("a: [\n", ":"),
        ("stream: true\nstream: false\n", ":2:1"),
    ];
    for (text, place) in cases {
        let error = fails(text);
        assert!(
            error.contains(&format!("/c/config.yaml{place}")),
            "{text:?}\n{error}"
        );
    }
}

#[test]
fn numbers_have_ranges() {
    assert!(fails("temperature: 3\n").contains("between 0 and 2"));
    assert!(fails("temperature: .nan\n").contains("temperature"));
    assert!(fails("max_rounds: 0\n").contains("at least 1"));
}

#[test]
fn every_scalar_and_list_key_is_overridden_by_its_variable() {
    for key in AppConfig::keys() {
        let good = match key.kind {
            KeyKind::Structure => continue,
            KeyKind::Text if key.name == "wrap" => "no",
            KeyKind::Text | KeyKind::Names => "x: [y",
            KeyKind::Bool => "false",
            KeyKind::Integer => "7",
            KeyKind::Number => "0.5",
            KeyKind::Word(words) => words[words.len() - 1],
        };
        let variable = format!("COYOTE_{}", key.name.to_uppercase());
        let before = format!("{:?}", load("").0);
        let mut changed = false;
        for value in [good, "true"] {
            let env = Env::new([(variable.as_str(), value)]);
            if let Ok((app, _)) = AppConfig::parse("", file(), &env) {
                changed |= format!("{app:?}") != before;
            }
        }
        let only_clients = key.name == "user_agent";
        assert!(changed || only_clients, "{}", key.name);
        if matches!(
            key.kind,
            KeyKind::Bool | KeyKind::Integer | KeyKind::Number | KeyKind::Word(_)
        ) {
            let env = Env::new([(variable.as_str(), "bogus")]);
            let error = AppConfig::parse("", file(), &env).unwrap_err().to_string();
            assert!(
                error.contains(&variable) && error.contains("bogus"),
                "{error}"
            );
        }
    }
}

#[test]
fn variables_win_over_the_file() {
    let env = Env::new([
        ("COYOTE_MODEL", "b:c"),
        ("COYOTE_ENABLED_TOOLS", "null"),
        ("COYOTE_ENABLED_MCP_SERVERS", " docs , ü "),
        ("COYOTE_STREAM", "off"),
        ("COYOTE_CLIENTS", "[nonsense"),
    ]);
    let (app, warnings) = load_with("model: a\nenabled_tools: all\nstream: true\n", &env);
    assert!(warnings.is_empty());
    assert_eq!(app.model.as_deref(), Some("b:c"));
    assert_eq!(app.enabled_tools, Some(Choice::None));
    assert_eq!(names(app.enabled_mcp_servers.as_ref()), "docs,ü");
    assert!(!app.stream);
}

#[test]
fn wrap_takes_words_and_widths() {
    for (text, wrap) in [
        ("no", Wrap::No),
        ("'no'", Wrap::No),
        ("false", Wrap::No),
        ("auto", Wrap::Auto),
        ("80", Wrap::At(80)),
        ("'80'", Wrap::At(80)),
    ] {
        assert_eq!(load(&format!("wrap: {text}\n")).0.wrap, wrap, "{text}");
    }
}

#[test]
fn an_alias_cannot_be_called_all() {
    assert!(fails("mapping_mcp_servers: {all: docs}\n").contains("cannot be an alias"));
}

#[test]
fn a_file_that_is_not_yaml_or_not_a_mapping_is_an_error() {
    for text in ["- a\n- b\n", "just words\n", "\"", "a: &x [*x]\n", "%%%"] {
        assert!(fails(text).contains("config.yaml"), "{text:?}");
    }
}

#[test]
fn clients_have_all_their_keys() {
    let (app, warnings) = load_with(
        "user_agent: me/1\nclients:\n- type: openai\n  api: responses\n  name: ' Büro '\n  api_base: ' ${BASE:-http://x}/v1 '\n  \
         api_key: k\n  extra: {proxy: 'socks5://p:1', connect_timeout: 3, read_timeout: 9}\n  patch:\n    chat_completions:\n      \
         'gpt-.*':\n        url: http://y\n        body: {a: {b: null}, c: [1]}\n        headers: {X-A: '${A}', X-B: null, X-N: 5}\n",
        &Env::new([("A", "ä")]),
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    let provider = app.clients[0].provider().unwrap();
    assert_eq!(provider.name, "Büro");
    assert_eq!(provider.api, Api::Responses);
    assert_eq!(provider.api_base.as_deref(), Some("http://x/v1"));
    assert_eq!(provider.proxy.as_deref(), Some("socks5://p:1"));
    assert_eq!(
        provider.connect_timeout,
        Some(std::time::Duration::from_secs(3))
    );
    assert_eq!(
        provider.read_timeout,
        Some(std::time::Duration::from_secs(9))
    );
    assert_eq!(provider.user_agent.as_deref(), Some("me/1"));
    let patch = &provider.patches[0];
    assert_eq!(patch.model, "gpt-.*");
    assert_eq!(patch.url.as_deref(), Some("http://y"));
    assert_eq!(
        patch.body,
        Some(serde_json::json!({"a": {"b": null}, "c": [1]}))
    );
    assert_eq!(patch.headers.get("X-A"), Some(&Some("ä".to_owned())));
    assert_eq!(patch.headers.get("X-B"), Some(&None));
    assert_eq!(patch.headers.get("X-N"), Some(&Some("5".to_owned())));
}

proptest::proptest! {
    #[test]
    fn no_file_panics(text in "(?s).{0,200}") {
        let _ = AppConfig::parse(&text, file(), &Env::default());
    }
}

#[test]
fn programs_inherit_no_provider_key() {
    let text = "clients:\n- type: openai-compatible\n  name: my-host\n  api_base: http://x/v1\n  models: [{name: m}]\n";
    let (app, _) =
        AppConfig::parse(text, Path::new("config.yaml"), &Env::new::<&str, &str>([])).unwrap();
    let variables = app.key_variables();
    for name in [
        "MY_HOST_API_KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "LOCAL_API_KEY",
    ] {
        assert!(
            variables.iter().any(|variable| variable == name),
            "{name}: {variables:?}"
        );
    }
    assert!(variables.is_sorted());
}
