//! Tests of the module beside.

use super::*;

struct Home {
    _dir: tempfile::TempDir,
    paths: Paths,
}

fn home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::new(dir.path().join("config"), dir.path().join("cache"));
    Home { _dir: dir, paths }
}

fn open(paths: &Paths, name: &str) -> Session {
    Session::load_or_new(paths, name).unwrap().0
}

fn say(session: &mut Session, text: &str) {
    let mut messages = session.messages().to_vec();
    messages.extend([Message::user(text), Message::assistant("ja")]);
    session.set_messages(messages);
}

#[test]
fn a_session_is_saved_privately_and_comes_back() {
    let home = home();
    let mut session = open(&home.paths, "übung");
    assert!(!session.is_dirty());
    say(&mut session, "hallo 日本");
    assert!(session.is_dirty());
    let saved = session.save(&home.paths, None).unwrap();
    assert_eq!(saved, Saved::Written(home.paths.session("übung").unwrap()));
    assert!(!session.is_dirty());
    assert_eq!(open(&home.paths, "übung").messages(), session.messages());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(saved.path()), 0o600);
        assert_eq!(mode(&home.paths.sessions_dir()), 0o700);
    }
    assert_eq!(
        home.paths.session_names(),
        ["übung"],
        "no temporary or lock file is listed"
    );
}

#[test]
fn the_later_of_two_writers_keeps_its_copy_beside() {
    let home = home();
    let mut seed = open(&home.paths, "s");
    say(&mut seed, "anfang");
    seed.save(&home.paths, None).unwrap();

    let mut one = open(&home.paths, "s");
    let mut two = open(&home.paths, "s");
    say(&mut one, "eins");
    one.save(&home.paths, None).unwrap();
    say(&mut two, "zwei");
    let Saved::Conflict { original, copy } = two.save(&home.paths, None).unwrap() else {
        panic!("the change of the first was overwritten");
    };
    assert_eq!(original, home.paths.session("s").unwrap());
    let name = copy.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with(&format!("s.conflict-{}-", std::process::id())),
        "{name}"
    );
    assert_eq!(open(&home.paths, "s").messages(), one.messages());
    let copied = open(&home.paths, copy.file_stem().unwrap().to_str().unwrap());
    assert_eq!(copied.messages(), two.messages());
    // From then on both have a file of their own.
    say(&mut two, "drei");
    assert_eq!(two.save(&home.paths, None).unwrap(), Saved::Written(copy));
    say(&mut one, "vier");
    assert_eq!(
        one.save(&home.paths, None).unwrap(),
        Saved::Written(original)
    );
}

#[test]
fn two_new_sessions_of_one_name_conflict_too() {
    let home = home();
    let mut one = open(&home.paths, "neu");
    let mut two = open(&home.paths, "neu");
    say(&mut one, "eins");
    say(&mut two, "zwei");
    assert!(matches!(
        one.save(&home.paths, None).unwrap(),
        Saved::Written(_)
    ));
    assert!(matches!(
        two.save(&home.paths, None).unwrap(),
        Saved::Conflict { .. }
    ));
}

#[test]
fn the_same_content_or_a_removed_file_is_no_conflict() {
    let home = home();
    let mut one = open(&home.paths, "s");
    let mut two = open(&home.paths, "s");
    say(&mut one, "gleich");
    say(&mut two, "gleich");
    one.save(&home.paths, None).unwrap();
    assert!(matches!(
        two.save(&home.paths, None).unwrap(),
        Saved::Written(_)
    ));
    std::fs::remove_file(home.paths.session("s").unwrap()).unwrap();
    say(&mut one, "mehr");
    assert!(matches!(
        one.save(&home.paths, None).unwrap(),
        Saved::Written(_)
    ));
}

#[test]
fn many_writers_lose_nothing() {
    let home = home();
    let barrier = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for i in 0..8 {
            let (paths, barrier) = (&home.paths, &barrier);
            scope.spawn(move || {
                let mut session = open(paths, "s");
                say(&mut session, &format!("stimme {i}"));
                barrier.wait();
                session.save(paths, None).unwrap();
            });
        }
    });
    let mut said: Vec<Message> = home
        .paths
        .session_names()
        .iter()
        .map(|name| open(&home.paths, name).messages()[0].clone())
        .collect();
    said.sort_by_key(|message| format!("{message:?}"));
    let all: Vec<Message> = (0..8)
        .map(|i| Message::user(format!("stimme {i}")))
        .collect();
    assert_eq!(said, all);
}

#[test]
fn a_new_name_must_be_free() {
    let home = home();
    let mut session = Session::new(None);
    say(&mut session, "x");
    session.save(&home.paths, Some("a")).unwrap();
    assert_eq!(session.name(), "a");
    let mut other = Session::new(None);
    say(&mut other, "y");
    assert!(
        other
            .save(&home.paths, Some("a"))
            .unwrap_err()
            .to_string()
            .contains("`a` already")
    );
    assert!(other.save(&home.paths, Some("../a")).is_err());
}

#[test]
fn a_session_without_a_name_is_named_after_its_beginning() {
    let mut session = Session::new(None);
    assert!(session.is_temporary());
    let now = chrono::Local::now();
    let time = now.format("%Y%m%dT%H%M%S").to_string();
    assert_eq!(session.auto_name(now), time);
    say(
        &mut session,
        "Was sagt das Übungs-Handbuch über ../../etc/passwd und anderes?",
    );
    let name = session.auto_name(now);
    assert_eq!(name, format!("{time}-was-sagt-das-übungs-handbuch-über"));
    assert!(crate::config::check_name(&name, NameKind::Session).is_ok());
}

#[test]
fn keeping_is_the_sessions_word_before_the_configurations() {
    let mut session = Session::new(Some("s"));
    assert_eq!(session.keeps(None), None);
    assert_eq!(session.keeps(Some(true)), Some(true));
    session.save_session = Some(false);
    assert_eq!(session.keeps(Some(true)), Some(false));
}

#[test]
fn an_exchange_is_taken_back_whole() {
    let mut session = Session::new(None);
    assert_eq!(session.pop_exchange(), None);
    say(&mut session, "eins");
    say(&mut session, "zwei");
    let popped = session.pop_exchange().unwrap();
    assert_eq!(popped, [Message::user("zwei"), Message::assistant("ja")]);
    assert_eq!(session.messages().len(), 2);
}

#[test]
fn removing_needs_a_name_that_is_there() {
    let home = home();
    let mut session = open(&home.paths, "bugfix");
    say(&mut session, "x");
    session.save(&home.paths, None).unwrap();
    let error = remove(&home.paths, "bugfxi").unwrap_err();
    assert!(error.hints()[0].contains("`bugfix`"), "{error:?}");
    remove(&home.paths, "bugfix").unwrap();
    assert!(home.paths.session_names().is_empty());
}

#[test]
fn a_file_that_is_not_text_is_an_error() {
    let home = home();
    std::fs::create_dir_all(home.paths.sessions_dir()).unwrap();
    std::fs::write(home.paths.session("s").unwrap(), [0xff, 0xfe, 0x00]).unwrap();
    assert!(
        Session::load_or_new(&home.paths, "s")
            .unwrap_err()
            .to_string()
            .contains("not text")
    );
}
