//! What a server offers, as one list of one type (`M-40`..`M-42`): pure, no requests, no memory.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::decode::catalog_item;
use super::{ListKind, Listing, McpError, ServerName};
use crate::utils::text;

/// What a catalog item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CatalogKind {
    /// A tool; its id is its name.
    Tool,
    /// A resource; its id is its URI.
    Resource,
    /// A resource template; its id is the URI template.
    ResourceTemplate,
    /// A prompt; its id is its name.
    Prompt,
}

impl CatalogKind {
    /// All of them, in listing order.
    pub const ALL: [Self; 4] = [
        Self::Tool,
        Self::Resource,
        Self::ResourceTemplate,
        Self::Prompt,
    ];

    /// As a model writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::ResourceTemplate => "resource_template",
            Self::Prompt => "prompt",
        }
    }

    /// The list it comes from.
    pub fn list(self) -> ListKind {
        match self {
            Self::Tool => ListKind::Tools,
            Self::Resource => ListKind::Resources,
            Self::ResourceTemplate => ListKind::ResourceTemplates,
            Self::Prompt => ListKind::Prompts,
        }
    }
}

/// The text is none of the four kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind `{0}`: it is one of `tool`, `resource`, `resource_template`, `prompt`")]
pub struct UnknownKind(pub String);

impl std::str::FromStr for CatalogKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownKind(text::bounded(text, 64).into_owned()))
    }
}

impl std::fmt::Display for CatalogKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An argument of a prompt. Prompts have no schemas: every value is a string (`M-43`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PromptArgument {
    /// Its name.
    #[serde(serialize_with = "bounded")]
    pub name: String,
    /// What the server says about it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bounded_option"
    )]
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
}

/// One thing a server offers (`M-40`). Fields hold what the server sent, whole; serialised, each is bounded (`M-46`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogItem {
    /// What it is.
    pub kind: CatalogKind,
    /// Its name; for a resource that has none, its URI.
    #[serde(serialize_with = "bounded")]
    pub name: String,
    /// Whose it is.
    #[serde(serialize_with = "server_name")]
    pub server: ServerName,
    /// What the server says about it; empty when it says nothing.
    #[serde(serialize_with = "bounded")]
    pub description: String,
    /// Its name for people.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bounded_option"
    )]
    pub title: Option<String>,
    /// A resource's URI, a resource template's URI template.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bounded_option"
    )]
    pub uri: Option<String>,
    /// The type the server claims.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bounded_option"
    )]
    pub mime_type: Option<String>,
    /// Size in bytes, as the server claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// A prompt's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<PromptArgument>>,
    /// Whom the server means it for: `user`, `assistant` (`M-55`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<String>>,
    /// Why it cannot be used, when the server sent it malformed (`M-20`).
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "bounded_option"
    )]
    pub unreadable: Option<String>,
    /// What the server sent.
    #[serde(skip)]
    pub raw: Value,
}

impl CatalogItem {
    /// What identifies it within its kind.
    pub fn id(&self) -> &str {
        match self.kind {
            CatalogKind::Tool | CatalogKind::Prompt => &self.name,
            CatalogKind::Resource | CatalogKind::ResourceTemplate => {
                self.uri.as_deref().unwrap_or(&self.name)
            }
        }
    }

    /// What identifies it among everything a server offers: `{kind}:{id}`.
    pub fn key(&self) -> String {
        format!("{}:{}", self.kind, self.id())
    }
}

/// What was listed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalog {
    /// The items, by kind and in the server's order; of items with one key the first.
    pub items: Vec<CatalogItem>,
    /// What could not be listed, or not to its end, a sentence each.
    pub notes: Vec<String>,
}

impl Catalog {
    /// Decodes what was listed. Failures become notes that name the kind; a server without templates is no failure, since
    /// templates have no capability of their own (`M-34`).
    pub(super) fn new(
        listed: Vec<(CatalogKind, Result<Listing, McpError>)>,
        server: &ServerName,
    ) -> Self {
        let mut catalog = Self::default();
        let mut keys = HashSet::new();
        for (kind, listing) in listed {
            let words = kind.list().words();
            let listing = match listing {
                Ok(listing) => listing,
                Err(error) => {
                    let error = error.to_string();
                    let error = text::bounded(&error, FIELD_BYTES);
                    let note = format!("the server's {words} could not be listed: {error}");
                    catalog.notes.push(note);
                    continue;
                }
            };
            if listing.unsupported && kind != CatalogKind::ResourceTemplate {
                catalog.notes.push(format!(
                    "the server's {words} could not be listed: it advertises them but does not know `{}`",
                    kind.list().method()
                ));
            }
            if let Some(warning) = &listing.warning {
                let warning = text::bounded(warning, FIELD_BYTES);
                let note = format!("the list of the server's {words} is incomplete: {warning}");
                catalog.notes.push(note);
            }
            let items = listing
                .items
                .into_iter()
                .map(|raw| catalog_item(kind, server, raw));
            catalog
                .items
                .extend(items.filter(|item| item.unreadable.is_some() || keys.insert(item.key())));
        }
        catalog
    }
}

/// Longest single field of metadata from a server that a model or a person is shown, in bytes (`M-46`).
pub const FIELD_BYTES: usize = 4_096;

fn bounded<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text::bounded(text, FIELD_BYTES))
}

#[allow(clippy::ref_option, reason = "serde passes fields by reference")]
fn bounded_option<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    match text {
        Some(text) => bounded(text, serializer),
        None => serializer.serialize_none(),
    }
}

fn server_name<S: Serializer>(name: &ServerName, serializer: S) -> Result<S::Ok, S::Error> {
    bounded(name.as_str(), serializer)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
