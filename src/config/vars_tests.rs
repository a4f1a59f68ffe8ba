//! Tests of the module beside.

use super::*;

fn dotenv(text: &str) -> Env {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Env::new([("SET", "process"), ("EMPTY", "")])
        .with_file(file.path())
        .unwrap()
}

#[test]
fn the_process_wins_over_the_file() {
    let env = dotenv("SET=file\nOTHER=file\nEMPTY=file\n");
    assert_eq!(env.get("SET").as_deref(), Some("process"));
    assert_eq!(env.get("OTHER").as_deref(), Some("file"));
    assert_eq!(
        env.get("EMPTY").as_deref(),
        Some("file"),
        "an empty variable counts as unset"
    );
    assert_eq!(env.get("NOWHERE"), None);
}

#[test]
fn dotenv_values_are_read_like_a_shells() {
    let env = dotenv(concat!(
        "\u{feff}# comment\r\n\n",
        "export PLAIN = a b # comment\n",
        "SINGLE='a # \\n $b'\n",
        "DOUBLE=\"zwei\\nZeilen \\\"x\\\" ü\" # comment\n",
        "URL=http://x/#anchor\n",
        "NONE=\n",
        "EQUALS=a=b=c\n",
    ));
    assert_eq!(env.get("PLAIN").as_deref(), Some("a b"));
    assert_eq!(env.get("SINGLE").as_deref(), Some("a # \\n $b"));
    assert_eq!(env.get("DOUBLE").as_deref(), Some("zwei\nZeilen \"x\" ü"));
    assert_eq!(env.get("URL").as_deref(), Some("http://x/#anchor"));
    assert_eq!(env.get("NONE"), None);
    assert_eq!(env.get("EQUALS").as_deref(), Some("a=b=c"));
}

#[test]
fn a_bad_dotenv_line_is_named_without_its_value() {
    for text in [
        "A=1\nsk-secret\n",
        "A=1\nB='sk-secret\n",
        "A=1\nB=\"sk-secret\n",
        "A=1\nB C=sk-secret\n",
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let error = Env::default().with_file(file.path()).unwrap_err();
        let message = format!("{error:?}");
        assert!(message.contains("line 2"), "{message}");
        assert!(!message.contains("sk-secret"), "{message}");
    }
}

#[test]
fn a_missing_dotenv_is_no_variables() {
    let env = Env::default()
        .with_file(Path::new("/nowhere/.env"))
        .unwrap();
    assert_eq!(env.get("A"), None);
}

#[test]
fn debug_shows_no_value() {
    let env = Env::new([("OPENAI_API_KEY", "sk-secret")]);
    assert!(!format!("{env:?}").contains("sk-secret"));
}

#[test]
fn expansion_knows_defaults_and_leaves_the_rest() {
    let env = Env::new([("A", "eins"), ("EMPTY", "")]);
    let ok = |text: &str| expand(text, "f", &env).unwrap();
    assert_eq!(ok("x${A}y${A}"), "xeinsyeins");
    assert_eq!(ok("${B:-zwei}"), "zwei");
    assert_eq!(ok("${EMPTY:-leer}"), "leer");
    assert_eq!(ok("${B:-}"), "");
    assert_eq!(ok("$A ${ ü $"), "$A ${ ü $");
    let missing = expand("${B}", "clients[0].api_key", &env).unwrap_err();
    assert_eq!(missing.variable, "B");
    assert_eq!(missing.field, "clients[0].api_key");
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".*") {
        let _ = parse_dotenv(&text);
        let _ = expand(&text, "f", &Env::default());
    }
}
