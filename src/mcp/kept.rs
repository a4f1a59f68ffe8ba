//! What is remembered of a connection between calls: metadata only, dropped when the server says that it changed
//! (`M-41`, `M-47`, `M-55`). Listings and answers themselves are never kept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The memory of one connection. It belongs to the connection, so that every tool scope that shares the server shares it.
#[derive(Debug, Default)]
pub struct Kept {
    resources: Mutex<Option<Arc<ResourceFacts>>>,
    tools: Mutex<Option<Arc<ToolFacts>>>,
}

/// What is remembered of resources and templates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ResourceFacts {
    /// The generations of both lists when they were walked.
    pub generation: (u64, u64),
    /// Audience by resource URI; empty for a resource without one, so that its URI is known.
    pub resources: HashMap<String, Vec<String>>,
    /// Audience by template, for those that have one.
    pub templates: HashMap<String, Vec<String>>,
}

/// What is remembered of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
    /// The generation of the list when it was walked.
    pub generation: u64,
    /// Hints by tool name.
    pub hints: HashMap<String, ToolHints>,
}

/// What a server says about what a tool does; absent means unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolHints {
    /// `readOnlyHint`
    pub read_only: Option<bool>,
    /// `destructiveHint`
    pub destructive: Option<bool>,
}

impl Kept {
    /// What is remembered of resources, if it is of this generation.
    pub fn resources(&self, generation: (u64, u64)) -> Option<Arc<ResourceFacts>> {
        let facts = self.resources.lock();
        facts
            .as_ref()
            .filter(|facts| facts.generation == generation)
            .cloned()
    }

    /// Remembers.
    pub fn keep_resources(&self, facts: ResourceFacts) -> Arc<ResourceFacts> {
        let facts = Arc::new(facts);
        *self.resources.lock() = Some(Arc::clone(&facts));
        facts
    }

    /// What is remembered of tools, if it is of this generation.
    pub fn tools(&self, generation: u64) -> Option<Arc<ToolFacts>> {
        let facts = self.tools.lock();
        facts
            .as_ref()
            .filter(|facts| facts.generation == generation)
            .cloned()
    }

    /// Remembers.
    pub fn keep_tools(&self, facts: ToolFacts) -> Arc<ToolFacts> {
        let facts = Arc::new(facts);
        *self.tools.lock() = Some(Arc::clone(&facts));
        facts
    }
}
