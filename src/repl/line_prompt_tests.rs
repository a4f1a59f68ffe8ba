use proptest::prelude::*;

use super::*;

fn plain(template: &str, vars: &[(&str, &str)]) -> String {
    let var = |name: &str| {
        let found = vars.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    render(template, &var, false)
}

#[test]
fn the_sample_templates_mean_what_they_say() {
    let left = "{color.green}{?role {role}}{!role {model}}{color.reset}> ";
    assert_eq!(
        plain(left, &[("role", "reviewer"), ("model", "a:b")]),
        "reviewer> "
    );
    assert_eq!(plain(left, &[("model", "a:b")]), "a:b> ");
    let right = "{color.dark_gray}{?session {session}}{color.reset}";
    assert_eq!(plain(right, &[("session", "work")]), "work");
    assert_eq!(plain(right, &[]), "");
}

#[test]
fn the_default_names_what_is_active() {
    assert_eq!(plain(DEFAULT_LEFT, &[]), "> ");
    assert_eq!(plain(DEFAULT_LEFT, &[("model", "a:b")]), "a:b> ");
    assert_eq!(
        plain(DEFAULT_LEFT, &[("model", "a:b"), ("role", "r")]),
        "r> "
    );
    assert_eq!(
        plain(DEFAULT_LEFT, &[("session", "s"), ("role", "r")]),
        "s/r> "
    );
}

#[test]
fn pieces_nest_and_what_is_no_piece_stands_for_itself() {
    let vars = [("a", "1"), ("b", ""), ("c", "false"), ("d", "0")];
    assert_eq!(plain("{?a <{?b x}{!b y}>}", &vars), "<y>");
    assert_eq!(plain("{?c x}{?d y}{!c z}", &vars), "z");
    assert_eq!(plain("{?a two  blanks}", &vars), "two  blanks");
    assert_eq!(plain("{?a }", &vars), "");
    assert_eq!(plain("open { and close }", &vars), "open { and close }");
    assert_eq!(plain("{not a piece {a}}", &vars), "{not a piece 1}");
    assert_eq!(plain("{} {{a}} {unknown}", &vars), "{} {1} ");
}

#[test]
fn colours_are_sequences_only_where_they_are_wanted_and_end_with_the_prompt() {
    assert_eq!(
        render("{color.red}x{color.reset}y", &|_| None, true),
        "\x1b[31mx\x1b[0my"
    );
    assert_eq!(render("{color.red}x", &|_| None, true), "\x1b[31mx\x1b[0m");
    assert_eq!(render("{color.nothing}x", &|_| None, true), "x");
    assert_eq!(render("{color.red}x", &|_| None, false), "x");
}

#[test]
fn a_value_cannot_act_on_the_terminal() {
    assert_eq!(
        plain("{role}", &[("role", "a\x1b[2J\nb\u{202e}")]),
        "a b<U+202E>"
    );
}

proptest! {
    #[test]
    fn any_template_is_filled_in_without_a_panic(template in "[{}?!a. é]{0,60}") {
        let _ = plain(&template, &[("a", "value")]);
    }

    #[test]
    fn text_without_braces_is_itself(template in "[^{}]{0,40}") {
        prop_assert_eq!(plain(&template, &[]), template);
    }
}

#[test]
fn deep_nesting_ends() {
    let deep = "{?a ".repeat(100_000);
    let _ = plain(&deep, &[("a", "1")]);
    let closed = format!("{}x{}", "{?a ".repeat(2_000), "}".repeat(2_000));
    let _ = plain(&closed, &[("a", "1")]);
}
