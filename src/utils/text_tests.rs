use std::borrow::Cow;

use proptest::prelude::*;

use super::*;

#[test]
fn every_kind_of_escape_sequence_is_removed_whole() {
    for (given, shown) in [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b[2J\x1b[1;1Hb", "ab"),
        ("\x1b]0;title\x07t", "t"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07x", "x"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("\x1b_Gf=100;AAAA\x1b\\kitty", "kitty"),
        ("\x1b^pm\x1b\\a\x1bXsos\x1b\\b", "ab"),
        ("\u{9b}31mred", "red"),
        ("\u{9d}0;title\u{9c}t", "t"),
        ("\u{90}dcs\u{9c}t", "t"),
        ("\x1b(Bg\x1bcr\x1b7s\x1b#8", "grs"),
        ("\x1b\x1b[31mx", "x"),
        ("\x1b]0;a\x1b[31mb", "b"),
        (
            "bell\x07 back\x08 nul\0 del\x7f vt\x0b ff\x0c so\x0e",
            "bell back nul del vt ff so",
        ),
        ("\u{85}next\u{8d}line", "nextline"),
    ] {
        assert_eq!(sanitize(given), shown, "{given:?}");
    }
}

#[test]
fn an_unfinished_sequence_never_swallows_the_next_line() {
    assert_eq!(sanitize("\x1b]0;never closed\nnext"), "\nnext");
    assert_eq!(sanitize("\x1b[12\nnext"), "\nnext");
    assert_eq!(sanitize("\x1b\nnext"), "\nnext");
    assert_eq!(sanitize("\x1b[3é and on"), "é and on");
    assert_eq!(sanitize("tail\x1b"), "tail");
}

#[test]
fn newlines_and_tabs_stay_and_carriage_returns_cannot_overwrite() {
    assert_eq!(sanitize("a\tb\nc"), "a\tb\nc");
    assert_eq!(sanitize("one\r\ntwo"), "one\ntwo");
    assert_eq!(sanitize("safe\rrm -rf"), "saferm -rf");
    assert_eq!(sanitize_line("a\tb\r\nc"), "a b c");
}

#[test]
fn what_was_hidden_is_shown_and_what_scripts_need_stays() {
    assert_eq!(sanitize("a\u{202e}txt.exe"), "a<U+202E>txt.exe");
    assert_eq!(sanitize("\u{2066}x\u{2069}"), "<U+2066>x<U+2069>");
    assert_eq!(sanitize("pass\u{200b}word"), "pass<U+200B>word");
    assert_eq!(sanitize("\u{e0041}"), "<U+E0041>");
    let family = "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} می\u{200c}خواهم";
    assert!(matches!(sanitize(family), Cow::Borrowed(text) if text == family));
}

#[test]
fn a_text_is_cut_by_columns_and_never_inside_what_is_seen_as_one_character() {
    assert_eq!(fit("abcdef", 6), "abcdef");
    assert_eq!(fit("abcdef", 5), "abcd…");
    assert_eq!(fit("日本語", 5), "日本…");
    assert_eq!(fit("日本語", 4), "日…");
    assert_eq!(fit("abc", 0), "");
    assert_eq!(fit("abc", 1), "…");
    let family = "👨\u{200d}👩\u{200d}👧";
    assert_eq!(fit(&format!("{family}abc"), 3), format!("{family}…"));
    assert_eq!(fit(&format!("{family}abc"), 2), "…");
    assert_eq!(fit("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    assert_eq!(fit("🇩🇪🇫🇷🇮🇹", 4), "🇩🇪…");
}

proptest! {
    #[test]
    fn nothing_that_acts_on_a_terminal_survives(text in hostile()) {
        let shown = sanitize(&text).into_owned();
        prop_assert!(shown.bytes().all(|byte| byte >= 0x20 && byte != 0x7f || byte == b'\n' || byte == b'\t'));
        prop_assert!(!shown.chars().any(is_hazard), "{shown:?}");
        prop_assert_eq!(sanitize(&shown), shown.as_str());
    }

    #[test]
    fn pieces_are_sanitised_like_the_whole(text in hostile(), cuts in proptest::collection::vec(0usize..60, 0..6)) {
        let mut sanitizer = Sanitizer::default();
        let mut shown = String::new();
        let chars: Vec<char> = text.chars().collect();
        let mut rest = chars.as_slice();
        for cut in cuts {
            let (piece, tail) = rest.split_at(cut.min(rest.len()));
            shown.push_str(&sanitizer.feed(&piece.iter().collect::<String>()));
            rest = tail;
        }
        shown.push_str(&sanitizer.feed(&rest.iter().collect::<String>()));
        prop_assert_eq!(shown, sanitize(&text));
    }

    #[test]
    fn a_fitted_text_fits_and_begins_like_the_whole(text in any::<String>(), columns in 0usize..40) {
        let text = sanitize_line(&text);
        let cut = fit(&text, columns);
        prop_assert!(width(&cut) <= columns, "{} > {columns}", width(&cut));
        prop_assert!(cut == text.as_str() || text.starts_with(cut.trim_end_matches('…')));
    }

    #[test]
    fn clusters_are_the_text(text in any::<String>()) {
        let joined: String = clusters(&text).map(|(_, cluster)| cluster).collect();
        prop_assert_eq!(joined, text);
    }
}

/// Text with more control characters than chance would give it.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[ -~]{0,5}",
        prop::sample::select(vec![
            "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x07", "\x1b\\", "\u{9b}", "\u{9c}", "\u{9d}",
            "\n", "\r", "\t", "\u{202e}", "\u{200d}", "m", "\u{18}",
        ])
        .prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}
