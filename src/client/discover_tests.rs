use std::collections::HashMap;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

fn env(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let map: HashMap<String, String> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    move |name: &str| map.get(name).cloned()
}

#[test]
fn providers_are_found_by_their_keys_in_order() {
    let found = from_environment(&env(&[
        ("GROQ_API_KEY", "g"),
        ("ANTHROPIC_API_KEY", "a"),
        ("GOOGLE_API_KEY", "go"),
        ("OPENAI_API_KEY", "  "),
    ]));
    let names: Vec<_> = found.iter().map(|config| config.name.as_str()).collect();
    assert_eq!(names, ["claude", "gemini", "groq"]);
    assert_eq!(found[1].api_key.as_ref().unwrap().expose(), "go");
    assert_eq!(found[2].kind, ProviderKind::OpenAiCompatible);
    assert_eq!(
        found[2].api_base.as_deref(),
        Some("https://api.groq.com/openai/v1")
    );
    assert!(found.iter().all(|config| !config.models.is_empty()));
    assert!(from_environment(&env(&[])).is_empty());
}

#[test]
fn every_service_has_a_name_a_key_and_an_address() {
    for service in SERVICES {
        let own = format!("{}_API_KEY", service.name.to_uppercase());
        let config = &from_environment(&env(&[(service.variables[0], "k")]))[0];
        assert_eq!(config.name, service.name);
        assert!(config.key_variables().contains(&own) || service.variables.contains(&own.as_str()));
        assert!(config.base().unwrap().starts_with("https://"));
    }
}

#[test]
fn lists_of_every_server_are_read() {
    let llama = json!({
        "models": [{ "name": "smol", "capabilities": ["completion", "multimodal"] }],
        "data": [{ "id": "smol", "meta": { "n_ctx_train": 8192 } }],
    });
    let facts = &listed(&llama)[0];
    assert_eq!(
        (
            facts.name.as_str(),
            facts.max_input_tokens,
            facts.supports_vision
        ),
        ("smol", Some(8192), true)
    );
    let vllm = json!({ "data": [{ "id": "q", "max_model_len": 32768 }, { "id": "nomic-embed-text" }, { "no": "id" }, 3] });
    assert_eq!(listed(&vllm).len(), 1);
    assert_eq!(listed(&vllm)[0].max_input_tokens, Some(32768));
    for nonsense in [json!({}), json!([]), json!({ "data": 3 }), json!("x")] {
        assert!(listed(&nonsense).is_empty());
    }
}

async fn server(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = socket.read(&mut buffer).await;
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn a_local_server_is_found_with_its_models() {
    let url = server(r#"{"data":[{"id":"smol"}]}"#).await;
    let config = probe_local(&env(&[("COYOTE_LOCAL_URL", &url)]))
        .await
        .unwrap();
    assert_eq!(
        (config.name.as_str(), config.kind),
        ("local", ProviderKind::OpenAiCompatible)
    );
    assert_eq!(config.api_base, Some(format!("{url}/v1")));
    assert_eq!(config.models[0].name, "smol");
    assert_eq!(config.proxy.as_deref(), Some("-"));
}

#[tokio::test]
async fn the_first_of_several_is_taken_and_others_cannot_hold_it_up() {
    // Accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let (wrong, right) = (
        server("<html>").await,
        server(r#"{"data":[{"id":"b"}]}"#).await,
    );
    let config = probe(vec![silent_url, wrong, right.clone()], None)
        .await
        .unwrap();
    assert_eq!(config.api_base, Some(format!("{right}/v1")));
}

#[tokio::test]
async fn nobody_there_is_nothing_found() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(probe_local(&env(&[("COYOTE_LOCAL_URL", &url)])).await, None);
    assert_eq!(
        probe_local(&env(&[("COYOTE_LOCAL_URL", "not a url")])).await,
        None
    );
}
