use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::mcp::render::render_text;

fn piece(text: &str) -> Piece<'_> {
    let page = render_text(text, None, None, 0, Some(u64::MAX));
    Piece::Text(TextPiece::new(Map::new(), page, None, true))
}

fn fitted(pieces: Vec<Piece<'_>>, bounds: Bounds, structured: Option<&Value>) -> Fitted {
    let total = pieces.len();
    let pieces = pieces.into_iter().map(Ok);
    fit(pieces, total, bounds, structured, |count| {
        format!("{count} omitted")
    })
    .unwrap()
}

#[test]
fn what_fits_is_untouched() {
    let items = fitted(vec![piece("a"), piece("b")], Bounds::default(), None).items;
    assert_eq!(items.len(), 2);
    assert_eq!(items[1]["text"], "b");
}

#[test]
fn a_text_of_exactly_the_ceiling_is_whole() {
    let text = "x".repeat(Bounds::default().slice);
    let items = fitted(vec![piece(&text)], Bounds::default(), None).items;
    assert_eq!(items[0]["truncated"], false);
    assert_eq!(items[0]["text"].as_str().unwrap().len(), 204_800);
}

#[test]
fn the_first_that_does_not_fit_is_cut_and_the_rest_counted() {
    let text = "x".repeat(150_000);
    let pieces = vec![piece(&text), piece(&text), piece("never"), piece("never")];
    let items = fitted(pieces, Bounds::default(), None).items;
    assert_eq!(items.len(), 3);
    assert_eq!(items[1]["text"].as_str().unwrap().len(), 54_800);
    assert_eq!(items[1]["next_offset"], 54_800);
    assert_eq!(items[1]["truncated"], true);
    assert_eq!(
        items[2],
        json!({"truncated": true, "omitted_items": 2, "note": "2 omitted"})
    );
}

#[test]
fn pieces_beyond_are_not_rendered() {
    let text = "x".repeat(204_800);
    let mut rendered = 0;
    let pieces = (0..100).map(|_| {
        rendered += 1;
        Ok(piece(&text))
    });
    fit(pieces, 100, Bounds::default(), None, |_| String::new()).unwrap();
    assert!(rendered <= 2, "{rendered}");
}

#[test]
fn escaping_moves_the_end_back() {
    let text = "\u{1}".repeat(204_800);
    let items = fitted(vec![piece(&text)], Bounds::default(), None).items;
    let kept = items[0]["text"].as_str().unwrap().len();
    assert!(kept > 60_000, "{kept}");
    assert_eq!(items[0]["next_offset"], kept);
    assert!(Value::Array(items).to_string().len() <= 409_600);
}

#[test]
fn the_structured_part_counts_first() {
    let structured = Value::from("s".repeat(204_000));
    let text = "x".repeat(10_000);
    let fitted = fitted(
        vec![piece(&text), piece("b")],
        Bounds::default(),
        Some(&structured),
    );
    assert_eq!(
        fitted.items[0]["text"].as_str().unwrap().len(),
        204_800 - 204_002
    );
    assert_eq!(fitted.items[1]["omitted_items"], 1);
}

#[test]
fn many_facts_end_in_a_marker() {
    let fact = || {
        let value = Map::from_iter([("path".to_owned(), Value::from("p".repeat(300)))]);
        Piece::fact(value)
    };
    let items = fitted((0..3000).map(|_| fact()).collect(), Bounds::default(), None).items;
    let marker = items.last().unwrap();
    assert_eq!(marker["omitted_items"], 3000 - (items.len() as u64 - 1));
    assert!(items.len() > 600);
    assert!(Value::Array(items).to_string().len() <= 409_600);
}

#[test]
fn json_that_is_too_large_becomes_its_beginning() {
    let small = json!({"a": 1});
    assert_eq!(bounded_json(&small, 100_000, 409_600), small);
    let large = json!({"rows": vec!["\"row\""; 100_000]});
    let bounded = bounded_json(&large, 204_800, 409_600);
    assert_eq!(bounded["truncated"], true);
    assert_eq!(bounded["total_bytes"], large.to_string().len());
    assert!(
        large
            .to_string()
            .starts_with(bounded["text"].as_str().unwrap())
    );
    assert!(bounded.to_string().len() <= 409_600);
}

proptest! {
    #[test]
    fn escaped_prefixes_keep_both_bounds(text in any::<String>(), max in 0..80usize, escaped in 0..80usize) {
        let length = escaped_prefix(&text, max, escaped);
        let prefix = &text[..length];
        prop_assert!(length <= max);
        prop_assert!(serialised_len(&Value::from(prefix)) <= escaped + 2);
        // And no character more would fit.
        if let Some(next) = text[length..].chars().next() {
            let longer = &text[..length + next.len_utf8()];
            prop_assert!(longer.len() > max || serialised_len(&Value::from(longer)) > escaped + 2);
        }
    }

    #[test]
    fn any_texts_stay_below_any_ceiling(
        texts in proptest::collection::vec("[\\x00-\\x7fé😀]{0,400}", 0..12), max in 0..9000usize, structured in ".{0,3000}",
        with in any::<bool>(),
    ) {
        let bounds = Bounds::new(Some(max));
        let structured = with.then(|| bounded_json(&Value::from(structured), bounds.slice, bounds.serialised));
        let pieces: Vec<_> = texts.iter().map(|text| piece(text)).collect();
        let fitted = fitted(pieces, bounds, structured.as_ref());
        let whole = json!({"content": fitted.items, "structuredContent": structured, "isError": true});
        prop_assert!(whole.to_string().len() <= max.max(2048) + 40, "{} {max}", whole.to_string().len());
    }

    #[test]
    fn the_counter_counts(value in crate::mcp::decode::tests::any_json()) {
        prop_assert_eq!(serialised_len(&value), value.to_string().len());
    }
}

#[test]
fn a_page_may_be_borrowed_or_owned() {
    let page = render_text("abc", None, None, 1, Some(1));
    assert!(matches!(page.text, Cow::Borrowed("b")));
}
