//! Providers without configuration (`H-13`): from key variables, else a server on this machine.

use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::Value;

use super::config::{ModelFacts, ProviderConfig, ProviderKind};
use super::models;
use super::transport;
use super::wire::Wire;
use crate::utils::http::{Http, HttpOptions, Proxy, Redirects};

/// How long a local server may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(200);
/// The most of a list of models that is read.
const MAX_LIST: usize = 4 * 1024 * 1024;
/// Where local servers usually are, the preferred first: Ollama, llama-server, LM Studio, vLLM.
const LOCAL_PORTS: [u16; 4] = [11434, 8080, 1234, 8000];

/// What a person without a model can do about it, a hint each.
pub const WAYS_TO_GET_A_MODEL: [&str; 3] = [
    "export OPENAI_API_KEY=… (or ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …) to use a hosted model",
    "ollama serve (or llama-server, LM Studio, vLLM) to use a model on this machine; COYOTE_LOCAL_URL says where it is",
    "config.yaml: add an entry to `clients:` for anything else",
];

/// A hosted service and how to reach it.
struct Service {
    name: &'static str,
    kind: ProviderKind,
    variables: &'static [&'static str],
    /// Absent where the kind knows.
    base: Option<&'static str>,
}

const fn compatible(
    name: &'static str,
    variables: &'static [&'static str],
    base: &'static str,
) -> Service {
    Service {
        name,
        kind: ProviderKind::OpenAiCompatible,
        variables,
        base: Some(base),
    }
}

const fn official(
    name: &'static str,
    kind: ProviderKind,
    variables: &'static [&'static str],
) -> Service {
    Service {
        name,
        kind,
        variables,
        base: None,
    }
}

/// The services found by their variables, the preferred first.
const SERVICES: [Service; 14] = [
    official("openai", ProviderKind::OpenAi, &["OPENAI_API_KEY"]),
    official(
        "claude",
        ProviderKind::Claude,
        &["ANTHROPIC_API_KEY", "CLAUDE_API_KEY"],
    ),
    official(
        "gemini",
        ProviderKind::Gemini,
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    ),
    compatible(
        "openrouter",
        &["OPENROUTER_API_KEY"],
        "https://openrouter.ai/api/v1",
    ),
    compatible("groq", &["GROQ_API_KEY"], "https://api.groq.com/openai/v1"),
    compatible("mistral", &["MISTRAL_API_KEY"], "https://api.mistral.ai/v1"),
    compatible(
        "deepseek",
        &["DEEPSEEK_API_KEY"],
        "https://api.deepseek.com/v1",
    ),
    compatible("xai", &["XAI_API_KEY"], "https://api.x.ai/v1"),
    compatible(
        "together",
        &["TOGETHER_API_KEY"],
        "https://api.together.xyz/v1",
    ),
    compatible(
        "fireworks",
        &["FIREWORKS_API_KEY"],
        "https://api.fireworks.ai/inference/v1",
    ),
    compatible(
        "cerebras",
        &["CEREBRAS_API_KEY"],
        "https://api.cerebras.ai/v1",
    ),
    compatible(
        "perplexity",
        &["PERPLEXITY_API_KEY"],
        "https://api.perplexity.ai",
    ),
    compatible(
        "moonshot",
        &["MOONSHOT_API_KEY"],
        "https://api.moonshot.ai/v1",
    ),
    compatible(
        "deepinfra",
        &["DEEPINFRA_API_KEY"],
        "https://api.deepinfra.com/v1/openai",
    ),
];

/// Every variable a provider key is usually in: programs that coyote starts do not inherit them (`M-12`).
pub fn usual_key_variables() -> impl Iterator<Item = &'static str> {
    let services = SERVICES.iter().flat_map(|service| service.variables);
    services.copied().chain(["LOCAL_API_KEY"])
}

/// The providers whose usual key variable is set, the preferred first. `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`
/// are honoured, as their own tools do.
pub fn from_environment(env: &dyn Fn(&str) -> Option<String>) -> Vec<ProviderConfig> {
    let set = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    SERVICES
        .iter()
        .filter_map(|service| {
            let key = service.variables.iter().find_map(|name| set(name))?;
            let mut config = ProviderConfig::new(service.name, service.kind);
            config.api_key = Some(super::Secret::new(key));
            config.api_base = match service.kind {
                ProviderKind::OpenAi => set("OPENAI_BASE_URL"),
                ProviderKind::Claude => set("ANTHROPIC_BASE_URL"),
                _ => service.base.map(str::to_owned),
            };
            config.models = models::offered(service.name);
            Some(config)
        })
        .collect()
}

/// The first local server that answers within 200 ms, with the models it lists: what `COYOTE_LOCAL_URL` names if it
/// is set, else Ollama, llama-server, LM Studio and vLLM at their usual ports of 127.0.0.1, all asked at once.
pub fn probe_local(
    env: &dyn Fn(&str) -> Option<String>,
) -> impl Future<Output = Option<ProviderConfig>> + Send + 'static {
    let named = env("COYOTE_LOCAL_URL").filter(|url| !url.trim().is_empty());
    let key = env("LOCAL_API_KEY").filter(|key| !key.trim().is_empty());
    let urls = match named {
        Some(url) => vec![url],
        None => LOCAL_PORTS
            .iter()
            .map(|port| format!("http://127.0.0.1:{port}"))
            .collect(),
    };
    probe(urls, key)
}

async fn probe(urls: Vec<String>, key: Option<String>) -> Option<ProviderConfig> {
    let http = Http::new(HttpOptions {
        connect_timeout: Some(PROBE_TIMEOUT),
        proxy: Proxy::Direct,
        user_agent: None,
        redirects: Redirects::SameOrigin,
    });
    // Building the client is not the servers' time.
    let _ = http.request(Method::GET, "http://127.0.0.1").ok()?;
    let asked = urls.iter().map(|url| async {
        tokio::time::timeout(PROBE_TIMEOUT, models_at(&http, url, key.as_deref()))
            .await
            .ok()
            .flatten()
    });
    let found = join_all(asked).await;
    let (url, models) = urls
        .into_iter()
        .zip(found)
        .find_map(|(url, models)| Some((url, models?)))?;
    let is_ollama = url.contains(":11434");
    let mut config = if is_ollama {
        ProviderConfig::new("ollama", ProviderKind::Ollama)
    } else {
        ProviderConfig::new("local", ProviderKind::OpenAiCompatible)
    };
    config.api_base = Some(transport::join(&url, config.kind, Wire::OpenAiChat, ""));
    config.api_key = key.map(super::Secret::new);
    config.proxy = Some("-".to_owned());
    config.models = models;
    Some(config)
}

/// The models a server lists; `None` when it is no such server or has no model for a conversation.
async fn models_at(http: &Http, base: &str, key: Option<&str>) -> Option<Vec<ModelFacts>> {
    let url = transport::join(
        base,
        ProviderKind::OpenAiCompatible,
        Wire::OpenAiChat,
        "/models",
    );
    let mut request = http.request(Method::GET, &url).ok()?;
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let mut response = request.send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_LIST {
            return None;
        }
    }
    let models = listed(&serde_json::from_slice(&body).ok()?);
    (!models.is_empty()).then_some(models)
}

/// A server's answer to `GET /models` as facts; what only embeds is left out.
fn listed(answer: &Value) -> Vec<ModelFacts> {
    let details = answer.get("models").and_then(Value::as_array);
    answer
        .get("data")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|model| {
            let id = model.get("id")?.as_str()?;
            if id.is_empty() || id.to_lowercase().contains("embed") {
                return None;
            }
            let detail = details
                .into_iter()
                .flatten()
                .find(|detail| ["name", "model"].iter().any(|key| detail[*key] == id));
            let abilities = detail
                .into_iter()
                .chain([model])
                .filter_map(|each| each.get("capabilities")?.as_array())
                .flatten()
                .filter_map(Value::as_str);
            let mut facts = ModelFacts::named(id);
            facts.supports_vision = models::looks_like_it_sees(id)
                || abilities
                    .into_iter()
                    .any(|each| matches!(each, "multimodal" | "vision"));
            facts.max_input_tokens = [
                "/max_model_len",
                "/context_length",
                "/meta/n_ctx",
                "/meta/n_ctx_train",
            ]
            .iter()
            .find_map(|path| model.pointer(path)?.as_u64());
            Some(facts)
        })
        .collect()
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
