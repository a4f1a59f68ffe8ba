use proptest::prelude::*;
use serde_json::json;

use super::*;

fn expand(template: &str, arguments: Value) -> Result<String, TemplateError> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    Template::parse(template)?.expand(&arguments)
}

fn refusal(template: &str, arguments: Value) -> String {
    expand(template, arguments).unwrap_err().to_string()
}

#[test]
fn values_are_percent_encoded() {
    let rows = [
        ("a/b", "x://e/a%2Fb"),
        ("!*'()", "x://e/%21%2A%27%28%29"),
        ("é", "x://e/%C3%A9"),
        ("a-b.c_d~e", "x://e/a-b.c_d~e"),
        ("%41", "x://e/%2541"),
        ("", "x://e/"),
        ("a b", "x://e/a%20b"),
    ];
    for (value, uri) in rows {
        assert_eq!(expand("x://e/{t}", json!({ "t": value })).unwrap(), uri);
    }
    assert_eq!(
        expand("x://{n}/{b}", json!({"n": 1.5, "b": true})).unwrap(),
        "x://1.5/true"
    );
    assert_eq!(expand("x://{t}/{t}", json!({"t": "a"})).unwrap(), "x://a/a");
}

#[test]
fn literals_keep_what_a_uri_may_hold() {
    let uri = expand("x://ü b/%41%zz?[a]='1'&b#{t}", json!({"t": "1"})).unwrap();
    assert_eq!(uri, "x://%C3%BC%20b/%41%25zz?[a]='1'&b#1");
}

#[test]
fn everything_beyond_level_1_is_refused_by_name() {
    let rows = [
        ("x://{?q}", "`{?q}` uses the operator `?`"),
        ("x://{+q}", "`{+q}` uses the operator `+`"),
        ("x://{#q}", "`{#q}` uses the operator `#`"),
        ("x://{/q}", "`{/q}` uses the operator `/`"),
        ("x://{=q}", "`{=q}` uses the operator `=`"),
        ("x://{q,b}", "`{q,b}` lists several variables"),
        ("x://{q:3}", "`{q:3}` asks for a prefix"),
        ("x://{q*}", "`{q*}` asks for an exploded list"),
        ("x://{q", "`{q` of the URI template is not closed"),
        ("x://q}", "stray brace at `x://q}`"),
        ("x://{a{q}}", "stray brace"),
        ("x://{}", "`{}` is not a variable"),
        ("x://{q q}", "`{q q}` is not a variable"),
        ("x://{q.}", "`{q.}` is not a variable"),
        ("x://{q..r}", "`{q..r}` is not a variable"),
        ("x://{%2x}", "`{%2x}` is not a variable"),
        ("x://{q:01}", "`{q:01}` is not a variable"),
        ("x://{q:99999}", "`{q:99999}` is not a variable"),
    ];
    for (template, message) in rows {
        let error = refusal(template, json!({"q": "1", "b": "2"}));
        assert!(error.contains(message), "{template}: {error}");
    }
}

#[test]
fn missing_and_unused_arguments_are_named() {
    assert!(refusal("x://{t}/{u}", json!({"u": "1"})).contains("a value for `t`"));
    assert!(refusal("x://{t}", json!({"t": null})).contains("a value for `t`"));
    let error = refusal("x://{t}", json!({"t": "1", "nope": "2"}));
    assert!(
        error.contains("does not use `nope`; its variables are `t`"),
        "{error}"
    );
    let error = refusal("x://t", json!({"nope": "2"}));
    assert!(error.contains("it has no variables"), "{error}");
    assert_eq!(
        expand("x://{t}", json!({"t": "1", "null": null})).unwrap(),
        "x://1"
    );
}

#[test]
fn values_must_be_scalars() {
    assert!(refusal("x://{t}", json!({"t": ["a"]})).contains("is a list"));
    assert!(refusal("x://{t}", json!({"t": {}})).contains("is an object"));
}

#[test]
fn variables_are_listed_once_in_order() {
    let template = Template::parse("x://{b}/{a}{?b,c*}{d:3}").unwrap();
    assert_eq!(template.variables(), ["b", "a", "c", "d"]);
    assert!(Template::parse("x://plain").unwrap().variables().is_empty());
}

#[test]
fn errors_are_bounded() {
    let long = "x".repeat(100_000);
    for template in [
        format!("{{{long}"),
        format!("{{?{long}}}"),
        format!("{{{long}!}}"),
    ] {
        assert!(refusal(&template, json!({})).len() < 1000);
    }
    let many: Map<_, _> = (0..1000)
        .map(|i| (format!("{i}{long}"), json!(1)))
        .collect();
    let error = Template::parse("x").unwrap().expand(&many).unwrap_err();
    assert!(error.to_string().len() < 10_000);
}

/// A row of the suite: template, what it must expand to (one of; none means that it must be refused).
fn suite(file: &str) -> Vec<(Map<String, Value>, String, Vec<String>)> {
    let path = format!("{}/tests/data/rfc6570/{file}", env!("CARGO_MANIFEST_DIR"));
    let groups: Map<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut rows = Vec::new();
    for group in groups.values() {
        for row in group["testcases"].as_array().unwrap() {
            let expected = match &row[1] {
                Value::String(one) => vec![one.clone()],
                Value::Array(any) => any.iter().map(|e| e.as_str().unwrap().into()).collect(),
                _ => Vec::new(),
            };
            let variables = group["variables"].as_object().unwrap().clone();
            rows.push((variables, row[0].as_str().unwrap().to_owned(), expected));
        }
    }
    rows
}

/// What makes a row of level 1, said independently of the parser.
fn is_level_1(template: &str, variables: &Map<String, Value>) -> bool {
    let simple = regex::Regex::new(r"^[^{}]*(\{[A-Za-z0-9_%.]+\}[^{}]*)*$").unwrap();
    let name = regex::Regex::new(r"\{([^}]*)\}").unwrap();
    simple.is_match(template)
        && name.captures_iter(template).all(|found| {
            matches!(
                variables.get(&found[1]),
                Some(Value::String(_) | Value::Number(_) | Value::Bool(_))
            )
        })
}

#[test]
fn the_official_suite_holds() {
    let mut expanded = 0;
    let mut refused = 0;
    for file in [
        "spec-examples.json",
        "spec-examples-by-section.json",
        "extended-tests.json",
        "negative-tests.json",
    ] {
        for (variables, template, expected) in suite(file) {
            let used: Map<String, Value> = variables
                .clone()
                .into_iter()
                .filter(|(name, _)| template.contains(&format!("{{{name}}}")))
                .collect();
            let result = Template::parse(&template).and_then(|t| t.expand(&used));
            if is_level_1(&template, &variables) && !expected.is_empty() {
                assert!(
                    expected.contains(&result.clone().unwrap()),
                    "{file}: {template}: {result:?}"
                );
                expanded += 1;
            } else {
                assert!(result.is_err(), "{file}: {template}: {result:?}");
                refused += 1;
            }
        }
    }
    assert_eq!(expanded, 15, "rows of level 1");
    assert!(refused >= 150, "{refused}");
}

fn is_uri(text: &str) -> bool {
    regex::Regex::new(r"^([A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*$")
        .unwrap()
        .is_match(text)
}

proptest! {
    #[test]
    fn any_template_expands_to_a_uri_or_is_refused(template in "[a-z{}:/%*?,+ é.]{0,24}", value in ".{0,8}") {
        if let Ok(parsed) = Template::parse(&template) {
            let arguments: Map<_, _> =
                parsed.variables().iter().map(|name| ((*name).to_owned(), json!(value))).collect();
            if let Ok(uri) = parsed.expand(&arguments) {
                prop_assert!(is_uri(&uri), "{uri}");
            }
        }
    }

    #[test]
    fn any_value_arrives_decodable(value in ".{0,20}") {
        let uri = expand("{v}", json!({ "v": value })).unwrap();
        let mut bytes = Vec::new();
        let mut rest = uri.as_bytes();
        while let [first, after @ ..] = rest {
            if *first == b'%' {
                bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
                rest = &after[2..];
            } else {
                bytes.push(*first);
                rest = after;
            }
        }
        prop_assert_eq!(String::from_utf8(bytes).unwrap(), value);
    }
}
