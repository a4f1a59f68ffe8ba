//! A prompt's messages as one block of text (`P-20`..`P-23`): the one flattening, for the person's `.prompt` and for a
//! model's meta-function alike.
//!
//! Each message stands under a line with its role, `[user]` or `[assistant]`, a single one too. Text is the server's, to
//! the byte, but for one thing: a line of it that looks like a label is indented by a space, so that a line that *is*
//! a label was put there by coyote. Payloads go through the content policy and leave a line that names their file.

use serde_json::Value;

use super::blob::{BlobError, RenderedBlob, render_blob_until};
use super::catalog::FIELD_BYTES;
use super::decode::{Body, Content, Link, ResourceContent, article, block};
use super::render::{MIME_BYTES, Policy};
use crate::utils::abort::Aborted;
use crate::utils::text;

/// The labels, which no line of a message's text can be.
pub const LABELS: [&str; 2] = ["[user]", "[assistant]"];

/// Longest role that is named, in bytes.
const ROLE_BYTES: usize = 64;
/// What of a message that is not understood is there to see.
const UNREADABLE: &str = "[unreadable message: ";

/// A prompt, flattened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlatPrompt {
    /// The block: what is said to the model, or answered to it.
    pub text: String,
    /// How many messages it was made of.
    pub messages: usize,
    /// How many bytes it has, or would have had if it had not been cut.
    pub total_bytes: usize,
}

impl FlatPrompt {
    /// Whether the block ends before the prompt does; it says so itself.
    pub fn is_cut(&self) -> bool {
        self.text.len() < self.total_bytes
    }
}

/// Why a prompt could not be flattened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlattenError {
    /// The answer is none.
    #[error("{0}")]
    Malformed(String),
    /// Cancelled by the person.
    #[error("cancelled")]
    Cancelled,
}

impl From<Aborted> for FlattenError {
    fn from(_: Aborted) -> Self {
        Self::Cancelled
    }
}

/// Flattens what `prompts/get` answered; the block has at most `policy.bounds.slice` bytes, its note included.
///
/// # Errors
/// The answer has no list of messages, or an empty one; the work was cancelled.
pub fn flatten(result: &Value, policy: &Policy<'_>) -> Result<FlatPrompt, FlattenError> {
    let malformed = |reason: String| Err(FlattenError::Malformed(reason));
    let messages = match result.get("messages") {
        Some(Value::Array(messages)) => messages,
        Some(other) => {
            return malformed(format!("`messages` is {}, not a list", article(other)));
        }
        None => return malformed("the answer has no `messages`".to_owned()),
    };
    if messages.is_empty() {
        return malformed("the prompt has no messages".to_owned());
    }
    let mut flat = Flat {
        policy,
        text: String::new(),
        total: 0,
    };
    for (index, message) in messages.iter().enumerate() {
        if policy.abort.is_cancelled() {
            return Err(FlattenError::Cancelled);
        }
        if index > 0 {
            flat.push("\n\n");
        }
        flat.message(message)?;
    }
    Ok(flat.finish(messages.len()))
}

/// The block as far as it has come. What does not fit is counted and not kept.
struct Flat<'p, 'a> {
    policy: &'p Policy<'a>,
    text: String,
    total: usize,
}

impl Flat<'_, '_> {
    fn push(&mut self, text: &str) {
        let room = self.policy.bounds.slice.saturating_sub(self.total);
        self.text.push_str(text::prefix(text, room));
        self.total += text.len();
    }

    fn message(&mut self, message: &Value) -> Result<(), FlattenError> {
        let Some(fields) = message.as_object() else {
            self.push(LABELS[0]);
            self.line(&format!(
                "{UNREADABLE}it is {}, not an object]",
                article(message)
            ));
            return Ok(());
        };
        match fields.get("role").and_then(Value::as_str) {
            Some("assistant") => self.push(LABELS[1]),
            Some("user") => self.push(LABELS[0]),
            // Never another label: two are what readers know, and the role is not lost.
            Some(role) => {
                self.push(LABELS[0]);
                let role = named(role, ROLE_BYTES);
                self.line(&format!("[the server calls the role `{role}`]"));
            }
            None => {
                self.push(LABELS[0]);
                self.line("[the server names no role]");
            }
        }
        match fields.get("content") {
            None | Some(Value::Null) => self.line(&format!("{UNREADABLE}it has no `content`]")),
            Some(Value::String(text)) => self.content_text(text),
            Some(Value::Array(items)) => {
                for item in items {
                    self.content(&block(item).content)?;
                }
            }
            Some(item) => self.content(&block(item).content)?,
        }
        Ok(())
    }

    fn content(&mut self, content: &Content<'_>) -> Result<(), FlattenError> {
        match content {
            Content::Text(text) => self.content_text(text),
            Content::Media {
                kind,
                data,
                mime_type,
            } => self.payload(&head(kind, None, *mime_type), data, *mime_type)?,
            Content::Resource(resource) => self.resource(resource)?,
            Content::Link(link) => self.line(&described(link)),
            Content::Unknown { kind, .. } => {
                let kind = named(kind, MIME_BYTES);
                self.line(&format!(
                    "[{kind}: a type of content that coyote does not know]"
                ));
            }
            Content::Unreadable { kind, reason } => {
                let (kind, reason) = (named(kind, MIME_BYTES), named(reason, FIELD_BYTES));
                self.line(&format!("[unreadable {kind}: {reason}]"));
            }
        }
        Ok(())
    }

    fn resource(&mut self, resource: &ResourceContent<'_>) -> Result<(), FlattenError> {
        let head = head("resource", resource.uri, resource.mime_type);
        match &resource.body {
            Body::Text(text) => {
                self.line(&format!("[{head}]"));
                self.content_text(text);
            }
            Body::Blob(data) => self.payload(&head, data, resource.mime_type)?,
            Body::Unreadable(reason) => {
                let reason = named(reason, FIELD_BYTES);
                self.line(&format!("[{head}, unreadable: {reason}]"));
            }
        }
        Ok(())
    }

    /// Text when it is text, otherwise a file.
    fn payload(
        &mut self,
        head: &str,
        data: &str,
        mime_type: Option<&str>,
    ) -> Result<(), FlattenError> {
        let Policy {
            server,
            spill,
            abort,
            ..
        } = *self.policy;
        match render_blob_until(data, mime_type, server, spill, abort) {
            Ok(RenderedBlob::Text(text)) => {
                self.line(&format!("[{head}]"));
                self.content_text(&text);
            }
            Ok(RenderedBlob::Spilled(spilled)) => {
                let size = grouped(spilled.size_bytes);
                let path = text::sanitize_line(&spilled.path.to_string_lossy());
                self.line(&format!("[{head} {size} bytes: {path}]"));
            }
            Err(BlobError::Cancelled) => return Err(FlattenError::Cancelled),
            Err(error) => self.line(&format!("[{head}: {error}]")),
        }
        Ok(())
    }

    /// A line of ours.
    fn line(&mut self, line: &str) {
        self.push("\n");
        self.push(line);
    }

    /// Text of the server's, on lines of its own.
    fn content_text(&mut self, text: &str) {
        self.push("\n");
        for line in text.split_inclusive(ends_line) {
            if LABELS.contains(&line.trim()) {
                self.push(" ");
            }
            self.push(line);
        }
    }

    fn finish(mut self, messages: usize) -> FlatPrompt {
        let limit = self.policy.bounds.slice;
        if self.total > limit {
            let note = format!(
                "\n[cut: the whole prompt has {} bytes]",
                grouped(self.total as u64)
            );
            let kept = text::prefix(&self.text, limit.saturating_sub(note.len())).len();
            self.text.truncate(kept);
            // Cutting may have made a label of a longer line.
            let tail = self.text.rsplit(ends_line).next().unwrap_or_default();
            if LABELS.contains(&tail.trim()) {
                self.text.truncate(self.text.len() - tail.len());
            }
            self.text.push_str(&note);
        }
        FlatPrompt {
            text: self.text,
            messages,
            total_bytes: self.total,
        }
    }
}

/// Whatever a reader may take for a line's end: a label must not hide behind one that is not `\n`.
fn ends_line(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// `image image/png`, `resource doc://x text/plain`: what is known about something, in one line.
fn head(kind: &str, uri: Option<&str>, mime_type: Option<&str>) -> String {
    let mut head = kind.to_owned();
    if let Some(uri) = uri {
        head = format!("{head} {}", located(uri));
    }
    if let Some(mime_type) = mime_type {
        head = format!("{head} {}", named(mime_type, MIME_BYTES));
    }
    head
}

fn described(link: &Link<'_>) -> String {
    let name = link.name.or(link.title).unwrap_or_default();
    let mut kind = "link".to_owned();
    if !name.is_empty() {
        kind = format!("{kind} `{}`", named(name, FIELD_BYTES));
    }
    let mut shown = head(&kind, Some(link.uri), link.mime_type);
    if let Some(size) = link.size {
        shown = format!("{shown} {} bytes", grouped(size));
    }
    if let Some(description) = link.description {
        shown = format!("{shown}: {}", named(description, FIELD_BYTES));
    }
    format!("[{shown}]")
}

/// A server's word within a line of ours.
fn named(word: &str, max: usize) -> String {
    text::sanitize_line(&text::bounded(word, max))
}

/// A URI; what a `data:` URI carries is a payload and is left out.
fn located(uri: &str) -> String {
    let is_data = uri
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    match uri.split_once(',') {
        Some((head, data)) if is_data => {
            let head = named(head, MIME_BYTES);
            format!("{head},… ({} bytes)", grouped(data.len() as u64))
        }
        _ => named(uri, FIELD_BYTES),
    }
}

/// `12,345`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
#[path = "flatten_tests.rs"]
mod tests;
