//! The one error that reaches a person: a kind, a cause chain, hints, and the exit code that follows (`H-05`).
//!
//! Modules whose callers branch on what went wrong have `thiserror` enums of their own and convert into
//! [`Error`] at their upper edge. Only `render` prints an error, and only `cli` turns one into an exit code.

use std::fmt;

/// A result whose error is meant for a person.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whose side a failure is on; decides how it is introduced, never whether it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for cannot be done as asked: an unknown name, a refused combination.
    User,
    /// A file or variable of the configuration is wrong.
    Config,
    /// The model's provider refused, failed or answered nonsense.
    Provider,
    /// An MCP server is unavailable, refused or answered nonsense.
    Mcp,
    /// A defect of coyote or of the machine: nothing the person typed.
    Internal,
}

impl ErrorKind {
    /// The stable word of machine output (`--json`).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Config => "config",
            Self::Provider => "provider",
            Self::Mcp => "mcp",
            Self::Internal => "internal",
        }
    }
}

/// How the process ends (`H-05`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// Any failure.
    Failure = 1,
    /// The command line was wrong.
    Usage = 2,
    /// SIGHUP.
    HungUp = 129,
    /// SIGINT.
    Interrupted = 130,
    /// SIGQUIT (Ctrl-\ on a terminal).
    Quit = 131,
    /// SIGTERM.
    Terminated = 143,
}

impl Exit {
    /// A failure in place of success; any other way to end says more.
    #[must_use]
    pub fn or_failure(self) -> Self {
        match self {
            Self::Success => Self::Failure,
            other => other,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What went wrong, why, and what to do about it.
pub struct Error {
    kind: ErrorKind,
    source: anyhow::Error,
    hints: Vec<String>,
}

impl Error {
    /// Wraps `source`, keeping its chain of causes.
    pub fn new(kind: ErrorKind, source: impl Into<anyhow::Error>) -> Self {
        Self {
            kind,
            source: source.into(),
            hints: Vec::new(),
        }
    }

    /// A [`ErrorKind::User`] error that consists of a message.
    pub fn user(message: impl fmt::Display) -> Self {
        Self::message(ErrorKind::User, message)
    }

    /// A [`ErrorKind::Config`] error that consists of a message.
    pub fn config(message: impl fmt::Display) -> Self {
        Self::message(ErrorKind::Config, message)
    }

    /// A [`ErrorKind::Provider`] error that consists of a message.
    pub fn provider(message: impl fmt::Display) -> Self {
        Self::message(ErrorKind::Provider, message)
    }

    /// A [`ErrorKind::Mcp`] error that consists of a message.
    pub fn mcp(message: impl fmt::Display) -> Self {
        Self::message(ErrorKind::Mcp, message)
    }

    /// A [`ErrorKind::Internal`] error that consists of a message.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::message(ErrorKind::Internal, message)
    }

    fn message(kind: ErrorKind, message: impl fmt::Display) -> Self {
        Self {
            kind,
            source: anyhow::Error::msg(message.to_string()),
            hints: Vec::new(),
        }
    }

    /// Puts `message` on top of the cause chain.
    #[must_use]
    pub fn context(mut self, message: impl fmt::Display) -> Self {
        self.source = self.source.context(message.to_string());
        self
    }

    /// Adds a remedy; it starts with what to type or edit.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whose side the failure is on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The remedies, in the order they were added.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// The causes below the top message, outermost first.
    pub fn causes(&self) -> impl Iterator<Item = String> + '_ {
        self.source.chain().skip(1).map(ToString::to_string)
    }

    /// The typed error below, when it is a `T`.
    pub fn downcast_ref<T: std::error::Error + Send + Sync + 'static>(&self) -> Option<&T> {
        self.source.downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.source, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind)
            .field("message", &self.source.to_string())
            .field("causes", &self.causes().collect::<Vec<_>>())
            .field("hints", &self.hints)
            .finish()
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Internal, error)
    }
}

/// Puts context on results, choosing the kind when the error has none yet.
pub trait ResultExt<T> {
    /// Wraps the error as `kind` with `message` on top.
    fn or_fail(self, kind: ErrorKind, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<anyhow::Error>> ResultExt<T> for std::result::Result<T, E> {
    fn or_fail(self, kind: ErrorKind, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::new(kind, error).context(message()))
    }
}
