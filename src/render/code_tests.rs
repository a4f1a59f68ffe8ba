use super::*;

#[test]
fn the_code_of_an_answer_is_taken_out() {
    let answer =
        "Do this:\n\n```sh\nls -l\necho \"```\"\n```\n\nand then\n\n~~~\n  indented\n~~~\nbye\n";
    assert_eq!(extract_code(answer), "ls -l\necho \"```\"\n\n  indented\n");
    assert_eq!(extract_code("ls -l"), "ls -l\n");
    assert_eq!(extract_code("\n\nls\n\n"), "ls\n");
    assert_eq!(extract_code(""), "");
    assert_eq!(
        extract_code("```rust\nfn main() {}"),
        "fn main() {}\n",
        "a cut answer has no closing fence"
    );
    assert_eq!(
        extract_code("````md\n```sh\nls\n```\n````\n"),
        "```sh\nls\n```\n"
    );
    assert_eq!(extract_code("```\n```\n"), "");
    assert_eq!(
        extract_code("- item\n  ```sh\n  ls\n    x\n  ```\n"),
        "ls\n  x\n"
    );
}

#[test]
fn only_a_fence_is_a_fence() {
    let language = |line| Fence::open(line).map(|fence| fence.language);
    assert_eq!(language("```rust,ignore x"), Some("rust".to_owned()));
    assert_eq!(language("  ~~~ python"), Some("python".to_owned()));
    assert_eq!(language("```"), Some(String::new()));
    assert_eq!(language("``"), None);
    assert_eq!(language("```inline```"), None);
    assert_eq!(language("text ```"), None);
}

#[test]
fn known_languages_are_coloured_and_their_text_is_kept() {
    let paint = Paint {
        theme: Theme::Dark,
        color: true,
        true_color: false,
    };
    let mut rust = Highlighter::new("rust", paint);
    let line = rust.line("let x = \"é\"; // y");
    assert!(line.contains("\x1b[38;5;"), "{line:?}");
    assert_eq!(crate::utils::text::sanitize(&line), "let x = \"é\"; // y");
    assert_eq!(Highlighter::new("no-such-language", paint).line("x"), "x");
    assert_eq!(
        Highlighter::new(
            "rust",
            Paint {
                color: false,
                ..paint
            }
        )
        .line("let x"),
        "let x"
    );
    assert_eq!(
        rust.line(&"x".repeat(MAX_LINE + 1)),
        "x".repeat(MAX_LINE + 1)
    );
}

#[test]
fn colours_map_to_the_nearest_of_256() {
    let nearest = |r, g, b| nearest_of_256(Color { r, g, b, a: 255 });
    assert_eq!(nearest(0, 0, 0), 16);
    assert_eq!(nearest(255, 255, 255), 231);
    assert_eq!(nearest(255, 0, 0), 196);
    assert_eq!(nearest(128, 128, 128), 244);
    assert_eq!(nearest(95, 135, 175), 67);
}
