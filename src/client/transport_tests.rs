use super::*;

fn joined(base: &str, kind: ProviderKind) -> String {
    let wire = Wire::of(&ProviderConfig::new("x", kind));
    join(base, kind, wire, &wire.path("m", true))
}

#[test]
fn a_base_is_joined_however_it_was_written() {
    use ProviderKind::{Claude, Gemini, Ollama, OpenAi, OpenAiCompatible};
    for (base, kind, url) in [
        (
            "http://127.0.0.1:8080/v1",
            OpenAiCompatible,
            "http://127.0.0.1:8080/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8080/v1/",
            OpenAiCompatible,
            "http://127.0.0.1:8080/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8080",
            OpenAiCompatible,
            "http://127.0.0.1:8080/v1/chat/completions",
        ),
        (
            "http://127.0.0.1:8080//",
            OpenAiCompatible,
            "http://127.0.0.1:8080/v1/chat/completions",
        ),
        (
            "https://x/v1/chat/completions",
            OpenAiCompatible,
            "https://x/v1/chat/completions",
        ),
        (
            "https://openrouter.ai/api/v1",
            OpenAiCompatible,
            "https://openrouter.ai/api/v1/chat/completions",
        ),
        (
            "https://g/v1beta/openai",
            OpenAiCompatible,
            "https://g/v1beta/openai/chat/completions",
        ),
        (
            "https://az/openai?api-version=1",
            OpenAiCompatible,
            "https://az/openai/chat/completions?api-version=1",
        ),
        (
            "https://api.openai.com",
            OpenAi,
            "https://api.openai.com/v1/chat/completions",
        ),
        (
            "http://localhost:11434",
            Ollama,
            "http://localhost:11434/v1/chat/completions",
        ),
        (
            "http://localhost:11434/api/",
            Ollama,
            "http://localhost:11434/v1/chat/completions",
        ),
        (
            "https://api.anthropic.com",
            Claude,
            "https://api.anthropic.com/v1/messages",
        ),
        (
            "https://api.anthropic.com/v1/",
            Claude,
            "https://api.anthropic.com/v1/messages",
        ),
        (
            "https://api.deepseek.com/anthropic",
            Claude,
            "https://api.deepseek.com/anthropic/v1/messages",
        ),
        (
            "https://g.com",
            Gemini,
            "https://g.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "https://g.com/v1beta/",
            Gemini,
            "https://g.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "https://gw/gemini",
            Gemini,
            "https://gw/gemini/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "https://g.com/v1?a=b",
            Gemini,
            "https://g.com/v1/models/m:streamGenerateContent?alt=sse&a=b",
        ),
    ] {
        assert_eq!(joined(base, kind), url, "{base}");
    }
}

#[test]
fn the_key_goes_into_a_header_and_never_into_the_url() {
    for (kind, name, value) in [
        (ProviderKind::OpenAi, "authorization", "Bearer k"),
        (ProviderKind::Claude, "x-api-key", "k"),
        (ProviderKind::Gemini, "x-goog-api-key", "k"),
    ] {
        let mut config = ProviderConfig::new("x", kind);
        config.api_key = Some(Secret::new("k"));
        let headers = headers(&config, Wire::of(&config), None).unwrap();
        assert_eq!(headers[name], value);
        assert!(headers[name].is_sensitive());
        config.api_key = None;
        let headers = super::headers(&config, Wire::of(&config), None).unwrap();
        assert!(!headers.contains_key(name), "{kind}");
    }
}

#[test]
fn patched_headers_are_set_and_removed() {
    let mut config = ProviderConfig::new("x", ProviderKind::OpenAi);
    config.api_key = Some(Secret::new("k"));
    let patch = BTreeMap::from([
        ("Authorization".to_owned(), None),
        ("x-team".to_owned(), Some("t".to_owned())),
    ]);
    let sent = headers(&config, Wire::OpenAiChat, Some(&patch)).unwrap();
    assert!(!sent.contains_key("authorization"));
    assert_eq!(sent["x-team"], "t");
    let bad = BTreeMap::from([("no header".to_owned(), Some("t".to_owned()))]);
    let error = headers(&config, Wire::OpenAiChat, Some(&bad)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`patch` of client `x`: `no header` is no usable header"
    );
}

fn classified(status: u16, body: &str) -> ClientError {
    let config = ProviderConfig::new("openai", ProviderKind::OpenAi);
    classify(
        &config,
        StatusCode::from_u16(status).unwrap(),
        None,
        body.as_bytes(),
    )
}

#[test]
fn error_bodies_of_every_shape_are_read() {
    for (body, message) in [
        (r#"{"error":{"message":"boom","type":"x"}}"#, "boom"),
        (r#"{"error":"boom"}"#, "boom"),
        (r#"[{"error":{"message":"boom"}}]"#, "boom"),
        (r#"{"detail":"boom"}"#, "boom"),
        (
            r#"{"type":"error","error":{"type":"x","message":"boom"}}"#,
            "boom",
        ),
        (r#"{"object":"error","message":"boom"}"#, "boom"),
        ("  boom\n\n", "boom"),
        ("", "Not Found"),
        ("<html><body>nginx</body></html>", "Not Found"),
    ] {
        let error = classified(404, body);
        assert_eq!(
            error.to_string(),
            format!("`openai` answered HTTP 404: {message}"),
            "{body}"
        );
    }
}

#[test]
fn statuses_are_told_apart() {
    assert!(matches!(
        classified(401, r#"{"error":"no"}"#),
        ClientError::Unauthorized { variables, .. } if variables == ["OPENAI_API_KEY"]
    ));
    let google = r#"{"error":{"code":400,"message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    assert!(matches!(
        classified(400, google),
        ClientError::Unauthorized { .. }
    ));
    for status in [408, 429, 500, 502, 503, 504, 529] {
        assert!(classified(status, "x").is_retryable(), "{status}");
    }
    for status in [400, 404, 405, 422, 501] {
        assert!(!classified(status, "x").is_retryable(), "{status}");
    }
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    assert!(!classified(429, quota).is_retryable());
    let blind = r#"{"error":{"code":500,"message":"image input is not supported - hint: provide the mmproj"}}"#;
    assert!(!classified(500, blind).is_retryable());
    let overflow = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":4}}"#;
    assert!(classified(400, overflow).is_context_overflow());
    assert!(classified(413, "").is_context_overflow());
}

#[test]
fn what_a_provider_says_is_bounded() {
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(50_000));
    assert!(classified(400, &long).to_string().len() < 1200);
    assert!(classified(400, &"y ".repeat(50_000)).to_string().len() < 1200);
}
