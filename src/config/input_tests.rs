//! Tests of the module beside.

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n....";

async fn load(text: &str, files: &[&str], cwd: &Path) -> Result<Input> {
    let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
    let fetch = |url: String| async move {
        if url.ends_with("gone") {
            return Err(Error::user("404"));
        }
        Ok(format!("page of {url}").into_bytes())
    };
    Input::from_files(text, &files, cwd, fetch).await
}

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src/tief")).unwrap();
    for (name, bytes) in [
        ("a.txt", "eins\n".as_bytes()),
        ("ü.md", "zwei".as_bytes()),
        ("src/b.rs", "drei".as_bytes()),
        ("src/tief/c.rs", "vier".as_bytes()),
        ("x.png", PNG),
        ("binary", b"\x00\x01\xff"),
        ("wide.txt", b"\xff\xfeh\x00i\x00"),
        ("[odd].txt", b"odd"),
    ] {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    dir
}

fn said(input: &Input) -> String {
    match input.parts(str::to_owned).first() {
        Some(Part::Text(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn text_is_verbatim_and_never_a_command() {
    for text in [
        "!touch pwned",
        ".exit",
        "::: x",
        "{{__cwd__}}",
        "__INPUT__",
        "  ",
        "/x\n.y",
    ] {
        let input = Input::from_str(text);
        assert_eq!(input.text(), text);
        assert_eq!(input.parts(str::to_owned), [Part::Text(text.to_owned())]);
    }
    assert!(Input::from_str(" \n").is_empty());
}

#[test]
fn what_is_piped_in_follows_the_text() {
    assert_eq!(
        Input::from_str("frage").with_stdin("a\nb\n").text(),
        "frage\n\na\nb"
    );
    assert_eq!(
        Input::from_str("").with_stdin("nur das\r\n").text(),
        "nur das"
    );
    assert_eq!(Input::from_str("frage").with_stdin("\n").text(), "frage");
}

#[tokio::test]
async fn files_patterns_and_urls_are_attached_in_order() {
    let dir = directory();
    let input = load(
        "frage",
        &["ü.md", "https://x/ü", "src/**/*.rs", "a.txt"],
        dir.path(),
    )
    .await
    .unwrap();
    let text = said(&input);
    assert!(text.starts_with("frage\n\n===="), "{text}");
    let order: Vec<usize> = ["zwei", "page of https://x/ü", "drei", "vier", "eins"]
        .iter()
        .map(|word| text.find(word).unwrap_or_else(|| panic!("{word}: {text}")))
        .collect();
    assert!(order.is_sorted(), "{text}");
    assert!(text.contains("c.rs ====\nvier"), "{text}");
}

#[tokio::test]
async fn images_are_parts_by_their_bytes() {
    let dir = directory();
    std::fs::write(dir.path().join("foto.txt"), b"\xff\xd8\xff....").unwrap();
    let input = load("sieh", &["x.png", "foto.txt"], dir.path())
        .await
        .unwrap();
    let parts = input.parts(str::to_owned);
    assert_eq!(parts.len(), 3);
    let types: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Image(image) => Some(image.mime_type.as_str()),
            Part::Text(_) => None,
        })
        .collect();
    assert_eq!(types, ["image/png", "image/jpeg"]);
    // An image alone is something to say.
    let alone = load("", &["x.png"], dir.path()).await.unwrap();
    assert!(!alone.is_empty());
    assert_eq!(alone.parts(str::to_owned).len(), 1);
}

#[tokio::test]
async fn what_cannot_be_attached_is_an_error_that_names_it() {
    let dir = directory();
    for (file, words) in [
        ("binary", "neither text nor an image"),
        ("gone.txt", "no file `gone.txt`"),
        ("src", "is a directory"),
        ("*.java", "finds no file"),
        ("{a", "`{a`"),
        ("https://x/gone", "404"),
    ] {
        let error = load("x", &[file], dir.path()).await.unwrap_err();
        assert!(error.to_string().contains(words), "{file}: {error:?}");
    }
    let hint = load("x", &["src"], dir.path()).await.unwrap_err();
    assert!(hint.hints()[0].contains("**"));
}

#[tokio::test]
async fn a_file_named_like_a_pattern_is_that_file() {
    let dir = directory();
    let input = load("", &["[odd].txt"], dir.path()).await.unwrap();
    assert!(said(&input).ends_with("odd"));
}

#[tokio::test]
async fn a_pattern_works_in_a_directory_that_looks_like_one() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("[x]{y}*");
    std::fs::create_dir_all(odd.join("unter")).unwrap();
    std::fs::write(odd.join("unter/a.txt"), "gefunden").unwrap();
    std::fs::write(odd.join("unter/b.md"), "nicht").unwrap();
    let input = load("", &["unter/../**/*.txt"], &odd).await.unwrap();
    assert!(said(&input).ends_with("gefunden"));
    let absolute = dir.path().join("*/unter/?.txt");
    let input = load("", &[absolute.to_str().unwrap()], Path::new("/"))
        .await
        .unwrap();
    assert!(said(&input).ends_with("gefunden"));
}

#[tokio::test]
async fn text_in_utf16_is_text() {
    let dir = directory();
    let input = load("", &["wide.txt"], dir.path()).await.unwrap();
    assert!(said(&input).ends_with("hi"));
}

#[test]
fn sizes_are_bounded() {
    let mut input = Input::from_str("x");
    let error = input.attach("big", vec![b'a'; MAX_TEXT + 1]).unwrap_err();
    assert!(error.to_string().contains("`big`"));
    assert!(input.attachments().is_empty());
}

#[test]
fn a_template_goes_around_text_and_attached_text() {
    let mut input = Input::from_str("frage");
    input.attach("a", b"anhang".to_vec()).unwrap();
    let parts = input.parts(|text| format!("<{text}>"));
    assert_eq!(
        parts,
        [Part::Text("<frage\n\n==== a ====\nanhang>".to_owned())]
    );
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        let mut input = Input::from_str("");
        let _ = input.attach("x", bytes);
    }

    #[test]
    fn no_argument_panics(argument in ".{0,30}") {
        let dir = tempfile::tempdir().unwrap();
        let _ = sources(&[argument.replace("..", "").replace('/', "")], dir.path());
    }
}

#[tokio::test]
async fn a_url_is_named_without_its_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let url = "https://me:s3cret@host/page?token=hush#x".to_owned();
    for (bytes, fits) in [(&b"page"[..], true), (b"\x00\x01", false)] {
        let fetch = |asked: String| {
            assert_eq!(asked, url);
            async move { Ok(bytes.to_vec()) }
        };
        let input = Input::from_files("x", std::slice::from_ref(&url), dir.path(), fetch).await;
        assert_eq!(input.is_ok(), fits);
        let said = format!("{input:?}");
        assert!(said.contains("host/page"), "{said}");
        assert!(!said.contains("s3cret") && !said.contains("hush"), "{said}");
    }
}
