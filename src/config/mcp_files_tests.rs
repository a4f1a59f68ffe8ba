//! Tests of the module beside.

use super::*;
use crate::config::testing::Home;
use crate::mcp::ServerName;

const SAMPLE: &str = include_str!("../../tests/data/home/mcp.json");
const WORKSPACE: &str = r#"{"mcpServers": {"docs": {"command": "ws-docs", "args": ["--ü"]}, "web": {"url": "http://x/"}}}"#;

fn load(home: &Home, no_workspace: bool) -> McpFiles {
    load_mcp(
        &home.paths,
        home.cwd(),
        no_workspace,
        &Env::new([("HOME", "/home/u")]),
    )
    .unwrap()
}

fn workspace_file(home: &Home, place: &str, text: &str) {
    let path = home.cwd().join(place);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn names(config: &McpConfig) -> Vec<&str> {
    config.servers.keys().map(ServerName::as_str).collect()
}

fn command(config: &McpConfig, name: &str) -> String {
    let spec = config.servers[&ServerName::new(name).unwrap()]
        .as_ref()
        .unwrap();
    match &spec.transport {
        TransportSpec::Stdio { command, .. } => command.clone(),
        TransportSpec::Http { url, .. } => url.clone(),
    }
}

#[test]
fn the_sample_loads_without_a_warning() {
    let home = Home::new();
    home.write("mcp.json", SAMPLE);
    let config = load(&home, false).into_config();
    assert_eq!(config.warnings, Vec::<String>::new());
    assert_eq!(names(&config), ["docs", "github", "local git", "old"]);
    assert!(config.servers.values().all(Result::is_ok), "{config:?}");
}

#[test]
fn no_file_is_no_server_and_the_older_place_counts() {
    let home = Home::new();
    assert!(load(&home, false).into_config().servers.is_empty());
    home.write(
        "functions/mcp.json",
        r#"{"mcpServers": {"a": {"command": "x"}}}"#,
    );
    assert_eq!(names(&load(&home, false).user), ["a"]);
    home.write("mcp.json", r#"{"mcpServers": {"b": {"command": "x"}}}"#);
    assert_eq!(names(&load(&home, false).user), ["b"]);
}

#[test]
fn a_user_file_that_is_no_server_file_is_an_error() {
    let home = Home::new();
    home.write("mcp.json", "[");
    let error = load_mcp(&home.paths, home.cwd(), false, &Env::default()).unwrap_err();
    assert!(format!("{error:?}").contains("mcp.json"), "{error:?}");
}

#[test]
fn a_directorys_file_counts_once_it_is_trusted() {
    let home = Home::new();
    home.write("mcp.json", SAMPLE);
    workspace_file(&home, ".mcp.json", WORKSPACE);
    let mut files = load(&home, false);
    let file = files.workspace.as_mut().unwrap();
    assert_eq!(file.trust, Trust::Unknown);
    assert_eq!(
        file.actions(),
        ["docs: runs ws-docs --ü", "web: connects to http://x/"]
    );
    assert_eq!(
        command(&files.clone().into_config(), "docs"),
        "npx",
        "not trusted, not used"
    );

    files
        .workspace
        .as_mut()
        .unwrap()
        .decide(&home.paths, true)
        .unwrap();
    let config = files.into_config();
    assert_eq!(
        command(&config, "docs"),
        "ws-docs",
        "it replaces the entry whole"
    );
    assert_eq!(
        names(&config),
        ["docs", "github", "local git", "old", "web"]
    );

    // Remembered for this content; other content is a new question.
    assert_eq!(load(&home, false).workspace.unwrap().trust, Trust::Granted);
    workspace_file(&home, ".mcp.json", &WORKSPACE.replace("ws-docs", "evil"));
    assert_eq!(load(&home, false).workspace.unwrap().trust, Trust::Unknown);
    workspace_file(&home, ".mcp.json", WORKSPACE);
    let mut files = load(&home, false);
    files
        .workspace
        .as_mut()
        .unwrap()
        .decide(&home.paths, false)
        .unwrap();
    assert_eq!(load(&home, false).workspace.unwrap().trust, Trust::Refused);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(home.paths.trust_file())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn the_first_place_counts_and_no_workspace_ignores_both() {
    let home = Home::new();
    workspace_file(&home, ".mcp.json", WORKSPACE);
    workspace_file(
        &home,
        ".coyote/mcp.json",
        r#"{"mcpServers": {"first": {"command": "x"}}}"#,
    );
    let file = load(&home, false).workspace.unwrap();
    assert_eq!(names(&file.config), ["first"]);
    assert!(load(&home, true).workspace.is_none());
}

#[test]
fn a_bad_directorys_file_is_a_warning() {
    let home = Home::new();
    workspace_file(&home, ".mcp.json", "not json");
    let files = load(&home, false);
    assert!(files.workspace.is_none());
    assert_eq!(files.user.warnings.len(), 1);
}

#[test]
fn a_damaged_trust_store_trusts_nothing() {
    let home = Home::new();
    workspace_file(&home, ".mcp.json", WORKSPACE);
    load(&home, false)
        .workspace
        .unwrap()
        .decide(&home.paths, true)
        .unwrap();
    home.write("workspace-trust.json", "{]");
    assert_eq!(load(&home, false).workspace.unwrap().trust, Trust::Unknown);
}
