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

#[test]
fn without_certificates_http_works_and_https_says_what_to_do() {
    let built = Built {
        client: build(&HttpOptions::default()).unwrap().client,
        trusts_anyone: false,
    };
    let http = Http {
        options: HttpOptions::default(),
        built: OnceLock::from(Ok(built)),
    };
    assert!(http.request(Method::GET, "http://127.0.0.1:9/").is_ok());
    let error = http
        .request(Method::GET, "https://127.0.0.1:9/")
        .unwrap_err();
    assert_eq!(error, HttpError::NoCertificates);
    assert!(error.hint().unwrap().contains("ca-certificates"));
}

#[test]
fn a_client_without_any_certificate_can_be_built() {
    install_tls_provider();
    let builder = configured(&HttpOptions::default()).unwrap();
    assert!(builder.tls_certs_only(Vec::new()).build().is_ok());
}

#[test]
fn a_proxy_that_is_none_is_a_reason_and_shows_no_password() {
    let http = Http::new(HttpOptions {
        proxy: Proxy::Url("http://u:secret@[".to_owned()),
        ..HttpOptions::default()
    });
    let error = http
        .request(Method::GET, "http://127.0.0.1:9/")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("is no proxy URL") && !error.contains("secret"),
        "{error}"
    );
    assert_eq!(Proxy::from_config(Some("-")), Proxy::Direct);
    assert_eq!(Proxy::from_config(None), Proxy::Environment);
}

#[tokio::test]
async fn a_failed_request_is_described_without_its_url() {
    let http = Http::new(HttpOptions {
        proxy: Proxy::Direct,
        ..HttpOptions::default()
    });
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/?key=secret", listener.local_addr().unwrap());
    drop(listener);
    let error = http
        .request(Method::GET, &url)
        .unwrap()
        .send()
        .await
        .unwrap_err();
    let text = describe(error);
    assert!(
        !text.contains("secret") && !text.starts_with("error sending"),
        "{text}"
    );
}

#[test]
fn the_same_options_share_a_client_and_others_do_not() {
    let agent = |name: &str| HttpOptions {
        user_agent: Some(name.to_owned()),
        ..HttpOptions::default()
    };
    let one = Http::shared(agent("sharing/1"));
    assert!(Arc::ptr_eq(&one, &Http::shared(agent("sharing/1"))));
    assert!(!Arc::ptr_eq(&one, &Http::shared(agent("sharing/2"))));
    let proxied = HttpOptions {
        proxy: Proxy::Direct,
        ..agent("sharing/1")
    };
    assert!(!Arc::ptr_eq(&one, &Http::shared(proxied)));
}
