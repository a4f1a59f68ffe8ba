//! One server as a tool scope sees it: what it offers and is called, listing, reading, and the walk that learns
//! whom its resources are meant for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Map, Value};

use super::catalog::{Catalog, CatalogItem, CatalogKind};
use super::decode::{self, protocol_error};
use super::kept::{Finder, Finding, ResourceFacts, found};
use super::render::{Bounds, Policy};
use super::runtime::DescribeRequest;
use super::spill::SpillDir;
use super::template::{Template, TemplateError};
use super::{
    CallContext, ConnectedServer, ListKind, Listing, McpError, MetaFunction, ModelServerName,
    ServerName, meta_function_name,
};
use crate::utils::AbortToken;
use crate::utils::abort::{Aborted, unless_aborted};
use crate::utils::fuzzy::{alternatives, nearest};
use crate::utils::text;

/// How long a read waits, once the content is there, for the walk that tells its audience (`M-55`).
const AUDIENCE_WAIT: Duration = Duration::from_millis(500);
/// Longest identifier that an error repeats, in bytes.
pub(super) const QUOTED_BYTES: usize = 256;
/// How many variables of a template an error names.
const VARIABLES: usize = 16;
/// How many near identifiers an error offers.
pub(super) const NEAREST: usize = 3;

/// A server of the runtime.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    /// Its live handle.
    pub handle: &'a Arc<ConnectedServer>,
    /// What the model knows it as.
    pub model_name: &'a ModelServerName,
}

/// What a read asks for.
pub(super) struct Wanted<'a> {
    /// The URI.
    pub uri: String,
    /// What `uri` was expanded from.
    pub template: Option<&'a str>,
}

impl Target<'_> {
    pub(super) fn function(self, function: MetaFunction) -> String {
        meta_function_name(function, self.model_name)
    }

    /// The functions that call tools and read resources, as far as the server has them.
    pub(super) fn functions(self) -> (Option<String>, Option<String>) {
        let invoke = self.offers(CatalogKind::Tool);
        let read = self.offers(CatalogKind::Resource);
        (
            invoke.then(|| self.function(MetaFunction::Invoke)),
            read.then(|| self.function(MetaFunction::Read)),
        )
    }

    pub(super) fn offers(self, kind: CatalogKind) -> bool {
        let capabilities = self.handle.capabilities();
        match kind {
            CatalogKind::Tool => capabilities.tools,
            CatalogKind::Resource | CatalogKind::ResourceTemplate => capabilities.resources,
            CatalogKind::Prompt => capabilities.prompts,
        }
    }

    pub(super) fn lacks(self, kind: CatalogKind) -> McpError {
        McpError::Request(format!(
            "MCP server `{}` has no {}; `{}` finds what it has",
            self.handle.name(),
            kind.list().words(),
            self.function(MetaFunction::Search)
        ))
    }

    pub(super) fn unknown(self, request: &DescribeRequest, catalog: &Catalog) -> McpError {
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
    pub(super) async fn list(
        self,
        kinds: &[CatalogKind],
        cx: &CallContext,
    ) -> Result<Listed, McpError> {
        let kinds = kinds.iter().copied().filter(|kind| self.offers(*kind));
        let lists = kinds.map(|kind| async move {
            let listing = Box::pin(self.handle.list(kind.list(), cx)).await;
            if let Err(error) = &listing
                && !cx.abort.is_cancelled()
            {
                let kinds = kind.list().words();
                tracing::warn!(server = %self.handle.name(), kinds, %error, "not listed");
            }
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

    pub(super) async fn catalog(
        self,
        listed: Listed,
        cx: &CallContext,
    ) -> Result<Catalog, McpError> {
        let server = self.handle.name().clone();
        blocking(&cx.abort, move |_| Catalog::new(listed, &server)).await
    }

    pub(super) async fn request(
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

    pub(super) async fn read(
        self,
        wanted: &Wanted<'_>,
        cx: &CallContext,
    ) -> Result<Value, McpError> {
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
    pub(super) fn wanted<'u>(
        self,
        uri: &'u str,
        arguments: Option<&Map<String, Value>>,
    ) -> Result<Wanted<'u>, McpError> {
        let parsed = Template::parse(uri);
        let teach = |error: TemplateError| McpError::Request(error.to_string());
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
            .take(VARIABLES)
            .map(|name| text::bounded(name, QUOTED_BYTES))
            .collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Err(McpError::ValuesMissing(format!(
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
    pub(super) fn start_walk(self, cx: &CallContext) -> Finding<ResourceFacts> {
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
    pub(super) async fn facts(
        self,
        walk: Finding<ResourceFacts>,
        cx: &CallContext,
    ) -> Result<Option<Arc<ResourceFacts>>, McpError> {
        let soon = tokio::time::timeout(AUDIENCE_WAIT, found(walk));
        let facts = unless_aborted(&cx.abort, soon).await.map_err(cancelled)?;
        Ok(facts.ok().flatten())
    }

    pub(super) fn renderer(self, spill: &SpillDir, cx: &CallContext) -> Renderer {
        Renderer {
            server: self.handle.name().clone(),
            spill: spill.clone(),
            bounds: Bounds::new(cx.max_result),
            read_function: self.functions().1,
        }
    }
}

pub(super) type Listed = Vec<(CatalogKind, Result<Listing, McpError>)>;

/// What the content policy needs, owned: rendering happens on another thread.
pub(super) struct Renderer {
    server: ServerName,
    spill: SpillDir,
    bounds: Bounds,
    read_function: Option<String>,
}

impl Renderer {
    pub(super) fn policy<'a>(&'a self, abort: &'a AbortToken) -> Policy<'a> {
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

/// Adds what to do next to a server's refusal (`M-56`).
pub(super) fn advise(error: McpError, advice: impl FnOnce() -> String) -> McpError {
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

pub(super) fn cancelled(_: Aborted) -> McpError {
    McpError::Cancelled
}

/// Runs work that takes long on large content beside the runtime. Cancelled, it is not waited for; it looks at the
/// token itself and ends soon.
pub(super) async fn blocking<T: Send + 'static>(
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
