//! The documentation does what it says: each `console` block of the pages is run against the demo server.
//!
//! A line `$ command` is run by a shell in one home for the whole page; the lines below it must be found in what it
//! wrote, in order. `…` stands for anything: on a line of its own for any lines, within a line for any text.

use std::path::Path;
use std::process::Command;

use crate::support::home::Home;

/// A command of a page and what stands below it.
struct Example {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push(Example {
                    line: at + 1,
                    command: command.to_owned(),
                    expected: Vec::new(),
                }),
                (None, Some(example)) => example.expected.push(line.trim_end().to_owned()),
                (None, None) => panic!("line {}: output without a command", at + 1),
            }
        }
    }
    found
}

/// Whether `line` is `pattern`, in which `…` stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split('…');
    let first = pieces.next().unwrap();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let mut open = false;
    for piece in pieces {
        open = piece.is_empty();
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
    }
    open || rest.is_empty()
}

fn run(home: &Home, command: &str) -> (bool, String) {
    let bin = Path::new(env!("CARGO_BIN_EXE_coyote")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(home.env())
        .env("PATH", path)
        .current_dir(home.work_dir())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let text = format!("{}\n{err}", out.trim_end_matches('\n'))
        .replace(&home.cache_dir().display().to_string(), "~/.cache/coyote")
        .replace(&home.config_dir().display().to_string(), "~/.config/coyote");
    (output.status.success(), text)
}

/// What is wrong with the examples of a page.
fn check(page: &Path) -> Vec<String> {
    let home = Home::new();
    home.servers(&[("demo", Path::new("coyote"), &["demo-server"])]);
    let mut wrong = Vec::new();
    for example in examples(&std::fs::read_to_string(page).unwrap()) {
        let (ok, output) = run(&home, &example.command);
        let fails = example
            .expected
            .iter()
            .any(|line| line.starts_with("error:"));
        let mut lines = output.lines();
        let missing = example
            .expected
            .iter()
            .filter(|expected| *expected != "…")
            .find(|expected| !lines.any(|line| matches(expected, line.trim_end())));
        if ok == fails || missing.is_some() {
            wrong.push(format!(
                "{}:{}: `{}` {}, missing {missing:?} in\n{output}",
                page.display(),
                example.line,
                example.command,
                if ok { "succeeds" } else { "fails" },
            ));
        }
    }
    wrong
}

fn pages() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<_> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

#[cfg(unix)]
#[test]
fn every_command_of_the_pages_does_what_they_show() {
    let pages = pages();
    let wrong: Vec<String> = pages.iter().flat_map(|page| check(page)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count: usize = pages
        .iter()
        .map(|page| examples(&std::fs::read_to_string(page).unwrap()).len())
        .sum();
    assert!(count >= 25, "only {count} examples were found");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let link = regex::Regex::new(r"\]\(([^)#\s]+)(?:#[^)]*)?\)").unwrap();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if !target.contains("://") {
                let path = page.parent().unwrap().join(target);
                assert!(path.exists(), "{}: {target}", page.display());
            }
        }
    }
}

#[test]
fn every_key_of_the_configuration_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/configuration.md")).unwrap();
    for key in coyote::config::AppConfig::keys() {
        assert!(page.contains(&format!("`{}`", key.name)), "{}", key.name);
    }
}

#[test]
fn every_command_of_the_repl_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/repl.md")).unwrap();
    for command in coyote::repl::table::COMMANDS {
        let usage = command.usage.replace('|', "\\|");
        assert!(page.contains(&format!("`{usage}`")), "{}", command.usage);
    }
}
