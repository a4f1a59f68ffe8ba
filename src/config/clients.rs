//! `clients` of `config.yaml`: entries as written, and the providers they mean (`H-12`, `H-13`).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::vars::{Env, MissingVariable, expand, variables};
use crate::client::{Api, ModelFacts, Patch, ProviderConfig, ProviderKind, Secret};
use crate::utils::{Error, ErrorKind, Result};

const CLIENT_KEYS: &[&str] = &[
    "type", "name", "api", "api_key", "api_base", "models", "extra", "patch",
];
const MODEL_KEYS: &[&str] = &[
    "name",
    "type",
    "max_input_tokens",
    "max_output_tokens",
    "supports_vision",
    "supports_function_calling",
];
const EXTRA_KEYS: &[&str] = &["proxy", "connect_timeout", "read_timeout"];

/// An entry as written.
#[derive(Debug, Deserialize)]
pub(super) struct RawClient {
    r#type: String,
    name: Option<String>,
    api: Option<String>,
    api_key: Option<String>,
    api_base: Option<String>,
    models: Option<Vec<RawModel>>,
    extra: Option<RawExtra>,
    patch: Option<RawPatch>,
}

#[derive(Debug, Deserialize)]
struct RawModel {
    name: String,
    r#type: Option<String>,
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    supports_vision: Option<bool>,
    supports_function_calling: Option<bool>,
}

impl RawModel {
    /// Whether it is for conversations; files of older programs also list models that embed or rank.
    fn converses(&self) -> bool {
        self.r#type.as_deref().is_none_or(|kind| kind == "chat")
    }
}

#[derive(Debug, Default, Deserialize)]
struct RawExtra {
    proxy: Option<String>,
    connect_timeout: Option<u64>,
    read_timeout: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct RawPatch {
    #[serde(default, deserialize_with = "in_order")]
    chat_completions: Vec<(String, RawModelPatch)>,
}

#[derive(Debug, Default, Deserialize)]
struct RawModelPatch {
    url: Option<String>,
    body: Option<Value>,
    headers: Option<BTreeMap<String, Option<Value>>>,
}

/// A mapping as pairs in the order of the file: the first patch that matches a model is its patch, so `.*` may
/// stand last.
fn in_order<'de, D, V>(deserializer: D) -> std::result::Result<Vec<(String, V)>, D::Error>
where
    D: serde::Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Pairs<V>(std::marker::PhantomData<V>);

    impl<'de, V: Deserialize<'de>> serde::de::Visitor<'de> for Pairs<V> {
        type Value = Vec<(String, V)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a mapping of model expressions")
        }

        fn visit_unit<E: serde::de::Error>(self) -> std::result::Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> std::result::Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }

    deserializer.deserialize_any(Pairs(std::marker::PhantomData))
}

impl RawPatch {
    /// The variables its headers are made from.
    fn variables(&self) -> Vec<String> {
        let patches = self.chat_completions.iter().map(|(_, patch)| patch);
        let headers = patches.flat_map(|patch| patch.headers.iter().flat_map(BTreeMap::values));
        let texts = headers.filter_map(|value| value.as_ref()?.as_str());
        texts.flat_map(variables).collect()
    }
}

/// A client: what is known of it without its secrets, and the provider once it can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    /// The name before the colon of `client:model`.
    pub name: String,
    /// Whose wire it speaks.
    pub kind: ProviderKind,
    /// The models on offer, the preferred first.
    pub models: Vec<ModelFacts>,
    /// Whether it comes from the environment or was found on this machine: then any model name is accepted.
    pub discovered: bool,
    /// The variables its entry takes secrets from, and those a key for it is looked for in.
    secrets: Vec<String>,
    provider: std::result::Result<ProviderConfig, MissingVariable>,
}

impl Client {
    /// A client that is not in the file.
    pub fn discovered(provider: ProviderConfig) -> Self {
        Self {
            name: provider.name.clone(),
            kind: provider.kind,
            models: provider.models.clone(),
            discovered: true,
            secrets: provider.key_variables(),
            provider: Ok(provider),
        }
    }

    /// What `client` needs to talk to it.
    ///
    /// # Errors
    /// A `${VAR}` of its entry is not set: this costs only whoever uses this client.
    pub fn provider(&self) -> Result<&ProviderConfig> {
        self.provider.as_ref().map_err(|missing| {
            Error::new(ErrorKind::Config, missing.clone())
                .context(format!("client `{}` cannot be used", self.name))
                .hint(format!(
                    "set `{}`, in the environment or in `.env`",
                    missing.variable
                ))
        })
    }

    /// The variables that hold its secrets, set or not (`M-12`).
    pub fn secret_variables(&self) -> &[String] {
        &self.secrets
    }

    /// Whether any model name is accepted: nothing is listed, or the list is only a suggestion.
    pub fn accepts_any_model(&self) -> bool {
        self.discovered || self.models.is_empty()
    }
}

/// What an entry means.
///
/// # Errors
/// A word that is no client type or wire, a duration of zero, `api_base` missing where only the user knows it.
pub(super) fn resolve(
    raw: RawClient,
    index: usize,
    file: &Path,
    env: &Env,
    user_agent: Option<&str>,
) -> Result<Client> {
    let place = |error: Error| error.context(format!("`{}`, client {}", file.display(), index + 1));
    let kind: ProviderKind = raw
        .r#type
        .trim()
        .parse()
        .map_err(|error| place(Error::new(ErrorKind::Config, error).hint(types_hint())))?;
    let api = match raw.api.as_deref().map(str::trim) {
        None | Some("") => Api::default(),
        Some(word) => word
            .parse()
            .map_err(|error| place(Error::new(ErrorKind::Config, error)))?,
    };
    let name = raw
        .name
        .as_deref()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .unwrap_or(kind.as_str())
        .to_owned();
    if name.contains(':') {
        return Err(place(Error::config(format!(
            "the name `{name}` contains a colon, which separates client and model"
        ))));
    }
    let models: Vec<ModelFacts> = raw
        .models
        .unwrap_or_default()
        .iter()
        .filter(|model| model.converses())
        .map(facts)
        .collect();
    let mut provider = ProviderConfig::new(name.clone(), kind);
    provider.api = api;
    provider.models.clone_from(&models);
    provider.user_agent = user_agent
        .filter(|agent| *agent != "auto")
        .map(str::to_owned);
    if let Some(extra) = raw.extra {
        provider.proxy = extra.proxy.filter(|proxy| !proxy.trim().is_empty());
        provider.connect_timeout = extra.connect_timeout.map(Duration::from_secs);
        provider.read_timeout = extra.read_timeout.map(Duration::from_secs);
    }
    let mut secrets = provider.key_variables();
    secrets.extend(raw.api_key.iter().flat_map(|text| variables(text)));
    secrets.extend(raw.patch.iter().flat_map(RawPatch::variables));
    let strings = Strings {
        api_key: raw.api_key,
        api_base: raw.api_base,
        patch: raw.patch.unwrap_or_default(),
    };
    Ok(Client {
        name,
        kind,
        models,
        discovered: false,
        secrets,
        provider: expanded(provider, strings, index, env),
    })
}

/// What remains to be expanded.
struct Strings {
    api_key: Option<String>,
    api_base: Option<String>,
    patch: RawPatch,
}

fn expanded(
    mut provider: ProviderConfig,
    strings: Strings,
    index: usize,
    env: &Env,
) -> std::result::Result<ProviderConfig, MissingVariable> {
    let at = |key: &str| format!("clients[{index}].{key}");
    if let Some(base) = filled(strings.api_base) {
        provider.api_base = Some(expand(&base, &at("api_base"), env)?);
    }
    provider = provider.with_environment(&env.lookup());
    // A key in the environment wins, so an unset variable in the file does not matter then.
    if provider.api_key.is_none()
        && let Some(key) = filled(strings.api_key)
    {
        provider.api_key = Some(Secret::new(expand(&key, &at("api_key"), env)?));
    }
    for (model, patch) in strings.patch.chat_completions {
        let mut headers = BTreeMap::new();
        for (name, value) in patch.headers.unwrap_or_default() {
            let field = at(&format!("patch.chat_completions.{model}.headers.{name}"));
            let value = match value {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(expand(&text, &field, env)?),
                Some(other) => Some(other.to_string()),
            };
            headers.insert(name, value);
        }
        provider.patches.push(Patch {
            model,
            url: filled(patch.url),
            body: patch.body,
            headers,
        });
    }
    Ok(provider)
}

fn facts(raw: &RawModel) -> ModelFacts {
    let mut facts = ModelFacts::named(raw.name.trim());
    facts.max_input_tokens = raw.max_input_tokens;
    facts.max_output_tokens = raw.max_output_tokens;
    facts.supports_vision = raw.supports_vision.unwrap_or(false);
    facts.supports_function_calling = raw.supports_function_calling.unwrap_or(true);
    facts
}

fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn types_hint() -> String {
    let types = ProviderKind::ALL.map(ProviderKind::as_str).join(", ");
    format!("use one of the types {types}; what speaks OpenAI's protocol is `openai-compatible`")
}

/// # Errors
/// Two clients have one name.
pub(super) fn check_names(clients: &[Client], file: &Path) -> Result<()> {
    for (index, client) in clients.iter().enumerate() {
        if clients
            .iter()
            .take(index)
            .any(|other| other.name == client.name)
        {
            return Err(
                Error::config(format!("two clients are called `{}`", client.name)).hint(format!(
                    "give one of them another `name` in {}",
                    file.display()
                )),
            );
        }
    }
    Ok(())
}

/// Adds the providers whose usual key variable is set, unless the file has a client of that name (`H-13`).
pub(super) fn add_environment(clients: &mut Vec<Client>, env: &Env, user_agent: Option<&str>) {
    for mut provider in crate::client::from_environment(&env.lookup()) {
        if clients.iter().any(|client| client.name == provider.name) {
            continue;
        }
        if provider.user_agent.is_none() {
            provider.user_agent = user_agent
                .filter(|agent| *agent != "auto")
                .map(str::to_owned);
        }
        clients.push(Client::discovered(provider));
    }
}

/// Warns about keys of one entry that nobody reads.
pub(super) fn unknown_keys(client: &Map<String, Value>, file: &Path, warnings: &mut Vec<String>) {
    let mut check = |keys: &Map<String, Value>, known: &[&str], place: &str| {
        for key in keys.keys().filter(|key| !known.contains(&key.as_str())) {
            let path = format!("{place}{key}");
            warnings.push(super::app_config::unknown_key(
                &path,
                known.iter().copied(),
                file,
            ));
        }
    };
    check(client, CLIENT_KEYS, "clients.");
    if let Some(Value::Object(extra)) = client.get("extra") {
        check(extra, EXTRA_KEYS, "clients.extra.");
    }
    if let Some(Value::Array(models)) = client.get("models") {
        for model in models.iter().filter_map(Value::as_object) {
            check(model, MODEL_KEYS, "clients.models.");
        }
    }
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
