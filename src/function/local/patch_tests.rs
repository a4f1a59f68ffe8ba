use serde_json::json;

use super::*;
use crate::chat::Answer;
use crate::function::testing::Bench;

fn edit(search: &str, replace: &str, all: bool) -> Edit {
    Edit {
        search: search.into(),
        replace: replace.into(),
        all,
    }
}

fn applied(text: &str, edits: &[Edit]) -> Result<String, String> {
    apply(text, edits, Path::new("f"), &AbortToken::new())
        .map(|(text, _)| text)
        .map_err(|error| error.to_string())
}

#[test]
fn edits_apply_in_order() {
    let edits = [edit("a", "b🦊", false), edit("b🦊", "c", false)];
    assert_eq!(applied("xay", &edits).unwrap(), "xcy");
    assert_eq!(applied("a a", &[edit("a", "b", true)]).unwrap(), "b b");
    assert_eq!(
        applied("keep drop", &[edit(" drop", "", false)]).unwrap(),
        "keep"
    );
}

#[test]
fn ambiguous_and_missing_texts_teach() {
    let error = applied("x x x", &[edit("x", "y", false)]).unwrap_err();
    assert!(
        error.contains("occurs 3 times") && error.contains("`all`"),
        "{error}"
    );
    let error = applied(
        "fn a() {\n    call();\n}\n",
        &[edit("  call();\n}", "", false)],
    )
    .map(|_| ());
    assert!(error.is_ok(), "a part of a line is found");
    let error = applied("\tcall();\n", &[edit("    call();", "", false)]).unwrap_err();
    assert!(error.contains("line 1 is similar"), "{error}");
    let error = applied("abc", &[edit("nowhere", "", false)]).unwrap_err();
    assert!(error.contains("read the file"), "{error}");
}

#[test]
fn windows_line_ends_are_kept() {
    let edits = [edit("one\ntwo", "1\n2", false)];
    assert_eq!(
        applied("one\r\ntwo\r\nthree", &edits).unwrap(),
        "1\r\n2\r\nthree"
    );
    assert_eq!(
        applied("a\r\nb\r\n", &[edit("a", "x\ny", false)]).unwrap(),
        "x\r\ny\r\nb\r\n"
    );
    assert_eq!(applied("a\r\nb", &[edit("a\r\n", "", false)]).unwrap(), "b");
}

#[tokio::test]
async fn all_edits_or_none() {
    let mut bench = Bench::approving();
    bench.write("f", "one\ntwo\n");
    let good = json!({"search": "one", "replace": "1"});
    let bad = json!({"search": "three", "replace": "3"});
    bench
        .error("fs_patch", json!({"path": "f", "edits": [good, bad]}))
        .await;
    assert_eq!(bench.read("f"), "one\ntwo\n");
    let said = bench
        .ok("fs_patch", json!({"path": "f", "edits": [good]}))
        .await;
    assert!(said.ends_with("in 1 place"), "{said}");
    assert_eq!(bench.read("f"), "1\ntwo\n");
}

#[tokio::test]
async fn odd_edits_teach() {
    let mut bench = Bench::approving();
    bench.write("f", "one\n");
    bench.write("latin", [b'a', 0xe9, b'b']);
    let rows = [
        (json!({"path": "f", "edits": []}), "must not be empty"),
        (
            json!({"path": "f", "edits": "x"}),
            "`edits` must be an array",
        ),
        (
            json!({"path": "f", "edits": ["x"]}),
            "`edits[0]` must be an object",
        ),
        (
            json!({"path": "f", "edits": [{"search": "", "replace": "x"}]}),
            "fs_write",
        ),
        (
            json!({"path": "f", "edits": [{"search": "one"}]}),
            "`edits[0]` needs the argument `replace`",
        ),
        (
            json!({"path": "f", "edits": [{"find": "one", "replace": ""}]}),
            "`edits[0]` has no argument `find`",
        ),
        (
            json!({"path": "f", "edits": [{"search": "one", "replace": "one"}]}),
            "change nothing",
        ),
        (
            json!({"path": "latin", "edits": [{"search": "a", "replace": "b"}]}),
            "not UTF-8",
        ),
        (
            json!({"path": "gone", "edits": [{"search": "a", "replace": "b"}]}),
            "cannot read",
        ),
        (
            json!({"path": ".", "edits": [{"search": "a", "replace": "b"}]}),
            "is a directory",
        ),
    ];
    for (arguments, expected) in rows {
        let error = bench.error("fs_patch", arguments).await;
        assert!(error.contains(expected), "{error} / {expected}");
    }
    assert_eq!(bench.read("f"), "one\n");
}

#[tokio::test]
async fn nothing_is_asked_when_nothing_can_be_done_and_the_question_shows_the_change() {
    let mut bench = Bench::answering([Answer::Yes]);
    bench.write("f", "one\ntwo\n");
    bench
        .error(
            "fs_patch",
            json!({"path": "f", "edits": [{"search": "no", "replace": "x"}]}),
        )
        .await;
    assert!(bench.ask.asked.lock().is_empty());
    bench
        .ok(
            "fs_patch",
            json!({"path": "f", "edits": [{"search": "one\ntwo", "replace": "1"}]}),
        )
        .await;
    let asked = bench.ask.asked.lock();
    let crate::chat::Question::Permission { details, .. } = &asked[0] else {
        panic!()
    };
    assert_eq!(details, &["- one", "- two", "+ 1"]);
}
