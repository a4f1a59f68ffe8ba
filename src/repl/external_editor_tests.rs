use super::*;

/// An editor that appends a line to its file, by way of a script.
fn script(body: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my editor.sh");
    std::fs::write(&path, body).unwrap();
    let command = format!("sh '{}'", path.display());
    (dir, command)
}

#[test]
fn the_configured_editor_wins_over_the_environment() {
    let env = |name: &str| match name {
        "VISUAL" => Some("visual".to_owned()),
        "EDITOR" => Some("editor".to_owned()),
        _ => None,
    };
    let editor_only = |name: &str| (name == "EDITOR").then(|| "editor".to_owned());
    assert_eq!(resolve(Some("hx"), &env).as_deref(), Some("hx"));
    assert_eq!(resolve(Some(" "), &env).as_deref(), Some("visual"));
    assert_eq!(resolve(None, &editor_only).as_deref(), Some("editor"));
    assert_eq!(resolve(None, &|_| None), None);
}

#[test]
fn an_edited_text_comes_back_and_its_file_was_private() {
    let (dir, command) =
        script("stat -c %a \"$1\" > \"$0.mode\"\nprintf 'zwei é\\n\\n' >> \"$1\"\n");
    let saved = edit_text(&command, "eins\n", "md").unwrap();
    assert_eq!(saved, "eins\nzwei é");
    let mode = std::fs::read_to_string(dir.path().join("my editor.sh.mode")).unwrap();
    assert_eq!(mode.trim(), "600");
}

#[test]
fn an_editor_that_replaces_its_file_is_understood() {
    let (_dir, command) = script("echo new > \"$1.new\"\nmv \"$1.new\" \"$1\"\n");
    assert_eq!(edit_text(&command, "old", "md").unwrap(), "new");
}

#[test]
fn an_editor_that_fails_or_is_missing_is_an_error_with_its_name() {
    let (_dir, command) = script("exit 3\n");
    let error = edit_text(&command, "text", "md").unwrap_err();
    assert!(error.to_string().contains("`sh` failed"), "{error}");
    let error = edit_text("no-such-editor-here", "text", "md").unwrap_err();
    assert!(
        error.to_string().contains("`no-such-editor-here`"),
        "{error}"
    );
    assert!(!error.hints().is_empty());
    assert!(edit_text("vi 'open", "text", "md").is_err());
}
