use std::io::Write;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::chat::Progress;

/// Both streams of a `Ui`, readable.
#[derive(Clone, Default)]
struct Tape {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

struct End(Arc<Mutex<Vec<u8>>>);

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Tape {
    fn ui(&self, options: RenderOptions) -> Arc<Ui> {
        let (out, err) = (End(self.out.clone()), End(self.err.clone()));
        Ui::with_streams(options, Box::new(out), Box::new(err))
    }

    /// One screen: both streams write to the same place, as on a terminal.
    fn screen() -> Self {
        let both = Arc::new(Mutex::default());
        Self {
            out: Arc::clone(&both),
            err: both,
        }
    }

    fn out(&self) -> String {
        String::from_utf8(self.out.lock().clone()).unwrap()
    }

    fn err(&self) -> String {
        String::from_utf8(self.err.lock().clone()).unwrap()
    }

    fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.err().contains(text) {
            assert!(
                Instant::now() < deadline,
                "`{text}` is not in {:?}",
                self.err()
            );
            std::thread::yield_now();
        }
    }
}

fn terminal() -> RenderOptions {
    RenderOptions {
        highlight: true,
        stdin_is_terminal: true,
        stdout_is_terminal: true,
        stderr_is_terminal: true,
        no_color: false,
        width: Some(60),
        ..RenderOptions::plain()
    }
}

fn id(id: &str) -> CallId {
    CallId(id.to_owned())
}

fn finished(name: &str) -> Notice {
    Notice::ToolFinished {
        id: id("1"),
        name: name.to_owned(),
        arguments: "{\"a\":1}".to_owned(),
        ok: true,
        elapsed: Duration::from_millis(5),
        bytes: 10,
    }
}

fn text(text: &str) -> Notice {
    Notice::Text(text.to_owned())
}

fn thinking() -> Notice {
    Notice::Activity(Some(Activity::Thinking))
}

#[test]
fn a_pipe_gets_the_answer_exactly_and_nothing_else() {
    let tape = Tape::default();
    let ui = tape.ui(RenderOptions::plain());
    ui.notice(thinking());
    ui.notice(Notice::Reasoning("hm\x1b[2J".to_owned()));
    ui.notice(text("# A *b*\r\n\x1b[31mraw\x1b"));
    ui.notice(text("[0m"));
    ui.notice(finished("tool"));
    ui.notice(Notice::Info("info".to_owned()));
    ui.notice(Notice::Warning("careful".to_owned()));
    ui.notice(Notice::TextEnd);
    assert_eq!(
        tape.out(),
        "# A *b*\r\n\x1b[31mraw\x1b[0m\n",
        "only the line is ended"
    );
    assert_eq!(
        tape.err(),
        "hm\x1b[2J\ntool a=1 ✓ 5 ms 10 B\ninfo\nwarning: careful\n"
    );
}

#[test]
fn rounds_of_one_turn_end_their_lines() {
    let tape = Tape::default();
    let ui = tape.ui(RenderOptions::plain());
    ui.notice(text("first"));
    ui.notice(Notice::TextEnd);
    ui.notice(Notice::TextEnd);
    ui.notice(text("second\n"));
    ui.notice(Notice::TextEnd);
    assert_eq!(tape.out(), "first\nsecond\n");
}

#[test]
fn what_is_verbatim_is_sanitised_on_a_terminal_and_never_markdown() {
    let json = "{\n  \"content\": \"**run** `ls` \x1b]0;t\x07\"\n}\n";
    let tape = Tape::default();
    tape.ui(RenderOptions::plain())
        .notice(Notice::Verbatim(json.to_owned()));
    assert_eq!(tape.out(), json);
    let tape = Tape::default();
    tape.ui(terminal())
        .notice(Notice::Verbatim(json.to_owned()));
    let shown = tape.out();
    assert!(shown.contains("**run** `ls`"), "{shown}");
    assert!(!shown.contains("\x1b]0;"), "{shown}");
}

#[test]
fn a_terminal_gets_markdown_without_what_could_act_on_it() {
    let tape = Tape::default();
    let ui = tape.ui(terminal());
    for piece in ["**bo", "ld** \x1b", "]0;title\x07x \u{202e}"] {
        ui.notice(text(piece));
    }
    ui.notice(Notice::TextEnd);
    assert_eq!(tape.out(), "\x1b[1mbold\x1b[0m x <U+202E>\n");
    ui.out("listed\x1b[2J\n");
    assert!(tape.out().ends_with("\nlisted\n"));
}

#[test]
fn without_highlighting_or_colour_a_terminal_gets_the_text() {
    for options in [
        RenderOptions {
            highlight: false,
            ..terminal()
        },
        RenderOptions {
            no_color: true,
            ..terminal()
        },
    ] {
        let tape = Tape::default();
        let ui = tape.ui(options);
        ui.notice(text("# A **b** `c` \x1b[31md\n"));
        ui.notice(Notice::TextEnd);
        assert_eq!(tape.out(), "# A **b** `c` d\n");
    }
}

#[test]
fn a_notice_never_lands_inside_an_answer() {
    let tape = Tape::screen();
    let ui = tape.ui(RenderOptions {
        no_color: true,
        ..terminal()
    });
    ui.notice(text("half a"));
    ui.notice(finished("tool"));
    ui.notice(text("other half"));
    ui.notice(Notice::Reasoning("because".to_owned()));
    ui.notice(text("end"));
    ui.notice(Notice::TextEnd);
    assert_eq!(
        tape.out(),
        "half a\ntool a=1 ✓ 5 ms 10 B\nother half\nbecause\nend\n"
    );
}

#[test]
fn waiting_shows_a_spinner_that_leaves_no_trace_on_a_terminal_only() {
    let tape = Tape::screen();
    let ui = tape.ui(RenderOptions {
        no_color: true,
        ..terminal()
    });
    ui.notice(thinking());
    tape.wait_for("⠋ thinking");
    ui.notice(text("answer"));
    assert!(tape.out().ends_with("\r\x1b[2Kanswer"), "{:?}", tape.out());
    ui.notice(Notice::TextEnd);
    ui.notice(Notice::ToolStarted {
        id: id("1"),
        name: "mcp_read_docs".to_owned(),
        arguments: "{}".to_owned(),
    });
    tape.wait_for("calling `mcp_read_docs`");
    ui.notice(Notice::Progress {
        id: id("1"),
        progress: Progress {
            progress: 1.0,
            total: Some(2.0),
            message: Some("half\x1b[2J".to_owned()),
        },
    });
    tape.wait_for("calling `mcp_read_docs` 50 % half");
    ui.notice(finished("mcp_read_docs"));
    assert!(
        tape.out()
            .ends_with("\x1b[2Kmcp_read_docs a=1 ✓ 5 ms 10 B\n")
    );
    let piped = Tape::default();
    let ui = piped.ui(RenderOptions::plain());
    ui.notice(thinking());
    drop(ui);
    assert_eq!(piped.err(), "");
}

#[test]
fn while_a_question_is_open_everything_waits_and_then_comes_in_order() {
    let tape = Tape::screen();
    let ui = tape.ui(RenderOptions {
        no_color: true,
        ..terminal()
    });
    ui.notice(text("before"));
    let outer = ui.pause();
    let inner = ui.pause();
    ui.notice(text("after"));
    ui.notice(finished("tool"));
    drop(inner);
    assert_eq!(tape.out(), "before\n");
    drop(outer);
    assert_eq!(tape.out(), "before\nafter\ntool a=1 ✓ 5 ms 10 B\n");
}

#[test]
fn the_end_of_the_program_changes_nothing_in_a_pipe() {
    let tape = Tape::default();
    let ui = tape.ui(RenderOptions::plain());
    ui.out("exact");
    drop(super::super::TerminalGuard::new(ui.clone()));
    assert_eq!(tape.out(), "exact");
    let tape = Tape::screen();
    let ui = tape.ui(RenderOptions {
        no_color: true,
        ..terminal()
    });
    ui.out("half a line");
    ui.notice(thinking());
    ui.finish();
    assert_eq!(tape.out(), "half a line\n");
}

#[test]
fn lines_go_to_the_editor_while_it_owns_the_screen() {
    let tape = Tape::default();
    let ui = tape.ui(RenderOptions::plain());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = seen.clone();
    ui.set_line_sink(Some(Arc::new(move |line| sink.lock().push(line))));
    ui.warn("one\ntwo");
    ui.set_line_sink(None);
    ui.line("three");
    assert_eq!(*seen.lock(), ["warning: one", "two"]);
    assert_eq!(tape.err(), "three\n");
}

/// Fails every write in its own way.
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_quiet_and_a_full_disk_is_not() {
    let err = || Box::new(End(Arc::default()));
    let ui = Ui::with_streams(
        RenderOptions::plain(),
        Box::new(Broken(io::ErrorKind::BrokenPipe)),
        err(),
    );
    assert!(!ui.closed().is_cancelled());
    ui.out("x");
    assert!(ui.closed().is_cancelled());
    assert!(ui.failure().is_none());
    ui.notice(text("more"));
    ui.notice(Notice::TextEnd);
    let ui = Ui::with_streams(
        RenderOptions::plain(),
        Box::new(Broken(io::ErrorKind::StorageFull)),
        err(),
    );
    ui.out("x");
    assert!(ui.closed().is_cancelled());
    assert!(
        ui.failure()
            .is_some_and(|error| error.to_string() == "cannot write the answer")
    );
}

#[test]
fn a_closed_stderr_is_no_reason_to_stop() {
    let tape = Tape::default();
    let ui = Ui::with_streams(
        RenderOptions::plain(),
        Box::new(End(tape.out.clone())),
        Box::new(Broken(io::ErrorKind::BrokenPipe)),
    );
    ui.warn("nobody hears this");
    ui.out("answer");
    assert_eq!(tape.out(), "answer");
}

#[test]
fn errors_are_words_for_people_and_json_for_machines() {
    let error = Error::mcp("connection refused")
        .context("server `x` failed")
        .hint("`.mcp restart x`");
    let tape = Tape::default();
    tape.ui(RenderOptions::plain()).error(&error);
    assert_eq!(
        tape.err(),
        "error: server `x` failed\n  caused by: connection refused\nhint: `.mcp restart x`\n"
    );
    let tape = Tape::default();
    tape.ui(RenderOptions {
        json: true,
        ..RenderOptions::plain()
    })
    .error(&error);
    let parsed: serde_json::Value = serde_json::from_str(tape.err().trim_end()).unwrap();
    assert_eq!(parsed["error"]["kind"], "mcp");
    let tape = Tape::default();
    tape.ui(terminal()).error(&error);
    assert!(
        tape.err().starts_with("\x1b[1;91merror:\x1b[0m server"),
        "{:?}",
        tape.err()
    );
}

proptest! {
    #[test]
    fn any_answer_in_any_pieces_reaches_a_pipe_as_it_is(pieces in proptest::collection::vec(any::<String>(), 0..10)) {
        let tape = Tape::default();
        let ui = tape.ui(RenderOptions::plain());
        for piece in &pieces {
            ui.notice(text(piece));
        }
        prop_assert_eq!(tape.out(), pieces.concat());
    }

    #[test]
    fn nothing_of_a_server_acts_on_the_terminal(name in any::<String>(), line in any::<String>()) {
        let tape = Tape::screen();
        let ui = tape.ui(RenderOptions { no_color: true, ..terminal() });
        ui.notice(finished(&name));
        ui.notice(Notice::Info(line.clone()));
        ui.notice(Notice::Warning(line.clone()));
        ui.notice(Notice::Reasoning(line.clone()));
        ui.notice(text(&line));
        ui.notice(Notice::TextEnd);
        ui.error(&Error::mcp(&line).context(&name).hint(&line));
        prop_assert!(!tape.out().chars().any(crate::utils::text::is_hazard), "{:?}", tape.out());
    }
}
