//! One HTTP exchange with a provider: where it goes, what it carries, and what a refusal means.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::{Method, Response};
use serde_json::Value;

use super::config::{ProviderConfig, ProviderKind};
use super::retry;
use super::wire::{Fault, Wire, is_overflow, message_of, reported};
use super::{ClientError, Secret};
use crate::utils::AbortToken;
use crate::utils::abort::unless_aborted;
use crate::utils::http::{Http, describe, redact_url};

/// The most of an error's body that is read (`H-44`).
const MAX_ERROR_BODY: usize = 64 * 1024;
/// How long an error's body may take.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

/// The URL of `path` at `base`: a slash at the end, a missing version and the endpoint itself all work.
pub(super) fn join(base: &str, kind: ProviderKind, wire: Wire, path: &str) -> String {
    let (base, query) = match base.trim().split_once('?') {
        Some((base, query)) => (base, Some(query)),
        None => (base.trim(), None),
    };
    let mut base = base.trim_end_matches('/');
    for endpoint in ["/chat/completions", "/responses", "/messages"] {
        base = base.strip_suffix(endpoint).unwrap_or(base);
    }
    if kind == ProviderKind::Ollama {
        base = base.strip_suffix("/api").unwrap_or(base);
    }
    let below_host = base.split_once("://").map_or(base, |(_, rest)| rest);
    let (_, base_path) = below_host.split_once('/').unwrap_or((below_host, ""));
    let last = base_path.rsplit('/').next().unwrap_or_default();
    let versioned = last
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let version = match wire {
        Wire::Anthropic if !versioned => "/v1",
        Wire::Gemini if !versioned => "/v1beta",
        Wire::OpenAiChat | Wire::Responses if base_path.is_empty() => "/v1",
        _ => "",
    };
    let mut url = format!("{base}{version}{path}");
    if let Some(query) = query.filter(|query| !query.is_empty()) {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(query);
    }
    url
}

/// The host of a URL, without its port.
pub(super) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    host.split(':').next().unwrap_or_default()
}

/// The header that carries the key, as name and value.
pub(super) fn key_header(wire: Wire, key: &str) -> (&'static str, String) {
    match wire {
        Wire::OpenAiChat | Wire::Responses => ("authorization", format!("Bearer {key}")),
        Wire::Anthropic => ("x-api-key", key.to_owned()),
        Wire::Gemini => ("x-goog-api-key", key.to_owned()),
    }
}

/// The headers of a request, patches included.
pub(super) fn headers(
    config: &ProviderConfig,
    wire: Wire,
    patch: Option<&BTreeMap<String, Option<String>>>,
) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(
        "accept",
        HeaderValue::from_static("text/event-stream, application/json"),
    );
    if wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(key) = config
        .api_key
        .as_ref()
        .map(Secret::expose)
        .filter(|key| !key.is_empty())
    {
        let (name, value) = key_header(wire, key);
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            ClientError::Config(format!(
                "the API key of client `{}` holds characters that no header can carry",
                config.name
            ))
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in patch.into_iter().flatten() {
        let bad = || {
            ClientError::Config(format!(
                "`patch` of client `{}`: `{name}` is no usable header",
                config.name
            ))
        };
        let header: HeaderName = name.parse().map_err(|_| bad())?;
        match value {
            None => {
                headers.remove(&header);
            }
            Some(value) => {
                let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
                value.set_sensitive(true);
                headers.insert(header, value);
            }
        }
    }
    Ok(headers)
}

/// Sends and waits for the answer to begin; anything but a success is an error that says what to do.
pub(super) async fn open(
    http: &Http,
    config: &ProviderConfig,
    prepared: &Prepared,
    idle: Duration,
    abort: &AbortToken,
) -> Result<Response, ClientError> {
    let url = redact_url(&prepared.url);
    tracing::debug!(provider = %config.name, %url, "request");
    tracing::trace!(provider = %config.name, body = %prepared.body, "request body");
    let request = http
        .request(Method::POST, &prepared.url)?
        .headers(prepared.headers.clone())
        .body(prepared.body.to_string());
    let response = unless_aborted(abort, tokio::time::timeout(idle, request.send()))
        .await?
        .map_err(|_| ClientError::Idle {
            provider: config.name.clone(),
            after: idle,
        })?
        .map_err(|error| ClientError::Connect {
            provider: config.name.clone(),
            // Nobody listens: waiting a second does not change that.
            retryable: !error.is_connect() && !error.is_builder(),
            message: describe(error),
            url,
        })?;
    let status = response.status();
    let id = ["x-request-id", "request-id"].into_iter().find_map(|name| {
        response
            .headers()
            .get(name)?
            .to_str()
            .ok()
            .map(str::to_owned)
    });
    tracing::debug!(provider = %config.name, %status, request_id = id, "answer");
    if status.is_success() {
        Ok(response)
    } else {
        Err(unless_aborted(abort, refusal(config, response)).await?)
    }
}

async fn refusal(config: &ProviderConfig, mut response: Response) -> ClientError {
    let status = response.status();
    let retry_after = retry::retry_after(response.headers(), chrono::Utc::now());
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BODY.saturating_sub(body.len());
            body.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
            if body.len() >= MAX_ERROR_BODY {
                break;
            }
        }
    };
    // What has come by then is what there is to say.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
    classify(config, status, retry_after, &body)
}

/// What an error status with this body means.
pub(super) fn classify(
    config: &ProviderConfig,
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
) -> ClientError {
    let text = String::from_utf8_lossy(body);
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    // Gemini wraps its error in a list when the request was a streaming one.
    let parsed = match parsed {
        Some(Value::Array(mut list)) if !list.is_empty() => Some(list.swap_remove(0)),
        other => other,
    };
    let (message, overflow) = match parsed.as_ref().map(|value| (reported(value), value)) {
        Some((
            Some(Fault::Reported {
                message, overflow, ..
            }),
            _,
        )) => (message, overflow),
        Some((_, value)) => (message_of(value), false),
        None => (plain(&text, status), false),
    };
    let message = match &config.api_key {
        Some(key) => key.hide(message),
        None => message,
    };
    let provider = config.name.clone();
    let code = status.as_u16();
    // Some servers say with a 5xx or 429 what no waiting changes.
    let lasting = text.contains("insufficient_quota") || message.contains("not supported");
    match code {
        401 | 403 => ClientError::Unauthorized {
            provider,
            status: code,
            message,
            variables: config.key_variables(),
        },
        // Google's word for a wrong key.
        400 if text.contains("API_KEY_INVALID") => ClientError::Unauthorized {
            provider,
            status: code,
            message,
            variables: config.key_variables(),
        },
        413 => ClientError::ContextOverflow { message },
        400 | 422 | 500 if overflow || is_overflow(&message) => {
            ClientError::ContextOverflow { message }
        }
        _ => ClientError::Status {
            provider,
            status: code,
            message,
            retry_after,
            retryable: !lasting && matches!(code, 408 | 429 | 500 | 502..=504 | 520..=529),
        },
    }
}

/// An error page as one bounded line.
fn plain(text: &str, status: StatusCode) -> String {
    let reason = status.canonical_reason().unwrap_or("no reason given");
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        return reason.to_owned();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    crate::utils::text::bounded(&line, 500).into_owned()
}

#[cfg(test)]
#[path = "transport_tests.rs"]
mod tests;
