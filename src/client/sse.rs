//! Bytes of an answer → its events. Linear in time, bounded in memory, and indifferent to how bytes are chunked.
//!
//! Providers answer with an SSE stream, a JSON document, or lines of JSON, and not always with the one that was
//! asked for: the first byte that is not blank decides. A line of JSON inside an SSE stream is what servers write
//! when they fail half-way, so it is delivered and not skipped as an unknown field.

use serde_json::{Value, json};

use super::wire::Fault;

/// The most one event, line or document may hold (`H-44`).
pub(super) const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event of an answer: its JSON text, or a word such as `[DONE]`.
pub(super) type Frame = String;

#[derive(Debug, Default)]
pub(super) struct Framing {
    mode: Mode,
    /// The current line, without its end.
    line: Vec<u8>,
    after_cr: bool,
    /// Data lines of the current SSE event, or the lines of a document.
    data: Vec<u8>,
    has_data: bool,
    /// The current SSE event calls itself `error`.
    is_error: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing but blanks so far.
    #[default]
    Undecided,
    Sse,
    /// Every line so far was a whole JSON value.
    Lines,
    /// A JSON value of several lines.
    Document,
}

impl Framing {
    /// Takes the next bytes; appends every event that is complete to `out`.
    pub(super) fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), Fault> {
        if self.mode == Mode::Undecided {
            let blank =
                |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xEF | 0xBB | 0xBF);
            let Some(start) = bytes.iter().position(|byte| !blank(byte)) else {
                return Ok(());
            };
            bytes = bytes.get(start..).unwrap_or_default();
            self.mode = match bytes.first() {
                Some(b'{' | b'[') => Mode::Lines,
                _ => Mode::Sse,
            };
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, rest) = bytes.split_at(end);
            let is_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            // The second half of a CR LF is no line of its own.
            let pair = self.after_cr && head.is_empty() && self.line.is_empty() && !is_cr;
            self.after_cr = is_cr;
            if !pair {
                self.extend(head)?;
                self.end_line(out);
            }
        }
        if !bytes.is_empty() {
            self.after_cr = false;
        }
        self.extend(bytes)
    }

    /// The answer has ended: delivers what its last event or document lacks only an end of line to be complete.
    pub(super) fn finish(&mut self, out: &mut Vec<Frame>) {
        self.end_line(out);
        match self.mode {
            Mode::Undecided | Mode::Lines => {}
            Mode::Sse => self.dispatch(out),
            Mode::Document => {
                if !self.data.is_empty() {
                    out.push(text(&self.data));
                    self.data.clear();
                }
            }
        }
    }

    /// Whether the answer is JSON and not a stream of events.
    pub(super) fn is_json(&self) -> bool {
        matches!(self.mode, Mode::Lines | Mode::Document)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT {
            return Err(Fault::TooLarge("one event is over 16 MiB".to_owned()));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Frame>) {
        let line = std::mem::take(&mut self.line);
        match self.mode {
            Mode::Undecided => {}
            Mode::Sse => self.sse_line(&line, out),
            Mode::Lines if is_json(&line) => out.push(text(&line)),
            Mode::Lines | Mode::Document => {
                if !line.trim_ascii().is_empty() {
                    self.mode = Mode::Document;
                    self.data.extend_from_slice(&line);
                    self.data.push(b'\n');
                }
            }
        }
        // Keep the allocation: one line is much like the next.
        self.line = line;
        self.line.clear();
    }

    fn sse_line(&mut self, line: &[u8], out: &mut Vec<Frame>) {
        if line.is_empty() {
            self.dispatch(out);
        } else if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data
                .extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
        } else if line.first() == Some(&b'{') && is_json(line) {
            self.dispatch(out);
            out.push(text(line));
        } else if line.strip_prefix(b"event:").map(<[u8]>::trim_ascii) == Some(b"error") {
            self.is_error = true;
        }
        // Comments, other events' names, `id:` and `retry:` say nothing that the data does not say.
    }

    fn dispatch(&mut self, out: &mut Vec<Frame>) {
        if self.has_data && !self.data.trim_ascii().is_empty() {
            let data = text(&self.data);
            out.push(if self.is_error { as_error(data) } else { data });
        }
        self.data.clear();
        self.has_data = false;
        self.is_error = false;
    }
}

/// The data of an `error` event that does not say itself that it is one, in the form that every wire knows.
fn as_error(data: Frame) -> Frame {
    let value = serde_json::from_str(&data).unwrap_or(Value::String(data));
    if value.get("error").is_some_and(|error| !error.is_null()) || value["type"] == "error" {
        return value.to_string();
    }
    json!({ "error": value }).to_string()
}

fn is_json(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    matches!(line.first(), Some(b'{' | b'['))
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
