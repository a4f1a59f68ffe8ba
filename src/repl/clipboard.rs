//! `.copy`: text to the clipboard, by the desktop's own program or, where there is none, by asking the terminal
//! (OSC 52, which also works through ssh).

use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use tokio::io::AsyncWriteExt as _;

use crate::utils::{Error, Result};

/// How long a clipboard program may take; a display server that hangs must not hang the loop.
const LIMIT: Duration = Duration::from_secs(2);

/// What most terminals take in one OSC 52 sequence, base64 included.
const TERMINAL_BYTES: usize = 74_994;

type Program = &'static [&'static str];

/// Writes to the terminal as it stands.
pub type Terminal<'a> = dyn Fn(&[u8]) + Send + Sync + 'a;

/// The programs worth trying on this machine, best first.
fn programs(env: &dyn Fn(&str) -> Option<String>) -> Vec<Program> {
    if cfg!(target_os = "macos") {
        return vec![&["pbcopy"]];
    }
    if cfg!(windows) {
        return vec![&["clip"]];
    }
    let mut programs: Vec<Program> = Vec::new();
    if env("WAYLAND_DISPLAY").is_some() {
        programs.push(&["wl-copy"]);
    }
    if env("DISPLAY").is_some() {
        programs.push(&["xclip", "-selection", "clipboard"]);
        programs.push(&["xsel", "--clipboard", "--input"]);
    }
    if env("TERMUX_VERSION").is_some() {
        programs.push(&["termux-clipboard-set"]);
    }
    programs
}

/// The sequence that makes a terminal put `text` into the clipboard; `None` when it is too long for that.
fn terminal_sequence(text: &str) -> Option<String> {
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    (encoded.len() <= TERMINAL_BYTES).then(|| format!("\u{1b}]52;c;{encoded}\u{7}"))
}

/// Copies `text`. `terminal` writes a sequence to the terminal, when there is one.
pub async fn copy(
    text: &str,
    env: &(dyn Fn(&str) -> Option<String> + Send + Sync),
    terminal: Option<&Terminal<'_>>,
) -> Result<()> {
    for program in programs(&|name| env(name)) {
        if pipe(program, text).await {
            return Ok(());
        }
    }
    let Some(terminal) = terminal else {
        return Err(nothing_to_copy_with("there is no clipboard program"));
    };
    match terminal_sequence(text) {
        Some(sequence) => {
            terminal(sequence.as_bytes());
            Ok(())
        }
        None => Err(nothing_to_copy_with(
            "the answer is too long for the terminal's clipboard, and there is no clipboard program",
        )),
    }
}

fn nothing_to_copy_with(why: &str) -> Error {
    Error::user(why).hint("install `wl-copy`, `xclip` or `xsel`")
}

/// Whether `program` took the text.
async fn pipe(program: Program, text: &str) -> bool {
    let Some((name, arguments)) = program.split_first() else {
        return false;
    };
    let spawned = tokio::process::Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let Ok(mut child) = spawned else {
        return false;
    };
    let work = async {
        let mut stdin = child.stdin.take()?;
        stdin.write_all(text.as_bytes()).await.ok()?;
        drop(stdin);
        child.wait().await.ok()
    };
    let status = tokio::time::timeout(LIMIT, work).await;
    matches!(status, Ok(Some(status)) if status.success())
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    #[cfg(all(unix, not(target_os = "macos")))]
    fn programs_follow_the_desktop() {
        let with = |set: &'static [&'static str]| {
            programs(&|name| set.contains(&name).then(|| "x".to_owned()))
                .into_iter()
                .map(|program| program[0])
                .collect::<Vec<_>>()
        };
        assert_eq!(with(&[]), Vec::<&str>::new());
        assert_eq!(with(&["DISPLAY"]), ["xclip", "xsel"]);
        assert_eq!(
            with(&["DISPLAY", "WAYLAND_DISPLAY"]),
            ["wl-copy", "xclip", "xsel"]
        );
    }

    #[tokio::test]
    #[cfg(all(unix, not(target_os = "macos")))]
    async fn without_a_program_the_terminal_is_asked() {
        let written = Mutex::new(Vec::new());
        let terminal = |bytes: &[u8]| written.lock().extend_from_slice(bytes);
        copy("naïve", &|_| None, Some(&terminal)).await.unwrap();
        assert_eq!(written.lock().as_slice(), b"\x1b]52;c;bmHDr3Zl\x07");
        let error = copy("text", &|_| None, None).await.unwrap_err();
        assert!(error.hints()[0].starts_with("install"));
        let error = copy(&"x".repeat(80_000), &|_| None, Some(&terminal))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("too long"));
    }
}
