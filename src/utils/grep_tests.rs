use super::*;

fn filter(pattern: &str) -> Filter {
    Filter::new(pattern).unwrap()
}

#[test]
fn numbers_matches_and_context() {
    let text = "one\ntwo\nthree\nERROR a\nfive\nsix\nseven\neight\nnine\nERROR b\n";
    let found = filter("ERROR").apply(text);
    let expected = "2-two\n3-three\n4:ERROR a\n5-five\n6-six\n--\n8-eight\n9-nine\n10:ERROR b\n";
    assert_eq!(found.text, expected);
    assert_eq!((found.matches, found.lines_searched), (2, 10));
}

#[test]
fn groups_that_touch_are_one() {
    let text = "a\nX\nb\nc\nd\nX\n";
    assert_eq!(
        filter("X").apply(text).text,
        "1-a\n2:X\n3-b\n4-c\n5-d\n6:X\n"
    );
}

#[test]
fn crlf_keeps_its_numbers_and_ends_lines() {
    let text = "a\r\nb\r\nERROR\r\nd\r\n";
    let found = filter("ERROR$").apply(text);
    assert_eq!(found.text, "1-a\n2-b\n3:ERROR\n4-d\n");
}

#[test]
fn a_last_line_without_newline_counts() {
    let found = filter("b$").apply("a\nb");
    assert_eq!(found.text, "1-a\n2:b\n");
    assert_eq!(found.lines_searched, 2);
}

#[test]
fn no_match_says_how_much_was_searched() {
    let found = filter("nothing").apply("a\nb\nc\n");
    assert_eq!(found.text, "");
    assert_eq!((found.matches, found.lines_searched), (0, 3));
    assert_eq!(filter("x").apply("").lines_searched, 0);
}

#[test]
fn an_invalid_pattern_has_a_position() {
    let error = Filter::new("ab[").unwrap_err();
    assert_eq!(error.position, Some(2));
    assert!(
        error.to_string().contains("unclosed character class"),
        "{error}"
    );
    assert!(error.to_string().contains("byte 2"), "{error}");
    assert!(Filter::new("(").is_err());
    assert!(Filter::new(r"\p{Nope}").unwrap_err().position.is_some());
}

#[test]
fn a_pattern_too_big_is_refused() {
    let error = Filter::new("((a{1000}){1000}){1000}").unwrap_err();
    assert_eq!(error.position, None);
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[test]
fn a_hostile_pattern_ends() {
    // A backtracking engine would not come back from this.
    let text = format!("{}!", "a".repeat(100_000));
    assert_eq!(filter("(a+)+$").apply(&text).matches, 0);
}

#[test]
fn nul_bytes_are_text() {
    assert_eq!(filter("b").apply("a\0\nb\0\n").text, "1-a\0\n2:b\0\n");
}

#[test]
fn windows_join_to_the_whole() {
    let text = "é1\nü2\n€3\n😀4\nx5\n".repeat(50);
    let whole = filter("2|4").apply(&text).text;
    for size in [1, 2, 3, 5, 7, 64] {
        let mut joined = String::new();
        let mut offset = 0;
        loop {
            let window = filter("2|4").window(&text, offset, size);
            assert_eq!(window.total, whole.len() as u64);
            if window.text.is_empty() {
                break;
            }
            assert_eq!(window.start, joined.len() as u64);
            offset = window.start + window.text.len() as u64;
            joined.push_str(&window.text);
        }
        assert_eq!(joined, whole, "{size}");
    }
}

#[test]
fn a_window_starts_at_a_character() {
    let text = "é\n";
    let window = filter("é").window(text, 3, 100); // inside the é of `1:é`
    assert_eq!((window.start, window.text.as_str()), (4, "\n"));
    let beyond = filter("é").window(text, 99, 100);
    assert_eq!((beyond.text.as_str(), beyond.total), ("", 5));
}

#[test]
fn bytes_that_are_not_text_are_replaced() {
    let abort = AbortToken::new();
    let found = filter("x")
        .window_until(b"x\xff\n", 0, usize::MAX, &abort)
        .unwrap();
    assert_eq!(found.text, "1:x\u{fffd}\n");
}

#[test]
fn cancelling_ends_the_search() {
    let abort = AbortToken::new();
    abort.cancel();
    assert_eq!(
        filter("x").window_until(b"x\n", 0, 10, &abort),
        Err(Aborted)
    );
}

#[test]
fn decimals() {
    for number in [0, 9, 10, 1234, u64::MAX] {
        assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
    }
}
