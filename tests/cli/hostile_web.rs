//! What can go wrong between coyote and a server over HTTP (`M-18`), from outside.

use serde_json::{Value, json};

use crate::support::provider::{Provider, chat_calls, chat_text};
use crate::support::served::{Served, TOKEN, Web, Wire};

fn call(served: &Served) -> crate::support::run::Run {
    served.mcp(&["call", "s", "echo", "text=hi"])
}

/// Wires that spoil everything, and wires that spoil calls: what is said, and that the secret is not.
#[test]
fn what_went_wrong_is_said_in_plain_words() {
    for (wire, expected) in [
        ("401", "HTTP 401"),
        ("401-challenge", "invalid_token"),
        ("403", "HTTP 403"),
        ("redirect-302", "s"),
        ("html", "`text/html`"),
        ("500", "HTTP 500"),
        ("429", "wait 7 s"),
        ("404", "HTTP 404"),
        ("call-401", "HTTP 401"),
        ("call-401-challenge", "invalid_token"),
        ("call-403-challenge", "insufficient_scope"),
        ("call-500", "HTTP 500"),
        ("call-429", "wait 7 s"),
        ("call-400-error", "bad arguments"),
        ("call-400-idless", "bad request"),
        ("call-202", "no answer"),
        ("call-badjson", "no answer to the request"),
        ("call-drop", "s"),
        ("call-cut", "s"),
        ("sse-bad", "stream ended"),
        ("sse-early", "stream ended"),
        ("expire-always", "its session has expired"),
    ] {
        let served = Served::new("full", Wire::Http(wire));
        let failed = call(&served).fails(1);
        assert!(
            failed.stderr.contains(expected),
            "{wire}: {}",
            failed.stderr
        );
        assert_eq!(failed.stdout, "", "{wire}");
        for word in ["t0p-s3cret", "rmcp", "::", "Error("] {
            assert!(!failed.stderr.contains(word), "{wire}: {}", failed.stderr);
        }
        // What fails says so once, and does not try for ever.
        assert!(
            served.requests().len() < 12,
            "{wire}: {:?}",
            served.requests().len()
        );
    }
}

/// Wires that are odd and allowed.
#[test]
fn odd_and_allowed_wires_work() {
    for wire in [
        "plain",
        "stateless",
        "stream",
        "redirect-307",
        "call-batch",
        "sse-resumed",
        "expire",
    ] {
        let served = Served::new("full", Wire::Http(wire));
        let output = call(&served).ok();
        assert_eq!(output.stdout.trim(), r#"{"text":"hi"}"#, "{wire}");
        let begun = served
            .methods()
            .iter()
            .filter(|it| *it == "initialize")
            .count();
        // A redirect is a request of its own to the log of headers, not to the server.
        let expected = if wire == "expire" { 2 } else { 1 };
        assert_eq!(begun, expected, "{wire}: {:?}", served.methods());
    }
}

/// `M-18`: the remedy names the file and the key.
#[test]
fn refused_credentials_come_with_the_file_and_the_key_to_edit() {
    for wire in [
        "401",
        "401-challenge",
        "403",
        "call-401",
        "call-403-challenge",
    ] {
        let served = Served::new("full", Wire::Http(wire));
        let said = call(&served).fails(1).stderr;
        let file = served.home.config_dir().join("mcp.json");
        assert!(said.contains(&file.display().to_string()), "{wire}: {said}");
        assert!(
            said.contains("headers.Authorization") && said.contains("`s`"),
            "{wire}: {said}"
        );
    }
    let served = Served::new("full", Wire::Http("401"));
    let states = served.json(&["servers"]);
    assert_eq!(states[0]["state"], "failed");
    assert!(
        states[0]["reason"].as_str().unwrap().contains("401"),
        "{states}"
    );
}

/// Headers go where the entry says and nowhere else.
#[test]
fn a_redirect_to_another_origin_is_not_followed_and_leaks_nothing() {
    let served = Served::new("full", Wire::Http("redirect-away"));
    let said = call(&served).fails(1).stderr;
    assert!(
        said.contains("redirects") && said.contains("`url`"),
        "{said}"
    );
    let requests = served.requests();
    let first = &requests[0]["at"];
    assert!(
        requests
            .iter()
            .all(|it| &it["at"] == first && it["path"] == "/mcp"),
        "{requests:?}"
    );

    let served = Served::new("full", Wire::Http("redirect-307"));
    call(&served).ok();
    let moved: Vec<Value> = served
        .requests()
        .into_iter()
        .filter(|it| it["path"] == "/moved")
        .collect();
    assert!(!moved.is_empty());
    for request in moved {
        assert_eq!(request["headers"]["authorization"], TOKEN, "{request}");
    }
}

/// Every message carries the entry's headers, our name, the session and the revision; the session is ended.
#[test]
fn a_session_is_carried_and_ended() {
    let served = Served::new("full", Wire::Http("plain"));
    call(&served).ok();
    let requests = served.requests();
    for request in &requests {
        let headers = &request["headers"];
        assert_eq!(headers["authorization"], TOKEN, "{request}");
        assert!(
            headers["user-agent"]
                .as_str()
                .unwrap()
                .starts_with("coyote/"),
            "{request}"
        );
        if request["method"] != "initialize" {
            assert_eq!(headers["mcp-session-id"], "session-1", "{request}");
            assert_eq!(headers["mcp-protocol-version"], "2025-11-25", "{request}");
        }
    }
    assert_eq!(requests.last().unwrap()["verb"], "DELETE");
}

/// A stream that is resumed in vain, or that wants to be resumed in a day, ends in the timeout and asks no more often
/// than is decent.
#[test]
fn streams_that_never_answer_end_in_the_timeout() {
    for wire in ["sse-endless", "sse-retry-huge", "hang"] {
        let served = Served::with(
            "full",
            Wire::Http(wire),
            &json!({ "timeout": 2, "startup_timeout": 2 }),
        );
        let said = call(&served).fails(1).stderr;
        assert!(said.contains("2 s"), "{wire}: {said}");
        assert!(
            served.requests().len() < 60,
            "{wire}: {}",
            served.requests().len()
        );
    }
}

/// A server that cannot be reached costs the others nothing, and the turn goes on.
#[test]
fn a_turn_goes_on_without_what_cannot_be_reached() {
    let served = Served::new("full", Wire::Http("plain"));
    let refused = Web::start(&served.home, "full", "401");
    let url = served.home.config_dir().join("mcp.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&url).unwrap()).unwrap();
    file["mcpServers"]["locked"] = json!({ "url": refused.url });
    file["mcpServers"]["absent"] = json!({ "url": "http://127.0.0.1:1/mcp" });
    served.home.config_file("mcp.json", &file.to_string());
    let provider = Provider::new(vec![
        chat_calls(&[("c1", "mcp_invoke_s", json!({ "tool": "error" }))]),
        chat_text("done"),
    ]);
    served
        .home
        .provider(&provider.url(), "enabled_mcp_servers: all");
    let output = served.home.coyote(&["-y", "go"]).any_stderr().ok();
    assert_eq!(output.stdout, "done\n");
    for name in ["locked", "absent"] {
        assert!(output.stderr.contains(name), "{}", output.stderr);
    }
    let messages = provider.asked()[1].body["messages"].to_string();
    for word in ["one", "two", "three"] {
        assert!(messages.contains(word), "{messages}");
    }
    assert!(!messages.contains("t0p-s3cret") && !output.stderr.contains("t0p-s3cret"));
}
