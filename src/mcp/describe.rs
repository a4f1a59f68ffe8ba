//! Describing one catalog item to a model (`M-43`): pure, bounded, with the call that comes next.

use serde_json::{Map, Value, json};

use super::catalog::{CatalogItem, CatalogKind};
use super::fit::serialised_len;
use super::render::Bounds;
use super::template::Template;
use crate::utils::text;

/// Largest schema that is shown, in bytes of its JSON.
pub const SCHEMA_BYTES: usize = 65_536;
/// How many arguments of a prompt and variables of a template are described.
const ARGUMENTS: usize = 256;
/// How many required properties an example call fills in.
const EXAMPLE_PROPERTIES: usize = 32;
/// Longest property name that an example call repeats, in bytes.
const EXAMPLE_NAME_BYTES: usize = 256;

/// The server's functions that a description points to, by full name; absent ones the server does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Functions<'a> {
    /// Calls its tools.
    pub invoke: Option<&'a str>,
    /// Reads its resources.
    pub read: Option<&'a str>,
}

/// Describes an item within the bounds of an answer.
pub fn describe(item: &CatalogItem, functions: Functions<'_>, bounds: Bounds) -> Value {
    let mut limits = Limits {
        schema: SCHEMA_BYTES.min(bounds.serialised / 2),
        field: bounds.field,
        arguments: ARGUMENTS,
    };
    // Everything is cut in half until it fits; what remains at the end is the name.
    loop {
        let value = limits.describe(item, functions);
        if serialised_len(&value) <= bounds.serialised || limits.field == 0 {
            return value;
        }
        limits = Limits {
            schema: limits.schema / 2,
            field: limits.field / 2,
            arguments: limits.arguments / 2,
        };
    }
}

struct Limits {
    schema: usize,
    field: usize,
    arguments: usize,
}

impl Limits {
    fn describe(&self, item: &CatalogItem, functions: Functions<'_>) -> Value {
        let mut value = Map::new();
        match item.kind {
            CatalogKind::Tool => self.tool(item, functions, &mut value),
            CatalogKind::Resource => self.resource(item, functions, &mut value),
            CatalogKind::ResourceTemplate => self.template(item, functions, &mut value),
            CatalogKind::Prompt => self.prompt(item, &mut value),
        }
        if let Some(reason) = &item.unreadable {
            value.insert("unreadable".into(), self.field(reason));
        }
        Value::Object(value)
    }

    fn tool(&self, item: &CatalogItem, functions: Functions<'_>, value: &mut Map<String, Value>) {
        self.names(item, value);
        let schemas = [
            ("inputSchema", "input_schema"),
            ("outputSchema", "output_schema"),
            ("annotations", "annotations"),
        ];
        for (sent, shown) in schemas {
            if let Some(schema) = item.raw.get(sent).filter(|schema| !schema.is_null()) {
                value.insert(shown.into(), self.schema(schema));
            }
        }
        if let Some(function) = functions.invoke {
            let arguments = example(item.raw.get("inputSchema"));
            value.insert(
                "example".into(),
                json!({
                    "function": function,
                    "arguments": { "tool": self.field(&item.name), "arguments": arguments },
                }),
            );
        }
    }

    fn resource(
        &self,
        item: &CatalogItem,
        functions: Functions<'_>,
        value: &mut Map<String, Value>,
    ) {
        self.metadata(item, value);
        if let (Some(function), Some(uri)) = (functions.read, &item.uri) {
            let call = json!({ "function": function, "arguments": { "uri": self.field(uri) } });
            value.insert("example".into(), call);
        }
    }

    fn template(
        &self,
        item: &CatalogItem,
        functions: Functions<'_>,
        value: &mut Map<String, Value>,
    ) {
        self.metadata(item, value);
        let Some(template) = item.uri.as_deref() else {
            return;
        };
        value.insert("uri_template".into(), self.field(template));
        let parsed = match Template::parse(template) {
            Ok(parsed) => parsed,
            Err(error) => {
                value.insert("note".into(), error.to_string().into());
                return;
            }
        };
        let variables: Vec<Value> = parsed
            .variables()
            .iter()
            .take(self.arguments)
            .map(|name| self.field(name))
            .collect();
        value.insert("variables".into(), variables.clone().into());
        if let Err(error) = parsed.check_level() {
            value.insert("note".into(), error.to_string().into());
        } else if let Some(function) = functions.read {
            let arguments: Map<String, Value> = variables
                .iter()
                .filter_map(|name| Some((name.as_str()?.to_owned(), "value".into())))
                .collect();
            value.insert(
                "example".into(),
                json!({
                    "function": function,
                    "arguments": { "uri": self.field(template), "arguments": arguments },
                }),
            );
        }
    }

    fn prompt(&self, item: &CatalogItem, value: &mut Map<String, Value>) {
        self.names(item, value);
        let declared = item.arguments.as_deref().unwrap_or_default();
        let arguments: Vec<Value> = declared
            .iter()
            .take(self.arguments)
            .map(|argument| {
                json!({
                    "name": self.field(&argument.name),
                    "description": self.field(argument.description.as_deref().unwrap_or_default()),
                    "required": argument.required,
                })
            })
            .collect();
        let left_out = declared.len() - arguments.len();
        value.insert("arguments".into(), arguments.into());
        let sent = item.raw.get("arguments").and_then(Value::as_array);
        let unreadable = sent.map_or(0, Vec::len).saturating_sub(declared.len());
        let mut notes = Vec::new();
        if left_out > 0 {
            let arguments = text::plural(left_out, "more argument");
            notes.push(format!("{arguments} left out"));
        }
        if unreadable > 0 {
            let arguments = text::plural(unreadable, "unreadable argument");
            notes.push(format!("{arguments} left out: no name"));
        }
        if !notes.is_empty() {
            value.insert("note".into(), notes.join("; ").into());
        }
    }

    /// What every kind has, as search shows it.
    fn metadata(&self, item: &CatalogItem, value: &mut Map<String, Value>) {
        value.insert("kind".into(), item.kind.as_str().into());
        self.names(item, value);
        if let Some(uri) = &item.uri {
            value.insert("uri".into(), self.field(uri));
        }
        if let Some(mime_type) = &item.mime_type {
            value.insert("mime_type".into(), self.field(mime_type));
        }
        if let Some(size) = item.size {
            value.insert("size".into(), size.into());
        }
        if let Some(audience) = &item.audience {
            value.insert("audience".into(), audience.clone().into());
        }
    }

    fn names(&self, item: &CatalogItem, value: &mut Map<String, Value>) {
        value.insert("name".into(), self.field(&item.name));
        if let Some(title) = &item.title {
            value.insert("title".into(), self.field(title));
        }
        value.insert("description".into(), self.field(&item.description));
    }

    fn field(&self, text: &str) -> Value {
        text::bounded(text, self.field).into()
    }

    /// A schema as the server sent it, or that it is too large.
    fn schema(&self, schema: &Value) -> Value {
        let total = serialised_len(schema);
        if total <= self.schema {
            return schema.clone();
        }
        json!({
            "truncated": true,
            "total_bytes": total,
            "note": format!("the schema is larger than the {} bytes that are shown", self.schema),
        })
    }
}

/// Values for the required properties, so that a model sees where arguments go.
fn example(schema: Option<&Value>) -> Value {
    let required = schema
        .and_then(|schema| schema.get("required"))
        .and_then(Value::as_array);
    let properties = schema.and_then(|schema| schema.get("properties"));
    required
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| name.len() <= EXAMPLE_NAME_BYTES)
        .take(EXAMPLE_PROPERTIES)
        .map(|name| {
            let property = properties.and_then(|properties| properties.get(name));
            (name.to_owned(), example_value(property))
        })
        .collect::<Map<_, _>>()
        .into()
}

fn example_value(property: Option<&Value>) -> Value {
    let Some(property) = property else {
        return "value".into();
    };
    let choices = property.get("enum").and_then(Value::as_array);
    let given = property
        .get("default")
        .or_else(|| choices.and_then(|choices| choices.first()))
        .filter(|given| serialised_len(given) <= EXAMPLE_NAME_BYTES);
    if let Some(given) = given {
        return given.clone();
    }
    let kind = match property.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str),
        _ => None,
    };
    match kind {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => "value".into(),
    }
}

#[cfg(test)]
#[path = "describe_tests.rs"]
mod tests;
