//! The lenient decoder: any bytes that are JSON are decoded as every kind of answer, without a panic (`M-20`).
#![no_main]

use coyote::mcp::catalog::CatalogKind;
use coyote::mcp::{ServerName, decode};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let _ = decode::tool_answer(&value);
    let _ = decode::resource_contents(&value);
    let _ = decode::block(&value);
    let _ = decode::wants_input(&value);
    let server = ServerName::new("fuzz").expect("a legal name");
    for kind in CatalogKind::ALL {
        let item = decode::catalog_item(kind, &server, value.clone());
        assert!(!item.name.is_empty());
    }
});
