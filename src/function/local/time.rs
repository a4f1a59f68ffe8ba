//! `get_current_time`.

use serde_json::json;

use super::Spec;
use crate::function::args::Args;
use crate::function::error::FunctionError;

pub(super) fn spec() -> Spec {
    Spec {
        description: "Tells the current date, weekday and time, with the offset from UTC.",
        properties: json!({
            "utc": { "type": "boolean", "default": false, "description": "In UTC instead of local time" },
        }),
        required: &[],
    }
}

pub(super) fn now(args: &Args<'_>) -> Result<String, FunctionError> {
    const FORMAT: &str = "%Y-%m-%dT%H:%M:%S%:z (%A)";
    Ok(if args.flag("utc")? {
        chrono::Utc::now().format(FORMAT).to_string()
    } else {
        chrono::Local::now().format(FORMAT).to_string()
    })
}
