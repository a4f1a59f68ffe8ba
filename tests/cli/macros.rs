//! Macros, from the command line and in the REPL (`H-34`, `P-11`).

use serde_json::Value;

use crate::support::home::Home;
use crate::support::provider::{Provider, chat_text};

const STANDUP: &str = include_str!("../data/samples/macros/standup.yaml");

fn home(provider: &Provider) -> Home {
    let home = Home::new();
    home.provider(&provider.url(), "left_prompt: 'READY> '\nright_prompt: ''");
    home.config_file("macros/standup.yaml", STANDUP);
    home.config_file("roles/reviewer.md", "You review.");
    home
}

fn messages(provider: &Provider, request: usize) -> Value {
    provider.asked()[request].body["messages"].clone()
}

#[test]
fn a_macro_runs_from_the_command_line() {
    let provider = Provider::new(vec![chat_text("all of it"), chat_text("again")]);
    let home = home(&provider);
    let output = home
        .coyote(&["--macro", "standup", "monday", "Be", "short."])
        .ok();
    assert_eq!(output.stdout, "all of it\n");
    assert_eq!(
        messages(&provider, 0),
        serde_json::json!([
            { "role": "system", "content": "You review." },
            { "role": "user", "content": "Summarise the commits since monday. Be short." },
        ])
    );
    home.coyote(&["--macro", "standup"]).ok();
    let asked = messages(&provider, 1)[1]["content"].clone();
    assert_eq!(
        asked.as_str().unwrap().trim_end(),
        "Summarise the commits since yesterday."
    );
}

#[test]
fn what_is_wrong_with_a_macro_is_said_and_nothing_is_sent() {
    let provider = Provider::new(vec![]);
    let home = home(&provider);
    home.config_file(
        "macros/needs.yaml",
        "variables: [{name: what}]\nsteps: ['{{what}}']",
    );
    home.config_file("macros/disable.yaml", "steps: [x]");
    home.config_file("macros/broken.yaml", "steps: {a: b}");
    let output = home.coyote(&["--macro", "needs"]).fails(1);
    assert!(
        output.stderr.contains("`what` is missing"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("`--macro needs WHAT`"),
        "{}",
        output.stderr
    );
    let output = home.coyote(&["--macro", "neds"]).fails(1);
    assert!(
        output.stderr.contains("did you mean `needs`"),
        "{}",
        output.stderr
    );
    let output = home.coyote(&["--macro", "disable"]).fails(1);
    assert!(output.stderr.contains("reserved"), "{}", output.stderr);
    let output = home.coyote(&["--macro", "broken"]).fails(1);
    assert!(output.stderr.contains("broken.yaml:1"), "{}", output.stderr);
    home.coyote(&["--macro", "needs", "-c", "x"]).fails(2);
    home.coyote(&["--macro", "needs", "--list-roles"]).fails(2);
    assert!(provider.asked().is_empty());
    let output = home.coyote(&["--list-macros"]).ok();
    assert_eq!(output.stdout, "broken\ndisable\nneeds\nstandup\n");
}

#[cfg(unix)]
mod repl {
    use super::*;
    use crate::support::pty::Pty;

    fn tail(pty: &Pty) -> String {
        let screen = pty.screen();
        screen
            .rsplit("READY>")
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    #[test]
    fn macros_are_completed_run_and_listed() {
        let provider = Provider::new(vec![chat_text("the summary")]);
        let home = home(&provider);
        home.config_file("macros/prompt.yaml", "steps: [never]");
        let pty = Pty::spawn(&home, &[], &[]);
        pty.wait("READY>");
        // The lines may be broken where the terminal ends.
        let screen = pty.screen().replace('\n', "");
        assert_eq!(
            screen.matches("macro `prompt` does not run").count(),
            1,
            "{screen}"
        );
        assert!(
            screen.contains("prompt.yaml") && screen.contains("`.macro prompt` runs it"),
            "{screen}"
        );
        pty.send(".macro \t");
        pty.wait_for("both macros", |_| {
            let tail = tail(&pty);
            tail.contains("standup") && tail.contains("What did I do since a date?")
        });
        pty.send("\x03");
        pty.wait_for("an empty line", |screen| {
            screen.trim_end().ends_with("READY>")
        });
        pty.send(".stan\t");
        pty.wait_for("the name", |_| tail(&pty) == ".standup");
        pty.send("today what's new?\r").wait("the summary");
        let asked = messages(&provider, 0)[1]["content"].clone();
        assert_eq!(asked, "Summarise the commits since today. what's new?");
        pty.wait_for("an empty line", |screen| {
            screen.trim_end().ends_with("READY>")
        });
        pty.send(".list macros\r");
        pty.wait("standup [SINCE] [EXTRA...]")
            .wait("hidden by a command");
    }
}
