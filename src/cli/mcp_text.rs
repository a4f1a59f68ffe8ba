//! How the answers of `coyote mcp` look to people, and to machines where that is more than the answer itself. Pure.

use serde_json::{Map, Value, json};

use crate::mcp::catalog::CatalogItem;
use crate::mcp::{ListKind, Origin, ServerStatus};
use crate::utils::text;

pub(super) fn server_row(
    status: &ServerStatus,
    counts: &[(ListKind, Option<usize>)],
) -> Vec<String> {
    let features: Vec<&str> = features(status)
        .into_iter()
        .filter_map(|(feature, has)| has.then_some(feature))
        .collect();
    let counts: Vec<String> = counts
        .iter()
        .map(|(kind, count)| match count {
            Some(1) => format!("1 {}", kind.words().trim_end_matches('s')),
            Some(count) => format!("{count} {}", kind.words()),
            None => format!("? {}", kind.words()),
        })
        .collect();
    let mut state = status.state.word().to_owned();
    if status.origin == Origin::Workspace {
        state.push_str(" (workspace)");
    }
    vec![
        text::sanitize_line(status.name.as_str()),
        state,
        status.transport.to_owned(),
        status.revision.clone().unwrap_or_else(|| "-".to_owned()),
        if features.is_empty() {
            "-".to_owned()
        } else {
            features.join(", ")
        },
        if counts.is_empty() {
            "-".to_owned()
        } else {
            counts.join(", ")
        },
    ]
}

/// Whether a server has each feature; empty when it is not known.
fn features(status: &ServerStatus) -> Vec<(&'static str, bool)> {
    status.capabilities.map_or_else(Vec::new, |capabilities| {
        vec![
            ("tools", capabilities.tools),
            ("resources", capabilities.resources),
            ("prompts", capabilities.prompts),
        ]
    })
}

pub(super) fn server_json(status: &ServerStatus, counts: &[(ListKind, Option<usize>)]) -> Value {
    let reason = status.state.reason();
    let features: Map<String, Value> = features(status)
        .into_iter()
        .map(|(feature, has)| (feature.to_owned(), has.into()))
        .collect();
    let counts: Map<String, Value> = counts
        .iter()
        .map(|(kind, count)| (kind.words().replace(' ', "_"), json!(count)))
        .collect();
    json!({
        "name": status.name.as_str(),
        "state": status.state.word(),
        "reason": reason,
        "transport": status.transport,
        "origin": match status.origin {
            Origin::User => "user",
            Origin::Workspace => "workspace",
            Origin::Builtin => "builtin",
        },
        "revision": status.revision,
        "features": features,
        "counts": counts,
        "description": status.description,
        "stderr": status.stderr_tail,
        "notes": status.notes,
    })
}

/// The first line of what an item says about itself.
pub(super) fn summary(item: &CatalogItem) -> String {
    if let Some(reason) = &item.unreadable {
        return format!("unreadable: {reason}");
    }
    let said = item
        .description
        .lines()
        .find(|line| !line.trim().is_empty());
    said.or(item.title.as_deref())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

pub(super) fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text + "\n"
}

/// One line per item.
pub(super) fn search_text(value: &Value) -> String {
    let Some(items) = value.as_array() else {
        return pretty(value);
    };
    let mut shown = String::new();
    for item in items {
        let id = item["uri"].as_str().or(item["name"].as_str());
        match (item["kind"].as_str(), id) {
            (Some(kind), Some(id)) => {
                let description = item["description"].as_str().unwrap_or_default();
                let line = format!(
                    "{kind}  {id}  {}",
                    description.lines().next().unwrap_or_default()
                );
                shown.push_str(line.trim_end());
                shown.push('\n');
            }
            _ => shown.push_str(&pretty(item)),
        }
    }
    shown
}

/// Text as text, everything else as JSON; what a tool or a resource is made of, one after the other.
pub(super) fn read_text(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let parts: Vec<String> = items.iter().map(read_text).collect();
            parts.join("\n")
        }
        Value::String(text) => text.clone(),
        Value::Object(item) if item.get("spilled").is_none() => match item.get("text") {
            Some(Value::String(text)) => text.clone(),
            _ => pretty(value),
        },
        _ => pretty(value),
    }
}

pub(super) fn result_text(value: &Value) -> String {
    let Some(content) = value["content"].as_array() else {
        return read_text(value);
    };
    let mut parts: Vec<String> = content
        .iter()
        .map(read_text)
        .map(|part| part.trim_end_matches('\n').to_owned())
        .collect();
    if let Some(structured) = value.get("structuredContent") {
        parts.push(pretty(structured).trim_end().to_owned());
    }
    let mut shown = parts.join("\n");
    shown.push('\n');
    shown
}
