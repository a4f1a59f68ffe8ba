//! What `Tab` offers after `.prompt`, in three stages (`P-40`–`P-45`): a server, one of its prompts, its arguments.
//!
//! The servers come from the context's own runtime and are asked nothing; prompts are listed anew with every press of
//! `Tab`, one walk over the pages. Completion is no use of a server: nothing is started, connected or authenticated
//! for it, and whatever fails offers nothing, in silence (`R13`).

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::RwLock;

use super::completer::{Candidate, LiveSource};
use crate::config::RequestContext;
use crate::mcp::catalog::{CatalogItem, CatalogKind};
use crate::mcp::runtime::McpRuntime;
use crate::mcp::{CallContext, ConnectedServer, ServerName};
use crate::utils::AbortToken;

/// The servers of a context and their prompts.
pub(super) struct Prompts {
    /// Looked at under a short guard when `Tab` is pressed, so that a server that came up meanwhile is there.
    pub(super) ctx: Arc<RwLock<RequestContext>>,
}

impl LiveSource for Prompts {
    fn candidates(
        &self,
        before: Vec<String>,
        _word: String,
    ) -> Pin<Box<dyn Future<Output = Vec<Candidate>> + Send>> {
        let ctx = Arc::clone(&self.ctx);
        Box::pin(async move {
            // The guard ends with this statement: none is held while a server is asked (`P-42`).
            let mcp = ctx.read().live_servers();
            match before.as_slice() {
                [] => servers(&mcp),
                [server] => prompts(&mcp, server).await.iter().map(prompt).collect(),
                [server, name, typed @ ..] => {
                    let prompts = prompts(&mcp, server).await;
                    let prompt = prompts.iter().find(|prompt| prompt.name == *name);
                    prompt.map_or_else(Vec::new, |prompt| arguments(prompt, typed))
                }
            }
        })
    }
}

/// The first stage: who runs and advertises prompts. Nobody is asked.
fn servers(mcp: &McpRuntime) -> Vec<Candidate> {
    mcp.names()
        .iter()
        .filter_map(|(name, _)| offering(mcp, name))
        .map(|server| {
            let description = server.spec().description.as_deref();
            Candidate::described(server.name().as_str(), description.unwrap_or_default())
        })
        .collect()
}

/// A server that is up and has prompts.
fn offering<'a>(mcp: &'a McpRuntime, name: &ServerName) -> Option<&'a ConnectedServer> {
    let server = mcp.server(name)?;
    (server.is_running() && server.capabilities().prompts).then_some(server.as_ref())
}

/// What a server lists now; nothing when that fails, for whatever reason.
async fn prompts(mcp: &McpRuntime, server: &str) -> Vec<CatalogItem> {
    let Ok(name) = ServerName::new(server) else {
        return Vec::new();
    };
    if offering(mcp, &name).is_none() {
        return Vec::new();
    }
    let cx = CallContext::new(AbortToken::new()).without_revival();
    let listed = mcp.catalog_items(&name, &[CatalogKind::Prompt], &cx).await;
    let mut items = listed.map_or_else(|_| Vec::new(), |catalog| catalog.items);
    items.retain(|item| item.unreadable.is_none());
    items
}

/// The second stage.
fn prompt(item: &CatalogItem) -> Candidate {
    let title = item.title.as_deref().unwrap_or_default();
    let description = match item.description.trim() {
        "" => title,
        description => description,
    };
    Candidate::described(item.name.as_str(), description)
}

/// The third stage: `key=` for what was not `typed` yet, required ones first, otherwise as declared.
fn arguments(item: &CatalogItem, typed: &[String]) -> Vec<Candidate> {
    let key = |word: &String| Some(word.split_once('=')?.0.to_owned());
    let mut taken: HashSet<String> = typed.iter().filter_map(key).collect();
    let declared = item.arguments.as_deref().unwrap_or_default();
    // The first `=` ends a key: a name that has one cannot be typed.
    let mut open: Vec<_> = (declared.iter())
        .filter(|argument| !argument.name.is_empty() && !argument.name.contains('='))
        .filter(|argument| taken.insert(argument.name.clone()))
        .collect();
    open.sort_by_key(|argument| !argument.required); // stable
    open.into_iter()
        .map(|argument| {
            let about = argument.description.as_deref().unwrap_or_default();
            let about = if argument.required {
                format!("(required) {about}")
            } else {
                about.to_owned()
            };
            Candidate {
                glue: true,
                ..Candidate::described(format!("{}=", argument.name), about.trim())
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "prompt_source_tests.rs"]
mod tests;
