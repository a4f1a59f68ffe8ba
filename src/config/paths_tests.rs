//! Tests of the module beside.

use super::*;

#[test]
fn our_variable_wins_then_xdg_then_home() {
    let env = Env::new([
        ("COYOTE_CONFIG_DIR", "/ours/ü"),
        ("XDG_CONFIG_HOME", "/xdg"),
        ("XDG_CACHE_HOME", "/xdgcache"),
        ("HOME", "/home/u"),
    ]);
    let paths = Paths::resolve(&env).unwrap();
    assert_eq!(paths.config_dir(), Path::new("/ours/ü"));
    assert_eq!(paths.cache_dir(), Path::new("/xdgcache/coyote"));
    assert_eq!(paths.config_file(), Path::new("/ours/ü/config.yaml"));
    assert_eq!(
        paths.spill_dir(),
        Path::new("/xdgcache/coyote/mcp-resources")
    );
}

#[cfg(all(unix, not(target_os = "macos")))]
#[test]
fn without_variables_home_decides() {
    let paths = Paths::resolve(&Env::new([("HOME", "/home/u")])).unwrap();
    assert_eq!(paths.config_dir(), Path::new("/home/u/.config/coyote"));
    assert_eq!(paths.cache_dir(), Path::new("/home/u/.cache/coyote"));
}

#[test]
fn a_relative_xdg_directory_counts_as_unset() {
    let env = Env::new([("XDG_CONFIG_HOME", "relative"), ("HOME", "/home/u")]);
    let paths = Paths::resolve(&env).unwrap();
    assert!(!paths.config_dir().starts_with("relative"));
}

#[cfg(unix)]
#[test]
fn a_tilde_is_the_home_directory() {
    let env = Env::new([("COYOTE_CONFIG_DIR", "~/my coyote"), ("HOME", "/home/u")]);
    assert_eq!(
        Paths::resolve(&env).unwrap().config_dir(),
        Path::new("/home/u/my coyote")
    );
    assert_eq!(expand_tilde("~other/x", &env), Path::new("~other/x"));
}

#[test]
fn names_stay_in_their_directory() {
    let paths = Paths::new("/c", "/k");
    for bad in [
        "", " ", ".", "..", "../x", "a/b", "a\\b", ".hidden", "a\nb", "a\0b", " a", "a ",
    ] {
        assert!(paths.session(bad).is_err(), "{bad:?}");
        assert!(paths.role(bad).is_err(), "{bad:?}");
    }
    assert!(paths.session(&"x".repeat(200)).is_err());
    for good in ["bugfix", "übung 日本", "a.b", "a..b", "x y"] {
        assert!(paths.session(good).is_ok(), "{good:?}");
    }
    assert_eq!(paths.role("ä").unwrap(), Path::new("/c/roles/ä.md"));
}

#[test]
fn names_of_files_are_listed_sorted() {
    let home = tempfile::tempdir().unwrap();
    let paths = Paths::new(home.path(), home.path());
    assert!(paths.session_names().is_empty());
    std::fs::create_dir_all(paths.sessions_dir()).unwrap();
    for file in ["b.yaml", "ä.yaml", "a.yaml", ".lock", ".x.yaml", "note.txt"] {
        std::fs::write(paths.sessions_dir().join(file), "").unwrap();
    }
    assert_eq!(paths.session_names(), ["a", "b", "ä"]);
    std::fs::create_dir_all(paths.agents_dir().join("triage")).unwrap();
    std::fs::create_dir_all(paths.agents_dir().join("empty")).unwrap();
    std::fs::write(paths.agents_dir().join("triage/config.yaml"), "").unwrap();
    assert_eq!(paths.agent_names(), ["triage"]);
}

proptest::proptest! {
    #[test]
    fn an_accepted_name_is_one_component(name in ".*") {
        let paths = Paths::new("/c", "/k");
        if let Ok(path) = paths.session(&name) {
            let dir = paths.sessions_dir();
            proptest::prop_assert_eq!(path.parent(), Some(dir.as_path()));
        }
    }
}
