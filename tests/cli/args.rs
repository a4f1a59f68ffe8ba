//! The command line itself: usage errors, versions, help, completion, places (`H-01`..`H-06`, `H-10`).

use serde_json::Value;

use crate::support::home::Home;

#[test]
fn an_empty_list_of_models_is_explained_beside_stdout() {
    let home = Home::new();
    let output = home.coyote(&["--list-models"]).any_stderr().ok();
    assert_eq!(output.stdout, "");
    assert!(
        output.stderr.contains("no models are configured"),
        "{}",
        output.stderr
    );
    let output = home.coyote(&["--list-models", "--json"]).ok();
    assert_eq!(output.stdout, "[]\n");
    assert_eq!(output.stderr, "");
}

#[test]
fn the_version_goes_to_stdout_and_reads_nothing() {
    let home = Home::new();
    // A configuration that could not be read would fail everything else.
    home.config_file("config.yaml", ": : :");
    let output = home.coyote(&["--version"]).ok();
    assert_eq!(
        output.stdout,
        format!("coyote {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(!home.cache_dir().exists());
}

#[test]
fn an_unknown_option_is_a_usage_error_with_the_nearest_name() {
    let home = Home::new();
    for args in [&["--modle", "x", "hi"][..], &["hi", "--modle", "x"]] {
        let output = home.coyote(args).fails(2);
        assert_eq!(output.stdout, "");
        assert!(output.stderr.contains("--model"), "{}", output.stderr);
    }
    for args in [&["mcp"][..], &["mcp", "prompt", "s"], &["-c", "-e", "x"]] {
        home.coyote(args).fails(2);
    }
}

#[test]
fn help_lists_what_there_is() {
    let home = Home::new();
    let help = home.coyote(&["--help"]).ok().stdout;
    for word in [
        "--model",
        "--role",
        "--session",
        "--file",
        "--code",
        "--execute",
        "--no-stream",
        "--dry-run",
        "--no-workspace-mcp",
        "--yes",
        "--info",
        "--list-models",
        "--list-roles",
        "--list-sessions",
        "--list-mcp-servers",
        "--list-tools",
        "--json",
        "--completions",
        "--agent",
        "--agent-variable",
        "--list-agents",
        "--macro",
        "--list-macros",
        "mcp",
        "demo",
    ] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
    assert!(!help.contains("demo-server"), "it is hidden:\n{help}");
    let help = home.coyote(&["mcp", "--help"]).ok().stdout;
    for verb in [
        "servers",
        "tools",
        "resources",
        "templates",
        "prompts",
        "prompt ",
        "search",
        "describe",
        "call",
        "read",
        "ping",
    ] {
        assert!(help.contains(verb), "{verb} is missing:\n{help}");
    }
}

#[test]
fn the_repl_needs_a_terminal() {
    let output = Home::new().coyote(&[]).fails(1);
    assert!(output.stderr.contains("terminal"), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}

#[test]
fn a_chat_without_a_model_names_the_three_ways_to_get_one() {
    let output = Home::new().coyote(&["hello"]).fails(1);
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    assert!(
        output.stderr.matches("hint: ").count() >= 3,
        "{}",
        output.stderr
    );
}

#[test]
fn info_prints_every_place_and_no_secret() {
    let home = Home::new();
    home.provider("http://127.0.0.1:9/v1", "");
    home.config_file(
        "mcp.json",
        r#"{"mcpServers":{"docs":{"url":"http://127.0.0.1:9/mcp","headers":{"Authorization":"Bearer t0psecret"}}}}"#,
    );
    for args in [&["--info"][..], &["--info", "--json"]] {
        let output = home
            .coyote(args)
            .env("OPENAI_API_KEY", "sk-verysecretvalue123")
            .ok();
        for place in [
            "config.yaml",
            ".env",
            "mcp.json",
            "roles",
            "sessions",
            "functions",
            "coyote.log",
            "repl-history",
            "mcp-resources",
        ] {
            assert!(
                output.stdout.contains(place),
                "{place} is missing:\n{}",
                output.stdout
            );
        }
        for secret in ["k-test", "t0psecret", "verysecret"] {
            assert!(!output.stdout.contains(secret), "{}", output.stdout);
        }
    }
    let json: Value =
        serde_json::from_str(&home.coyote(&["--info", "--json"]).ok().stdout).unwrap();
    assert_eq!(
        json["files"]["config_dir"],
        home.config_dir().display().to_string()
    );
    assert_eq!(json["now"]["model"], "test:m");
}

#[test]
fn lists_name_what_is_configured_and_start_nothing() {
    let home = Home::new();
    home.provider("http://127.0.0.1:9/v1", "");
    home.config_file("roles/poet.md", "You rhyme.");
    home.config_file("sessions/monday.yaml", "model: test:m\nmessages: []\n");
    let witness = home.path().join("started");
    home.config_file(
        "mcp.json",
        &serde_json::json!({ "mcpServers": { "witness": { "command": "sh", "args": ["-c", format!("touch '{}'", witness.display())] } } }).to_string(),
    );
    let lines = |args: &[&str]| -> Vec<String> {
        home.coyote(args)
            .ok()
            .stdout
            .lines()
            .map(str::to_owned)
            .collect()
    };
    assert!(lines(&["--list-models"]).contains(&"test:m".to_owned()));
    let roles = lines(&["--list-roles"]);
    assert!(
        roles.contains(&"poet".to_owned()) && roles.contains(&"shell".to_owned()),
        "{roles:?}"
    );
    assert_eq!(lines(&["--list-sessions"]), ["monday"]);
    assert_eq!(lines(&["--list-mcp-servers"]), ["witness"]);
    let tools = lines(&["--list-tools"]);
    assert!(tools.contains(&"fs_cat".to_owned()), "{tools:?}");
    assert!(
        tools.iter().all(|tool| !tool.starts_with("mcp_")),
        "{tools:?}"
    );
    let json: Value =
        serde_json::from_str(&home.coyote(&["--list-mcp-servers", "--json"]).ok().stdout).unwrap();
    assert_eq!(json, serde_json::json!(["witness"]));
    home.coyote(&["--info"]).ok();
    assert!(!witness.exists(), "a listing started a server");
}

#[test]
fn completion_scripts_call_back_and_names_come_from_files() {
    let home = Home::new();
    home.config_file("roles/poet.md", "You rhyme.");
    home.config_file("sessions/monday.yaml", "messages: []\n");
    home.provider("http://127.0.0.1:9/v1", "");
    home.config_file(
        "mcp.json",
        r#"{"mcpServers":{"docs":{"command":"/nowhere"}}}"#,
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.coyote(&["--completions", shell]).ok().stdout;
        assert!(script.contains("COMPLETE"), "{shell}: {script}");
        assert_eq!(
            script,
            home.coyote(&[]).env("COMPLETE", shell).ok().stdout,
            "{shell}"
        );
    }
    home.coyote(&["--completions", "tcsh"]).fails(2);
    let offered = |words: &[&str]| {
        let mut args = vec!["--", "coyote"];
        args.extend_from_slice(words);
        home.coyote(&args).env("COMPLETE", "fish").ok().stdout
    };
    assert!(offered(&["--role", "p"]).contains("poet"));
    assert!(!offered(&["--role", "p"]).contains("monday"));
    assert!(offered(&["--session", ""]).contains("monday"));
    assert!(offered(&["-m", ""]).contains("test:m"));
    assert!(offered(&["mcp", "read", ""]).contains("docs"));
    assert!(offered(&["--l"]).contains("--list-macros"));
}

#[test]
fn stdin_is_appended_and_a_closed_pipe_ends_quietly() {
    use crate::support::provider::{Provider, chat_text};
    let home = Home::new();
    let provider = Provider::new(vec![chat_text("hi")]);
    home.provider(&provider.url(), "stream: true");
    let output = home
        .coyote(&["what", "is", "this"])
        .stdin("line one\nline two\n")
        .ok();
    assert_eq!(output.stdout, "hi\n");
    let asked = provider.asked();
    let content = &asked[0].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()["content"];
    assert!(
        content
            .to_string()
            .contains(r"what is this\n\nline one\nline two"),
        "{content}"
    );
}

#[test]
fn code_only_prints_the_code() {
    use crate::support::provider::{Provider, chat_text};
    let home = Home::new();
    let provider = Provider::new(vec![chat_text("Here:\n```sh\nls -l\n```\nDone.")]);
    home.provider(&provider.url(), "");
    assert_eq!(home.coyote(&["-c", "list files"]).ok().stdout, "ls -l\n");
}

#[test]
fn a_dry_run_shows_the_request_and_sends_nothing() {
    use crate::support::provider::Provider;
    let home = Home::new();
    let provider = Provider::new(vec![]);
    home.provider(&provider.url(), "");
    let output = home
        .coyote(&["--dry-run", "remember the milk"])
        .any_stderr()
        .ok();
    assert!(
        output.stdout.contains("remember the milk"),
        "{}",
        output.stdout
    );
    assert!(provider.asked().is_empty());
}

#[cfg(unix)]
#[test]
fn the_log_is_private_names_the_server_and_holds_no_secret() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let script = "echo \"the token is $MY_TOKEN and $HOME_API_KEY\" >&2; exit 3";
    home.config_file(
        "mcp.json",
        &serde_json::json!({ "mcpServers": { "chatty": {
            "command": "/bin/sh", "args": ["-c", script], "env": { "MY_TOKEN": "hush-hush-1" },
        } } })
        .to_string(),
    );
    for level in ["warn", "info", "trace"] {
        let output = home
            .coyote(&["mcp", "tools"])
            .env("HOME_API_KEY", "hush-hush-2")
            .env("COYOTE_LOG_LEVEL", level)
            .output();
        assert_eq!(output.code, Some(1));
        assert_eq!(output.stdout, "");
    }
    let file = home.cache_dir().join("coyote.log");
    let log = std::fs::read_to_string(&file).unwrap();
    assert!(
        log.contains("chatty") && log.contains("the token is"),
        "{log}"
    );
    assert!(!log.contains("hush-hush"), "{log}");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    home.coyote(&["--info"])
        .env("COYOTE_LOG_LEVEL", "loud")
        .any_stderr()
        .ok();
}

#[cfg(unix)]
mod signals {
    use std::io::Read as _;
    use std::path::Path;

    use nix::sys::signal::Signal;

    use crate::support::eventually;
    use crate::support::home::Home;
    use crate::support::provider::{Piece, Provider, Reply, gate};
    use crate::support::run::{finish, signal};

    /// A server that writes its process id and never answers, not even to being told to go.
    fn deaf_server(home: &Home) -> std::path::PathBuf {
        let pid = home.path().join("pid");
        let script = format!(
            "trap '' TERM; echo $$ > '{}'; while :; do sleep 1; done",
            pid.display()
        );
        home.servers(&[("deaf", Path::new("/bin/sh"), &["-c", &script])]);
        pid
    }

    fn is_alive(pid: &str) -> bool {
        let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
        nix::sys::signal::kill(pid, None).is_ok()
    }

    fn written(path: &Path) -> String {
        eventually("the server starts", || {
            std::fs::read_to_string(path)
                .ok()
                .filter(|text| text.ends_with('\n'))
        })
    }

    #[test]
    fn each_signal_ends_with_its_own_code_and_no_server_survives() {
        for (sent, code) in [
            (Signal::SIGINT, 130),
            (Signal::SIGTERM, 143),
            (Signal::SIGHUP, 129),
        ] {
            let home = Home::new();
            let pid = deaf_server(&home);
            let child = home.coyote(&["mcp", "tools"]).spawn();
            let pid = written(&pid);
            signal(&child, sent);
            let output = finish(child);
            assert_eq!(output.code, Some(code), "{sent}: {}", output.stderr);
            assert_eq!(output.stdout, "");
            eventually("the server is gone", || (!is_alive(&pid)).then_some(()));
        }
    }

    #[test]
    fn a_second_interrupt_leaves_at_once_and_no_server_survives() {
        let home = Home::new();
        let pid = deaf_server(&home);
        let child = home.coyote(&["mcp", "tools"]).spawn();
        let pid = written(&pid);
        signal(&child, Signal::SIGINT);
        signal(&child, Signal::SIGINT);
        assert_eq!(finish(child).code, Some(130));
        eventually("the server is gone", || (!is_alive(&pid)).then_some(()));
    }

    #[test]
    fn an_interrupt_in_the_middle_of_an_answer_exits_130_and_hangs_up() {
        let home = Home::new();
        let (_open, gate) = gate();
        let first = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"partial\"}}]}\n\n";
        let provider = Provider::new(vec![Reply::Stream {
            pieces: vec![Piece::Bytes(first.into()), gate],
            cut: true,
        }]);
        home.provider(&provider.url(), "");
        let mut child = home.coyote(&["talk"]).spawn();
        drop(child.stdin.take());
        let mut seen = [0; 7];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut seen)
            .unwrap();
        assert_eq!(&seen, b"partial");
        signal(&child, Signal::SIGINT);
        assert_eq!(finish(child).code, Some(130));
        eventually("the request is cancelled", || {
            (provider.hung_up() > 0).then_some(())
        });
    }

    #[test]
    fn nobody_reading_stdout_is_no_failure() {
        let home = Home::new();
        let mut child = home.coyote(&["demo"]).spawn();
        drop(child.stdin.take());
        drop(child.stdout.take());
        let output = finish(child);
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    }
}

/// `-e` in a terminal: the model suggests, the person decides.
#[cfg(unix)]
mod execute {
    use crate::support::eventually;
    use crate::support::home::Home;
    use crate::support::provider::{Provider, chat_text};
    use crate::support::pty::Pty;

    fn start(answers: &[&str]) -> (Home, Provider, Pty) {
        let home = Home::new();
        let provider = Provider::new(answers.iter().map(|answer| chat_text(answer)).collect());
        home.provider(&provider.url(), "");
        let pty = Pty::spawn(&home, &["-e", "make a file"], &[]);
        (home, provider, pty)
    }

    #[test]
    fn the_command_runs_when_chosen_and_not_before() {
        let (home, _provider, mut pty) = start(&["```sh\necho made > made.txt\n```"]);
        pty.wait("describe");
        let file = home.work_dir().join("made.txt");
        assert!(!file.exists());
        pty.send("\r");
        assert_eq!(pty.exit_code(), 0);
        assert_eq!(std::fs::read_to_string(file).unwrap(), "made\n");
    }

    #[test]
    fn a_failing_command_is_a_failure() {
        let (_home, _provider, mut pty) = start(&["exit 3"]);
        pty.wait("describe").send("\r");
        assert_eq!(pty.exit_code(), 1);
        assert!(
            pty.screen().contains("the command failed"),
            "{}",
            pty.screen()
        );
    }

    #[test]
    fn describing_asks_again_and_revising_says_what_was_wrong() {
        let (home, provider, mut pty) =
            start(&["touch first.txt", "It makes a file.", "touch second.txt"]);
        // The list reads: run, revise, describe, copy, quit.
        pty.wait("describe").send("\x1b[B\x1b[B\r");
        pty.wait("It makes a file.");
        eventually("the choice is offered again", || {
            (pty.screen().matches("quit").count() >= 1 && provider.asked().len() == 2).then_some(())
        });
        pty.wait_for("the list is back", |screen| {
            screen
                .split("It makes a file.")
                .last()
                .is_some_and(|after| after.contains("revise"))
        });
        pty.send("\x1b[B\r")
            .wait("different")
            .send("call it second\r");
        pty.wait_for("the new command", |screen| {
            screen.contains("second.txt")
                && screen
                    .split("second.txt")
                    .last()
                    .is_some_and(|after| after.contains("quit"))
        });
        let asked = provider.asked();
        assert!(
            asked[2].body.to_string().contains("call it second"),
            "{}",
            asked[2].body
        );
        assert!(
            !asked[2].body.to_string().contains("It makes a file."),
            "{}",
            asked[2].body
        );
        pty.send("\x1b[A\r");
        assert_eq!(pty.exit_code(), 0);
        assert!(!home.work_dir().join("first.txt").exists());
        assert!(!home.work_dir().join("second.txt").exists());
    }

    #[test]
    fn leaving_runs_nothing() {
        for keys in ["\x1b", "\x03"] {
            let (home, _provider, mut pty) = start(&["touch made.txt"]);
            pty.wait("describe").send(keys);
            pty.exit_code();
            assert!(!home.work_dir().join("made.txt").exists());
        }
    }

    #[test]
    fn without_a_terminal_the_command_is_printed() {
        let home = Home::new();
        let provider = Provider::new(vec![chat_text("```\nls -l\n```")]);
        home.provider(&provider.url(), "");
        assert_eq!(home.coyote(&["-e", "list files"]).ok().stdout, "ls -l\n");
    }
}
