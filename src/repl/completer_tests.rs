use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use reedline::Completer as _;

use super::*;

fn names(names: &[&str]) -> Vec<Candidate> {
    names.iter().map(|name| Candidate::new(*name)).collect()
}

fn snapshot() -> Snapshot {
    Snapshot {
        roles: vec![
            Candidate::described("reviewer", "reviews \x1b[31mcode\n"),
            Candidate::new("two words"),
            Candidate::new("evil\u{202e}name"),
        ],
        servers: names(&["everything", "local git", "memory"]),
        models: names(&["work:gpt-5-mini", "local:smol"]),
        settings: vec![
            (Candidate::new("highlight"), names(&["true", "false"])),
            (Candidate::new("model"), Vec::new()),
        ],
        ..Snapshot::default()
    }
}

fn completer(snapshot: Snapshot, runtime: Option<Handle>) -> (Completer, Arc<Shared>) {
    let shared = Arc::new(Shared::default());
    shared.begin(Arc::new(snapshot));
    (
        Completer::new(shared.clone(), runtime, Box::new(|| ())),
        shared,
    )
}

fn values(result: &CompletionResult) -> Vec<String> {
    result
        .suggestions()
        .iter()
        .map(|suggestion| suggestion.value.clone())
        .collect()
}

/// What is offered at the end of `line` without asking anybody.
fn offered(line: &str) -> Vec<String> {
    let (mut completer, shared) = completer(snapshot(), None);
    shared.pressed();
    values(&completer.complete(line, line.len()))
}

#[test]
fn commands_are_offered_with_what_they_do() {
    let (mut completer, shared) = completer(snapshot(), None);
    shared.pressed();
    let result = completer.complete(".hel", 4);
    let first = result.suggestions().first().unwrap();
    assert_eq!(first.value, ".help");
    assert!(
        first
            .description
            .as_deref()
            .is_some_and(|text| !text.is_empty())
    );
    assert_eq!((first.span.start, first.span.end), (0, 4));
    assert!(offered("hello").is_empty());
    assert!(offered("").is_empty());
    assert!(offered(".nonsense ").is_empty());
}

#[test]
fn a_command_that_makes_no_sense_now_is_not_offered() {
    assert!(!offered(".").contains(&".save".to_owned()));
    let mut with_session = snapshot();
    with_session.state.session = true;
    let (mut completer, _shared) = completer(with_session, None);
    assert!(values(&completer.complete(".", 1)).contains(&".save".to_owned()));
}

#[test]
fn arguments_come_from_the_snapshot_quoted_sanitised_and_honest() {
    assert_eq!(
        offered(".role "),
        ["reviewer", "'two words'"],
        "a name that sanitising changes is left out"
    );
    assert_eq!(offered(".role 'two w"), ["'two words'"]);
    assert_eq!(offered(".model smol"), ["local:smol"]);
    assert_eq!(offered(".set h"), ["highlight"]);
    assert_eq!(offered(".set highlight f"), ["false"]);
    assert_eq!(offered(".mcp enable memory 'loc"), ["'local git'"]);
    assert_eq!(
        offered(".mcp enable memory "),
        ["everything", "'local git'"]
    );
    let (mut completer, _shared) = completer(snapshot(), None);
    let result = completer.complete(".role rev", 9);
    let first = result.suggestions().first().unwrap();
    assert_eq!(first.description.as_deref(), Some("reviews code "));
    assert_eq!(first.match_indices, Some(vec![0, 1, 2]));
    assert_eq!((first.span.start, first.span.end), (6, 9));
}

#[test]
fn characters_of_any_width_never_panic() {
    for line in [
        ".é",
        ".ünïcode 日本",
        "日本",
        ".role é'",
        ".set 🇩🇪 \"",
        ".\u{301}",
        ". ",
    ] {
        let (mut completer, shared) = completer(snapshot(), None);
        shared.pressed();
        for pos in 0..=line.len() + 2 {
            let _ = completer.complete(line, pos);
        }
    }
}

/// A source that answers when it is told to.
#[derive(Default)]
struct Scripted {
    asked: AtomicUsize,
    answers: Mutex<Vec<oneshot::Receiver<Vec<Candidate>>>>,
}

impl Scripted {
    fn with(answers: Vec<oneshot::Receiver<Vec<Candidate>>>) -> Arc<Self> {
        Arc::new(Self {
            asked: AtomicUsize::new(0),
            answers: Mutex::new(answers),
        })
    }
}

impl LiveSource for Scripted {
    fn candidates(
        &self,
        _before: Vec<String>,
        _word: String,
    ) -> Pin<Box<dyn Future<Output = Vec<Candidate>> + Send>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let answer = self.answers.lock().remove(0);
        Box::pin(async move { answer.await.unwrap_or_default() })
    }
}

fn live(source: Arc<Scripted>, runtime: Option<Handle>) -> (Completer, Arc<Shared>) {
    let snapshot = Snapshot {
        files: Some(source),
        ..snapshot()
    };
    completer(snapshot, runtime)
}

fn poll_until_ready(completer: &mut Completer) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match completer.poll_completion() {
            CompletionStatus::Ready => return,
            CompletionStatus::Pending => std::thread::yield_now(),
            CompletionStatus::Idle => panic!("nothing is being asked"),
        }
        assert!(Instant::now() < deadline, "no answer");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_goes_on_while_a_source_is_asked_and_asks_once_per_press() {
    let (answer, receiver) = oneshot::channel();
    let source = Scripted::with(vec![receiver]);
    let (mut completer, shared) = live(source.clone(), Some(Handle::current()));
    shared.pressed();
    assert!(completer.complete(".file ", 6).is_pending());
    assert_eq!(completer.poll_completion(), CompletionStatus::Pending);
    // Keys typed meanwhile: the editor asks again with each, and is told again that nothing is there yet.
    assert!(completer.complete(".file a", 7).is_pending());
    assert!(completer.complete(".file al", 8).is_pending());
    answer.send(names(&["alpha", "beta", "almond"])).unwrap();
    poll_until_ready(&mut completer);
    assert_eq!(
        values(&completer.complete(".file al", 8)),
        ["alpha", "almond"]
    );
    assert_eq!(
        values(&completer.complete(".file b", 7)),
        ["beta"],
        "the listing in hand is filtered"
    );
    assert_eq!(completer.poll_completion(), CompletionStatus::Idle);
    assert_eq!(source.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_press_asks_anew_and_the_answer_to_an_earlier_one_is_dropped() {
    let (late, first) = oneshot::channel();
    let (answer, second) = oneshot::channel();
    let source = Scripted::with(vec![first, second]);
    let (mut completer, shared) = live(source.clone(), Some(Handle::current()));
    shared.pressed();
    assert!(completer.complete(".file ", 6).is_pending());
    shared.close();
    assert_eq!(
        completer.poll_completion(),
        CompletionStatus::Idle,
        "a closed menu waits for nothing"
    );
    shared.pressed();
    assert!(completer.complete(".file ", 6).is_pending());
    let _ = late.send(names(&["late"]));
    answer.send(names(&["current"])).unwrap();
    poll_until_ready(&mut completer);
    assert_eq!(values(&completer.complete(".file ", 6)), ["current"]);
    assert_eq!(source.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_for_another_argument_is_not_offered() {
    let (answer, receiver) = oneshot::channel();
    let source = Scripted::with(vec![receiver]);
    let (mut completer, shared) = live(source.clone(), Some(Handle::current()));
    shared.pressed();
    assert!(completer.complete(".file ", 6).is_pending());
    assert!(values(&completer.complete(".file a ", 8)).is_empty());
    answer.send(names(&["alpha"])).unwrap();
    poll_until_ready(&mut completer);
    assert!(values(&completer.complete(".file a ", 8)).is_empty());
    assert_eq!(
        source.asked.load(Ordering::SeqCst),
        1,
        "only a press of Tab asks"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_takes_too_long_offers_nothing() {
    let (_never, receiver) = oneshot::channel();
    let source = Scripted::with(vec![receiver]);
    let (mut completer, shared) = live(source, Some(Handle::current()));
    completer.limit = Duration::from_millis(1);
    shared.pressed();
    let _ = completer.complete(".file ", 6);
    let deadline = Instant::now() + Duration::from_secs(10);
    while completer.poll_completion() == CompletionStatus::Pending {
        assert!(Instant::now() < deadline, "still asking");
        std::thread::yield_now();
    }
    let result = completer.complete(".file ", 6);
    assert!(!result.is_pending() && result.suggestions().is_empty());
}

#[test]
fn without_a_runtime_nothing_is_offered() {
    let (_answer, receiver) = oneshot::channel();
    let (mut completer, shared) = live(Scripted::with(vec![receiver]), None);
    shared.pressed();
    let result = completer.complete(".file ", 6);
    assert!(!result.is_pending() && result.suggestions().is_empty());

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (_answer, receiver) = oneshot::channel();
    let (mut completer, shared) = live(
        Scripted::with(vec![receiver]),
        Some(runtime.handle().clone()),
    );
    drop(runtime);
    shared.pressed();
    let result = completer.complete(".file ", 6);
    assert!(!result.is_pending() && result.suggestions().is_empty());
}
