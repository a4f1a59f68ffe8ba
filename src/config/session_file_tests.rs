//! Tests of the module beside.

use proptest::prelude::*;

use super::*;

const SAMPLE: &str = include_str!("../../tests/data/home/sessions/bugfix.yaml");

fn file() -> &'static Path {
    Path::new("/c/sessions/s.yaml")
}

fn load(text: &str) -> Stored {
    read(text, file()).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn call(id: &str, name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: CallId(id.to_owned()),
        name: name.to_owned(),
        arguments: Arguments::Object(object(arguments)),
    }
}

#[test]
fn the_sample_means_what_it_says() {
    let stored = load(SAMPLE);
    assert_eq!(stored.settings.model.as_deref(), Some("local:smol"));
    assert_eq!(stored.settings.temperature, Some(0.1));
    assert_eq!(
        stored
            .settings
            .enabled_mcp_servers
            .as_ref()
            .unwrap()
            .to_string(),
        "docs"
    );
    assert_eq!(stored.settings.enabled_tools, None);
    assert_eq!(stored.save_session, Some(true));
    assert_eq!(stored.role_name.as_deref(), Some("reviewer"));
    assert!(stored.extra.is_empty());
    let [asked, calls, results, answer, picture, last] = stored.messages.as_slice() else {
        panic!("{:#?}", stored.messages)
    };
    assert_eq!(
        *asked,
        Message::user("What does the guide say about retries?")
    );
    let wanted = vec![
        call("call_1", "mcp_search_docs", &json!({"query": "retries"})),
        call(
            "call_2",
            "mcp_read_docs",
            &json!({"uri": "docs://guide", "pattern": "retry"}),
        ),
    ];
    assert_eq!(
        *calls,
        Message::Assistant {
            text: String::new(),
            calls: wanted.clone(),
            state: None
        }
    );
    let Message::Tool(results) = results else {
        panic!()
    };
    assert_eq!(
        results.iter().map(|r| r.call.clone()).collect::<Vec<_>>(),
        wanted
    );
    assert_eq!(results[0].output.value[0]["uri"], "docs://guide");
    assert_eq!(results[1].output.value["text"], "3:retry twice\n");
    assert_eq!(results[1].output.value["next_offset"], Value::Null);
    assert_eq!(*answer, Message::assistant("It says to retry twice."));
    let Message::User(parts) = picture else {
        panic!()
    };
    assert_eq!(parts[0], Part::Text("And this picture?".to_owned()));
    let Part::Image(Image {
        mime_type,
        source: ImageSource::Bytes(bytes),
    }) = &parts[1]
    else {
        panic!()
    };
    assert_eq!(mime_type, "image/png");
    assert_eq!(crate::config::image_type(bytes), Some("image/png"));
    assert_eq!(*last, Message::assistant("One pixel."));
}

#[test]
fn the_sample_round_trips() {
    let stored = load(SAMPLE);
    let text = write(&stored).unwrap();
    let again = load(&text);
    assert_eq!(again.messages, stored.messages);
    assert_eq!(again.settings, stored.settings);
    assert_eq!(
        (again.save_session, again.role_name),
        (stored.save_session, stored.role_name)
    );
    assert!(
        text.contains("role: tool")
            && text.contains("sequence: false")
            && text.contains("tool_results:"),
        "{text}"
    );
}

#[test]
fn merged_rounds_of_older_files_are_taken_apart() {
    let text = SAMPLE
        .replace("sequence: false", "sequence: true")
        .replace("text: ''", "text: Looking.");
    let stored = load(&text);
    let shape: Vec<String> = stored
        .messages
        .iter()
        .map(|message| match message {
            Message::User(_) => "user".to_owned(),
            Message::Assistant { text, calls, .. } => format!("{}({text})", calls.len()),
            Message::Tool(results) => format!("tool{}", results.len()),
        })
        .collect();
    assert_eq!(
        shape.get(..6).unwrap(),
        [
            "user",
            "1(Looking.)",
            "tool1",
            "1()",
            "tool1",
            "0(It says to retry twice.)"
        ]
    );
}

#[test]
fn calls_without_an_id_get_one_each() {
    let text = SAMPLE
        .replace(", id: call_1", "")
        .replace(", id: call_2", ", id: null");
    let stored = load(&text);
    let Message::Tool(results) = &stored.messages[2] else {
        panic!()
    };
    assert_ne!(results[0].call.id, results[1].call.id);
    assert!(!results[0].call.id.0.is_empty());
}

#[test]
fn a_system_message_in_front_is_the_system_prompt() {
    let stored =
        load("messages:\n- role: system\n  content: Be brief.\n- role: user\n  content: hi\n");
    assert_eq!(stored.system.as_deref(), Some("Be brief."));
    assert_eq!(stored.messages, [Message::user("hi")]);
    assert_eq!(
        load(&write(&stored).unwrap()).system.as_deref(),
        Some("Be brief.")
    );
}

#[test]
fn keys_that_are_not_ours_are_kept() {
    let text = "model: a:b\ncompress_threshold: 4000\ndata_urls: {abc: /tmp/ü.png}\ncompressed_messages: []\nmessages: []\n";
    let again = load(&write(&load(text)).unwrap());
    assert_eq!(
        Value::Object(again.extra),
        json!({
            "compress_threshold": 4000, "data_urls": {"abc": "/tmp/ü.png"}, "compressed_messages": [],
        })
    );
}

#[test]
fn plain_scalars_are_text() {
    for (yaml, text) in [
        ("42", "42"),
        ("true", "true"),
        ("~", ""),
        ("'no'", "no"),
        ("\"a\\nb\"", "a\nb"),
        ("|\n    a\n    b", "a\nb\n"),
    ] {
        let stored = load(&format!("messages:\n- role: user\n  content: {yaml}\n"));
        assert_eq!(stored.messages, [Message::user(text)], "{yaml}");
    }
}

#[test]
fn empty_files_are_empty_sessions() {
    for text in ["", "\n", "messages: []\n", "messages:\n", "model: a:b\n"] {
        assert!(load(text).messages.is_empty());
    }
}

#[test]
fn damage_is_an_error_with_its_place() {
    for (text, place) in [
        ("messages: 5\n", ":1:11"),
        ("messages:\n- role: user\n", ":2"),
        ("temperature: warm\n", ":1:14"),
        ("messages:\n- {role: wizard, content: x}\n", "message 1"),
        (
            "messages:\n- {role: user, content: x}\n- {role: user, content: [{type: video}]}\n",
            "message 2",
        ),
        (
            "messages:\n- {role: user, content: [{type: image_url, image_url: {url: 'data:image/png;base64,@'}}]}\n",
            "damaged",
        ),
        ("messages:\n- {role: tool, content: x}\n", "message 1"),
    ] {
        let error = format!("{:?}", read(text, file()).err().unwrap());
        assert!(
            error.contains("s.yaml") && error.contains(place),
            "{text}\n{error}"
        );
    }
}

#[test]
fn images_refer_to_files_and_urls_by_their_place() {
    let image = |source| {
        Part::Image(Image {
            mime_type: "image/webp".to_owned(),
            source,
        })
    };
    let messages = vec![Message::User(vec![
        image(ImageSource::File(PathBuf::from("/cache/ü/x.webp"))),
        image(ImageSource::Url("https://x/y.bin".to_owned())),
        image(ImageSource::Bytes(Arc::from(&b"RIFF...."[..]))),
    ])];
    let text = write(&Stored {
        messages: messages.clone(),
        ..Stored::default()
    })
    .unwrap();
    assert!(text.contains("/cache/ü/x.webp"));
    assert_eq!(load(&text).messages, messages);
}

#[test]
fn a_large_session_loads() {
    // More nodes than a hand-written file may have.
    let mut result = ToolResult {
        call: call("c", "f", &json!({})),
        output: ToolOutput::ok(Value::Null),
    };
    result.output.value = Value::from(vec![1; 260_000]);
    let messages = vec![
        Message::user("x"),
        Message::Assistant {
            text: String::new(),
            calls: vec![result.call.clone()],
            state: None,
        },
        Message::Tool(vec![result]),
    ];
    let text = write(&Stored {
        messages: messages.clone(),
        ..Stored::default()
    })
    .unwrap();
    assert_eq!(load(&text).messages.len(), messages.len());
}

#[test]
fn deep_results_load() {
    let mut value = json!("innermost");
    for _ in 0..120 {
        value = json!([value]);
    }
    let result = ToolResult {
        call: call("c", "f", &json!({})),
        output: ToolOutput::ok(value),
    };
    let messages = vec![
        Message::user("x"),
        Message::Assistant {
            text: String::new(),
            calls: vec![result.call.clone()],
            state: None,
        },
        Message::Tool(vec![result]),
    ];
    let text = write(&Stored {
        messages: messages.clone(),
        ..Stored::default()
    })
    .unwrap();
    assert_eq!(load(&text).messages, messages);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "(?s).{0,40}",
        "\\PC{0,200}",
        "[ \t\r\n]{0,6}[a-z:#'\"|>&*!%@`{}\\[\\],?-]{0,8}[ \t\r\n]{0,6}",
        "([a-zü ]{0,100}\n){0,4}",
        prop_oneof![
            Just("no"),
            Just("~"),
            Just("null"),
            Just("1e3"),
            Just("0x1f"),
            Just("---"),
            Just("..."),
            Just("- a"),
            Just("a: b"),
            Just("\u{85}"),
            Just("\u{2028}x"),
            Just("\u{feff}"),
            Just("\0"),
            Just("\u{1b}[0m"),
            Just("2026-11-29"),
            Just("<<"),
            Just("="),
            Just("1_000"),
            Just(".inf"),
            Just("-.5"),
            Just("0o7"),
            Just("12:30:45")
        ]
        .prop_map(str::to_owned),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| Value::from(f64::from(n))),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((any_text(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn any_image() -> impl Strategy<Value = Image> {
    let source = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..64)
            .prop_map(|bytes| ImageSource::Bytes(Arc::from(bytes))),
        "/[a-zü ]{1,9}\\.png".prop_map(|path| ImageSource::File(PathBuf::from(path))),
        "https://x/[a-z?=&]{0,9}".prop_map(ImageSource::Url),
    ];
    let kind = prop_oneof![
        Just("image/png"),
        Just("image/jpeg"),
        Just("image/gif"),
        Just("image/webp")
    ];
    (kind, source).prop_map(|(mime_type, source)| Image {
        mime_type: mime_type.to_owned(),
        source,
    })
}

fn any_state() -> impl Strategy<Value = Option<ProviderState>> {
    proptest::option::of((any_text(), any_text(), any_json()).prop_map(
        |(provider, model, data)| ProviderState {
            provider,
            model,
            data,
        },
    ))
}

fn any_round() -> impl Strategy<Value = Vec<Message>> {
    let arguments = prop_oneof![
        any_json().prop_map(|value| match value {
            Value::Object(map) => Arguments::Object(map),
            _ => Arguments::Object(Map::new()),
        }),
        any_text().prop_map(|text| Arguments::parse(&text)),
    ];
    let result = (
        any_text(),
        "[a-z_]{1,9}",
        arguments,
        any_json(),
        any::<bool>(),
        proptest::collection::vec(any_image(), 0..2),
    )
        .prop_map(
            |(id, name, arguments, value, is_error, images)| ToolResult {
                call: ToolCall {
                    id: CallId(format!("c{id}")),
                    name,
                    arguments,
                },
                output: ToolOutput {
                    value,
                    is_error,
                    images,
                },
            },
        );
    (
        any_text(),
        any_state(),
        proptest::collection::vec(result, 1..4),
    )
        .prop_map(|(text, state, results)| {
            vec![
                Message::Assistant {
                    text,
                    calls: results.iter().map(|r| r.call.clone()).collect(),
                    state,
                },
                Message::Tool(results),
            ]
        })
}

fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let part = prop_oneof![
        any_text().prop_map(Part::Text),
        any_image().prop_map(Part::Image)
    ];
    let user = proptest::collection::vec(part, 0..4).prop_map(|parts| vec![Message::User(parts)]);
    let answer = (any_text(), any_state()).prop_map(|(text, state)| {
        vec![Message::Assistant {
            text,
            calls: Vec::new(),
            state,
        }]
    });
    proptest::collection::vec(prop_oneof![user, answer, any_round()], 0..6)
        .prop_map(|groups| groups.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn messages_read_back_as_they_were_written(messages in any_messages(), system in proptest::option::of(any_text())) {
        let text = write(&Stored { messages: messages.clone(), system: system.clone(), ..Stored::default() }).unwrap();
        let back = read(&text, file()).map_err(|error| TestCaseError::fail(format!("{error:?}\n{text}")))?;
        prop_assert_eq!(&back.messages, &messages, "{}", text);
        prop_assert_eq!(back.system, system);
    }

    #[test]
    fn no_file_panics(text in "(?s).{0,200}") {
        let _ = read(&text, file());
    }
}
