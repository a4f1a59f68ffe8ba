//! Live servers: requests, lists, deaths and restarts, against the scripted server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;
use crate::mcp::test_support::{
    call, call_with, connect, connect_to, context, eventually, fake, program, with_env,
};
use crate::mcp::{ProtocolChoice, TransportSpec};

fn names(listing: &Listing, key: &str) -> Vec<String> {
    listing
        .items
        .iter()
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

async fn list(server: &ConnectedServer, kind: ListKind) -> Listing {
    server.list(kind, &context()).await.unwrap()
}

fn reason(error: &McpError) -> String {
    match error {
        McpError::Unavailable { reason, .. } => reason.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_polite_server_is_known_and_answers() {
    let server = connect("full").await;
    assert!(server.is_running());
    assert!(server.peer_known());
    assert_eq!(server.protocol_version().as_deref(), Some("2025-11-25"));
    assert_eq!(
        server.server_info(),
        Some(("fake".to_owned(), "1.2.3".to_owned()))
    );
    assert_eq!(server.instructions().as_deref(), Some("Ask it anything."));
    let capabilities = server.capabilities();
    assert!(capabilities.tools && capabilities.resources && capabilities.prompts);
    assert!(capabilities.completions);
    let result = call(&server, "echo", json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(result["content"][0]["text"], r#"{"text":"hi"}"#);
    server.ping(&context()).await.unwrap();
}

/// `M-14`: what is sent first, exactly.
#[tokio::test]
async fn the_handshake_names_us_pins_the_revision_and_offers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let spec = with_env(
        fake("fake", "tools-only"),
        "FAKE_LOG",
        log.to_str().unwrap(),
    );
    let server = connect_to(&spec).await.unwrap();
    call(&server, "echo", json!({})).await.unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let methods: Vec<_> = lines
        .iter()
        .map(|line| line["method"].as_str().unwrap())
        .collect();
    assert_eq!(
        methods,
        ["initialize", "notifications/initialized", "tools/call"]
    );
    let hello = &lines[0]["params"];
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["capabilities"], json!({}));
    assert_eq!(
        hello["clientInfo"],
        json!({ "name": "coyote", "version": env!("CARGO_PKG_VERSION") })
    );
}

/// `M-20`: whatever is missing or odd in the answer to `initialize`, the server is usable.
#[tokio::test]
async fn odd_handshakes_are_accepted() {
    for scenario in [
        "no-server-info",
        "no-server-version",
        "experimental-bool",
        "string-ids",
        "no-jsonrpc",
        "batch",
        "bom",
        "noise",
        "stderr-flood",
        "echo-version",
        "caps-true",
        "server-requests",
    ] {
        let server = connect(scenario).await;
        let result = call(&server, "echo", json!({ "n": 1 })).await;
        assert_eq!(
            result.unwrap()["content"][0]["text"],
            r#"{"n":1}"#,
            "{scenario}"
        );
        assert!(server.capabilities().tools, "{scenario}");
    }
    let server = connect("no-capabilities").await;
    assert_eq!(server.capabilities(), Capabilities::default());
    let server = connect("caps-true").await;
    assert!(!server.capabilities().prompts);
}

#[tokio::test]
async fn a_handshake_that_cannot_be_used_says_why() {
    for (scenario, expected) in [
        (
            "init-error",
            "it refused the handshake: go away (code -32000)",
        ),
        (
            "bad-version",
            "it speaks protocol revision `1999-01-01`, coyote speaks 2024-11-05",
        ),
        ("no-version", "its answer names no `protocolVersion`"),
        ("exit3", "its process exited with status 3"),
    ] {
        let error = connect_to(&fake("fake", scenario)).await.unwrap_err();
        let reason = reason(&error);
        assert!(reason.contains(expected), "{scenario}: {reason}");
        assert!(!error.to_string().contains("::"), "{error}");
    }
}

#[tokio::test]
async fn the_last_words_of_a_server_are_kept() {
    let error = connect_to(&fake("fake", "exit3")).await.unwrap_err();
    let McpError::Unavailable { stderr, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(stderr, ["fatal: no database"]);
}

#[tokio::test]
async fn a_server_that_never_answers_ends_in_the_start_timeout() {
    let mut spec = fake("fake", "hang");
    spec.startup_timeout = Duration::from_millis(200);
    let error = connect_to(&spec).await.unwrap_err();
    assert!(reason(&error).contains("`startup_timeout`"), "{error}");
}

#[tokio::test]
async fn starting_can_be_cancelled() {
    let abort = AbortToken::new();
    abort.cancel();
    let error = ConnectedServer::connect(&fake("fake", "hang"), &abort)
        .await
        .unwrap_err();
    assert_eq!(error, McpError::Cancelled);
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let error = connect_to(&program("x", "no-such-program-anywhere", &[]))
        .await
        .unwrap_err();
    assert_eq!(
        reason(&error),
        "there is no program `no-such-program-anywhere`"
    );
    let mut spec = fake("x", "full");
    if let TransportSpec::Stdio { cwd, .. } = &mut spec.transport {
        *cwd = Some("/no/such/directory".into());
    }
    let error = connect_to(&spec).await.unwrap_err();
    assert!(reason(&error).contains("`cwd`"), "{error}");
}

/// `M-14`: a server that does not know `initialize` is asked in the other way, on a new connection.
#[tokio::test]
async fn discovery_is_tried_when_initialize_is_unknown() {
    for scenario in [
        "init-unknown",
        "init-params",
        "init-revision",
        "init-exit-discover",
    ] {
        let server = connect(scenario).await;
        assert_eq!(
            server.protocol_version().as_deref(),
            Some("2026-07-28"),
            "{scenario}"
        );
        assert_eq!(
            server.server_info(),
            Some(("fake".to_owned(), "1.2.3".to_owned()))
        );
        let result = call(&server, "echo", json!({})).await.unwrap();
        assert_eq!(result["content"][0]["text"], "{}", "{scenario}");
        let mut legacy = fake("fake", scenario);
        legacy.protocol = ProtocolChoice::Legacy;
        connect_to(&legacy).await.unwrap_err();
        let mut pinned = fake("fake", scenario);
        pinned.protocol = ProtocolChoice::Revision("2026-07-28".into());
        connect_to(&pinned).await.unwrap();
    }
}

/// Revisions without a handshake announce changes only to those who ask.
#[tokio::test]
async fn discovered_servers_are_asked_to_announce_changes() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let spec = with_env(
        fake("fake", "init-unknown"),
        "FAKE_LOG",
        log.to_str().unwrap(),
    );
    let server = connect_to(&spec).await.unwrap();
    let asked = || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.contains("subscriptions/listen"))?;
        serde_json::from_str::<Value>(line).ok()
    };
    eventually("it is asked", || asked().is_some()).await;
    assert_eq!(
        asked().unwrap()["params"]["notifications"],
        json!({ "toolsListChanged": true, "resourcesListChanged": true, "promptsListChanged": true })
    );
    let before = server.generation(ListKind::Prompts);
    call(&server, "change", json!({})).await.unwrap();
    assert_eq!(server.generation(ListKind::Prompts), before + 1);
}

/// `M-19`, case 1.
#[tokio::test]
async fn every_page_of_every_kind_is_followed() {
    let server = connect("pages").await;
    for (kind, key) in [
        (ListKind::Tools, "name"),
        (ListKind::Resources, "uri"),
        (ListKind::ResourceTemplates, "uriTemplate"),
        (ListKind::Prompts, "name"),
    ] {
        let listing = list(&server, kind).await;
        assert_eq!(names(&listing, key).len(), 5, "{kind:?}");
        assert_eq!(listing.warning, None);
        assert!(!listing.unsupported);
    }
}

/// `M-19`, case 2.
#[tokio::test]
async fn lists_without_an_end_stop_with_one_warning_and_what_was_gathered() {
    for (scenario, count) in [("endless", 1000), ("same-cursor", 2), ("empty-cursor", 2)] {
        let server = connect(scenario).await;
        let listing = list(&server, ListKind::Tools).await;
        assert_eq!(listing.items.len(), count, "{scenario}");
        assert!(
            listing.warning.unwrap().starts_with("the list of tools"),
            "{scenario}"
        );
    }
    let mut spec = fake("fake", "stall");
    spec.timeout = Some(Duration::from_secs(2));
    let server = connect_to(&spec).await.unwrap();
    let listing = list(&server, ListKind::Tools).await;
    assert_eq!(listing.items.len(), 3);
    assert!(listing.warning.unwrap().contains("too long"));
}

#[tokio::test]
async fn answers_without_the_list_are_empty_and_say_so() {
    for scenario in ["list-null", "list-empty"] {
        let server = connect(scenario).await;
        let listing = list(&server, ListKind::Prompts).await;
        assert!(listing.items.is_empty());
        assert!(listing.warning.is_some(), "{scenario}");
    }
}

/// `M-34`, case 3.
#[tokio::test]
async fn an_advertised_kind_that_is_not_served_is_empty_and_noted() {
    let server = connect("resources-unserved").await;
    assert!(list(&server, ListKind::Resources).await.unsupported);
    assert!(list(&server, ListKind::ResourceTemplates).await.unsupported);
    assert!(!list(&server, ListKind::Tools).await.items.is_empty());
    assert_eq!(
        server.unsupported(),
        [ListKind::Resources, ListKind::ResourceTemplates]
    );
    let server = connect("templates-unserved").await;
    assert!(!list(&server, ListKind::Resources).await.unsupported);
    assert!(list(&server, ListKind::ResourceTemplates).await.unsupported);
}

/// `M-34`, case 4.
#[tokio::test]
async fn a_kind_that_is_not_advertised_is_never_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let spec = with_env(
        fake("fake", "tools-only"),
        "FAKE_LOG",
        log.to_str().unwrap(),
    );
    let server = connect_to(&spec).await.unwrap();
    for kind in ListKind::ALL {
        let listing = list(&server, kind).await;
        assert_eq!(listing.items.is_empty(), kind != ListKind::Tools);
    }
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("tools/list"));
    assert!(
        !text.contains("resources/") && !text.contains("prompts/"),
        "{text}"
    );
}

/// `M-20`: an answer that makes no sense fails the request that it is about, at once.
#[tokio::test]
async fn answers_that_make_no_sense_fail_the_request() {
    for scenario in ["both", "neither", "idless-error"] {
        let server = connect(scenario).await;
        let error = call(&server, "echo", json!({})).await.unwrap_err();
        assert!(
            matches!(error, McpError::Refused { .. } | McpError::Protocol { .. }),
            "{scenario}: {error:?}"
        );
        assert!(server.is_running());
    }
}

/// Keys of other results beside `content` change nothing.
#[tokio::test]
async fn results_arrive_as_they_were_sent() {
    let server = connect("full").await;
    let result = call(&server, "shadowed", json!({})).await.unwrap();
    assert_eq!(result["content"][0]["text"], "still here");
    assert_eq!(result["action"], "accept");
    let result = call(&server, "hologram", json!({})).await.unwrap();
    assert_eq!(result["content"][1]["type"], "hologram");
}

#[tokio::test]
async fn a_server_that_asks_back_gets_an_error_that_says_so() {
    let server = connect("full").await;
    let error = call(&server, "input_required", json!({}))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("further input"), "{error}");
}

#[tokio::test]
async fn errors_of_a_server_name_it_what_was_asked_and_why() {
    let server = connect("full").await;
    let error = call(&server, "nope", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `fake`: calling tool `nope` failed: Unknown tool: nope (code -32602)"
    );
    let params = Map::from_iter([("uri".to_owned(), json!("x:nope"))]);
    let error = server
        .request("resources/read", params, &context())
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `fake`: reading `x:nope` failed: Resource not found (code -32002)"
    );
}

/// `M-15`, case 29: the server is told, with the right id, and stays usable.
#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server_too() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let spec = with_env(fake("fake", "full"), "FAKE_LOG", log.to_str().unwrap());
    let server = connect_to(&spec).await.unwrap();
    let cx = context();
    let calling = {
        let (server, cx) = (Arc::clone(&server), cx.clone());
        tokio::spawn(async move { call_with(&server, "sleep", json!({}), &cx).await })
    };
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the call has arrived", || read().contains("\"sleep\"")).await;
    cx.abort.cancel();
    assert_eq!(calling.await.unwrap().unwrap_err(), McpError::Cancelled);
    eventually("the server is told", || {
        read().contains("notifications/cancelled")
    })
    .await;
    let text = read();
    let find = |needle: &str| -> Value {
        let line = text.lines().find(|line| line.contains(needle)).unwrap();
        serde_json::from_str(line).unwrap()
    };
    assert_eq!(
        find("notifications/cancelled")["params"]["requestId"],
        find("\"sleep\"")["id"]
    );
    call(&server, "echo", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_call_that_takes_too_long_times_out_and_is_cancelled_at_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut spec = with_env(fake("fake", "full"), "FAKE_LOG", log.to_str().unwrap());
    spec.timeout = Some(Duration::from_secs(1));
    let server = connect_to(&spec).await.unwrap();
    let error = call(&server, "never", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `fake`: calling tool `never` timed out after 1 s"
    );
    eventually("the server is told", || {
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .contains("notifications/cancelled")
    })
    .await;
    call(&server, "echo", json!({})).await.unwrap();
}

/// `M-15`: progress is passed on in order and gives the call more time.
#[tokio::test]
async fn progress_extends_the_time_and_arrives_in_order() {
    let mut spec = fake("fake", "full");
    spec.timeout = Some(Duration::from_secs(3));
    let server = connect_to(&spec).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut cx = context();
    let reports = Arc::clone(&seen);
    cx.progress = Some(Arc::new(move |report: Progress| {
        reports.lock().push((report.progress, report.message));
    }));
    let arguments = json!({ "steps": 35, "pause_ms": 100 });
    let result = call_with(&server, "slow", arguments, &cx).await.unwrap();
    assert_eq!(result["content"][0]["text"], "done");
    let seen = seen.lock().clone();
    assert_eq!(seen.len(), 35);
    assert_eq!(seen[0], (1.0, Some("step 1".to_owned())));
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0));
}

#[tokio::test]
async fn changed_lists_are_noticed_by_kind() {
    let server = connect("full").await;
    let before = ListKind::ALL.map(|kind| server.generation(kind));
    call(&server, "change", json!({})).await.unwrap();
    for (kind, before) in ListKind::ALL.into_iter().zip(before) {
        assert_eq!(server.generation(kind), before + 1, "{kind:?}");
    }
}

/// `M-16`, case 28.
#[tokio::test]
async fn a_server_that_dies_during_a_call_fails_it_at_once_and_is_restarted_once() {
    let server = connect("full").await;
    let before = server.generation(ListKind::Tools);
    let first = call(&server, "pid", json!({})).await.unwrap();
    let error = call(&server, "die", json!({})).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "MCP server `fake`: calling tool `die` failed: its process exited with status 9"
    );
    assert!(!server.is_running());
    assert!(server.is_usable());
    let second = call(&server, "pid", json!({})).await.unwrap();
    assert_ne!(first, second);
    assert!(server.generation(ListKind::Tools) > before);
    call(&server, "die", json!({})).await.unwrap_err();
    let error = call(&server, "pid", json!({})).await.unwrap_err();
    assert!(
        error.to_string().contains("second time within a minute"),
        "{error}"
    );
    assert!(!server.is_usable());
    assert!(server.down_reason().unwrap().contains("status 9"));
}

/// A helper that still holds the pipe keeps nobody waiting.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dead_server_whose_helper_holds_the_pipe_fails_the_call_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let spec = with_env(fake("fake", "helper"), "FAKE_PIDS", pids.to_str().unwrap());
    let server = connect_to(&spec).await.unwrap();
    let error = call(&server, "die", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Closed { .. }), "{error:?}");
    gone(&pids, 2).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_killed_between_calls_is_restarted_by_the_next() {
    let server = connect("full").await;
    let first = call(&server, "pid", json!({})).await.unwrap();
    let pid: i32 = first["content"][0]["text"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pid),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    eventually("the end is noticed", || !server.is_running()).await;
    assert_eq!(
        server.down_reason().unwrap(),
        "its process was ended by SIGKILL"
    );
    let second = call(&server, "pid", json!({})).await.unwrap();
    assert_ne!(first, second);
}

/// `P-41`: what is no use of a server takes the connection as it is.
#[tokio::test]
async fn a_request_that_is_no_use_does_not_restart_a_dead_server() {
    let server = connect("full").await;
    call(&server, "die", json!({})).await.unwrap_err();
    let cx = context().without_revival();
    let error = server.list(ListKind::Prompts, &cx).await.unwrap_err();
    assert!(matches!(error, McpError::Closed { .. }), "{error:?}");
    assert!(!server.is_running());
    assert!(server.is_usable(), "the next use may still restart it");
    list(&server, ListKind::Prompts).await;
    assert!(server.is_running());
}

#[tokio::test]
async fn many_requests_restart_a_dead_server_once() {
    let server = connect("full").await;
    call(&server, "die", json!({})).await.unwrap_err();
    let calls = (0..8).map(|_| call(&server, "pid", json!({})));
    let results = futures::future::join_all(calls).await;
    let first = results[0].clone().unwrap();
    assert!(results.into_iter().all(|result| result.unwrap() == first));
}

/// `M-14`: a message beyond the limit fails what waits, naming the limit; the connection survives.
#[tokio::test]
async fn a_message_that_is_too_long_fails_what_waits_and_names_the_limit() {
    let server = connect("full").await;
    let error = call(&server, "oversized", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("longer than 128 MiB"), "{error}");
    call(&server, "echo", json!({})).await.unwrap();
}

/// A blob of the size that content may have passes.
#[tokio::test]
async fn a_message_of_eighty_megabytes_passes() {
    let server = connect("full").await;
    let params = Map::from_iter([("uri".to_owned(), json!("blob://60mb"))]);
    let result = server
        .request("resources/read", params, &context())
        .await
        .unwrap();
    let blob = result["contents"][0]["blob"].as_str().unwrap();
    assert_eq!(blob.len(), 80 * 1024 * 1024);
}

/// `M-12`: provider keys are kept from servers unless their entry names them.
#[tokio::test]
async fn provider_keys_are_scrubbed_unless_the_entry_names_them() {
    let mut spec = fake("fake", "full");
    spec.scrub_env = vec!["PATH".into()];
    let ask = json!({ "name": "PATH" });
    let server = connect_to(&spec).await.unwrap();
    let result = call(&server, "env", ask.clone()).await.unwrap();
    assert_eq!(result["content"][0]["text"], "(unset)");
    let server = connect_to(&with_env(spec, "PATH", "mine")).await.unwrap();
    let result = call(&server, "env", ask).await.unwrap();
    assert_eq!(result["content"][0]["text"], "mine");
}

/// `M-30`: without a handshake, tools and nothing else.
#[tokio::test]
async fn a_server_whose_handshake_nobody_saw_has_tools_only() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let server = ConnectedServer::without_handshake(&fake("x", "full"), input, output);
    assert!(!server.peer_known());
    assert_eq!(server.capabilities(), Capabilities::UNKNOWN);
    drop(theirs);
}

/// Waits until every process in the file is gone; there must be `count` of them.
#[cfg(target_os = "linux")]
async fn gone(pids: &std::path::Path, count: usize) {
    use crate::mcp::test_support::is_alive;
    let text = std::fs::read_to_string(pids).unwrap();
    assert_eq!(text.lines().count(), count, "{text}");
    eventually("every process is gone", || !text.lines().any(is_alive)).await;
}

/// `M-17`: nothing survives, whatever the server ignores.
#[cfg(target_os = "linux")]
mod orphans {
    use super::*;

    async fn stubborn(dir: &tempfile::TempDir) -> (Arc<ConnectedServer>, std::path::PathBuf) {
        let pids = dir.path().join("pids");
        let spec = with_env(
            fake("fake", "ignore-term"),
            "FAKE_PIDS",
            pids.to_str().unwrap(),
        );
        (connect_to(&spec).await.unwrap(), pids)
    }

    #[tokio::test]
    async fn close_ends_a_server_that_ignores_eof_and_term_with_its_helper() {
        let dir = tempfile::tempdir().unwrap();
        let (server, pids) = stubborn(&dir).await;
        server.close().await;
        gone(&pids, 2).await;
        let error = call(&server, "echo", json!({})).await.unwrap_err();
        assert!(matches!(error, McpError::Closed { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn dropping_the_handle_ends_the_server_and_its_helper() {
        let dir = tempfile::tempdir().unwrap();
        let (server, pids) = stubborn(&dir).await;
        drop(server);
        gone(&pids, 2).await;
    }

    #[test]
    fn dropping_the_runtime_ends_the_server_and_its_helper() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (server, pids) = runtime.block_on(stubborn(&dir));
        runtime.shutdown_background();
        drop(server);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(gone(&pids, 2));
    }

    #[test]
    fn a_panic_ends_the_server_and_its_helper() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let caught = std::panic::catch_unwind(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            runtime.block_on(async {
                let (_server, _) = stubborn(&dir).await;
                std::panic::resume_unwind(Box::new("as if something broke"));
            });
        });
        assert!(caught.is_err());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(gone(&pids, 2));
    }
}
