use super::*;

fn argv(words: &[&str]) -> Vec<OsString> {
    std::iter::once("coyote")
        .chain(words.iter().copied())
        .map(OsString::from)
        .collect()
}

fn typed(words: &[&str]) -> Typed {
    parse(&argv(words)).unwrap()
}

fn refused(words: &[&str]) -> String {
    let error = parse(&argv(words)).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn the_definition_holds_together() {
    Typed::command().debug_assert();
    TypedText::command().debug_assert();
}

#[test]
fn options_stand_before_or_after_the_text() {
    for words in [
        ["-m", "a:b", "what", "is", "it"],
        ["what", "is", "it", "-m", "a:b"],
        ["what", "-m", "a:b", "is", "it"],
    ] {
        let typed = typed(&words);
        assert_eq!(typed.text, ["what", "is", "it"]);
        assert_eq!(typed.options.model.as_deref(), Some("a:b"));
    }
}

#[test]
fn after_two_dashes_everything_is_text() {
    assert_eq!(typed(&["--", "-m", "--what"]).text, ["-m", "--what"]);
    assert_eq!(typed(&["a", "--", "--json"]).text, ["a", "--json"]);
    let typed = typed(&["--", "mcp", "servers"]);
    assert_eq!(typed.text, ["mcp", "servers"]);
    assert!(typed.command.is_none());
}

#[test]
fn an_unknown_option_is_a_usage_error_with_the_nearest_name_and_never_text() {
    assert!(refused(&["--modle", "x"]).contains("--model"));
    assert!(refused(&["tell", "me", "--no-steam"]).contains("--no-stream"));
    refused(&["-Z"]);
    refused(&["why", "-Z"]);
}

#[test]
fn subcommands_stand_where_the_text_would_begin_and_nowhere_else() {
    for words in [
        &["mcp", "servers"][..],
        &["--json", "mcp", "servers"],
        &["mcp", "servers", "--json"],
        &["-m", "mcp", "mcp", "servers"],
        &["-mx", "mcp", "servers"],
        &["--model=x", "mcp", "servers"],
        &["-yS", "mcp", "servers"],
        &["-s", "-y", "mcp", "servers"],
    ] {
        assert!(
            matches!(typed(words).command, Some(Command::Mcp(_))),
            "{words:?}"
        );
    }
    for words in [
        &["mcpfoo", "bar"][..],
        &["explain", "mcp", "servers"],
        &["explain", "-c", "mcp", "servers"],
        &["explain", "mcp", "nonsense"],
        &["explain", "demo"],
        &["-s", "mcp"],
        &["-f", "mcp"],
        &["mc"],
    ] {
        assert!(typed(words).command.is_none(), "{words:?}");
    }
    assert_eq!(
        typed(&["-s", "mcp"]).options.session,
        Some(Some("mcp".to_owned()))
    );
    assert_eq!(typed(&["-s"]).options.session, Some(None));
}

#[test]
fn help_names_the_subcommands_and_hides_the_demo_server() {
    for words in [&["--help"][..], &["-h"], &["text", "--help"]] {
        let error = parse(&argv(words)).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let help = error.to_string();
        assert!(help.contains("mcp") && help.contains("demo"), "{help}");
        assert!(!help.contains("demo-server"), "{help}");
    }
    assert_eq!(
        parse(&argv(&["mcp", "read", "--help"]))
            .unwrap_err()
            .exit_code(),
        0
    );
    assert_eq!(
        parse(&argv(&["--version"])).unwrap_err().to_string(),
        concat!("coyote ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn words_that_are_not_unicode_are_refused_without_a_panic() {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStringExt as _;
        let broken = OsString::from_vec(vec![0xff, 0xfe]);
        let mut line = argv(&["mcp"]);
        line.push(broken.clone());
        assert_eq!(parse(&line).unwrap_err().exit_code(), 2);
        assert_eq!(
            parse(&[OsString::from("coyote"), broken])
                .unwrap_err()
                .exit_code(),
            2
        );
    }
}
