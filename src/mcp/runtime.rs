//! Live servers and what the meta-functions do with them: search, describe, invoke, read.
//!
//! A runtime is what a tool scope holds: the servers of a request, by name. It sends, decodes and hands to the content
//! policy; it knows no declarations, asks no permission and prints nothing. Whatever is wrong with a request becomes a
//! [`McpError::Request`] whose text teaches how to ask (`M-56`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value};

use super::blob::{BlobError, decode_bytes};
use super::catalog::{Catalog, CatalogItem, CatalogKind};
use super::decode::{self, Body, protocol_error};
use super::describe::{self, Functions};
use super::kept::{Finder, Finding, ResourceFacts, ToolFacts, ToolHints, found};
use super::render::{Bounds, Policy, View, render_contents, render_items, render_tool_answer};
use super::spill::SpillDir;
use super::template::Template;
use super::{
    CallContext, ConnectedServer, ListKind, Listing, McpError, McpServerFeatures, MetaFunction,
    ModelServerName, NameTable, ServerName, meta_function_name, rank,
};
use crate::chat::ToolOutput;
use crate::utils::AbortToken;
use crate::utils::abort::{Aborted, unless_aborted};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::grep::Filter;
use crate::utils::text;

/// How long a read waits, once the content is there, for the walk that tells its audience (`M-55`).
const AUDIENCE_WAIT: Duration = Duration::from_millis(500);
/// Most items a search returns (`M-42`).
const TOP_K_MAX: usize = 20;
/// Longest identifier that an error repeats, in bytes.
const QUOTED_BYTES: usize = 256;
/// How many near identifiers an error offers.
const NEAREST: usize = 3;

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

    fn target<'a>(&'a self, name: &ServerName) -> Result<Target<'a>, McpError> {
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

/// A server of the runtime.
#[derive(Clone, Copy)]
struct Target<'a> {
    handle: &'a Arc<ConnectedServer>,
    model_name: &'a ModelServerName,
}

/// What a read asks for.
struct Wanted<'a> {
    uri: String,
    /// What `uri` was expanded from.
    template: Option<&'a str>,
}

impl Target<'_> {
    fn function(self, function: MetaFunction) -> String {
        meta_function_name(function, self.model_name)
    }

    /// The functions that call tools and read resources, as far as the server has them.
    fn functions(self) -> (Option<String>, Option<String>) {
        let invoke = self.offers(CatalogKind::Tool);
        let read = self.offers(CatalogKind::Resource);
        (
            invoke.then(|| self.function(MetaFunction::Invoke)),
            read.then(|| self.function(MetaFunction::Read)),
        )
    }

    fn offers(self, kind: CatalogKind) -> bool {
        let capabilities = self.handle.capabilities();
        match kind {
            CatalogKind::Tool => capabilities.tools,
            CatalogKind::Resource | CatalogKind::ResourceTemplate => capabilities.resources,
            CatalogKind::Prompt => capabilities.prompts,
        }
    }

    fn lacks(self, kind: CatalogKind) -> McpError {
        McpError::Request(format!(
            "MCP server `{}` has no {}; `{}` finds what it has",
            self.handle.name(),
            kind.list().words(),
            self.function(MetaFunction::Search)
        ))
    }

    fn unknown(self, request: &DescribeRequest, catalog: &Catalog) -> McpError {
        let near = nearest(
            &request.id,
            catalog.items.iter().map(CatalogItem::id),
            NEAREST,
        );
        let near: Vec<_> = near
            .into_iter()
            .map(|id| text::bounded(id, QUOTED_BYTES))
            .collect();
        let near: Vec<&str> = near.iter().map(AsRef::as_ref).collect();
        let mut message = format!(
            "MCP server `{}` has no {} `{}`",
            self.handle.name(),
            request.kind.as_str().replace('_', " "),
            text::bounded(&request.id, QUOTED_BYTES)
        );
        if !near.is_empty() {
            message = format!("{message}; did you mean {}?", alternatives(&near));
        } else if request.kind == CatalogKind::Tool && request.id.contains("://") {
            message.push_str(
                "; for a resource set `kind` to `resource`, for a template to `resource_template`",
            );
        } else {
            let search = self.function(MetaFunction::Search);
            message = format!("{message}; `{search}` finds what there is");
        }
        for note in &catalog.notes {
            message = format!("{message} ({note})");
        }
        McpError::Request(message)
    }

    /// Lists the advertised ones of these kinds at once. Only cancelling fails the whole.
    async fn list(self, kinds: &[CatalogKind], cx: &CallContext) -> Result<Listed, McpError> {
        let kinds = kinds.iter().copied().filter(|kind| self.offers(*kind));
        let lists = kinds.map(|kind| async move {
            let listing = Box::pin(self.handle.list(kind.list(), cx)).await;
            (kind, listing)
        });
        let listed = join_all(lists).await;
        let cancelled = listed
            .iter()
            .any(|(_, listing)| matches!(listing, Err(McpError::Cancelled)));
        if cancelled || cx.abort.is_cancelled() {
            return Err(McpError::Cancelled);
        }
        Ok(listed)
    }

    async fn catalog(self, listed: Listed, cx: &CallContext) -> Result<Catalog, McpError> {
        let server = self.handle.name().clone();
        blocking(&cx.abort, move |_| Catalog::new(listed, &server)).await
    }

    async fn request(
        self,
        method: &str,
        params: Map<String, Value>,
        cx: &CallContext,
    ) -> Result<Value, McpError> {
        // Boxed: what a request goes through makes for a large future, and it sits in every caller's.
        let result = Box::pin(self.handle.request(method, params, cx)).await?;
        if decode::wants_input(&result) {
            return Err(protocol_error(
                self.handle.name(),
                method,
                "the server asks for input, which coyote cannot give".into(),
            ));
        }
        Ok(result)
    }

    async fn read(self, wanted: &Wanted<'_>, cx: &CallContext) -> Result<Value, McpError> {
        if !self.offers(CatalogKind::Resource) {
            return Err(self.lacks(CatalogKind::Resource));
        }
        let params = Map::from_iter([("uri".to_owned(), Value::from(wanted.uri.as_str()))]);
        let search = self.function(MetaFunction::Search);
        self.request("resources/read", params, cx)
            .await
            .map_err(|error| advise(error, || format!("`{search}` finds what can be read")))
    }

    /// The URI to read: expanded from a template when there are arguments for one (`M-51`).
    fn wanted<'u>(
        self,
        uri: &'u str,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<Wanted<'u>, McpError> {
        let parsed = Template::parse(uri);
        let teach = |error: super::template::TemplateError| McpError::Request(error.to_string());
        if let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) {
            let expanded = parsed.and_then(|template| template.expand(arguments));
            return Ok(Wanted {
                uri: expanded.map_err(teach)?,
                template: Some(uri),
            });
        }
        let literal = || Wanted {
            uri: uri.to_owned(),
            template: None,
        };
        // A URI with braces that are no template is for the server to judge.
        let Ok(template) = parsed else {
            return Ok(literal());
        };
        let variables = template.variables();
        if variables.is_empty() || self.is_listed(uri) {
            return Ok(literal());
        }
        template.check_level().map_err(teach)?;
        let names: Vec<_> = variables
            .iter()
            .take(16)
            .map(|name| text::bounded(name, QUOTED_BYTES))
            .collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Err(McpError::Request(format!(
            "`{}` is a template: pass `arguments` with a value for {}",
            text::bounded(uri, QUOTED_BYTES),
            alternatives(&names).replace(" or ", " and ")
        )))
    }

    fn is_listed(self, uri: &str) -> bool {
        self.handle
            .kept()
            .resources()
            .known(&self.resource_generation())
            .is_some_and(|facts| facts.resources.contains_key(uri))
    }

    fn resource_generation(self) -> (u64, u64) {
        (
            self.handle.generation(ListKind::Resources),
            self.handle.generation(ListKind::ResourceTemplates),
        )
    }

    /// Sees to it that the resources' audiences become known, beside the read that needs one (`M-55`). The walk outlives the
    /// read: the next one finds its facts.
    fn start_walk(self, cx: &CallContext) -> Finding<ResourceFacts> {
        let (finding, finder) = self
            .handle
            .kept()
            .resources()
            .find(self.resource_generation());
        if let Some(finder) = finder {
            let walk = walk(
                Arc::clone(self.handle),
                CallContext::new(cx.abort.clone()),
                finder,
            );
            tokio::spawn(walk);
        }
        finding
    }

    /// The facts, if they come soon.
    async fn facts(
        self,
        walk: Finding<ResourceFacts>,
        cx: &CallContext,
    ) -> Result<Option<Arc<ResourceFacts>>, McpError> {
        let soon = tokio::time::timeout(AUDIENCE_WAIT, found(walk));
        let facts = unless_aborted(&cx.abort, soon).await.map_err(cancelled)?;
        Ok(facts.ok().flatten())
    }

    fn renderer(self, spill: &SpillDir, cx: &CallContext) -> Renderer {
        Renderer {
            server: self.handle.name().clone(),
            spill: spill.clone(),
            bounds: Bounds::new(cx.max_result),
            read_function: self.functions().1,
        }
    }
}

type Listed = Vec<(CatalogKind, Result<Listing, McpError>)>;

/// What the content policy needs, owned: rendering happens on another thread.
struct Renderer {
    server: ServerName,
    spill: SpillDir,
    bounds: Bounds,
    read_function: Option<String>,
}

impl Renderer {
    fn policy<'a>(&'a self, abort: &'a AbortToken) -> Policy<'a> {
        Policy {
            server: &self.server,
            spill: &self.spill,
            bounds: self.bounds,
            read_function: self.read_function.as_deref(),
            abort,
        }
    }
}

/// Lists resources and templates for their audiences. A list that fails leaves its facts unknown: a read never fails for it,
/// and does not walk again.
async fn walk(server: Arc<ConnectedServer>, cx: CallContext, finder: Finder<ResourceFacts>) {
    let (resources, templates) = tokio::join!(
        server.list(ListKind::Resources, &cx),
        server.list(ListKind::ResourceTemplates, &cx)
    );
    if cx.abort.is_cancelled() {
        return;
    }
    for error in [&resources, &templates]
        .into_iter()
        .filter_map(|listing| listing.as_ref().err())
    {
        tracing::debug!(server = %server.name(), %error, "no audiences");
    }
    let facts = ResourceFacts {
        resources: audiences(resources, "uri").collect(),
        templates: audiences(templates, "uriTemplate")
            .filter(|(_, audience)| !audience.is_empty())
            .collect(),
    };
    finder.send_replace(Some(Arc::new(facts)));
}

fn audiences(
    listing: Result<Listing, McpError>,
    key: &str,
) -> impl Iterator<Item = (String, Vec<String>)> {
    let items = listing.map(|listing| listing.items).unwrap_or_default();
    items.into_iter().filter_map(move |item| {
        let id = item.get(key)?.as_str()?.to_owned();
        Some((id, decode::audience(&item).unwrap_or_default()))
    })
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

/// Adds what to do next to a server's refusal (`M-56`).
fn advise(error: McpError, advice: impl FnOnce() -> String) -> McpError {
    match error {
        McpError::Refused {
            server,
            operation,
            code,
            message,
        } => McpError::Refused {
            message: format!("{message}; {}", advice()),
            server,
            operation,
            code,
        },
        other => other,
    }
}

fn cancelled(_: Aborted) -> McpError {
    McpError::Cancelled
}

/// Runs work that takes long on large content beside the runtime. Cancelled, it is not waited for; it looks at the
/// token itself and ends soon.
async fn blocking<T: Send + 'static>(
    abort: &AbortToken,
    work: impl FnOnce(&AbortToken) -> T + Send + 'static,
) -> Result<T, McpError> {
    let token = abort.clone();
    let work = tokio::task::spawn_blocking(move || work(&token));
    match unless_aborted(abort, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(failure)) if failure.is_panic() => std::panic::resume_unwind(failure.into_panic()),
        // The runtime is shutting down.
        Ok(Err(_)) | Err(Aborted) => Err(McpError::Cancelled),
    }
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
