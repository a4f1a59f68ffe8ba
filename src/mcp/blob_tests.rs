use std::fs;

use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

fn server() -> ServerName {
    ServerName::new("s").unwrap()
}

fn render(b64: &str, mime: Option<&str>) -> (tempfile::TempDir, Result<RenderedBlob, BlobError>) {
    let home = tempfile::tempdir().unwrap();
    let result = render_blob(
        b64,
        mime,
        &server(),
        &SpillDir::new(home.path().join("tree")),
    );
    (home, result)
}

fn text(b64: &str) -> String {
    match render(b64, None).1 {
        Ok(RenderedBlob::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn bytes(b64: &str) -> Vec<u8> {
    decode_bytes(b64, &AbortToken::new()).unwrap()
}

fn error(b64: &str) -> String {
    let streamed = render(b64, None).1.unwrap_err().to_string();
    let direct = decode_bytes(b64, &AbortToken::new()).unwrap_err();
    assert_eq!(streamed, direct.to_string());
    streamed
}

/// Bytes that are not UTF-8, from their first on.
fn noise(size: usize) -> Vec<u8> {
    (0..size)
        .map(|index| 0xff ^ u8::try_from((index * 7919) % 251).unwrap())
        .collect()
}

#[test]
fn text_comes_back_whatever_is_claimed() {
    let (home, result) = render("eyJhIjoxfQ==", Some("application/octet-stream"));
    assert_eq!(result.unwrap(), RenderedBlob::Text("{\"a\":1}".into()));
    assert!(!home.path().join("tree").exists(), "text leaves no file");
    assert_eq!(text(""), "");
    assert_eq!(text("w7w="), "ü");
}

#[test]
fn anything_else_is_spilled() {
    let payload = b"\x89PNG\r\n\x1a\n\xff";
    let (_home, result) = render(&BASE64_STANDARD.encode(payload), Some("text/plain"));
    let Ok(RenderedBlob::Spilled(spilled)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(fs::read(&spilled.path).unwrap(), payload);
    assert_eq!(spilled.size_bytes, payload.len() as u64);
    assert_eq!(spilled.sha256, hex(&Sha256::digest(payload)));
    assert_eq!(spilled.image, Some("image/png"));
    let name = spilled.path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("{}.bin", spilled.sha256));
}

#[test]
fn a_character_cut_at_the_end_is_no_text() {
    let (_home, result) = render(&BASE64_STANDARD.encode(b"abc\xc3"), None);
    let Ok(RenderedBlob::Spilled(spilled)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(fs::read(spilled.path).unwrap(), b"abc\xc3");
    assert_eq!(spilled.image, None);
}

#[test]
fn a_payload_that_stops_being_text_late_is_whole() {
    let mut payload = "ü".repeat(100_000).into_bytes();
    payload.extend_from_slice(b"\xff\x00");
    payload.extend_from_slice("z".repeat(100_000).as_bytes());
    let (_home, result) = render(&BASE64_STANDARD.encode(&payload), None);
    let Ok(RenderedBlob::Spilled(spilled)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(fs::read(spilled.path).unwrap(), payload);
    assert_eq!(spilled.sha256, hex(&Sha256::digest(&payload)));
}

#[test]
fn both_alphabets_padding_and_white_space() {
    let payload = b"\xfb\xff\xfe?>\x00";
    let standard = BASE64_STANDARD.encode(payload);
    assert!(standard.contains('+') && standard.contains('/'));
    let url_safe = BASE64_URL_SAFE_NO_PAD.encode(payload);
    let mixed = standard.replacen('+', "-", 1);
    let lines: Vec<String> = standard.chars().map(String::from).collect();
    let lines = lines.join("\r\n \t");
    for b64 in [standard, url_safe, mixed, lines] {
        assert_eq!(bytes(&b64), payload, "{b64}");
    }
    for (b64, expected) in [
        ("QQ", "A"),
        ("QQ==", "A"),
        ("QQ=\n=\n", "A"),
        ("QUI", "AB"),
        ("QUI=", "AB"),
        ("QR==", "A"),
    ] {
        assert_eq!(text(b64), expected, "{b64}");
    }
}

#[test]
fn what_is_not_base64_has_a_position() {
    let rows = [
        ("!!!", "a character outside its alphabet at byte 0"),
        ("QUJD QU!D", "a character outside its alphabet at byte 7"),
        ("QUJDé", "a character outside its alphabet at byte 4"),
        ("QQ==QQ==", "a character after the padding at byte 4"),
        ("QQ=", "padding that does not fit at byte 2"),
        ("QUJD=", "padding that does not fit at byte 4"),
        ("QQ===", "padding that does not fit at byte 2"),
        ("QUJDQ", "it ends after a quarter of a group at byte 5"),
        ("=", "padding that does not fit at byte 0"),
    ];
    for (b64, message) in rows {
        let error = error(b64);
        assert!(error.ends_with(message), "{b64}: {error}");
    }
    let late = format!("{}!", "QUJD".repeat(100_000));
    assert!(error(&late).ends_with("at byte 400000"));
}

#[test]
fn slices_that_do_not_align_join() {
    let payload = noise(SLICE * 3 + 17);
    let mut b64 = BASE64_STANDARD_NO_PAD.encode(&payload);
    assert_eq!(bytes(&b64), payload);
    b64.insert(SLICE - 1, '\n');
    assert_eq!(bytes(&b64), payload);
    b64.insert(5, ' ');
    assert_eq!(bytes(&b64), payload);
}

#[test]
fn the_ceiling_ends_the_decoding() {
    let exact = "/".repeat(BLOB_CEILING_BYTES / 3 * 4);
    let (_home, result) = render(&exact, None);
    let Ok(RenderedBlob::Spilled(spilled)) = result else {
        panic!("{result:?}")
    };
    assert_eq!(spilled.size_bytes, (BLOB_CEILING_BYTES / 3 * 3) as u64);
    let over = format!("{exact}{}", "/".repeat(8));
    let (home, result) = render(&over, None);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("52428800 bytes (50 MiB)"), "{error}");
    let left: Vec<_> = fs::read_dir(home.path().join("tree/s")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_payload_that_cannot_be_stored_says_what_it_was() {
    let home = tempfile::tempdir().unwrap();
    let blocked = home.path().join("file");
    fs::write(&blocked, b"").unwrap();
    let payload = noise(200_000);
    let result = render_blob(
        &BASE64_STANDARD.encode(&payload),
        None,
        &server(),
        &SpillDir::new(&blocked),
    );
    let message = result.unwrap_err().to_string();
    assert!(message.contains("200000 bytes"), "{message}");
    assert!(
        message.contains(&hex(&Sha256::digest(&payload))),
        "{message}"
    );
}

#[test]
fn cancelling_ends_the_decoding() {
    let abort = AbortToken::new();
    abort.cancel();
    let home = tempfile::tempdir().unwrap();
    let result = render_blob_until("QUJD", None, &server(), &SpillDir::new(home.path()), &abort);
    assert!(matches!(result, Err(BlobError::Cancelled)));
}

#[test]
fn images_are_known_by_their_first_bytes() {
    let rows: [(&[u8], Option<&str>); 6] = [
        (b"\x89PNG\r\n\x1a\nxxxx", Some("image/png")),
        (b"\xff\xd8\xff\xe0xxxxxxxx", Some("image/jpeg")),
        (b"GIF89axxxxxx", Some("image/gif")),
        (b"RIFFxxxxWEBP", Some("image/webp")),
        (b"RIFFxxxxWAVE", None),
        (b"\x89PN", None),
    ];
    for (head, expected) in rows {
        assert_eq!(image_type(head), expected);
    }
}

proptest! {
    #[test]
    fn any_bytes_survive_any_spelling(payload in proptest::collection::vec(any::<u8>(), 0..400), url in any::<bool>(), every in 1..9usize) {
        let b64 = if url { BASE64_URL_SAFE_NO_PAD.encode(&payload) } else { BASE64_STANDARD.encode(&payload) };
        let spaced: String = b64.chars().enumerate()
            .flat_map(|(index, c)| std::iter::repeat_n('\n', usize::from(index % every == 0)).chain([c]))
            .collect();
        prop_assert_eq!(bytes(&b64), payload.clone());
        prop_assert_eq!(bytes(&spaced), payload);
    }

    #[test]
    fn any_text_is_decoded_or_refused(b64 in "[A-Za-z0-9+/=_ \n!-]{0,60}") {
        let _ = decode_bytes(&b64, &AbortToken::new());
    }
}
