//! What a model is told about a function.

use serde_json::Value;

/// A function a model may call.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FunctionDeclaration {
    /// Legal for every provider: at most 64 bytes of `[A-Za-z0-9_-]` (`H-42`).
    pub name: String,
    /// For the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments object.
    #[serde(default = "no_parameters")]
    pub parameters: Value,
}

fn no_parameters() -> Value {
    serde_json::json!({ "type": "object", "properties": {} })
}
