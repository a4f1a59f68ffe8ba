use proptest::prelude::*;

use super::*;

const STRICT: Rules = Rules {
    max_id: 64,
    any_id: false,
    name_starts_with_letter: true,
};

#[test]
fn what_is_legal_passes_unchanged() {
    let longest = "a".repeat(64);
    for legal in ["mcp_read_docs", "a-b", "_x", longest.as_str()] {
        assert_eq!(name(legal, &STRICT), legal);
        assert_eq!(id(legal, &STRICT), legal);
    }
}

#[test]
fn a_first_character_counts_only_where_the_wire_says_so() {
    let lax = Rules {
        name_starts_with_letter: false,
        ..STRICT
    };
    assert_eq!(name("1a", &lax), "1a");
    assert_ne!(name("1a", &STRICT), "1a");
}

proptest! {
    #[test]
    fn every_name_and_id_becomes_legal_and_stays_the_same(text in ".{0,90}") {
        let sent = name(&text, &STRICT);
        prop_assert!(sent.len() <= 64 && sent.chars().all(is_word), "{}", sent);
        prop_assert!(sent.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        prop_assert_eq!(&name(&text, &STRICT), &sent);
        for max_id in [9, 40, 64] {
            let sent = id(&text, &Rules { max_id, ..STRICT });
            prop_assert!(!sent.is_empty() && sent.len() <= max_id && sent.chars().all(is_word), "{}", sent);
        }
    }
}
