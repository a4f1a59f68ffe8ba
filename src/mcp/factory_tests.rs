//! Who shares a connection, and who does not.

use super::*;
use crate::mcp::test_support::{call, context, eventually, fake, server_name, with_env};
use crate::mcp::{ListKind, ProtocolChoice};

async fn acquire(factory: &McpFactory, spec: &ServerSpec) -> Arc<ConnectedServer> {
    factory.acquire(spec, &AbortToken::new()).await.unwrap()
}

#[tokio::test]
async fn the_same_entry_is_connected_once() {
    let factory = McpFactory::new();
    let spec = fake("fake", "full");
    let (first, second) = tokio::join!(acquire(&factory, &spec), acquire(&factory, &spec));
    assert!(Arc::ptr_eq(&first, &second));
    // Nobody holds it: it is gone, and the next one is new.
    let pid = call(&first, "pid", json!({})).await.unwrap();
    drop((first, second));
    let third = acquire(&factory, &spec).await;
    assert_ne!(call(&third, "pid", json!({})).await.unwrap(), pid);
}

#[test]
fn everything_that_changes_what_is_connected_is_in_the_key() {
    let spec = fake("fake", "full");
    let stdio = |change: fn(&mut String, &mut Vec<String>)| {
        let mut changed = spec.clone();
        if let TransportSpec::Stdio { command, args, .. } = &mut changed.transport {
            change(command, args);
        }
        changed
    };
    let mut renamed = spec.clone();
    renamed.name = server_name("other");
    let mut elsewhere = spec.clone();
    if let TransportSpec::Stdio { cwd, .. } = &mut elsewhere.transport {
        *cwd = Some("/tmp".into());
    }
    let mut pinned = spec.clone();
    pinned.protocol = ProtocolChoice::Legacy;
    let two = stdio(|_, args| args.extend(["a".into(), "b".into()]));
    let swapped = stdio(|_, args| args.extend(["b".into(), "a".into()]));
    let http = |url: &str, token: &str| {
        let mut changed = spec.clone();
        changed.transport = TransportSpec::Http {
            url: url.into(),
            headers: [("Authorization".to_owned(), token.to_owned())].into(),
        };
        changed
    };
    let all = [
        spec.clone(),
        renamed,
        elsewhere,
        pinned,
        two,
        swapped,
        stdio(|command, _| command.push('x')),
        with_env(spec.clone(), "A", "1"),
        with_env(spec.clone(), "A", "2"),
        http("http://a/", "1"),
        http("http://b/", "1"),
        http("http://a/", "2"),
    ];
    let keys: std::collections::HashSet<Key> = all.iter().map(key).collect();
    assert_eq!(keys.len(), all.len());
    let mut same = spec.clone();
    same.timeout = Some(std::time::Duration::from_secs(1));
    same.description = Some("other words".into());
    assert_eq!(key(&same), key(&spec));
}

#[tokio::test]
async fn acquiring_a_server_that_died_restarts_it() {
    let factory = McpFactory::new();
    let spec = fake("fake", "full");
    let held = acquire(&factory, &spec).await;
    call(&held, "die", json!({})).await.unwrap_err();
    let again = acquire(&factory, &spec).await;
    assert!(Arc::ptr_eq(&held, &again));
    assert!(held.is_running());
}

#[tokio::test]
async fn a_closed_connection_is_replaced_and_close_all_closes_what_is_held() {
    let factory = McpFactory::new();
    let spec = fake("fake", "full");
    let first = acquire(&factory, &spec).await;
    first.close().await;
    let second = acquire(&factory, &spec).await;
    assert!(!Arc::ptr_eq(&first, &second));
    second.list(ListKind::Tools, &context()).await.unwrap();
    factory.close_all().await;
    eventually("it is closed", || !second.is_running()).await;
    let error = factory
        .acquire(&spec, &AbortToken::new())
        .await
        .unwrap_err();
    assert_eq!(error, McpError::Cancelled);
}

#[tokio::test]
async fn a_disabled_server_is_not_started() {
    let mut spec = fake("fake", "full");
    spec.disabled = true;
    let error = McpFactory::new()
        .acquire(&spec, &AbortToken::new())
        .await
        .unwrap_err();
    assert!(matches!(error, McpError::Disabled { .. }));
}
