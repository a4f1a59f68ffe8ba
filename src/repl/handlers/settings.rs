//! `.model` and `.set`.

use super::{chosen, mcp};
use crate::config::Setting;
use crate::repl::Repl;
use crate::utils::Result;

pub(super) async fn model(repl: &Repl, name: Option<String>) -> Result<()> {
    let models: Vec<String> = {
        let ctx = repl.ctx.read();
        ctx.models().iter().map(ToString::to_string).collect()
    };
    let Some(name) = chosen(repl, name, "Which model?", models, ".model NAME").await? else {
        return Ok(());
    };
    let model = repl.ctx.write().set_model(&name)?;
    repl.ui.dim(&format!("model {model}"));
    Ok(())
}

/// Changes a setting in the active layer, or everywhere where layers do not have it.
pub(super) async fn set(repl: &Repl, key: &str, value: &str) -> Result<()> {
    let setting = Setting::parse(key, value)?;
    let concerns_servers = setting.concerns_servers();
    let layer = repl.ctx.write().apply(setting);
    repl.ui
        .dim(&format!("{key} = {value} ({})", layer.as_str()));
    repl.apply_style();
    if concerns_servers {
        mcp::settle(repl).await;
    }
    Ok(())
}
