//! Live servers and what the meta-functions do with them: search, describe, invoke, read.
//!
//! A runtime is what a tool scope holds: the servers of a request, by name. It sends, decodes and hands to the content
//! policy; it knows no declarations, asks no permission and prints nothing. Whatever is wrong with a request becomes a
//! [`McpError::Request`] whose text teaches how to ask (`M-56`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::catalog::{Catalog, CatalogKind};
use super::kept::ToolHints;
use super::spill::SpillDir;
use super::{CallContext, ConnectedServer, McpError, McpServerFeatures, NameTable, ServerName};
use crate::chat::ToolOutput;

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

    /// What decides which functions are declared, per server, sorted by model-visible name. Taken from the live handles: servers
    /// that no registry ever saw are covered, and one whose handshake nobody saw has tools only (`M-30`).
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

    /// Lists these kinds of a server, live and concurrently; a kind that is not advertised is not asked for (`M-34`). A kind that
    /// fails becomes a note, unless all fail: then the first failure is the error (`M-41`).
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn catalog_items(
        &self,
        server: &ServerName,
        kinds: &[CatalogKind],
        cx: &CallContext,
    ) -> Result<Catalog, McpError> {
        let _ = (kinds, cx);
        Err(unavailable(server))
    }

    /// What the server's tool says about itself, from one listing per connection (`M-47`); `None` for a tool that is not listed.
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn tool_hints(
        &self,
        server: &ServerName,
        tool: &str,
        cx: &CallContext,
    ) -> Result<Option<ToolHints>, McpError> {
        let _ = (tool, cx);
        Err(unavailable(server))
    }

    /// Ranks the whole catalog (`M-42`).
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn search(
        &self,
        server: &ServerName,
        request: SearchRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let _ = (request, cx);
        Err(unavailable(server))
    }

    /// Describes one item (`M-43`).
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn describe(
        &self,
        server: &ServerName,
        request: DescribeRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let _ = (request, cx);
        Err(unavailable(server))
    }

    /// Calls a tool (`M-44`, `M-66`).
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn invoke(
        &self,
        server: &ServerName,
        request: InvokeRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let _ = (request, cx);
        Err(unavailable(server))
    }

    /// Reads a resource (`M-50`..`M-55`).
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn read(
        &self,
        server: &ServerName,
        request: ReadRequest,
        cx: &CallContext,
    ) -> Result<ToolOutput, McpError> {
        let _ = (request, cx, &self.inner.spill);
        Err(unavailable(server))
    }

    /// Reads a resource as bytes, each content whole: for `coyote mcp read --raw`.
    #[allow(clippy::unused_async, reason = "bodies follow")]
    pub async fn read_bytes(
        &self,
        server: &ServerName,
        uri: &str,
        arguments: Option<&Map<String, Value>>,
        cx: &CallContext,
    ) -> Result<Vec<RawContent>, McpError> {
        let _ = (uri, arguments, cx);
        Err(unavailable(server))
    }
}

fn unavailable(server: &ServerName) -> McpError {
    McpError::Request(format!("`{server}` is not available yet"))
}
