use proptest::prelude::*;

use super::*;
use crate::render::options::Theme;

const COLOR: Paint = Paint {
    theme: Theme::Dark,
    color: true,
    true_color: false,
};

fn render_with(text: &str, wrap: Wrap, columns: usize, sizes: &[usize]) -> String {
    let mut markdown = Markdown::new(COLOR, wrap);
    let mut out = String::new();
    let mut rest: Vec<char> = text.chars().rev().collect();
    for size in sizes.iter().copied().cycle() {
        if rest.is_empty() {
            break;
        }
        let piece: String = (0..size).map_while(|_| rest.pop()).collect();
        out.push_str(&markdown.feed(&piece, columns));
    }
    out.push_str(&markdown.finish(columns));
    out
}

/// What a reader sees, styles aside.
fn seen(text: &str) -> String {
    text::sanitize(&render_with(text, Wrap::No, 60, &[usize::MAX])).into_owned()
}

#[test]
fn an_answer_is_shown_as_its_marks_mean() {
    let answer = "# Title\n\nSome *soft* and **strong** `code`.\n\n- one\n  - two\n1. first\n> quoted\n\n---\nend";
    let shown = render_with(answer, Wrap::No, 40, &[usize::MAX]);
    assert!(shown.contains("\x1b[1;95mTitle\x1b[0m\n"), "{shown:?}");
    assert!(
        shown.contains("\x1b[3msoft\x1b[0m and \x1b[1mstrong\x1b[0m"),
        "{shown:?}"
    );
    assert_eq!(
        text::sanitize(&shown),
        format!(
            "Title\n\nSome soft and strong code.\n\n• one\n  • two\n1. first\n│ quoted\n\n{}\nend\n",
            "─".repeat(40)
        )
    );
}

#[test]
fn what_only_looks_like_a_mark_is_text() {
    for text in [
        "#hashtag",
        "-5 degrees",
        "1.5 times",
        "2020",
        "* ",
        "+1",
        "_private",
        "~/.config",
        "|",
        "--",
        "#",
    ] {
        let shown = seen(text);
        if !matches!(text, "* " | "#") {
            assert_eq!(shown, format!("{text}\n"), "{text}");
        }
    }
}

#[test]
fn words_are_shown_as_they_come_and_code_line_by_line() {
    let mut markdown = Markdown::new(COLOR, Wrap::No);
    assert_eq!(markdown.feed("Hello", 80), "Hello");
    assert_eq!(markdown.feed(" wor", 80), " wor");
    assert_eq!(markdown.feed("ld **bo", 80), "ld ");
    assert_eq!(markdown.feed("ld** ", 80), "\x1b[1mbold\x1b[0m ");
    assert_eq!(
        markdown.feed("\n```rust\n", 80),
        "\n\x1b[2m```rust\x1b[0m\n"
    );
    assert_eq!(markdown.feed("let x", 80), "");
    assert!(markdown.feed(" = 1;\n", 80).contains("\x1b[38;5;"));
    assert_eq!(markdown.feed("```\n", 80), "\x1b[2m```\x1b[0m\n");
    assert_eq!(markdown.finish(80), "");
}

#[test]
fn code_is_never_read_as_markdown() {
    let shown = seen("```\n# no *title*\n| a |\n- x\n````text\n```\nafter");
    assert_eq!(
        shown,
        "```\n# no *title*\n| a |\n- x\n````text\n```\nafter\n"
    );
}

#[test]
fn a_table_is_held_until_it_ends_and_fits_the_width() {
    let table = "| Name | What |\n|:--|--:|\n| `a\\|b` | **x** |\n| long | several words that do not fit |\nafter";
    let shown = text::sanitize(&render_with(table, Wrap::No, 24, &[usize::MAX])).into_owned();
    let expected = "Name │ What\n─────┼──────────────────\na|b  │ x\nlong │ several words\n     │ that do not fit\nafter\n";
    assert_eq!(shown, expected);
    assert_eq!(seen("| no table\nafter"), "| no table\nafter\n");
    let mut markdown = Markdown::new(COLOR, Wrap::No);
    assert_eq!(markdown.feed("| a |\n|---|\n| b |\n", 80), "");
    assert!(markdown.finish(80).contains('b'));
}

#[test]
fn lines_are_broken_between_words_where_that_is_wanted() {
    let text = "- one two three four\n\nabc def **ghi jkl** mno\n> a quote that is long\n";
    let shown =
        text::sanitize(&render_with(text, Wrap::Columns(12), 80, &[usize::MAX])).into_owned();
    assert_eq!(
        shown,
        "• one two\n  three four\n\nabc def ghi\njkl mno\n│ a quote\n│ that is\n│ long\n"
    );
    let code = "```\nan unbroken line of code\n```\n";
    let shown = render_with(code, Wrap::Columns(12), 80, &[usize::MAX]);
    assert!(shown.contains("an unbroken line of code"), "{shown:?}");
}

#[test]
fn an_answer_cannot_act_on_the_terminal() {
    let shown = seen("a\x1b[2Jb \x1b]0;t\x07c \u{9b}31md \u{202e}e\n```sh\nx\x1b[1A\r\n```\n");
    assert_eq!(shown, "ab c d <U+202E>e\n```sh\nx\n```\n");
    let mut markdown = Markdown::new(COLOR, Wrap::No);
    let split = markdown.feed("a\x1b", 80)
        + &markdown.feed("[2", 80)
        + &markdown.feed("Jb", 80)
        + &markdown.finish(80);
    assert_eq!(split, "ab\n");
}

#[test]
fn an_endless_line_is_shown_while_it_comes_and_is_complete() {
    for start in ["", "- ", "| ", "-", "```", "# "] {
        let text = format!("{start}{}", "x y".repeat(100_000));
        let whole = text::sanitize(&render_with(&text, Wrap::No, 80, &[usize::MAX])).into_owned();
        let pieces = text::sanitize(&render_with(&text, Wrap::No, 80, &[7919])).into_owned();
        assert_eq!(whole.matches('y').count(), 100_000, "{start}");
        assert!(whole == pieces, "{start}");
    }
    let dashes = format!("{}x", "-".repeat(MAX_HELD + 10));
    assert!(
        render_with(&dashes, Wrap::No, 80, &[usize::MAX])
            == render_with(&dashes, Wrap::No, 80, &[1000])
    );
}

#[test]
fn the_answer_ends_in_one_newline() {
    assert_eq!(seen("text"), "text\n");
    assert_eq!(seen("text\n"), "text\n");
    assert_eq!(seen(""), "");
    assert_eq!(seen("```\ncode"), "```\ncode\n");
}

fn answer() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[#>*_`~|0-9. +-]{0,4}[a é]{0,8}([*_`~|\\[\\]()!\\\\]{1,2}[a é]{0,4}){0,4}",
        1 => prop::sample::select(vec!["```rust", "```", "~~~", "| a | b |", "|---|---|", "---", "- ", "", "# ", "> > x", "\t"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn any_pieces_give_the_same_output(
        text in answer(), sizes in proptest::collection::vec(1usize..9, 1..6), wrapped in any::<bool>(),
    ) {
        let wrap = if wrapped { Wrap::Columns(20) } else { Wrap::No };
        let whole = render_with(&text, wrap, 40, &[usize::MAX]);
        prop_assert_eq!(render_with(&text, wrap, 40, &sizes), whole);
    }

    #[test]
    fn letters_are_never_lost(text in answer()) {
        let letters = |text: &str| text.chars().filter(|c| matches!(c, 'a' | 'é')).collect::<String>();
        prop_assert_eq!(letters(&seen(&text)), letters(&text::sanitize(&text)));
    }

    #[test]
    fn only_our_own_sequences_come_out(text in any::<String>()) {
        let shown = render_with(&text, Wrap::Auto, 40, &[3]);
        for piece in shown.split('\x1b').skip(1) {
            let end = piece.find('m');
            prop_assert!(piece.starts_with('[') && end.is_some(), "{piece:?}");
            prop_assert!(piece[1..end.unwrap()].chars().all(|c| c.is_ascii_digit() || c == ';'));
        }
    }
}
