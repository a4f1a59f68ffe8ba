//! Questions to the person, asked one at a time.

use std::pin::Pin;

/// A question. Strings from servers and models are raw here; whoever shows it sanitises.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// May this be done? Answered by [`Answer::Yes`], [`Answer::No`] or [`Answer::Always`]; the default is no, and
    /// input typed before the question is discarded (`M-47`).
    Permission {
        /// One line: what is about to happen.
        title: String,
        /// What it would act on, a line each.
        details: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// The question.
        message: String,
        /// What Enter means.
        default: bool,
    },
    /// A line of text.
    Text {
        /// The question.
        message: String,
        /// Offered as it stands.
        default: Option<String>,
    },
    /// One of several.
    Select {
        /// The question.
        message: String,
        /// What there is to choose from.
        options: Vec<String>,
    },
    /// Any number of several.
    MultiSelect {
        /// The question.
        message: String,
        /// What there is to choose from.
        options: Vec<String>,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes, this once.
    Yes,
    /// No.
    No,
    /// Yes, for the rest of this run.
    Always,
    /// A line of text.
    Text(String),
    /// Indices into the options.
    Choices(Vec<usize>),
    /// The person declined to answer.
    Cancelled,
    /// The person declined and wants all of it to stop: Ctrl-C at the question.
    Interrupted,
    /// There is nobody to ask: no terminal.
    Unavailable,
}

/// Asks the person; implementations queue, so that one question is open at a time.
pub trait Ask: Send + Sync {
    /// Asks and waits for the answer.
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>>;
}
