//! What is remembered of a connection between calls: metadata only, dropped when the server says that it changed
//! (`M-41`, `M-47`, `M-55`). Listings and answers themselves are never kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// The memory of one connection. It belongs to the connection, so that every tool scope that shares the server shares it.
#[derive(Debug, Default)]
pub struct Kept {
    resources: Slot<(u64, u64), ResourceFacts>,
    tools: Slot<u64, ToolFacts>,
}

/// What is remembered of resources and templates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ResourceFacts {
    /// Audience by resource URI; empty for a resource without one, so that its URI is known.
    pub resources: HashMap<String, Vec<String>>,
    /// Audience by template, for those that have one.
    pub templates: HashMap<String, Vec<String>>,
}

impl ResourceFacts {
    /// Whom the server means a resource for; `template` is what the read expanded.
    pub fn audience(&self, uri: &str, template: Option<&str>) -> Option<&[String]> {
        let own = self.resources.get(uri).filter(|own| !own.is_empty());
        own.or_else(|| self.templates.get(template?))
            .map(Vec::as_slice)
    }
}

/// What is remembered of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolFacts {
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
    /// What is remembered of resources, of the generations of both lists.
    pub(super) fn resources(&self) -> &Slot<(u64, u64), ResourceFacts> {
        &self.resources
    }

    /// What is remembered of tools, of the generation of their list.
    pub(super) fn tools(&self) -> &Slot<u64, ToolFacts> {
        &self.tools
    }
}

/// Facts of one generation: found once, by whoever needs them first, and shared with everyone who comes meanwhile.
pub(super) struct Slot<G, T> {
    state: Mutex<Option<(G, Finding<T>)>>,
}

/// Facts that are known or being found.
pub(super) type Finding<T> = watch::Receiver<Option<Arc<T>>>;
/// Whoever holds it finds them; dropped without a value, the next one who needs them starts anew.
pub(super) type Finder<T> = watch::Sender<Option<Arc<T>>>;

impl<G: PartialEq, T> Slot<G, T> {
    /// The facts, if they are known and of this generation.
    pub(super) fn known(&self, generation: &G) -> Option<Arc<T>> {
        let state = self.state.lock();
        let (of, finding) = state.as_ref()?;
        let known = finding.borrow().clone();
        known.filter(|_| of == generation)
    }

    /// The facts of this generation, known or being found, and the duty to find them for the first who asks.
    pub(super) fn find(&self, generation: G) -> (Finding<T>, Option<Finder<T>>) {
        let mut state = self.state.lock();
        if let Some((of, finding)) = state.as_ref() {
            let given_up = finding.has_changed().is_err() && finding.borrow().is_none();
            if *of == generation && !given_up {
                return (finding.clone(), None);
            }
        }
        let (finder, finding) = watch::channel(None);
        *state = Some((generation, finding.clone()));
        (finding, Some(finder))
    }
}

impl<G, T> Default for Slot<G, T> {
    fn default() -> Self {
        Self {
            state: Mutex::new(None),
        }
    }
}

impl<G, T> fmt::Debug for Slot<G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

/// Waits until the facts are there; `None` when whoever was finding them gave up.
pub(super) async fn found<T>(mut finding: Finding<T>) -> Option<Arc<T>> {
    let facts = finding.wait_for(Option::is_some).await.ok()?;
    facts.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn facts_are_found_once_per_generation() {
        let slot: Slot<u64, u32> = Slot::default();
        let (first, finder) = slot.find(1);
        let (second, nobody) = slot.find(1);
        assert!(nobody.is_none());
        assert_eq!(slot.known(&1), None);
        finder.unwrap().send_replace(Some(Arc::new(7)));
        assert_eq!(found(first).await.as_deref(), Some(&7));
        assert_eq!(found(second).await.as_deref(), Some(&7));
        assert_eq!(slot.known(&1).as_deref(), Some(&7));
        assert!(slot.find(1).1.is_none(), "known facts stay");

        assert_eq!(slot.known(&2), None);
        assert!(slot.find(2).1.is_some(), "another generation is found anew");
    }

    #[tokio::test]
    async fn a_finder_that_gives_up_is_replaced() {
        let slot: Slot<u64, u32> = Slot::default();
        let (finding, finder) = slot.find(1);
        drop(finder);
        assert_eq!(found(finding).await, None);
        assert!(slot.find(1).1.is_some());
    }

    #[test]
    fn a_resource_has_its_own_audience_or_its_templates() {
        let user = vec!["user".to_owned()];
        let facts = ResourceFacts {
            resources: HashMap::from([
                ("x://a".into(), user.clone()),
                ("x://b".into(), Vec::new()),
            ]),
            templates: HashMap::from([("x://{t}".into(), vec!["assistant".into()])]),
        };
        assert_eq!(facts.audience("x://a", None), Some(user.as_slice()));
        assert_eq!(facts.audience("x://b", None), None);
        let templates = facts.audience("x://b", Some("x://{t}")).unwrap();
        assert_eq!(templates, ["assistant"]);
        assert_eq!(facts.audience("x://c", Some("x://{u}")), None);
    }
}
