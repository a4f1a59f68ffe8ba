//! Tests of the module beside.

use super::*;

fn fails(text: &str) -> String {
    let error = read_or_default::<Option<Vec<u8>>>(text, Path::new("/c/config.yaml")).unwrap_err();
    format!("{error}\n{}", error.causes().collect::<Vec<_>>().join("\n"))
}

#[test]
fn an_error_shows_the_place_and_the_lines_around() {
    let error = fails("ä: 1\nb: [\n");
    assert!(error.starts_with("`/c/config.yaml:"), "{error}");
    assert!(
        error.contains("config.yaml:") && error.contains("ä: 1") && error.contains('^'),
        "{error}"
    );
    assert!(
        !error.contains("<input>") && !error.contains("error:"),
        "{error}"
    );
}

#[test]
fn an_error_shows_no_secret() {
    for secret in [
        "api_key: sk-123",
        "  API_KEY : \"sk-123\"",
        "- {type: openai, api_key: sk-123, stream: x}",
        "headers: {Authorization: Bearer sk-123}",
        "api_key:\n  sk-123",
        "api_key: |\n  sk-123",
        "access_token: 'sk-123'",
    ] {
        for text in [format!("{secret}\nbad: [\n"), format!("bad: ]\n{secret}\n")] {
            let error = fails(&text);
            assert!(!error.contains("sk-123"), "{error}");
        }
    }
}

#[test]
fn a_hostile_file_ends_quickly() {
    let level = |level: usize| {
        let before = format!("*a{}", level - 1);
        format!(
            "a{level}: &a{level} [{}]\n",
            [before.as_str(); 9].join(", ")
        )
    };
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    let bomb: String = std::iter::once(first).chain((1..30).map(level)).collect();
    let file = Path::new("x.yaml");
    assert!(read_or_default::<Option<serde_json::Value>>(&bomb, file).is_err());
    assert!(read_own::<serde_json::Value>(&bomb, file).is_err());
    let deep = "[".repeat(20_000);
    assert!(read_or_default::<Option<serde_json::Value>>(&deep, file).is_err());
    assert!(read_own::<serde_json::Value>(&deep, file).is_err());
}
