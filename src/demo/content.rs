//! What the demo server serves. Everything is computed or embedded, so that a reader can check each byte it gets.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Spoil;

/// The guide: Markdown, a few kilobytes.
pub const GUIDE_URI: &str = "demo://guide";
/// The log: [`LOG_LINES`] lines, about 2 MB.
pub const LOG_URI: &str = "demo://log";
/// A picture.
pub const LOGO_URI: &str = "demo://logo.png";
/// Text that claims to be binary.
pub const NOTES_URI: &str = "demo://notes";
/// A resource that is marked as meant for the model.
pub const AUDIENCE_URI: &str = "demo://hints";
/// The one template.
pub const TEMPLATE: &str = "demo://greeting/{name}";

/// The guide's text.
pub const GUIDE: &str = include_str!("guide.md");
/// The text behind [`NOTES_URI`].
pub const NOTES: &str = "These notes are plain text – with an é and a 🐺 in them – although their type says octet-stream.\n";
/// The text behind [`AUDIENCE_URI`].
const HINTS: &str =
    "Ask for the log with the pattern ERROR before paging through it: most of it is noise.\n";

/// How many lines the log has.
pub const LOG_LINES: usize = 30_500;
/// Every so many lines, one is an error.
const ERROR_EVERY: usize = 2_503;

/// 32 by 32 pixels: hills under a moon.
const LOGO_BASE64: &str = concat!(
    "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAMAAABEpIrGAAAACVBMVEUYGBvZdwb95oq9ARswAAAAS0lEQVR42u2R0QoAIAgD3f7/o0OM",
    "IEhHRPTSvckOkWn2CtZpoPLUIIVxLJAbxq0jZQ+6Sf0LDToqTwxM+FzEbsyLsBSGAmRCwReCBsFTAmQrhKBIAAAAAElFTkSuQmCC"
);

/// The picture's bytes.
pub fn logo() -> Vec<u8> {
    STANDARD.decode(LOGO_BASE64).unwrap_or_default()
}

/// The picture as the server sends it. The spoiled one is as valid, but another.
pub(super) fn logo_base64(spoiled: bool) -> String {
    if spoiled {
        let mut bytes = logo();
        bytes.extend_from_slice(b"\0spoiled");
        STANDARD.encode(bytes)
    } else {
        LOGO_BASE64.to_owned()
    }
}

/// [`NOTES`] as the server sends it; spoiled, it is not UTF-8.
pub(super) fn notes_base64(spoiled: bool) -> String {
    let mut bytes = NOTES.as_bytes().to_vec();
    if spoiled {
        bytes.push(0xff);
    }
    STANDARD.encode(bytes)
}

/// The text behind [`AUDIENCE_URI`].
pub(super) fn hints() -> &'static str {
    HINTS
}

/// What [`TEMPLATE`] gives for `name`.
pub fn greeting(name: &str) -> String {
    format!("Hello, {name}! Greetings from coyote's demo server.\n")
}

/// The log, the same on every call: lines end with CR LF, as on the machine it pretends to come from.
pub fn log_text() -> String {
    const WORK: [&str; 5] = [
        "accepted connection",
        "served request",
        "refreshed cache",
        "rotated token",
        "closed connection",
    ];
    let mut text = String::with_capacity(LOG_LINES * 80);
    let mut seed: u32 = 0x00C0_707E;
    for line in 1..=LOG_LINES {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (level, work) = if line % ERROR_EVERY == 0 {
            ("ERROR", "upstream did not answer")
        } else {
            let pick = usize::try_from(seed >> 16).unwrap_or_default();
            (
                "INFO ",
                WORK.get(pick % WORK.len()).copied().unwrap_or("idle"),
            )
        };
        let (hour, minute, second) = (line / 3_600, line / 60 % 60, line % 60);
        let _ = write!(
            text,
            "2026-03-01T{hour:02}:{minute:02}:{second:02}Z {level} worker-{} {work} after {} ms\r\n",
            seed >> 29,
            seed >> 20 & 0x3ff,
        );
    }
    text
}

/// The 1-based numbers of the log's `ERROR` lines.
pub fn error_lines() -> Vec<usize> {
    (1..=LOG_LINES)
        .filter(|line| line % ERROR_EVERY == 0)
        .collect()
}

/// `tools/list`.
pub(super) fn tools(spoil: Option<Spoil>) -> Vec<Value> {
    let read_only = json!({ "readOnlyHint": true });
    let mut add = json!({ "a": { "type": "number" }, "b": { "type": "number" } });
    if spoil == Some(Spoil::Schema) {
        add = json!({});
    }
    vec![
        json!({ "name": "add", "title": "Add two numbers", "description": "Adds two numbers and returns the sum.",
            "inputSchema": { "type": "object", "properties": add, "required": ["a", "b"] },
            "outputSchema": { "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] },
            "annotations": read_only }),
        json!({ "name": "divide", "description": "Divides one number by another; dividing by zero is an error.",
            "inputSchema": { "type": "object", "properties": { "dividend": { "type": "number" }, "divisor": { "type": "number" } },
                "required": ["dividend", "divisor"] },
            "annotations": read_only }),
        json!({ "name": "word_count", "title": "Count words", "description": "Counts the lines, words and characters of a text.",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "string", "description": "The text to count." } },
                "required": ["text"] },
            "annotations": read_only }),
        json!({ "name": "slow_count", "description": "Counts to a number, slowly, and reports its progress.",
            "inputSchema": { "type": "object", "properties": {
                "to": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 10 },
                "delay_ms": { "type": "integer", "minimum": 0, "maximum": 10_000, "default": 300 } } },
            "annotations": read_only }),
        json!({ "name": "draw_logo", "description": "Draws the demo's logo: a PNG picture of hills under a moon.",
            "inputSchema": { "type": "object", "properties": {} },
            "annotations": read_only }),
        json!({ "name": "log_summary", "title": "Summarise the log",
            "description": "Counts the lines and the errors of the demo's log, as structured data.",
            "inputSchema": { "type": "object", "properties": {} },
            "outputSchema": { "type": "object", "properties": { "lines": { "type": "integer" }, "errors": { "type": "integer" },
                "error_lines": { "type": "array", "items": { "type": "integer" } } } },
            "annotations": read_only }),
    ]
}

/// `resources/list`.
pub(super) fn resources(spoil: Option<Spoil>) -> Vec<Value> {
    let mut log = json!({ "uri": LOG_URI, "name": "server-log", "title": "Server log",
        "description": "A day of a busy server's log, 2 MB with a few ERROR lines. Filter it by a pattern instead of paging.",
        "mimeType": "text/plain" });
    if spoil == Some(Spoil::Search) {
        log = json!({ "uri": "demo://x", "name": "x", "mimeType": "text/plain" });
    }
    let mut hints = json!({ "uri": AUDIENCE_URI, "name": "hints", "title": "Hints for the model",
        "description": "What a model should know before it reads the rest.",
        "mimeType": "text/plain", "annotations": { "audience": ["assistant"], "priority": 0.9 } });
    if spoil == Some(Spoil::Audience) {
        hints["annotations"] = json!({});
    }
    vec![
        json!({ "uri": GUIDE_URI, "name": "guide", "title": "A guide to coyote",
            "description": "What coyote does with MCP servers: searching, reading in pages, patterns, pictures, templates.",
            "mimeType": "text/markdown", "size": GUIDE.len() }),
        log,
        json!({ "uri": LOGO_URI, "name": "logo", "description": "The demo's logo, a PNG picture.",
            "mimeType": "image/png", "size": logo().len() }),
        json!({ "uri": NOTES_URI, "name": "notes", "description": "Plain text that its server labels as binary.",
            "mimeType": "application/octet-stream", "size": NOTES.len() }),
        hints,
    ]
}

/// `resources/templates/list`.
pub(super) fn templates() -> Vec<Value> {
    vec![
        json!({ "uriTemplate": TEMPLATE, "name": "greeting", "title": "A greeting",
            "description": "A greeting for whoever `name` says.", "mimeType": "text/plain" }),
    ]
}

/// `prompts/list`: required and optional arguments, none at all, and a name that has to be quoted.
pub(super) fn prompts() -> Vec<Value> {
    let argument = |name: &str, description: &str, required: bool| json!({ "name": name, "description": description, "required": required });
    vec![
        json!({ "name": "review", "title": "Review code", "description": "Asks for a review of code.",
            "arguments": [
                argument("language", "The language the code is written in", true),
                argument("focus", "What matters most: bugs, style or speed", false),
            ] }),
        json!({ "name": LESSON_PROMPT, "description": "Begins a lesson: a dialog of three messages, one of them the assistant's.",
            "arguments": [argument("topic", "What the lesson is about", true)] }),
        json!({ "name": NOTES_PROMPT, "description": "Hands over the notes as an embedded resource, and the logo as a picture." }),
        json!({ "name": "Log Report", "description": "Asks for a report on the server's log.",
            "arguments": [argument("level", "Which lines count: ERROR or INFO", false)] }),
    ]
}

/// The prompt of several messages.
pub const LESSON_PROMPT: &str = "lesson";
/// The prompt with an embedded resource.
pub const NOTES_PROMPT: &str = "notes";
/// What [`NOTES_PROMPT`] says first.
pub const NOTES_QUESTION: &str =
    "Read these notes, then look at the picture. What do they have in common?";

/// What [`LESSON_PROMPT`] says about `topic`: role and text.
pub fn lesson(topic: &str) -> [(&'static str, String); 3] {
    [
        ("user", format!("I want to learn about {topic}.")),
        (
            "assistant",
            format!("Gladly. What do you know about {topic} already?"),
        ),
        ("user", "Nothing yet: begin at the beginning.".to_owned()),
    ]
}

/// `prompts/get`, or what is wrong with the parameters. The spoiled lesson is another dialog.
pub(super) fn prompt(params: &Value, spoiled: bool) -> Result<Value, String> {
    let message = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    let given = |key: &str| {
        params["arguments"][key]
            .as_str()
            .filter(|value| !value.is_empty())
    };
    let needed = |key: &str| given(key).ok_or_else(|| format!("the argument `{key}` is missing"));
    let messages = match params["name"].as_str().unwrap_or_default() {
        "review" => {
            let (language, focus) = (needed("language")?, given("focus").unwrap_or("bugs"));
            let text = format!(
                "Review the {language} code that I send next. Look for {focus} first, and quote each line you write about."
            );
            vec![message("user", &text)]
        }
        LESSON_PROMPT => {
            let mut lesson = lesson(needed("topic")?).map(|(role, text)| message(role, &text));
            if spoiled {
                lesson.reverse();
            }
            lesson.into()
        }
        NOTES_PROMPT => {
            let notes = json!({ "uri": NOTES_URI, "mimeType": "text/plain", "text": NOTES });
            let picture =
                json!({ "type": "image", "mimeType": "image/png", "data": logo_base64(false) });
            vec![
                message("user", NOTES_QUESTION),
                json!({ "role": "user", "content": { "type": "resource", "resource": notes } }),
                json!({ "role": "user", "content": picture }),
            ]
        }
        "Log Report" => {
            let level = given("level").unwrap_or("ERROR");
            let text = format!(
                "Read {LOG_URI} with the pattern {level} and report in three sentences what went on."
            );
            vec![message("user", &text)]
        }
        other => return Err(format!("no prompt `{other}`")),
    };
    Ok(json!({ "messages": messages }))
}

/// `completion/complete`: the usual values of an argument that begin with what was typed.
pub(super) fn completions(params: &Value) -> Value {
    let known: &[&str] = match params["argument"]["name"].as_str().unwrap_or_default() {
        "language" => &["C", "Go", "Java", "Python", "Rust", "TypeScript"],
        "focus" => &["bugs", "speed", "style"],
        "topic" => &["coyotes", "MCP", "terminals"],
        "level" => &["ERROR", "INFO"],
        _ => &[],
    };
    let typed = params["argument"]["value"].as_str().unwrap_or_default();
    let typed = typed.to_lowercase();
    let values: Vec<&str> = known
        .iter()
        .copied()
        .filter(|value| value.to_lowercase().starts_with(&typed))
        .collect();
    json!({ "completion": { "values": values, "total": values.len(), "hasMore": false } })
}
