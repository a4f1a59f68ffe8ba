use std::io::{BufRead as _, BufReader, Cursor, Read, Write};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::*;

/// Sends `messages`, ends the input, and returns everything answered.
fn exchange(messages: &[Value], spoil: Option<Spoil>) -> Vec<Value> {
    let mut input = String::new();
    for message in messages {
        input.push_str(&message.to_string());
        input.push('\n');
    }
    raw_exchange(input.as_bytes(), spoil)
}

fn raw_exchange(input: &[u8], spoil: Option<Spoil>) -> Vec<Value> {
    let (sender, receiver) = mpsc::channel();
    serve(Cursor::new(input.to_vec()), Sender(sender), spoil).unwrap();
    receiver
        .try_iter()
        .collect::<Vec<Vec<u8>>>()
        .concat()
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

struct Sender(mpsc::Sender<Vec<u8>>);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn request(id: u32, method: &str, params: impl Into<Value>) -> Value {
    let params = params.into();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn result(method: &str, params: Value, spoil: Option<Spoil>) -> Value {
    let answers = exchange(&[request(1, method, params)], spoil);
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers[0]["result"].clone()
}

fn walk(method: &str, key: &str) -> (Vec<Value>, usize) {
    let (mut items, mut pages, mut cursor) = (Vec::new(), 0, Value::Null);
    loop {
        let page = result(method, json!({ "cursor": cursor }), None);
        items.extend(page[key].as_array().unwrap().iter().cloned());
        pages += 1;
        match page.get("nextCursor") {
            Some(next) => cursor = next.clone(),
            None => return (items, pages),
        }
    }
}

#[test]
fn the_handshake_answers_a_known_revision_with_itself_and_others_with_the_newest() {
    for (asked, answered) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = result("initialize", json!({ "protocolVersion": asked }), None);
        assert_eq!(answer["protocolVersion"], answered);
        assert_eq!(
            answer["capabilities"],
            json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} })
        );
    }
}

#[test]
fn lists_span_pages_and_lose_nothing() {
    let (tools, pages) = walk("tools/list", "tools");
    assert_eq!(tools.len(), counts().tools);
    assert!(pages > 1);
    let (prompts, pages) = walk("prompts/list", "prompts");
    assert_eq!((prompts.len(), pages), (counts().prompts, 2));
    let (resources, pages) = walk("resources/list", "resources");
    assert_eq!(resources.len(), counts().resources);
    assert!(pages > 1);
    assert_eq!(
        walk("resources/templates/list", "resourceTemplates")
            .0
            .len(),
        counts().templates
    );
}

#[test]
fn a_cursor_of_nowhere_is_refused() {
    for cursor in [json!("x"), json!("-1"), json!("99"), json!(3)] {
        let answers = exchange(
            &[request(1, "tools/list", json!({ "cursor": cursor }))],
            None,
        );
        assert_eq!(answers[0]["error"]["code"], -32602, "{answers:?}");
    }
}

#[test]
fn the_log_is_two_megabytes_of_crlf_lines_with_the_errors_where_it_says() {
    let log = log_text();
    assert!((1_900_000..2_300_000).contains(&log.len()), "{}", log.len());
    assert_eq!(log.matches("\r\n").count(), LOG_LINES);
    let found: Vec<usize> = log
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains("ERROR"))
        .map(|(index, _)| index + 1)
        .collect();
    assert_eq!(found, error_lines());
    assert!(found.len() > 5);
    assert_eq!(log, log_text());
}

#[test]
fn the_logo_is_a_png_and_the_notes_are_text() {
    assert!(logo().starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(!NOTES.is_ascii());
}

#[test]
fn reading_percent_decodes_the_template_and_names_unknown_uris() {
    let answer = result(
        "resources/read",
        json!({ "uri": "demo://greeting/a%2Fb%20%C3%A9" }),
        None,
    );
    assert_eq!(answer["contents"][0]["text"], greeting("a/b é"));
    for uri in [
        "demo://greeting/",
        "demo://greeting/a/b",
        "file:///etc/passwd",
        "",
    ] {
        let answers = exchange(&[request(1, "resources/read", json!({ "uri": uri }))], None);
        assert_eq!(answers[0]["error"]["code"], -32002, "{uri}");
    }
}

#[test]
fn tools_compute_and_fail_as_tools_do() {
    let call = |name: &str, arguments: Value| {
        result(
            "tools/call",
            json!({ "name": name, "arguments": arguments }),
            None,
        )
    };
    assert_eq!(
        call("add", json!({ "a": 2, "b": 3 }))["structuredContent"],
        json!({ "sum": 5 })
    );
    assert_eq!(
        call("add", json!({ "a": 0.5, "b": 1 }))["structuredContent"],
        json!({ "sum": 1.5 })
    );
    assert_eq!(
        call("divide", json!({ "dividend": 1, "divisor": 0 }))["isError"],
        true
    );
    assert_eq!(
        call("word_count", json!({ "text": "zwei Wörter\nhier" }))["content"][0]["text"],
        "2 lines, 3 words, 16 characters"
    );
    assert_eq!(call("draw_logo", json!({}))["content"][1]["type"], "image");
    assert_eq!(
        call("log_summary", json!({}))["structuredContent"]["lines"],
        LOG_LINES
    );
}

#[test]
fn nonsense_is_answered_or_ignored_and_does_no_harm() {
    let input = b"\n  \nnot json\n[]\n{\"id\":null}\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";
    let answers = raw_exchange(input, None);
    assert_eq!(answers.last().unwrap()["id"], 7);
    assert_eq!(answers[0]["error"]["code"], -32700);
}

/// A conversation over real pipes, for what needs both directions at once.
fn converse() -> (impl Write, BufReader<impl Read>, thread::JoinHandle<()>) {
    let (server_end, client_end) = std::io::pipe().unwrap();
    let (answers, sink) = std::io::pipe().unwrap();
    let server = thread::spawn(move || {
        serve(BufReader::new(server_end), sink, None).unwrap();
    });
    (client_end, BufReader::new(answers), server)
}

fn next(answers: &mut BufReader<impl Read>) -> Value {
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_slow_count_reports_progress_and_keeps_nobody_waiting() {
    let (mut to, mut from, server) = converse();
    let count = json!({ "name": "slow_count", "arguments": { "to": 3, "delay_ms": 0 }, "_meta": { "progressToken": "p" } });
    writeln!(to, "{}", request(1, "tools/call", count)).unwrap();
    for expected in 1..=3 {
        let progress = next(&mut from);
        assert_eq!(progress["params"]["progress"], expected);
        assert_eq!(progress["params"]["progressToken"], "p");
    }
    assert_eq!(
        next(&mut from)["result"]["content"][0]["text"],
        "counted to 3"
    );
    drop(to);
    server.join().unwrap();
}

#[test]
fn a_cancelled_count_is_never_answered() {
    let (mut to, mut from, server) = converse();
    let count = json!({ "name": "slow_count", "arguments": { "to": 1000, "delay_ms": 10_000 } });
    writeln!(to, "{}", request(1, "tools/call", count)).unwrap();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    writeln!(to, "{cancel}").unwrap();
    writeln!(to, "{}", request(2, "ping", json!({}))).unwrap();
    assert_eq!(next(&mut from)["id"], 2);
    drop(to);
    server.join().unwrap();
    // The thread has let go of the output: the pipe ends, and nothing more was in it.
    let mut rest = Vec::new();
    from.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn every_spoil_changes_what_it_says() {
    use clap::ValueEnum as _;
    let probes = [
        request(1, "initialize", json!({})),
        request(2, "tools/list", json!({})),
        request(3, "resources/list", json!({})),
        request(4, "resources/list", json!({ "cursor": "4" })),
        request(5, "resources/read", json!({ "uri": GUIDE_URI })),
        request(6, "resources/read", json!({ "uri": LOG_URI })),
        request(7, "resources/read", json!({ "uri": LOGO_URI })),
        request(8, "resources/read", json!({ "uri": NOTES_URI })),
        request(9, "resources/read", json!({ "uri": "demo://greeting/you" })),
        request(
            10,
            "tools/call",
            json!({ "name": "add", "arguments": { "a": 1, "b": 1 } }),
        ),
        request(11, "tools/call", json!({ "name": "draw_logo" })),
        request(
            12,
            "prompts/get",
            json!({ "name": LESSON_PROMPT, "arguments": { "topic": "x" } }),
        ),
    ];
    let good = exchange(&probes, None);
    assert_eq!(good.len(), probes.len());
    for spoil in Spoil::value_variants() {
        assert_ne!(exchange(&probes, Some(*spoil)), good, "{spoil:?}");
    }
}

#[test]
fn prompts_say_what_they_are_given_and_name_what_is_missing() {
    let get = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        exchange(&[request(1, "prompts/get", params)], None)[0].clone()
    };
    let said = |answer: &Value| {
        let messages = answer["result"]["messages"].as_array().unwrap();
        let text = |message: &Value| message["content"]["text"].as_str().map(str::to_owned);
        messages.iter().filter_map(text).collect::<Vec<_>>()
    };
    let review = said(&get("review", json!({ "language": "Rust" })));
    assert!(review[0].contains("Rust code") && review[0].contains("bugs"));
    assert!(said(&get("Log Report", json!({ "level": "INFO" })))[0].contains("pattern INFO"));
    let lesson_texts: Vec<String> = lesson("x").map(|(_, text)| text).into();
    assert_eq!(said(&get("lesson", json!({ "topic": "x" }))), lesson_texts);
    let notes = get("notes", Value::Null);
    let content = &notes["result"]["messages"][1]["content"];
    assert_eq!(content["resource"]["text"], NOTES);
    for (name, arguments) in [
        ("review", json!({})),
        ("lesson", json!({ "topic": "" })),
        ("x", json!({})),
    ] {
        assert_eq!(get(name, arguments)["error"]["code"], -32602, "{name}");
    }
}

#[test]
fn completions_begin_with_what_was_typed() {
    let complete = |name: &str, value: &str| {
        let params = json!({ "ref": { "type": "ref/prompt", "name": "review" }, "argument": { "name": name, "value": value } });
        result("completion/complete", params, None)["completion"]["values"].clone()
    };
    assert_eq!(complete("focus", "S"), json!(["speed", "style"]));
    assert_eq!(complete("language", "x"), json!([]));
    assert_eq!(complete("nothing", ""), json!([]));
}
