//! One entry of a server file: JSON in, a usable entry or the reason why not out (`M-10`, `M-12`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use rmcp::model::ProtocolVersion;
use serde_json::{Map, Value};

use super::remote::RESERVED_HEADERS;
use super::spec::DEFAULT_STARTUP_TIMEOUT;
use super::{Confirm, Origin, ProtocolChoice, ServerName, ServerSpec, TransportSpec};

/// The longest time that can be asked for: a day.
const TIMEOUT_MAX: f64 = 86_400.0;
/// Every key an entry may have.
const KEYS: [&str; 14] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "disabled",
    "description",
    "timeout",
    "startup_timeout",
    "protocol",
    "mcp_confirm",
    "oauth",
];

/// Decodes an entry; what is odd but harmless goes to `warnings`.
pub(super) fn decode(
    name: &ServerName,
    entry: &Value,
    origin: Origin,
    env: &dyn Fn(&str) -> Option<String>,
    warnings: &mut Vec<String>,
) -> Result<ServerSpec, String> {
    let Some(map) = entry.as_object() else {
        return Err("the entry is not an object".into());
    };
    let unknown: Vec<_> = map
        .keys()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| format!("`{key}`"))
        .collect();
    if !unknown.is_empty() {
        warnings.push(format!("unknown keys are ignored: {}", unknown.join(", ")));
    }
    if map.contains_key("oauth") {
        warnings
            .push("`oauth` is not supported yet; set `headers.Authorization` to a token".into());
    }
    let disabled = boolean(map, "disabled")?.unwrap_or(false);
    let expand = Expand {
        env,
        // What is switched off need not be complete.
        strict: !disabled,
    };
    let fields = Fields {
        map,
        expand: &expand,
    };
    Ok(ServerSpec {
        name: name.clone(),
        transport: fields.transport(warnings)?,
        disabled,
        description: plain_text(map, "description")?,
        timeout: seconds(map, "timeout")?,
        startup_timeout: seconds(map, "startup_timeout")?.unwrap_or(DEFAULT_STARTUP_TIMEOUT),
        protocol: protocol(map)?,
        confirm: confirm(map)?,
        origin,
        file: None,
        scrub_env: Vec::new(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
}

/// The fields of an entry whose strings are expanded.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    expand: &'a Expand<'a>,
}

impl Fields<'_> {
    fn has(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// Which transport the entry means; contradictions name both fields.
    fn kind(&self) -> Result<Kind, String> {
        let (command, url) = (self.has("command"), self.has("url"));
        let stated = plain_text(self.map, "type")?;
        match stated.as_deref() {
            Some("stdio") if url => Err("`type` is `stdio`, but there is a `url`".into()),
            Some("stdio") if !command => Err("`type` is `stdio`, but there is no `command`".into()),
            Some("stdio") => Ok(Kind::Stdio),
            Some(kind @ ("http" | "streamable-http")) => match (command, url) {
                (true, _) => Err(format!("`type` is `{kind}`, but there is a `command`")),
                (false, false) => Err(format!("`type` is `{kind}`, but there is no `url`")),
                (false, true) => Ok(Kind::Http),
            },
            Some("sse") => Err(
                "`type` is `sse`, which is not supported; use `http` if the server has it".into(),
            ),
            Some(other) => Err(format!(
                "`type` is `{other}`; it can be `stdio`, `http` or `streamable-http`"
            )),
            None => match (command, url) {
                (true, true) => Err("there are both `command` and `url`; keep one".into()),
                (true, false) => Ok(Kind::Stdio),
                (false, true) => Ok(Kind::Http),
                (false, false) => Err("there is neither `command` nor `url`".into()),
            },
        }
    }

    fn transport(&self, warnings: &mut Vec<String>) -> Result<TransportSpec, String> {
        let kind = self.kind()?;
        let foreign: &[&str] = match kind {
            Kind::Stdio => &["headers"],
            Kind::Http => &["args", "env", "cwd"],
        };
        for key in foreign.iter().filter(|key| self.has(key)) {
            warnings.push(format!("`{key}` means nothing for this type of server"));
        }
        match kind {
            Kind::Stdio => Ok(TransportSpec::Stdio {
                command: self.required("command")?,
                args: self.args()?,
                cwd: self.optional("cwd")?.map(PathBuf::from),
                env: self.environment()?,
            }),
            Kind::Http => self.http(),
        }
    }

    fn http(&self) -> Result<TransportSpec, String> {
        let url = self.required("url")?;
        let parsed = reqwest::Url::parse(&url).map_err(|error| format!("`url`: {error}"))?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err("`url` does not begin with `http://` or `https://` and a host".into());
        }
        let headers = self.strings("headers")?;
        for (name, value) in &headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("`headers.{name}` is not a legal header name"));
            }
            if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(format!(
                    "`headers.{name}` is the protocol's and cannot be set"
                ));
            }
            if HeaderValue::from_str(value).is_err() {
                return Err(format!(
                    "`headers.{name}` has a value that headers cannot have"
                ));
            }
        }
        Ok(TransportSpec::Http { url, headers })
    }

    /// Variables of the child; a name that no process can be given is an error here and not when it starts.
    fn environment(&self) -> Result<BTreeMap<String, String>, String> {
        let env = self.strings("env")?;
        match env
            .keys()
            .find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            Some(name) => Err(format!(
                "`env.{}` is not a legal name of a variable",
                name.escape_debug()
            )),
            None => Ok(env),
        }
    }

    fn required(&self, key: &str) -> Result<String, String> {
        match self.optional(key)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(format!("`{key}` is empty")),
        }
    }

    fn optional(&self, key: &str) -> Result<Option<String>, String> {
        plain_text(self.map, key)?
            .map(|text| self.expand.expand(&text, key))
            .transpose()
    }

    fn args(&self) -> Result<Vec<String>, String> {
        match self.map.get("args") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(args)) => args
                .iter()
                .enumerate()
                .map(|(index, arg)| self.scalar(arg, &format!("args[{index}]")))
                .collect(),
            Some(_) => Err("`args` is not an array of strings".into()),
        }
    }

    fn strings(&self, key: &str) -> Result<BTreeMap<String, String>, String> {
        match self.map.get(key) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, value)| {
                    let value = self.scalar(value, &format!("{key}.{name}"))?;
                    Ok((name.clone(), value))
                })
                .collect(),
            Some(_) => Err(format!("`{key}` is not an object of strings")),
        }
    }

    /// A string, or what is written like one without quotes.
    fn scalar(&self, value: &Value, field: &str) -> Result<String, String> {
        match value {
            Value::String(text) => {
                let text = self.expand.expand(text, field)?;
                if text.contains('\0') {
                    return Err(format!("`{field}` contains a NUL character"));
                }
                Ok(text)
            }
            Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(format!("`{field}` is not a string"))
            }
        }
    }
}

fn plain_text(map: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` is not a string")),
    }
}

fn boolean(map: &Map<String, Value>, key: &str) -> Result<Option<bool>, String> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(*value)),
        Some(_) => Err(format!("`{key}` is neither `true` nor `false`")),
    }
}

fn seconds(map: &Map<String, Value>, key: &str) -> Result<Option<Duration>, String> {
    let wrong = || format!("`{key}` is not a number of seconds between 0 and {TIMEOUT_MAX}");
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let seconds = number.as_f64().ok_or_else(wrong)?;
            if seconds > 0.0 && seconds <= TIMEOUT_MAX {
                Ok(Some(Duration::from_secs_f64(seconds)))
            } else {
                Err(wrong())
            }
        }
        Some(_) => Err(wrong()),
    }
}

fn protocol(map: &Map<String, Value>) -> Result<ProtocolChoice, String> {
    let Some(choice) = plain_text(map, "protocol")? else {
        return Ok(ProtocolChoice::default());
    };
    match choice.as_str() {
        "auto" => return Ok(ProtocolChoice::Auto),
        "legacy" => return Ok(ProtocolChoice::Legacy),
        _ => {}
    }
    let known = ProtocolVersion::KNOWN_VERSIONS;
    if known.iter().any(|known| known.as_str() == choice) {
        return Ok(ProtocolChoice::Revision(choice));
    }
    let known: Vec<_> = known.iter().map(|known| format!("`{known}`")).collect();
    Err(format!(
        "`protocol` is `{choice}`; it can be `auto`, `legacy` or one of {}",
        known.join(", ")
    ))
}

fn confirm(map: &Map<String, Value>) -> Result<Option<Confirm>, String> {
    match plain_text(map, "mcp_confirm")?.as_deref() {
        None => Ok(None),
        Some("never") => Ok(Some(Confirm::Never)),
        Some("destructive") => Ok(Some(Confirm::Destructive)),
        Some("always") => Ok(Some(Confirm::Always)),
        Some(other) => Err(format!(
            "`mcp_confirm` is `{other}`; it can be `never`, `destructive` or `always`"
        )),
    }
}

/// Expands `${VAR}` and `${VAR:-default}`; everything else stays as it is.
struct Expand<'a> {
    env: &'a dyn Fn(&str) -> Option<String>,
    /// An unset variable is an error and not the empty string.
    strict: bool,
}

impl Expand<'_> {
    fn expand(&self, text: &str, field: &str) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let reference = after.split_once('}').and_then(|(inside, behind)| {
                let (name, default) = match inside.split_once(":-") {
                    Some((name, default)) => (name, Some(default)),
                    None => (inside, None),
                };
                is_variable(name).then_some((name, default, behind))
            });
            let Some((name, default, behind)) = reference else {
                expanded.push_str("${");
                rest = after;
                continue;
            };
            match ((self.env)(name), default) {
                (Some(value), _) => expanded.push_str(&value),
                (None, Some(default)) => expanded.push_str(default),
                (None, None) if !self.strict => {}
                (None, None) => {
                    return Err(format!(
                        "`{field}` needs the environment variable `{name}`, which is not set"
                    ));
                }
            }
            rest = behind;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
