//! Where payloads a model cannot read go (`M-64`, `M-65`): a private directory per server, one file per content.

use std::path::{Path, PathBuf};

/// The tree of spilled payloads: `<cache>/mcp-resources`.
#[derive(Debug, Clone, Default)]
pub struct SpillDir(PathBuf);

impl SpillDir {
    /// The tree below `root`; nothing is created before something is spilled.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        &self.0
    }
}
