//! Holds what the compiler cannot: which module may import which, who may print, who may read the environment,
//! and who may spell the names of meta-functions.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failing test is the point of a panic"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Module → what it may import besides itself. The order is the order of the layers, lowest first.
const LAYERS: &[(&str, &[&str])] = &[
    ("utils", &[]),
    ("chat", &["utils"]),
    ("mcp", &["chat", "utils"]),
    ("client", &["chat", "utils"]),
    ("render", &["chat", "utils"]),
    ("demo", &["utils"]),
    ("function", &["mcp", "chat", "utils"]),
    ("config", &["function", "mcp", "client", "chat", "utils"]),
    (
        "turn",
        &["config", "function", "client", "mcp", "chat", "utils"],
    ),
    (
        "repl",
        &[
            "turn", "config", "function", "render", "client", "mcp", "chat", "utils",
        ],
    ),
    (
        "cli",
        &[
            "repl", "turn", "config", "function", "demo", "render", "client", "mcp", "chat",
            "utils",
        ],
    ),
];

/// A source file of the library without its tests and comments.
struct Source {
    /// Relative to `src`.
    path: PathBuf,
    code: String,
}

impl Source {
    fn module(&self) -> String {
        let first = self.path.components().next().unwrap();
        Path::new(first.as_os_str())
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(
        files.len() > 20,
        "the walk found only {} files",
        files.len()
    );
    files
        .into_iter()
        .filter(|path| {
            !path
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .ends_with("tests")
        })
        .map(|path| {
            let code = strip(&fs::read_to_string(&path).unwrap());
            let path = path.strip_prefix(&root).unwrap().to_path_buf();
            Source { path, code }
        })
        .collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Drops comment lines and everything from a trailing inline test module on.
fn strip(text: &str) -> String {
    let text = match text.find("#[cfg(test)]\nmod tests {") {
        Some(at) => text.split_at(at).0,
        None => text,
    };
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Every match of `pattern` in the files that `allowed` does not exempt.
fn offences(pattern: &str, allowed: impl Fn(&Path) -> bool) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    sources()
        .iter()
        .filter(|source| !allowed(&source.path))
        .flat_map(|source| {
            let found = pattern.find_iter(&source.code);
            found
                .map(|found| format!("{}: {}", source.path.display(), found.as_str()))
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn modules_import_only_lower_layers() {
    let mention = Regex::new(r"\bcrate::(?:\{([^}]*)\}|(\w+))").unwrap();
    let mut offences = BTreeSet::new();
    for source in sources() {
        let module = source.module();
        if module == "lib" || module == "main" {
            continue;
        }
        let (_, allowed) = LAYERS
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("`{module}` has no layer: add it to the table"));
        for found in mention.captures_iter(&source.code) {
            let group = found.get(1).or(found.get(2)).unwrap().as_str();
            for target in group
                .split(',')
                .map(|part| part.trim().split("::").next().unwrap())
            {
                if !target.is_empty() && target != module && !allowed.contains(&target) {
                    offences.insert(format!("{} imports crate::{target}", source.path.display()));
                }
            }
        }
    }
    assert!(offences.is_empty(), "{offences:#?}");
}

#[test]
fn the_layer_table_is_acyclic() {
    for (position, (module, allowed)) in LAYERS.iter().enumerate() {
        for target in *allowed {
            let at = LAYERS.iter().position(|(name, _)| name == target);
            assert!(
                at.is_some_and(|at| at < position),
                "{module} may import {target}, which is not below it"
            );
        }
    }
}

#[test]
fn meta_function_names_have_one_owner() {
    let found = offences(
        r"\bmcp_(?:invoke|search|describe|read|prompt)\b|\bmcp_(?:invoke|search|describe|read|prompt)_[<{$]",
        |path| path == Path::new("mcp/mod.rs"),
    );
    assert!(found.is_empty(), "{found:#?}");
}

/// What a server's prompt says must never be understood as a line (`P-05`): neither what gets it nor what submits it
/// may name what understands lines, fills in templates or reads files.
#[test]
fn prompts_never_meet_the_line_parser() {
    let handler = Path::new("repl/handlers/prompt.rs");
    let submission = Path::new("repl/handlers/chat.rs");
    let found = offences(
        r"command::parse|\bparse\(|\bParsed\b|do_line|repl\.line\b|prelude|words::split|command::\*|\bshell::|repl\.shell\b|interpolate|INPUT_PLACEHOLDER",
        |path| path != handler && path != submission,
    );
    assert!(found.is_empty(), "{found:#?}");
    let found = offences(r"from_files|chat::file\b", |path| path != handler);
    assert!(found.is_empty(), "{found:#?}");
    let ways = offences(r"Input::\w+", |path| path != handler);
    assert_eq!(
        ways,
        [format!("{}: Input::from_str", handler.display())],
        "the one way in"
    );
}

#[test]
fn only_the_terminal_layer_prints() {
    let found = offences(r"\be?print(?:ln)?!|\bdbg!", |path| {
        path.starts_with("render") || path == Path::new("main.rs")
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn only_one_file_reads_the_environment() {
    let found = offences(
        r"\bstd::env::(?:var|var_os|vars|vars_os|set_var|remove_var)\b|\buse std::env(?:;|::\{)",
        |path| path == Path::new("utils/env.rs"),
    );
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_file_opens_with_its_job() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["src", "tests", "benches"] {
        collect(&root.join(dir), &mut files);
    }
    let silent: Vec<_> = files
        .iter()
        .filter(|path| {
            !path
                .file_stem()
                .unwrap()
                .to_string_lossy()
                .ends_with("_tests")
        })
        .filter(|path| !fs::read_to_string(path).unwrap().starts_with("//!"))
        .collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn files_stay_readable() {
    let long: Vec<_> = sources()
        .iter()
        .map(|source| (source.path.clone(), source.code.lines().count()))
        .filter(|(_, lines)| *lines > 600)
        .collect();
    assert!(
        long.is_empty(),
        "over 600 lines without tests and comments; is it two things? {long:#?}"
    );
}
