use super::*;

fn piece<'a>(
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: &'a str,
) -> Piece<'a> {
    Piece {
        index,
        id,
        name,
        arguments,
    }
}

fn book(pieces: &[Piece<'_>]) -> Vec<(String, String, String)> {
    let mut book = CallBook::default();
    for piece in pieces {
        book.add(*piece).unwrap();
    }
    book.take()
        .into_iter()
        .map(|call| (call.id.0, call.name, call.arguments.to_text()))
        .collect()
}

fn row(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn an_id_or_a_name_that_is_repeated_is_the_same_call() {
    assert_eq!(
        book(&[
            piece(Some(0), Some("c"), Some("fn"), "{\"a\""),
            piece(Some(0), Some("c"), Some("fn"), ":1"),
            piece(Some(0), Some(""), Some(""), "}"),
        ]),
        [row("c", "fn", "{\"a\":1}")]
    );
}

#[test]
fn a_name_in_pieces_or_growing_is_one_name() {
    assert_eq!(
        book(&[
            piece(Some(0), Some("c"), Some("get_"), ""),
            piece(Some(0), None, Some("x"), "{}")
        ]),
        [row("c", "get_x", "{}")]
    );
    assert_eq!(
        book(&[
            piece(Some(0), Some("c"), Some("get_"), ""),
            piece(Some(0), None, Some("get_x"), "{}")
        ]),
        [row("c", "get_x", "{}")]
    );
}

#[test]
fn another_name_on_a_used_index_is_another_call() {
    assert_eq!(
        book(&[
            piece(Some(0), None, Some("a"), "{}"),
            piece(Some(0), None, Some("b"), "{}")
        ])
        .len(),
        2
    );
}

#[test]
fn calls_with_one_id_get_two() {
    let calls = book(&[
        piece(Some(0), Some("c"), Some("a"), "{}"),
        piece(Some(1), Some("c"), Some("a"), "{}"),
    ]);
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].0, calls[1].0);
}

#[test]
fn a_call_without_a_name_is_none() {
    assert!(
        book(&[
            piece(Some(0), Some("c"), None, "{}"),
            piece(None, None, None, "x")
        ])
        .is_empty()
    );
}

#[test]
fn arguments_that_replace_others_are_bounded_together() {
    let mut book = CallBook::default();
    let whole = "x".repeat(MAX_ARGUMENTS / 2);
    for index in 0..2 {
        let piece = Piece {
            index: Some(index),
            name: Some("a"),
            arguments: "half",
            ..Piece::default()
        };
        book.add(piece).unwrap();
        // What is replaced no longer counts.
        book.settle(index, &whole).unwrap();
        book.settle(index, &whole).unwrap();
    }
    assert!(matches!(
        book.settle(1, &format!("{whole}x")),
        Err(Fault::TooLarge(_))
    ));
}
