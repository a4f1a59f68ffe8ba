//! JSON that others wrote: one character that cannot be read costs that character and not the message around it.

use std::borrow::Cow;

use serde_json::Value;

/// Half a surrogate pair in hexadecimal digits becomes this: U+FFFD, as in text that is not UTF-8.
const REPLACEMENT: &[u8; 4] = b"fffd";

/// Parses `bytes`. Bytes that are not UTF-8 and halves of surrogate pairs (`"\ud83d"`, what a program in JavaScript
/// writes when it cuts a text inside an emoji) become U+FFFD.
///
/// # Errors
/// It is not JSON otherwise either.
pub fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| {
        let text = String::from_utf8_lossy(bytes);
        match without_lone_surrogates(text.as_bytes()) {
            Cow::Owned(mended) => serde_json::from_slice(&mended),
            Cow::Borrowed(_) if matches!(text, Cow::Owned(_)) => serde_json::from_str(&text),
            Cow::Borrowed(_) => Err(error),
        }
    })
}

/// Replaces every escape of half a surrogate pair by one of the same length.
fn without_lone_surrogates(text: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = text
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| *byte == b'\\'))
    {
        at += found;
        at += match surrogate(text, at) {
            Some(Half::High) if surrogate(text, at + 6) == Some(Half::Low) => 12,
            Some(_) => {
                if let Some(digits) = mended.to_mut().get_mut(at + 2..at + 6) {
                    digits.copy_from_slice(REPLACEMENT);
                }
                6
            }
            // An escaped backslash begins no escape.
            None => 2,
        };
    }
    mended
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    High,
    Low,
}

/// Which half the escape at `at` means, if it is one of those.
fn surrogate(text: &[u8], at: usize) -> Option<Half> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let code = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match code {
        0xD800..=0xDBFF => Some(Half::High),
        0xDC00..=0xDFFF => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn half_a_pair_costs_one_character() {
        for (text, read) in [
            (r#"{"a":"x\ud83d"}"#, "x\u{fffd}"),
            (r#"{"a":"\uDE00 y"}"#, "\u{fffd} y"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}😀"),
            (r#"{"a":"\ud83d\\ude00"}"#, "\u{fffd}\\ude00"),
            (r#"{"a":"\ud83d\n"}"#, "\u{fffd}\n"),
            (r#"{"a":"\\ud83d \ude00"}"#, "\\ud83d \u{fffd}"),
        ] {
            assert_eq!(
                parse(text.as_bytes()).unwrap(),
                json!({"a": read}),
                "{text}"
            );
        }
    }

    #[test]
    fn bytes_that_are_not_text_cost_those_bytes() {
        assert_eq!(
            parse(b"{\"a\":\"x\xff\\ud800y\"}").unwrap(),
            json!({"a": "x\u{fffd}\u{fffd}y"})
        );
    }

    #[test]
    fn what_is_not_json_stays_an_error() {
        for text in [
            "",
            "{",
            r#"{"a":"\ud83d"#,
            r#"{"a":"\uzzzz"}"#,
            r#""\u+800""#,
            "\\",
            "\\ud8",
            "\\ud800\\",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_json_is_read_as_it_is(text: String) {
            let written = serde_json::to_string(&text).unwrap();
            proptest::prop_assert_eq!(parse(written.as_bytes()).unwrap(), Value::String(text));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }
    }
}
