//! A world that does not cooperate: full devices, pipes where files belong.

use std::process::Stdio;

use crate::support::home::Home;
use crate::support::provider::{Provider, chat_text};

/// Runs with stdout on a device that takes nothing: the exit code and what stderr said.
fn on_a_full_device(home: &Home, args: &[&str]) -> (Option<i32>, String) {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_coyote"))
        .args(args)
        .env_clear()
        .envs(home.env())
        .current_dir(home.work_dir())
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_a_failure() {
    let home = Home::new();
    let provider = Provider::new(vec![chat_text("hi")]);
    home.provider(&provider.url(), "");
    for args in [
        &["x"][..],
        &["--info"],
        &["--list-tools"],
        &["--completions", "bash"],
    ] {
        let (code, stderr) = on_a_full_device(&home, args);
        assert_eq!(code, Some(1), "{args:?}: {stderr}");
        assert!(
            stderr.contains("error: cannot write the answer\n  caused by: No space left"),
            "{args:?}: {stderr}"
        );
    }
    for args in [&["--help"][..], &["--version"]] {
        assert_eq!(on_a_full_device(&home, args).0, Some(1), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_of_ours_is_not_waited_for() {
    let pipe = |path: &std::path::Path| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    for (file, args) in [
        ("mcp.json", &["--info"][..]),
        (".env", &["--info"]),
        ("config.yaml", &["--info"]),
        ("roles/x.md", &["-r", "x", "--dry-run", "hi"]),
        ("sessions/x.yaml", &["-s", "x", "--dry-run", "hi"]),
    ] {
        let home = Home::new();
        let path = home.config_dir().join(file);
        let _ = std::fs::remove_file(&path);
        pipe(&path);
        let output = home.coyote(args).fails(1);
        assert!(
            output.stderr.contains(file) && output.stderr.contains("it is a pipe or a socket"),
            "{}",
            output.stderr
        );
    }
}
