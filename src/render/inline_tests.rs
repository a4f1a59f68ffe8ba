use proptest::prelude::*;

use super::*;

/// The text with its styles written as `<b>`…: what a reader sees, testable.
fn shown(text: &str) -> String {
    let (spans, taken) = spans(text, None, Style::PLAIN, Rest::Ended);
    assert_eq!(taken, text.len());
    spans.iter().map(tagged).collect()
}

fn tagged(span: &Span) -> String {
    let mut text = span.text.clone();
    for (style, tag) in [
        (Style::CODE, "c"),
        (Style::DIM, "d"),
        (Style::LINK, "a"),
        (Style::STRIKE, "s"),
        (Style::ITALIC, "i"),
        (Style::BOLD, "b"),
    ] {
        if span.style.has(style) {
            text = format!("<{tag}>{text}</{tag}>");
        }
    }
    text
}

#[test]
fn emphasis_code_and_links_are_recognised() {
    for (text, expected) in [
        ("a *b* c", "a <i>b</i> c"),
        ("a **b** c", "a <b>b</b> c"),
        ("***b***", "<b><i>b</i></b>"),
        ("_b_ __c__", "<i>b</i> <b>c</b>"),
        ("~~gone~~", "<s>gone</s>"),
        ("`a*b*` and ``a`b``", "<c>a*b*</c> and <c>a`b</c>"),
        ("`` ` ``", "<c>`</c>"),
        ("**a `**` b**", "<b>a </b><b><c>**</c></b><b> b</b>"),
        ("**a *b* c**", "<b>a </b><b><i>b</i></b><b> c</b>"),
        ("*a **b***", "<i>a </i><b><i>b</i></b>"),
        ("[text](http://x)", "<a>text</a><d> (http://x)</d>"),
        ("[http://x](http://x)", "<a>http://x</a>"),
        ("![alt](i.png)", "<a>alt</a><d> (i.png)</d>"),
        ("[a](b(c)d)", "<a>a</a><d> (b(c)d)</d>"),
        (r"\*not\* \a", r"*not* \a"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn what_opens_nothing_stands_for_itself() {
    for text in [
        "2 * 3 * 4",
        "2*3",
        "*args and **kwargs",
        "snake_case_name",
        "a_b_ c",
        "**",
        "****",
        "* a*",
        "~/.config",
        "[x] done",
        "[not a link] (x)",
        "a ` b",
        "wow!",
        "![",
        "~one~",
        "a \\",
        "**bold without end",
        "é * ü",
    ] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn a_mark_whose_partner_is_too_far_is_not_waited_for() {
    let far = format!("*{}*", "x".repeat(2 * LOOKAHEAD));
    let (spans, taken) = spans(&far, None, Style::PLAIN, Rest::Open);
    assert!(taken > LOOKAHEAD);
    assert!(spans.iter().all(|span| span.style == Style::PLAIN));
}

#[test]
fn text_without_marks_is_never_held_back() {
    let (found, taken) = spans("plain words ", None, Style::PLAIN, Rest::Open);
    assert_eq!(taken, "plain words ".len());
    assert_eq!(found.len(), 1);
    let (_, taken) = spans("plain **bold", None, Style::PLAIN, Rest::Open);
    assert_eq!(taken, "plain ".len());
}

/// What is seen when `text` arrives in pieces of `sizes` characters.
fn streamed(text: &str, sizes: &[usize]) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::new();
    let mut push = |spans: Vec<Span>| {
        for span in spans {
            match out.last_mut() {
                Some(last) if last.style == span.style => last.text.push_str(&span.text),
                _ => out.push(span),
            }
        }
    };
    let chars: Vec<char> = text.chars().collect();
    let (mut held, mut before, mut at) = (String::new(), None, 0);
    for size in sizes.iter().copied().cycle() {
        let end = (at + size).min(chars.len());
        held.extend(&chars[at..end]);
        at = end;
        let rest = if at == chars.len() {
            Rest::Ended
        } else {
            Rest::Open
        };
        let (found, taken) = spans(&held, before, Style::PLAIN, rest);
        push(found);
        before = held[..taken].chars().next_back().or(before);
        held.drain(..taken);
        if rest == Rest::Ended {
            break;
        }
    }
    assert!(held.is_empty());
    out
}

proptest! {
    #[test]
    fn pieces_mean_what_the_whole_means(
        text in "[a ]{0,3}([*_~`\\[\\]()!\\\\a é]{1,3}){0,30}",
        sizes in proptest::collection::vec(1usize..5, 1..6),
    ) {
        let (whole, taken) = spans(&text, None, Style::PLAIN, Rest::Ended);
        prop_assert_eq!(taken, text.len());
        prop_assert_eq!(streamed(&text, &sizes), whole);
    }

    #[test]
    fn pieces_mean_what_the_whole_means_beyond_the_lookahead(
        filler in (LOOKAHEAD - 6)..(LOOKAHEAD + 6), marks in "[*_`\\[]{1,3}", end in "[*_`\\](]{0,5}",
        sizes in proptest::collection::vec(1usize..400, 1..4),
    ) {
        let text = format!("{marks}{}{end}b", "a".repeat(filler));
        let (whole, _) = spans(&text, None, Style::PLAIN, Rest::Ended);
        prop_assert_eq!(streamed(&text, &sizes), whole);
    }

    #[test]
    fn any_text_is_parsed_whole(text in any::<String>()) {
        let (_, taken) = spans(&text, None, Style::PLAIN, Rest::Ended);
        prop_assert_eq!(taken, text.len());
    }
}
