//! `Tab` after `.prompt`, in a real pseudo-terminal (`P-40`–`P-46`).
#![cfg(unix)]

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::home::Home;
use crate::support::provider::{Provider, chat_text};
use crate::support::pty::Pty;

/// A REPL whose servers have come up, or failed to.
struct Bench {
    provider: Provider,
    home: Home,
    pty: Pty,
}

fn log(home: &Home, server: &str) -> std::path::PathBuf {
    home.path().join(format!("{server}.log"))
}

/// Servers: name and scenario of the scripted server.
fn bench(servers: &[(&str, &str)], more: &str) -> Bench {
    let provider = Provider::new(vec![chat_text("all are up"), chat_text("the answer")]);
    let home = Home::new();
    let settings = format!("left_prompt: 'READY> '\nright_prompt: ''\n{more}");
    home.provider(&provider.url(), &settings);
    let entries: serde_json::Map<String, Value> = servers
        .iter()
        .map(|(name, scenario)| {
            let entry = json!({
                "command": crate::support::fake_mcp(),
                "args": [scenario],
                "description": format!("plays {scenario}"),
                "env": { "FAKE_LOG": log(&home, name), "FAKE_PIDS": home.path().join(format!("{name}.pids")) },
            });
            ((*name).to_owned(), entry)
        })
        .collect();
    home.config_file("mcp.json", &json!({ "mcpServers": entries }).to_string());
    let pty = Pty::spawn(&home, &[], &[]);
    pty.wait("READY>");
    // A question waits for servers that are being started.
    pty.send("hello\r").wait("all are up");
    let bench = Bench {
        provider,
        home,
        pty,
    };
    bench.at_the_prompt();
    bench
}

impl Bench {
    #[track_caller]
    fn at_the_prompt(&self) {
        self.pty.wait_for("an empty line", |screen| {
            screen.trim_end().ends_with("READY>")
        });
    }

    /// Gives up the line.
    #[track_caller]
    fn clear(&self) {
        self.pty.send("\x03");
        self.at_the_prompt();
    }

    /// What is on the screen from the line being edited on: the line, and the menu below it.
    fn tail(&self) -> String {
        let screen = self.pty.screen();
        let tail = screen.rsplit("READY>").next().unwrap_or_default();
        tail.trim().to_owned()
    }

    #[track_caller]
    fn wait_tail(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        self.pty.wait_for(what, |_| condition(&self.tail()));
        self.tail()
    }

    /// Types a line and presses Tab; waits for a menu with all of `shown`.
    #[track_caller]
    fn menu(&self, line: &str, shown: &[&str]) -> String {
        self.pty.send(line);
        self.wait_tail("the line", |tail| tail == line.trim());
        self.pty.send("\t");
        self.wait_tail(&format!("{shown:?}"), |tail| {
            shown.iter().all(|text| tail.contains(text))
        })
    }

    /// Types a line, presses Tab and types on: there is nothing but the line.
    #[track_caller]
    fn nothing(&self, line: &str) {
        self.pty.send(line).send("\t").send("#");
        let whole = format!("{line}#");
        self.wait_tail(&format!("`{whole}` and nothing else"), |tail| tail == whole);
        self.clear();
    }

    /// The methods that a server was asked for so far.
    fn asked(&self, server: &str) -> Vec<String> {
        let text = std::fs::read_to_string(log(&self.home, server)).unwrap_or_default();
        let method = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            Some(message["method"].as_str()?.to_owned())
        };
        text.lines().filter_map(method).collect()
    }

    fn walks(&self, server: &str) -> usize {
        let asked = self.asked(server);
        asked
            .iter()
            .filter(|method| *method == "prompts/list")
            .count()
    }
}

#[test]
fn servers_then_prompts_then_arguments() {
    let servers = [
        ("alpha", "full"),
        ("beta", "prompts-only"),
        ("tools", "tools-only"),
        ("dead", "exit3"),
    ];
    let bench = bench(&servers, "");
    let before: Vec<_> = servers.iter().map(|(name, _)| bench.asked(name)).collect();
    let menu = bench.menu(
        ".prompt ",
        &["alpha", "plays full", "beta", "plays prompts-only"],
    );
    assert!(!menu.contains("tools") && !menu.contains("dead"), "{menu}");
    let after: Vec<_> = servers.iter().map(|(name, _)| bench.asked(name)).collect();
    assert_eq!(before, after, "the first stage asks nobody");
    bench.clear();

    let menu = bench.menu(
        ".prompt alpha ",
        &["greet", "Greets a person", "User Summary", "dialog"],
    );
    let line = menu.lines().next().unwrap_or_default();
    assert_eq!(line.trim_end(), ".prompt alpha");
    bench.clear();

    let menu = bench.menu(
        ".prompt alpha greet ",
        &["name=", "(required) the name", "style=", "the style"],
    );
    assert!(menu.find("name=") < menu.find("style="), "{menu}");
    bench.clear();

    // One candidate is inserted at once; what is typed next is its value.
    bench.pty.send(".prompt alpha greet style='a b' n\t");
    bench.wait_tail("the key", |tail| {
        tail == ".prompt alpha greet style='a b' name="
    });
    bench.pty.send("x");
    bench.wait_tail("the value", |tail| tail.ends_with(" name=x"));
    bench.clear();
    assert_eq!(bench.walks("alpha"), 3, "one walk per press of Tab");
    assert_eq!(bench.walks("beta"), 0);
}

/// Case 1; `P-45`: what is typed into the open menu filters the listing in hand.
#[test]
fn a_press_of_tab_is_one_walk_over_all_pages() {
    let bench = bench(&[("s", "pages")], "");
    let all = ["prompt_1", "prompt_2", "prompt_3", "prompt_4", "prompt_5"];
    bench.menu(".prompt s ", &all);
    assert_eq!(bench.walks("s"), 3);
    bench.pty.send("5");
    let fits = |tail: &str| tail.contains("prompt_5  a prompt") && !tail.contains("prompt_4");
    bench.wait_tail("the one that fits", fits);
    assert_eq!(bench.walks("s"), 3, "typing asks nobody");
    bench.clear();
    bench.menu(".prompt s ", &all);
    assert_eq!(bench.walks("s"), 6, "each press asks anew");
    let asked = bench.asked("s");
    let after = asked.iter().skip_while(|method| *method != "prompts/list");
    assert!(
        after.clone().all(|method| method == "prompts/list"),
        "{asked:?}"
    );
}

/// Case 22.
#[test]
fn a_name_with_a_space_is_completed_from_half_a_quote() {
    let bench = bench(&[("my server", "full")], "");
    bench.pty.send(".prompt \t");
    bench.wait_tail("the server", |tail| tail == ".prompt 'my server'");
    bench.pty.send("'User S\t");
    bench.wait_tail("the prompt", |tail| {
        tail == ".prompt 'my server' 'User Summary'"
    });
    bench.pty.send("\r").wait("the answer");
    let body = eventually("the question", || {
        bench
            .provider
            .asked()
            .get(1)
            .map(|asked| asked.body.to_string())
    });
    assert!(body.contains("Summarise the user"), "{body}");
}

#[test]
fn keys_appear_while_a_server_hangs_and_the_menu_stays_empty() {
    let bench = bench(&[("stuck", "stall")], "");
    bench.pty.send(".prompt stuck \t");
    eventually("it is being asked", || {
        (bench.walks("stuck") == 4).then_some(())
    });
    bench.pty.send("some");
    bench.wait_tail("the keys", |tail| tail == ".prompt stuck some");
    let cancelled = || {
        let asked = bench.asked("stuck");
        asked.contains(&"notifications/cancelled".to_owned())
    };
    assert!(!cancelled(), "they did not wait for the server");
    // When the time is over the server is told, and nothing is offered.
    eventually("the end of the walk", || cancelled().then_some(()));
    bench.pty.send("thing");
    bench.wait_tail("more keys", |tail| tail == ".prompt stuck something");
    assert_eq!(bench.walks("stuck"), 4);
}

#[test]
fn a_server_that_was_killed_is_not_started_again() {
    let bench = bench(&[("one", "full"), ("two", "full")], "");
    bench.menu(".prompt one ", &["greet"]);
    bench.clear();
    let pids = std::fs::read_to_string(bench.home.path().join("one.pids")).unwrap();
    let pid = pids.lines().next().unwrap().parse().unwrap();
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    bench.nothing(".prompt one ");
    bench.nothing(".prompt one greet ");
    bench.pty.send(".prompt \t");
    bench.wait_tail("the other one", |tail| tail == ".prompt two");
    let starts = bench.asked("one");
    let starts = starts
        .iter()
        .filter(|method| *method == "initialize")
        .count();
    assert_eq!((starts, bench.walks("one")), (1, 1));
}

#[test]
fn every_other_case_offers_nothing_in_silence() {
    let servers = [
        ("good", "full"),
        ("tools", "tools-only"),
        ("dead", "exit3"),
        ("refusing", "prompts-unserved"),
        ("null", "list-null"),
        ("off", "full"),
    ];
    let bench = bench(
        &servers,
        "enabled_mcp_servers: good, tools, dead, refusing, 'null'",
    );
    for line in [
        ".prompt misspelled ",
        ".prompt misspelled greet ",
        ".prompt tools ",
        ".prompt dead ",
        ".prompt refusing ",
        ".prompt refusing greet ",
        ".prompt null ",
        ".prompt off ",
        ".prompt good nope ",
        ".prompt good no-arguments ",
        ".prompt good 'User Summary' ",
        ".prompt good greet name=x style=y ",
    ] {
        bench.nothing(line);
    }
    assert_eq!(
        bench.asked("off"),
        Vec::<String>::new(),
        "it is not started"
    );
    bench.menu(".prompt good ", &["greet"]);
}

/// Case 25: nothing a server says acts on the terminal, and a name that would be changed is not offered.
#[test]
fn sequences_in_names_and_descriptions_do_nothing() {
    let bench = bench(&[("evil", "escapes")], "");
    let menu = bench.menu(".prompt evil ", &["greet", "dialog"]);
    let names = menu.lines().skip(1).map(str::trim_start);
    assert!(
        !names.into_iter().any(|name| name.starts_with("evil")),
        "{menu}"
    );
    bench.clear();
    bench.menu(".prompt evil greet ", &["name=", "(required)"]);
    let raw = bench.pty.raw();
    for needle in [&b"\x1b]"[..], "\u{202e}".as_bytes(), "\u{9b}".as_bytes()] {
        let found = raw.windows(needle.len()).any(|window| window == needle);
        assert!(!found, "{needle:?}");
    }
}
