//! Many servers at once: one in trouble costs the others nothing.

use serde_json::json;

use super::*;
use crate::mcp::TransportSpec;
use crate::mcp::test_support::{PATIENCE, call, eventually, fake, program, server_name, with_env};

fn registry(specs: impl IntoIterator<Item = ServerSpec>) -> Arc<McpRegistry> {
    let servers = specs.into_iter().map(|spec| (spec.name.clone(), Ok(spec)));
    let config = McpConfig {
        servers: servers.collect(),
        warnings: Vec::new(),
    };
    McpRegistry::new(config, McpFactory::new())
}

fn names(names: &[&str]) -> Vec<ServerName> {
    names.iter().map(|name| server_name(name)).collect()
}

async fn ready(registry: &Arc<McpRegistry>, names: &[ServerName]) {
    registry.start(names);
    let late = registry
        .wait_ready(names, PATIENCE, &AbortToken::new())
        .await;
    assert_eq!(late, []);
}

fn state(registry: &McpRegistry, name: &str) -> ServerState {
    registry.status(&server_name(name)).unwrap().state
}

/// `M-13`, case 27.
#[tokio::test]
async fn servers_in_trouble_cost_the_others_nothing() {
    let registry = registry([
        fake("a", "full"),
        fake("b", "tools-only"),
        fake("hangs", "hang"),
        fake("exits", "exit3"),
        program("missing", "no-such-program-anywhere", &[]),
    ]);
    let all = registry.names();
    assert_eq!(state(&registry, "a"), ServerState::Stopped);
    registry.start(&all);
    assert_eq!(state(&registry, "a"), ServerState::Connecting);
    let wanted = names(&["a", "b", "exits", "missing"]);
    let late = registry
        .wait_ready(&wanted, PATIENCE, &AbortToken::new())
        .await;
    assert_eq!(late, []);
    assert_eq!(registry.still_connecting(&all), names(&["hangs"]));
    let connected = registry.connected(&all);
    assert_eq!(connected.len(), 2);
    call(&connected[0], "echo", json!({})).await.unwrap();
    let failed = |name: &str| match state(&registry, name) {
        ServerState::Failed { reason } => reason,
        other => panic!("{name}: {other:?}"),
    };
    assert!(failed("exits").contains("status 3"));
    assert!(failed("missing").contains("no-such-program-anywhere"));
    let status = registry.status(&server_name("exits")).unwrap();
    assert_eq!(status.stderr_tail, ["fatal: no database"]);
    let status = registry.status(&server_name("a")).unwrap();
    assert_eq!(status.state, ServerState::Running);
    assert_eq!(status.revision.as_deref(), Some("2025-11-25"));
    assert!(status.capabilities.unwrap().prompts);
    assert_eq!(status.transport, "stdio");
}

#[tokio::test]
async fn a_server_that_hangs_becomes_a_state_with_a_reason() {
    let mut spec = fake("hangs", "hang");
    spec.startup_timeout = Duration::from_millis(100);
    let registry = registry([spec]);
    ready(&registry, &names(&["hangs"])).await;
    let ServerState::Failed { reason } = state(&registry, "hangs") else {
        panic!("not failed");
    };
    assert!(reason.contains("0.1 s"), "{reason}");
}

#[tokio::test]
async fn waiting_is_bounded_and_can_be_cancelled() {
    let registry = registry([fake("hangs", "hang")]);
    let all = registry.names();
    registry.start(&all);
    let late = registry
        .wait_ready(&all, Duration::from_millis(50), &AbortToken::new())
        .await;
    assert_eq!(late, all);
    let abort = AbortToken::new();
    abort.cancel();
    assert_eq!(registry.wait_ready(&all, PATIENCE, &abort).await, all);
    registry.stop(&all[0]).await;
    assert_eq!(state(&registry, "hangs"), ServerState::Stopped);
}

/// `M-30`, `M-31`: what each server has, sorted by name.
#[tokio::test]
async fn features_come_from_the_live_handles() {
    let registry = registry([
        fake("full", "full"),
        fake("only.resources", "resources-only"),
        fake("nothing", "nothing"),
        fake("unused", "full"),
    ]);
    ready(&registry, &names(&["full", "only.resources", "nothing"])).await;
    let features: Vec<_> = registry
        .server_features()
        .into_iter()
        .map(|it| (it.name.to_string(), it.tools, it.resources, it.prompts))
        .collect();
    assert_eq!(features.len(), 3);
    assert_eq!(features[0], ("full".to_owned(), true, true, true));
    assert_eq!(features[1], ("nothing".to_owned(), false, false, false));
    assert!(features[2].0.starts_with("only_resources_"));
    assert_eq!(
        (features[2].1, features[2].2, features[2].3),
        (false, true, false)
    );
}

#[tokio::test]
async fn a_stopped_server_stays_stopped_until_it_is_restarted() {
    let registry = registry([fake("a", "full")]);
    let all = registry.names();
    ready(&registry, &all).await;
    let held = registry.connected(&all).remove(0);
    registry.stop(&all[0]).await;
    assert!(!held.is_running());
    registry.start(&all);
    assert_eq!(state(&registry, "a"), ServerState::Stopped);
    registry.restart(&all[0]).await.unwrap();
    assert_eq!(state(&registry, "a"), ServerState::Running);
    let again = registry.connected(&all).remove(0);
    call(&again, "echo", json!({})).await.unwrap();
}

/// `M-16`: left alone after the second failure, until the person says otherwise.
#[tokio::test]
async fn a_server_that_died_twice_is_left_until_it_is_restarted() {
    let registry = registry([fake("a", "full")]);
    let all = registry.names();
    ready(&registry, &all).await;
    let server = registry.connected(&all).remove(0);
    call(&server, "die", json!({})).await.unwrap_err();
    let status = registry.status(&all[0]).unwrap();
    assert_eq!(status.state, ServerState::Running);
    assert!(
        status.notes[0].contains("the next use restarts it"),
        "{status:?}"
    );
    call(&server, "die", json!({})).await.unwrap_err();
    call(&server, "echo", json!({})).await.unwrap_err();
    assert!(registry.connected(&all).is_empty());
    let ServerState::Failed { reason } = state(&registry, "a") else {
        panic!("not failed");
    };
    assert!(reason.contains("second time"), "{reason}");
    registry.restart(&all[0]).await.unwrap();
    assert_eq!(registry.connected(&all).len(), 1);
}

#[tokio::test]
async fn restarting_what_cannot_be_started_says_why() {
    let mut disabled = fake("off", "full");
    disabled.disabled = true;
    let mut config = McpConfig::default();
    config.servers.insert(server_name("off"), Ok(disabled));
    let broken = fake("broken", "exit3");
    config.servers.insert(server_name("broken"), Ok(broken));
    let invalid = SpecError {
        reason: "there is neither `command` nor `url`".into(),
        origin: Origin::Workspace,
        file: "mcp.json".into(),
    };
    config.servers.insert(server_name("invalid"), Err(invalid));
    let registry = McpRegistry::new(config, McpFactory::new());
    registry.start(&registry.names());
    let restart = async |name: &str| registry.restart(&server_name(name)).await.unwrap_err();
    assert!(matches!(restart("off").await, McpError::Disabled { .. }));
    assert!(matches!(restart("invalid").await, McpError::Invalid { .. }));
    assert!(matches!(
        restart("broken").await,
        McpError::Unavailable { .. }
    ));
    let McpError::UnknownServer { nearest, .. } = restart("brokn").await else {
        panic!("it is known");
    };
    assert_eq!(nearest, ["broken"]);
    assert_eq!(state(&registry, "off"), ServerState::Disabled);
    assert!(matches!(
        state(&registry, "invalid"),
        ServerState::Invalid { .. }
    ));
}

/// `M-17`: whatever they ignore, nothing is left.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn closing_all_leaves_nothing_behind() {
    use crate::mcp::test_support::is_alive;
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let path = pids.to_str().unwrap();
    let registry = registry(
        ["a", "b", "c", "d"].map(|name| with_env(fake(name, "ignore-term"), "FAKE_PIDS", path)),
    );
    ready(&registry, &registry.names()).await;
    registry.close_all().await;
    let text = std::fs::read_to_string(&pids).unwrap();
    assert_eq!(text.lines().count(), 8);
    eventually("every process is gone", || !text.lines().any(is_alive)).await;
    assert!(registry.connected(&registry.names()).is_empty());
}

/// `M-13`: fifty servers, ten of them broken in ten ways; every good one answers while some still hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_servers_answer_while_broken_ones_are_pending() {
    let missing = "no-such-program-anywhere";
    let broken = [
        fake("hangs", "hang"),
        fake("refuses", "init-error"),
        fake("exits", "exit3"),
        fake("quits", "quits"),
        fake("old", "bad-version"),
        fake("unversioned", "no-version"),
        program("directory", "/", &[]),
        program("missing", missing, &[]),
        program("silent", "sleep", &["600"]),
        remote("unreachable", "http://127.0.0.1:1/mcp"),
    ];
    let good: Vec<ServerName> = (0..40).map(|n| server_name(&format!("good-{n}"))).collect();
    let specs = good.iter().map(|name| fake(name.as_str(), "full"));
    let registry = registry(broken.into_iter().chain(specs));
    let all = registry.names();
    assert_eq!(all.len(), 50);
    registry.start(&all);
    let late = registry
        .wait_ready(&good, PATIENCE, &AbortToken::new())
        .await;
    assert_eq!(late, []);
    let connected = registry.connected(&good);
    assert_eq!(connected.len(), 40);
    let answers = join_all(connected.iter().enumerate().map(|(n, server)| async move {
        let answer = call(server, "echo", json!({ "n": n })).await.unwrap();
        answer["content"][0]["text"].clone()
    }))
    .await;
    for (n, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, format!("{{\"n\":{n}}}"));
    }
    let pending = registry.still_connecting(&all);
    for name in names(&["hangs", "silent"]) {
        assert!(pending.contains(&name), "nobody waited for `{name}`");
    }
    for name in [
        "refuses",
        "exits",
        "quits",
        "old",
        "unversioned",
        "directory",
        "missing",
        "unreachable",
    ] {
        let wanted = [server_name(name)];
        let late = registry
            .wait_ready(&wanted, PATIENCE, &AbortToken::new())
            .await;
        assert_eq!(late, [], "{name}");
        let ServerState::Failed { reason } = state(&registry, name) else {
            panic!("{name} has not failed");
        };
        assert!(!reason.is_empty());
    }
    registry.close_all().await;
}

/// An entry of a remote server.
fn remote(name: &str, url: &str) -> ServerSpec {
    ServerSpec {
        transport: TransportSpec::Http {
            url: url.to_owned(),
            headers: std::collections::BTreeMap::new(),
        },
        ..program(name, "", &[])
    }
}
