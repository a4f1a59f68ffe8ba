//! What tests of this and higher layers need to stand on a scripted server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{
    CallContext, ConnectedServer, McpError, Origin, ProtocolChoice, ServerName, ServerSpec,
    TransportSpec,
};
use crate::utils::AbortToken;

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The scripted server's program.
pub(crate) fn fake_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().unwrap().parent().unwrap();
    let name = format!("fake_mcp{}", std::env::consts::EXE_SUFFIX);
    let program = profile.join("examples").join(name);
    assert!(
        program.is_file(),
        "no {}; build it with: cargo test",
        program.display()
    );
    program
}

/// An entry that starts the scripted server.
pub(crate) fn fake(name: &str, scenario: &str) -> ServerSpec {
    program(name, &fake_program().to_string_lossy(), &[scenario])
}

/// An entry that starts any program.
pub(crate) fn program(name: &str, command: &str, args: &[&str]) -> ServerSpec {
    ServerSpec {
        name: server_name(name),
        transport: TransportSpec::Stdio {
            command: command.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            cwd: None,
            env: BTreeMap::new(),
        },
        disabled: false,
        description: None,
        timeout: None,
        startup_timeout: PATIENCE,
        protocol: ProtocolChoice::Auto,
        confirm: None,
        origin: Origin::User,
        file: None,
        scrub_env: Vec::new(),
    }
}

/// The entry with a variable set for the server.
pub(crate) fn with_env(mut spec: ServerSpec, name: &str, value: &str) -> ServerSpec {
    if let TransportSpec::Stdio { env, .. } = &mut spec.transport {
        env.insert(name.to_owned(), value.to_owned());
    }
    spec
}

pub(crate) fn server_name(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

/// A context that nobody cancels.
pub(crate) fn context() -> CallContext {
    CallContext::new(AbortToken::new())
}

/// Connects to the scripted server.
pub(crate) async fn connect(scenario: &str) -> Arc<ConnectedServer> {
    connect_to(&fake("fake", scenario)).await.unwrap()
}

pub(crate) async fn connect_to(spec: &ServerSpec) -> Result<Arc<ConnectedServer>, McpError> {
    ConnectedServer::connect(spec, &AbortToken::new())
        .await
        .map(Arc::new)
}

/// Calls a tool and returns the raw result.
pub(crate) async fn call(
    server: &ConnectedServer,
    tool: &str,
    arguments: Value,
) -> Result<Value, McpError> {
    call_with(server, tool, arguments, &context()).await
}

pub(crate) async fn call_with(
    server: &ConnectedServer,
    tool: &str,
    arguments: Value,
    cx: &CallContext,
) -> Result<Value, McpError> {
    let params = Map::from_iter([
        ("name".to_owned(), json!(tool)),
        ("arguments".to_owned(), arguments),
    ]);
    server.request("tools/call", params, cx).await
}

/// Waits until `done`, asking again and again, and fails when that does not come true.
pub(crate) async fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process with that id runs (and is not just waiting to be reaped).
#[cfg(target_os = "linux")]
pub(crate) fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with('Z') && !state.starts_with('X')
    })
}
