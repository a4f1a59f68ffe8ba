use serde_json::json;

use super::*;
use crate::function::testing::Bench;

#[tokio::test]
async fn cat_reads_pages_that_reassemble() {
    let mut bench = Bench::new();
    let text = "aé🦊".repeat(200);
    bench.write("f", &text);
    for max in [1, 2, 3, 5, 64] {
        let (mut offset, mut seen) = (0_u64, String::new());
        loop {
            let page = bench
                .ok(
                    "fs_cat",
                    json!({"path": "f", "offset": offset, "max_bytes": max}),
                )
                .await;
            seen.push_str(page.split("\n[bytes").next().unwrap());
            match page.split("next_offset: ").nth(1) {
                Some(next) => offset = next.trim_end_matches(']').parse().unwrap(),
                None => break,
            }
        }
        assert_eq!(seen, text, "pages of {max}");
    }
    assert_eq!(bench.ok("fs_cat", json!({"path": "f"})).await, text);
    let inside = bench
        .ok("fs_cat", json!({"path": "f", "offset": 2, "max_bytes": 5}))
        .await;
    assert!(
        inside.starts_with("🦊a"),
        "the start moves to the next character: {inside}"
    );
}

#[tokio::test]
async fn cat_of_odd_files_is_an_answer_or_an_error_that_says_why() {
    let mut bench = Bench::new();
    bench.write("empty", "");
    bench.write("binary", [0, 159, 146, 150]);
    bench.write("latin", [b'a', 0xe9, b'b']);
    bench.write("dir/x", "");
    assert_eq!(
        bench.ok("fs_cat", json!({"path": "empty"})).await,
        "[empty]"
    );
    let past = bench
        .ok("fs_cat", json!({"path": "latin", "offset": 99}))
        .await;
    assert_eq!(past, "[nothing at offset 99: there are 3 bytes]");
    let lossy = bench.ok("fs_cat", json!({"path": "latin"})).await;
    assert!(lossy.starts_with("a\u{FFFD}b\n[not valid UTF-8"), "{lossy}");
    for (path, expected) in [
        ("binary", "is not text (4 bytes)"),
        ("gone", "cannot read"),
        ("dir", "list it with fs_ls"),
        ("a\0b", "cannot read"),
    ] {
        let error = bench.error("fs_cat", json!({"path": path})).await;
        assert!(error.contains(expected), "{error}");
    }
    assert!(
        bench
            .error("fs_cat", json!({"path": ""}))
            .await
            .contains("must not be empty")
    );
    let far = bench
        .ok("fs_cat", json!({"path": "latin", "offset": u64::MAX >> 1}))
        .await;
    assert!(far.starts_with("[nothing at offset"), "{far}");
}

#[cfg(unix)]
#[tokio::test]
async fn devices_and_pipes_are_not_opened() {
    let mut bench = Bench::new();
    let error = bench.error("fs_cat", json!({"path": "/dev/zero"})).await;
    assert!(error.contains("not a regular file"), "{error}");
    let pipe = bench.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let error = bench.error("fs_cat", json!({"path": "pipe"})).await;
    assert!(error.contains("not a regular file"), "{error}");
    let found = bench.ok("fs_grep", json!({"pattern": "x"})).await;
    assert!(found.contains("no line of 0 files"), "{found}");
}

#[tokio::test]
async fn cat_reads_a_window_of_a_huge_sparse_file() {
    let mut bench = Bench::new();
    let file = std::fs::File::create(bench.path().join("huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    let error = bench
        .error("fs_cat", json!({"path": "huge", "offset": 1_u64 << 39}))
        .await;
    assert!(
        error.contains("is not text (1099511627776 bytes)"),
        "{error}"
    );
    let error = bench
        .error("fs_grep", json!({"pattern": "x", "path": "huge"}))
        .await;
    assert!(error.contains("over 50 MiB"), "{error}");
    let found = bench.ok("fs_grep", json!({"pattern": "x"})).await;
    assert!(found.contains("1 file left out: over 50 MiB"), "{found}");
}

#[tokio::test]
async fn ls_shows_kinds_sizes_and_links() {
    let mut bench = Bench::new();
    bench.write("b.txt", "12345");
    bench.write("a/x", "");
    #[cfg(unix)]
    std::os::unix::fs::symlink("b.txt", bench.path().join("c")).unwrap();
    let expected = if cfg!(unix) {
        "a/\nb.txt 5\nc -> b.txt"
    } else {
        "a/\nb.txt 5"
    };
    assert_eq!(bench.ok("fs_ls", json!({})).await, expected);
    assert_eq!(bench.ok("fs_ls", json!({"path": null})).await, expected);
    assert_eq!(bench.ok("fs_ls", json!({"path": "a"})).await, "x 0");
    assert!(
        bench
            .error("fs_ls", json!({"path": "gone"}))
            .await
            .contains("cannot list")
    );
}

#[tokio::test]
async fn ls_of_many_entries_is_bounded() {
    let mut bench = Bench::new();
    for at in 0..1_003 {
        bench.write(&format!("d/{at:05}"), "");
    }
    let listed = bench.ok("fs_ls", json!({"path": "d"})).await;
    assert_eq!(listed.lines().count(), 1_001);
    assert!(listed.ends_with("[3 more entries; narrow it down with fs_glob]"));
}

#[tokio::test]
async fn glob_finds_by_name_and_leaves_ignored_files_out() {
    let mut bench = Bench::new();
    for name in [
        "a.rs",
        "src/b.rs",
        "src/deep/c.rs",
        "src/b.txt",
        "target/d.rs",
        ".git/e.rs",
        ".hidden/f.rs",
    ] {
        bench.write(name, "");
    }
    bench.write(".gitignore", "target\n");
    let mut find = async |pattern: &str| bench.ok("fs_glob", json!({"pattern": pattern})).await;
    assert_eq!(
        find("*.rs").await,
        ".hidden/f.rs\na.rs\nsrc/b.rs\nsrc/deep/c.rs"
    );
    assert_eq!(find("src/*.rs").await, "src/b.rs");
    assert_eq!(find("./src/**/*.rs").await, "src/b.rs\nsrc/deep/c.rs");
    assert_eq!(find("*.{txt,md}").await, "src/b.txt");
    assert!(find("*.nothing").await.starts_with("[no file below"));
    let error = bench
        .error("fs_glob", json!({"pattern": "a[", "path": "src"}))
        .await;
    assert!(error.starts_with("`pattern` is not a glob"), "{error}");
    let error = bench
        .error("fs_glob", json!({"pattern": "*", "path": "a.rs"}))
        .await;
    assert!(error.contains("is not a directory"), "{error}");
}

#[tokio::test]
async fn grep_shows_numbers_context_and_files() {
    let mut bench = Bench::new();
    bench.write("a.txt", "1\r\n2\r\n3 ERROR\r\n4\r\n5\r\n6\r\n");
    bench.write("b.log", "ERROR");
    bench.write("c.bin", b"ERROR\0");
    let found = bench.ok("fs_grep", json!({"pattern": "ERROR"})).await;
    assert!(found.starts_with("a.txt:\n1-1"), "{found:?}");
    assert!(found.contains("3:3 ERROR") && found.contains("5-5") && !found.contains("6-6"));
    assert!(found.contains("b.log:\n1:ERROR"));
    assert!(!found.contains("c.bin"));
    let found = bench
        .ok("fs_grep", json!({"pattern": "(?i)error", "glob": "*.log"}))
        .await;
    assert!(found.starts_with("b.log:\n1:ERROR"), "{found:?}");
    let one = bench
        .ok("fs_grep", json!({"pattern": "ERROR", "path": "b.log"}))
        .await;
    assert!(one.contains("b.log:\n1:ERROR"), "{one}");
    let none = bench.ok("fs_grep", json!({"pattern": "absent"})).await;
    assert_eq!(none, "[no line of 2 files matches]");
    let error = bench.error("fs_grep", json!({"pattern": "["})).await;
    assert!(error.contains("at byte"), "{error}");
    let error = bench
        .error("fs_grep", json!({"pattern": "x", "path": "c.bin"}))
        .await;
    assert!(error.contains("is not text"), "{error}");
    bench
        .error("fs_grep", json!({"pattern": "x", "path": "gone"}))
        .await;
}

#[tokio::test]
async fn grep_is_bounded_and_cuts_between_characters() {
    let mut bench = Bench::new();
    for at in 0..10 {
        bench.write(
            &format!("{at}"),
            format!("{}\n", "🦊".repeat(1_000)).repeat(20),
        );
    }
    let found = bench.ok("fs_grep", json!({"pattern": "🦊"})).await;
    assert!(found.len() <= bounds::CEILING + 200, "{}", found.len());
    assert!(found.contains("stopped here") && !found.contains('\u{FFFD}'));
}

#[tokio::test]
async fn write_creates_replaces_and_refuses_what_is_no_file() {
    let mut bench = Bench::approving();
    let said = bench
        .ok("fs_write", json!({"path": "new/dir/f", "content": "é🦊"}))
        .await;
    assert!(
        said.starts_with("wrote") && said.ends_with("(6 bytes)"),
        "{said}"
    );
    let said = bench
        .ok("fs_write", json!({"path": "new/dir/f", "content": ""}))
        .await;
    assert!(said.starts_with("replaced"), "{said}");
    assert_eq!(bench.read("new/dir/f"), "");
    assert!(
        bench
            .error("fs_write", json!({"path": "new", "content": ""}))
            .await
            .contains("not a regular file")
    );
    assert!(
        bench
            .error("fs_write", json!({"path": "x"}))
            .await
            .contains("needs the argument `content`")
    );
    assert!(
        bench
            .error("fs_write", json!({"path": "new/dir/f/g", "content": ""}))
            .await
            .contains("cannot write")
    );
}

#[cfg(unix)]
#[tokio::test]
async fn write_keeps_modes_and_uses_usual_ones() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut bench = Bench::approving();
    bench.write("script", "#!/bin/sh\n");
    std::fs::set_permissions(
        bench.path().join("script"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    bench
        .ok("fs_write", json!({"path": "script", "content": "x"}))
        .await;
    let mode = |name: &str| {
        std::fs::metadata(bench.path().join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode("script"), 0o755);
}

#[tokio::test]
async fn mkdir_makes_parents_and_is_content_with_what_is_there() {
    let mut bench = Bench::approving();
    bench.ok("fs_mkdir", json!({"path": "a/b/c"})).await;
    assert!(bench.path().join("a/b/c").is_dir());
    assert!(
        bench
            .ok("fs_mkdir", json!({"path": "a/b/c"}))
            .await
            .contains("exists already")
    );
    bench.write("f", "");
    assert!(
        bench
            .error("fs_mkdir", json!({"path": "f"}))
            .await
            .contains("cannot make")
    );
}

#[tokio::test]
async fn rm_removes_one_thing_and_trees_only_when_told() {
    let mut bench = Bench::approving();
    bench.write("f", "");
    bench.write("d/x/y", "");
    bench.ok("fs_rm", json!({"path": "f"})).await;
    assert!(!bench.path().join("f").exists());
    let error = bench.error("fs_rm", json!({"path": "d"})).await;
    assert!(error.contains("`recursive`"), "{error}");
    bench
        .ok("fs_rm", json!({"path": "d", "recursive": true}))
        .await;
    assert!(!bench.path().join("d").exists());
    assert!(
        bench
            .error("fs_rm", json!({"path": "f"}))
            .await
            .contains("cannot remove")
    );
}

#[tokio::test]
async fn rm_never_takes_the_ground_away() {
    let mut bench = Bench::approving();
    bench.write("sub/x", "");
    let home = etcetera::home_dir().unwrap().display().to_string();
    for path in [".", "..", "sub/..", "/", "~", &home] {
        let error = bench
            .error("fs_rm", json!({"path": path, "recursive": true}))
            .await;
        assert!(error.contains("is not removed"), "{path}: {error}");
    }
    assert!(bench.path().join("sub/x").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn rm_of_a_link_leaves_its_target() {
    let mut bench = Bench::approving();
    bench.write("d/x", "kept");
    std::os::unix::fs::symlink("d", bench.path().join("link")).unwrap();
    bench
        .ok("fs_rm", json!({"path": "link", "recursive": true}))
        .await;
    assert_eq!(bench.read("d/x"), "kept");
    assert!(!bench.path().join("link").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn commands_report_output_and_failure() {
    let mut bench = Bench::approving();
    assert_eq!(
        bench
            .ok("execute_command", json!({"command": "echo hi"}))
            .await,
        "hi\n"
    );
    assert_eq!(
        bench
            .ok("execute_command", json!({"command": "true"}))
            .await,
        "[no output]"
    );
    let both = bench
        .ok(
            "execute_command",
            json!({"command": "printf out; echo err >&2"}),
        )
        .await;
    assert_eq!(both, "out\n[stderr]\nerr\n");
    let error = bench
        .error(
            "execute_command",
            json!({"command": "echo why >&2; exit 3"}),
        )
        .await;
    assert_eq!(error, "exit code 3\n[stderr]\nwhy\n");
    bench.write("sub/x", "");
    assert_eq!(
        bench
            .ok("execute_command", json!({"command": "ls", "cwd": "sub"}))
            .await,
        "x\n"
    );
    let error = bench
        .error(
            "execute_command",
            json!({"command": "sleep 1000", "timeout": 1}),
        )
        .await;
    assert_eq!(error, "killed after 1 seconds, no output");
    let error = bench
        .error("execute_command", json!({"command": "ls", "cwd": "gone"}))
        .await;
    assert!(error.contains("cannot start"), "{error}");
    let error = bench
        .error("execute_command", json!({"command": "a\0b"}))
        .await;
    assert!(error.contains("NUL"), "{error}");
}

#[tokio::test]
async fn time_is_local_or_utc() {
    let mut bench = Bench::new();
    let utc = bench.ok("get_current_time", json!({"utc": true})).await;
    assert!(utc.contains("+00:00 (") && utc.ends_with("day)"), "{utc}");
    bench.ok("get_current_time", json!({})).await;
    let error = bench
        .error("get_current_time", json!({"zone": "CET"}))
        .await;
    assert!(error.contains("no argument `zone`"), "{error}");
}

/// Answers every request with the same bytes.
fn serve(response: &'static [u8]) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(response);
        }
    });
    format!("http://{address}/page")
}

#[tokio::test]
async fn fetch_turns_html_into_text_and_leaves_text_alone() {
    let mut bench = Bench::new();
    let html = serve(b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\nconnection: close\r\n\r\n<h1>Hi</h1><p>a &amp; b");
    assert_eq!(
        bench.ok("fetch_url", json!({"url": html})).await,
        "# Hi\n\na & b\n"
    );
    let json = serve(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"a\": \"<p>\"}");
    assert_eq!(
        bench.ok("fetch_url", json!({"url": json})).await,
        "{\"a\": \"<p>\"}"
    );
    let latin = serve(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=ISO-8859-1\r\nconnection: close\r\n\r\ncaf\xe9");
    assert_eq!(bench.ok("fetch_url", json!({"url": latin})).await, "café");
    let page = bench
        .ok("fetch_url", json!({"url": json, "max_bytes": 4}))
        .await;
    assert!(
        page.starts_with("{\"a\"\n[bytes 0 to 4 of 12; next_offset: 4]"),
        "{page}"
    );
}

#[tokio::test]
async fn fetch_failures_say_what_happened() {
    let mut bench = Bench::new();
    let missing = serve(b"HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<h1>gone</h1>");
    let error = bench
        .error("fetch_url", json!({"url": format!("{missing}?key=s3cret")}))
        .await;
    assert!(
        error.contains("404 Not Found: # gone") && !error.contains("s3cret"),
        "{error}"
    );
    let binary = serve(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n\r\n\x89PNG\r\n\x1a\n\x00\xff");
    let error = bench.error("fetch_url", json!({"url": binary})).await;
    assert!(
        error.contains("is not text (image/png, 10 bytes)"),
        "{error}"
    );
    for url in ["file:///etc/passwd", "not a url", "ftp://x/y", "http://"] {
        let error = bench.error("fetch_url", json!({"url": url})).await;
        assert!(error.contains("is not an http or https URL"), "{error}");
    }
    let refused = bench
        .error("fetch_url", json!({"url": "http://127.0.0.1:1/"}))
        .await;
    assert!(refused.contains("cannot fetch"), "{refused}");
}

#[tokio::test]
async fn fetch_stops_reading_an_endless_body() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n");
        let chunk = vec![b'x'; 65_536];
        while stream.write_all(&chunk).is_ok() {}
    });
    let mut bench = Bench::new();
    let text = bench.ok("fetch_url", json!({"url": url})).await;
    assert!(text.contains("of 10485760") && text.ends_with("[only the first 10 MiB were fetched]"));
}

#[test]
fn paths_resolve_from_the_working_directory_and_home() {
    let home = etcetera::home_dir().unwrap();
    let cwd = Path::new("/work/dir");
    assert_eq!(resolve(cwd, "a/./b"), Path::new("/work/dir/a/b"));
    assert_eq!(resolve(cwd, "./"), Path::new("/work/dir"));
    assert_eq!(resolve(cwd, "/abs"), Path::new("/abs"));
    assert_eq!(resolve(cwd, "~"), home);
    assert_eq!(resolve(cwd, "~/x"), home.join("x"));
    assert_eq!(resolve(cwd, "~user"), Path::new("/work/dir/~user"));
    assert_eq!(resolve(cwd, "../x"), Path::new("/work/dir/../x"));
}

#[tokio::test]
async fn many_calls_at_once_all_get_their_answer() {
    let mut bench = Bench::new();
    bench.write("f", "x");
    let calls: Vec<_> = (0..100)
        .map(|at| ("fs_cat", json!({"path": "f", "max_bytes": at + 4})))
        .collect();
    let outputs = bench.batch(&calls).await;
    assert!(outputs.iter().all(|output| output.to_text() == "x"));
}
