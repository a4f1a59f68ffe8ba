//! Schemas of arguments, adapted where a provider would refuse them as a server wrote them (`H-42`). Only the copy
//! that is sent changes, never what a person is shown.

use serde_json::{Map, Value, json};

/// How deep references are followed; what is deeper, and what refers to itself, accepts anything.
const MAX_DEPTH: usize = 24;
/// How many nodes a schema may grow to by following references.
const MAX_NODES: usize = 20_000;

/// `schema` as `OpenAI` and Anthropic take it: an object at the top, with `properties`, without alternatives there.
pub(super) fn object(schema: &Value) -> Value {
    let Value::Object(schema) = schema else {
        return json!({ "type": "object", "properties": {} });
    };
    let mut schema = schema.clone();
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for key in ["anyOf", "oneOf", "allOf"] {
        let Some(branches) = schema.remove(key) else {
            continue;
        };
        // Everything that an alternative allows is allowed; which combinations are, the server checks.
        for branch in branches.as_array().into_iter().flatten() {
            for (name, value) in branch
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                properties
                    .entry(name.clone())
                    .or_insert_with(|| value.clone());
            }
        }
    }
    for key in ["enum", "not"] {
        schema.remove(key);
    }
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(schema)
}

/// `schema` as Gemini takes it: like [`object`], without references, and with alternatives in place of lists of
/// types.
pub(super) fn plain_object(schema: &Value) -> Value {
    let mut plain = Plain {
        root: schema,
        nodes: 0,
    };
    object(&plain.node(schema, 0, &mut Vec::new()))
}

struct Plain<'a> {
    root: &'a Value,
    nodes: usize,
}

impl<'a> Plain<'a> {
    fn node(&mut self, node: &'a Value, depth: usize, open: &mut Vec<&'a str>) -> Value {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            return json!({});
        }
        let Value::Object(map) = node else {
            return node.clone();
        };
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            return self.reference(reference, map, depth, open);
        }
        let mut plain = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("$schema" | "$id" | "$defs" | "definitions" | "$comment" | "$anchor", _) => {
                    continue;
                }
                ("properties" | "patternProperties", Value::Object(each)) => each
                    .iter()
                    .map(|(name, schema)| (name.clone(), self.node(schema, depth + 1, open)))
                    .collect(),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(each)) => each
                    .iter()
                    .map(|schema| self.node(schema, depth + 1, open))
                    .collect(),
                ("items" | "additionalProperties" | "not", value) => {
                    self.node(value, depth + 1, open)
                }
                (_, value) => value.clone(),
            };
            plain.insert(key.clone(), value);
        }
        split_types(&mut plain);
        Value::Object(plain)
    }

    /// What is referred to, with what stands beside the reference on top.
    fn reference(
        &mut self,
        reference: &'a str,
        beside: &'a Map<String, Value>,
        depth: usize,
        open: &mut Vec<&'a str>,
    ) -> Value {
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer))
            .filter(|_| !open.contains(&reference));
        let mut plain = match target {
            Some(target) => {
                open.push(reference);
                let plain = self.node(target, depth + 1, open);
                open.pop();
                plain
            }
            None => json!({}),
        };
        if let Value::Object(plain) = &mut plain {
            for (key, value) in beside {
                if matches!(key.as_str(), "description" | "title" | "default") {
                    plain.insert(key.clone(), value.clone());
                }
            }
        }
        plain
    }
}

/// `"type": ["string", "null"]` → `"anyOf": [{"type": "string"}, {"type": "null"}]`.
fn split_types(schema: &mut Map<String, Value>) {
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.clone(),
        _ => return,
    };
    schema.remove("type");
    match types.as_slice() {
        [] => {}
        [only] => {
            schema.insert("type".to_owned(), only.clone());
        }
        types if !schema.contains_key("anyOf") => {
            // What speaks of one type only goes with that type.
            let items = schema.remove("items");
            let properties = schema.remove("properties");
            let branches = types
                .iter()
                .map(|each| {
                    let mut branch = Map::from_iter([("type".to_owned(), each.clone())]);
                    if each == "array" {
                        let any = items.clone().unwrap_or_else(|| json!({}));
                        branch.insert("items".to_owned(), any);
                    }
                    if let (true, Some(properties)) = (each == "object", &properties) {
                        branch.insert("properties".to_owned(), properties.clone());
                    }
                    Value::Object(branch)
                })
                .collect();
            schema.insert("anyOf".to_owned(), branches);
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
