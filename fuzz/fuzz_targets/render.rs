//! The content policy: whatever a server answers, what reaches the model is below the ceiling (`M-54`, `M-60`..`M-66`).
#![no_main]

use std::sync::OnceLock;

use coyote::mcp::render::{
    Bounds, Policy, SERIALISED_CEILING_BYTES, View, render_contents, render_text,
    render_tool_answer,
};
use coyote::mcp::spill::SpillDir;
use coyote::mcp::{ServerName, decode};
use coyote::utils::AbortToken;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static HOME: OnceLock<tempfile::TempDir> = OnceLock::new();

fuzz_target!(|input: (u16, u16, &[u8])| {
    let (offset, max, bytes) = input;
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = render_text(text, None, None, u64::from(offset), Some(u64::from(max)));
    }
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let home = HOME.get_or_init(|| tempfile::tempdir().expect("a temporary directory"));
    let (server, spill, abort) = (
        ServerName::new("fuzz").expect("a legal name"),
        SpillDir::new(home.path()),
        AbortToken::new(),
    );
    let policy = Policy {
        server: &server,
        spill: &spill,
        bounds: Bounds::new(None),
        read_function: Some("mcp_read_fuzz"),
        abort: &abort,
    };
    let view = View {
        filter: None,
        offset: u64::from(offset),
        max_bytes: Some(u64::from(max)),
    };
    if let Ok(output) = render_tool_answer(&decode::tool_answer(&value), &policy) {
        assert!(output.value.to_string().len() <= SERIALISED_CEILING_BYTES);
    }
    if let Ok(contents) = decode::resource_contents(&value)
        && let Ok(output) = render_contents(&contents, "x://y", None, view, &policy)
    {
        assert!(output.value.to_string().len() <= SERIALISED_CEILING_BYTES);
    }
});
