//! `.help` and `.info`.

use crate::repl::Repl;
use crate::repl::table::{self, COMMANDS};
use crate::utils::fuzzy::alternatives;
use crate::utils::{Error, Result};

pub(super) fn help(repl: &Repl, topic: Option<&str>) -> Result<()> {
    let Some(topic) = topic else {
        repl.ui.out(&overview(repl));
        return Ok(());
    };
    let name = format!(".{}", topic.trim_start_matches('.'));
    let Some(spec) = table::find(&name) else {
        let near = alternatives(&table::nearest(&name));
        let error = Error::user(format!("unknown command `{name}`"));
        return Err(if near.is_empty() {
            error.hint("`.help` lists the commands")
        } else {
            error.hint(format!("{near} is near"))
        });
    };
    repl.ui.out(&format!("{}\n  {}\n", spec.usage, spec.help));
    if let table::ArgKind::Choice(choices) = spec.args {
        let rows: Vec<Vec<String>> = choices
            .iter()
            .map(|choice| vec![format!("  {}", choice.word), choice.help.to_owned()])
            .collect();
        repl.ui.out(&repl.ui.table(&["", ""], &rows));
    }
    Ok(())
}

fn overview(repl: &Repl) -> String {
    let mut rows: Vec<Vec<String>> = COMMANDS
        .iter()
        .map(|spec| vec![spec.usage.to_owned(), spec.help.to_owned()])
        .collect();
    rows.push(vec![
        "!COMMAND".to_owned(),
        "Run a shell command".to_owned(),
    ]);
    rows.push(vec![
        "::: TEXT :::".to_owned(),
        "Ask a text of several lines, as it stands".to_owned(),
    ]);
    let keys = "Tab completes, Alt-Enter begins a line, Ctrl-O opens the editor, Ctrl-C ends an answer, Ctrl-D leaves\n";
    format!(
        "{}\n{keys}",
        repl.ui.table(&["command", "what it does"], &rows)
    )
}

pub(super) fn system(repl: &Repl) {
    let text = repl.ctx.read().info().to_text();
    repl.ui.out(&text);
}

pub(super) fn role(repl: &Repl) -> Result<()> {
    let text = repl.ctx.read().role_info();
    let text =
        text.ok_or_else(|| Error::user("no role is active").hint("`.role NAME` takes one on"))?;
    repl.ui.out(&format!("{}\n", text.trim_end()));
    Ok(())
}

pub(super) fn session(repl: &Repl) -> Result<()> {
    let info = repl.ctx.read().session_info();
    let info = info
        .ok_or_else(|| Error::user("no session is active").hint("`.session [NAME]` starts one"))?;
    repl.ui.out(&info.to_text());
    Ok(())
}
