//! Lists end, whatever the cursors do.

use serde_json::json;

use super::*;

fn pages(answers: impl Fn(usize) -> Value) -> (Listing, usize) {
    let mut pager = Pager::new(ListKind::Tools);
    for page in 1.. {
        if pager.page(answers(page)) == Next::Done {
            return (pager.finish(), page);
        }
    }
    unreachable!("the list has no end");
}

#[test]
fn pages_are_gathered_until_there_is_no_cursor() {
    let (listing, asked) = pages(|page| match page {
        1 => json!({ "tools": [1, 2], "nextCursor": "a" }),
        2 => json!({ "tools": [], "nextCursor": "b" }),
        _ => json!({ "tools": [3], "nextCursor": null }),
    });
    assert_eq!(listing.items, [json!(1), json!(2), json!(3)]);
    assert_eq!((listing.warning, asked), (None, 3));
}

/// The protocol forbids to conclude anything from a cursor's value.
#[test]
fn a_repeated_cursor_that_leads_to_something_new_is_followed() {
    let (listing, _) = pages(|page| match page {
        1..5 => json!({ "tools": [page], "nextCursor": "" }),
        _ => json!({ "tools": [page] }),
    });
    assert_eq!(listing.items.len(), 5);
    assert_eq!(listing.warning, None);
}

#[test]
fn a_repeated_cursor_with_nothing_new_stops_with_what_was_gathered() {
    let (listing, asked) = pages(|_| json!({ "tools": ["a", "b"], "nextCursor": "same" }));
    assert_eq!(listing.items, ["a", "b"]);
    assert_eq!(asked, 2);
    assert!(listing.warning.unwrap().contains("page 2"));
}

#[test]
fn endless_pages_stop_at_the_bound() {
    let (listing, asked) = pages(|page| json!({ "tools": [page], "nextCursor": page.to_string() }));
    assert_eq!((listing.items.len(), asked), (MAX_PAGES, MAX_PAGES));
    assert!(listing.warning.is_some());
    let (listing, asked) = pages(|page| json!({ "tools": [], "nextCursor": page.to_string() }));
    assert_eq!((listing.items.len(), asked), (0, MAX_PAGES));
}

#[test]
fn items_and_bytes_are_bounded() {
    let many: Vec<usize> = (0..=MAX_ITEMS).collect();
    let (listing, _) = pages(|_| json!({ "tools": many }));
    assert_eq!(listing.items.len(), MAX_ITEMS);
    assert!(listing.warning.is_some());
    let item = "x".repeat(MAX_BYTES / 4);
    let (listing, asked) = pages(|page| json!({ "tools": [item], "nextCursor": page.to_string() }));
    assert_eq!((listing.items.len(), asked), (3, 4));
}

#[test]
fn answers_of_another_shape_are_empty_with_a_warning() {
    for answer in [
        json!({}),
        json!({ "tools": null }),
        json!({ "tools": {} }),
        json!(7),
    ] {
        let (listing, asked) = pages(|_| answer.clone());
        assert!(listing.items.is_empty() && listing.warning.is_some());
        assert_eq!(asked, 1);
    }
}
