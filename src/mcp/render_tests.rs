//! The content policy, a row per kind of content.

use std::fs;

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use proptest::prelude::*;

use super::*;
use crate::chat::ImageSource;
use crate::mcp::catalog::CatalogKind;
use crate::mcp::decode;
use crate::mcp::decode::tests::any_json;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xfe";
const WAV: &[u8] = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x80\xbb";

/// A place to render in.
struct Place {
    home: tempfile::TempDir,
    server: ServerName,
    spill: SpillDir,
    abort: AbortToken,
    bounds: Bounds,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self {
            spill: SpillDir::new(home.path().join("mcp-resources")),
            home,
            server: ServerName::new("srv").unwrap(),
            abort: AbortToken::new(),
            bounds: Bounds::default(),
        }
    }

    fn lowered(max_result: usize) -> Self {
        Self {
            bounds: Bounds::new(Some(max_result)),
            ..Self::new()
        }
    }

    fn policy(&self) -> Policy<'_> {
        Policy {
            server: &self.server,
            spill: &self.spill,
            bounds: self.bounds,
            read_function: Some("READ_srv"),
            abort: &self.abort,
        }
    }

    fn tool(&self, result: &Value) -> ToolOutput {
        render_tool_answer(&decode::tool_answer(result), &self.policy()).unwrap()
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "rows read better without ampersands"
    )]
    fn block(&self, block: Value) -> Value {
        let output = self.tool(&json!({ "content": [block] }));
        let content = output.value["content"].as_array().unwrap().clone();
        assert_eq!(content.len(), 1);
        content[0].clone()
    }

    fn read_with(&self, result: &Value, view: View<'_>) -> ToolOutput {
        let contents = decode::resource_contents(result).unwrap();
        render_contents(&contents, "x://asked", None, view, &self.policy()).unwrap()
    }

    #[allow(
        clippy::needless_pass_by_value,
        reason = "rows read better without ampersands"
    )]
    fn read(&self, contents: Value) -> Value {
        self.read_with(&json!({ "contents": contents }), View::default())
            .value
    }
}

fn extension(spilled: &Value) -> String {
    let path = std::path::Path::new(spilled["path"].as_str().unwrap());
    path.extension().unwrap().to_str().unwrap().to_owned()
}

fn b64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

fn page(text: &str, offset: u64, max: u64) -> RenderedText<'_> {
    render_text(text, None, None, offset, Some(max))
}

/// All pages of a text, walked as a reader walks them.
fn walk(text: &str, filter: Option<&Filter>, max: u64) -> String {
    let mut joined = String::new();
    let mut offset = 0;
    loop {
        let page = render_text(text, None, filter, offset, Some(max));
        joined.push_str(&page.text);
        match page.next_offset {
            Some(next) => {
                assert!(next > offset, "paging advances");
                offset = next;
            }
            None => return joined,
        }
    }
}

// --- text ---------------------------------------------------------------------------------------------------------

#[test]
fn pages_borrow_from_the_text() {
    let text = "x".repeat(1_000_000);
    let page = page(&text, 10, 100);
    let Cow::Borrowed(slice) = page.text else {
        panic!("copied")
    };
    assert_eq!(slice.as_ptr(), text[10..].as_ptr());
    assert_eq!(
        (page.truncated, page.total_bytes, page.next_offset),
        (true, 1_000_000, Some(110))
    );
}

#[test]
fn offsets_round_forward_and_ends_back() {
    let text = "aé€😀z"; // 1 + 2 + 3 + 4 + 1
    let rows = [
        (0, 1, "a", Some(1)),
        (1, 1, "é", Some(3)), // at least one character
        (2, 3, "€", Some(6)), // forward, into the €
        (0, 3, "aé", Some(3)),
        (0, 5, "aé", Some(3)), // back, before the €
        (6, 4, "😀", Some(10)),
        (7, 1, "z", None),
        (10, 9, "z", None),
        (11, 9, "", None),
        (99, 9, "", None),
        (u64::MAX, 9, "", None),
    ];
    for (offset, max, expected, next) in rows {
        let page = page(text, offset, max);
        assert_eq!(
            (page.text.as_ref(), page.next_offset),
            (expected, next),
            "{offset} {max}"
        );
        assert_eq!(page.truncated, next.is_some());
        assert_eq!(page.total_bytes, 11);
    }
}

#[test]
fn the_default_page_and_the_clamp() {
    let text = "x".repeat(300_000);
    assert_eq!(render_text(&text, None, None, 0, None).text.len(), 51_200);
    assert_eq!(page(&text, 0, 0).text.len(), 51_200);
    assert_eq!(page(&text, 0, 204_800).text.len(), 204_800);
    assert_eq!(page(&text, 0, u64::MAX).text.len(), 204_800);
    assert_eq!(page("", 0, 10).next_offset, None);
}

#[test]
fn wide_text_survives_pages_of_every_size() {
    let text = "𝄞".repeat(512 * 1024);
    for size in [1, 2, 3, 5, 51_200] {
        assert!(walk(&text, None, size) == text, "{size}");
    }
}

#[test]
fn the_filter_comes_before_the_page() {
    let lines: Vec<_> = (1..=1000).map(|n| format!("line {n}\r\n")).collect();
    let text = lines.concat();
    let filter = Filter::new("line 500$").unwrap();
    let page = render_text(&text, None, Some(&filter), 0, None);
    assert_eq!(
        page.text,
        "498-line 498\n499-line 499\n500:line 500\n501-line 501\n502-line 502\n"
    );
    assert_eq!(page.total_bytes, page.text.len() as u64);
    assert_eq!(page.note, None);
    let whole = page.text.into_owned();
    for size in [1, 3, 7, 50] {
        assert_eq!(walk(&text, Some(&filter), size), whole);
    }
}

#[test]
fn no_match_is_an_empty_page_with_a_note() {
    let filter = Filter::new("nothing").unwrap();
    let page = render_text("a\nb\n", None, Some(&filter), 0, None);
    assert_eq!(
        (page.text.as_ref(), page.total_bytes, page.next_offset),
        ("", 0, None)
    );
    assert_eq!(
        page.note.as_deref(),
        Some("no line matches the pattern; 2 lines were searched")
    );
}

// --- reads --------------------------------------------------------------------------------------------------------

#[test]
fn a_text_content_is_an_object() {
    let value = Place::new()
        .read(json!([{"uri": "x://a", "mimeType": "text/plain", "text": "some notes"}]));
    let expected = json!({
        "uri": "x://a", "mime_type": "text/plain", "text": "some notes", "truncated": false, "total_bytes": 10,
        "next_offset": null,
    });
    assert_eq!(value, expected);
}

#[test]
fn an_empty_resource_says_so() {
    let value = Place::new().read(json!([]));
    assert_eq!(
        (value["empty"].clone(), value["uri"].clone()),
        (json!(true), json!("x://asked"))
    );
}

#[test]
fn an_audience_is_shown_with_text_and_with_spills() {
    let place = Place::new();
    let audience = ["user".to_owned()];
    let result = json!({"contents": [{"text": "t"}, {"blob": b64(PNG)}]});
    let contents = decode::resource_contents(&result).unwrap();
    let output = render_contents(
        &contents,
        "x://a",
        Some(&audience),
        View::default(),
        &place.policy(),
    )
    .unwrap();
    assert_eq!(output.value[0]["audience"], json!(["user"]));
    assert_eq!(output.value[1]["audience"], json!(["user"]));
    assert_eq!(output.value[1]["uri"], "x://a");
}

#[test]
fn blobs_that_are_text_are_paged_like_text() {
    let place = Place::new();
    let result = json!({"contents": [
        {"uri": "x://a", "mimeType": "application/octet-stream", "blob": b64(b"{\"a\":1}\nb\n")},
    ]});
    let view = View {
        max_bytes: Some(4),
        ..View::default()
    };
    let value = place.read_with(&result, view).value;
    assert_eq!(
        (value["text"].clone(), value["next_offset"].clone()),
        (json!("{\"a\""), json!(4))
    );
    assert_eq!(value["mime_type"], "application/octet-stream");
    let filter = Filter::new("b").unwrap();
    let view = View {
        filter: Some(&filter),
        ..View::default()
    };
    assert_eq!(
        place.read_with(&result, view).value["text"],
        "1-{\"a\":1}\n2:b\n"
    );
}

#[test]
fn binary_content_is_spilled_and_describes_itself() {
    let place = Place::new();
    let value = place.read(json!([{"uri": "x://a", "mimeType": "image/png", "blob": b64(PNG)}]));
    let path = value["path"].as_str().unwrap().to_owned();
    assert_eq!(fs::read(&path).unwrap(), PNG);
    let sha256 = value["sha256"].as_str().unwrap();
    assert!(path.ends_with(&format!("{sha256}.png")));
    let expected = json!({
        "spilled": true, "path": path, "uri": "x://a", "mime_type": "image/png", "sniffed": false,
        "size_bytes": PNG.len(), "sha256": sha256,
    });
    assert_eq!(value, expected);
}

#[test]
fn a_pattern_is_not_applied_to_a_spill_and_says_so() {
    let place = Place::new();
    let filter = Filter::new("x").unwrap();
    let view = View {
        filter: Some(&filter),
        ..View::default()
    };
    let value = place
        .read_with(&json!({"contents": [{"blob": b64(PNG)}]}), view)
        .value;
    assert!(
        value["note"]
            .as_str()
            .unwrap()
            .contains("pattern was not applied")
    );
}

#[test]
fn several_contents_are_a_list_and_a_bad_one_costs_itself() {
    let place = Place::new();
    let result = json!({"contents": [
        {"uri": "x://1", "text": "first"}, {"uri": "x://2"}, {"uri": "x://3", "text": "T", "blob": "AA=="}, 5,
        {"uri": "x://5", "blob": "AAAA!!!"}, {"uri": "x://6", "text": "last"},
    ]});
    let output = place.read_with(&result, View::default());
    let errors: Vec<_> = (1..5)
        .map(|n| output.value[n]["error"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        errors[0],
        "unreadable resource content: it has neither `text` nor `blob`"
    );
    assert_eq!(
        errors[1],
        "unreadable resource content: it has both `text` and `blob`"
    );
    assert_eq!(
        errors[2],
        "unreadable resource content: it is a number, not an object"
    );
    assert!(errors[3].ends_with("at byte 4"), "{}", errors[3]);
    assert_eq!(output.value[5]["text"], "last");
    assert!(!output.is_error);

    let all_bad = place.read_with(&json!({"contents": [{"uri": "x://2"}]}), View::default());
    assert!(all_bad.is_error);
    assert_eq!(all_bad.value["uri"], "x://2");
}

#[test]
fn a_spill_that_fails_keeps_its_siblings() {
    let mut place = Place::new();
    let blocked = place.home.path().join("file");
    fs::write(&blocked, b"").unwrap();
    place.spill = SpillDir::new(blocked);
    let value = place.read(json!([{"blob": b64(PNG)}, {"text": "still here"}]));
    assert!(
        value[0]["error"]
            .as_str()
            .unwrap()
            .contains("could not be stored")
    );
    assert_eq!(value[0]["size_bytes"], PNG.len());
    assert_eq!(value[0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(value[1]["text"], "still here");
}

#[test]
fn contents_beyond_the_ceiling_are_counted() {
    let place = Place::new();
    let text = "x".repeat(100_000);
    let contents: Vec<_> = (0..10)
        .map(|n| json!({"uri": format!("x://{n}"), "text": text}))
        .collect();
    let result = json!({ "contents": contents });
    let view = View {
        max_bytes: Some(100_000),
        ..View::default()
    };
    let value = place.read_with(&result, view).value;
    let items = value.as_array().unwrap();
    assert_eq!(items.len(), 4);
    assert_eq!(items[1]["truncated"], false);
    assert_eq!(
        (
            items[2]["truncated"].clone(),
            items[2]["next_offset"].clone()
        ),
        (json!(true), json!(4_800))
    );
    assert_eq!(
        (
            items[3]["truncated"].clone(),
            items[3]["omitted_items"].clone()
        ),
        (json!(true), json!(7))
    );
    let note = items[3]["note"].as_str().unwrap();
    assert!(
        note.contains("204800 bytes") && note.contains("own uri"),
        "{note}"
    );
}

#[test]
fn the_claimed_type_is_bounded() {
    let place = Place::new();
    let mime = "m".repeat(5000);
    let value =
        place.read(json!([{"mimeType": mime, "blob": b64(PNG)}, {"mimeType": mime, "text": "t"}]));
    assert!(value[0]["mime_type"].as_str().unwrap().len() <= 4096);
    assert!(value[1]["mime_type"].as_str().unwrap().len() <= 4096);
    assert_eq!(extension(&value[0]), "bin");
}

#[test]
fn traversal_in_a_type_or_uri_stays_outside_of_paths() {
    let place = Place::new();
    let result = json!([{"uri": "file:///../../etc/passwd", "mimeType": "image/../../etc/passwd", "blob": b64(PNG)}]);
    let value = place.read(result);
    let path = fs::canonicalize(value["path"].as_str().unwrap()).unwrap();
    assert!(path.starts_with(fs::canonicalize(place.spill.root()).unwrap()));
    assert_eq!(path.extension().unwrap(), "bin");
}

#[test]
fn pages_walk_exactly_when_lowered() {
    let text = "\"\u{1}é\n😀".repeat(3_000);
    for max in [2_048, 5_000, 20_000] {
        let place = Place::lowered(max);
        let result =
            json!({"contents": [{"uri": "x://a", "mimeType": "text/plain", "text": text}]});
        let mut joined = String::new();
        let mut offset = 0;
        loop {
            let view = View {
                offset,
                ..View::default()
            };
            let value = place.read_with(&result, view).value;
            assert!(
                value.to_string().len() <= max,
                "{} > {max}",
                value.to_string().len()
            );
            joined.push_str(value["text"].as_str().unwrap());
            match value["next_offset"].as_u64() {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(joined, text);
    }
}

// --- tool results -------------------------------------------------------------------------------------------------

#[test]
fn a_text_block_is_untouched() {
    let place = Place::new();
    assert_eq!(
        place.block(json!({"type": "text", "text": "a"})),
        json!({"type": "text", "text": "a"})
    );
    let exact = "x".repeat(204_800);
    assert_eq!(
        place.block(json!({"type": "text", "text": exact}))["text"],
        exact
    );
    let annotated = json!({"type": "text", "text": "a", "annotations": {"audience": ["user"]}});
    assert_eq!(
        place.block(annotated),
        json!({"type": "text", "text": "a", "audience": ["user"]})
    );
}

#[test]
fn a_text_block_that_is_too_long_is_cut_with_a_note() {
    let text = "x".repeat(204_801);
    let value = Place::new().block(json!({"type": "text", "text": text}));
    assert_eq!(value["text"].as_str().unwrap().len(), 204_800);
    assert_eq!(
        (value["truncated"].clone(), value["total_bytes"].clone()),
        (json!(true), json!(204_801))
    );
    assert!(
        value["note"]
            .as_str()
            .unwrap()
            .contains("narrower arguments")
    );
    assert_eq!(value.get("next_offset"), None, "a tool result has no pages");
}

#[test]
fn images_and_sounds_keep_their_type_and_are_spilled() {
    let place = Place::new();
    let rows = [
        ("image", "image/png", PNG, "png"),
        ("audio", "audio/wav", WAV, "wav"),
    ];
    for (kind, mime, bytes, extension) in rows {
        let value = place.block(json!({"type": kind, "data": b64(bytes), "mimeType": mime}));
        assert_eq!(value["type"], kind);
        assert_eq!(value["spilled"], true);
        assert_eq!(value["uri"], Value::Null);
        assert_eq!(value["size_bytes"], bytes.len());
        let path = value["path"].as_str().unwrap();
        assert!(path.ends_with(extension));
        assert_eq!(fs::read(path).unwrap(), bytes);
    }
}

#[test]
fn media_that_is_text_is_inlined_and_broken_media_is_an_error() {
    let place = Place::new();
    let svg =
        place.block(json!({"type": "image", "data": b64(b"<svg/>"), "mimeType": "image/svg+xml"}));
    assert_eq!(
        svg,
        json!({"type": "image", "mime_type": "image/svg+xml", "text": "<svg/>"})
    );
    let broken = place.block(json!({"type": "image", "data": "!!!", "mimeType": "image/png"}));
    assert_eq!(broken["type"], "image");
    assert!(broken["error"].as_str().unwrap().ends_with("at byte 0"));
    let none = place.block(json!({"type": "image"}));
    assert_eq!(none["error"], "unreadable image: it has no `data`");
}

#[test]
fn embedded_resources_are_text_or_spilled() {
    let place = Place::new();
    let text = json!({"type": "resource", "resource": {"uri": "x://a", "mimeType": "text/plain", "text": "t"}});
    let expected =
        json!({"type": "resource", "uri": "x://a", "mime_type": "text/plain", "text": "t"});
    assert_eq!(place.block(text), expected);
    let blob = json!({"type": "resource", "resource": {"uri": "x://b", "mimeType": "application/pdf", "blob": b64(PNG)}});
    let value = place.block(blob);
    assert_eq!(
        (value["type"].clone(), value["uri"].clone()),
        (json!("resource"), json!("x://b"))
    );
    assert_eq!(extension(&value), "pdf");
    let neither = json!({"type": "resource", "resource": {"uri": "x://c"}});
    assert!(
        place.block(neither)["error"]
            .as_str()
            .unwrap()
            .contains("neither")
    );
    let long =
        json!({"type": "resource", "resource": {"uri": "x://a", "text": "x".repeat(300_000)}});
    let value = place.block(long);
    assert_eq!(
        (value["truncated"].clone(), value["uri"].clone()),
        (json!(true), json!("x://a"))
    );
}

#[test]
fn links_carry_the_call_that_reads_them() {
    let place = Place::new();
    let link = json!({
        "type": "resource_link", "uri": "x://a", "name": "n", "title": "T", "description": "d",
        "mimeType": "text/plain", "size": 12, "annotations": {"audience": ["assistant"]}, "icons": [{"src": "data:..."}],
    });
    let expected = json!({
        "type": "resource_link", "uri": "x://a", "name": "n", "title": "T", "description": "d",
        "mime_type": "text/plain", "size": 12, "audience": ["assistant"],
        "read_with": {"function": "READ_srv", "arguments": {"uri": "x://a"}},
    });
    assert_eq!(place.block(link.clone()), expected);
    let policy = Policy {
        read_function: None,
        ..place.policy()
    };
    let answer = json!({ "content": [link] });
    let output = render_tool_answer(&decode::tool_answer(&answer), &policy).unwrap();
    assert_eq!(output.value["content"][0].get("read_with"), None);
    let long = json!({"type": "resource_link", "uri": format!("x://{}", "u".repeat(5000))});
    let value = place.block(long);
    assert!(value["uri"].as_str().unwrap().len() <= 4096);
    assert_eq!(value.get("read_with"), None, "a cut URI cannot be read");
}

#[test]
fn an_unknown_block_is_named_between_its_neighbours() {
    let place = Place::new();
    let output = place.tool(&json!({"content": [
        {"type": "text", "text": "before"}, {"type": "hologram", "depth": 3, "data": b64(PNG)},
        {"type": "text", "text": "after"},
    ]}));
    let content = &output.value["content"];
    assert_eq!(
        (content[0]["text"].clone(), content[2]["text"].clone()),
        (json!("before"), json!("after"))
    );
    assert_eq!(content[1]["type"], "hologram");
    assert_eq!(
        content[1]["fields"]["data"],
        format!("a string of {} bytes", b64(PNG).len())
    );
}

#[test]
fn failures_keep_all_their_parts() {
    let place = Place::new();
    let texts = ["one", "two", "three"].map(|text| json!({"type": "text", "text": text}));
    let output = place.tool(&json!({"content": texts, "isError": true}));
    assert!(output.is_error);
    assert_eq!(output.value, json!({"content": texts, "isError": true}));
    let polite = place.tool(&json!({"content": [{"type": "text", "text": "Error: not really"}]}));
    assert!(!polite.is_error);
    assert_eq!(polite.value.get("isError"), None);
}

#[test]
fn structured_content_is_shown_once() {
    let place = Place::new();
    let structured = json!({"rows": [1, 2], "b": null});
    let text = |text: &str| json!({"type": "text", "text": text});
    let rows = [
        (
            json!({"content": [], "structuredContent": structured}),
            json!([]),
        ),
        (json!({"structuredContent": structured}), json!([])),
        // Equal in another order and spelling.
        (
            json!({"content": [text("{ \"b\": null, \"rows\": [1,2] }")], "structuredContent": structured}),
            json!([]),
        ),
        (
            json!({"content": [text("two rows")], "structuredContent": structured}),
            json!([text("two rows")]),
        ),
        // Two texts: neither is the only one.
        (
            json!({"content": [text(&structured.to_string()), text("x")], "structuredContent": structured}),
            json!([text(&structured.to_string()), text("x")]),
        ),
    ];
    for (result, content) in rows {
        let value = place.tool(&result).value;
        assert_eq!(
            value,
            json!({"content": content, "structuredContent": structured})
        );
    }
    let empty = place
        .tool(&json!({"content": [], "structuredContent": {}}))
        .value;
    assert_eq!(empty, json!({"content": [], "structuredContent": {}}));
    let nothing = place.tool(&json!({}));
    assert_eq!(nothing, ToolOutput::ok(json!({"content": []})));
}

#[test]
fn structured_content_that_is_too_large_becomes_its_beginning() {
    let structured = json!({"rows": vec!["row"; 150_000]});
    let result =
        json!({"content": [{"type": "text", "text": "summary"}], "structuredContent": structured});
    let value = Place::new().tool(&result).value;
    let shown = &value["structuredContent"];
    assert_eq!(shown["truncated"], true);
    assert_eq!(shown["total_bytes"], structured.to_string().len());
    assert!(
        structured
            .to_string()
            .starts_with(shown["text"].as_str().unwrap())
    );
    assert!(value.to_string().len() <= 409_600);
    assert_eq!(
        value["content"][0]["omitted_items"], 1,
        "it counts first, and what it leaves no room for is counted"
    );
}

#[test]
fn images_for_models_that_see_are_told_by_their_bytes() {
    let place = Place::new();
    let png = json!({"type": "image", "data": b64(PNG), "mimeType": "text/plain"});
    let output = place.tool(
        &json!({"content": [png, {"type": "audio", "data": b64(WAV), "mimeType": "image/png"}]}),
    );
    assert_eq!(output.images.len(), 1);
    assert_eq!(output.images[0].mime_type, "image/png");
    let path = output.value["content"][0]["path"].as_str().unwrap();
    assert_eq!(output.images[0].source, ImageSource::File(path.into()));

    let many: Vec<_> = (0..9u8)
        .map(|n| json!({"uri": "x://a", "blob": b64(&[PNG, &[n]].concat())}))
        .collect();
    let output = place.read_with(&json!({ "contents": many }), View::default());
    assert_eq!(
        output.images.len(),
        9,
        "how many are shown is decided for a whole round"
    );
    assert_eq!(
        output.value.as_array().unwrap().len(),
        9,
        "the JSON is the same either way"
    );
}

#[test]
fn enormous_results_stay_below_the_ceiling() {
    let place = Place::new();
    let name = "n".repeat(200_000);
    let links: Vec<_> = (0..3000)
        .map(|n| json!({"type": "resource_link", "uri": format!("x://{n}"), "name": name, "description": name}))
        .collect();
    let value = place.tool(&json!({ "content": links })).value;
    assert!(value.to_string().len() <= 409_600);
    let content = value["content"].as_array().unwrap();
    let marker = content.last().unwrap();
    assert_eq!(marker["omitted_items"], 3000 - (content.len() as u64 - 1));
    let text = "0123456789".repeat(500_000);
    let value = place.block(json!({"type": "text", "text": text}));
    assert_eq!(
        (value["truncated"].clone(), value["total_bytes"].clone()),
        (json!(true), json!(5_000_000))
    );
}

#[test]
fn cancelling_ends_the_rendering() {
    let place = Place::new();
    place.abort.cancel();
    let answer = json!({"content": [{"type": "image", "data": b64(PNG)}]});
    let rendered = render_tool_answer(&decode::tool_answer(&answer), &place.policy());
    assert_eq!(rendered, Err(Aborted));
}

// --- search results -----------------------------------------------------------------------------------------------

#[test]
fn search_results_are_bounded_in_every_string() {
    let server = ServerName::new("s").unwrap();
    let long = "d\u{1}".repeat(100_000);
    let items: Vec<_> = (0..20)
        .map(|n| {
            let raw = json!({
                "uri": format!("x://{n}/{long}"), "name": long, "title": long, "description": long, "mimeType": long,
            });
            decode::catalog_item(CatalogKind::Resource, &server, raw)
        })
        .collect();
    let items: Vec<&CatalogItem> = items.iter().collect();
    let output = render_items(&items, &["a note".to_owned()], Bounds::default());
    assert!(output.value.to_string().len() <= 409_600);
    let list = output.value.as_array().unwrap();
    assert_eq!(list.last().unwrap(), &json!({"note": "a note"}));
    assert!(list[0]["description"].as_str().unwrap().len() <= 4096);
    assert!(list[list.len() - 2]["omitted_items"].as_u64().unwrap() > 0);
}

#[test]
fn a_prompt_with_very_many_arguments_is_still_an_item() {
    let server = ServerName::new("s").unwrap();
    let argument = json!({"name": "n".repeat(5000), "description": "d".repeat(5000)});
    let raw = json!({"name": "p", "arguments": vec![argument; 1000]});
    let item = decode::catalog_item(CatalogKind::Prompt, &server, raw);
    let value = render_items(&[&item], &[], Bounds::default()).value;
    assert_eq!(value[0]["name"], "p");
    assert_eq!(value[0].get("arguments"), None);
    assert!(value.to_string().len() <= 409_600);
}

// --- properties ---------------------------------------------------------------------------------------------------

/// A payload whose base64 cannot occur by chance, and its spellings.
fn payload(bytes: &[u8]) -> [String; 2] {
    let marked = [b"\xff\xfe".as_slice(), bytes].concat();
    [
        BASE64_STANDARD.encode(&marked),
        BASE64_URL_SAFE_NO_PAD.encode(&marked),
    ]
}

fn block_with(kind: u8, b64: &str) -> Value {
    match kind {
        0 => json!({"type": "image", "data": b64, "mimeType": "image/png"}),
        1 => json!({"type": "audio", "data": b64}),
        2 => json!({"type": "resource", "resource": {"uri": "x://a", "blob": b64}}),
        3 => json!({"type": "hologram", "data": b64, "parts": [{"blob": b64}]}),
        4 => json!({"type": "resource", "resource": {"uri": "x://a", "blob": b64, "text": "t"}}),
        5 => json!({"type": "image", "data": format!("{b64}!")}),
        6 => json!({"data": b64}),
        7 => json!({"type": "resource", "resource": b64}),
        8 => json!({"type": "image", "data": [b64], "mimeType": {"a": b64}}),
        _ => json!(b64),
    }
}

fn assert_absent(value: &Value, spellings: &[String]) {
    let text = value.to_string();
    for spelling in spellings {
        // A beginning would give it away as well.
        assert!(!text.contains(&spelling[..24]), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_base64_of_a_payload_reaches_the_model(
        kinds in proptest::collection::vec(0..10u8, 1..6), bytes in proptest::collection::vec(any::<u8>(), 24..200),
        max in prop_oneof![Just(None), (0..5000usize).prop_map(Some)], error in any::<bool>(),
    ) {
        let place = Place { bounds: Bounds::new(max), ..Place::new() };
        let spellings = payload(&bytes);
        let blocks: Vec<_> =
            kinds.iter().map(|kind| block_with(*kind, &spellings[usize::from(*kind) % 2])).collect();
        let output = place.tool(&json!({"content": blocks, "isError": error}));
        assert_absent(&output.value, &spellings);
        let contents: Vec<_> = blocks.iter().map(|block| block["resource"].clone()).collect();
        let output = place.read_with(&json!({ "contents": contents }), View::default());
        assert_absent(&output.value, &spellings);
    }
}

proptest! {
    #[test]
    fn any_json_renders_below_the_ceiling(
        result in any_json(), content in proptest::collection::vec(any_json(), 0..6), max in 0..6000usize,
    ) {
        let place = Place::lowered(max);
        let mut answer = json!({"content": content, "structuredContent": result, "isError": true});
        let least = max.max(2_048);
        prop_assert!(place.tool(&answer).value.to_string().len() <= least + 64);
        if let Some(content) = answer.get_mut("content").map(Value::take) {
            let read = place.read_with(&json!({ "contents": content }), View::default());
            prop_assert!(read.value.to_string().len() <= least + 64);
        }
        prop_assert!(place.tool(&result).value.is_object());
    }

    #[test]
    fn pages_of_any_sizes_join_to_the_text(text in any::<String>(), sizes in proptest::collection::vec(1..9u64, 1..8)) {
        let mut joined = String::new();
        let mut offset = 0;
        for size in sizes.iter().cycle() {
            let page = page(&text, offset, *size);
            joined.push_str(&page.text);
            match page.next_offset {
                Some(next) => offset = next,
                None => break,
            }
        }
        prop_assert_eq!(joined, text);
    }
}
