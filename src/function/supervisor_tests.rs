use super::*;
use crate::function::testing::Bench;

/// Does what its prompt says: answer, fail, hang, break.
struct Runner;

impl DelegateRunner for Runner {
    fn available(&self) -> Vec<AgentSummary> {
        ["writer", "reader"]
            .map(|name| AgentSummary {
                name: name.to_owned(),
                description: format!("a {name}"),
            })
            .to_vec()
    }

    fn run(&self, job: Job) -> Pin<Box<dyn Future<Output = Result<Report, String>> + Send>> {
        Box::pin(async move {
            match job.prompt.as_str() {
                "fail" => Err("it did not work".to_owned()),
                "hang" => std::future::pending().await,
                "break" => panic!("broken on purpose"),
                "long" => Ok(Report {
                    text: "é".repeat(300_000),
                    notes: Vec::new(),
                }),
                words => Ok(Report {
                    text: format!("{} heard {words}", job.id),
                    notes: vec!["without `x`".to_owned()],
                }),
            }
        })
    }
}

fn bench(concurrent: usize) -> Bench {
    let mut bench = Bench::new();
    let mut functions = (*bench.env.functions).clone();
    functions.append_agent_functions(true);
    bench.env.functions = Arc::new(functions);
    let limits = DelegationLimits { concurrent };
    bench.env.supervisor = Some(Supervisor::new(Arc::new(Runner), limits, &bench.env.abort));
    bench
}

async fn json_of(bench: &mut Bench, name: &str, arguments: Value) -> Value {
    serde_json::from_str(&bench.ok(name, arguments).await).unwrap()
}

async fn spawn(bench: &mut Bench, prompt: &str) -> Value {
    json_of(
        bench,
        "agent__spawn",
        json!({ "agent": "writer", "prompt": prompt }),
    )
    .await
}

#[tokio::test]
async fn an_answer_is_collected_again_and_again() {
    let mut bench = bench(4);
    assert_eq!(
        spawn(&mut bench, "hello").await,
        json!({ "id": "writer-1", "agent": "writer", "status": "running" })
    );
    let done = json!({
        "id": "writer-1", "agent": "writer", "status": "done",
        "result": "writer-1 heard hello", "notes": ["without `x`"],
    });
    for _ in 0..4 {
        let collected = json_of(&mut bench, "agent__collect", json!({ "id": "writer-1" })).await;
        assert_eq!(collected, done);
    }
    let checked = json_of(&mut bench, "agent__check", json!({ "id": "writer-1" })).await;
    assert_eq!(checked, done);
    assert_eq!(
        json_of(&mut bench, "agent__list_running", json!({})).await,
        json!([])
    );
    assert_eq!(
        json_of(&mut bench, "agent__list_available", json!({})).await[1],
        json!({ "agent": "reader", "description": "a reader" })
    );
}

#[tokio::test]
async fn failures_are_told_and_break_nothing() {
    let mut bench = bench(4);
    spawn(&mut bench, "fail").await;
    spawn(&mut bench, "break").await;
    let collected = json_of(&mut bench, "agent__collect", json!({ "id": "writer-1" })).await;
    assert_eq!(
        (&collected["status"], &collected["error"]),
        (&json!("failed"), &json!("it did not work"))
    );
    let collected = json_of(&mut bench, "agent__collect", json!({ "id": "writer-2" })).await;
    assert_eq!(collected["error"], "it ended without an answer");
}

#[tokio::test]
async fn more_than_may_run_wait_for_a_place() {
    let mut bench = bench(1);
    assert_eq!(spawn(&mut bench, "hang").await["status"], "running");
    tokio::task::yield_now().await;
    assert_eq!(spawn(&mut bench, "second").await["status"], "queued");
    let running = json_of(&mut bench, "agent__list_running", json!({})).await;
    assert_eq!(
        running[1],
        json!({ "id": "writer-2", "agent": "writer", "status": "queued" })
    );
    // One batch: the second is waited for while the first makes room.
    let outputs = bench
        .batch(&[
            ("agent__collect", json!({ "id": "writer-2" })),
            ("agent__cancel", json!({ "id": "writer-1" })),
        ])
        .await;
    assert!(
        outputs[0].to_text().contains("writer-2 heard second"),
        "{}",
        outputs[0].to_text()
    );
    assert!(
        outputs[1].to_text().contains("\"cancelled\""),
        "{}",
        outputs[1].to_text()
    );
}

#[tokio::test]
async fn a_long_answer_is_cut_at_a_character() {
    let mut bench = bench(4);
    spawn(&mut bench, "long").await;
    let collected = json_of(&mut bench, "agent__collect", json!({ "id": "writer-1" })).await;
    assert_eq!(collected["result"].as_str().unwrap().len(), 204_800);
    assert_eq!(
        (&collected["truncated"], &collected["total_bytes"]),
        (&json!(true), &json!(600_000))
    );
}

#[tokio::test]
async fn wrong_names_are_taught_with_the_nearest() {
    let mut bench = bench(4);
    let error = bench
        .error("agent__spawn", json!({ "agent": "writr", "prompt": "x" }))
        .await;
    assert!(error.contains("did you mean `writer`?"), "{error}");
    let error = bench
        .error("agent__collect", json!({ "id": "nobody" }))
        .await;
    assert!(error.contains("none was started"), "{error}");
    let error = bench
        .error("agent__spawn", json!({ "agent": "writer" }))
        .await;
    assert!(error.contains("`prompt`"), "{error}");
}

#[tokio::test]
async fn they_are_only_there_for_agents_that_may() {
    let mut bench = Bench::new();
    for name in ["agent__spawn", "user__input"] {
        let error = bench.error(name, json!({ "message": "x" })).await;
        assert!(error.contains("no function"), "{error}");
    }
    let mut functions = (*bench.env.functions).clone();
    functions.append_agent_functions(false);
    let tools = functions.pool();
    assert!(functions.declaration("user__select").is_some());
    assert!(functions.declaration("agent__spawn").is_none());
    assert!(!tools.iter().any(|name| name.contains("__")), "{tools:?}");
}

#[tokio::test]
async fn ending_and_dropping_end_them_all() {
    let mut bench = bench(4);
    spawn(&mut bench, "hang").await;
    spawn(&mut bench, "hello").await;
    bench
        .ok("agent__collect", json!({ "id": "writer-2" }))
        .await;
    let supervisor = bench.env.supervisor.take().unwrap();
    assert_eq!(supervisor.end().await, ["writer-1"]);
    assert!(supervisor.spawn("writer", "late").is_err());

    let dropped = Supervisor::new(
        Arc::new(Runner),
        DelegationLimits { concurrent: 1 },
        &AbortToken::new(),
    );
    dropped.spawn("writer", "hang").unwrap();
    let (mut state, ..) = dropped.find("writer-1").unwrap();
    drop(dropped);
    while state.changed().await.is_ok() {} // until its task is gone
}

#[tokio::test]
async fn questions_of_every_kind_reach_the_person() {
    use crate::chat::{Answer, Question};
    let mut bench = Bench::answering([
        Answer::Choices(vec![1]),
        Answer::Choices(vec![0, 2]),
        Answer::Yes,
        Answer::Text("words".into()),
        Answer::Cancelled,
    ]);
    let mut functions = (*bench.env.functions).clone();
    functions.append_agent_functions(false);
    bench.env.functions = Arc::new(functions);
    let options = json!(["a", "b", "c"]);
    let asked = [
        (
            "user__select",
            json!({ "message": "m", "options": options }),
            json!("b"),
        ),
        (
            "user__checkbox",
            json!({ "message": "m", "options": options }),
            json!(["a", "c"]),
        ),
        ("user__confirm", json!({ "message": "m" }), json!(true)),
        (
            "user__input",
            json!({ "message": "m", "default": "d" }),
            json!("words"),
        ),
        ("user__input", json!({ "message": "m" }), json!(null)),
    ];
    for (name, arguments, answer) in asked {
        assert_eq!(
            json_of(&mut bench, name, arguments).await["answer"],
            answer,
            "{name}"
        );
    }
    let error = bench
        .error("user__confirm", json!({ "message": "m" }))
        .await;
    assert!(error.contains("no terminal"), "{error}");
    let error = bench
        .error("user__select", json!({ "message": "m", "options": [] }))
        .await;
    assert!(error.contains("`options`"), "{error}");
    assert_eq!(
        bench.ask.asked.lock()[3],
        Question::Text {
            message: "m".into(),
            default: Some("d".into())
        }
    );
}
