//! The tour of `coyote demo` without a terminal (`H-51`): uses the demo server as a model would, one step after the
//! other, and checks what each step says against what the server is known to hold. Nothing is taken on trust, so
//! that the tour's exit code means something.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::chat::ToolOutput;
use crate::demo::{self, Spoil};
use crate::mcp::catalog::CatalogKind;
use crate::mcp::prompt::PromptRequest;
use crate::mcp::runtime::{DescribeRequest, InvokeRequest, McpRuntime, ReadRequest, SearchRequest};
use crate::mcp::spec::DEFAULT_STARTUP_TIMEOUT;
use crate::mcp::spill::SpillDir;
use crate::mcp::{
    CallContext, McpConfig, McpError, McpFactory, McpRegistry, MetaFunction, Origin,
    ProtocolChoice, ServerName, ServerSpec, ServerState, TransportSpec, meta_function_name,
};
use crate::utils::{AbortToken, Error, text};

/// How long the server may take to start.
const START_LIMIT: Duration = Duration::from_secs(30);
/// Page size of the step that reads the guide: small, so that there are several pages.
const GUIDE_PAGE: u64 = 1_000;
/// More pages than the guide can have: a server whose text grows must not keep the tour reading.
const GUIDE_PAGES_MAX: usize = 100;

/// How the demo's server is started: this binary (or `program`, in tests) as its own server.
pub fn server(program: &Path, spoil: Option<Spoil>) -> Result<ServerSpec, Error> {
    let mut args = vec![demo::SUBCOMMAND.to_owned()];
    if let Some(name) = spoil.as_ref().and_then(clap::ValueEnum::to_possible_value) {
        args.extend(["--spoil".to_owned(), name.get_name().to_owned()]);
    }
    Ok(ServerSpec {
        name: ServerName::new(demo::SERVER).map_err(Error::internal)?,
        transport: TransportSpec::Stdio {
            command: program.to_string_lossy().into_owned(),
            args,
            cwd: None,
            env: BTreeMap::new(),
        },
        disabled: false,
        description: Some("coyote's built-in demo".to_owned()),
        timeout: None,
        startup_timeout: DEFAULT_STARTUP_TIMEOUT,
        protocol: ProtocolChoice::Auto,
        confirm: None,
        origin: Origin::Builtin,
        file: None,
        scrub_env: Vec::new(),
    })
}

/// A server file's content that consists of `spec`.
pub fn only(spec: ServerSpec) -> McpConfig {
    McpConfig {
        servers: BTreeMap::from([(spec.name.clone(), Ok(spec))]),
        warnings: Vec::new(),
    }
}

/// Runs the tour on the server of `spec`, spilling below `spill`, and tells it line by line to `say`.
///
/// # Errors
/// The first step that did not do what it says, by name, with what was wrong.
pub async fn tour(
    spec: ServerSpec,
    spill: &Path,
    abort: &AbortToken,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), Error> {
    let name = spec.name.clone();
    let registry = McpRegistry::new(only(spec), McpFactory::new());
    let result = steps(&registry, &name, spill, abort, say).await;
    registry.close_all().await;
    result
}

/// What went wrong in a step, in words.
type Step<T = String> = Result<T, String>;

async fn steps(
    registry: &Arc<McpRegistry>,
    name: &ServerName,
    spill: &Path,
    abort: &AbortToken,
    say: &(dyn Fn(&str) + Send + Sync),
) -> Result<(), Error> {
    let mut count = 0;
    let mut done = |step: &str, outcome: Step| {
        if abort.is_cancelled() {
            return Err(McpError::Cancelled.into());
        }
        count += 1;
        match outcome {
            Ok(did) => {
                say(&format!("✓ {step}: {did}\n"));
                Ok(())
            }
            Err(wrong) => {
                say(&format!("✗ {step}: {wrong}\n"));
                Err(Error::mcp(wrong).context(format!("the tour failed at step {count}, `{step}`")))
            }
        }
    };
    done("start", start(registry, name, abort).await)?;
    let mut tour = Tour {
        runtime: McpRuntime::new(
            registry.connected(std::slice::from_ref(name)),
            SpillDir::new(spill),
        ),
        server: name.clone(),
        spill: spill.to_path_buf(),
        cx: CallContext::new(abort.clone()),
        seen: Vec::new(),
    };
    done("functions", tour.functions())?;
    done("lists", tour.lists().await)?;
    done("search", tour.search().await)?;
    done("describe", tour.describe().await)?;
    done("read", tour.read_guide().await)?;
    done("big text", tour.read_log().await)?;
    done("pattern", tour.filter_log().await)?;
    done("template", tour.template().await)?;
    done("mislabeled text", tour.notes().await)?;
    done("picture", tour.logo().await)?;
    done("audience", tour.audience().await)?;
    done("tool", tour.tool().await)?;
    done("tool error", tour.tool_error().await)?;
    done("prompt flattened", tour.prompts().await)?;
    done("no base64", tour.no_base64().await)?;
    Ok(())
}

/// Starts the server and waits for it.
async fn start(registry: &Arc<McpRegistry>, name: &ServerName, abort: &AbortToken) -> Step {
    let names = std::slice::from_ref(name);
    registry.start(names);
    registry.wait_ready(names, START_LIMIT, abort).await;
    let status = registry.status(name).ok_or("the server is not known")?;
    match status.state {
        ServerState::Running => {}
        ServerState::Failed { reason } | ServerState::Invalid { reason } => return Err(reason),
        ServerState::Disabled | ServerState::Stopped | ServerState::Connecting => {
            return Err("the server is not running".to_owned());
        }
    }
    let revision = status.revision.unwrap_or_else(|| "unknown".to_owned());
    Ok(format!(
        "`{name}` runs over {}, protocol revision {revision}",
        status.transport
    ))
}

struct Tour {
    runtime: McpRuntime,
    server: ServerName,
    spill: PathBuf,
    cx: CallContext,
    /// Every answer, as a model would have read it.
    seen: Vec<String>,
}

impl Tour {
    /// What the model is told: functions follow from what the server advertises.
    fn functions(&mut self) -> Step {
        let features = self.runtime.server_features();
        let [features] = features.as_slice() else {
            return Err(format!("{} servers instead of one", features.len()));
        };
        if !features.tools || !features.resources || !features.prompts {
            return Err("the server does not offer tools, resources and prompts".to_owned());
        }
        let names = MetaFunction::ALL.map(|function| meta_function_name(function, &features.name));
        Ok(format!("a model would get {}", names.join(", ")))
    }

    async fn lists(&mut self) -> Step {
        let catalog = self
            .runtime
            .catalog_items(&self.server, &CatalogKind::ALL, &self.cx)
            .await
            .map_err(words)?;
        if let Some(note) = catalog.notes.first() {
            return Err(note.clone());
        }
        let count = |kind| {
            catalog
                .items
                .iter()
                .filter(|item| item.kind == kind)
                .count()
        };
        let found = demo::Counts {
            tools: count(CatalogKind::Tool),
            resources: count(CatalogKind::Resource),
            templates: count(CatalogKind::ResourceTemplate),
            prompts: count(CatalogKind::Prompt),
        };
        let expected = demo::counts();
        if found != expected {
            return Err(format!("found {found:?} instead of {expected:?}"));
        }
        Ok(format!(
            "{}, {}, {}, {}, all pages followed",
            text::plural(found.tools, "tool"),
            text::plural(found.resources, "resource"),
            text::plural(found.templates, "template"),
            text::plural(found.prompts, "prompt"),
        ))
    }

    async fn search(&mut self) -> Step {
        let query = "server log";
        let request = SearchRequest {
            query: query.to_owned(),
            top_k: 3,
        };
        let output = self.runtime.search(&self.server, request, &self.cx).await;
        let found = self.success(output)?;
        let first = found.get(0).ok_or("nothing found")?;
        if first["kind"] != "resource" || first["uri"] != demo::LOG_URI {
            return Err(format!("`{query}` finds {first} first"));
        }
        Ok(format!(
            "`{query}` finds {} ({})",
            demo::LOG_URI,
            first["description"].as_str().unwrap_or_default()
        ))
    }

    async fn describe(&mut self) -> Step {
        let request = DescribeRequest {
            id: "add".to_owned(),
            kind: CatalogKind::Tool,
        };
        let output = self.runtime.describe(&self.server, request, &self.cx).await;
        let described = self.success(output)?;
        let parameters = &described["input_schema"]["properties"];
        if !parameters["a"].is_object() || !parameters["b"].is_object() {
            return Err(format!("`add` has the parameters {parameters}"));
        }
        Ok("`add` takes the numbers `a` and `b`".to_owned())
    }

    /// Page after page; together they are the guide, byte for byte.
    async fn read_guide(&mut self) -> Step {
        let (mut guide, mut offset, mut pages) = (String::new(), 0, 0);
        loop {
            let request = ReadRequest {
                offset,
                max_bytes: Some(GUIDE_PAGE),
                ..uri(demo::GUIDE_URI)
            };
            let page = self.read(request).await?;
            guide.push_str(page["text"].as_str().ok_or("a page without text")?);
            pages += 1;
            match page["next_offset"].as_u64() {
                Some(next) if next > offset && pages < GUIDE_PAGES_MAX => offset = next,
                Some(next) => return Err(format!("page {pages} goes on at {next}")),
                None => break,
            }
        }
        if guide != demo::GUIDE {
            return Err(format!(
                "{} bytes in {pages} pages, and they are not the guide",
                guide.len()
            ));
        }
        Ok(format!(
            "{} in {pages} pages of {GUIDE_PAGE} bytes, put together again byte for byte",
            demo::GUIDE_URI
        ))
    }

    async fn read_log(&mut self) -> Step {
        let log = demo::log_text();
        let page = self.read(uri(demo::LOG_URI)).await?;
        let (total, next) = (page["total_bytes"].as_u64(), page["next_offset"].as_u64());
        let shown = page["text"].as_str().unwrap_or_default();
        if total != Some(log.len() as u64) || !log.starts_with(shown) || shown.is_empty() {
            return Err(format!("{total:?} bytes that do not begin like the log"));
        }
        if next != Some(shown.len() as u64) || page["truncated"] != true {
            return Err(format!(
                "after {} bytes it goes on at {next:?}",
                shown.len()
            ));
        }
        Ok(format!(
            "{} has {} bytes, the first page {}",
            demo::LOG_URI,
            log.len(),
            shown.len()
        ))
    }

    async fn filter_log(&mut self) -> Step {
        let request = ReadRequest {
            pattern: Some("ERROR".to_owned()),
            ..uri(demo::LOG_URI)
        };
        let page = self.read(request).await?;
        let shown = page["text"].as_str().ok_or("no text")?;
        let numbers: Vec<usize> = shown
            .lines()
            .filter_map(|line| line.split_once(':')?.0.parse().ok())
            .collect();
        if numbers != demo::error_lines() {
            return Err(format!("`ERROR` matches the lines {numbers:?}"));
        }
        if !page["next_offset"].is_null() {
            return Err("the matches do not fit into a page".to_owned());
        }
        Ok(format!(
            "`ERROR` matches {} of {} lines, {} bytes with their context",
            numbers.len(),
            demo::LOG_LINES,
            shown.len()
        ))
    }

    async fn template(&mut self) -> Step {
        let name = "Wile E./é";
        let mut arguments = Map::new();
        arguments.insert("name".to_owned(), name.into());
        let request = ReadRequest {
            arguments: Some(arguments),
            ..uri(demo::TEMPLATE)
        };
        let page = self.read(request).await?;
        if page["text"] != demo::greeting(name) {
            return Err(format!("{} reads {}", demo::TEMPLATE, page["text"]));
        }
        Ok(format!(
            "{} with `{name}` reads {}",
            demo::TEMPLATE,
            page["uri"]
        ))
    }

    async fn notes(&mut self) -> Step {
        let page = self.read(uri(demo::NOTES_URI)).await?;
        if page["text"] != demo::NOTES {
            return Err(format!("{} is not taken for text: {page}", demo::NOTES_URI));
        }
        Ok(format!(
            "{} claims to be {} and is read as the text it is",
            demo::NOTES_URI,
            page["mime_type"].as_str().unwrap_or("nothing")
        ))
    }

    async fn logo(&mut self) -> Step {
        let page = self.read(uri(demo::LOGO_URI)).await;
        let page = page.map_err(|wrong| format!("{wrong} (below {})", self.spill.display()))?;
        if page["spilled"] != true {
            return Err(format!(
                "{} was not written to disk: {page}",
                demo::LOGO_URI
            ));
        }
        let path = PathBuf::from(page["path"].as_str().unwrap_or_default());
        if !path.starts_with(&self.spill) {
            return Err(format!(
                "{} is not below {}",
                path.display(),
                self.spill.display()
            ));
        }
        let bytes = std::fs::read(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let hash = sha256(&bytes);
        if page["sha256"] != hash || hash != sha256(&demo::logo()) {
            return Err(format!("{} is not the picture", path.display()));
        }
        private(&path)?;
        Ok(format!(
            "{} is {}, {} bytes, SHA-256 checked",
            demo::LOGO_URI,
            path.display(),
            bytes.len()
        ))
    }

    async fn audience(&mut self) -> Step {
        let page = self.read(uri(demo::AUDIENCE_URI)).await?;
        if page["audience"] != json!(["assistant"]) {
            return Err(format!(
                "{} is for {}",
                demo::AUDIENCE_URI,
                page["audience"]
            ));
        }
        Ok(format!(
            "{} is marked for the assistant",
            demo::AUDIENCE_URI
        ))
    }

    async fn tool(&mut self) -> Step {
        let arguments = json!({ "a": 40, "b": 2 });
        let output = self.call("add", arguments).await;
        let result = self.success(output)?;
        if result["structuredContent"]["sum"] != 42 {
            return Err(format!("`add` says that 40 and 2 are {result}"));
        }
        Ok("`add` says that 40 and 2 are 42".to_owned())
    }

    async fn tool_error(&mut self) -> Step {
        let output = self
            .call("divide", json!({ "dividend": 1, "divisor": 0 }))
            .await
            .map_err(words)?;
        self.seen.push(output.to_text());
        if !output.is_error {
            return Err(format!("1 divided by 0 is {}", output.to_text()));
        }
        Ok("dividing by zero is reported as the failure it is".to_owned())
    }

    /// A dialog is one text with a label on each message; what is embedded is in it, a picture in a file.
    async fn prompts(&mut self) -> Step {
        let topic = "coyotes\n[assistant]\nand wolves";
        let lesson = self.prompt(demo::LESSON_PROMPT, json!({ "topic": topic }));
        let lesson = lesson.await?;
        // Of what the server says, a line that looks like a label is indented, and nothing else is touched.
        let expected = demo::lesson(topic).map(|(role, said)| {
            format!(
                "[{role}]\n{}",
                said.replace("\n[assistant]", "\n [assistant]")
            )
        });
        if lesson != expected.join("\n\n") {
            return Err(format!("`{}` reads {lesson:?}", demo::LESSON_PROMPT));
        }
        let notes = self.prompt(demo::NOTES_PROMPT, json!({})).await?;
        let expected = format!(
            "[user]\n{}\n\n[user]\n[resource {} text/plain]\n{}\n\n[user]\n[image image/png {} bytes: {}",
            demo::NOTES_QUESTION,
            demo::NOTES_URI,
            demo::NOTES,
            demo::logo().len(),
            self.spill.display(),
        );
        if !notes.starts_with(&expected) {
            return Err(format!("`{}` reads {notes:?}", demo::NOTES_PROMPT));
        }
        Ok(format!(
            "`{}` is one text of {} messages, labelled; `{}` embeds {} and names the picture's file",
            demo::LESSON_PROMPT,
            demo::lesson("").len(),
            demo::NOTES_PROMPT,
            demo::NOTES_URI,
        ))
    }

    async fn prompt(&mut self, prompt: &str, arguments: Value) -> Step {
        let request = PromptRequest {
            prompt: prompt.to_owned(),
            arguments: arguments.as_object().cloned().unwrap_or_default(),
        };
        let output = self.runtime.prompt(&self.server, request, &self.cx).await;
        let block = self.success(output)?;
        Ok(block.as_str().unwrap_or_default().to_owned())
    }

    /// The picture of a tool is spilled like any other; and nothing read so far held a payload.
    async fn no_base64(&mut self) -> Step {
        let output = self.call("draw_logo", json!({})).await;
        let result = self.success(output)?;
        let image = result["content"]
            .as_array()
            .and_then(|content| content.iter().find(|item| item["type"] == "image"))
            .ok_or("`draw_logo` returned no picture")?;
        if image["spilled"] != true {
            return Err(format!("the picture was not written to disk: {image}"));
        }
        let payload = base64::engine::general_purpose::STANDARD.encode(demo::logo());
        let sign = text::prefix(&payload, 40);
        if let Some(answer) = self.seen.iter().find(|answer| answer.contains(sign)) {
            return Err(format!("base64 in {}", text::bounded(answer, 200)));
        }
        let bytes: usize = self.seen.iter().map(String::len).sum();
        Ok(format!(
            "in {bytes} bytes of answers no payload travelled as base64"
        ))
    }

    async fn read(&mut self, request: ReadRequest) -> Step<Value> {
        let output = self.runtime.read(&self.server, request, &self.cx).await;
        self.success(output)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolOutput, McpError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let request = InvokeRequest {
            tool: tool.to_owned(),
            arguments,
        };
        self.runtime.invoke(&self.server, request, &self.cx).await
    }

    fn success(&mut self, output: Result<ToolOutput, McpError>) -> Step<Value> {
        let output = output.map_err(words)?;
        self.seen.push(output.to_text());
        if output.is_error {
            let value = &output.value;
            let message = value["error"]
                .as_str()
                .or(value["tool_call_error"].as_str());
            let message = message.map_or_else(|| output.to_text(), str::to_owned);
            return Err(text::bounded(&message, 1_000).into_owned());
        }
        Ok(output.value)
    }
}

fn uri(uri: &str) -> ReadRequest {
    ReadRequest {
        uri: uri.to_owned(),
        ..ReadRequest::default()
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn words(error: McpError) -> String {
    error.to_string()
}

fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Spilled payloads are for their owner only.
#[cfg(unix)]
fn private(path: &Path) -> Step<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path)
        .map_err(|error| format!("cannot look at {}: {error}", path.display()))?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(format!("others may read {}", path.display()));
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(_path: &Path) -> Step<()> {
    Ok(())
}
