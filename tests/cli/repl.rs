//! The REPL in a real pseudo-terminal.
#![cfg(unix)]

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::home::Home;
use crate::support::provider::{
    self, Piece, Provider, Reply, chat_calls, chat_text, delta, finish,
};
use crate::support::pty::Pty;

const PROMPT: &str = "left_prompt: 'READY> '\nright_prompt: ''";

/// A REPL at its first prompt.
struct Repl {
    provider: Provider,
    home: Home,
    pty: Pty,
}

fn repl_with(script: Vec<Reply>, more: &str, args: &[&str], prepare: impl FnOnce(&Home)) -> Repl {
    let provider = Provider::new(script);
    let home = Home::new();
    home.provider(&provider.url(), &format!("{PROMPT}\n{more}"));
    prepare(&home);
    let pty = Pty::spawn(&home, args, &[]);
    pty.wait("READY>");
    Repl {
        provider,
        home,
        pty,
    }
}

fn repl(script: Vec<Reply>, more: &str) -> Repl {
    repl_with(script, more, &[], |_| {})
}

impl Repl {
    #[track_caller]
    fn body(&self, request: usize) -> Value {
        eventually("the request arrives", || {
            self.provider
                .asked()
                .get(request)
                .map(|asked| asked.body.clone())
        })
    }

    /// The content of the last message of a request.
    #[track_caller]
    fn last(&self, request: usize) -> Value {
        let body = self.body(request);
        body["messages"].as_array().unwrap().last().unwrap()["content"].clone()
    }

    /// Ctrl-D at the prompt: typed any earlier it would be the terminal's own end of file.
    #[track_caller]
    fn leave(mut self) {
        self.pty
            .wait_for("the prompt", |screen| screen.trim_end().ends_with("READY>"));
        self.pty.send("\x04");
        assert_eq!(self.pty.exit_code(), 0);
    }
}

/// A stream that says `text` and then waits for its gate.
fn held(text: &str, rest: Vec<Piece>) -> (std::sync::mpsc::Sender<()>, Reply) {
    let (open, shut) = provider::gate();
    let mut pieces = vec![delta(&json!({ "content": text })), shut];
    pieces.extend(rest);
    (open, Reply::Stream { pieces, cut: false })
}

/// How often the prompt stands on the screen.
fn prompts(screen: &str) -> usize {
    screen.matches("READY>").count()
}

#[test]
fn an_answer_streams_and_the_prompt_comes_back() {
    let (open, reply) = held(
        "first line\nsecond",
        vec![delta(&json!({ "content": " half" }))]
            .into_iter()
            .chain(finish("stop"))
            .collect(),
    );
    let repl = repl(vec![reply], "");
    repl.pty.send("hello\r").wait("first line");
    open.send(()).unwrap();
    repl.pty
        .wait("second half")
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    assert_eq!(repl.last(0), "hello");
    repl.leave();
}

#[test]
fn a_tool_call_is_one_line() {
    let repl = repl(
        vec![
            chat_calls(&[("c1", "fs_ls", json!({ "path": "." }))]),
            chat_text("empty"),
        ],
        "enabled_tools: all",
    );
    repl.pty.send("what is here?\r").wait("empty");
    let screen = repl.pty.screen();
    let line = screen
        .lines()
        .find(|line| line.contains("fs_ls"))
        .unwrap_or_else(|| panic!("{screen}"));
    assert!(line.contains('✓'), "{line}");
    repl.leave();
}

#[test]
fn tab_offers_commands_with_descriptions() {
    let repl = repl(vec![], "");
    repl.pty.send(".se\t");
    let help = coyote::repl::command_help(".session").unwrap();
    let start = help
        .split_whitespace()
        .take(3)
        .collect::<Vec<_>>()
        .join(" ");
    repl.pty.wait(".session").wait(&start);
    repl.pty.send("\x03\x15");
    repl.leave();
}

#[test]
fn tab_after_text_beyond_ascii_is_harmless() {
    let repl = repl(vec![chat_text("fine")], "");
    repl.pty.send(".é\t").send("\x03").wait(".exit");
    repl.pty.send(".file naïve.txt -- sum\r").wait("naïve.txt");
    repl.pty.send("日本 😀 é\t\r").wait("fine");
    assert_eq!(repl.last(0), "日本 😀 é");
    repl.leave();
}

#[test]
fn many_lines_between_colons_are_one_message() {
    let repl = repl(vec![chat_text("ok then")], "");
    repl.pty
        .send(":::\r")
        .send("first\r")
        .send("second\r")
        .send(":::\r")
        .wait("ok then");
    assert_eq!(repl.last(0), "first\nsecond");
    repl.leave();
}

#[test]
fn a_pasted_newline_does_not_submit() {
    let repl = repl(vec![chat_text("ok then")], "");
    repl.pty.send("\x1b[200~one\ntwo\x1b[201~").wait("two");
    assert!(repl.provider.asked().is_empty(), "nothing was sent");
    repl.pty.send("\r").wait("ok then");
    assert_eq!(repl.last(0), "one\ntwo");
    repl.leave();
}

#[test]
fn ctrl_c_keeps_what_was_said() {
    let (_open, reply) = held("the first half", vec![]);
    let repl = repl(vec![reply, chat_text("the rest")], "");
    // The word that may still grow is held back until it is complete.
    repl.pty.send("talk\r").wait("the first").send("\x03");
    repl.pty
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    eventually("the connection is closed", || {
        (repl.provider.hung_up() == 1).then_some(())
    });
    repl.pty.send(".info session\r");
    repl.pty.send("go on\r").wait("the rest");
    repl.leave();
}

#[test]
fn ctrl_c_keeps_what_was_said_in_the_session() {
    let (_open, reply) = held("the first half", vec![]);
    let repl = repl_with(
        vec![reply, chat_text("the rest")],
        "save_session: true",
        &["-s", "kept"],
        |_| {},
    );
    // The word that may still grow is held back until it is complete.
    repl.pty.send("talk\r").wait("the first").send("\x03");
    repl.pty
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    repl.pty.send("go on\r").wait("the rest");
    let messages = repl.body(1)["messages"].clone();
    assert_eq!(
        messages,
        json!([
            { "role": "user", "content": "talk" },
            { "role": "assistant", "content": "the first half" },
            { "role": "user", "content": "go on" },
        ])
    );
    repl.leave();
}

#[test]
fn ctrl_c_at_the_prompt_says_how_to_leave() {
    let repl = repl(vec![], "");
    repl.pty.send("\x03").wait(".exit");
    repl.leave();
}

#[test]
fn the_arrow_brings_back_the_last_line() {
    let repl = repl(vec![chat_text("one"), chat_text("two")], "");
    repl.pty
        .send("say it\r")
        .wait("one")
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    repl.pty
        .send("\x1b[A")
        .wait_for("the line", |screen| screen.matches("say it").count() == 2);
    repl.pty.send("\r").wait("two");
    assert_eq!(repl.last(1), "say it");
    use std::os::unix::fs::PermissionsExt as _;
    let history = repl.home.cache_dir().join("repl-history");
    assert_eq!(
        std::fs::metadata(&history).unwrap().permissions().mode() & 0o777,
        0o700
    );
    for entry in std::fs::read_dir(history).unwrap() {
        assert_eq!(
            entry.unwrap().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    repl.leave();
}

#[test]
fn help_lists_every_command() {
    let repl = repl(vec![], "");
    repl.pty.send(".help\r");
    for name in coyote::repl::command_names() {
        eventually(name, || {
            String::from_utf8_lossy(&repl.pty.raw())
                .contains(name)
                .then_some(())
        });
    }
    repl.leave();
}

#[test]
fn an_unknown_command_names_its_neighbour_and_is_not_sent() {
    let repl = repl(vec![], "");
    repl.pty.send(".sesion\r").wait(".session");
    assert!(repl.provider.asked().is_empty());
    repl.leave();
}

#[test]
fn a_session_with_tool_rounds_resumes() {
    let script = vec![
        chat_calls(&[
            ("c1", "fs_ls", json!({ "path": "." })),
            ("c2", "get_current_time", json!({})),
        ]),
        chat_text("two answers"),
        chat_text("three answers"),
    ];
    let repl = repl_with(
        script,
        "save_session: true\nenabled_tools: all",
        &["-s", "rounds"],
        |_| {},
    );
    repl.pty
        .send("go\r")
        .wait("two answers")
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    let before = repl.body(1)["messages"].clone();
    let mut pty = repl.pty;
    pty.send("\x04");
    assert_eq!(pty.exit_code(), 0);
    let pty = Pty::spawn(&repl.home, &["-s", "rounds"], &[]);
    pty.wait("READY>").send("more\r").wait("three answers");
    let after = repl.provider.asked()[2].body["messages"].clone();
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(
        after[before.len()],
        json!({ "role": "assistant", "content": "two answers" })
    );
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let command = json!({ "command": "touch pwned" });
    let call = chat_call_pieces("c1", "execute_command", &command);
    let (open, reply) = held("let me see\n", call);
    let repl = repl(vec![reply, chat_text("as you wish")], "enabled_tools: all");
    repl.pty.send("go\r").wait("let me see");
    repl.pty.send("y\r");
    // The terminal has the keys before the question exists.
    eventually("the request is out", || {
        (repl.provider.asked().len() == 1).then_some(())
    });
    open.send(()).unwrap();
    repl.pty.wait("touch pwned");
    repl.pty.wait("Allow?");
    assert!(!repl.home.work_dir().join("pwned").exists());
    repl.pty.send("n\r").wait("as you wish");
    assert!(!repl.home.work_dir().join("pwned").exists());
    let answer = repl.last(1);
    assert!(
        answer.as_str().unwrap().contains("tool_call_error"),
        "{answer}"
    );
    repl.leave();
}

fn chat_call_pieces(id: &str, name: &str, arguments: &Value) -> Vec<Piece> {
    match chat_calls(&[(id, name, arguments.clone())]) {
        Reply::Stream { pieces, .. } => pieces,
        Reply::Full { .. } => unreachable!("calls are streamed"),
    }
}

#[test]
fn a_question_answered_yes_runs_the_tool() {
    let repl = repl(
        vec![
            chat_calls(&[("c1", "execute_command", json!({ "command": "touch made" }))]),
            chat_text("made it"),
        ],
        "enabled_tools: all",
    );
    repl.pty.send("go\r").wait("touch made");
    repl.pty.wait("Allow?");
    repl.pty.send("y\r").wait("made it");
    assert!(repl.home.work_dir().join("made").exists());
    repl.leave();
}

#[test]
fn a_tiny_window_is_no_reason_to_panic() {
    for size in [(5, 2), (1, 1), (2, 30)] {
        let provider = Provider::new(vec![]);
        let home = Home::new();
        home.provider(&provider.url(), "");
        let mut pty = Pty::spawn_sized(&home, &[], &[], size);
        eventually("the line editor asks for keys", || {
            let raw = pty.raw();
            raw.windows(8)
                .any(|window| window == b"\x1b[?2004h")
                .then_some(())
        });
        pty.send("\x04");
        let code = pty.exit_code();
        let written = String::from_utf8_lossy(&pty.raw()).into_owned();
        assert_eq!(code, 0, "{size:?}: {written}");
    }
}

#[test]
fn ctrl_c_at_a_question_stops_the_turn() {
    let repl = repl(
        vec![
            chat_calls(&[("c1", "execute_command", json!({ "command": "touch made" }))]),
            chat_text("never said"),
        ],
        "enabled_tools: all",
    );
    repl.pty.send("go\r").wait("Allow?").send("\x03");
    repl.pty
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    assert_eq!(repl.provider.asked().len(), 1, "nothing more was asked");
    assert!(!repl.home.work_dir().join("made").exists());
    repl.leave();
}

#[test]
fn a_provider_error_leaves_everything_usable() {
    let repl = repl(
        vec![
            provider::status(400, "{\"error\":{\"message\":\"no such thing\"}}"),
            chat_text("better"),
        ],
        "",
    );
    repl.pty
        .send("first\r")
        .wait("no such thing")
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    repl.pty.send("second\r").wait("better");
    repl.leave();
}

#[test]
fn the_prompt_does_not_wait_for_servers() {
    let repl = repl_with(vec![chat_text("no matter")], "", &[], |home| {
        home.servers(&[("stuck", std::path::Path::new("sleep"), &["600"])]);
    });
    repl.pty.send(".info mcp\r").wait("stuck");
    repl.leave();
}

/// Ctrl-Z and `fg` in the middle of an answer: the shell leaves the terminal as it likes it.
#[test]
fn an_answer_that_goes_on_after_a_stop_is_quiet_again() {
    use nix::sys::signal::{Signal, kill};
    use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};
    let (open, reply) = held("the first half", finish("stop"));
    let repl = repl(vec![reply], "");
    let terminal = repl.pty.terminal();
    let echoes = || {
        let modes = tcgetattr(&terminal).unwrap();
        modes.local_flags.contains(LocalFlags::ECHO)
    };
    repl.pty.send("talk\r").wait("the first");
    assert!(!echoes());
    let pid = nix::unistd::Pid::from_raw(i32::try_from(repl.pty.pid()).unwrap());
    kill(pid, Signal::SIGSTOP).unwrap();
    let mut modes = tcgetattr(&terminal).unwrap();
    modes
        .local_flags
        .insert(LocalFlags::ECHO | LocalFlags::ICANON);
    tcsetattr(&terminal, SetArg::TCSANOW, &modes).unwrap();
    assert!(echoes());
    kill(pid, Signal::SIGCONT).unwrap();
    eventually("the terminal is quiet again", || (!echoes()).then_some(()));
    open.send(()).unwrap();
    repl.pty
        .wait_for("the next prompt", |screen| prompts(screen) == 2);
    drop(terminal);
    repl.leave();
}

#[test]
fn signals_leave_cleanly() {
    use nix::sys::signal::{Signal, kill};
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ] {
        let mut repl = repl(vec![], "");
        kill(
            nix::unistd::Pid::from_raw(i32::try_from(repl.pty.pid()).unwrap()),
            signal,
        )
        .unwrap();
        assert_eq!(repl.pty.exit_code(), code);
        // What was written last may still be on its way through the terminal.
        crate::support::eventually("bracketed paste is off again", || {
            let written = repl.pty.raw();
            let find = |needle: &[u8]| {
                written
                    .windows(needle.len())
                    .rposition(|window| window == needle)
            };
            let on = find(b"\x1b[?2004h");
            (on.is_none() || find(b"\x1b[?2004l") > on).then_some(())
        });
    }
}

/// The terminal's end is noticed without the signal that usually tells of it.
#[test]
fn a_terminal_that_disappears_without_a_signal_ends_it() {
    let home = Home::new();
    home.provider("http://127.0.0.1:1", PROMPT);
    let mut pty = Pty::spawn_uncontrolled(&home);
    pty.wait("READY>");
    pty.hang_up();
    assert_eq!(pty.exit_code(), 129);
}

#[test]
fn a_shell_command_runs_in_the_terminal() {
    let repl = repl(vec![], "");
    repl.pty
        .send("!echo from the $((40+2))nd shell\r")
        .wait("from the 42nd shell");
    assert!(repl.provider.asked().is_empty());
    repl.leave();
}
