//! What happened, in words: notices, tool lines, errors. Pure.

use std::time::Duration;

use serde_json::Value;

use super::theme::{Paint, Style};
use crate::chat::{Activity, Progress};
use crate::utils::{Error, text};

/// Arguments are read up to here; a model can write megabytes of them.
const MAX_ARGUMENTS: usize = 16 * 1024;

/// The one line about a finished tool call (`H-24`): its parts, sanitised and cut to `columns`.
pub(super) fn tool_line(call: &FinishedCall<'_>, columns: usize, paint: Paint) -> String {
    let mark = if call.ok { "✓" } else { "✗" };
    let end = format!(" {} {}", duration(call.elapsed), size(call.bytes));
    let fixed = text::width(mark) + text::width(&end) + 2;
    let room = columns.saturating_sub(fixed);
    let name = text::sanitize_line(call.name);
    let name = text::fit(&name, room).into_owned();
    let arguments = short_arguments(call.arguments);
    let left = room.saturating_sub(text::width(&name) + 1);
    let mut line = paint.paint(Style::DIM, &name);
    if !arguments.is_empty() && left > 1 {
        let arguments = format!(" {}", text::fit(&arguments, left));
        line.push_str(&paint.paint(Style::DIM, &arguments));
    }
    let mark_style = if call.ok { Style::DIM } else { Style::ERROR };
    line.push(' ');
    line.push_str(&paint.paint(mark_style, mark));
    line.push_str(&paint.paint(Style::DIM, &end));
    line
}

/// What [`tool_line`] tells about.
pub(super) struct FinishedCall<'a> {
    pub(super) name: &'a str,
    /// JSON text.
    pub(super) arguments: &'a str,
    pub(super) ok: bool,
    pub(super) elapsed: Duration,
    pub(super) bytes: usize,
}

/// `key=value …`, on one line; text that is no JSON object as it stands.
fn short_arguments(arguments: &str) -> String {
    let parsed = if arguments.len() <= MAX_ARGUMENTS {
        serde_json::from_str(arguments).ok()
    } else {
        None
    };
    let Some(Value::Object(map)) = parsed else {
        return text::sanitize_line(text::prefix(arguments, MAX_ARGUMENTS).trim());
    };
    let pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '\n']) => {
                format!("{key}={text}")
            }
            value => format!("{key}={value}"),
        })
        .collect();
    text::sanitize_line(&pairs.join(" "))
}

/// What is being waited for.
pub(super) fn activity(activity: &Activity) -> String {
    let line = match activity {
        Activity::Connecting(names) => format!("connecting {}", names.join(", ")),
        Activity::Thinking => "thinking".to_owned(),
        Activity::Calling(name) => return calling(&[name]),
        Activity::Retrying { attempt, after } => {
            format!("retrying in {} (attempt {attempt})", duration(*after))
        }
    };
    text::sanitize_line(&line)
}

/// Which functions are running.
pub(super) fn calling(names: &[&str]) -> String {
    let line = match names {
        [] => String::new(),
        [only] => format!("calling `{only}`"),
        [first, others @ ..] => format!("calling `{first}` and {} more", others.len()),
    };
    text::sanitize_line(&line)
}

/// How far a call is, in a few words.
pub(super) fn progress(progress: &Progress) -> String {
    let amount = match progress.total {
        _ if !progress.progress.is_finite() => String::new(),
        Some(total) if total > 0.0 && total.is_finite() => {
            format!(
                "{:.0} %",
                (progress.progress / total * 100.0).clamp(0.0, 100.0)
            )
        }
        _ if progress.message.is_some() => String::new(),
        _ => format!("{}", progress.progress),
    };
    let message = progress.message.as_deref().unwrap_or_default();
    text::sanitize_line(format!("{amount} {message}").trim())
}

/// An error with its causes and hints (`H-05`), without a newline at its end.
pub(super) fn error(error: &Error, paint: Paint) -> String {
    let label = paint.paint(Style::ERROR, "error:");
    let mut lines = vec![format!("{label} {}", text::sanitize(&error.to_string()))];
    for cause in error.causes() {
        lines.push(format!("  caused by: {}", text::sanitize(&cause)));
    }
    for hint in error.hints() {
        let label = paint.paint(Style::HINT, "hint:");
        lines.push(format!("{label} {}", text::sanitize(hint)));
    }
    lines.join("\n")
}

/// The same for a machine, on one line.
pub(super) fn error_json(error: &Error) -> String {
    let causes: Vec<String> = error.causes().collect();
    serde_json::json!({
        "error": {
            "kind": error.kind().as_str(),
            "message": error.to_string(),
            "causes": causes,
            "hints": error.hints(),
        }
    })
    .to_string()
}

/// `120 ms`, `1.2 s`, `2 min 5 s`.
pub(super) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1000),
    }
}

/// `123 B`, `1.2 kB`, `3.4 MB`.
pub(super) fn size(bytes: usize) -> String {
    let tenths = |unit: usize| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{} kB", tenths(1000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
