use serde_json::json;

use super::*;

fn known() -> Value {
    let any = json!({});
    json!({"properties": {"path": any, "offset": any, "arguments": any, "recursive": any, "max_bytes": any}})
}

fn arguments(value: Value) -> Arguments {
    match value {
        Value::Object(map) => Arguments::Object(map),
        other => Arguments::Malformed(other.to_string()),
    }
}

#[test]
fn null_is_absent() {
    let passed =
        arguments(json!({"path": null, "offset": null, "arguments": null, "recursive": null}));
    let args = Args::new("f", &passed, &known()).unwrap();
    assert_eq!(args.text("path").unwrap(), None);
    assert_eq!(args.unsigned("offset").unwrap(), None);
    assert!(args.object("arguments").unwrap().is_none());
    assert!(!args.flag("recursive").unwrap());
    let error = args.required_text("path").unwrap_err().to_string();
    assert_eq!(error, "`f` needs the argument `path`");
}

#[test]
fn wrong_types_say_what_was_wanted_and_what_came() {
    let passed = arguments(json!({"path": 3, "offset": "10", "arguments": [], "recursive": "yes"}));
    let args = Args::new("f", &passed, &known()).unwrap();
    let texts = [
        args.text("path").unwrap_err().to_string(),
        args.unsigned("offset").unwrap_err().to_string(),
        args.object("arguments").unwrap_err().to_string(),
        args.flag("recursive").unwrap_err().to_string(),
    ];
    assert_eq!(
        texts,
        [
            "`path` must be a string, got the number 3",
            "`offset` must be an integer, got the string \"10\"",
            "`arguments` must be an object, got the array []",
            "`recursive` must be true or false, got the string \"yes\"",
        ]
    );
}

#[test]
fn integers_are_whole_and_not_negative() {
    let ok = |value: Value| {
        let passed = arguments(json!({ "offset": value }));
        let args = Args::new("f", &passed, &known()).unwrap();
        args.unsigned("offset").map_err(|error| error.to_string())
    };
    assert_eq!(ok(json!(7)), Ok(Some(7)));
    assert_eq!(ok(json!(10.0)), Ok(Some(10)));
    assert_eq!(ok(json!(u64::MAX)), Ok(Some(u64::MAX)));
    assert_eq!(
        ok(json!(-1)).unwrap_err(),
        "`offset` must be an integer of at least 0, got the number -1"
    );
    assert!(ok(json!(1.5)).unwrap_err().contains("got the number 1.5"));
    assert!(ok(json!(1e300)).is_err());
}

#[test]
fn unknown_keys_name_the_nearest() {
    let passed = arguments(json!({"maxbytes": 1}));
    let error = Args::new("f", &passed, &known()).unwrap_err().to_string();
    assert!(
        error.starts_with("`f` has no argument `maxbytes`; did you mean `max_bytes`?"),
        "{error}"
    );
    let error = Args::new("f", &passed, &json!({})).unwrap_err().to_string();
    assert_eq!(error, "`f` takes no arguments, got `maxbytes`");
}

#[test]
fn malformed_arguments_are_quoted_and_bounded() {
    let long = format!("[\"{}\"", "é".repeat(5000));
    let passed = Arguments::parse(&long);
    let error = Args::new("f", &passed, &known()).unwrap_err().to_string();
    assert!(error.contains("`[\"éé"), "{error}");
    assert!(error.len() < 500);
}
