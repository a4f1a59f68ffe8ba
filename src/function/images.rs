//! Images of the results of one round, as far as models that see get them: at most four and 16 MiB together, the
//! first ones win (`M-67`). Which they are does not depend on the model, and neither does what is said about the rest.

use serde_json::{Value, json};

use crate::chat::{Image, ImageSource, ToolResult};

/// How many images a round hands to a model, and how many bytes they have together, decoded.
const IMAGES: usize = 4;
const IMAGES_BYTES: u64 = 16 * 1024 * 1024;

/// Leaves each result the images that are within the bounds of the round; results that lose some say how many.
pub(super) fn limit(results: &mut [ToolResult]) {
    let (mut count, mut bytes) = (0, 0);
    for result in results {
        let before = result.output.images.len();
        result.output.images.retain(|image| {
            let size = size(image);
            let fits = count < IMAGES && bytes + size <= IMAGES_BYTES;
            if fits {
                count += 1;
                bytes += size;
            }
            fits
        });
        let left_out = before - result.output.images.len();
        if left_out > 0 {
            note(&mut result.output.value, left_out);
        }
    }
}

/// One that is gone weighs nothing: it becomes a sentence.
fn size(image: &Image) -> u64 {
    match &image.source {
        ImageSource::Bytes(bytes) => bytes.len() as u64,
        ImageSource::File(path) => std::fs::metadata(path).map_or(0, |facts| facts.len()),
        ImageSource::Url(_) => 0,
    }
}

fn note(value: &mut Value, left_out: usize) {
    let note = format!(
        "{left_out} of these images are beyond the {IMAGES} images and {} MiB that a round of calls may show; ask for \
         them in another round, fewer at once",
        IMAGES_BYTES / (1024 * 1024)
    );
    match value {
        Value::Object(map) => {
            map.insert("images_note".to_owned(), json!(note));
        }
        Value::Array(items) => items.push(json!({ "images_note": note })),
        Value::String(text) => {
            text.push('\n');
            text.push_str(&note);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Arguments, CallId, ToolCall, ToolOutput};

    fn result(dir: &std::path::Path, value: Value, sizes: &[(&str, u64)]) -> ToolResult {
        let image = |(name, size): &(&str, u64)| {
            let path = dir.join(name);
            std::fs::File::create(&path)
                .unwrap()
                .set_len(*size)
                .unwrap();
            Image {
                mime_type: "image/png".into(),
                source: ImageSource::File(path),
            }
        };
        ToolResult {
            call: ToolCall {
                id: CallId("c".into()),
                name: "mcp".into(),
                arguments: Arguments::parse(""),
            },
            output: ToolOutput {
                images: sizes.iter().map(image).collect(),
                ..ToolOutput::ok(value)
            },
        }
    }

    fn names(result: &ToolResult) -> Vec<String> {
        let name = |image: &Image| match &image.source {
            ImageSource::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
            other => panic!("{other:?}"),
        };
        result.output.images.iter().map(name).collect()
    }

    #[test]
    fn the_first_images_of_a_round_win_and_the_rest_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mib = 1024 * 1024;
        let mut results = [
            result(
                dir.path(),
                json!({"content": []}),
                &[("a", 10 * mib), ("b", 10 * mib)],
            ),
            result(dir.path(), json!([{"uri": "x"}]), &[("c", mib), ("d", mib)]),
            result(dir.path(), json!("text"), &[("e", mib), ("f", mib)]),
            result(dir.path(), json!({"content": []}), &[]),
        ];
        limit(&mut results);
        assert_eq!(names(&results[0]), ["a"]);
        assert_eq!(names(&results[1]), ["c", "d"]);
        assert_eq!(names(&results[2]), ["e"]);
        let said = |at: usize| results[at].output.to_text();
        assert!(
            said(0).contains("\"images_note\":\"1 of these images"),
            "{}",
            said(0)
        );
        assert!(!said(1).contains("note"), "{}", said(1));
        assert!(
            said(2).starts_with("text\n1 of these images"),
            "{}",
            said(2)
        );
        assert!(!said(3).contains("note"), "{}", said(3));
    }

    #[test]
    fn exactly_the_limit_is_within_it() {
        let dir = tempfile::tempdir().unwrap();
        let quarter = IMAGES_BYTES / 4;
        let four = [
            ("a", quarter),
            ("b", quarter),
            ("c", quarter),
            ("d", quarter),
        ];
        let mut results = [result(dir.path(), json!({}), &four)];
        limit(&mut results);
        assert_eq!(names(&results[0]).len(), 4);
        assert_eq!(results[0].output.value, json!({}));
    }
}
