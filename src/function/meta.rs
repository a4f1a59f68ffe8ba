//! The meta-functions: which a server has (`M-31`), what the model is told about them, and what it may pass.
//! One row per function; the names belong to [`crate::mcp`].

use serde_json::{Value, json};

use super::args::Args;
use super::error::FunctionError;
use crate::chat::{Arguments, FunctionDeclaration};
use crate::mcp::catalog::CatalogKind;
use crate::mcp::prompt::PromptRequest;
use crate::mcp::runtime::{DescribeRequest, InvokeRequest, ReadRequest, SearchRequest};
use crate::mcp::{McpServerFeatures, MetaFunction, ModelServerName, meta_function_name};

/// How many items a search returns unless it says otherwise, and at most (`M-42`).
const TOP_K: u64 = 8;
const TOP_K_MAX: u64 = 20;

/// What a server must have for the function to be declared. Looks only at the booleans (`M-31`).
fn is_declared(function: MetaFunction, features: &McpServerFeatures) -> bool {
    match function {
        MetaFunction::Invoke => features.tools,
        MetaFunction::Search | MetaFunction::Describe => true,
        MetaFunction::Read => features.resources,
        MetaFunction::Prompt => features.prompts,
    }
}

/// The declarations of one server's functions, in the order of [`MetaFunction::ALL`].
pub(super) fn declarations(
    features: &McpServerFeatures,
) -> impl Iterator<Item = FunctionDeclaration> + '_ {
    MetaFunction::ALL
        .into_iter()
        .filter(|function| is_declared(*function, features))
        .map(|function| FunctionDeclaration {
            name: meta_function_name(function, &features.name),
            description: description(function, features),
            parameters: parameters(function),
        })
}

fn description(function: MetaFunction, features: &McpServerFeatures) -> String {
    let server = &features.name;
    let named = |function| named(function, server);
    match function {
        MetaFunction::Invoke => format!(
            "Calls a tool of the MCP server `{server}`. Find tools with {search} and read a tool's input schema \
             with {describe} before calling it for the first time.",
            search = named(MetaFunction::Search),
            describe = named(MetaFunction::Describe),
        ),
        MetaFunction::Search => format!(
            "Searches what the MCP server `{server}` offers ({offers}) and returns the best matches, each with its \
             kind, name or URI, and description. {next}",
            offers = offers(features),
            next = next_steps(features),
        ),
        MetaFunction::Describe => format!(
            "Describes one item that {search} found on the MCP server `{server}`: a tool's input schema with an \
             example call, a resource's metadata, a resource template's variables, a prompt's arguments.",
            search = named(MetaFunction::Search),
        ),
        MetaFunction::Read => format!(
            "Reads a resource of the MCP server `{server}` by its URI; {search} finds URIs. Text comes in pages: \
             when `truncated` is true, call again with `offset` set to `next_offset` and everything else the same. \
             In a long text, `pattern` returns only the matching lines with two lines of context each. A URI with \
             {{placeholders}} is a template: give their values in `arguments`. Binary content is saved to a file \
             and its path returned.",
            search = named(MetaFunction::Search),
        ),
        MetaFunction::Prompt => format!(
            "Renders a prompt of the MCP server `{server}` and returns its messages as one text, each under its \
             role, `[user]` or `[assistant]`. Use it as instructions or material for your own work; nothing is \
             sent to the user. {search} finds prompts, {describe} with kind `prompt` lists a prompt's arguments.",
            search = named(MetaFunction::Search),
            describe = named(MetaFunction::Describe),
        ),
    }
}

fn named(function: MetaFunction, server: &ModelServerName) -> String {
    format!("`{}`", meta_function_name(function, server))
}

fn offers(features: &McpServerFeatures) -> String {
    let kinds = [
        (features.tools, "tools"),
        (features.resources, "resources and resource templates"),
        (features.prompts, "prompts"),
    ];
    let offered: Vec<&str> = kinds
        .into_iter()
        .filter_map(|(has, word)| has.then_some(word))
        .collect();
    if offered.is_empty() {
        "it advertises nothing".to_owned()
    } else {
        offered.join(", ")
    }
}

fn next_steps(features: &McpServerFeatures) -> String {
    let server = &features.name;
    let mut steps = Vec::new();
    if features.tools {
        steps.push(format!(
            "call a tool with {}",
            named(MetaFunction::Invoke, server)
        ));
    }
    if features.resources {
        steps.push(format!(
            "read a resource with {}",
            named(MetaFunction::Read, server)
        ));
    }
    if features.prompts {
        steps.push(format!(
            "render a prompt with {}",
            named(MetaFunction::Prompt, server)
        ));
    }
    steps.push(format!(
        "see details with {}",
        named(MetaFunction::Describe, server)
    ));
    format!("Then {}.", steps.join(", "))
}

/// The JSON Schema of the arguments.
fn parameters(function: MetaFunction) -> Value {
    let (properties, required) = match function {
        MetaFunction::Invoke => (
            json!({
                "tool": { "type": "string", "description": "The tool's name, exactly as found" },
                "arguments": {
                    "type": "object",
                    "description": "The tool's arguments as an object, following its input schema; leave it out \
                                    for a tool without arguments"
                },
            }),
            vec!["tool"],
        ),
        MetaFunction::Search => (
            json!({
                "query": {
                    "type": "string",
                    "description": "What you are looking for, in a few words; names and URIs count too"
                },
                "top_k": {
                    "type": "integer", "default": TOP_K, "minimum": 1, "maximum": TOP_K_MAX,
                    "description": "How many matches to return"
                },
            }),
            vec!["query"],
        ),
        MetaFunction::Describe => (
            json!({
                "tool": {
                    "type": "string",
                    "description": "The item's identifier: a tool's or prompt's name, a resource's URI, or a \
                                    template's URI with its {placeholders}"
                },
                "kind": {
                    "type": "string", "default": "tool",
                    "enum": CatalogKind::ALL.map(CatalogKind::as_str),
                    "description": "What kind of item it is"
                },
            }),
            vec!["tool"],
        ),
        MetaFunction::Read => (read_properties(), vec!["uri"]),
        MetaFunction::Prompt => (
            json!({
                "prompt": { "type": "string", "description": "The prompt's name, exactly as found" },
                "arguments": {
                    "type": "object", "additionalProperties": { "type": "string" },
                    "description": "String values only; prompt arguments have no schemas. Leave optional ones out \
                                    that you do not need"
                },
            }),
            vec!["prompt"],
        ),
    };
    json!({ "type": "object", "properties": properties, "required": required })
}

/// `M-50`.
fn read_properties() -> Value {
    json!({
        "uri": {
            "type": "string",
            "description": "Resource URI, or a resource template with {var} placeholders"
        },
        "arguments": {
            "type": "object",
            "description": "Values of the template's {var} placeholders, one for each, as strings, numbers or \
                            booleans (RFC 6570 level 1 only: no operators inside the braces)"
        },
        "pattern": {
            "type": "string",
            "description": "Optional regular expression: returns only matching lines of a text, numbered, with two \
                            lines of context"
        },
        "offset": {
            "type": "integer", "default": 0, "minimum": 0,
            "description": "Byte offset for paging through a text: the `next_offset` of the page before. When \
                            `pattern` is set, `offset`, `next_offset` and `total_bytes` refer to the filtered \
                            text, not to the whole resource"
        },
        "max_bytes": {
            "type": "integer", "default": 51_200,
            "description": "Most bytes of text to return in one page (at most 204800)"
        },
    })
}

/// What `name` was called with, for [`MetaFunction::Invoke`] (`M-44`).
pub(super) fn invoke(name: &str, passed: &Arguments) -> Result<InvokeRequest, FunctionError> {
    let args = args(MetaFunction::Invoke, name, passed)?;
    Ok(InvokeRequest {
        tool: args.required_word("tool")?.to_owned(),
        arguments: args.object("arguments")?.cloned().unwrap_or_default(),
    })
}

/// What `name` was called with, for [`MetaFunction::Search`] (`M-42`).
pub(super) fn search(name: &str, passed: &Arguments) -> Result<SearchRequest, FunctionError> {
    let args = args(MetaFunction::Search, name, passed)?;
    let top_k = args.unsigned("top_k")?.unwrap_or(TOP_K).clamp(1, TOP_K_MAX);
    Ok(SearchRequest {
        query: args.required_text("query")?.to_owned(),
        top_k: usize::try_from(top_k).unwrap_or(usize::MAX),
    })
}

/// What `name` was called with, for [`MetaFunction::Describe`] (`M-43`).
pub(super) fn describe(name: &str, passed: &Arguments) -> Result<DescribeRequest, FunctionError> {
    let args = args(MetaFunction::Describe, name, passed)?;
    let kind = match args.text("kind")? {
        None => CatalogKind::Tool,
        Some(word) => word.parse().map_err(FunctionError::argument)?,
    };
    Ok(DescribeRequest {
        id: args.required_word("tool")?.to_owned(),
        kind,
    })
}

/// What `name` was called with, for [`MetaFunction::Read`] (`M-50`).
pub(super) fn read(name: &str, passed: &Arguments) -> Result<ReadRequest, FunctionError> {
    let args = args(MetaFunction::Read, name, passed)?;
    Ok(ReadRequest {
        uri: args.required_word("uri")?.to_owned(),
        arguments: args.object("arguments")?.cloned(),
        pattern: args.text("pattern")?.map(str::to_owned),
        offset: args.unsigned("offset")?.unwrap_or(0),
        max_bytes: args.unsigned("max_bytes")?,
    })
}

/// What `name` was called with, for [`MetaFunction::Prompt`] (`P-30`).
pub(super) fn prompt(name: &str, passed: &Arguments) -> Result<PromptRequest, FunctionError> {
    let args = args(MetaFunction::Prompt, name, passed)?;
    Ok(PromptRequest {
        prompt: args.required_word("prompt")?.to_owned(),
        arguments: args.object("arguments")?.cloned().unwrap_or_default(),
    })
}

fn args<'a>(
    function: MetaFunction,
    name: &'a str,
    passed: &'a Arguments,
) -> Result<Args<'a>, FunctionError> {
    Args::new(name, passed, &parameters(function))
}

#[cfg(test)]
#[path = "meta_tests.rs"]
mod tests;
