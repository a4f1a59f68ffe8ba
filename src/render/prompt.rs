//! Questions on the terminal, one at a time.

use std::pin::Pin;
use std::sync::Arc;

use inquire::ui::RenderConfig;
use inquire::validator::Validation;
use inquire::{Confirm, InquireError, MultiSelect, Select, Text};

use super::restore::RawMode;
use super::ui::Ui;
use crate::chat::{Answer, Ask, Question};
use crate::utils::text;

/// Events thrown away before a permission question; more are not pending, they are a paste that never ends.
const MAX_DISCARDED: usize = 100_000;

/// A question's details beyond this many lines are counted, not shown.
const MAX_DETAILS: usize = 20;

/// Asks the person at the terminal; without one every answer is [`Answer::Unavailable`].
///
/// Questions queue: the next is shown when the one before has its answer. While one is open the spinner rests and
/// notices wait. A question whose asker went away stays open until it is answered, because a terminal cannot be read
/// half: the queue is kept by the question, not by who asked.
#[derive(Clone)]
pub struct Prompter {
    ui: Arc<Ui>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Prompter {
    /// Asks on the terminal of `ui`.
    pub fn new(ui: Arc<Ui>) -> Self {
        Self {
            ui,
            turn: Arc::default(),
        }
    }
}

impl Ask for Prompter {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            if !self.ui.can_ask() {
                return Answer::Unavailable;
            }
            let turn = self.turn.clone().lock_owned().await;
            let ui = self.ui.clone();
            let asked = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                let _pause = ui.pause();
                put(&ui, question)
            });
            asked.await.unwrap_or(Answer::Cancelled)
        })
    }
}

/// Asks and waits. Blocks.
fn put(ui: &Ui, question: Question) -> Answer {
    let config = if ui.is_colored() {
        RenderConfig::default_colored()
    } else {
        RenderConfig::empty()
    };
    let answer = match question {
        Question::Permission { title, details } => permission(ui, &title, &details, &config),
        Question::Confirm { message, default } => Confirm::new(&text::sanitize_line(&message))
            .with_default(default)
            .with_render_config(config)
            .prompt()
            .map(|yes| if yes { Answer::Yes } else { Answer::No }),
        Question::Text { message, default } => {
            let message = text::sanitize_line(&message);
            let default = default.map(|default| text::sanitize_line(&default));
            let mut asked = Text::new(&message).with_render_config(config);
            if let Some(default) = &default {
                asked = asked.with_initial_value(default);
            }
            asked.prompt().map(Answer::Text)
        }
        Question::Select { message, options } => {
            Select::new(&text::sanitize_line(&message), shown(ui, &options))
                .with_render_config(config)
                .raw_prompt()
                .map(|chosen| Answer::Choices(vec![chosen.index]))
        }
        Question::MultiSelect { message, options } => {
            MultiSelect::new(&text::sanitize_line(&message), shown(ui, &options))
                .with_render_config(config)
                .raw_prompt()
                .map(|chosen| Answer::Choices(chosen.iter().map(|option| option.index).collect()))
        }
    };
    match answer {
        Ok(answer) => answer,
        Err(InquireError::NotTTY) => Answer::Unavailable,
        Err(InquireError::OperationInterrupted) => Answer::Interrupted,
        Err(_) => Answer::Cancelled,
    }
}

/// A question that must never be answered by accident: what was typed before it is thrown away, Enter alone means no,
/// and any other word is asked about again.
fn permission(
    ui: &Ui,
    title: &str,
    details: &[String],
    config: &RenderConfig<'static>,
) -> Result<Answer, InquireError> {
    ui.line(&text::sanitize_line(title));
    let columns = ui.width();
    for detail in details.iter().take(MAX_DETAILS) {
        let detail = format!("  {}", text::sanitize_line(detail));
        ui.line(&text::fit(&detail, columns));
    }
    if let Some(more) = details
        .len()
        .checked_sub(MAX_DETAILS)
        .filter(|more| *more > 0)
    {
        ui.line(&format!("  … and {}", text::plural(more, "more line")));
    }
    discard_typed_ahead();
    let typed = Text::new("Allow? (y)es, (n)o, (a)lways:")
        .with_help_message("Enter alone means no")
        .with_validator(|typed: &str| {
            Ok(match decision(typed) {
                Some(_) => Validation::Valid,
                None => Validation::Invalid("y, n or a".into()),
            })
        })
        .with_render_config(*config)
        .prompt()?;
    Ok(decision(&typed).unwrap_or(Answer::No))
}

/// What a typed word decides; nothing is no.
fn decision(typed: &str) -> Option<Answer> {
    match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(Answer::Yes),
        "a" | "always" => Some(Answer::Always),
        "" | "n" | "no" => Some(Answer::No),
        _ => None,
    }
}

fn shown(ui: &Ui, options: &[String]) -> Vec<String> {
    let columns = ui.width().saturating_sub(6);
    (options.iter())
        .map(|option| text::fit(&text::sanitize_line(option), columns).into_owned())
        .collect()
}

/// Throws away what was typed before now (`M-47`): what the kernel holds, unfinished lines included, and what has
/// already been read and not been taken.
fn discard_typed_ahead() {
    let raw = RawMode::enter();
    #[cfg(unix)]
    {
        use nix::sys::termios::{FlushArg, tcflush};
        let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    }
    if raw.is_some() {
        for _ in 0..MAX_DISCARDED {
            match crossterm::event::poll(std::time::Duration::ZERO) {
                Ok(true) => drop(crossterm::event::read()),
                Ok(false) | Err(_) => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::RenderOptions;

    #[test]
    fn only_a_clear_word_decides_and_nothing_means_no() {
        assert_eq!(decision("y"), Some(Answer::Yes));
        assert_eq!(decision(" YES "), Some(Answer::Yes));
        assert_eq!(decision("a"), Some(Answer::Always));
        assert_eq!(decision(""), Some(Answer::No));
        assert_eq!(decision("no"), Some(Answer::No));
        assert_eq!(decision("yy"), None);
        assert_eq!(decision("ok"), None);
    }

    #[tokio::test]
    async fn without_a_terminal_nobody_is_asked() {
        let prompter = Prompter::new(Ui::new(RenderOptions::plain()));
        let question = Question::Permission {
            title: "remove everything".to_owned(),
            details: Vec::new(),
        };
        assert_eq!(prompter.ask(question).await, Answer::Unavailable);
    }
}
