//! Timings of what large content goes through: paging, filtering, decoding and storing, ranking.
//!
//! `cargo bench --bench content`. For the filter there is a yardstick: the same search with `rg -n -C2`, if it is
//! installed, on the same bytes in a file.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "a bench that cannot be set up has nothing to measure"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;

use coyote::mcp::catalog::{CatalogItem, CatalogKind};
use coyote::mcp::decode::catalog_item;
use coyote::mcp::rank::rank;
use coyote::mcp::render::{RenderedBlob, render_blob, render_text};
use coyote::mcp::{ServerName, SpillDir};
use coyote::utils::grep::Filter;

const MIB: usize = 1024 * 1024;

/// 50 MB of log lines, every hundredth an error.
fn log() -> String {
    let mut text = String::with_capacity(51 * MIB);
    let mut line = 0;
    while text.len() < 50 * MIB {
        line += 1;
        let level = if line % 100 == 0 { "ERROR" } else { "info" };
        let _ = writeln!(
            text,
            "2026-11-29T21:07:{:02} {level} worker-{} request {line} took {} ms",
            line % 60,
            line % 17,
            line % 997
        );
    }
    text
}

fn paging(criterion: &mut Criterion) {
    let text = log();
    let mut group = criterion.benchmark_group("render_text");
    group.bench_function("a page in the middle of 50 MB", |bencher| {
        bencher.iter(|| render_text(black_box(&text), None, None, 25_000_000, None));
    });
    group.finish();
}

fn filtering(criterion: &mut Criterion) {
    let text = log();
    let filter = Filter::new("ERROR").expect("a pattern");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("space");
    let mut group = criterion.benchmark_group("filter 50 MB");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(20);
    group.bench_function("one page", |bencher| {
        bencher.iter(|| render_text(black_box(&text), None, Some(&filter), 0, None));
    });
    group.bench_function("everything", |bencher| {
        bencher.iter(|| filter.apply(black_box(&text)));
    });
    let ripgrep = || {
        Command::new("rg")
            .args(["-n", "-C2", "ERROR"])
            .arg(file.path())
            .stdout(Stdio::piped())
            .output()
    };
    if ripgrep().is_ok() {
        group.bench_function("rg -n -C2", |bencher| bencher.iter(|| ripgrep().is_ok()));
    }
    group.finish();
}

fn spilling(criterion: &mut Criterion) {
    let bytes: Vec<u8> = (0..50 * MIB)
        .map(|index| u8::try_from((index * 31 + index / 7) % 251).unwrap_or(0) | 0x80)
        .collect();
    let b64 = BASE64_STANDARD.encode(&bytes);
    let lines = b64
        .as_bytes()
        .chunks(76)
        .map(|line| String::from_utf8_lossy(line))
        .collect::<Vec<_>>()
        .join("\r\n");
    let server = ServerName::new("bench").expect("a name");
    let home = tempfile::tempdir().expect("a directory");
    let spill = SpillDir::new(home.path());
    let mut group = criterion.benchmark_group("decode, hash and spill 50 MB");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sample_size(20);
    for (name, b64) in [("plain", &b64), ("in lines", &lines)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let rendered = render_blob(black_box(b64), Some("image/png"), &server, &spill);
                let Ok(RenderedBlob::Spilled(spilled)) = rendered else {
                    return;
                };
                // So that each run writes its file.
                let _ = std::fs::remove_file(spilled.path);
            });
        });
    }
    group.finish();
}

fn ranking(criterion: &mut Criterion) {
    let server = ServerName::new("bench").expect("a name");
    let verbs = ["create", "list", "update", "delete", "search", "merge"];
    let nouns = [
        "Issue",
        "PullRequest",
        "Repository",
        "Comment",
        "Label",
        "Branch",
        "Release",
    ];
    let items: Vec<CatalogItem> = (0..10_000)
        .map(|index| {
            let (verb, noun) = (verbs[index % verbs.len()], nouns[index % nouns.len()]);
            let raw = json!({
                "name": format!("{verb}{noun}_{index}"),
                "description": format!(
                    "{verb}s one {noun} of a repository by its number; needs write access to the project {index}"
                ),
                "inputSchema": {
                    "type": "object", "properties": { "owner": {}, "repo": {}, "issue_number": {} },
                },
            });
            catalog_item(CatalogKind::Tool, &server, raw)
        })
        .collect();
    criterion.bench_function("rank 10,000 items", |bencher| {
        bencher.iter(|| rank(black_box(&items), "create an issue comment", 8).len());
    });
}

criterion_group!(benches, paging, filtering, spilling, ranking);
criterion_main!(benches);
