//! How the demo server answers. One thread reads requests; what takes time runs on threads of its own, so that a
//! cancellation or a second request is never kept waiting.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Spoil, content};

/// Entries per page of a list: small, so that clients have pages to follow.
const PAGE: usize = 2;
/// The newest revision that begins with `initialize`.
const NEWEST_REVISION: &str = "2025-11-25";
/// Revisions that are answered with themselves.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", NEWEST_REVISION];

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const PARSE_ERROR: i64 = -32700;
const RESOURCE_NOT_FOUND: i64 = -32002;

/// Serves until `input` ends. With `spoil`, one thing goes wrong.
///
/// # Errors
/// When `input` cannot be read. Lines that are no JSON-RPC are answered with an error and do no harm.
pub fn serve(
    input: impl BufRead,
    output: impl Write + Send + 'static,
    spoil: Option<Spoil>,
) -> io::Result<()> {
    if spoil == Some(Spoil::Start) {
        return Ok(());
    }
    let server = Arc::new(Server {
        output: Mutex::new(Box::new(output)),
        running: Running::default(),
        spoil,
    });
    for line in input.split(b'\n') {
        let line = line?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Value>(&line) {
            Ok(message) => server.take(&message),
            Err(error) => server.fail(&Value::Null, PARSE_ERROR, &error.to_string()),
        }
    }
    server.running.cancel_all();
    Ok(())
}

struct Server {
    output: Mutex<Box<dyn Write + Send>>,
    running: Running,
    spoil: Option<Spoil>,
}

type Outcome = Result<Value, (i64, String)>;

impl Server {
    fn take(self: &Arc<Self>, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        let Some(id) = message.get("id") else {
            if method == "notifications/cancelled" {
                self.running.cancel(&params["requestId"]);
            }
            return;
        };
        if method == "tools/call" && params["name"] == "slow_count" {
            self.count_slowly(id, params);
            return;
        }
        match self.answer(method, params) {
            Ok(result) => self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Err((code, text)) => self.fail(id, code, &text),
        }
    }

    fn answer(&self, method: &str, params: &Value) -> Outcome {
        match method {
            "initialize" => Ok(self.initialize(params)),
            "ping" => Ok(json!({})),
            "tools/list" => self.page("tools", &content::tools(self.spoil), params),
            "resources/list" => self.page("resources", &content::resources(self.spoil), params),
            "resources/templates/list" => {
                self.page("resourceTemplates", &content::templates(), params)
            }
            "resources/read" => self.read(params["uri"].as_str().unwrap_or_default()),
            "prompts/list" => self.page("prompts", &content::prompts(), params),
            "prompts/get" => content::prompt(params, self.spoil == Some(Spoil::Prompt))
                .map_err(|wrong| (INVALID_PARAMS, wrong)),
            "completion/complete" => Ok(content::completions(params)),
            "tools/call" => self.call(
                params["name"].as_str().unwrap_or_default(),
                params["arguments"].as_object().unwrap_or(&Map::new()),
            ),
            other => Err((METHOD_NOT_FOUND, format!("no method `{other}`"))),
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let revision = REVISIONS
            .iter()
            .find(|known| **known == asked)
            .unwrap_or(&NEWEST_REVISION);
        let capabilities = if self.spoil == Some(Spoil::Capabilities) {
            json!({ "tools": {} })
        } else {
            json!({ "tools": {}, "resources": {}, "prompts": {}, "completions": {} })
        };
        json!({
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": { "name": "coyote-demo", "title": "coyote's demo", "version": env!("CARGO_PKG_VERSION") },
            "instructions": "A small server to try coyote on. Read demo://guide first.",
        })
    }

    /// One page of `items`; the cursor is the index of its first entry.
    fn page(&self, key: &str, items: &[Value], params: &Value) -> Outcome {
        let start = match params.get("cursor").filter(|cursor| !cursor.is_null()) {
            None => 0,
            Some(cursor) => cursor
                .as_str()
                .and_then(|cursor| cursor.parse::<usize>().ok())
                .filter(|start| *start <= items.len())
                .ok_or((
                    INVALID_PARAMS,
                    format!("`{cursor}` is no cursor of this list"),
                ))?,
        };
        let end = items.len().min(start + PAGE);
        let mut result = Map::new();
        result.insert(
            key.to_owned(),
            items.get(start..end).unwrap_or_default().into(),
        );
        if end < items.len() && self.spoil != Some(Spoil::Pages) {
            result.insert("nextCursor".to_owned(), end.to_string().into());
        }
        Ok(result.into())
    }

    fn read(&self, uri: &str) -> Outcome {
        let spoiled = |spoil| self.spoil == Some(spoil);
        let item = match uri {
            content::GUIDE_URI if spoiled(Spoil::Guide) => {
                let text = format!("{:?}\n{}", Instant::now(), content::GUIDE);
                json!({ "mimeType": "text/markdown", "text": text })
            }
            content::GUIDE_URI => json!({ "mimeType": "text/markdown", "text": content::GUIDE }),
            content::LOG_URI => {
                json!({ "mimeType": "text/plain", "text": log(spoiled(Spoil::Log)) })
            }
            content::LOGO_URI => {
                json!({ "mimeType": "image/png", "blob": content::logo_base64(spoiled(Spoil::Logo)) })
            }
            content::NOTES_URI => {
                json!({ "mimeType": "application/octet-stream", "blob": content::notes_base64(spoiled(Spoil::Notes)) })
            }
            content::AUDIENCE_URI => json!({ "mimeType": "text/plain", "text": content::hints() }),
            _ => {
                let name = uri
                    .strip_prefix("demo://greeting/")
                    .filter(|name| !name.is_empty() && !name.contains('/'))
                    .ok_or((RESOURCE_NOT_FOUND, format!("no resource `{uri}`")))?;
                let name = percent_decode(name);
                let name = if spoiled(Spoil::Template) {
                    "somebody else"
                } else {
                    &name
                };
                json!({ "mimeType": "text/plain", "text": content::greeting(name) })
            }
        };
        let mut item = item;
        item["uri"] = uri.into();
        Ok(json!({ "contents": [item] }))
    }

    fn call(&self, tool: &str, arguments: &Map<String, Value>) -> Outcome {
        let number = |key: &str| {
            arguments
                .get(key)
                .and_then(Value::as_f64)
                .ok_or((INVALID_PARAMS, format!("`{tool}` needs the number `{key}`")))
        };
        match tool {
            "add" => {
                let off = if self.spoil == Some(Spoil::Tool) {
                    1.0
                } else {
                    0.0
                };
                Ok(structured(
                    &json!({ "sum": tidy(number("a")? + number("b")? + off) }),
                ))
            }
            "divide" => {
                let (dividend, divisor) = (number("dividend")?, number("divisor")?);
                if divisor == 0.0 {
                    let text = format!("{dividend} cannot be divided by zero");
                    return Ok(
                        json!({ "content": [{ "type": "text", "text": text }], "isError": true }),
                    );
                }
                Ok(text(&tidy(dividend / divisor).to_string()))
            }
            "word_count" => {
                let counted = arguments.get("text").and_then(Value::as_str).ok_or((
                    INVALID_PARAMS,
                    "`word_count` needs the string `text`".to_owned(),
                ))?;
                Ok(text(&format!(
                    "{} lines, {} words, {} characters",
                    counted.lines().count(),
                    counted.split_whitespace().count(),
                    counted.chars().count()
                )))
            }
            "draw_logo" => {
                let picture = content::logo_base64(false);
                let caption = if self.spoil == Some(Spoil::Base64) {
                    format!("data:image/png;base64,{picture}")
                } else {
                    "hills under a moon".to_owned()
                };
                Ok(json!({ "content": [
                    { "type": "text", "text": caption },
                    { "type": "image", "mimeType": "image/png", "data": picture },
                ] }))
            }
            "log_summary" => {
                let errors = content::error_lines();
                Ok(structured(&json!({
                    "lines": content::LOG_LINES, "errors": errors.len(), "error_lines": errors,
                })))
            }
            other => Err((INVALID_PARAMS, format!("no tool `{other}`"))),
        }
    }

    /// Counts on a thread of its own; a cancelled count is never answered, as the protocol has it.
    fn count_slowly(self: &Arc<Self>, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        let to = arguments["to"].as_u64().unwrap_or(10).clamp(1, 1_000);
        let delay = arguments["delay_ms"].as_u64().unwrap_or(300).min(10_000);
        let token = params["_meta"]["progressToken"].clone();
        let (server, id) = (Arc::clone(self), id.clone());
        let cancelled = self.running.begin(&id);
        thread::spawn(move || {
            for count in 1..=to {
                if cancelled.wait(Duration::from_millis(delay)) {
                    return;
                }
                if !token.is_null() {
                    server.send(
                        &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
                        "progressToken": token, "progress": count, "total": to,
                        "message": format!("counted to {count}") } }),
                    );
                }
            }
            server.running.end(&id);
            let result = text(&format!("counted to {to}"));
            server.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        });
    }

    fn fail(&self, id: &Value, code: i64, message: &str) {
        self.send(
            &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
        );
    }

    /// A client that no longer listens is told by the end of its input; there is nobody to report to.
    fn send(&self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = output
            .write_all(line.as_bytes())
            .and_then(|()| output.flush());
    }
}

/// Requests that are being worked on, by the JSON text of their ids.
#[derive(Default)]
struct Running(Mutex<HashMap<String, Arc<Cancelled>>>);

impl Running {
    fn begin(&self, id: &Value) -> Arc<Cancelled> {
        let cancelled = Arc::new(Cancelled::default());
        self.requests()
            .insert(id.to_string(), Arc::clone(&cancelled));
        cancelled
    }

    fn end(&self, id: &Value) {
        self.requests().remove(&id.to_string());
    }

    fn cancel(&self, id: &Value) {
        if let Some(cancelled) = self.requests().remove(&id.to_string()) {
            cancelled.set();
        }
    }

    fn cancel_all(&self) {
        for (_, cancelled) in self.requests().drain() {
            cancelled.set();
        }
    }

    fn requests(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Cancelled>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flag that can be waited for.
#[derive(Default)]
struct Cancelled {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Cancelled {
    fn set(&self) {
        *self.flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for `limit`, or until it is set; says whether it is.
    fn wait(&self, limit: Duration) -> bool {
        let flag = self.flag.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(flag, limit, |set| !*set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn structured(value: &Value) -> Value {
    json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value })
}

/// Whole numbers without a fraction, as people write them.
fn tidy(number: f64) -> Value {
    let whole = format!("{number:.0}").parse::<i64>();
    match whole {
        Ok(whole) if number.fract() == 0.0 => whole.into(),
        _ => number.into(),
    }
}

fn log(spoiled: bool) -> String {
    let log = content::log_text();
    if spoiled {
        log.split_once('\n')
            .map_or_else(String::new, |(_, rest)| rest.to_owned())
    } else {
        log
    }
}

/// Undoes `%XX`; what is none, or gives no UTF-8, stays visible.
fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let decoded = match (first, tail) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                digit(high)
                    .zip(digit(low))
                    .and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
                    .map(|byte| (byte, after))
            }
            _ => None,
        };
        let (byte, after) = decoded.unwrap_or((*first, tail));
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
