use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::table::{ArgKind, COMMANDS, State, typing};
use super::*;

fn command(line: &str) -> ReplCommand {
    match parse(line) {
        Parsed::Command(command) => command,
        other => panic!("{line}: {other:?}"),
    }
}

fn understood(line: &str, expected: &ReplCommand) {
    assert_eq!(&command(line), expected, "{line}");
    assert_eq!(&command(&format!("  {line}\n")), expected, "{line}");
}

fn misuse(line: &str) -> Misuse {
    match parse(line) {
        Parsed::Error(ParseError::Usage { misuse, usage }) => {
            let name = line.split_whitespace().next().unwrap();
            assert!(usage.starts_with(name), "{usage}");
            misuse
        }
        other => panic!("{line}: {other:?}"),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn commands_about_what_is_in_force_are_understood() {
    let some = |text: &str| Some(text.to_owned());
    for (line, expected) in [
        (".help", ReplCommand::Help(None)),
        (".help .set", ReplCommand::Help(some(".set"))),
        (".exit", ReplCommand::Exit(ExitFrom::Program)),
        (".exit role", ReplCommand::Exit(ExitFrom::Role)),
        (".exit session", ReplCommand::Exit(ExitFrom::Session)),
        (".exit agent", ReplCommand::Exit(ExitFrom::Agent)),
        (".info agent", ReplCommand::Info(InfoTopic::Agent)),
        (".list agents", ReplCommand::List(ListTopic::Agents)),
        (".starter", ReplCommand::Starter(None)),
        (".starter 2", ReplCommand::Starter(some("2"))),
        (
            ".agent",
            ReplCommand::Agent {
                name: None,
                variables: std::collections::BTreeMap::new(),
            },
        ),
        (
            ".agent 'my agent' project='a b' empty=",
            ReplCommand::Agent {
                name: some("my agent"),
                variables: [("project", "a b"), ("empty", "")]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            },
        ),
        (".info", ReplCommand::Info(InfoTopic::System)),
        (".info role", ReplCommand::Info(InfoTopic::Role)),
        (".info session", ReplCommand::Info(InfoTopic::Session)),
        (".info tools", ReplCommand::Info(InfoTopic::Tools)),
        (".info mcp", ReplCommand::Info(InfoTopic::Mcp(None))),
        (
            ".info mcp 'my server'",
            ReplCommand::Info(InfoTopic::Mcp(some("my server"))),
        ),
        (".model", ReplCommand::Model(None)),
        (
            ".model openai:gpt-5",
            ReplCommand::Model(some("openai:gpt-5")),
        ),
        (
            ".role",
            ReplCommand::Role {
                name: None,
                text: None,
            },
        ),
        (
            ".role shell",
            ReplCommand::Role {
                name: some("shell"),
                text: None,
            },
        ),
        (
            ".role shell what's up?",
            ReplCommand::Role {
                name: some("shell"),
                text: some("what's up?"),
            },
        ),
        (
            ".temp-role you're a \"poet\"",
            ReplCommand::TempRole("you're a \"poet\"".to_owned()),
        ),
        (".session", ReplCommand::Session(None)),
        (".session work", ReplCommand::Session(some("work"))),
    ] {
        understood(line, &expected);
    }
}

#[test]
fn commands_about_text_are_understood() {
    let some = |text: &str| Some(text.to_owned());
    for (line, expected) in [
        (".empty", ReplCommand::Empty),
        (".empty session", ReplCommand::Empty),
        (".compress", ReplCommand::Compress),
        (".compress session", ReplCommand::Compress),
        (
            ".save session",
            ReplCommand::Save {
                what: Kept::Session,
                name: None,
            },
        ),
        (
            ".save role poet",
            ReplCommand::Save {
                what: Kept::Role,
                name: some("poet"),
            },
        ),
        (".edit config", ReplCommand::Edit(EditTarget::Config)),
        (".edit role", ReplCommand::Edit(EditTarget::Role)),
        (".edit session", ReplCommand::Edit(EditTarget::Session)),
        (".continue", ReplCommand::Continue),
        (".regenerate", ReplCommand::Regenerate),
        (".undo", ReplCommand::Undo),
        (".copy", ReplCommand::Copy),
        (
            ".set temperature 0.5",
            ReplCommand::Set {
                key: "temperature".to_owned(),
                value: "0.5".to_owned(),
            },
        ),
        (
            ".set enabled_tools a, b",
            ReplCommand::Set {
                key: "enabled_tools".to_owned(),
                value: "a, b".to_owned(),
            },
        ),
        (
            ".set left_prompt '> '",
            ReplCommand::Set {
                key: "left_prompt".to_owned(),
                value: "> ".to_owned(),
            },
        ),
    ] {
        understood(line, &expected);
    }
}

#[test]
fn commands_about_lists_and_switches_are_understood() {
    let some = |text: &str| Some(text.to_owned());
    for (line, expected) in [
        (".list roles", ReplCommand::List(ListTopic::Roles)),
        (".list sessions", ReplCommand::List(ListTopic::Sessions)),
        (".list tools", ReplCommand::List(ListTopic::Tools)),
        (
            ".list mcp-servers",
            ReplCommand::List(ListTopic::McpServers),
        ),
        (
            ".tool enable fs_cat fs_ls",
            ReplCommand::Tool {
                switch: Switch::On,
                names: owned(&["fs_cat", "fs_ls"]),
            },
        ),
        (
            ".tool disable fs",
            ReplCommand::Tool {
                switch: Switch::Off,
                names: owned(&["fs"]),
            },
        ),
        (".mcp list", ReplCommand::Mcp(McpCommand::List)),
        (
            ".mcp enable git",
            ReplCommand::Mcp(McpCommand::Switch {
                switch: Switch::On,
                names: owned(&["git"]),
            }),
        ),
        (
            ".mcp disable git time",
            ReplCommand::Mcp(McpCommand::Switch {
                switch: Switch::Off,
                names: owned(&["git", "time"]),
            }),
        ),
        (
            ".mcp restart git",
            ReplCommand::Mcp(McpCommand::Restart("git".to_owned())),
        ),
        (
            ".delete role poet",
            ReplCommand::Delete {
                what: Kept::Role,
                name: some("poet"),
            },
        ),
        (
            ".delete session",
            ReplCommand::Delete {
                what: Kept::Session,
                name: None,
            },
        ),
    ] {
        understood(line, &expected);
    }
}

#[test]
fn a_missing_argument_is_named() {
    for (line, what) in [
        (".temp-role", "TEXT"),
        (".save", "role|session"),
        (".edit", "config|role|session"),
        (".file", "PATH"),
        (".file -- what is this", "PATH"),
        (".set", "KEY"),
        (".set temperature", "VALUE"),
        (
            ".list",
            "roles|sessions|agents|macros|tools|mcp-servers|prompts",
        ),
        (".prompt", "SERVER"),
        (".prompt server", "NAME"),
        (".tool", "enable|disable"),
        (".tool enable", "NAME"),
        (".mcp", "list|enable|disable|restart"),
        (".mcp disable", "NAME"),
        (".mcp restart", "NAME"),
        (".delete", "role|session"),
    ] {
        assert_eq!(misuse(line), Misuse::Missing(what), "{line}");
    }
}

#[test]
fn an_argument_too_many_is_named() {
    for line in [
        ".help a extra",
        ".exit role extra",
        ".info role extra",
        ".info mcp a extra",
        ".model a extra",
        ".session a extra",
        ".empty session extra",
        ".compress session extra",
        ".save role a extra",
        ".edit config extra",
        ".continue extra",
        ".regenerate extra",
        ".undo extra",
        ".copy extra",
        ".list tools extra",
        ".mcp list extra",
        ".mcp restart a extra",
        ".delete role a extra",
    ] {
        assert_eq!(
            misuse(line),
            Misuse::Unexpected("extra".to_owned()),
            "{line}"
        );
    }
}

#[test]
fn a_wrong_word_lists_the_right_ones() {
    for line in [
        ".exit wrong",
        ".info wrong",
        ".empty wrong",
        ".compress wrong",
        ".save wrong",
        ".edit wrong",
        ".list wrong",
        ".tool wrong x",
        ".mcp wrong",
        ".delete wrong",
    ] {
        let Misuse::NotOneOf { given, known } = misuse(line) else {
            panic!("{line}")
        };
        assert_eq!(given, "wrong");
        assert!(known.contains('`'), "{known}");
    }
    let error: Error = match parse(".list wrong") {
        Parsed::Error(error) => error.into(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        error.to_string(),
        "`wrong` is not one of `roles`, `sessions`, `agents`, `macros`, `tools`, `mcp-servers` or `prompts`"
    );
    assert_eq!(
        error.hints(),
        ["`.list roles|sessions|agents|macros|tools|mcp-servers|prompts` is how it is used"]
    );
}

#[test]
fn an_unmatched_quote_teaches_the_usage() {
    for line in [
        ".session 'open",
        ".mcp enable \"open",
        ".file 'open -- text",
        ".role 'open",
    ] {
        assert!(matches!(misuse(line), Misuse::Words(_)), "{line}");
    }
}

#[test]
fn files_are_words_and_their_text_is_verbatim() {
    let file = |paths: &[&str], text: &str| ReplCommand::File {
        paths: owned(paths),
        text: text.to_owned(),
    };
    for (line, expected) in [
        (".file a b", file(&["a", "b"], "")),
        (
            ".file a 'b c' -- it's  spaced",
            file(&["a", "b c"], "it's  spaced"),
        ),
        (".file naïve.txt -- sum", file(&["naïve.txt"], "sum")),
        (".file a --", file(&["a"], "")),
        (".file a '--' b", file(&["a", "--", "b"], "")),
        (".file a -- x -- y", file(&["a"], "x -- y")),
        (
            ".file a -- line\nsecond 'line",
            file(&["a"], "line\nsecond 'line"),
        ),
    ] {
        assert_eq!(command(line), expected, "{line}");
    }
}

#[test]
fn a_line_that_is_no_command_is_an_error_with_the_nearest_names() {
    for (line, first) in [
        (".sesion", ".session"),
        (".hlep", ".help"),
        (".inf", ".info"),
        (".modle x", ".model"),
        (".rol", ".role"),
        (".temprole x", ".temp-role"),
        (".emtpy", ".empty"),
        (".comprss", ".compress"),
        (".sav", ".save"),
        (".edti", ".edit"),
        (".fiel x", ".file"),
        (".contniue", ".continue"),
        (".regen", ".regenerate"),
        (".und", ".undo"),
        (".cpy", ".copy"),
        (".sett x", ".set"),
        (".lst", ".list"),
        (".tools", ".tool"),
        (".mpc", ".mcp"),
        (".delet", ".delete"),
        (".exti", ".exit"),
    ] {
        match parse(line) {
            Parsed::Error(ParseError::Unknown { nearest, .. }) => {
                assert_eq!(nearest.first(), Some(&first), "{line}");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    for line in [".é", ".éxit", ".Exit", ".日本 x"] {
        assert!(
            matches!(parse(line), Parsed::Error(ParseError::Unknown { .. })),
            "{line}"
        );
    }
    let error: Error = match parse(".sesion") {
        Parsed::Error(error) => error.into(),
        other => panic!("{other:?}"),
    };
    assert_eq!(error.to_string(), "unknown command `.sesion`");
    assert!(
        error.hints()[0].starts_with("`.session`"),
        "{:?}",
        error.hints()
    );
}

#[test]
fn a_line_that_begins_with_a_dot_is_never_sent_by_accident() {
    for line in [
        ".",
        "..",
        "...",
        ".5 is half",
        ". exit",
        ".\u{301}",
        ".é",
        " .x",
    ] {
        let parsed = parse(line);
        assert!(
            matches!(parsed, Parsed::Error(ParseError::Unknown { .. })),
            "{line}: {parsed:?}"
        );
    }
    assert_eq!(
        parse("::: .5 is half :::"),
        Parsed::Ask(".5 is half".to_owned())
    );
}

#[test]
fn text_is_text() {
    for line in ["hello", "a\n.exit\n!rm", "é", "—", "-y"] {
        assert_eq!(parse(line), Parsed::Ask(line.to_owned()), "{line}");
    }
    assert_eq!(
        parse("  indented\n  code\n"),
        Parsed::Ask("  indented\n  code".to_owned())
    );
    for line in ["", "  \n ", ":::", ":::  :::", ":::\n:::"] {
        assert_eq!(parse(line), Parsed::Empty, "{line:?}");
    }
}

#[test]
fn text_between_markers_is_never_a_command() {
    for (line, expected) in [
        (":::\n.exit\n:::", ".exit"),
        ("::: !touch pwned :::", "!touch pwned"),
        (":::\n    indented\nlast\n:::\n", "    indented\nlast"),
        ("::: half", "half"),
        (":::\nfirst ::: middle\n:::", "first ::: middle"),
    ] {
        assert_eq!(parse(line), Parsed::Ask(expected.to_owned()), "{line:?}");
    }
}

#[test]
fn an_exclamation_mark_is_the_shell() {
    assert_eq!(
        parse("!ls -l 'a b'"),
        Parsed::Shell("ls -l 'a b'".to_owned())
    );
    assert_eq!(parse("  ! ls "), Parsed::Shell("ls".to_owned()));
    assert!(matches!(
        parse("!"),
        Parsed::Error(ParseError::Usage { .. })
    ));
}

#[test]
fn the_table_is_consistent() {
    let names: BTreeSet<_> = COMMANDS.iter().map(|spec| spec.name).collect();
    assert_eq!(names.len(), COMMANDS.len(), "a name twice");
    for spec in COMMANDS {
        assert!(spec.usage.starts_with(spec.name), "{}", spec.usage);
        assert!(
            spec.name.starts_with('.') && spec.name.chars().nth(1).is_some_and(char::is_alphabetic)
        );
        assert!(
            !spec.help.is_empty() && !spec.help.ends_with('.'),
            "{}",
            spec.help
        );
        let bare = parse(spec.name);
        assert!(
            matches!(
                bare,
                Parsed::Command(_) | Parsed::Error(ParseError::Usage { .. })
            ),
            "{bare:?}"
        );
        // What completion offers is what the parser takes.
        if let ArgKind::Choice(choices) = spec.args {
            for choice in choices {
                for tail in ["", " x"] {
                    let line = format!("{} {}{tail}", spec.name, choice.word);
                    let parsed = parse(&line);
                    let refused = matches!(
                        &parsed,
                        Parsed::Error(ParseError::Usage {
                            misuse: Misuse::NotOneOf { .. },
                            ..
                        })
                    );
                    assert!(!refused, "{line}");
                    assert!(
                        spec.usage.contains(choice.word),
                        "{}: {}",
                        spec.usage,
                        choice.word
                    );
                }
            }
        }
    }
}

#[test]
fn availability_follows_the_state() {
    let nothing = State::default();
    let available = |name: &str, state: &State| find(name).unwrap().available(state);
    assert!(!available(".empty", &nothing));
    assert!(available(
        ".empty",
        &State {
            session: true,
            ..nothing
        }
    ));
    assert!(!available(".regenerate", &nothing));
    assert!(available(
        ".regenerate",
        &State {
            exchange: true,
            ..nothing
        }
    ));
    assert!(!available(".mcp", &nothing));
    assert!(available(
        ".mcp",
        &State {
            servers: true,
            ..nothing
        }
    ));
    assert!(available(
        ".save",
        &State {
            role: true,
            ..nothing
        }
    ));
    assert!(available(".help", &nothing));
}

#[test]
fn what_is_being_typed_is_known() {
    let kind = |line: &str| typing(line).map(|typing| typing.kind);
    assert!(matches!(kind("."), Some(ArgKind::Command)));
    assert!(matches!(kind(".é"), Some(ArgKind::Command)));
    assert!(matches!(kind(".mcp "), Some(ArgKind::Choice(_))));
    assert!(matches!(kind(".mcp enable a b"), Some(ArgKind::Servers)));
    assert!(matches!(kind(".mcp restart "), Some(ArgKind::Server)));
    assert!(matches!(kind(".set str"), Some(ArgKind::Setting)));
    assert!(matches!(kind(".set stream "), Some(ArgKind::SettingValue)));
    assert!(matches!(kind(".file 'a b"), Some(ArgKind::Files)));
    for line in [
        "",
        "hello",
        "hello .",
        ".mcp list ",
        ".mcp restart a ",
        ".file a -- ",
        ".nothing ",
        ".model a ",
        "!l",
    ] {
        assert!(typing(line).is_none(), "{line}");
    }
    let typing = typing(".info mcp 'my se").unwrap();
    assert_eq!(typing.word.text, "my se");
    assert_eq!(typing.word.span, 10..16);
    assert_eq!(typing.before, ["mcp"]);
}

proptest! {
    #[test]
    fn any_line_means_something(line in any::<String>()) {
        parse(&line);
        typing(&line);
    }

    #[test]
    fn a_dot_never_reaches_the_shell(line in "[ \t]{0,2}\\.(\\PC|[!\n ':\"]){0,20}") {
        prop_assert!(!matches!(parse(&line), Parsed::Shell(_)));
    }

    #[test]
    fn any_arguments_are_taken_or_refused(index in 0..COMMANDS.len(), rest in any::<String>()) {
        let line = format!("{} {rest}", COMMANDS[index].name);
        let understood = matches!(parse(&line), Parsed::Command(_) | Parsed::Error(ParseError::Usage { .. }));
        prop_assert!(understood);
        typing(&line);
    }

    #[test]
    fn text_between_markers_stays_text(inner in any::<String>()) {
        let line = format!(":::\n{inner}\n:::");
        prop_assert!(matches!(parse(&line), Parsed::Ask(_) | Parsed::Empty));
    }
}
