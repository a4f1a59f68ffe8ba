//! Providers behind one façade: a request in, a stream of events out.
//!
//! Knows wires, keys and HTTP; knows nothing of files of configuration, sessions or the terminal. What is
//! configured arrives as a [`ProviderConfig`]; what a person should see leaves as a
//! [`Notice`] or an error. Why the wires are written by hand: `plans/providers.md`.
//!
//! ```text
//! chat::Request ─ wire::encode ─ patch ─ transport::open ─ (retry) ─ EventStream
//!                                                                     │ bytes
//!                                            sse::Framing ◄───────────┘
//!                                                │ one event's JSON
//!                                            wire::Decoder ─► chat::Event
//! ```

mod attach;
mod config;
mod discover;
mod error;
mod models;
mod retry;
mod schema;
mod sse;
mod stream;
mod transport;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

use crate::chat::{Activity, Notice, NoticeSink, Request};
use crate::utils::AbortToken;
use crate::utils::abort::unless_aborted;
use crate::utils::http::{Http, HttpOptions, Proxy, Redirects, redact_url};
use attach::Images;
use retry::RetryPolicy;
use transport::Prepared;
use wire::{Decoder, Outgoing, Wire};

pub use config::{Api, ModelFacts, Patch, ProviderConfig, ProviderKind, Secret, UnknownWord};
pub use discover::{WAYS_TO_GET_A_MODEL, from_environment, probe_local, usual_key_variables};
pub use error::ClientError;
pub use stream::EventStream;

/// How long a provider may be silent, unless configured: a local model may read a long prompt for minutes.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// One model of one provider.
#[derive(Debug, Clone)]
pub struct Client {
    config: ProviderConfig,
    model: ModelFacts,
    wire: Wire,
    base: String,
    patch: Option<Patch>,
    http: Arc<Http>,
    retry: RetryPolicy,
}

impl Client {
    /// Checks the configuration; nothing is connected yet.
    pub fn new(config: &ProviderConfig, model: &ModelFacts) -> Result<Self, ClientError> {
        let patch = matching_patch(config, &model.name)?;
        Ok(Self {
            wire: Wire::of(config),
            base: config.base()?.to_owned(),
            patch,
            http: Http::shared(HttpOptions {
                connect_timeout: config.connect_timeout,
                proxy: Proxy::from_config(config.proxy.as_deref()),
                user_agent: config.user_agent.clone(),
                redirects: Redirects::SameOrigin,
            }),
            config: config.clone(),
            model: model.clone(),
            retry: RetryPolicy::default(),
        })
    }

    /// The configured client's name.
    pub fn provider_name(&self) -> &str {
        &self.config.name
    }

    /// The model that answers.
    pub fn model(&self) -> &ModelFacts {
        &self.model
    }

    /// Sends `request` and waits until the answer begins, asking again where that may help (`H-44`): what is
    /// refused with 429 or 5xx, or fails before anything was said.
    pub async fn send(
        &self,
        request: &Request,
        abort: &AbortToken,
        sink: &dyn NoticeSink,
    ) -> Result<EventStream, ClientError> {
        if self.config.api_key.is_none() && self.config.needs_key() {
            return Err(ClientError::NoKey {
                provider: self.config.name.clone(),
                variables: self.config.key_variables(),
            });
        }
        let images = self.load_images(request).await?;
        let outgoing = self.outgoing(request, &images);
        let prepared = self.prepare(&outgoing)?;
        let mut failed = 0;
        loop {
            let error = match self.attempt(&outgoing, &prepared, abort).await {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            failed += 1;
            let pause = if error.is_retryable() {
                self.retry
                    .pause(failed, error.retry_after(), retry::jitter())
            } else {
                None
            };
            let Some(after) = pause else {
                return Err(error);
            };
            tracing::info!(provider = %self.config.name, %error, ?after, "retry");
            sink.notice(Notice::Activity(Some(Activity::Retrying {
                attempt: failed + 1,
                after,
            })));
            unless_aborted(abort, tokio::time::sleep(after)).await?;
            sink.notice(Notice::Activity(Some(Activity::Thinking)));
        }
    }

    async fn attempt(
        &self,
        outgoing: &Outgoing<'_>,
        prepared: &Prepared,
        abort: &AbortToken,
    ) -> Result<EventStream, ClientError> {
        let idle = self.config.read_timeout.unwrap_or(READ_TIMEOUT);
        let response = transport::open(&self.http, &self.config, prepared, idle, abort).await?;
        let kind = response.headers().get("content-type");
        let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        if is_page {
            return Err(ClientError::Nonsense {
                provider: self.config.name.clone(),
                message: format!("`{}` answered with a web page", redact_url(&prepared.url)),
            });
        }
        let decoder = Decoder::new(self.wire, outgoing);
        let mut stream = EventStream::new(&self.config, response, decoder, idle, abort.clone());
        stream.fill().await;
        match stream.failed_early() {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// The body that [`send`](Self::send) would post, patches included; holds no key. Reads the files that the
    /// request refers to.
    pub fn preview(&self, request: &Request) -> Value {
        let images = Images::load(request, self.model.supports_vision);
        self.body(&self.outgoing(request, &images))
    }

    /// The request as a shell command, fit to be shown and logged: keys and patched headers are variables, query
    /// values are left out, long base64 is cut.
    pub fn preview_curl(&self, request: &Request) -> String {
        let images = Images::load(request, self.model.supports_vision);
        let outgoing = self.outgoing(request, &images);
        let mut body = self.body(&outgoing);
        shorten(&mut body);
        let mut lines = vec![format!(
            "curl -N {}",
            quoted(&redact_url(&self.url(request.stream)))
        )];
        if let Ok(headers) = transport::headers(&self.config, self.wire, self.patch_headers()) {
            let variables = self.config.key_variables();
            let variable = variables
                .get(1)
                .or(variables.first())
                .map_or("API_KEY", String::as_str);
            let (key_name, key_value) = transport::key_header(self.wire, &format!("${variable}"));
            for (name, value) in &headers {
                lines.push(match (value.is_sensitive(), name.as_str() == key_name) {
                    (false, _) => format!(
                        "-H {}",
                        quoted(&format!("{name}: {}", value.to_str().unwrap_or("…")))
                    ),
                    (true, true) => format!("-H \"{name}: {key_value}\""),
                    (true, false) => format!("-H {}", quoted(&format!("{name}: …"))),
                });
            }
        }
        lines.push(format!("-d {}", quoted(&body.to_string())));
        lines.join(" \\\n  ")
    }

    async fn load_images(&self, request: &Request) -> Result<Images, ClientError> {
        let sees = self.model.supports_vision;
        if !sees || !Images::needs_files(request) {
            return Ok(Images::load(request, sees));
        }
        let request = request.clone();
        tokio::task::spawn_blocking(move || Images::load(&request, sees))
            .await
            .map_err(|error| ClientError::Config(format!("the images could not be read: {error}")))
    }

    fn outgoing<'a>(&'a self, request: &'a Request, images: &'a Images) -> Outgoing<'a> {
        Outgoing {
            request,
            provider: &self.config.name,
            model: &self.model,
            images,
            host: transport::host(&self.base),
        }
    }

    fn prepare(&self, outgoing: &Outgoing<'_>) -> Result<Prepared, ClientError> {
        Ok(Prepared {
            url: self.url(outgoing.request.stream),
            headers: transport::headers(&self.config, self.wire, self.patch_headers())?,
            body: self.body(outgoing),
        })
    }

    fn url(&self, stream: bool) -> String {
        match self.patch.as_ref().and_then(|patch| patch.url.clone()) {
            Some(url) => url,
            None => transport::join(
                &self.base,
                self.config.kind,
                self.wire,
                &self.wire.path(&self.model.name, stream),
            ),
        }
    }

    fn patch_headers(&self) -> Option<&std::collections::BTreeMap<String, Option<String>>> {
        self.patch.as_ref().map(|patch| &patch.headers)
    }

    fn body(&self, outgoing: &Outgoing<'_>) -> Value {
        let mut body = self.wire.encode(outgoing);
        if let Some(patch) = self.patch.as_ref().and_then(|patch| patch.body.as_ref()) {
            merge(&mut body, patch);
        }
        body
    }
}

/// The first patch whose expression matches the whole name.
fn matching_patch(config: &ProviderConfig, model: &str) -> Result<Option<Patch>, ClientError> {
    for patch in &config.patches {
        let pattern = Regex::new(&format!("^(?:{})$", patch.model)).map_err(|_| {
            ClientError::Config(format!(
                "`patch` of client `{}`: `{}` is no regular expression",
                config.name, patch.model
            ))
        })?;
        if pattern.is_match(model) {
            return Ok(Some(patch.clone()));
        }
    }
    Ok(None)
}

/// A JSON merge patch (RFC 7396): objects merge, null removes, anything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            target.shift_remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Cuts strings that nobody reads: images as base64.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > 1000 && !text.contains(char::is_whitespace) => {
            let cut = format!(
                "{}… ({} bytes)",
                crate::utils::text::prefix(text, 60),
                text.len()
            );
            *text = cut;
        }
        Value::Array(values) => values.iter_mut().for_each(shorten),
        Value::Object(map) => map.values_mut().for_each(shorten),
        _ => {}
    }
}

/// `text` as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
