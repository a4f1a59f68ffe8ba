//! Tests of the module beside.

use super::*;

fn aliases(pairs: &[(&str, &str)]) -> Aliases {
    Aliases::new(
        pairs
            .iter()
            .map(|(name, names)| ((*name).to_owned(), Names::from_csv(names))),
    )
}

fn expanded(aliases: &Aliases, name: &str, known: &[&str]) -> Vec<String> {
    aliases
        .expand(name, &|name| known.contains(&name))
        .into_iter()
        .collect()
}

#[test]
fn values_are_trimmed_and_kept_once() {
    let names = Names::from_csv(" a , local git,,ü ,a,");
    assert_eq!(names.iter().collect::<Vec<_>>(), ["a", "local git", "ü"]);
}

#[test]
fn an_alias_stands_for_its_names_and_for_other_aliases() {
    let aliases = aliases(&[
        (" code ", "github, local git"),
        ("work", "code,docs"),
        ("docs", "docs"),
    ]);
    assert_eq!(expanded(&aliases, "code", &[]), ["github", "local git"]);
    assert_eq!(
        expanded(&aliases, " work", &["docs"]),
        ["docs", "github", "local git"]
    );
    assert_eq!(expanded(&aliases, "other", &[]), ["other"]);
}

#[test]
fn an_alias_called_like_a_server_does_not_hide_it() {
    let aliases = aliases(&[("docs", "github")]);
    assert_eq!(
        expanded(&aliases, "docs", &["docs", "github"]),
        ["docs", "github"]
    );
    assert_eq!(expanded(&aliases, "docs", &["github"]), ["github"]);
}

#[test]
fn a_circle_of_aliases_ends() {
    let aliases = aliases(&[("a", "b"), ("b", "a,x"), ("self", "self")]);
    assert_eq!(expanded(&aliases, "a", &[]), ["x"]);
    assert_eq!(expanded(&aliases, "self", &[]), Vec::<String>::new());
}

#[test]
fn a_choice_is_written_as_it_was_meant() {
    let cases = [
        (Choice::None, "null"),
        (Choice::All, "\"all\""),
        (Choice::from_csv("a, b"), "\"a,b\""),
        (Choice::from_exact(["a,b", "c"]), "[\"a,b\",\"c\"]"),
    ];
    for (choice, json) in cases {
        assert_eq!(serde_json::to_string(&choice).unwrap(), json);
        assert_eq!(serde_json::from_str::<Choice>(json).unwrap(), choice);
    }
    assert_eq!(Choice::from_csv("none"), Choice::None);
    assert_eq!(Choice::from_csv("null"), Choice::None);
    assert_eq!(Choice::from_csv(" all "), Choice::All);
}

proptest::proptest! {
    #[test]
    fn expansion_ends_whatever_the_aliases(
        pairs in proptest::collection::vec(("[a-f]", "[a-h](,[a-h]){0,4}"), 0..8),
        name in "[a-h]",
    ) {
        let aliases = Aliases::new(pairs.into_iter().map(|(name, names)| (name, Names::from_csv(&names))));
        for found in aliases.expand(&name, &|_| false) {
            proptest::prop_assert!(aliases.get(&found).is_none());
        }
    }
}
