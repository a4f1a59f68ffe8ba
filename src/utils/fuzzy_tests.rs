use proptest::prelude::*;

use super::*;

#[test]
fn the_nearest_name_comes_first_and_far_ones_do_not_come() {
    let known = [".session", ".set", ".save", ".exit", ".empty"];
    assert_eq!(nearest(".sesion", known, 3).first(), Some(&".session"));
    assert_eq!(nearest(".SET", known, 3).first(), Some(&".set"));
    assert_eq!(nearest(".quit", [".exit"], 3), Vec::<&str>::new());
    assert_eq!(nearest("zzz", known, 3), Vec::<&str>::new());
    assert_eq!(nearest("", known, 3), Vec::<&str>::new());
    assert_eq!(
        nearest("mcp", ["enabled_mcp_servers", "model"], 3),
        ["enabled_mcp_servers"]
    );
}

#[test]
fn transposed_letters_are_one_slip() {
    assert_eq!(nearest("stream", ["save", "stream"], 1), ["stream"]);
    assert_eq!(nearest("opnea", ["openai", "ollama"], 1), ["openai"]);
    assert_eq!(nearest("wrpa", ["wrap"], 1), ["wrap"]);
}

#[test]
fn alternatives_read_as_a_sentence() {
    assert_eq!(alternatives(&[]), "");
    assert_eq!(alternatives(&["a"]), "`a`");
    assert_eq!(alternatives(&["a", "b", "c"]), "`a`, `b` or `c`");
}

#[test]
fn filtering_ranks_and_keeps_the_order_when_nothing_was_typed() {
    let candidates = ["fs_cat", "fs_write", "execute_command"];
    let all: Vec<usize> = filter("", &candidates)
        .iter()
        .map(|fit| fit.index)
        .collect();
    assert_eq!(all, [0, 1, 2]);
    let fits = filter("wri", &candidates);
    assert_eq!(fits.len(), 1);
    assert_eq!(
        fits[0],
        Fit {
            index: 1,
            places: vec![3, 4, 5]
        }
    );
}

#[test]
fn typed_text_is_a_name_and_no_pattern() {
    assert_eq!(filter("!a", &["a", "b"]), []);
    assert_eq!(filter("a b", &["b a", "a b"]).len(), 1);
    assert_eq!(filter("a$", &["a", "a$"]).len(), 1);
}

proptest! {
    #[test]
    fn any_names_are_compared_without_a_panic(name in any::<String>(), known in proptest::collection::vec(any::<String>(), 0..6)) {
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        prop_assert!(nearest(&name, known.iter().copied(), 3).len() <= 3);
        for fit in filter(&name, &known) {
            prop_assert!(fit.index < known.len());
        }
    }
}
