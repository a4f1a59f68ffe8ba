use proptest::prelude::*;

use super::*;

fn texts(line: &str) -> Vec<String> {
    split(line)
        .unwrap()
        .into_iter()
        .map(|word| word.text)
        .collect()
}

#[test]
fn words_split_like_a_shells_and_nothing_is_expanded() {
    for (line, expected) in [
        ("", vec![]),
        ("   \t\n ", vec![]),
        ("a  b\tc", vec!["a", "b", "c"]),
        (r#"key="two words""#, vec!["key=two words"]),
        ("'key=two words'", vec!["key=two words"]),
        ("key=", vec!["key="]),
        ("key=a=b", vec!["key=a=b"]),
        ("''", vec![""]),
        (r#"a"" b"#, vec!["a", "b"]),
        (r"a\ b", vec!["a b"]),
        (r#""\n \" \\ \$""#, vec![r#"\n " \ $"#]),
        (r#"'\n "'"#, vec![r#"\n ""#]),
        ("$HOME *.rs ~ `id`", vec!["$HOME", "*.rs", "~", "`id`"]),
        ("naïve.txt 日本　語", vec!["naïve.txt", "日本", "語"]),
        ("\"line\nbreak\"", vec!["line\nbreak"]),
        ("join\\\ned", vec!["joined"]),
    ] {
        assert_eq!(texts(line), expected, "{line}");
    }
}

#[test]
fn an_unmatched_quote_says_which_and_where() {
    assert_eq!(
        split("é 'open"),
        Err(SplitError::UnmatchedQuote {
            mark: '\'',
            column: 3
        })
    );
    assert_eq!(
        split(r#"a "b\"#),
        Err(SplitError::UnmatchedQuote {
            mark: '"',
            column: 3
        })
    );
    assert_eq!(split("a\\"), Err(SplitError::DanglingEscape));
}

#[test]
fn the_half_typed_word_is_known() {
    let partial = split_partial("ärger 'half ty");
    assert_eq!(partial.done.len(), 1);
    assert_eq!(partial.done[0].text, "ärger");
    assert_eq!(partial.last.text, "half ty");
    assert_eq!(partial.last.span, 7..15);
    assert!(partial.open.is_some());

    let partial = split_partial("done ");
    assert_eq!(
        partial.last,
        Word {
            text: String::new(),
            span: 5..5
        }
    );
    assert_eq!(partial.open, None);

    let partial = split_partial("do''");
    assert_eq!(partial.last.text, "do");
    assert_eq!(partial.last.span, 0..4);
}

proptest! {
    #[test]
    fn any_line_splits_or_says_why(line in any::<String>()) {
        let partial = split_partial(&line);
        for word in partial.done.iter().chain([&partial.last]) {
            prop_assert!(line.get(word.span.clone()).is_some());
        }
        prop_assert_eq!(split(&line).is_err(), partial.open.is_some());
    }

    #[test]
    fn a_quoted_name_comes_back(names in proptest::collection::vec(any::<String>(), 0..5)) {
        let line = names.iter().map(|name| quote(name).into_owned()).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(texts(&line), names);
    }

    #[test]
    fn a_word_means_the_same_alone(line in "[a-c'\"\\\\ \\n$é]{0,12}") {
        if let Ok(words) = split(&line) {
            for word in words {
                let alone = split(line.get(word.span).unwrap()).unwrap();
                prop_assert_eq!(alone.len(), 1);
                prop_assert_eq!(&alone[0].text, &word.text);
            }
        }
    }
}
