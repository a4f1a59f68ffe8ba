use super::*;

fn is_open(line: &str) -> bool {
    matches!(Blocks.validate(line), ValidationResult::Incomplete)
}

#[test]
fn three_colons_hold_a_text_open_until_three_more() {
    assert!(is_open(":::"));
    assert!(is_open("::: first\nsecond"));
    assert!(is_open("  :::\nsecond"));
    assert!(!is_open(":::\nfirst\nsecond\n:::"));
    assert!(!is_open("::: one line :::"));
    assert!(!is_open(":::\nlast ::: \n"));
    assert!(!is_open("text with ::: inside"));
    assert!(!is_open(""));
}

#[cfg(unix)]
#[test]
fn the_history_is_private_before_anybody_else_opens_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("cache/repl-history/default.txt");
    private_file(&file).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    std::fs::write(&file, "kept").unwrap();
    private_file(&file).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[test]
fn both_sets_of_keys_have_ours() {
    for keybindings in [Keybindings::Emacs, Keybindings::Vi] {
        let mut keys = edit_mode(keybindings);
        let mut press = |modifiers, code| {
            let event = crossterm::event::KeyEvent::new(code, modifiers);
            let event = crossterm::event::Event::Key(event);
            keys.parse_event(reedline::ReedlineRawEvent::try_from(event).unwrap())
        };
        let newline = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
        assert_eq!(press(KeyModifiers::CONTROL, KeyCode::Char('j')), newline);
        assert_eq!(press(KeyModifiers::ALT, KeyCode::Enter), newline);
        assert_eq!(
            press(KeyModifiers::CONTROL, KeyCode::Char('o')),
            ReedlineEvent::ExecuteHostCommand(EDIT_ELSEWHERE.to_owned())
        );
    }
}
