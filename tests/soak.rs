//! Ten thousand calls and reads of servers over one session: no answer is lost or comes to the wrong question, memory
//! stays flat, and no process and no descriptor is left behind. Alone in its process, because it measures that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "a failing test is the point of a panic; the support code is shared by many tests"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use coyote::mcp::runtime::{InvokeRequest, McpRuntime, ReadRequest};
use coyote::mcp::spec::parse;
use coyote::mcp::spill::SpillDir;
use coyote::mcp::{CallContext, McpFactory, McpRegistry, Origin, ServerName};
use coyote::utils::AbortToken;
use serde_json::{Map, Value, json};

use support::served::{Served, Wire};

/// Requests that are under way at once.
const AT_ONCE: usize = 8;

struct Session {
    registry: Arc<McpRegistry>,
    name: ServerName,
    spill: SpillDir,
    restarts: usize,
}

impl Session {
    async fn new(served: &Served) -> Self {
        let path = served.home.config_dir().join("mcp.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let config = parse(&text, &path, Origin::User, &|_| None).unwrap();
        let this = Self {
            registry: McpRegistry::new(config, McpFactory::new()),
            name: ServerName::new("s").unwrap(),
            spill: SpillDir::new(served.home.cache_dir().join("mcp-resources")),
            restarts: 0,
        };
        this.registry.restart(&this.name).await.unwrap();
        this
    }

    /// What a person does when a server is left alone: `.mcp restart`.
    async fn runtime(&mut self) -> McpRuntime {
        let name = std::slice::from_ref(&self.name);
        if self.registry.connected(name).is_empty() {
            self.restarts += 1;
            self.registry.restart(&self.name).await.unwrap();
        }
        McpRuntime::new(self.registry.connected(name), self.spill.clone())
    }

    /// Asks question `n`; whether it was answered. A wrong answer fails the test.
    async fn ask(&self, runtime: &McpRuntime, n: usize) -> bool {
        let cx = CallContext::new(AbortToken::new());
        if n.is_multiple_of(2) {
            let request = InvokeRequest {
                tool: "echo".into(),
                arguments: Map::from_iter([("n".to_owned(), json!(n))]),
            };
            let Ok(output) = runtime.invoke(&self.name, request, &cx).await else {
                return false;
            };
            let text = output.value["content"][0]["text"].as_str().unwrap();
            assert_eq!(
                serde_json::from_str::<Value>(text).unwrap(),
                json!({ "n": n })
            );
        } else {
            let uri = format!("x://e/{n}");
            let request = ReadRequest {
                uri: uri.clone(),
                arguments: None,
                pattern: None,
                offset: 0,
                max_bytes: None,
            };
            let Ok(output) = runtime.read(&self.name, request, &cx).await else {
                return false;
            };
            assert_eq!(output.value["text"], uri);
        }
        true
    }

    /// Asks the questions `numbers`, a few at once and each until it is answered.
    async fn ask_all(&mut self, numbers: std::ops::Range<usize>) {
        let mut waiting: Vec<usize> = numbers.rev().collect();
        let mut failures = 0;
        while !waiting.is_empty() {
            let batch = waiting.split_off(waiting.len().saturating_sub(AT_ONCE));
            let runtime = self.runtime().await;
            let asked = batch.iter().map(|n| self.ask(&runtime, *n));
            let answered = futures::future::join_all(asked).await;
            for (n, answered) in batch.into_iter().zip(answered) {
                if !answered {
                    failures += 1;
                    waiting.push(n);
                }
            }
            assert!(failures < 1000, "the server does not come back");
        }
    }
}

/// Resident memory in KiB.
#[cfg(target_os = "linux")]
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Without `/proc` the answers are checked and the rest is not.
#[cfg(not(target_os = "linux"))]
fn memory() -> usize {
    0
}

#[cfg(not(target_os = "linux"))]
fn descriptors() -> usize {
    0
}

/// Whether a process with that id runs.
#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).unwrap());
    nix::sys::signal::kill(pid, None).is_ok()
}

#[cfg(not(unix))]
fn is_alive(_: u32) -> bool {
    false
}

fn soak(scenario: &str, wire: Wire, questions: usize) -> (Served, usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let served = Served::new(scenario, wire);
    let restarts = runtime.block_on(async {
        let mut session = Session::new(&served).await;
        // What is allocated once and what the allocator keeps settles first.
        let settled = questions / 5;
        session.ask_all(0..settled).await;
        let (memory_before, descriptors_before) = (memory(), descriptors());
        session.ask_all(settled..questions).await;
        let memory_after = memory();
        assert!(
            memory_after * 5 <= memory_before * 6,
            "{memory_before} KiB grew to {memory_after} KiB"
        );
        support::eventually("no descriptor is left", || {
            (descriptors() <= descriptors_before + 2).then_some(())
        });
        session.registry.close_all().await;
        session.restarts
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    (served, restarts)
}

#[test]
fn ten_thousand_questions_to_a_server_that_restarts_now_and_then() {
    let (served, restarts) = soak("leaves", Wire::Stdio, 10_000);
    let pids = served.pids();
    // It leaves at every 401st request.
    assert!(
        pids.len() >= 20 && restarts >= 10,
        "{} processes, {restarts} restarts",
        pids.len()
    );
    support::eventually("no process is left", || {
        (!pids.iter().any(|pid| is_alive(*pid))).then_some(())
    });
}

#[test]
fn two_thousand_questions_over_http() {
    for wire in ["plain", "stream"] {
        let (served, restarts) = soak("full", Wire::Http(wire), 2_000);
        assert_eq!(restarts, 0);
        let begun = served
            .methods()
            .iter()
            .filter(|it| *it == "initialize")
            .count();
        assert_eq!(begun, 1, "one session");
    }
}
