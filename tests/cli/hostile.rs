//! Hostile and merely odd MCP servers, through `coyote mcp` and through turns, on both transports.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::home::Home;
use crate::support::provider::{Provider, Reply, chat_calls, chat_text};
use crate::support::served::{ALL, BOTH, Served, Wire, pattern};

fn names(items: &Value) -> Vec<&str> {
    let items = items.as_array().unwrap();
    let mut names: Vec<&str> = items
        .iter()
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn count(items: &Value) -> usize {
    items.as_array().unwrap_or_else(|| panic!("{items}")).len()
}

/// One turn whose model makes `rounds` of calls; what it got back, call by call.
fn turn(home: &Home, rounds: &[&[(&str, Value)]]) -> (Provider, Vec<String>) {
    let mut calls = 0;
    let mut script: Vec<Reply> = rounds
        .iter()
        .map(|round| {
            let round: Vec<(String, &str, Value)> = round
                .iter()
                .map(|(name, arguments)| {
                    calls += 1;
                    (format!("call_{calls}"), *name, arguments.clone())
                })
                .collect();
            let round: Vec<(&str, &str, Value)> = round
                .iter()
                .map(|(id, name, arguments)| (id.as_str(), *name, arguments.clone()))
                .collect();
            chat_calls(&round)
        })
        .collect();
    script.push(chat_text("done"));
    let provider = Provider::new(script);
    home.provider(&provider.url(), "enabled_mcp_servers: all");
    let output = home.coyote(&["-y", "go"]).any_stderr().ok();
    assert_eq!(output.stdout, "done\n", "{}", output.stderr);
    let asked = provider.asked();
    let messages = asked.last().unwrap().body["messages"].clone();
    let answers = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect();
    (provider, answers)
}

/// The names of the functions of a request.
fn functions(provider: &Provider) -> Vec<String> {
    provider.asked()[0].body["tools"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        // Whether prompts are offered is not what these tests are about.
        .filter(|name| name.starts_with("mcp_") && !name.starts_with("mcp_prompt_"))
        .collect()
}

/// Case 1.
#[test]
fn every_page_of_every_kind_is_shown() {
    for wire in ALL {
        let served = Served::new("pages", wire);
        for (verb, stem) in [
            ("tools", "tool"),
            ("resources", "resource"),
            ("templates", "template"),
            ("prompts", "prompt"),
        ] {
            let expected: Vec<String> = (1..=5).map(|n| format!("{stem}_{n}")).collect();
            assert_eq!(names(&served.json(&[verb])), expected, "{wire:?}");
            let text = served.mcp(&[verb, "s"]).ok().stdout;
            assert_eq!(
                text.lines().filter(|line| line.contains('5')).count(),
                1,
                "{text}"
            );
        }
        let found = served.json(&["search", "s", "page", "tool", "prompt", "--top-k", "20"]);
        assert_eq!(count(&found), 20, "{wire:?}: {found}");
        let counts = json!({ "tools": 5, "resources": 5, "resource_templates": 5, "prompts": 5 });
        assert_eq!(served.json(&["servers"])[0]["counts"], counts, "{wire:?}");
    }
}

/// Case 2.
#[test]
fn lists_without_an_end_show_what_was_gathered_and_one_warning() {
    for wire in BOTH {
        for (scenario, expected) in [("endless", 1000), ("same-cursor", 2), ("empty-cursor", 2)] {
            let served = Served::new(scenario, wire);
            let output = served.mcp(&["tools", "s", "--json"]).any_stderr().ok();
            let tools: Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!(count(&tools), expected, "{wire:?} {scenario}");
            assert_eq!(
                output.stderr.lines().count(),
                1,
                "{scenario}: {}",
                output.stderr
            );
        }
    }
}

/// Case 3.
#[test]
fn a_kind_that_is_advertised_and_not_served_costs_no_other() {
    for wire in BOTH {
        let served = Served::new("resources-unserved", wire);
        assert!(count(&served.json(&["tools"])) > 0 && count(&served.json(&["prompts"])) > 0);
        for verb in ["resources", "templates"] {
            assert_eq!(served.json(&[verb]), json!([]), "{wire:?}");
        }
        let said = served.mcp(&["resources", "s"]).any_stderr().ok().stderr;
        assert!(said.contains("not") && said.contains("resources"), "{said}");
        let servers = served.json(&["servers"]);
        assert!(
            servers[0]["notes"].to_string().contains("resources"),
            "{servers}"
        );
        let found = served.json(&["search", "s", "echo"]);
        assert_eq!(found[0]["name"], "echo", "{wire:?}: {found}");
    }
}

/// Case 4, and what `M-31` makes of each set of capabilities.
#[test]
fn a_kind_that_is_not_advertised_is_never_asked_for() {
    for wire in BOTH {
        let served = Served::new("tools-only", wire);
        for verb in ["tools", "resources", "templates", "prompts", "servers"] {
            served.json(&[verb]);
        }
        served.json(&["search", "s", "echo"]);
        let (provider, answers) = turn(
            &served.home,
            &[&[
                ("mcp_search_s", json!({ "query": "echo" })),
                ("mcp_invoke_s", json!({ "tool": "echo" })),
            ]],
        );
        assert_eq!(answers.len(), 2);
        assert_eq!(
            functions(&provider),
            ["mcp_invoke_s", "mcp_search_s", "mcp_describe_s"]
        );
        for method in served.methods() {
            assert!(
                !method.contains("resources") && !method.contains("prompts"),
                "{wire:?}: {method}"
            );
        }
    }
    for (scenario, expected) in [
        (
            "resources-only",
            &["mcp_search_s", "mcp_describe_s", "mcp_read_s"][..],
        ),
        ("prompts-only", &["mcp_search_s", "mcp_describe_s"]),
        ("nothing", &["mcp_search_s", "mcp_describe_s"]),
    ] {
        let served = Served::new(scenario, Wire::Stdio);
        let (provider, _) = turn(&served.home, &[]);
        assert_eq!(functions(&provider), expected, "{scenario}");
    }
}

/// Case 6.
#[test]
fn one_name_and_three_kinds_are_three_items() {
    for wire in BOTH {
        let served = Served::new("twins", wire);
        let found = served.json(&["search", "s", "status"]);
        let kinds: BTreeSet<&str> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, BTreeSet::from(["prompt", "resource", "tool"]));
        for kind in ["tool", "resource", "prompt"] {
            let described = served.json(&["describe", "s", "status", "--kind", kind]);
            assert_eq!(
                described["description"],
                format!("the {kind}"),
                "{described}"
            );
        }
    }
}

/// Case 7.
#[test]
fn parts_of_names_are_found_in_the_same_order_every_time() {
    let served = Served::new("names", Wire::Stdio);
    for (query, first) in [
        ("issue", "createIssue"),
        ("create", "createIssue"),
        ("server log", "HTTPServerLog2"),
    ] {
        let found = served.json(&["search", "s", query]);
        assert_eq!(found[0]["name"], first, "{query}: {found}");
        for _ in 0..2 {
            assert_eq!(served.json(&["search", "s", query]), found);
        }
    }
}

/// Case 8.
#[test]
fn a_malformed_tool_costs_itself() {
    for wire in BOTH {
        let served = Served::new("bad-tool", wire);
        let tools = served.json(&["tools"]);
        let readable = |item: &&Value| !item.to_string().contains("unreadable");
        assert_eq!(tools.as_array().unwrap().iter().filter(readable).count(), 4);
        let bad = tools
            .as_array()
            .unwrap()
            .iter()
            .find(|item| !readable(item))
            .unwrap();
        assert!(bad.to_string().contains("inputSchema"), "{bad}");
        let answer = served.json(&["call", "s", "tool_5"]);
        assert_eq!(answer["content"][0]["text"], "tool_5");
    }
}

/// Cases 13 and 14.
#[test]
fn payloads_are_what_their_bytes_say() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        // One that cannot be shown exits 1 and says why in the same place.
        let read = |uri: &str| -> Value {
            let output = served.mcp(&["read", "s", uri, "--json"]).output();
            serde_json::from_str(&output.stdout).unwrap()
        };
        assert_eq!(read("blob://json")["text"], r#"{"a":1}"#);
        for (uri, extension, size) in [
            ("blob://png", "png", 67),
            ("blob://png-as-text", "bin", 67),
            ("blob://untyped", "bin", 3),
            ("blob://url-safe", "bin", 4),
            ("mime://traversal", "bin", 2),
            ("mime://parameters", "html", 2),
            ("mime://case", "png", 67),
            ("mime://long", "bin", 2),
        ] {
            let item = read(uri);
            assert_eq!(
                (&item["spilled"], &item["size_bytes"]),
                (&json!(true), &json!(size)),
                "{uri}"
            );
            let path = std::path::PathBuf::from(item["path"].as_str().unwrap());
            assert_eq!(path.parent(), Some(served.spilled().as_path()), "{uri}");
            assert_eq!(path.extension().unwrap(), extension, "{uri}");
            assert_eq!(std::fs::metadata(&path).unwrap().len(), size, "{uri}");
            assert!(item.to_string().len() < 8192, "{uri}");
        }
        let bad = read("blob://bad");
        assert!(bad["error"].as_str().unwrap().contains("byte 4"), "{bad}");
        let large = read("blob://60mb");
        assert!(
            large["error"].as_str().unwrap().contains("50 MiB"),
            "{large}"
        );
    }
}

/// The bytes themselves, of every size up to the ceiling.
#[test]
fn raw_reads_are_exact_up_to_the_ceiling() {
    const MIB: usize = 1024 * 1024;
    for wire in ALL {
        let served = Served::new("full", wire);
        let read =
            |size: usize| served.mcp(&["read", "s", &format!("blob://size/{size}"), "--raw"]);
        for size in [0, 1, MIB, 50 * MIB] {
            let bytes = read(size).ok().stdout_bytes;
            assert!(
                bytes == pattern(size),
                "{wire:?}: {size} bytes came as {}",
                bytes.len()
            );
        }
        let refused = read(51 * MIB).fails(1);
        assert!(refused.stdout_bytes.is_empty());
        assert!(refused.stderr.contains("52428800"), "{}", refused.stderr);
    }
}

/// Case 15.
#[test]
fn any_server_name_gets_legal_distinct_functions_and_the_right_server() {
    let long = "x".repeat(60);
    let odd = [
        "../../x",
        "a/b",
        "con",
        "日本",
        "Internet Search (X)",
        "a.b",
        "a_b",
        &long,
    ];
    let home = Home::new();
    let servers: serde_json::Map<String, Value> = odd
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let entry = json!({
                "command": crate::support::fake_mcp(),
                "args": ["full"],
                "env": { "WHOAMI": format!("server {at}") },
            });
            ((*name).to_owned(), entry)
        })
        .collect();
    home.config_file("mcp.json", &json!({ "mcpServers": servers }).to_string());
    let (provider, _) = turn(&home, &[]);
    let functions = functions(&provider);
    assert_eq!(functions.len(), 4 * odd.len());
    assert_eq!(
        functions.iter().collect::<BTreeSet<_>>().len(),
        functions.len()
    );
    for name in &functions {
        let legal = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        assert!(legal && name.len() <= 64, "{name}");
    }
    let invokes: Vec<&str> = functions
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("mcp_invoke_"))
        .collect();
    let calls: Vec<(&str, Value)> = invokes
        .iter()
        .map(|name| {
            (
                *name,
                json!({ "tool": "env", "arguments": { "name": "WHOAMI" } }),
            )
        })
        .collect();
    let (_, answers) = turn(&home, &[&calls]);
    let answered: BTreeSet<&String> = answers.iter().collect();
    assert_eq!(answered.len(), odd.len(), "{answers:?}");
    let tree = home.cache_dir().join("mcp-resources");
    let mut places = BTreeSet::new();
    for (at, name) in odd.iter().enumerate() {
        let output = home
            .coyote(&["mcp", "call", name, "env", "name=WHOAMI"])
            .ok();
        assert_eq!(output.stdout.trim(), format!("server {at}"), "{name}");
        let output = home
            .coyote(&["mcp", "read", name, "blob://png", "--json"])
            .ok();
        let item: Value = serde_json::from_str(&output.stdout).unwrap();
        let path = std::path::PathBuf::from(item["path"].as_str().unwrap());
        assert_eq!(
            path.parent().and_then(std::path::Path::parent),
            Some(tree.as_path()),
            "{name}"
        );
        let place = path.parent().unwrap().display().to_string();
        places.insert(place.to_lowercase());
    }
    assert_eq!(places.len(), odd.len());
}

/// Case 16.
#[test]
fn pages_of_wide_text_join_to_the_text() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        let raw = served
            .mcp(&["read", "s", "text://wide", "--raw"])
            .ok()
            .stdout;
        assert_eq!(raw.len(), 2 * 1024 * 1024);
        let page = |offset: u64, size: &str| {
            served.json(&[
                "read",
                "s",
                "text://wide",
                "--offset",
                &offset.to_string(),
                "--max-bytes",
                size,
            ])
        };
        let (mut joined, mut offset) = (String::new(), Some(0));
        while let Some(at) = offset {
            let part = page(at, "204800");
            joined.push_str(part["text"].as_str().unwrap());
            let next = part["next_offset"].as_u64();
            assert!(next.is_none_or(|next| next > at), "{next:?} after {at}");
            offset = next;
        }
        assert!(joined == raw, "{wire:?}");
        for size in ["1", "2", "3", "5"] {
            let first = page(0, size);
            assert_eq!(
                (&first["text"], &first["next_offset"]),
                (&json!("𝄞"), &json!(4)),
                "{size}"
            );
            assert_eq!(page(5, size)["text"], "𝄞", "an offset inside a character");
        }
        assert_eq!(page(1 << 40, "100")["text"], "");
    }
}

/// Case 17.
#[test]
fn patterns_filter_teach_and_stay_linear() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        let read = |uri: &str, pattern: &str| served.mcp(&["read", "s", uri, "--pattern", pattern]);
        let shown = read("text://log", "ERROR").any_stderr().ok().stdout;
        assert!(
            shown.starts_with("998-") && shown.contains("\n1000:2026-11-29 ERROR line 1000 "),
            "{shown}"
        );
        assert!(shown.contains("\n--\n"));
        let none = served.json(&["read", "s", "text://log", "--pattern", "no such words"]);
        assert_eq!(none["text"], "");
        assert!(
            none["note"].as_str().unwrap().contains("30000 lines"),
            "{none}"
        );
        read("text://backtrack", "(a+)+$").any_stderr().ok();
        let bad = read("text://log", "[").fails(1).stderr;
        assert!(bad.contains("byte 0"), "{bad}");
    }
}

/// Case 18.
#[test]
fn templates_expand_or_teach() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        for (value, expected) in [
            ("a/b", "a%2Fb"),
            ("!*'()", "%21%2A%27%28%29"),
            ("é", "%C3%A9"),
        ] {
            let item = served.json(&["read", "s", "x://e/{t}", &format!("t={value}")]);
            assert_eq!(item["text"], format!("x://e/{expected}"));
        }
        let mut said = BTreeSet::new();
        for (template, arguments, named) in [
            ("x://{?q}", &["q=1"][..], "`{?q}`"),
            ("x://{a,b}", &["a=1", "b=1"], "`{a,b}`"),
            ("x://{t:3}", &["t=1"], "`{t:3}`"),
            ("x://{t", &["t=1"], "`{t`"),
            ("x://e/{t}", &["u=1"], "`t`"),
        ] {
            let refused = served
                .mcp(&[&["read", "s", template], arguments].concat())
                .fails(1);
            assert!(
                refused.stderr.contains(named),
                "{template}: {}",
                refused.stderr
            );
            said.insert(refused.stderr.replace(named, ""));
        }
        assert_eq!(said.len(), 5, "each says what is wrong with it");
        let reads = served.messages();
        let reads = reads.iter().filter(|it| it["method"] == "resources/read");
        assert_eq!(reads.count(), 3, "nothing wrong was sent");
    }
}

/// Case 19.
#[test]
fn null_is_absent_and_wrong_types_teach() {
    let served = Served::new("full", Wire::Stdio);
    let (_, answers) = turn(
        &served.home,
        &[&[
            (
                "mcp_read_s",
                json!({ "uri": "doc://notes", "arguments": null, "pattern": null, "offset": null, "max_bytes": null }),
            ),
            ("mcp_search_s", json!({ "query": "notes", "top_k": null })),
            ("mcp_describe_s", json!({ "tool": "echo", "kind": null })),
            ("mcp_invoke_s", json!({ "tool": "echo", "arguments": null })),
            (
                "mcp_read_s",
                json!({ "uri": "doc://notes", "offset": "10" }),
            ),
            (
                "mcp_read_s",
                json!({ "uri": "doc://notes", "arguments": [] }),
            ),
            ("mcp_invoke_s", json!({ "tool": "echo", "arguments": [] })),
            ("mcp_search_s", json!({ "query": 7 })),
            ("mcp_read_s", json!({})),
        ]],
    );
    assert_eq!(answers.len(), 9);
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer.contains("tool_call_error"), at > 3, "{at}: {answer}");
    }
    for (answer, named) in
        answers[4..]
            .iter()
            .zip(["offset", "arguments", "arguments", "query", "uri"])
    {
        assert!(answer.contains(named), "{named}: {answer}");
    }
}

/// Case 26, and what else may stand around an answer.
#[test]
fn noise_does_not_keep_a_server_from_working() {
    for scenario in [
        "noise",
        "stderr-flood",
        "bom",
        "no-jsonrpc",
        "batch",
        "string-ids",
        "server-requests",
    ] {
        let served = Served::new(scenario, Wire::Stdio);
        let output = served.mcp(&["call", "s", "echo", "text=hi"]).ok();
        assert_eq!(output.stdout.trim(), r#"{"text":"hi"}"#, "{scenario}");
    }
}

/// Case 27.
#[test]
fn servers_in_trouble_have_states_with_reasons_and_cost_the_others_nothing() {
    let home = Home::new();
    let fake = crate::support::fake_mcp();
    let entry =
        |scenario: &str| json!({ "command": fake, "args": [scenario], "startup_timeout": 2 });
    let servers = json!({ "mcpServers": {
        "good": entry("full"), "better": entry("pages"), "sleeps": entry("hang"), "exits": entry("exit3"),
        "absent": { "command": "/nowhere/at/all" }, "usage": entry("plain-text"), "quits": entry("quits"),
    }});
    home.config_file("mcp.json", &servers.to_string());
    let output = home.coyote(&["mcp", "servers", "--json"]).any_stderr().ok();
    let states: Value = serde_json::from_str(&output.stdout).unwrap();
    let of = |name: &str| {
        states
            .as_array()
            .unwrap()
            .iter()
            .find(|it| it["name"] == name)
            .unwrap()
    };
    for name in ["good", "better"] {
        assert_eq!(of(name)["state"], "running");
    }
    for (name, reason) in [
        ("sleeps", "startup_timeout"),
        ("exits", "status 3"),
        ("absent", "/nowhere/at/all"),
        ("usage", "status 2"),
        ("quits", "status 4"),
    ] {
        assert_eq!(of(name)["state"], "failed");
        assert!(
            of(name)["reason"].as_str().unwrap().contains(reason),
            "{}",
            of(name)
        );
    }
    assert_eq!(of("exits")["stderr"], json!(["fatal: no database"]));
    assert_eq!(of("usage")["stderr"], json!(["usage: fake_mcp SCENARIO"]));
    let (provider, answers) = turn(
        &home,
        &[&[(
            "mcp_invoke_good",
            json!({ "tool": "echo", "arguments": { "text": "x" } }),
        )]],
    );
    assert!(answers[0].contains("text"), "{answers:?}");
    assert_eq!(functions(&provider).len(), 8, "{:?}", functions(&provider));
}

/// However often it is tried, a server that ends at once is said to have ended, and how.
#[test]
fn the_reason_of_a_server_that_exits_at_once_is_always_its_status() {
    let served = Served::new("quits", Wire::Stdio);
    for _ in 0..20 {
        let said = served.mcp(&["tools", "s"]).fails(1).stderr;
        assert!(said.contains("its process exited with status 4"), "{said}");
    }
}

/// Case 28: the call fails, the next one works, after one restart.
#[test]
fn a_server_that_dies_during_a_call_is_restarted_by_the_next() {
    let served = Served::new("full", Wire::Stdio);
    let (_, answers) = turn(
        &served.home,
        &[
            &[("mcp_invoke_s", json!({ "tool": "pid" }))],
            &[("mcp_invoke_s", json!({ "tool": "die" }))],
            &[("mcp_invoke_s", json!({ "tool": "pid" }))],
            &[("mcp_invoke_s", json!({ "tool": "die" }))],
            &[("mcp_invoke_s", json!({ "tool": "pid" }))],
        ],
    );
    for (at, failed) in [(0, false), (1, true), (2, false), (3, true), (4, true)] {
        assert_eq!(
            answers[at].contains("tool_call_error"),
            failed,
            "{at}: {}",
            answers[at]
        );
    }
    assert!(answers[1].contains("status 9"), "{}", answers[1]);
    assert!(
        answers[4].contains("second time within a minute"),
        "{}",
        answers[4]
    );
    assert_ne!(answers[0], answers[2], "another process");
    assert_eq!(served.pids().len(), 2);
}

/// Every level a server logs at arrives in the log under that level.
#[test]
fn what_a_server_logs_is_in_the_log_with_its_level() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        served
            .mcp(&["call", "s", "log"])
            .env("COYOTE_LOG_LEVEL", "debug")
            .ok();
        let log = std::fs::read_to_string(served.home.cache_dir().join("coyote.log")).unwrap();
        for (level, ours) in [
            ("debug", "DEBUG"),
            ("info", "INFO"),
            ("notice", "INFO"),
            ("warning", "WARN"),
            ("error", "ERROR"),
            ("emergency", "ERROR"),
        ] {
            let words = format!("a word of {level}");
            let line = log
                .lines()
                .find(|line| line.contains(&words))
                .unwrap_or_else(|| panic!("{level}: {log}"));
            assert!(line.contains(ours) && line.contains("server=s"), "{line}");
        }
        assert!(!log.contains("t0p-s3cret"), "{log}");
    }
}

/// `M-12`: what is expanded and what is not set.
#[test]
fn variables_expand_in_an_entry_and_one_that_is_not_set_costs_its_server() {
    let home = Home::new();
    let fake = crate::support::fake_mcp();
    let servers = json!({ "mcpServers": {
        "good": { "command": "${FAKE}", "args": ["${SCENARIO:-full}"], "env": { "WHO": "I am ${WHO}" } },
        "bad": { "command": fake, "args": ["${NOT_SET_ANYWHERE}"] },
    }});
    home.config_file("mcp.json", &servers.to_string());
    let fake = fake.display().to_string();
    let run = |args: &[&str]| {
        home.coyote(args)
            .env("FAKE", &fake)
            .env("WHO", "Ada")
            .env("OPENAI_API_KEY", "sk-x-123456")
    };
    let said = run(&["mcp", "call", "good", "env", "name=WHO"]).ok();
    assert_eq!(said.stdout.trim(), "I am Ada");
    let scrubbed = run(&["mcp", "call", "good", "env", "name=OPENAI_API_KEY"]).ok();
    assert_eq!(scrubbed.stdout.trim(), "(unset)");
    let said = run(&["mcp", "tools", "bad"]).fails(1).stderr;
    assert!(
        said.contains("NOT_SET_ANYWHERE") && said.contains("args"),
        "{said}"
    );
    assert!(
        count(
            &serde_json::from_str(&run(&["mcp", "tools", "--json"]).any_stderr().ok().stdout)
                .unwrap()
        ) > 0
    );
}

/// From the second read of a connection on, a read is one request (`M-55`).
#[test]
fn later_reads_cost_one_request() {
    for wire in BOTH {
        let served = Served::new("full", wire);
        let read = |uri: &str| ("mcp_read_s", json!({ "uri": uri }));
        turn(
            &served.home,
            &[
                &[read("doc://notes")],
                &[read("doc://private")],
                &[read("doc://notes")],
            ],
        );
        let methods = served.methods();
        let first = methods
            .iter()
            .position(|it| it == "resources/read")
            .unwrap();
        let later: Vec<&str> = methods[first + 1..]
            .iter()
            .map(String::as_str)
            .filter(|method| !method.contains("list"))
            .collect();
        assert_eq!(
            later,
            ["resources/read", "resources/read"],
            "{wire:?}: {methods:?}"
        );
        let lists = methods.iter().filter(|it| it.contains("list")).count();
        assert_eq!(lists, 2, "one walk of resources and templates: {methods:?}");
    }
}

/// Two processes that evict at once keep what they have just written, and leave alone what is not theirs (`M-65`).
#[cfg(unix)]
#[test]
fn two_processes_may_evict_at_once() {
    const OLD: u64 = 16 << 20;
    let served = Served::new("full", Wire::Stdio);
    let tree = served.home.cache_dir().join("mcp-resources");
    let old = tree.join("elsewhere");
    std::fs::create_dir_all(&old).unwrap();
    for n in 0..48u64 {
        // Sparse, and over the bound together.
        let file = std::fs::File::create(old.join(format!("{n:064x}.bin"))).unwrap();
        file.set_len(OLD).unwrap();
    }
    let foreign = old.join("keep.txt");
    std::fs::write(&foreign, "not ours").unwrap();
    std::os::unix::fs::symlink(&foreign, old.join(format!("{:064x}.txt", 99))).unwrap();
    let readers: Vec<_> = (1..=2)
        .map(|n| {
            let uri = format!("blob://size/{}", (1 << 20) + n);
            let mut child = served.mcp(&["read", "s", &uri, "--json"]).spawn();
            drop(child.stdin.take());
            child
        })
        .collect();
    for reader in readers {
        let output = crate::support::run::finish(reader);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        let shown: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(shown["spilled"], true, "{shown}");
        let path = shown["path"].as_str().unwrap();
        assert!(std::path::Path::new(path).is_file(), "{path} is kept");
    }
    let left = std::fs::read_dir(&old)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension() == Some("bin".as_ref()))
        .count();
    assert!(
        (1..=31).contains(&left),
        "{left} old files of {OLD} bytes are left"
    );
    assert_eq!(std::fs::read_to_string(&foreign).unwrap(), "not ours");
    assert!(old.join(format!("{:064x}.txt", 99)).is_symlink());
}

/// A URI is the server's business whatever its scheme (`M-52`): it is passed on, and never opened here.
#[test]
fn a_uri_of_any_scheme_is_only_ever_passed_to_the_server() {
    use std::io::ErrorKind;
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    web.set_nonblocking(true).unwrap();
    let served = Served::new("full", Wire::Stdio);
    served
        .home
        .work_file("local.txt", "what only this machine knows");
    let file = format!("file://{}/local.txt", served.home.work_dir().display());
    let http = format!("http://{}/page", web.local_addr().unwrap());
    for uri in [file.as_str(), http.as_str(), "data:text/plain,hello"] {
        let output = served.mcp(&["read", "s", uri]).any_stderr().output();
        let shown = output.stdout + &output.stderr;
        assert!(!shown.contains("what only this machine knows"), "{shown}");
        let asked = served.messages().iter().any(|message| {
            message["method"] == "resources/read" && message["params"]["uri"] == uri
        });
        assert!(asked, "{uri} reaches the server");
    }
    let called = web.accept().map_err(|error| error.kind());
    assert_eq!(
        called.unwrap_err(),
        ErrorKind::WouldBlock,
        "nobody fetched it"
    );
}

/// Case 25: exact to a pipe.
#[test]
fn a_pipe_gets_what_the_server_sent() {
    let served = Served::new("escapes", Wire::Stdio);
    let tools = served.json(&["tools"]);
    let evil = names(&tools)
        .into_iter()
        .find(|name| name.starts_with("evil"))
        .unwrap()
        .to_owned();
    assert!(
        evil.contains('\u{1b}') && evil.contains('\u{202e}'),
        "{evil:?}"
    );
}

#[cfg(unix)]
mod terminal {
    use super::*;
    use crate::support::provider::delta;
    use crate::support::pty::Pty;
    use crate::support::run;

    /// Whether nothing that acts on a terminal came from the server.
    fn assert_harmless(raw: &[u8], what: &str) {
        let text = String::from_utf8_lossy(raw);
        for bad in [
            "\u{1b}]0;",
            "\u{1b}]8;",
            "\u{1b}]52;",
            "\u{9b}",
            "\u{202e}",
            "\u{1b}[31m\u{1b}[2J",
        ] {
            assert!(!text.contains(bad), "{what}: {bad:?} in {text:?}");
        }
    }

    /// Case 25.
    #[test]
    fn nothing_a_server_says_acts_on_the_terminal() {
        for wire in BOTH {
            let served = Served::new("escapes", wire);
            for args in [
                &["mcp", "servers"][..],
                &["mcp", "tools"],
                &["mcp", "resources"],
                &["mcp", "prompts"],
                &["mcp", "search", "s", "evil"],
                &["mcp", "describe", "s", "greet", "--kind", "prompt"],
                &["mcp", "call", "s", "no-such-tool"],
                &["mcp", "read", "s", "no://such"],
            ] {
                let mut pty = Pty::spawn(&served.home, args, &[]);
                pty.exit_code();
                eventually("some output", || (!pty.raw().is_empty()).then_some(()));
                assert_harmless(&pty.raw(), &args.join(" "));
            }
        }
    }

    fn repl(served: &Served, script: Vec<Reply>, more: &str) -> (Provider, Pty) {
        let provider = Provider::new(script);
        let more =
            format!("left_prompt: 'READY> '\nright_prompt: ''\nenabled_mcp_servers: all\n{more}");
        served.home.provider(&provider.url(), &more);
        let pty = Pty::spawn(&served.home, &["-y"], &[]);
        pty.wait("READY>");
        (provider, pty)
    }

    fn leave(mut pty: Pty) {
        pty.wait_for("the prompt", |screen| screen.trim_end().ends_with("READY>"));
        pty.send("\x04");
        assert_eq!(pty.exit_code(), 0);
    }

    fn invoke(id: &str, tool: &str) -> Reply {
        chat_calls(&[(id, "mcp_invoke_s", json!({ "tool": tool }))])
    }

    /// Case 29: the server is told which call, and goes on.
    #[test]
    fn an_interrupted_call_is_cancelled_at_the_server_which_stays_usable() {
        for wire in ALL {
            let served = Served::new("full", wire);
            let script = vec![
                invoke("c1", "sleep"),
                invoke("c2", "cancelled"),
                chat_text("answered"),
            ];
            let (provider, pty) = repl(&served, script, "");
            pty.send("first\r");
            let call = eventually("the call arrives", || {
                let messages = served.messages();
                let call = messages.iter().find(|it| it["params"]["name"] == "sleep")?;
                Some(call["id"].clone())
            });
            pty.send("\x03");
            let cancelled = eventually("the server is told", || {
                let messages = served.messages();
                let note = messages
                    .iter()
                    .find(|it| it["method"] == "notifications/cancelled")?;
                Some(note["params"]["requestId"].clone())
            });
            assert_eq!(cancelled, call, "{wire:?}");
            pty.wait_for("the prompt", |screen| screen.trim_end().ends_with("READY>"));
            pty.send("second\r").wait("answered");
            let messages = provider.asked().last().unwrap().body["messages"].clone();
            let answer = messages.as_array().unwrap().last().unwrap()["content"].to_string();
            assert!(answer.contains(&call.to_string()), "{wire:?}: {answer}");
            assert_eq!(served.pids().len(), 1, "{wire:?}: no restart");
            leave(pty);
        }
    }

    /// Ctrl-C ends `coyote mcp call` and tells the server.
    #[test]
    fn an_interrupted_command_tells_the_server_too() {
        for wire in BOTH {
            let served = Served::new("full", wire);
            let mut child = served.mcp(&["call", "s", "sleep"]).spawn();
            drop(child.stdin.take());
            eventually("the call arrives", || {
                served
                    .messages()
                    .iter()
                    .any(|it| it["params"]["name"] == "sleep")
                    .then_some(())
            });
            run::signal(&child, nix::sys::signal::Signal::SIGINT);
            assert_eq!(run::finish(child).code, Some(130), "{wire:?}");
        }
    }

    /// Case 28, second half.
    #[test]
    fn a_server_killed_between_calls_is_restarted_by_the_next() {
        let served = Served::new("full", Wire::Stdio);
        let (open, shut) = crate::support::provider::gate();
        let mut pieces = vec![delta(&json!({ "content": "waiting now" })), shut];
        let Reply::Stream {
            pieces: calling, ..
        } = invoke("c2", "pid")
        else {
            unreachable!()
        };
        pieces.extend(calling);
        let held = Reply::Stream { pieces, cut: false };
        let (provider, pty) = repl(
            &served,
            vec![invoke("c1", "pid"), held, chat_text("answered")],
            "",
        );
        pty.send("go\r").wait("waiting");
        let first = i32::try_from(served.pids()[0]).unwrap();
        let pid = nix::unistd::Pid::from_raw(first);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
        open.send(()).unwrap();
        pty.wait("answered");
        let messages = provider.asked().last().unwrap().body["messages"].to_string();
        assert!(!messages.contains("tool_call_error"), "{messages}");
        assert_eq!(served.pids().len(), 2);
        leave(pty);
    }

    /// Changed lists: said once, and seen by the next listing.
    #[test]
    fn changed_lists_are_said_in_one_line_and_seen_by_the_next_listing() {
        for wire in BOTH {
            let served = Served::new("full", wire);
            let search = |id| chat_calls(&[(id, "mcp_search_s", json!({ "query": "tool_new_1" }))]);
            let script = vec![
                search("c1"),
                invoke("c2", "change"),
                search("c3"),
                chat_text("answered"),
            ];
            let (provider, pty) = repl(&served, script, "");
            pty.send("go\r").wait("answered");
            pty.wait("MCP server `s` changed its tools, resources, prompts");
            let asked = provider.asked();
            let messages = asked.last().unwrap().body["messages"].clone();
            let results: Vec<String> = messages
                .as_array()
                .unwrap()
                .iter()
                .filter(|it| it["role"] == "tool")
                .map(|it| it["content"].as_str().unwrap().to_owned())
                .collect();
            let has_it = |result: &String| result.contains("was not there before");
            assert_eq!(
                results.iter().map(has_it).collect::<Vec<_>>(),
                [false, false, true],
                "{results:?}"
            );
            assert_eq!(
                pty.screen().matches("changed its").count(),
                1,
                "{}",
                pty.screen()
            );
            leave(pty);
        }
    }

    /// `.mcp restart` starts another process and says so; what it says of others is a teaching error.
    #[test]
    fn a_server_is_restarted_on_demand() {
        let served = Served::new("full", Wire::Stdio);
        let (_provider, pty) = repl(&served, Vec::new(), "");
        eventually("the server runs", || {
            (served.pids().len() == 1).then_some(())
        });
        pty.send(".mcp restart s\r").wait("MCP server `s` runs");
        assert_eq!(served.pids().len(), 2);
        let first = served.pids()[0];
        eventually("the first is gone", || {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(first).unwrap());
            nix::sys::signal::kill(pid, None).err()
        });
        pty.send(".mcp restart nonsense\r").wait("nonsense");
        leave(pty);
        let left = served.pids()[1];
        let pid = nix::unistd::Pid::from_raw(i32::try_from(left).unwrap());
        eventually("nothing is left", || {
            nix::sys::signal::kill(pid, None).err()
        });
    }
}
