//! `coyote mcp <verb>` (`H-06`): MCP servers through a model's eyes, without a model.
//!
//! With `--json`, stdout holds exactly what the model would get; without, the same for people. What is only worth
//! knowing (notes, paging, failures of other servers) goes to stderr.

use std::io::Read as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::args::Kind;
use super::mcp_text::{
    pretty, read_text, result_text, search_text, server_json, server_row, summary,
};
use super::plan::{Mcp, Verb};
use crate::chat::{Activity, CallId, Notice, NoticeSink as _, ToolOutput};
use crate::mcp::catalog::{Catalog, CatalogItem, CatalogKind};
use crate::mcp::prompt::ArgumentError;
use crate::mcp::runtime::{DescribeRequest, InvokeRequest, McpRuntime, ReadRequest, SearchRequest};
use crate::mcp::spill::SpillDir;
use crate::mcp::{
    CallContext, ConnectedServer, ListKind, McpError, McpRegistry, ServerName, ServerState,
    ServerStatus, prompt,
};
use crate::render::Ui;
use crate::utils::{AbortToken, Error, Exit, Result, abort::unless_aborted, fuzzy, text};

/// Longer than any server may take to start: the servers' own limits end the waiting.
const SETTLED: Duration = Duration::from_mins(10);
/// What stdin may hold as arguments of a tool.
const ARGUMENTS_MAX: u64 = 64 * 1024 * 1024;

/// What the verbs work with.
pub struct Tools {
    /// All configured servers.
    pub registry: Arc<McpRegistry>,
    /// Those that are used when none is named.
    pub enabled: Vec<ServerName>,
    /// Where payloads go.
    pub spill: SpillDir,
    /// The terminal.
    pub ui: Arc<Ui>,
    /// Print JSON.
    pub json: bool,
    /// Whether somebody types: then nothing is read from stdin.
    pub stdin_is_terminal: bool,
    /// Ctrl-C.
    pub abort: AbortToken,
}

/// Does what was asked and says how the process ends.
pub async fn run(tools: &Tools, what: &Mcp) -> Result<Exit> {
    match what {
        Mcp::Servers { offline } => tools.servers(*offline).await,
        Mcp::List(kind, Some(server)) => {
            let server = tools.connect(server).await?;
            tools.list(catalog_kind(*kind), vec![server]).await
        }
        Mcp::List(kind, None) => {
            tools.start_all().await?;
            let servers = tools.registry.connected(&tools.enabled);
            tools.list(catalog_kind(*kind), servers).await
        }
        Mcp::Ask { server, verb } => {
            let arguments = match verb {
                Verb::Call {
                    arguments: None, ..
                } => Some(tools.arguments_from_stdin().await?),
                _ => None,
            };
            let server = tools.connect(server).await?;
            tools.ask(&server, verb, arguments).await
        }
    }
}

fn catalog_kind(kind: Kind) -> CatalogKind {
    match kind {
        Kind::Tool => CatalogKind::Tool,
        Kind::Resource => CatalogKind::Resource,
        Kind::ResourceTemplate => CatalogKind::ResourceTemplate,
        Kind::Prompt => CatalogKind::Prompt,
    }
}

impl Tools {
    /// The configured server of that name.
    fn find(&self, name: &str) -> Result<ServerName, McpError> {
        let names = self.registry.names();
        names
            .iter()
            .find(|known| known.as_str() == name)
            .cloned()
            .ok_or_else(|| McpError::UnknownServer {
                name: name.to_owned(),
                nearest: fuzzy::nearest(name, names.iter().map(ServerName::as_str), 3)
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
            })
    }

    /// Starts one server, and no other.
    async fn connect(&self, name: &str) -> Result<Arc<ConnectedServer>> {
        let name = self.find(name)?;
        let waiting = Activity::Connecting(vec![name.to_string()]);
        self.ui.notice(Notice::Activity(Some(waiting)));
        let outcome = unless_aborted(&self.abort, self.registry.restart(&name)).await;
        self.ui.notice(Notice::Activity(None));
        outcome.map_err(|_| McpError::Cancelled)??;
        let connected = self.registry.connected(std::slice::from_ref(&name));
        Ok(connected
            .into_iter()
            .next()
            .ok_or_else(|| McpError::Unavailable {
                server: name,
                reason: "it ended right after it had started".to_owned(),
                stderr: Vec::new(),
            })?)
    }

    /// Starts the enabled servers, concurrently, and waits until each runs or has failed.
    async fn start_all(&self) -> Result<()> {
        self.registry.start(&self.enabled);
        let waiting = self.registry.still_connecting(&self.enabled);
        if !waiting.is_empty() {
            let names = waiting.iter().map(ToString::to_string).collect();
            self.ui
                .notice(Notice::Activity(Some(Activity::Connecting(names))));
        }
        self.registry
            .wait_ready(&self.enabled, SETTLED, &self.abort)
            .await;
        self.ui.notice(Notice::Activity(None));
        self.unless_cancelled()
    }

    fn unless_cancelled(&self) -> Result<()> {
        if self.abort.is_cancelled() {
            return Err(McpError::Cancelled.into());
        }
        Ok(())
    }

    fn runtime(&self, servers: Vec<Arc<ConnectedServer>>) -> McpRuntime {
        McpRuntime::new(servers, self.spill.clone())
    }

    fn context(&self) -> CallContext {
        let ui = Arc::clone(&self.ui);
        CallContext {
            progress: Some(Arc::new(move |progress| {
                let id = CallId("mcp".to_owned());
                ui.notice(Notice::Progress { id, progress });
            })),
            ..CallContext::new(self.abort.clone())
        }
    }

    fn print_json(&self, value: &Value) {
        self.ui.out(&format!("{value}\n"));
    }

    async fn servers(&self, offline: bool) -> Result<Exit> {
        let mut counts = Vec::new();
        if !offline {
            self.start_all().await?;
            let connected = self.registry.connected(&self.enabled);
            counts =
                futures::future::join_all(connected.iter().map(|server| self.count(server))).await;
            self.unless_cancelled()?;
        }
        let statuses = self.registry.statuses();
        let count_of = |name: &ServerName| {
            counts
                .iter()
                .find(|(counted, _)| counted == name)
                .map(|(_, counts)| counts.as_slice())
                .unwrap_or_default()
        };
        if self.json {
            let servers = statuses
                .iter()
                .map(|status| server_json(status, count_of(&status.name)))
                .collect();
            self.print_json(&Value::Array(servers));
            return Ok(Exit::Success);
        }
        if statuses.is_empty() {
            self.ui.line(
                "no MCP servers are configured; `coyote --info` shows where `mcp.json` is expected",
            );
            return Ok(Exit::Success);
        }
        let rows: Vec<Vec<String>> = statuses
            .iter()
            .map(|status| server_row(status, count_of(&status.name)))
            .collect();
        let headers = [
            "server",
            "state",
            "transport",
            "revision",
            "features",
            "counts",
        ];
        self.ui.out(&self.ui.table(&headers, &rows));
        for status in &statuses {
            self.explain(status);
        }
        Ok(Exit::Success)
    }

    /// Why a server is not running, and what else there is to say about it.
    fn explain(&self, status: &ServerStatus) {
        let name = &status.name;
        if let ServerState::Failed { reason } | ServerState::Invalid { reason } = &status.state {
            self.ui.warn(&format!("`{name}`: {reason}"));
            for line in &status.stderr_tail {
                self.ui.dim(&format!("  {name}: {line}"));
            }
        }
        for note in &status.notes {
            self.ui.dim(&format!("`{name}`: {note}"));
        }
    }

    /// How many of each advertised kind a server has; `None` where listing failed.
    async fn count(
        &self,
        server: &Arc<ConnectedServer>,
    ) -> (ServerName, Vec<(ListKind, Option<usize>)>) {
        let cx = self.context();
        let advertised = server.capabilities();
        let kinds = ListKind::ALL.into_iter().filter(|kind| match kind {
            ListKind::Tools => advertised.tools,
            ListKind::Resources | ListKind::ResourceTemplates => advertised.resources,
            ListKind::Prompts => advertised.prompts,
        });
        let counts = futures::future::join_all(kinds.map(|kind| {
            let cx = &cx;
            async move {
                let listing = server.list(kind, cx).await;
                (kind, listing.ok().map(|listing| listing.items.len()))
            }
        }))
        .await;
        (server.name().clone(), counts)
    }

    /// Lists one kind of `servers`, concurrently. A server that fails is said and costs the others nothing.
    async fn list(&self, kind: CatalogKind, servers: Vec<Arc<ConnectedServer>>) -> Result<Exit> {
        let several = servers.len() > 1;
        let runtime = self.runtime(servers.clone());
        let cx = self.context();
        let listings = futures::future::join_all(servers.iter().map(|server| {
            let (runtime, cx) = (&runtime, &cx);
            async move {
                let catalog = runtime.catalog_items(server.name(), &[kind], cx).await;
                (server.name(), catalog)
            }
        }))
        .await;
        self.unless_cancelled()?;
        let mut items = Vec::new();
        let mut failed = false;
        for (server, listing) in listings {
            match listing {
                Ok(Catalog { items: more, notes }) => {
                    items.extend(more);
                    for note in notes {
                        self.ui.warn(&format!("`{server}`: {note}"));
                    }
                }
                Err(error) => {
                    failed = true;
                    self.ui.error(&error.into());
                }
            }
        }
        for name in &self.enabled {
            if let Some(status) = self.registry.status(name)
                && matches!(
                    status.state,
                    ServerState::Failed { .. } | ServerState::Invalid { .. }
                )
            {
                failed = true;
                self.explain(&status);
            }
        }
        if self.json {
            let items = serde_json::to_value(&items).map_err(Error::internal)?;
            self.print_json(&items);
        } else if !items.is_empty() {
            self.ui.out(&self.item_table(kind, several, &items));
        } else if !failed {
            self.ui.line(&format!("no {}", kind.list().words()));
        }
        Ok(if failed && items.is_empty() {
            Exit::Failure
        } else {
            Exit::Success
        })
    }

    fn item_table(&self, kind: CatalogKind, several: bool, items: &[CatalogItem]) -> String {
        let id = match kind {
            CatalogKind::Tool | CatalogKind::Prompt => "name",
            CatalogKind::Resource => "uri",
            CatalogKind::ResourceTemplate => "template",
        };
        let mut headers = vec![id, "description"];
        match kind {
            CatalogKind::Resource => headers.insert(1, "type"),
            CatalogKind::Prompt => headers.insert(1, "arguments"),
            CatalogKind::Tool | CatalogKind::ResourceTemplate => {}
        }
        if several {
            headers.insert(0, "server");
        }
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| {
                let mut row = vec![item.id().to_owned(), summary(item)];
                match kind {
                    CatalogKind::Resource => {
                        row.insert(1, item.mime_type.clone().unwrap_or_default());
                    }
                    CatalogKind::Prompt => {
                        let arguments = item.arguments.as_deref().unwrap_or_default();
                        row.insert(1, prompt::starred(arguments));
                    }
                    CatalogKind::Tool | CatalogKind::ResourceTemplate => {}
                }
                if several {
                    row.insert(0, item.server.to_string());
                }
                row.iter().map(|cell| text::sanitize_line(cell)).collect()
            })
            .collect();
        self.ui.table(&headers, &rows)
    }

    async fn ask(
        &self,
        server: &Arc<ConnectedServer>,
        verb: &Verb,
        stdin: Option<Map<String, Value>>,
    ) -> Result<Exit> {
        let (runtime, name) = (self.runtime(vec![Arc::clone(server)]), server.name());
        let cx = self.context();
        match verb {
            Verb::Search { query, top_k } => {
                let request = SearchRequest {
                    query: query.clone(),
                    top_k: usize::from(*top_k),
                };
                let output = runtime.search(name, request, &cx).await?;
                Ok(self.show(&output, search_text))
            }
            Verb::Describe { id, kind } => {
                let request = DescribeRequest {
                    id: id.clone(),
                    kind: catalog_kind(*kind),
                };
                let output = runtime.describe(name, request, &cx).await?;
                Ok(self.show(&output, pretty))
            }
            Verb::Call { tool, arguments } => {
                let request = InvokeRequest {
                    tool: tool.clone(),
                    arguments: arguments.clone().or(stdin).unwrap_or_default(),
                };
                let calling = Activity::Calling(tool.clone());
                self.ui.notice(Notice::Activity(Some(calling)));
                let output = runtime.invoke(name, request, &cx).await;
                self.ui.notice(Notice::Activity(None));
                Ok(self.show(&output?, result_text))
            }
            Verb::Read {
                uri,
                arguments,
                pattern,
                offset,
                max_bytes,
            } => {
                let request = ReadRequest {
                    uri: uri.clone(),
                    arguments: arguments.clone(),
                    pattern: pattern.clone(),
                    offset: *offset,
                    max_bytes: *max_bytes,
                };
                let output = runtime.read(name, request, &cx).await?;
                let exit = self.show(&output, read_text);
                if !self.json {
                    self.paging(&output.value);
                }
                Ok(exit)
            }
            Verb::ReadRaw {
                uri,
                arguments,
                item,
            } => {
                self.read_raw(&runtime, name, uri, arguments.as_ref(), *item)
                    .await
            }
            Verb::Prompt { name, words } => self.prompt(&runtime, server.name(), name, words).await,
            Verb::Ping => {
                let start = Instant::now();
                server.ping(&cx).await?;
                let elapsed = start.elapsed();
                if self.json {
                    let ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
                    self.print_json(&json!({ "server": name.as_str(), "ok": true, "ms": ms }));
                } else {
                    self.ui
                        .out(&format!("`{name}` answered in {elapsed:.1?}\n"));
                }
                Ok(Exit::Success)
            }
        }
    }

    /// Prints a prompt as it would be asked, and asks nobody (`P-08`).
    async fn prompt(
        &self,
        runtime: &McpRuntime,
        server: &ServerName,
        name: &str,
        words: &[String],
    ) -> Result<Exit> {
        let cx = self.context();
        let declared = runtime.declared_prompt(server, name, &cx).await;
        let declared = declared.map_err(|error| {
            Error::from(error).hint(format!("`coyote mcp prompts {server}` lists its prompts"))
        })?;
        let declared = declared.arguments.unwrap_or_default();
        let wrong = |error: ArgumentError| Error::user(error).hint(prompt::takes(&declared));
        let given = prompt::pairs(words).map_err(wrong)?;
        prompt::check_declared(&declared, &given).map_err(wrong)?;
        prompt::check_required(&declared, &given).map_err(wrong)?;
        let answer = runtime.get_prompt(server, name, &given, &cx).await?;
        if self.json {
            self.print_json(&answer.raw);
            return Ok(Exit::Success);
        }
        let mut shown = answer.block?.text;
        if self.ui.stdout_is_terminal() {
            shown.push('\n');
        }
        self.ui.out(&shown);
        Ok(Exit::Success)
    }

    /// Prints an answer; one that is an error makes the process fail (`H-06`).
    fn show(&self, output: &ToolOutput, for_people: impl Fn(&Value) -> String) -> Exit {
        if self.json {
            self.print_json(&output.value);
        } else {
            let mut shown = for_people(&output.value);
            if self.ui.stdout_is_terminal() && !shown.is_empty() && !shown.ends_with('\n') {
                shown.push('\n');
            }
            self.ui.out(&shown);
        }
        if output.is_error {
            Exit::Failure
        } else {
            Exit::Success
        }
    }

    /// Says, beside the text, what the model would learn about pages.
    fn paging(&self, value: &Value) {
        let several = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        for item in several {
            if let Some(note) = item["note"].as_str() {
                self.ui.dim(note);
            }
            if let (Some(next), Some(total)) =
                (item["next_offset"].as_u64(), item["total_bytes"].as_u64())
            {
                self.ui.dim(&format!(
                    "{} of {total} bytes; go on with `--offset {next}`",
                    item["text"].as_str().map_or(0, str::len)
                ));
            }
            if let Some(audience) = item["audience"].as_array() {
                let audience: Vec<_> = audience.iter().filter_map(Value::as_str).collect();
                self.ui.dim(&format!("for: {}", audience.join(", ")));
            }
        }
    }

    /// The content's own bytes, nothing added and nothing removed.
    async fn read_raw(
        &self,
        runtime: &McpRuntime,
        server: &ServerName,
        uri: &str,
        arguments: Option<&Map<String, Value>>,
        item: Option<usize>,
    ) -> Result<Exit> {
        if self.ui.stdout_is_terminal() {
            return Err(
                Error::user("`--raw` writes bytes as they are, and stdout is a terminal")
                    .hint("append `> FILE` to write them to a file"),
            );
        }
        let contents = runtime
            .read_bytes(server, uri, arguments, &self.context())
            .await?;
        let wanted = match (item, contents.len()) {
            (Some(item), _) => item,
            (None, 1) => 1,
            (None, 0) => return Err(Error::mcp(format!("`{uri}` is empty"))),
            (None, count) => {
                let list: Vec<_> = contents
                    .iter()
                    .enumerate()
                    .map(|(index, content)| format!("{} {}", index + 1, content.uri))
                    .collect();
                return Err(Error::user(format!("`{uri}` has {count} contents"))
                    .hint(format!("add `--item N`: {}", list.join(", "))));
            }
        };
        let content = wanted
            .checked_sub(1)
            .and_then(|index| contents.get(index))
            .ok_or_else(|| {
                Error::user(format!(
                    "`{uri}` has no content {wanted}: it has {}",
                    contents.len()
                ))
            })?;
        self.ui.out_bytes(&content.bytes);
        Ok(Exit::Success)
    }

    /// A tool's arguments as a JSON object on stdin, when something is piped in.
    async fn arguments_from_stdin(&self) -> Result<Map<String, Value>> {
        if self.stdin_is_terminal {
            return Ok(Map::new());
        }
        let read = tokio::task::spawn_blocking(|| {
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .take(ARGUMENTS_MAX)
                .read_to_end(&mut bytes)
                .map(|_| bytes)
        });
        let bytes = unless_aborted(&self.abort, read)
            .await
            .map_err(|_| McpError::Cancelled)?
            .map_err(Error::internal)??;
        parse_arguments(&bytes)
    }
}

fn parse_arguments(bytes: &[u8]) -> Result<Map<String, Value>> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(Error::user("the arguments on stdin are no JSON object")),
        Err(error) => Err(Error::user(format!(
            "the arguments on stdin are no JSON: {error}"
        ))),
    }
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
