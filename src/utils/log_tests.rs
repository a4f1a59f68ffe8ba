use proptest::prelude::*;

use super::*;

/// What ends up in the file when `events` run at `level`.
fn logged(level: LevelFilter, events: impl FnOnce()) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cache").join("coyote.log");
    tracing::subscriber::with_default(subscriber(path.clone(), level), events);
    let text = fs::read_to_string(path).unwrap_or_default();
    (dir, text)
}

#[test]
fn nothing_is_created_until_something_is_logged() {
    let (dir, text) = logged(LevelFilter::WARN, || {
        tracing::info!(target: "coyote::mcp", "quiet");
    });
    assert_eq!(text, "");
    assert!(!dir.path().join("cache").exists());
}

#[test]
fn levels_are_ours_and_libraries_stay_at_warnings() {
    let (_dir, text) = logged(LevelFilter::TRACE, || {
        tracing::trace!(target: "coyote::mcp::connect", server = "docs", id = 7, "asked");
        tracing::info!(target: "mcp.stderr", "a line of a server");
        tracing::info!(target: "rmcp::transport", "a body");
        tracing::debug!(target: "hyper", "a header");
        tracing::warn!(target: "rmcp", "a problem");
    });
    assert!(
        text.contains("asked") && text.contains("docs") && text.contains("id=7"),
        "{text}"
    );
    assert!(text.contains("a problem") && text.contains("a line of a server"));
    assert!(
        !text.contains("a body") && !text.contains("a header"),
        "{text}"
    );
    let (_dir, text) = logged(
        LevelFilter::ERROR,
        || tracing::warn!(target: "rmcp", "a problem"),
    );
    assert_eq!(text, "");
}

#[test]
fn an_unknown_level_is_said_and_the_default_kept() {
    assert!(parse_level("verbose").unwrap_err().contains("`verbose`"));
    assert_eq!(parse_level(" DEBUG "), Ok(LevelFilter::DEBUG));
}

#[cfg(unix)]
#[test]
fn the_file_is_private_even_if_it_was_not() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coyote.log");
    fs::write(&path, "old\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    tracing::subscriber::with_default(subscriber(path.clone(), LevelFilter::WARN), || {
        tracing::error!(target: "coyote", "new");
    });
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(fs::read_to_string(&path).unwrap().starts_with("old\n"));
}

#[test]
fn a_log_that_cannot_be_opened_fails_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    tracing::subscriber::with_default(
        subscriber(file.join("cache").join("coyote.log"), LevelFilter::WARN),
        || {
            tracing::error!(target: "coyote", "one");
            tracing::error!(target: "coyote", "two");
        },
    );
}

#[test]
fn a_full_log_is_rolled_and_few_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coyote.log");
    for generation in 0..6 {
        let mut state = State::new(path.clone());
        state.append(&format!("generation {generation}\n"));
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(ROLL_AT + 1)
            .unwrap();
    }
    let mut state = State::new(path.clone());
    state.append("the last\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "the last\n");
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["coyote.log", "coyote.log.1", "coyote.log.2", "coyote.log.3"]
    );
    assert!(
        fs::read(dir.path().join("coyote.log.1"))
            .unwrap()
            .starts_with(b"generation 5")
    );
    // A process that logs on rolls by itself.
    state.size = ROLL_AT + 1;
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(ROLL_AT + 1)
        .unwrap();
    state.append("after\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
}

#[test]
fn secrets_in_every_usual_writing_are_taken_out() {
    let secret = "S3cr3tV4lue_x.y-z";
    for line in [
        "Authorization: Bearer S3cr3tV4lue_x.y-z",
        "authorization: Basic S3cr3tV4lue_x.y-z",
        "authorization: Custom scheme S3cr3tV4lue_x.y-z",
        r#"{"authorization":"Bearer S3cr3tV4lue_x.y-z","x":1}"#,
        r#"{\"Authorization\": \"Token S3cr3tV4lue_x.y-z\"}"#,
        r#"("authorization", "S3cr3tV4lue_x.y-z")"#,
        "got bearer S3cr3tV4lue_x.y-z here",
        "x-api-key: S3cr3tV4lue_x.y-z",
        r#""x-goog-api-key": "S3cr3tV4lue_x.y-z""#,
        "api_key=S3cr3tV4lue_x.y-z",
        r#"ApiKey: "S3cr3tV4lue_x.y-z""#,
        "GITHUB_TOKEN=S3cr3tV4lue_x.y-z npx",
        r#"env: {"MY_CLIENT_SECRET": "S3cr3tV4lue_x.y-z"}"#,
        "password = 'S3cr3tV4lue_x.y-z'",
        "https://h/v1?alt=sse&key=S3cr3tV4lue_x.y-z",
        "https://h/v1?access_token=S3cr3tV4lue_x.y-z&x=1",
        "https://user:S3cr3tV4lue_x.y-z@host/",
        "Set-Cookie: session=S3cr3tV4lue_x.y-z; Path=/",
    ] {
        let redacted = redact(line);
        assert!(!redacted.contains(secret), "{line} → {redacted}");
        assert!(redacted.contains(REDACTED), "{line} → {redacted}");
    }
    for key in [
        "sk-abcdefghijklmnop1234",
        "sk-ant-api03-abcdefghijk_lmn",
        "ghp_abcdefghijklmnopqrst12",
        "xoxb-1234567890-abc",
        "AIzaSyA1234567890abcdefghijk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln",
    ] {
        assert_eq!(
            redact(&format!("with {key} in it")),
            format!("with {REDACTED} in it")
        );
    }
}

#[test]
fn ordinary_lines_stay_as_they_are() {
    for line in [
        "server `docs`: 12 tools, max_tokens: 4096, input tokens 5",
        "key `model` is unknown, did you mean `models`?",
        "GET http://127.0.0.1:8080/v1/models 200",
        "the keyboard, the monkey: both",
        "skipped task-list-of-a-long-name",
    ] {
        assert_eq!(redact(line), line);
    }
}

#[test]
fn names_that_hold_secrets_are_known() {
    for name in [
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "X-Api-Key",
        "Authorization",
        "DB_PASSWORD",
        "cookie",
    ] {
        assert!(is_secret_name(name), "{name}");
    }
    for name in [
        "PATH",
        "HOME",
        "KEYBOARD",
        "TOKENIZERS_PARALLELISM",
        "MONKEY",
    ] {
        assert!(!is_secret_name(name), "{name}");
    }
    let variables =
        [("A_KEY", "x"), ("B", "y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(secret_values(variables), ["x"]);
}

#[test]
fn foreign_text_cannot_forge_lines_or_reach_the_terminal() {
    let (_dir, text) = logged(LevelFilter::WARN, || {
        tracing::warn!(target: "coyote", "it says {}", "a\n2026 ERROR forged \x1b[31m \u{9b}x\r");
    });
    assert_eq!(text.matches('\n').count(), 1, "{text:?}");
    assert!(
        !text.contains('\x1b') && !text.contains('\u{9b}'),
        "{text:?}"
    );
}

#[test]
fn a_line_is_bounded() {
    assert!(one_line(&"é".repeat(LINE_MAX)).len() <= LINE_MAX + 1);
}

proptest! {
    #[test]
    fn a_hidden_value_never_reaches_the_file(
        secret in "[!-~]{6,40}",
        before in ".{0,40}",
        after in ".{0,40}",
    ) {
        hide([secret.clone()]);
        let text = redact(&format!("{before}{secret}{after}"));
        prop_assert!(!text.contains(&secret) || REDACTED.contains(&secret), "{text}");
    }
}
