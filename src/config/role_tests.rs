//! Tests of the module beside.

use super::*;

const REVIEWER: &str = include_str!("../../tests/data/home/roles/reviewer.md");
const TRANSLATE: &str = include_str!("../../tests/data/home/roles/translate.md");

fn parse(text: &str) -> (Role, Vec<String>) {
    Role::parse("r", text, Path::new("/c/roles/r.md"))
        .unwrap_or_else(|error| panic!("{error:?}\n{text:?}"))
}

fn variables() -> Variables {
    Variables::now(
        &Env::new([("SHELL", "/usr/bin/fish"), ("LANG", "de_DE.UTF-8")]),
        Path::new("/arbeit/ü"),
    )
}

#[test]
fn the_sample_has_settings_and_keeps_its_table() {
    let (role, warnings) = parse(REVIEWER);
    assert!(warnings.is_empty());
    assert_eq!(
        role.settings.model.as_deref(),
        Some("claude:claude-sonnet-4-5")
    );
    assert_eq!(role.settings.temperature, Some(0.0));
    assert_eq!(role.settings.enabled_tools, Some(Choice::from_csv("fs")));
    assert_eq!(
        role.settings.enabled_mcp_servers,
        Some(Choice::from_csv("code"))
    );
    assert!(role.prompt().contains("| column | --- |\n| a | --- |"));
    let role = role.interpolated(&variables());
    let system = role.system().unwrap();
    assert!(
        system.contains(std::env::consts::OS) && system.contains("in /arbeit/ü."),
        "{system}"
    );
    assert!(system.ends_with("Answer with findings only."));
}

#[test]
fn the_sample_template_goes_around_the_input() {
    let (role, _) = parse(TRANSLATE);
    assert_eq!(role.system(), None);
    assert_eq!(role.embed("Guten Tag"), "Translate to French:\n\nGuten Tag");
}

#[test]
fn settings_stand_only_between_a_first_line_and_the_next() {
    for text in [
        "text\n---\nmodel: x\n---\n",
        "\n---\nmodel: x\n---\nbody",
        "---\nmodel: x\n",
        "--- \nmodel: x\n----\nbody",
        "----\nmodel: x\n---\nbody",
        "---",
        "| a | b |\n| --- | --- |\n",
    ] {
        let (role, _) = parse(text);
        assert_eq!(role.settings, LayerSettings::default(), "{text:?}");
        assert_eq!(role.prompt(), text.trim(), "{text:?}");
    }
    for text in [
        "---\nmodel: x\n---\nbody\n---\nmore",
        "\u{feff}---\r\nmodel: x\r\n---\r\nbody\n---\nmore",
    ] {
        let (role, _) = parse(text);
        assert_eq!(role.settings.model.as_deref(), Some("x"), "{text:?}");
        assert_eq!(role.prompt(), "body\n---\nmore", "{text:?}");
    }
    let (empty, _) = parse("---\n---\nbody");
    assert_eq!(empty.prompt(), "body");
}

#[test]
fn wrong_settings_name_the_line_of_the_file() {
    let error = Role::parse(
        "r",
        "---\nmodel: x\ntemperature: warm\n---\nbody",
        Path::new("/c/roles/r.md"),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("/c/roles/r.md:3:14"),
        "{error:?}"
    );
    let (_, warnings) = parse("---\nmodle: x\n---\nbody");
    assert!(warnings[0].contains("`modle`") && warnings[0].contains("`model`"));
}

#[test]
fn null_in_a_role_is_none_and_absence_falls_through() {
    let (role, _) = parse("---\nenabled_tools: null\n---\nbody");
    assert_eq!(role.settings.enabled_tools, Some(Choice::None));
    assert_eq!(role.settings.enabled_mcp_servers, None);
}

#[test]
fn input_is_put_in_once_and_never_read_again() {
    let (role, _) = parse("a __INPUT__ b __INPUT__");
    assert_eq!(
        role.embed("__INPUT__ {{__os__}}"),
        "a __INPUT__ {{__os__}} b __INPUT__ {{__os__}}"
    );
    let (plain, _) = parse("system words");
    assert_eq!(plain.embed("x"), "x");
}

#[test]
fn known_variables_are_replaced_and_others_stay() {
    let variables = variables();
    let text = variables
        .interpolate("{{__shell__}} {{ __locale__ }} {{__arch__}} {{other}} {{ {{__cwd__}} }} {{");
    assert_eq!(
        text,
        format!(
            "fish de_DE {} {{{{other}}}} {{{{ /arbeit/ü }}}} {{{{",
            std::env::consts::ARCH
        )
    );
    let now = variables.interpolate("{{__now__}}");
    assert!(chrono::DateTime::parse_from_rfc3339(&now).is_ok(), "{now}");
    for name in ["__os__", "__os_family__", "__os_distro__"] {
        assert!(
            !variables
                .interpolate(&format!("{{{{{name}}}}}"))
                .contains("{{")
        );
    }
}

#[test]
fn built_in_roles_work_without_files_and_files_win() {
    let home = tempfile::tempdir().unwrap();
    let paths = Paths::new(home.path(), home.path());
    for name in ["shell", "code", "explain-shell"] {
        let (role, _) = Role::load(&paths, name).unwrap();
        let role = role.interpolated(&variables());
        assert!(!role.system().unwrap().contains("{{"), "{name}");
    }
    assert_eq!(Role::names(&paths), ["code", "explain-shell", "shell"]);
    std::fs::create_dir_all(paths.roles_dir()).unwrap();
    std::fs::write(paths.roles_dir().join("code.md"), "mine").unwrap();
    assert_eq!(Role::load(&paths, "code").unwrap().0.prompt(), "mine");
    assert_eq!(Role::names(&paths), ["code", "explain-shell", "shell"]);
}

#[test]
fn an_unknown_role_names_the_nearest() {
    let home = tempfile::tempdir().unwrap();
    let error = Role::load(&Paths::new(home.path(), home.path()), "shel").unwrap_err();
    assert_eq!(error.to_string(), "there is no role `shel`");
    assert!(error.hints()[0].contains("`shell`"));
    assert!(Role::load(&Paths::new("/c", "/k"), "../x").is_err());
}

#[test]
fn a_saved_role_reads_back_the_same() {
    let home = tempfile::tempdir().unwrap();
    let paths = Paths::new(home.path(), home.path());
    for text in [
        REVIEWER,
        TRANSLATE,
        "---\n---\n---\nmodel: not a setting\n---\nbody",
        "日本 {{__os__}}\n\n---\nx",
    ] {
        let role = parse(text).0.renamed("ü").interpolated(&variables());
        let file = role.save(&paths, "ü").unwrap();
        let (back, warnings) = Role::load(&paths, "ü").unwrap();
        assert!(warnings.is_empty());
        assert_eq!(back.prompt(), role.prompt());
        assert_eq!(back.settings, role.settings);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(
                std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        assert!(file.ends_with("roles/ü.md"));
    }
}

proptest::proptest! {
    #[test]
    fn any_prompt_survives_saving(prompt in "(?s)(---\n|[a-z:]{0,9}\n|\\PC{0,9}){0,6}") {
        let role = Role::new("r", prompt.trim());
        let text = role.to_text().unwrap();
        let back = parse(&text).0;
        proptest::prop_assert_eq!(back.prompt(), prompt.trim());
        proptest::prop_assert_eq!(back.settings, LayerSettings::default());
    }

    #[test]
    fn interpolation_of_any_text_ends(text in "(?s).{0,99}") {
        let _ = variables().interpolate(&text);
    }
}
