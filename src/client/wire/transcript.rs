//! The transcript as every wire needs it: each call answered right after it, exactly once. A transcript that is
//! in order passes unchanged; one from an edited file or a killed process is completed, because a provider refuses
//! the whole conversation otherwise.

use std::borrow::Cow;

use crate::chat::{Message, Part, ProviderState, ToolCall, ToolOutput, ToolResult};

/// One entry, ready to be written.
#[derive(Debug, PartialEq)]
pub(super) enum Entry<'a> {
    User(&'a [Part]),
    Assistant {
        text: &'a str,
        calls: Cow<'a, [ToolCall]>,
        state: Option<&'a ProviderState>,
    },
    /// One answer for each call of the entry right before, in call order.
    Results(Vec<Answer<'a>>),
}

/// A call and what it was answered.
#[derive(Debug, PartialEq)]
pub(super) struct Answer<'a> {
    pub(super) call: &'a ToolCall,
    pub(super) output: Cow<'a, ToolOutput>,
}

/// `messages` as entries. Assistant messages that say and call nothing are left out.
pub(super) fn entries(messages: &[Message]) -> Vec<Entry<'_>> {
    let mut entries = Vec::with_capacity(messages.len());
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        at += 1;
        match message {
            Message::User(parts) => entries.push(Entry::User(parts)),
            Message::Assistant { text, calls, state } => {
                if text.is_empty() && calls.is_empty() {
                    continue;
                }
                entries.push(Entry::Assistant {
                    text,
                    calls: Cow::Borrowed(calls),
                    state: state.as_ref(),
                });
                if !calls.is_empty() {
                    let results = results_from(messages, &mut at);
                    entries.push(Entry::Results(answers(calls, &results)));
                }
            }
            // Answers without their calls: a result knows its call, so the calls can be restored.
            Message::Tool(results) if !results.is_empty() => {
                entries.push(Entry::Assistant {
                    text: "",
                    calls: results.iter().map(|result| result.call.clone()).collect(),
                    state: None,
                });
                entries.push(Entry::Results(
                    results
                        .iter()
                        .map(|result| Answer {
                            call: &result.call,
                            output: Cow::Borrowed(&result.output),
                        })
                        .collect(),
                ));
            }
            Message::Tool(_) => {}
        }
    }
    entries
}

fn results_from<'a>(messages: &'a [Message], at: &mut usize) -> Vec<&'a ToolResult> {
    let mut results = Vec::new();
    while let Some(Message::Tool(more)) = messages.get(*at) {
        results.extend(more);
        *at += 1;
    }
    results
}

fn answers<'a>(calls: &'a [ToolCall], results: &[&'a ToolResult]) -> Vec<Answer<'a>> {
    calls
        .iter()
        .map(|call| {
            let found = results.iter().find(|result| result.call.id == call.id);
            Answer {
                call,
                output: match found {
                    Some(result) => Cow::Borrowed(&result.output),
                    None => Cow::Owned(ToolOutput::error("interrupted, there is no result")),
                },
            }
        })
        .collect()
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
