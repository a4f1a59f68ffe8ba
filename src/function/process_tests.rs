#![cfg(unix)]

use std::process::Command as Program;
use std::time::Instant;

use super::*;

fn job<'a>(line: &str, cwd: &'a Path) -> Job<'a> {
    let mut command = Program::new("sh");
    command.arg("-c").arg(line);
    Job {
        what: "the command".into(),
        command,
        cwd,
        scrub_env: &[],
        stdin: None,
        timeout: Duration::from_mins(1),
    }
}

async fn finished(line: &str) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    run(job(line, dir.path()), &AbortToken::new())
        .await
        .unwrap()
}

/// Whether a process with this id is still there and not a zombie.
fn is_alive(id: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        !state.starts_with('Z')
    })
}

async fn gone(id: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while is_alive(id) {
        assert!(Instant::now() < deadline, "process {id} survived");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn output_and_status_are_reported() {
    let done = finished("echo out; echo err >&2; exit 3").await;
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert_eq!(
        failure(done.status, Duration::ZERO),
        Some("exit code 3".into())
    );
    let done = finished("kill -9 $$").await;
    assert_eq!(
        failure(done.status, Duration::ZERO),
        Some("ended by signal 9".into())
    );
    assert_eq!(failure(finished("true").await.status, Duration::ZERO), None);
}

#[tokio::test]
async fn long_output_keeps_beginning_and_end() {
    let done = finished("printf start; head -c 3000000 /dev/zero | tr '\\0' x; printf end").await;
    assert!(done.stdout.starts_with("startxxx") && done.stdout.ends_with("xxxend"));
    assert!(done.stdout.contains("bytes left out"));
    assert!(done.stdout.len() < 2 * KEPT + 100);
}

#[test]
fn a_cut_between_emoji_bytes_leaves_whole_characters() {
    for shift in 0..4 {
        let mut capture = Capture::default();
        capture.push(&b"abc"[..shift.min(3)]);
        for _ in 0..60_000 {
            capture.push("🦊".as_bytes());
        }
        let text = capture.into_text();
        assert!(!text.contains('\u{FFFD}'), "shift {shift}");
        assert!(text.ends_with("🦊"));
    }
}

#[tokio::test]
async fn no_input_is_empty_and_input_arrives_whole() {
    assert_eq!(finished("cat").await.stdout, "");
    let dir = tempfile::tempdir().unwrap();
    let with_input = Job {
        stdin: Some(vec![b'x'; 300_000]),
        ..job("wc -c", dir.path())
    };
    let done = run(with_input, &AbortToken::new()).await.unwrap();
    assert_eq!(done.stdout.trim(), "300000");
    let ignored = Job {
        stdin: Some(vec![b'x'; 300_000]),
        ..job("exit 0", dir.path())
    };
    assert!(
        run(ignored, &AbortToken::new())
            .await
            .unwrap()
            .status
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn a_background_child_neither_delays_nor_survives() {
    let done = finished("sleep 1000 & echo $!").await;
    gone(done.stdout.trim()).await;
}

#[tokio::test]
async fn the_deadline_kills_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let late = Job {
        timeout: Duration::from_millis(300),
        ..job("sleep 1000 & echo $!; wait", dir.path())
    };
    let done = run(late, &AbortToken::new()).await.unwrap();
    assert!(done.status.is_none());
    assert!(
        failure(None, Duration::from_secs(5))
            .unwrap()
            .contains("5 seconds")
    );
    gone(done.stdout.trim()).await;
}

#[tokio::test]
async fn cancelling_kills_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let abort = AbortToken::new();
    let line = "sleep 1000 & echo $! > id.new; mv id.new id; wait";
    let waiting = async {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !dir.path().join("id").exists() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        abort.cancel();
    };
    let (result, ()) = tokio::join!(run(job(line, dir.path()), &abort), waiting);
    assert_eq!(result.unwrap_err(), FunctionError::Cancelled);
    gone(
        std::fs::read_to_string(dir.path().join("id"))
            .unwrap()
            .trim(),
    )
    .await;
}

#[tokio::test]
async fn named_variables_are_not_inherited() {
    let dir = tempfile::tempdir().unwrap();
    let scrub = ["SECRET_KEY".to_owned()];
    let mut scrubbed = job("echo \"[$SECRET_KEY]$OTHER\"", dir.path());
    scrubbed
        .command
        .env("SECRET_KEY", "s3cret")
        .env("OTHER", "kept");
    scrubbed.scrub_env = &scrub;
    let done = run(scrubbed, &AbortToken::new()).await.unwrap();
    assert_eq!(done.stdout, "[]kept\n");
}

#[tokio::test]
async fn what_cannot_start_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Job {
        command: Program::new("/nonexistent/program"),
        ..job("", dir.path())
    };
    let error = run(missing, &AbortToken::new())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("cannot start the command: "), "{error}");
}

#[test]
fn the_tail_of_a_text_is_whole_characters() {
    assert_eq!(tail("ab🦊🦊\n", 5), "🦊");
    assert_eq!(tail("short", 100), "short");
    assert_eq!(tail("", 3), "");
}
