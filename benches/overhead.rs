//! What the policy layer costs over a bare protocol client, per call, and what a large read leaves in memory.
//!
//! Prints figures and asserts nothing:
//!
//! ```text
//! cargo build --release --locked --example fake_mcp && cargo bench --locked --bench overhead
//! ```
//!
//! The bare client is rmcp with the smallest transport there can be, typed results and no policy.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a script that prints figures"
)]

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use coyote::mcp::runtime::{InvokeRequest, McpRuntime, ReadRequest};
use coyote::mcp::spec::parse;
use coyote::mcp::spill::SpillDir;
use coyote::mcp::{CallContext, McpFactory, McpRegistry, Origin, ServerName};
use coyote::utils::AbortToken;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Map, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const WARM_UP: usize = 200;
const CALLS: usize = 3000;

/// Lines of JSON over a child's pipes.
struct Pipes {
    _child: Child,
    stdin: std::sync::Arc<tokio::sync::Mutex<ChildStdin>>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Transport<RoleClient> for Pipes {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let stdin = std::sync::Arc::clone(&self.stdin);
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            stdin.write_all(&line).await?;
            stdin.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let line = self.stdout.next_line().await.ok()??;
        serde_json::from_str(&line).ok()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

fn fake() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_coyote"))
        .with_file_name("examples")
        .join(format!("fake_mcp{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "build it first: cargo build --release --example fake_mcp"
    );
    path
}

async fn bare() -> Duration {
    let mut child = Command::new(fake())
        .arg("full")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pipes = Pipes {
        stdin: std::sync::Arc::new(tokio::sync::Mutex::new(child.stdin.take().unwrap())),
        stdout: BufReader::new(child.stdout.take().unwrap()).lines(),
        _child: child,
    };
    let mut config = ClientConfig::default();
    config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
    config.client_info = Implementation::new("bare", "0");
    let client = config.serve(pipes).await.unwrap();
    let arguments = Map::from_iter([("n".to_owned(), json!(1))]);
    let call =
        || client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments.clone()));
    for _ in 0..WARM_UP {
        call().await.unwrap();
    }
    let start = Instant::now();
    for _ in 0..CALLS {
        call().await.unwrap();
    }
    start.elapsed() / u32::try_from(CALLS).unwrap()
}

struct Ours {
    runtime: McpRuntime,
    name: ServerName,
    registry: std::sync::Arc<McpRegistry>,
}

async fn ours(cache: &std::path::Path) -> Ours {
    let text =
        json!({ "mcpServers": { "s": { "command": fake(), "args": ["full"] } } }).to_string();
    let config = parse(&text, "mcp.json".as_ref(), Origin::User, &|_| None).unwrap();
    let name = ServerName::new("s").unwrap();
    let registry = McpRegistry::new(config, McpFactory::new());
    registry.restart(&name).await.unwrap();
    let connected = registry.connected(std::slice::from_ref(&name));
    let runtime = McpRuntime::new(connected, SpillDir::new(cache.to_path_buf()));
    Ours {
        runtime,
        name,
        registry,
    }
}

impl Ours {
    async fn call(&self) {
        let request = InvokeRequest {
            tool: "echo".into(),
            arguments: Map::from_iter([("n".to_owned(), json!(1))]),
        };
        let cx = CallContext::new(AbortToken::new());
        self.runtime.invoke(&self.name, request, &cx).await.unwrap();
    }

    async fn read(&self, uri: String) {
        let request = ReadRequest {
            uri,
            arguments: None,
            pattern: None,
            offset: 0,
            max_bytes: None,
        };
        let cx = CallContext::new(AbortToken::new());
        self.runtime.read(&self.name, request, &cx).await.unwrap();
    }
}

/// A line of `/proc/self/status` in MiB; 0 where there is none.
fn memory(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|it| it.strip_prefix(line));
    let kib = found.and_then(|it| it.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let cache = tempfile::tempdir().unwrap();
    let bare = bare().await;
    let ours = ours(cache.path()).await;
    for _ in 0..WARM_UP {
        ours.call().await;
    }
    let start = Instant::now();
    for _ in 0..CALLS {
        ours.call().await;
    }
    let each = start.elapsed() / u32::try_from(CALLS).unwrap();
    println!("a call through a bare rmcp client   {bare:>10.1?}");
    println!("a call through the policy layer     {each:>10.1?}");
    println!(
        "difference                          {:>10.1?}",
        each.saturating_sub(bare)
    );

    ours.read("doc://notes".to_owned()).await;
    let before = memory("VmRSS:");
    ours.read(format!("blob://size/{}", 30 << 20)).await;
    let after = memory("VmRSS:");
    for _ in 0..9 {
        ours.read(format!("blob://size/{}", 30 << 20)).await;
    }
    println!("resident before a read of 30 MiB    {before:>6} MiB");
    println!("resident after it                   {after:>6} MiB");
    println!(
        "resident after ten of them          {:>6} MiB",
        memory("VmRSS:")
    );
    println!(
        "peak                                {:>6} MiB",
        memory("VmHWM:")
    );
    ours.registry.close_all().await;
}
