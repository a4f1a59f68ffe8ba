//! One-shot questions: what goes in, what the provider is asked, what comes out and where.

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{
    self, Piece, Provider, Reply, chat_calls, chat_text, data, delta, finish,
};
use crate::support::run;

fn asked_messages(provider: &Provider, request: usize) -> Value {
    provider.asked()[request].body["messages"].clone()
}

#[test]
fn stdout_is_the_answer_and_nothing_else() {
    let provider = Provider::new(vec![chat_text("Hello there, friend.")]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let output = home.coyote(&["say", "hello"]).ok();
    assert_eq!(output.stdout, "Hello there, friend.\n");
    let asked = provider.asked();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/v1/chat/completions");
    assert_eq!(asked[0].header("authorization"), Some("Bearer k-test"));
    assert_eq!(asked[0].body["stream"], true);
    assert_eq!(asked[0].body["model"], "m");
    assert_eq!(
        asked_messages(&provider, 0),
        json!([{ "role": "user", "content": "say hello" }])
    );
}

#[test]
fn markdown_reaches_a_pipe_as_it_is() {
    let text = "# Title\n\n- one\n- **two**\n\n```rust\nfn main() {}\n```\n\ta\u{1b}[31mred\n";
    let provider = Provider::new(vec![chat_text(text)]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    assert_eq!(home.coyote(&["x"]).ok().stdout, text);
}

#[test]
fn piped_input_is_appended_to_the_text() {
    let provider = Provider::new(vec![chat_text("a"), chat_text("b")]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    home.coyote(&["explain"]).stdin("line 1\nline 2").ok();
    home.coyote(&[]).stdin("only piped").ok();
    assert_eq!(
        asked_messages(&provider, 0)[0]["content"],
        "explain\n\nline 1\nline 2"
    );
    assert_eq!(asked_messages(&provider, 1)[0]["content"], "only piped");
}

#[test]
fn without_streaming_the_answer_is_the_same() {
    let body = json!({ "id": "c", "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "whole" } }] });
    let provider = Provider::new(vec![provider::status(200, &body.to_string())]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    assert_eq!(home.coyote(&["-S", "x"]).ok().stdout, "whole\n");
    assert_ne!(provider.asked()[0].body["stream"], json!(true));
}

#[test]
fn code_only_prints_the_code() {
    let provider = Provider::new(vec![chat_text(
        "Sure:\n\n```sh\nls -l\n```\n\nThat lists files.",
    )]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    assert_eq!(home.coyote(&["-c", "list files"]).ok().stdout, "ls -l\n");
}

#[test]
fn a_dry_run_sends_nothing() {
    let provider = Provider::new(vec![]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let output = home
        .coyote(&["--dry-run", "what would be sent"])
        .any_stderr()
        .ok();
    assert!(
        output.stdout.contains("what would be sent"),
        "{}",
        output.stdout
    );
    assert!(provider.asked().is_empty());
}

#[test]
fn a_local_tool_round_reaches_the_model_with_its_id() {
    let provider = Provider::new(vec![
        chat_calls(&[("call_7", "fs_cat", json!({ "path": "note.txt" }))]),
        chat_text("It says hi."),
    ]);
    let home = Home::new();
    home.provider(&provider.url(), "enabled_tools: fs_cat");
    home.work_file("note.txt", "hi from the file\n");
    let output = home.coyote(&["what does note.txt say?"]).any_stderr().ok();
    assert_eq!(output.stdout, "It says hi.\n");
    assert!(
        output.stderr.contains("fs_cat"),
        "the tool is named on stderr: {}",
        output.stderr
    );
    let messages = asked_messages(&provider, 1);
    assert_eq!(messages[1]["tool_calls"][0]["id"], "call_7");
    assert_eq!(messages[2]["role"], "tool");
    assert_eq!(messages[2]["tool_call_id"], "call_7");
    assert!(
        messages[2]["content"]
            .as_str()
            .unwrap()
            .contains("hi from the file"),
        "{messages}"
    );
}

#[test]
fn text_files_and_images_are_attached() {
    let provider = Provider::new(vec![chat_text("ok")]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    home.work_file("naïve.txt", "contents of the file ✓");
    std::fs::write(home.work_dir().join("p.png"), super::samples::PNG).unwrap();
    home.coyote(&["-f", "naïve.txt", "-f", "p.png", "describe"])
        .ok();
    let content = asked_messages(&provider, 0)[0]["content"].clone();
    let text = content.to_string();
    assert!(text.contains("contents of the file ✓"), "{text}");
    assert!(text.contains("describe"), "{text}");
    let images: Vec<_> = content
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "image_url")
        .collect();
    assert_eq!(images.len(), 1);
    assert!(
        images[0]["image_url"]["url"]
            .as_str()
            .unwrap()
            .starts_with("data:image/png;base64,iVBOR")
    );
}

#[test]
fn a_role_shapes_the_request() {
    let provider = Provider::new(vec![chat_text("bonjour"), chat_text("ok")]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    home.config_file("roles/translate.md", "Translate to French:\n\n__INPUT__\n");
    home.config_file(
        "roles/terse.md",
        "---\ntemperature: 0.5\n---\nAnswer in one word.\n",
    );
    home.coyote(&["-r", "translate", "hello"]).ok();
    home.coyote(&["-r", "terse", "hello"]).ok();
    let first = asked_messages(&provider, 0);
    assert_eq!(first.as_array().unwrap().len(), 1);
    assert_eq!(
        first[0]["content"].as_str().unwrap().trim_end(),
        "Translate to French:\n\nhello"
    );
    let second = &provider.asked()[1].body;
    assert_eq!(second["temperature"], 0.5);
    assert_eq!(
        second["messages"][0]["content"]
            .as_str()
            .unwrap()
            .trim_end(),
        "Answer in one word."
    );
    assert_eq!(
        second["messages"][1],
        json!({ "role": "user", "content": "hello" })
    );
}

#[test]
fn without_any_model_the_error_lists_three_ways() {
    let home = Home::new();
    let output = home.coyote(&["hello"]).fails(1);
    assert_eq!(output.stdout, "");
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    for way in ["OPENAI_API_KEY", "ollama", "config.yaml"] {
        assert!(
            output.stderr.contains(way),
            "{way} is missing: {}",
            output.stderr
        );
    }
}

#[test]
fn without_any_model_everything_else_works() {
    let home = Home::new();
    home.coyote(&["--info"]).ok();
    home.coyote(&["--list-roles"]).ok();
    home.coyote(&["mcp", "servers"]).any_stderr().ok();
}

#[test]
fn secrets_are_never_shown() {
    let home = Home::new();
    home.provider("http://127.0.0.1:1/v1", "");
    let secret = "sk-very-secret-4711";
    for args in [&["--info"][..], &["--info", "--json"], &["--list-models"]] {
        let output = home
            .coyote(args)
            .env("TEST_API_KEY", secret)
            .env("OPENAI_API_KEY", secret)
            .ok();
        assert!(
            !output.stdout.contains(secret) && !output.stdout.contains("k-test"),
            "{args:?}: {}",
            output.stdout
        );
    }
    let output = home.coyote(&["x"]).env("TEST_API_KEY", secret).fails(1);
    assert!(!output.stderr.contains(secret), "{}", output.stderr);
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_stream_and_the_process() {
    let (_open, shut) = provider::gate();
    let provider = Provider::new(vec![Reply::Stream {
        pieces: vec![delta(&json!({ "content": "begun" })), shut],
        cut: true,
    }]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let mut child = home.coyote(&["x"]).spawn();
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    let mut begun = [0; 5];
    std::io::Read::read_exact(&mut stdout, &mut begun).unwrap();
    assert_eq!(&begun, b"begun");
    run::signal(&child, nix::sys::signal::Signal::SIGINT);
    let output = run::finish(child);
    assert_eq!(output.code, Some(130), "{}", output.stderr);
    crate::support::eventually("the connection is closed", || {
        (provider.hung_up() == 1).then_some(())
    });
}

#[cfg(unix)]
#[test]
fn signals_have_their_exit_codes() {
    use nix::sys::signal::Signal;
    for (signal, code) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ] {
        let (_open, shut) = provider::gate();
        let provider = Provider::new(vec![Reply::Stream {
            pieces: vec![shut],
            cut: true,
        }]);
        let home = Home::new();
        home.provider(&provider.url(), "");
        let mut child = home.coyote(&["x"]).spawn();
        drop(child.stdin.take());
        crate::support::eventually("the request arrives", || {
            (!provider.asked().is_empty()).then_some(())
        });
        run::signal(&child, signal);
        assert_eq!(run::finish(child).code, Some(code));
    }
}

/// The thread that writes is stuck in the system then: somebody else has to hear the signal.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_signal_ends_it_while_nobody_reads_stdout() {
    let line = delta(&json!({ "content": "a line of text\n".repeat(100) }));
    let Piece::Bytes(line) = line else {
        panic!("not bytes")
    };
    let provider = Provider::new(vec![Reply::Stream {
        pieces: vec![Piece::Repeat(line, 2_000)],
        cut: true,
    }]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let mut child = home.coyote(&["x"]).spawn();
    drop(child.stdin.take());
    // Held, and not read until the end.
    let stdout = child.stdout.take();
    let call = format!("/proc/{0}/task/{0}/syscall", child.id());
    crate::support::eventually("it is stuck writing to fd 1", || {
        let call = std::fs::read_to_string(&call).ok()?;
        call.starts_with("1 0x1 ").then_some(())
    });
    run::signal(&child, nix::sys::signal::Signal::SIGINT);
    assert_eq!(run::finish(child).code, Some(130));
    drop(stdout);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let pieces = std::iter::repeat_with(|| delta(&json!({ "content": "a line of text\n" })))
        .take(20_000)
        .chain(finish("stop"));
    let provider = Provider::new(vec![Reply::Stream {
        pieces: pieces.collect(),
        cut: false,
    }]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let mut child = home.coyote(&["x"]).spawn();
    drop(child.stdin.take());
    let mut stdout = child.stdout.take().unwrap();
    let mut some = [0; 10];
    std::io::Read::read_exact(&mut stdout, &mut some).unwrap();
    drop(stdout);
    let output = run::finish(child);
    assert_eq!(output.stderr, "");
    assert!(output.code.is_some(), "not ended by a signal");
}

#[test]
fn reasoning_is_not_part_of_the_answer() {
    let provider = Provider::new(vec![Reply::Stream {
        pieces: [
            delta(&json!({ "reasoning_content": "thinking hard" })),
            delta(&json!({ "content": "42" })),
        ]
        .into_iter()
        .chain(finish("stop"))
        .collect(),
        cut: false,
    }]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    assert_eq!(home.coyote(&["x"]).any_stderr().ok().stdout, "42\n");
}

#[test]
fn a_stream_without_text_is_an_empty_answer_not_a_hang() {
    let provider = Provider::new(vec![Reply::Stream {
        pieces: vec![
            Piece::Bytes(b": hello\n\n".to_vec()),
            data(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] })),
            Piece::Bytes(b"data: [DONE]\n\n".to_vec()),
        ],
        cut: false,
    }]);
    let home = Home::new();
    home.provider(&provider.url(), "");
    let output = home.coyote(&["x"]).any_stderr().output();
    assert!(output.stdout.trim().is_empty());
    assert!(output.code.is_some());
}
