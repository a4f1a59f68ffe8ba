//! Holds the layering: which module may import which.

use std::path::Path;

#[test]
fn every_layer_exists() {
    for module in [
        "utils", "chat", "mcp", "client", "render", "demo", "function", "config", "turn", "repl",
        "cli",
    ] {
        assert!(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("src")
                .join(module)
                .join("mod.rs")
                .is_file(),
            "{module}"
        );
    }
}
