//! Live servers and what the meta-functions do with them: search, describe, invoke, read.
//!
//! A runtime is what a tool scope holds: the servers of a request, by name. It sends, decodes and hands to the content
//! policy; it knows no declarations, asks no permission and prints nothing. Whatever is wrong with a request becomes a
//! [`McpError::Request`] whose text teaches how to ask (`M-56`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::blob::{BlobError, decode_bytes};
use super::catalog::{Catalog, CatalogItem, CatalogKind};
use super::decode::{self, Body, protocol_error};
use super::describe::{self, Functions};
use super::kept::{ToolFacts, ToolHints, found};
use super::render::{Bounds, View, render_contents, render_items, render_tool_answer};
use super::spill::SpillDir;
use super::target::{NEAREST, Target, advise, blocking, cancelled};
use super::{
    CallContext, ConnectedServer, ListKind, Listing, McpError, McpServerFeatures, MetaFunction,
    NameTable, ServerName, rank,
};
use crate::chat::ToolOutput;
use crate::utils::AbortToken;
use crate::utils::abort::unless_aborted;
use crate::utils::fuzzy::nearest;
use crate::utils::grep::Filter;
use crate::utils::text;

/// Most items a search returns (`M-42`).
const TOP_K_MAX: usize = 20;

/// What `mcp_search_*` was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// Words, a name or a URI.
    pub query: String,
    /// How many items at most; brought into 1..=20.
    pub top_k: usize,
}

/// What `mcp_describe_*` was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeRequest {
    /// Tool name, resource URI, URI template or prompt name, as `kind` says.
    pub id: String,
    /// What it is.
    pub kind: CatalogKind,
}

/// What `mcp_invoke_*` was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokeRequest {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// What `mcp_read_*` was asked (`M-50`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadRequest {
    /// A URI, or a template when there are arguments.
    pub uri: String,
    /// Values of the template's variables.
    pub arguments: Option<Map<String, Value>>,
    /// Only lines that match, with context.
    pub pattern: Option<String>,
    /// Where the page begins, in bytes of the (filtered) text.
    pub offset: u64,
    /// How many bytes of text at most; absent or 0 is the default page.
    pub max_bytes: Option<u64>,
}

/// One content of a resource, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawContent {
    /// What the server calls it.
    pub uri: String,
    /// The type the server claims.
    pub mime_type: Option<String>,
    /// The decoded content.
    pub bytes: Vec<u8>,
}

/// The servers of a tool scope. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct McpRuntime {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    servers: BTreeMap<ServerName, Arc<ConnectedServer>>,
    names: NameTable,
    spill: SpillDir,
}

impl McpRuntime {
    /// A runtime of these servers. Payloads that a model cannot read go below `spill`.
    pub fn new(servers: impl IntoIterator<Item = Arc<ConnectedServer>>, spill: SpillDir) -> Self {
        let servers: BTreeMap<_, _> = servers
            .into_iter()
            .map(|server| (server.name().clone(), server))
            .collect();
        let names = NameTable::new(servers.keys().cloned());
        let inner = Inner {
            servers,
            names,
            spill,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// What decides which functions are declared, per server, sorted by model-visible name. Taken from the live
    /// handles: servers that no registry ever saw are covered, and one whose handshake nobody saw has tools only
    /// (`M-30`).
    pub fn server_features(&self) -> Vec<McpServerFeatures> {
        let mut features: Vec<_> = self
            .inner
            .servers
            .values()
            .filter_map(|server| {
                let name = self.inner.names.model_name(server.name())?;
                Some(server.capabilities().features(name.clone()))
            })
            .collect();
        features.sort_by(|a, b| a.name.cmp(&b.name));
        features
    }

    /// What each server is called.
    pub fn names(&self) -> &NameTable {
        &self.inner.names
    }

    /// The live handle of a server.
    pub fn server(&self, name: &ServerName) -> Option<&Arc<ConnectedServer>> {
        self.inner.servers.get(name)
    }

    /// Lists these kinds of a server, live and concurrently; a kind that is not advertised is not asked for
    /// (`M-34`). A kind that fails becomes a note, unless all fail: then the first failure is the error (`M-41`).
    pub async fn catalog_items(
        &self,
        server: &ServerName,
        kinds: &[CatalogKind],
        cx: &CallContext,
    ) -> Result<Catalog, McpError> {
        let target = self.target(server)?;
        let listed = target.list(kinds, cx).await?;
        let failed = listed.iter().all(|(_, listing)| listing.is_err());
        if failed && let Some((_, Err(error))) = listed.first() {
            return Err(error.clone());
        }
        target.catalog(listed, cx).await
    }

    /// What the server's tool says about itself, from one listing per connection (`M-47`); `None` for a tool that is
    /// not listed.
    pub async fn tool_hints(
        &self,
        server: &ServerName,
        tool: &str,
        cx: &CallContext,
    ) -> Result<Option<ToolHints>, McpError> {
        let target = self.target(server)?;
        let slot = target.handle.kept().tools();
        let generation = target.handle.generation(ListKind::Tools);
        let (finding, finder) = slot.find(generation);
        let facts = match finder {
            Some(finder) => {
                // Dropped on failure, so that the next question lists again.
                let listing = Box::pin(target.handle.list(ListKind::Tools, cx)).await?;
                let facts = Arc::new(tool_facts(&listing));
                finder.send_replace(Some(Arc::clone(&facts)));
                Some(facts)
            }
            None => unless_aborted(&cx.abort, found(finding))
                .await
                .map_err(cancelled)?,
        };
        Ok(facts.and_then(|facts| facts.hints.get(tool).copied()))
    }

    /// Ranks the whole catalog (`M-42`).
    pub async fn search(
        &self,
        server: &ServerName,
        request: SearchRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let target = self.target(server)?;
        let listed = target.list(&CatalogKind::ALL, cx).await?;
        let catalog = target.catalog(listed, cx).await?;
        let bounds = Bounds::new(cx.max_result);
        let top_k = request.top_k.clamp(1, TOP_K_MAX);
        blocking(&cx.abort, move |_| {
            let found = rank::rank(&catalog.items, &request.query, top_k);
            let mut notes = catalog.notes;
            if found.is_empty() {
                notes.push(nothing_found(&catalog.items));
            }
            render_items(&found, &notes, bounds)
        })
        .await
    }

    /// Describes one item (`M-43`).
    pub async fn describe(
        &self,
        server: &ServerName,
        request: DescribeRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let target = self.target(server)?;
        if !target.offers(request.kind) {
            return Err(target.lacks(request.kind));
        }
        let catalog = self.catalog_items(server, &[request.kind], cx).await?;
        let item = catalog.items.iter().find(|item| item.id() == request.id);
        let item = item.ok_or_else(|| target.unknown(&request, &catalog))?;
        let (invoke, read) = target.functions();
        let functions = Functions {
            invoke: invoke.as_deref(),
            read: read.as_deref(),
        };
        let bounds = Bounds::new(cx.max_result);
        Ok(ToolOutput::ok(describe::describe(item, functions, bounds)))
    }

    /// Calls a tool (`M-44`, `M-66`).
    pub async fn invoke(
        &self,
        server: &ServerName,
        request: InvokeRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let target = self.target(server)?;
        if !target.offers(CatalogKind::Tool) {
            return Err(target.lacks(CatalogKind::Tool));
        }
        let params = Map::from_iter([
            ("name".to_owned(), Value::String(request.tool)),
            ("arguments".to_owned(), Value::Object(request.arguments)),
        ]);
        let describe = target.function(MetaFunction::Describe);
        let result = target
            .request("tools/call", params, cx)
            .await
            .map_err(|error| advise(error, || format!("`{describe}` shows a tool's schema")))?;
        let renderer = target.renderer(&self.inner.spill, cx);
        let work = blocking(&cx.abort, move |abort| {
            render_tool_answer(&decode::tool_answer(&result), &renderer.policy(abort))
        });
        work.await?.map_err(cancelled)
    }

    /// Reads a resource (`M-50`..`M-55`).
    pub async fn read(
        &self,
        server: &ServerName,
        request: ReadRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let target = self.target(server)?;
        let filter = match &request.pattern {
            Some(pattern) => Some(Filter::new(pattern).map_err(|error| {
                McpError::Request(format!("{error}; correct `pattern` or leave it out"))
            })?),
            None => None,
        };
        let wanted = target.wanted(&request.uri, request.arguments.as_ref())?;
        let walk = target.start_walk(cx);
        let result = target.read(&wanted, cx).await?;
        let facts = target.facts(walk, cx).await?;
        let audience =
            facts.and_then(|facts| Some(facts.audience(&wanted.uri, wanted.template)?.to_vec()));
        let (uri, server) = (wanted.uri.clone(), server.clone());
        let renderer = target.renderer(&self.inner.spill, cx);
        let work = blocking(&cx.abort, move |abort| {
            let contents = decode::resource_contents(&result)
                .map_err(|reason| protocol_error(&server, "resources/read", reason))?;
            let view = View {
                filter: filter.as_ref(),
                offset: request.offset,
                max_bytes: request.max_bytes,
            };
            let policy = renderer.policy(abort);
            render_contents(&contents, &uri, audience.as_deref(), view, &policy).map_err(cancelled)
        });
        work.await?
    }

    /// Reads a resource as bytes, each content whole: for `coyote mcp read --raw`.
    pub async fn read_bytes(
        &self,
        server: &ServerName,
        uri: &str,
        arguments: Option<&Map<String, Value>>,
        cx: &CallContext,
    ) -> Result<Vec<RawContent>, McpError> {
        let target = self.target(server)?;
        let wanted = target.wanted(uri, arguments)?;
        let result = target.read(&wanted, cx).await?;
        let (uri, server) = (wanted.uri.clone(), server.clone());
        let read = blocking(&cx.abort, move |abort| {
            raw_contents(&result, &uri, &server, abort)
        });
        read.await?
    }

    /// Where payloads go.
    pub(super) fn spill(&self) -> &SpillDir {
        &self.inner.spill
    }

    pub(super) fn target<'a>(&'a self, name: &ServerName) -> Result<Target<'a>, McpError> {
        let handle = self.inner.servers.get(name);
        let model_name = self.inner.names.model_name(name);
        if let (Some(handle), Some(model_name)) = (handle, model_name) {
            return Ok(Target { handle, model_name });
        }
        let known = self.inner.servers.keys().map(ServerName::as_str);
        Err(McpError::UnknownServer {
            name: name.as_str().to_owned(),
            nearest: nearest(name.as_str(), known, NEAREST)
                .into_iter()
                .map(str::to_owned)
                .collect(),
        })
    }
}

fn tool_facts(listing: &Listing) -> ToolFacts {
    let hints = listing
        .items
        .iter()
        .filter_map(|tool| {
            let name = tool.get("name")?.as_str()?.to_owned();
            Some((name, decode::tool_hints(tool)))
        })
        .collect();
    ToolFacts { hints }
}

fn nothing_found(items: &[CatalogItem]) -> String {
    if items.is_empty() {
        "the server lists nothing".to_owned()
    } else {
        format!(
            "nothing matches; the catalog has {}, and an empty query lists the first of them",
            text::plural(items.len(), "item")
        )
    }
}

fn raw_contents(
    result: &Value,
    uri: &str,
    server: &ServerName,
    abort: &AbortToken,
) -> Result<Vec<RawContent>, McpError> {
    let fail = |reason: String| protocol_error(server, "resources/read", reason);
    let contents = decode::resource_contents(result).map_err(fail)?;
    contents
        .iter()
        .map(|content| {
            let bytes = match &content.body {
                Body::Text(text) => text.as_bytes().to_vec(),
                Body::Blob(blob) => decode_bytes(blob, abort).map_err(|error| match error {
                    BlobError::Cancelled => McpError::Cancelled,
                    error => fail(error.to_string()),
                })?,
                Body::Unreadable(reason) => {
                    return Err(fail(format!("unreadable resource content: {reason}")));
                }
            };
            Ok(RawContent {
                uri: content.uri.unwrap_or(uri).to_owned(),
                mime_type: content.mime_type.map(str::to_owned),
                bytes,
            })
        })
        .collect()
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
