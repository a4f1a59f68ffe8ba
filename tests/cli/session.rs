//! Sessions: saving, resuming, crashing, two writers.

use serde_json::{Value, json};

use crate::support::home::Home;
use crate::support::provider::{Provider, chat_calls, chat_text};

const SAVED: &str = "save_session: true";

fn load(home: &Home, name: &str) -> Value {
    let text =
        std::fs::read_to_string(home.config_dir().join(format!("sessions/{name}.yaml"))).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn a_session_keeps_what_was_said() {
    let provider = Provider::new(vec![chat_text("one"), chat_text("two")]);
    let home = Home::new();
    home.provider(&provider.url(), SAVED);
    home.coyote(&["-s", "s", "first"]).any_stderr().ok();
    home.coyote(&["-s", "s", "second"]).any_stderr().ok();
    let expected = json!([
        { "role": "user", "content": "first" },
        { "role": "assistant", "content": "one" },
        { "role": "user", "content": "second" },
    ]);
    assert_eq!(provider.asked()[1].body["messages"], expected);
}

#[cfg(unix)]
#[test]
fn a_session_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let provider = Provider::new(vec![chat_text("one")]);
    let home = Home::new();
    home.provider(&provider.url(), SAVED);
    home.coyote(&["-s", "s", "first"]).any_stderr().ok();
    let mode = |path: &str| {
        std::fs::metadata(home.config_dir().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("sessions/s.yaml"), 0o600);
    assert_eq!(mode("sessions"), 0o700);
}

#[test]
fn resuming_with_tools_off_sends_the_same_history() {
    let calls = [
        ("c1", "fs_ls", json!({ "path": "." })),
        ("c2", "get_current_time", json!({})),
    ];
    let provider = Provider::new(vec![
        chat_calls(&calls),
        chat_text("listed"),
        chat_text("again"),
        chat_text("off"),
    ]);
    let home = Home::new();
    home.provider(&provider.url(), &format!("{SAVED}\nenabled_tools: all"));
    home.coyote(&["-s", "s", "first"]).any_stderr().ok();
    home.coyote(&["-s", "s", "second"]).any_stderr().ok();
    home.provider(
        &provider.url(),
        &format!("{SAVED}\nfunction_calling_support: false"),
    );
    home.coyote(&["-s", "s", "third"]).any_stderr().ok();
    let asked = provider.asked();
    let history = |request: usize| asked[request].body["messages"].as_array().unwrap().clone();
    assert_eq!(
        history(2)[..4],
        history(1)[..4],
        "the tool round is resumed as it was"
    );
    assert_eq!(
        history(3)[..6],
        history(2)[..6],
        "and just so with tools off"
    );
    assert_ne!(asked[3].body["tool_choice"], json!("auto"));
}

#[cfg(unix)]
#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_file() {
    use std::time::{Duration, Instant};
    const KILLS: u32 = 200;
    // Large enough that a save takes a while.
    let filler = "a line that has been said before\n".repeat(6_000);
    let script = (0..=KILLS + 1).map(|_| chat_text("noted")).collect();
    let provider = Provider::new(script);
    let home = Home::new();
    home.provider(&provider.url(), SAVED);
    let start = Instant::now();
    home.coyote(&["-s", "s"]).stdin(filler).any_stderr().ok();
    home.coyote(&["-s", "s", "warm"]).any_stderr().ok();
    let whole = start.elapsed() / 2;
    let mut seed: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut kept, mut written) = (0, 0);
    for _ in 0..KILLS {
        let before = load(&home, "s");
        let before = before["messages"].as_array().unwrap();
        let mut child = home.coyote(&["-s", "s", "more"]).spawn();
        drop(child.stdin.take());
        // Most kills fall into the last part of the run, where the save is.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let share = 50 + (seed >> 33) % 70;
        let deadline = Instant::now() + whole * u32::try_from(share).unwrap() / 100;
        while Instant::now() < deadline && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let _ = child.kill();
        let _ = child.wait();
        let after = load(&home, "s");
        let after = after["messages"].as_array().unwrap();
        assert_eq!(
            after[..before.len()],
            before[..],
            "nothing that was saved is lost"
        );
        match after.len() - before.len() {
            0 => kept += 1,
            2 => written += 1,
            other => panic!("half an exchange: {other} messages"),
        }
    }
    assert_eq!(kept + written, KILLS);
}

#[test]
fn the_later_of_two_writers_is_told_and_keeps_its_copy() {
    let (open, shut) = crate::support::provider::gate();
    let mut pieces = vec![shut];
    pieces.push(crate::support::provider::delta(
        &json!({ "content": "slow" }),
    ));
    pieces.extend(crate::support::provider::finish("stop"));
    let provider = Provider::new(vec![
        chat_text("zero"),
        crate::support::provider::Reply::Stream { pieces, cut: false },
        chat_text("fast"),
    ]);
    let home = Home::new();
    home.provider(&provider.url(), SAVED);
    home.coyote(&["-s", "s", "start"]).any_stderr().ok();
    let mut slow = home.coyote(&["-s", "s", "from the slow one"]).spawn();
    drop(slow.stdin.take());
    crate::support::eventually("the slow one asks", || {
        (provider.asked().len() == 2).then_some(())
    });
    home.coyote(&["-s", "s", "from the fast one"])
        .any_stderr()
        .ok();
    open.send(()).unwrap();
    let output = crate::support::run::finish(slow);
    assert_eq!(output.stdout, "slow\n");
    assert!(
        output.stderr.contains("session"),
        "it is told: {}",
        output.stderr
    );
    let saved = load(&home, "s").to_string();
    assert!(
        saved.contains("from the fast one") && !saved.contains("from the slow one"),
        "{saved}"
    );
    let copies: Vec<String> = std::fs::read_dir(home.config_dir().join("sessions"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .filter(|text| text.contains("from the slow one"))
        .collect();
    assert_eq!(copies.len(), 1, "its copy is kept beside");
}

#[test]
fn a_damaged_session_is_an_error_and_stays_as_it_is() {
    let provider = Provider::new(vec![]);
    let home = Home::new();
    home.provider(&provider.url(), SAVED);
    home.config_file("sessions/bad.yaml", "messages: [ {role: user, content: \n");
    let output = home.coyote(&["-s", "bad", "x"]).fails(1);
    assert!(output.stderr.contains("bad.yaml"), "{}", output.stderr);
    let text = std::fs::read_to_string(home.config_dir().join("sessions/bad.yaml")).unwrap();
    assert_eq!(text, "messages: [ {role: user, content: \n");
}
