//! `.compress`: the model's own summary of a session, as the exchange that takes the place of its messages.

use crate::chat::{Activity, Event, Message, Notice, NoticeSink as _, ToolChoice};
use crate::client::Client;
use crate::config::Input;
use crate::repl::Repl;
use crate::utils::abort::unless_aborted;
use crate::utils::{AbortToken, Error, Result};

/// What the model is asked, and what the transcript begins with from then on.
const SUMMARISE: &str = "Summarise our conversation so far so that it can be continued from the summary alone: the \
     goals, the facts, decisions, names, numbers and open points. Answer with the summary only.";

/// The question for a summary and its answer; `None` when the person interrupted it.
pub(super) async fn of(repl: &Repl) -> Result<Option<Vec<Message>>> {
    let abort = repl.signals.work();
    repl.ui.notice(Notice::Activity(Some(Activity::Thinking)));
    let outcome = unless_aborted(&abort, answer(repl, &abort)).await;
    repl.ui.notice(Notice::Activity(None));
    let Ok(text) = outcome else {
        return Ok(None);
    };
    let text = text?;
    if text.trim().is_empty() {
        return Err(Error::provider("the model answered with an empty summary"));
    }
    Ok(Some(vec![
        Message::user(SUMMARISE),
        Message::assistant(text),
    ]))
}

async fn answer(repl: &Repl, abort: &AbortToken) -> Result<String> {
    let (client, mut request) = {
        let ctx = repl.ctx.read();
        let (provider, facts) = ctx.client_config()?;
        let request = ctx.request(&Input::from_str(SUMMARISE))?;
        (Client::new(&provider, &facts)?, request)
    };
    request.tool_choice = ToolChoice::None;
    let mut events = client.send(&request, abort, repl.ui.as_ref()).await?;
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let Event::Text(more) = event? {
            text.push_str(&more);
        }
    }
    Ok(text)
}
