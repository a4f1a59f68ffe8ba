//! `M-31` as a matrix: every kind of server, named and by alias, in every place where functions are put together.

use std::collections::BTreeSet;
use std::time::Duration;

use super::testing::{CLIENTS, Home};
use super::*;
use crate::function::Functions;
use crate::mcp::test_support::{connect_to, fake, server_name};
use crate::mcp::{ConnectedServer, McpConfig, McpFactory, McpRegistry, ServerName};
use crate::utils::AbortToken;

/// A scenario of the scripted server, and the verbs it gets.
const SERVERS: &[(&str, &[&str])] = &[
    ("tools-only", &["invoke", "search", "describe"]),
    ("resources-only", &["search", "describe", "read"]),
    ("prompts-only", &["search", "describe", "prompt"]),
    ("nothing", &["search", "describe"]),
    ("full", &["invoke", "search", "describe", "read", "prompt"]),
];

fn expected(servers: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for name in servers {
        let (_, verbs) = SERVERS.iter().find(|(server, _)| server == name).unwrap();
        names.extend(verbs.iter().map(|verb| format!("mcp_{verb}_{name}")));
    }
    names
}

fn offered(context: &RequestContext) -> BTreeSet<String> {
    let scope = context.tool_scope();
    let names = scope.functions.declarations().iter();
    names
        .map(|function| function.name.clone())
        .filter(|name| name.starts_with("mcp_"))
        .collect()
}

/// A context whose servers all run; `alias` stands for those that are given.
async fn context(home: &Home, config: &str, alias: &[&str]) -> RequestContext {
    let servers = SERVERS.iter().map(|(name, _)| {
        let spec = fake(name, name);
        (spec.name.clone(), Ok(spec))
    });
    let servers = McpConfig {
        servers: servers.collect(),
        warnings: Vec::new(),
    };
    let registry = McpRegistry::new(servers, McpFactory::new());
    let names = registry.names();
    registry.start(&names);
    let late = registry
        .wait_ready(&names, Duration::from_secs(20), &AbortToken::new())
        .await;
    assert!(late.is_empty(), "{late:?}");
    with_registry(
        home,
        &format!(
            "mapping_mcp_servers: {{some: ' {} '}}\n{config}",
            alias.join(" , ")
        ),
        registry,
    )
}

fn with_registry(home: &Home, config: &str, mcp: std::sync::Arc<McpRegistry>) -> RequestContext {
    let env = Env::new::<&str, &str>([]);
    let text = format!("{config}\n{CLIENTS}");
    let (app, warnings) = AppConfig::parse(&text, &home.paths.config_file(), &env).unwrap();
    assert_eq!(warnings, [""; 0]);
    RequestContext::new(Bootstrap {
        paths: home.paths.clone(),
        app,
        env,
        mcp,
        functions: Functions::built_in(),
        cwd: home.cwd().to_path_buf(),
    })
}

fn agent(home: &Home, mcp_servers: &str, context: &RequestContext) -> AgentLayer {
    let text = format!("instructions: x\nmcp_servers: {mcp_servers}\n");
    home.write("agents/a/config.yaml", &text);
    let (agent, warnings) = Agent::load(&home.paths, "a").unwrap();
    assert_eq!(warnings, [""; 0]);
    agent.into_layer(std::collections::BTreeMap::new(), &context.variables())
}

/// What `.mcp disable` and `.mcp enable` do in the place that is in force.
#[track_caller]
fn off_and_on(context: &mut RequestContext, written: &str, expected: &BTreeSet<String>) {
    let names = [written.to_owned()];
    context.toggle_servers(&names, false).unwrap();
    assert_eq!(offered(context), BTreeSet::new(), "{written} is off");
    context.toggle_servers(&names, true).unwrap();
    assert_eq!(&offered(context), expected, "{written} is on again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_has_its_functions_in_every_place() {
    let home = Home::new();
    for (servers, _) in SERVERS.iter().map(|(name, verbs)| ([*name], verbs)) {
        let context_of = context(&home, "enabled_mcp_servers: null", &servers).await;
        let registry = context_of.registry().clone();
        let none = "enabled_mcp_servers: null";
        let aliases = format!("mapping_mcp_servers: {{some: ' {} , '}}", servers.join(","));
        for written in [servers[0], "some"] {
            let place = |name: &str| format!("{written} in {name}");
            let expected = expected(&servers);

            let global = format!("{aliases}\nenabled_mcp_servers: {written}");
            let mut global = with_registry(&home, &global, registry.clone());
            assert_eq!(offered(&global), expected, "{}", place("global"));
            off_and_on(&mut global, written, &expected);

            let mut role = with_registry(&home, &format!("{aliases}\n{none}"), registry.clone());
            assert_eq!(offered(&role), BTreeSet::new());
            home.write(
                "roles/r.md",
                &format!("---\nenabled_mcp_servers: {written}\n---\nx"),
            );
            role.use_role("r").unwrap();
            assert_eq!(offered(&role), expected, "{}", place("role"));
            off_and_on(&mut role, written, &expected);
            role.exit_role().unwrap();
            assert_eq!(offered(&role), BTreeSet::new());

            let mut session = role;
            session.enter_session(None).unwrap();
            let value = Setting::parse("enabled_mcp_servers", written).unwrap();
            assert_eq!(session.apply(value), Layer::Session);
            assert_eq!(offered(&session), expected, "{}", place("session"));
            off_and_on(&mut session, written, &expected);
            session.exit_session().unwrap();

            let mut with_agent = session;
            let layer = agent(&home, written, &with_agent);
            with_agent.set_agent(Some(layer.clone()));
            assert_eq!(offered(&with_agent), expected, "{}", place("agent"));
            // Tools that are enabled neither add one nor strip one.
            for tools in ["all", "null", "fs_cat", &format!("mcp_read_{}", servers[0])] {
                with_agent.apply(Setting::parse("enabled_tools", tools).unwrap());
                assert_eq!(offered(&with_agent), expected, "{tools}");
            }
            assert!(
                with_agent
                    .take_warnings()
                    .iter()
                    .all(|warning| warning.contains("tool"))
            );
            off_and_on(&mut with_agent, written, &expected);
            let listed = with_agent.functions().tool_names();
            assert!(
                !listed.iter().any(|name| name.starts_with("mcp_")),
                "{listed:?}"
            );

            // A delegate's own handle, from the factory; its registry never started anything.
            let specs = McpConfig {
                servers: [(server_name(servers[0]), Ok(fake(servers[0], servers[0])))].into(),
                warnings: Vec::new(),
            };
            let idle = McpRegistry::new(specs, McpFactory::new());
            let idle = with_registry(&home, &format!("{aliases}\n{none}"), idle);
            let mut delegate = idle.for_delegate(layer);
            assert_eq!(offered(&delegate), BTreeSet::new());
            let spec = fake(servers[0], servers[0]);
            let own = idle
                .registry()
                .factory()
                .acquire(&spec, &AbortToken::new())
                .await
                .unwrap();
            delegate.set_own_servers(vec![own]);
            assert_eq!(offered(&delegate), expected, "{}", place("delegate"));
            off_and_on(&mut delegate, written, &expected);
            assert!(idle.registry().server_features().is_empty());
        }
        registry.close_all().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_no_file_names_is_seen_through_its_handle() {
    let home = Home::new();
    let registry = McpRegistry::new(McpConfig::default(), McpFactory::new());
    let context = with_registry(&home, "", registry);
    let layer = agent(&home, "all", &context);
    let mut delegate = context.for_delegate(layer);
    let own = connect_to(&fake("resources-only", "resources-only"))
        .await
        .unwrap();
    delegate.set_own_servers(vec![own]);
    assert_eq!(offered(&delegate), expected(&["resources-only"]));
    assert_eq!(
        delegate.tool_scope().servers(),
        [ServerName::new("resources-only").unwrap()]
    );
    assert!(context.registry().names().is_empty());
    assert_eq!(delegate.take_warnings(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_nothing_is_known_of_has_what_tools_need_and_no_more() {
    let home = Home::new();
    let registry = McpRegistry::new(McpConfig::default(), McpFactory::new());
    let context = with_registry(&home, "mapping_mcp_servers: {some: unseen}", registry);
    for written in ["unseen", "some"] {
        let layer = agent(&home, written, &context);
        let mut delegate = context.for_delegate(layer);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(ours);
        let unseen = ConnectedServer::without_handshake(&fake("unseen", "full"), input, output);
        assert!(!unseen.peer_known());
        delegate.set_own_servers(vec![unseen]);
        let expected = ["invoke", "search", "describe"].map(|verb| format!("mcp_{verb}_unseen"));
        let expected = BTreeSet::from(expected);
        assert_eq!(offered(&delegate), expected, "{written}");
        off_and_on(&mut delegate, written, &expected);
        drop(theirs);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_alias_of_several_loses_none_and_lists_that_change_change_nothing() {
    let home = Home::new();
    let some = ["resources-only", "full", "tools-only"];
    let context = context(&home, "enabled_mcp_servers: some", &some).await;
    assert_eq!(offered(&context), expected(&some));
    let scope = context.tool_scope();
    let full = scope.mcp.server(&server_name("full")).unwrap();
    let changed = crate::mcp::test_support::call(full, "change", serde_json::json!({}))
        .await
        .unwrap();
    assert!(changed.to_string().contains("changed"), "{changed}");
    assert_eq!(offered(&context), expected(&some));
    // In order of name, and of verb within one server.
    let names: Vec<String> = context
        .tool_scope()
        .functions
        .declarations()
        .iter()
        .map(|function| function.name.clone())
        .collect();
    let of = |server: &str| {
        let (_, verbs) = SERVERS.iter().find(|(name, _)| *name == server).unwrap();
        verbs
            .iter()
            .map(|verb| format!("mcp_{verb}_{server}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names,
        [of("full"), of("resources-only"), of("tools-only")].concat()
    );
    context.registry().close_all().await;
}
