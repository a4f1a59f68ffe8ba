//! `coyote demo` (`H-50`, `H-51`): the tour does what it says, and notices when something does not.

use std::path::Path;
use std::sync::Mutex;

use clap::ValueEnum as _;
use coyote::cli::tour;
use coyote::demo::Spoil;
use coyote::utils::AbortToken;

use crate::support::home::Home;

const STEPS: [&str; 16] = [
    "start",
    "functions",
    "lists",
    "search",
    "describe",
    "read",
    "big text",
    "pattern",
    "template",
    "mislabeled text",
    "picture",
    "audience",
    "tool",
    "tool error",
    "prompt flattened",
    "no base64",
];

#[test]
fn the_tour_does_each_step_and_touches_no_configuration() {
    let home = Home::new();
    let output = home.coyote(&["demo"]).ok();
    for step in STEPS {
        assert!(
            output.stdout.contains(&format!("✓ {step}: ")),
            "{step}:\n{}",
            output.stdout
        );
    }
    assert!(!output.stdout.contains('✗'));
    assert_eq!(std::fs::read_dir(home.config_dir()).unwrap().count(), 0);
    assert!(home.cache_dir().join("mcp-resources").join("demo").is_dir());
}

#[test]
fn a_broken_configuration_does_not_matter_to_it() {
    let home = Home::new();
    home.config_file("config.yaml", ": : :")
        .config_file("mcp.json", "{");
    home.coyote(&["demo"]).ok();
}

#[test]
fn a_cache_path_that_is_a_file_is_a_clear_failure() {
    let home = Home::new();
    let file = home.path().join("cache");
    std::fs::write(&file, "").unwrap();
    let output = home.coyote(&["demo"]).fails(1);
    assert!(output.stdout.contains("✗ picture: "), "{}", output.stdout);
    assert!(output.stderr.contains("`picture`"), "{}", output.stderr);
    assert!(
        output.stderr.contains(&file.display().to_string()),
        "{}",
        output.stderr
    );
}

/// Runs the tour as a library on a server that spoils one thing.
fn spoiled(spoil: Option<Spoil>) -> (Result<(), String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let said = Mutex::new(String::new());
    let spec = tour::server(Path::new(env!("CARGO_BIN_EXE_coyote")), spoil).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let say = |line: &str| said.lock().unwrap().push_str(line);
    let result = runtime.block_on(tour::tour(spec, dir.path(), &AbortToken::new(), &say));
    let said = said.lock().unwrap().clone();
    (result.map_err(|error| error.to_string()), said)
}

#[test]
fn the_tour_as_a_library_passes_on_a_good_server() {
    let (result, said) = spoiled(None);
    assert_eq!(result, Ok(()), "{said}");
    assert_eq!(
        said.lines().filter(|line| line.starts_with('✓')).count(),
        STEPS.len()
    );
}

#[test]
fn every_spoiled_step_is_noticed_as_that_step() {
    for spoil in Spoil::value_variants() {
        let step = match spoil {
            Spoil::Start => "start",
            Spoil::Capabilities => "functions",
            Spoil::Pages => "lists",
            Spoil::Search => "search",
            Spoil::Schema => "describe",
            Spoil::Guide => "read",
            Spoil::Log => "big text",
            Spoil::Template => "template",
            Spoil::Notes => "mislabeled text",
            Spoil::Logo => "picture",
            Spoil::Audience => "audience",
            Spoil::Tool => "tool",
            Spoil::Prompt => "prompt flattened",
            Spoil::Base64 => "no base64",
        };
        let (result, said) = spoiled(Some(*spoil));
        let error = result.expect_err(&format!("{spoil:?} went unnoticed:\n{said}"));
        assert!(
            error.ends_with(&format!("`{step}`")),
            "{spoil:?}: {error}\n{said}"
        );
        assert!(said.contains(&format!("✗ {step}: ")), "{spoil:?}:\n{said}");
    }
}

#[test]
fn a_model_that_fails_does_not_change_the_exit_code() {
    let home = Home::new();
    let output = home
        .coyote(&["demo", "-m", "nobody:nothing"])
        .any_stderr()
        .ok();
    assert!(output.stderr.contains("nobody"), "{}", output.stderr);
}

#[test]
fn with_a_model_the_tour_ends_with_a_turn_on_the_demo_server() {
    use crate::support::provider::{Provider, chat_text};
    let home = Home::new();
    let provider = Provider::new(vec![chat_text("It has a guide.")]);
    home.provider(&provider.url(), "");
    let output = home.coyote(&["demo", "-m", "test:m"]).any_stderr().ok();
    assert!(
        output.stdout.contains("It has a guide."),
        "{}",
        output.stdout
    );
    let body = provider.asked()[0].body.to_string();
    assert!(body.contains("mcp_read_demo"), "{body}");
}

#[cfg(unix)]
#[test]
fn on_a_terminal_it_is_the_repl_in_dry_run_without_a_provider() {
    use crate::support::pty::Pty;
    let home = Home::new();
    let mut pty = Pty::spawn(&home, &["demo"], &[]);
    pty.wait("requests are shown instead of sent").wait("> ");
    pty.send("hello there\r");
    crate::support::eventually("the request is shown", || {
        String::from_utf8_lossy(&pty.raw())
            .contains("mcp_read_demo")
            .then_some(())
    });
    let prompt_is_back = |screen: &str| screen.trim_end().ends_with('>');
    pty.wait_for("the prompt is back", prompt_is_back);
    // The turn has waited for the server.
    pty.send(".mcp list\r").wait("running");
    pty.wait_for("the prompt is back", prompt_is_back);
    pty.send("\x04");
    assert_eq!(pty.exit_code(), 0);
    assert_eq!(std::fs::read_dir(home.config_dir()).unwrap().count(), 0);
}
