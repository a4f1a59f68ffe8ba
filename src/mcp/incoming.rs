//! What arrives, whatever it arrives by: messages told from noise, answers brought to their requests, everything a
//! server says or asks unasked dealt with (`M-20`).

use std::sync::Arc;

use rmcp::model::{ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::handler;
use super::link::{Link, error_data, local_error};
use super::transport::MESSAGE_MAX;

/// Messages above this are parsed away from the async threads.
const LARGE_MESSAGE: usize = 1024 * 1024;
/// How much of what is no message is logged.
const NOISE_MAX: usize = 200;

/// The receiving end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    link: Arc<Link>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
}

impl Incoming {
    /// `messages` leads to rmcp.
    pub(crate) fn new(link: Arc<Link>, messages: mpsc::Sender<ServerJsonRpcMessage>) -> Self {
        Self { link, messages }
    }

    /// Returns when nobody listens any more.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }

    /// The connection has ended: whatever waits fails.
    pub(crate) async fn end(&self, reason: &str) {
        tracing::debug!(server = %self.link.server(), reason, "connection ended");
        for id in self.link.end(reason) {
            self.hand_on(JsonRpcMessage::error(local_error(reason), Some(id)))
                .await;
        }
    }

    /// A message was longer than the limit: whose answer it was cannot be known, so all that waits fails.
    pub(crate) async fn too_long(&self) {
        let reason = too_long_words();
        tracing::warn!(server = %self.link.server(), reason);
        for id in self.link.take_all_pending() {
            self.hand_on(JsonRpcMessage::error(local_error(&reason), Some(id)))
                .await;
        }
    }

    /// Fails one request, if it still waits.
    pub(crate) async fn fail(&self, id: &RequestId, error: ErrorData) {
        if self.link.forget(id) {
            self.hand_on(JsonRpcMessage::error(error, Some(id.clone())))
                .await;
        }
    }

    async fn hand_on(&self, message: ServerJsonRpcMessage) {
        // Nobody listening means that nobody waits either.
        let _ = self.messages.send(message).await;
    }

    /// Takes what may be a message or a batch of them, and returns what the server must be answered. `about` is the
    /// request that an answer without an id is about, when the way it came tells.
    pub(crate) async fn take(&self, bytes: Vec<u8>, about: Option<&RequestId>) -> Vec<Value> {
        let parsed = if bytes.len() > LARGE_MESSAGE {
            tokio::task::spawn_blocking(move || parse(&bytes))
                .await
                .ok()
        } else {
            Some(parse(&bytes))
        };
        let mut replies = Vec::new();
        match parsed {
            Some(Parsed::Messages(messages)) => {
                for message in messages {
                    replies.extend(self.message(message, about).await);
                }
            }
            Some(Parsed::Noise(noise)) if noise.is_empty() => {}
            Some(Parsed::Noise(noise)) => {
                tracing::debug!(server = %self.link.server(), noise, "not a message");
            }
            None => {}
        }
        replies
    }

    async fn message(
        &self,
        mut message: Map<String, Value>,
        about: Option<&RequestId>,
    ) -> Option<Value> {
        let mut id = message.remove("id").filter(|id| !id.is_null());
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            if let Some(id) = id {
                return Some(answer(&id, method));
            }
            self.notification(method, message.get("params"));
            return None;
        }
        if id.is_none() && !message.contains_key("error") {
            tracing::debug!(server = %self.link.server(), "neither a request nor an answer");
            return None;
        }
        if let (None, Some(about)) = (&id, about) {
            id = Some(about.clone().into_json_value());
        }
        let Some((id, pending)) = self.link.answered(id.as_ref()) else {
            tracing::debug!(server = %self.link.server(), "answer to no request of ours");
            return None;
        };
        let error = message.remove("error").filter(|error| !error.is_null());
        let answer = match (message.remove("result"), error) {
            (_, Some(error)) => Err(error_data(error)),
            (Some(result), None) => self.link.result(&pending, result),
            (None, None) => Err(local_error("the answer has neither `result` nor `error`")),
        };
        self.hand_on(match answer {
            Ok(result) => JsonRpcMessage::response(result, id),
            Err(error) => JsonRpcMessage::error(error, Some(id)),
        })
        .await;
        None
    }

    fn notification(&self, method: &str, params: Option<&Value>) {
        let none = Map::new();
        let params = params.and_then(Value::as_object).unwrap_or(&none);
        if method == "notifications/progress" {
            self.link.progress(params);
        } else {
            self.link.inbox().take(method, params);
        }
    }
}

/// Why a message is refused for its length.
pub(crate) fn too_long_words() -> String {
    let limit = MESSAGE_MAX / (1024 * 1024);
    format!("a message of the server is longer than {limit} MiB")
}

/// What a request of the server is answered.
fn answer(id: &Value, method: &str) -> Value {
    match handler::answer(method) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": error.code.0, "message": error.message },
        }),
    }
}

/// What bytes turned out to be.
pub(super) enum Parsed {
    /// One message, or the elements of a batch.
    Messages(Vec<Map<String, Value>>),
    /// The beginning of something else, for the log.
    Noise(String),
}

/// Tells messages from noise.
pub(super) fn parse(line: &[u8]) -> Parsed {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    // One bad byte, or half a surrogate pair, inside a string costs that character and not the answer.
    let value = crate::utils::json::parse(line);
    match value {
        Ok(Value::Object(message)) => Parsed::Messages(vec![message]),
        Ok(Value::Array(batch)) => Parsed::Messages(
            batch
                .into_iter()
                .filter_map(|element| match element {
                    Value::Object(message) => Some(message),
                    _ => None,
                })
                .collect(),
        ),
        Ok(_) | Err(_) => {
            let start = line.get(..NOISE_MAX).unwrap_or(line);
            Parsed::Noise(String::from_utf8_lossy(start).trim().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_that_cannot_be_read_costs_itself_and_not_the_answer() {
        let lines: [&[u8]; 2] = [
            b"{\"id\":1,\"result\":\"x\\ud83d\"}",
            b"{\"id\":1,\"result\":\"x\xff\"}",
        ];
        for line in lines {
            let Parsed::Messages(messages) = parse(line) else {
                panic!("noise");
            };
            assert_eq!(messages[0]["result"], "x\u{fffd}");
        }
    }
}
