//! Server-sent events, as far as streamable HTTP needs them: bytes in, the data of complete events out.

use std::time::Duration;

use super::transport::MESSAGE_MAX;

/// An event or a line of it is longer than a message may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// A stream of events that is being read.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    after_return: bool,
    data: Vec<u8>,
    has_data: bool,
    /// The last event id: from where the stream can be resumed.
    pub(crate) last_id: Option<String>,
    /// How long to wait before resuming it, as the server wishes.
    pub(crate) retry: Option<Duration>,
}

impl Events {
    /// The stream that continues this one after its last whole event.
    pub(crate) fn resumed(self) -> Self {
        Self {
            last_id: self.last_id,
            retry: self.retry,
            ..Self::default()
        }
    }

    /// Takes more bytes; returns the data of every event that is complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut complete = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, after) = rest.split_at(end);
            let separator = after.first().copied();
            // "\r\n" is one end of line, also when a chunk ends between the two.
            let second_half = separator == Some(b'\n') && self.after_return && part.is_empty();
            self.after_return = separator == Some(b'\r');
            rest = after.get(1..).unwrap_or_default();
            if second_half {
                continue;
            }
            self.extend(part)?;
            let line = std::mem::take(&mut self.line);
            complete.extend(self.take_line(&line)?);
        }
        if !rest.is_empty() {
            self.after_return = false;
        }
        self.extend(rest)?;
        Ok(complete)
    }

    fn extend(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + part.len() > MESSAGE_MAX {
            return Err(TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// One line; an empty one completes the event.
    fn take_line(&mut self, line: &[u8]) -> Result<Option<Vec<u8>>, TooLong> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return Ok(std::mem::take(&mut self.has_data).then_some(data));
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (line.get(..colon), line.get(colon + 1..)),
            None => (Some(line), None),
        };
        let value = value.unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field.unwrap_or_default() {
            b"data" => {
                if self.data.len() + value.len() > MESSAGE_MAX {
                    return Err(TooLong);
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => {
                self.last_id = String::from_utf8(value.to_vec()).ok();
            }
            b"retry" => {
                let milliseconds = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok());
                self.retry = milliseconds.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> (Vec<String>, Events) {
        let mut events = Events::default();
        let mut all = Vec::new();
        for chunk in chunks {
            all.extend(events.push(chunk).unwrap());
        }
        let all = all
            .into_iter()
            .map(|data| String::from_utf8(data).unwrap())
            .collect();
        (all, events)
    }

    #[test]
    fn events_are_complete_at_the_empty_line() {
        let text = b": hello\n\nevent: ping\ndata: one\n\nid: 7\ndata:two\ndata: more\nretry: 50\n\ndata: not yet\n";
        let (data, events) = read(&[text]);
        assert_eq!(data, ["one", "two\nmore"]);
        assert_eq!(events.last_id.as_deref(), Some("7"));
        assert_eq!(events.retry, Some(Duration::from_millis(50)));
    }

    #[test]
    fn every_end_of_line_counts_and_none_twice() {
        for text in [
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
            "data: a\n\ndata: b\n\n",
        ] {
            assert_eq!(read(&[text.as_bytes()]).0, ["a", "b"], "{text:?}");
        }
        assert_eq!(
            read(&[b"data: a\r", b"\n\r", b"\ndata: b\n\r\n"]).0,
            ["a", "b"]
        );
    }

    #[test]
    fn an_event_without_data_is_none() {
        assert!(read(&[b"event: x\nid: 1\n\n"]).0.is_empty());
        assert_eq!(read(&[b"data\n\n"]).0, [""]);
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_does_not_matter(
            text in "(data: [ab]|data:|id: x|:c|\r\n|\n|\r|\n\n){0,30}",
            cut in 1_usize..5,
        ) {
            let whole = read(&[text.as_bytes()]).0;
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(read(&chunks).0, whole);
        }
    }
}
