use super::*;

#[test]
fn shown_urls_hold_neither_credentials_nor_query_values() {
    assert_eq!(
        redact_url("https://user:pw@host:8443/v1/models?key=AIza&alt=sse#x"),
        "https://host:8443/v1/models?key=…&alt=…"
    );
    assert_eq!(redact_url("http://host?token"), "http://host?…");
    assert_eq!(redact_url("not a url"), "not a url");
}

#[test]
fn only_http_urls_are_requested() {
    let http = Http::new(HttpOptions::default());
    let refused = http.request(Method::GET, "file:///etc/passwd?key=s").err();
    assert_eq!(
        refused,
        Some(HttpError::Url("file:///etc/passwd?key=…".to_owned()))
    );
    assert!(http.request(Method::GET, "http://127.0.0.1:9/").is_ok());
}
