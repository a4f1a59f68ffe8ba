//! `fetch_url`: a page of the web as readable text.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::json;

use super::{Spec, bounds, html};
use crate::function::args::Args;
use crate::function::env::DispatchEnv;
use crate::function::error::FunctionError;
use crate::utils::abort::unless_aborted;
use crate::utils::http::{self, Http, HttpOptions, Redirects};
use crate::utils::text;

/// The body is not read further than this, in bytes.
const BODY_MAX: usize = 10 * 1024 * 1024;

/// How long the whole fetch may take.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) fn spec() -> Spec {
    Spec {
        description: "Fetches a web page or other text over http(s) and returns it as text, HTML without its \
                      markup. Long texts come in pages: when the last line says `next_offset`, call again with that \
                      `offset`.",
        properties: json!({
            "url": { "type": "string", "description": "An http or https URL" },
            "offset": {
                "type": "integer", "default": 0, "minimum": 0,
                "description": "Byte of the text at which the page begins"
            },
            "max_bytes": {
                "type": "integer", "default": bounds::PAGE,
                "description": "Most bytes to return (at most 204800)"
            },
        }),
        required: &["url"],
    }
}

pub(super) async fn fetch(env: &DispatchEnv, args: &Args<'_>) -> Result<String, FunctionError> {
    let url = args.required_word("url")?.trim();
    let offset = args.unsigned("offset")?.unwrap_or(0);
    let max = bounds::page(args.unsigned("max_bytes")?, bounds::room(&env.limits));
    let _place = super::place(env).await?;
    let work = tokio::time::timeout(TIMEOUT, download(url));
    let page = match unless_aborted(&env.abort, work).await? {
        Ok(page) => page?,
        Err(_) => {
            return Err(FunctionError::failed(format!(
                "`{}` did not answer within {} seconds",
                http::redact_url(url),
                TIMEOUT.as_secs()
            )));
        }
    };
    let cut = page.cut;
    let text = tokio::task::spawn_blocking(move || readable(page))
        .await
        .map_err(|_| FunctionError::failed("the page cannot be read"))??;
    let mut answer = bounds::page_of(&text, offset, max);
    if cut {
        answer.push_str("\n[only the first 10 MiB were fetched]");
    }
    Ok(answer)
}

/// What came over the wire.
struct Page {
    mime: String,
    charset: Option<String>,
    bytes: Vec<u8>,
    cut: bool,
}

async fn download(url: &str) -> Result<Page, FunctionError> {
    let client = Http::new(HttpOptions {
        redirects: Redirects::Anywhere,
        ..HttpOptions::default()
    });
    let request = client.request(Method::GET, url).map_err(|error| {
        let hint = error
            .hint()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        FunctionError::failed(format!("{error}{hint}"))
    })?;
    let shown = http::redact_url(url);
    let failed = |error: reqwest::Error| {
        FunctionError::failed(format!("cannot fetch `{shown}`: {}", http::describe(error)))
    };
    let mut response = request
        .header("accept", "text/html,text/plain;q=0.9,*/*;q=0.5")
        .send()
        .await
        .map_err(failed)?;
    let status = response.status();
    let (mime, charset) = content_type(&response);
    let mut bytes = Vec::new();
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        let room = BODY_MAX.saturating_sub(bytes.len());
        bytes.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        if chunk.len() > room {
            cut = true;
            break;
        }
    }
    let page = Page {
        mime,
        charset,
        bytes,
        cut,
    };
    if !status.is_success() {
        let said = readable(page).unwrap_or_default();
        return Err(FunctionError::failed(format!(
            "`{shown}` answered {status}: {}",
            text::bounded(said.trim(), 1_000)
        )));
    }
    Ok(page)
}

fn content_type(response: &Response) -> (String, Option<String>) {
    let header = response
        .headers()
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let mut parts = header.split(';').map(str::trim);
    let mime = parts.next().unwrap_or_default().to_owned();
    let charset = parts
        .find_map(|part| part.strip_prefix("charset="))
        .map(|charset| charset.trim_matches('"').to_owned());
    (mime, charset)
}

fn readable(page: Page) -> Result<String, FunctionError> {
    let Page {
        mime,
        charset,
        bytes,
        ..
    } = page;
    let size = bytes.len();
    let text = decode(bytes, charset.as_deref(), &mime).ok_or_else(|| {
        let mime = if mime.is_empty() {
            "unknown type"
        } else {
            &mime
        };
        FunctionError::failed(format!("the answer is not text ({mime}, {size} bytes)"))
    })?;
    let is_html = matches!(mime.as_str(), "text/html" | "application/xhtml+xml")
        || mime.is_empty() && text.trim_start().get(..1) == Some("<");
    Ok(if is_html { html::to_text(&text) } else { text })
}

/// Text that says so, or bytes that happen to be UTF-8.
fn decode(bytes: Vec<u8>, charset: Option<&str>, mime: &str) -> Option<String> {
    if matches!(charset, Some("iso-8859-1" | "latin1" | "windows-1252")) {
        return Some(bytes.iter().copied().map(char::from).collect());
    }
    let claims_text = mime.starts_with("text/")
        || ["json", "xml", "javascript", "yaml"]
            .iter()
            .any(|word| mime.contains(word));
    match String::from_utf8(bytes) {
        Ok(text) => (claims_text || !text.contains('\0')).then_some(text),
        // A body that was cut may end inside a character.
        Err(error) if claims_text || error.utf8_error().error_len().is_none() => {
            Some(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(_) => None,
    }
}
