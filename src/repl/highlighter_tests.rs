use proptest::prelude::*;
use reedline::Highlighter as _;

use super::*;

#[test]
fn commands_are_told_from_what_only_looks_like_one() {
    assert_eq!(Kind::of(".help"), Kind::Command);
    assert_eq!(Kind::of(".hel"), Kind::Beginning);
    assert_eq!(Kind::of(".nonsense"), Kind::Unknown);
    assert_eq!(Kind::of("!ls"), Kind::Shell);
    assert_eq!(Kind::of("hello"), Kind::Text);
}

#[test]
fn a_pasted_escape_does_not_reach_the_terminal() {
    let styled = Highlighter.highlight("say \x1b[2J\u{9b}\u{202e} é", 0);
    let shown = styled.raw_string();
    assert_eq!(shown, "say ?[2J·\u{fffd} é");
}

proptest! {
    #[test]
    fn every_byte_of_a_line_is_shown_where_it_stands(line in any::<String>(), cursor in any::<usize>()) {
        let shown = Highlighter.highlight(&line, cursor).raw_string();
        let lengths = |text: &str| text.chars().map(char::len_utf8).collect::<Vec<_>>();
        prop_assert_eq!(lengths(&shown), lengths(&line));
    }
}
