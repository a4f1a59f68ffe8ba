use super::*;
use crate::config::testing::Home;

const STANDUP: &str = "description: What did I do?
isolated: false
variables:
- name: since
  default: yesterday
- name: extra
  rest: true
  default: ''
steps:
- .role reviewer
- Summarise since {{since}}. {{ extra }}
";

fn read(text: &str) -> Macro {
    let (found, warnings) = Macro::parse("standup", text, Path::new("standup.yaml")).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    found
}

fn wrong(text: &str) -> String {
    let error = Macro::parse("m", text, Path::new("m.yaml")).unwrap_err();
    let causes: Vec<String> = error.causes().collect();
    format!("{error}: {}", causes.join(": "))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn the_sample_loads_without_a_warning() {
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/samples/macros/standup.yaml"
    );
    let text = std::fs::read_to_string(sample).unwrap();
    let found = read(&text);
    assert!(!found.is_isolated());
    assert_eq!(found.description(), Some("What did I do since a date?"));
    assert_eq!(found.usage(), "standup [SINCE] [EXTRA...]");
    let steps = found
        .steps(&owned(&["monday", "Be", "short."]), ".macro")
        .unwrap();
    assert_eq!(
        steps,
        [
            ".role reviewer",
            "Summarise the commits since monday. Be short."
        ]
    );
}

#[test]
fn variables_are_positional_with_defaults_and_rest() {
    let found = read(STANDUP);
    let last = |arguments: &[&str]| found.steps(&owned(arguments), ".macro").unwrap().remove(1);
    assert_eq!(last(&[]), "Summarise since yesterday. ");
    assert_eq!(last(&["monday"]), "Summarise since monday. ");
    assert_eq!(last(&["", "a", "b"]), "Summarise since . a b");
    assert_eq!(last(&["{{extra}}", "x"]), "Summarise since {{extra}}. x");
    let typed = read(
        "variables: [{name: n, default: 5}, {name: yes, default: no}]\nsteps: ['{{n}} {{yes}} {{other}} {{__cwd__}} {{']",
    );
    assert!(typed.is_isolated(), "the default");
    let steps = typed.steps(&[], ".macro").unwrap();
    assert_eq!(steps, ["5 no {{other}} {{__cwd__}} {{"]);
}

#[test]
fn the_rest_is_taken_as_it_stands() {
    let found = read(STANDUP);
    let split = |text: &str| found.split(text).unwrap();
    assert_eq!(split(""), owned(&[]));
    assert_eq!(split(" 'last week' "), ["last week"]);
    assert_eq!(split("monday what's  up"), ["monday", "what's  up"]);
    assert_eq!(split("monday 'one word'"), ["monday", "one word"]);
    assert!(
        found.split("what's up").is_err(),
        "the first word has a quote that is open"
    );
    let plain = read("variables: [{name: a}]\nsteps: [x]");
    assert_eq!(plain.split("'a b' c").unwrap(), ["a b", "c"]);
    let rest = read("variables: [{name: a, rest: true}]\nsteps: [x]");
    assert_eq!(rest.split("what's up 日本").unwrap(), ["what's up 日本"]);
}

#[test]
fn a_missing_value_is_an_error_with_the_usage() {
    let found = read("variables: [{name: who}, {name: how, rest: true}]\nsteps: [x]");
    for (arguments, missing) in [(&[][..], "`who` is missing"), (&["me"], "`how` is missing")] {
        let error = found.steps(&owned(arguments), ".macro").unwrap_err();
        assert!(error.to_string().contains(missing), "{error}");
        assert_eq!(
            error.hints(),
            ["`.macro standup WHO HOW...` is how it is used"]
        );
    }
    let found = read("variables: [{name: who}]\nsteps: [x]");
    let error = found.steps(&owned(&["a", "b"]), "--macro").unwrap_err();
    assert!(
        error.to_string().contains("`b` is one argument too many"),
        "{error}"
    );
}

#[test]
fn files_that_contradict_themselves_are_refused() {
    assert!(wrong("").contains("`steps` has no line to do"));
    assert!(wrong("steps: ['  ']").contains("`steps` has no line to do"));
    assert!(wrong("steps: 5").contains("m.yaml:1"));
    let twice = "variables: [{name: a}, {name: a}]\nsteps: [x]";
    assert!(wrong(twice).contains("`a` is there twice"));
    let early = "variables: [{name: a, rest: true}, {name: b}]\nsteps: [x]";
    assert!(wrong(early).contains("only the last variable can have `rest`"));
    assert!(wrong("variables: [{name: ''}]\nsteps: [x]").contains("cannot be the name"));
    let text = "step: [x]\nsteps: [x]\nvariables: [{name: a, deflt: b}]";
    let (_, warnings) = Macro::parse("m", text, Path::new("m.yaml")).unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0].contains("`step`") && warnings[0].contains("`steps`"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("`deflt`"), "{warnings:?}");
}

#[test]
fn macros_are_found_by_name_and_reserved_names_are_none() {
    let home = Home::new();
    home.write("macros/standup.yaml", STANDUP);
    home.write("macros/enable.yaml", STANDUP);
    let (found, _) = Macro::load(&home.paths, "standup").unwrap();
    assert_eq!(found.file(), home.paths.macros_dir().join("standup.yaml"));
    let error = Macro::load(&home.paths, "standp").unwrap_err();
    assert_eq!(error.to_string(), "there is no macro `standp`");
    assert_eq!(error.hints(), ["did you mean `standup`?"]);
    for reserved in RESERVED_MACROS {
        let error = Macro::load(&home.paths, reserved).unwrap_err();
        assert!(error.to_string().contains("reserved"), "{error}");
    }
    Macro::load(&home.paths, "../config").unwrap_err();
}
