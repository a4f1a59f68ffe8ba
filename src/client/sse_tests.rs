use proptest::prelude::*;

use super::*;

fn frames_in(text: &[u8], size: usize) -> Result<Vec<Frame>, Fault> {
    let mut framing = Framing::default();
    let mut frames = Vec::new();
    for chunk in text.chunks(size) {
        framing.feed(chunk, &mut frames)?;
    }
    framing.finish(&mut frames);
    Ok(frames)
}

fn frames(text: &str) -> Vec<Frame> {
    frames_in(text.as_bytes(), usize::MAX).unwrap()
}

#[test]
fn events_are_their_data_whatever_the_line_ends() {
    for end in ["\n", "\r\n", "\r"] {
        let text =
            ": hi\nevent: x\ndata: {\"a\":1}\nid: 1\n\ndata:{\"b\":2}\n\n\n".replace('\n', end);
        assert_eq!(frames(&text), ["{\"a\":1}", "{\"b\":2}"], "{end:?}");
    }
}

#[test]
fn data_of_several_lines_is_one_event() {
    for end in ["\n", "\r\n", "\r"] {
        let text = "data: {\"a\":\ndata: 1}\n\ndata: x\n\n".replace('\n', end);
        for size in 1..text.len() {
            let frames = frames_in(text.as_bytes(), size).unwrap();
            assert_eq!(frames, ["{\"a\":\n1}", "x"], "{end:?} {size}");
        }
    }
}

#[test]
fn an_event_without_its_blank_line_counts_at_the_end() {
    assert_eq!(frames("data: [DONE]"), ["[DONE]"]);
}

#[test]
fn a_line_of_json_inside_a_stream_is_delivered() {
    assert_eq!(
        frames("data: {\"a\":1}\n\n{\"error\":\"x\"}\n"),
        ["{\"a\":1}", "{\"error\":\"x\"}"]
    );
}

#[test]
fn lines_of_json_and_documents_are_told_apart() {
    assert_eq!(frames("{\"a\":1}\n{\"b\":2}\n"), ["{\"a\":1}", "{\"b\":2}"]);
    assert_eq!(frames("\u{feff}\n {\n\"a\":1\n}\n"), ["{\n\"a\":1\n}"]);
    assert_eq!(
        frames("[{\"a\":1},\n{\"b\":2}]"),
        ["[{\"a\":1},\n{\"b\":2}]"]
    );
}

#[test]
fn an_event_without_end_is_refused_at_16_mib() {
    let mut framing = Framing::default();
    let mut frames = Vec::new();
    let chunk = vec![b'x'; 1 << 20];
    framing.feed(b"data: ", &mut frames).unwrap();
    let fed = (0..20).position(|_| framing.feed(&chunk, &mut frames).is_err());
    assert_eq!(fed, Some(15));
    let mut framing = Framing::default();
    let lines = "data: x\n".repeat(1 << 17);
    let fed = (0..80).position(|_| framing.feed(lines.as_bytes(), &mut frames).is_err());
    assert!(fed.is_some(), "data lines of one event add up");
}

#[test]
fn an_event_just_below_the_bound_is_delivered() {
    let text = format!("data: \"{}\"\n\n", "x".repeat(MAX_EVENT - 64));
    assert_eq!(
        frames_in(text.as_bytes(), 1 << 16).unwrap()[0].len(),
        MAX_EVENT - 62
    );
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_events(
        lines in prop::collection::vec(
            prop::sample::select(vec!["data: {\"ä\":\"€\"}", "data: x", "", "event: y", ": c", "{\"error\":1}", "{", "}", "[1,", "2]", "\u{feff}"]),
            0..12,
        ),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        size in 1_usize..20,
    ) {
        let text = lines.join(end);
        prop_assert_eq!(frames(&text), frames_in(text.as_bytes(), size).unwrap());
    }

    #[test]
    fn no_bytes_make_framing_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), size in 1_usize..50) {
        prop_assert_eq!(frames_in(&bytes, usize::MAX), frames_in(&bytes, size));
    }
}

#[test]
fn an_event_that_calls_itself_an_error_is_one() {
    assert_eq!(
        frames("event: error\ndata: {\"message\":\"x\"}\n\ndata: {\"a\":1}\n\n"),
        ["{\"error\":{\"message\":\"x\"}}", "{\"a\":1}"]
    );
    assert_eq!(
        frames("event: error\ndata: gone\n\n"),
        ["{\"error\":\"gone\"}"]
    );
    let known = "{\"type\":\"error\",\"message\":\"x\"}";
    let read: Value =
        serde_json::from_str(&frames(&format!("event:error\ndata:{known}\n\n"))[0]).unwrap();
    assert_eq!(read, json!({ "type": "error", "message": "x" }));
}
