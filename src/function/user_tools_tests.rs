#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::function::Functions;
use crate::function::testing::Bench;

/// A functions directory with these programs, each a shell script.
fn functions_dir(entries: &Value, programs: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("functions.json"), entries.to_string()).unwrap();
    let bin = dir.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for (name, script) in programs {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    dir
}

fn entry(name: &str) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}})
}

/// A bench whose only tool is `name`, a script.
fn bench(name: &str, script: &str) -> (Bench, tempfile::TempDir) {
    let dir = functions_dir(&json!([entry(name)]), &[(name, script)]);
    let (functions, warnings) = Functions::load(dir.path());
    assert!(warnings.is_empty(), "{warnings:?}");
    let mut bench = Bench::new();
    bench.env.functions = Arc::new(functions);
    (bench, dir)
}

#[test]
fn no_file_is_no_tools_and_no_warning() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(load(dir.path()), (Vec::new(), Vec::new()));
}

#[test]
fn a_bad_file_is_one_warning() {
    for text in ["{", "{}", "\u{0}", ""] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("functions.json"), text).unwrap();
        let (tools, warnings) = load(dir.path());
        assert!(tools.is_empty());
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("functions.json"), "{warnings:?}");
    }
}

#[test]
fn a_bad_entry_costs_that_entry() {
    let entries = json!([
        entry("good"),
        entry("has space"),
        entry(""),
        entry(&"x".repeat(65)),
        entry("missing"),
        entry("fs_cat"),
        entry("good"),
        {"name": "odd", "parameters": []},
        {"description": "no name"},
        7,
        entry("mcp_read_x"),
        entry("not_executable"),
    ]);
    let dir = functions_dir(&entries, &[("good", ""), ("odd", ""), ("mcp_read_x", "")]);
    fs::write(dir.path().join("bin/not_executable"), "").unwrap();
    let (tools, warnings) = load(dir.path());
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool.declaration.name.as_str())
        .collect();
    assert_eq!(names, ["good", "mcp_read_x"]);
    assert_eq!(warnings.len(), 11, "{warnings:#?}");
    for (part, count) in [
        ("is no function name", 3),
        ("has no executable", 2),
        ("built-in", 1),
        ("twice", 1),
        ("not an object", 1),
        ("it works, but lists do not show it", 1),
    ] {
        assert_eq!(
            warnings.iter().filter(|w| w.contains(part)).count(),
            count,
            "{part}"
        );
    }
}

#[tokio::test]
async fn arguments_arrive_as_json_and_stdout_is_the_answer() {
    let (mut bench, _dir) = bench("echo_args", "printf %s \"$1\"");
    assert_eq!(
        bench.ok("echo_args", json!({"a": "é ' \" $HOME"})).await,
        r#"{"a":"é ' \" $HOME"}"#
    );
    assert_eq!(bench.ok("echo_args", json!({})).await, "{}");
}

#[tokio::test]
async fn the_output_file_wins_over_stdout() {
    let (mut bench, _dir) = bench("t", "echo noise; printf answer > \"$LLM_OUTPUT\"");
    assert_eq!(bench.ok("t", json!({})).await, "answer");
}

#[tokio::test]
async fn long_arguments_come_on_stdin() {
    let (mut bench, _dir) = bench("t", "echo \"$#\"; wc -c");
    let out = bench
        .ok("t", json!({"text": "x".repeat(ARGUMENT_MAX)}))
        .await;
    let words: Vec<_> = out.split_whitespace().collect();
    assert_eq!(
        words,
        ["0", &(ARGUMENT_MAX + r#"{"text":""}"#.len()).to_string()]
    );
    let out = bench.ok("t", json!({"text": "short"})).await;
    assert_eq!(out.split_whitespace().collect::<Vec<_>>(), ["1", "0"]);
}

#[tokio::test]
async fn failure_carries_code_and_stderr() {
    let (mut bench, _dir) = bench("t", "echo out; echo why >&2; exit 4");
    assert_eq!(
        bench.error("t", json!({})).await,
        "`t` failed (exit code 4): why"
    );
    let (mut bench, _dir) = self::bench("t", "echo only out; exit 1");
    assert_eq!(
        bench.error("t", json!({})).await,
        "`t` failed (exit code 1): only out"
    );
}

#[tokio::test]
async fn provider_keys_are_not_inherited() {
    // Any variable will do that every test process has.
    let (mut bench, _dir) = bench("t", "printf \"[$PATH]\"");
    bench.env.scrub_env = Arc::from(["PATH".to_owned()]);
    let out = bench.ok("t", json!({})).await;
    let inherited = crate::utils::env::var("PATH").unwrap();
    assert!(!out.contains(&inherited), "{out}");
}

#[tokio::test]
async fn huge_and_binary_output_is_bounded_text() {
    let (mut bench, _dir) = bench("t", "head -c 9000000 /dev/urandom > \"$LLM_OUTPUT\"");
    let out = bench.ok("t", json!({})).await;
    assert!(out.len() <= bounds::CEILING + 100, "{}", out.len());
}

#[tokio::test]
async fn malformed_arguments_do_not_start_it() {
    let (mut bench, dir) = bench("t", "touch \"$(dirname \"$0\")/started\"");
    let error = bench.error("t", json!("[1, 2")).await;
    assert!(error.contains("`[1, 2`"), "{error}");
    assert!(!dir.path().join("bin/started").exists());
}

#[test]
fn the_sample_tools_load_without_a_warning() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/home/functions");
    let (tools, warnings) = load(&dir);
    assert_eq!(warnings, [""; 0]);
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].declaration.name, "word_count");
    assert_eq!(tools[0].declaration.parameters["required"], json!(["text"]));
}

#[tokio::test]
async fn the_sample_tool_counts_words() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/home/functions");
    let (functions, _) = Functions::load(&dir);
    let mut bench = Bench::new();
    bench.env.functions = Arc::new(functions);
    let output = bench
        .call("word_count", json!({"text": "one two\nthree é"}))
        .await;
    let text = output.to_text();
    // The sample is written in Python, which not every machine has; then the failure must say so.
    assert!(
        text.trim() == "4" || output.is_error && text.contains("python3"),
        "{text}"
    );
}
