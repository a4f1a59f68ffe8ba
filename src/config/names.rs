//! Lists of names as people write them: a YAML list or a CSV string, trimmed everywhere (`H-11`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

/// Names in the order they were written, without blanks and without repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// From a CSV string.
    pub fn from_csv(text: &str) -> Self {
        text.split(',').collect()
    }

    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> FromIterator<&'a str> for Names {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Self {
        let mut seen = BTreeSet::new();
        let kept = names
            .into_iter()
            .map(str::trim)
            .filter(|name| !name.is_empty() && seen.insert(*name))
            .map(str::to_owned)
            .collect();
        Self(kept)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of names, or names separated by commas")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Names, E> {
        Ok(Names::from_csv(text))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Names, A::Error> {
        let mut names: Vec<String> = Vec::new();
        while let Some(name) = items.next_element()? {
            names.push(name);
        }
        Ok(names.iter().map(String::as_str).collect())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

/// What a layer says about tools or servers when it says something (`H-35`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Explicitly none: `null`, an empty list, an empty string.
    None,
    /// `all`.
    All,
    /// Names and aliases.
    These(Names),
}

impl Choice {
    /// The choice that a list of names means.
    pub fn from_names(names: Names) -> Self {
        if names.is_empty() {
            Self::None
        } else if names.iter().any(|name| name == ALL) {
            Self::All
        } else {
            Self::These(names)
        }
    }

    /// Exactly these names, whatever they are called.
    pub fn from_exact<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Names = names.into_iter().collect();
        if names.is_empty() {
            Self::None
        } else {
            Self::These(names)
        }
    }

    /// The choice that a word or CSV string means: `null` and `none` are none.
    pub fn from_csv(text: &str) -> Self {
        match text.trim() {
            "null" | "none" => Self::None,
            text => Self::from_names(Names::from_csv(text)),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str(ALL),
            Self::These(names) => {
                let names: Vec<&str> = names.iter().collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

/// The word that means every tool or server.
pub const ALL: &str = "all";

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Names::deserialize(deserializer).map(Self::from_names)
    }
}

impl Serialize for Choice {
    /// As it is written by hand: `null`, `all`, a CSV string, or a list where a name contains a comma.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_unit(),
            Self::All => serializer.serialize_str(ALL),
            Self::These(names) if names.iter().any(|name| name.contains(',')) => {
                serializer.collect_seq(names.iter())
            }
            Self::These(names) => {
                serializer.serialize_str(&names.iter().collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Deserialises a key whose presence counts: absent is `None`, `null` is `Some(Choice::None)`.
pub(super) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Choice>, D::Error> {
    Choice::deserialize(deserializer).map(Some)
}

/// Names that stand for names: `mapping_tools`, `mapping_mcp_servers`. The one expansion that selection, completion
/// and lists share (`P-43`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Aliases(BTreeMap<String, Names>);

impl Aliases {
    /// These aliases.
    pub fn new(aliases: impl IntoIterator<Item = (String, Names)>) -> Self {
        let trimmed = aliases
            .into_iter()
            .map(|(name, names)| (name.trim().to_owned(), names))
            .collect();
        Self(trimmed)
    }

    /// The aliases' own names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What an alias stands for, as written.
    pub fn get(&self, alias: &str) -> Option<&Names> {
        self.0.get(alias)
    }

    /// Everything `name` stands for: what the alias of that name lists, aliases within it expanded too, and the name
    /// itself where it is known or nothing else. An alias that is called like a server or tool therefore never
    /// hides it, and a circle of aliases ends.
    pub fn expand(&self, name: &str, known: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut visited = BTreeSet::new();
        self.expand_into(name.trim(), known, &mut visited, &mut found);
        found
    }

    fn expand_into<'a>(
        &'a self,
        name: &'a str,
        known: &dyn Fn(&str) -> bool,
        visited: &mut BTreeSet<&'a str>,
        found: &mut BTreeSet<String>,
    ) {
        // A stack of our own: a file may chain aliases as deep as it likes.
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            if !visited.insert(name) {
                continue;
            }
            let members = self.0.get(name);
            if members.is_none() || known(name) {
                found.insert(name.to_owned());
            }
            open.extend(members.into_iter().flat_map(Names::iter));
        }
    }
}

impl<'de> Deserialize<'de> for Aliases {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let aliases = BTreeMap::<String, Names>::deserialize(deserializer)?;
        if let Some(name) = aliases.keys().find(|name| matches!(name.trim(), "" | ALL)) {
            return Err(D::Error::custom(format!("`{name}` cannot be an alias")));
        }
        Ok(Self::new(aliases))
    }
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
