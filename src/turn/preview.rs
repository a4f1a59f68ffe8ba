//! A dry run: what would be sent is the answer. Nothing is sent, nothing recorded, and no model has to be configured.

use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use super::{Deps, Outcome, interrupted, waiting};
use crate::chat::Notice;
use crate::client::{Client, ModelFacts, ProviderConfig, ProviderKind};
use crate::config::{Input, RequestContext};
use crate::utils::text;
use crate::utils::{Error, Result};

/// A string of the body longer than this that has no space in it is the base64 of an image, in bytes.
const LONG: usize = 2_000;

pub(super) async fn run(
    ctx: &Arc<RwLock<RequestContext>>,
    input: &Input,
    deps: &Deps,
) -> Result<Outcome> {
    if input.is_empty() {
        return Err(Error::user("there is nothing to ask"));
    }
    if waiting::for_servers(ctx, deps, waiting::LIMIT)
        .await
        .is_err()
    {
        return Ok(interrupted());
    }
    let (provider, facts) = match ctx.read() {
        ctx if ctx.model().is_none() => nobody(),
        ctx => ctx.client_config()?,
    };
    let request = {
        let ctx = ctx.read();
        ctx.request_for(input, &ctx.tool_scope(), &facts)
    };
    let mut body = Client::new(&provider, &facts)?.preview(&request);
    shorten(&mut body);
    let text = format!("{body:#}\n");
    deps.sink.notice(Notice::Verbatim(text.clone()));
    Ok(Outcome {
        text,
        interrupted: false,
        usage: None,
        rounds: 0,
    })
}

/// Stands in for a model that is not configured yet: the most common wire.
fn nobody() -> (ProviderConfig, ModelFacts) {
    let provider = ProviderConfig::new("none", ProviderKind::OpenAi);
    let facts = provider.model("none");
    (provider, facts)
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(data) if data.len() > LONG && !data.contains(char::is_whitespace) => {
            let bytes = data.len();
            *data = format!("{}… ({bytes} bytes)", text::prefix(data, 60));
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(map) => map.values_mut().for_each(shorten),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
