//! What a configured provider is: data that `config` fills in and `client` reads. No file or environment access.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use super::{ClientError, models};

/// Which provider a client talks to; decides the wire, the usual address and the usual key variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// `OpenAI` itself.
    OpenAi,
    /// Anything that speaks `OpenAI`'s chat completions or Responses; needs `api_base`.
    OpenAiCompatible,
    /// Anthropic Messages.
    Claude,
    /// Google's `generateContent`.
    Gemini,
    /// Ollama, through its `OpenAI` route.
    Ollama,
}

impl ProviderKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiCompatible,
        Self::Claude,
        Self::Gemini,
        Self::Ollama,
    ];

    /// The word of `type:`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiCompatible => "openai-compatible",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Where this provider usually is; `None` where only the user knows.
    pub fn usual_base(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::OpenAiCompatible => None,
            Self::Claude => Some("https://api.anthropic.com/v1"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Self::Ollama => Some("http://127.0.0.1:11434/v1"),
        }
    }

    /// The variables this provider's users usually keep their key in.
    pub fn usual_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Claude => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::OpenAiCompatible | Self::Ollama => &[],
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProviderKind {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        let alias = match text {
            "anthropic" => Some(Self::Claude),
            "google" => Some(Self::Gemini),
            _ => None,
        };
        known
            .or(alias)
            .ok_or_else(|| UnknownWord::new("client type", text, &Self::ALL.map(Self::as_str)))
    }
}

/// Which of `OpenAI`'s two wires is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Api {
    /// Chat completions: what everything compatible speaks.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

impl FromStr for Api {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text {
            "chat" => Ok(Self::Chat),
            "responses" => Ok(Self::Responses),
            _ => Err(UnknownWord::new("api", text, &["chat", "responses"])),
        }
    }
}

/// A word of the configuration that means nothing here, with what it may have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{word}`, did you mean `{nearest}`?")]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    /// The known word that is closest.
    pub nearest: String,
}

impl UnknownWord {
    fn new(what: &'static str, word: &str, known: &[&str]) -> Self {
        let nearest = known
            .iter()
            .min_by_key(|candidate| strsim::damerau_levenshtein(candidate, word))
            .copied()
            .unwrap_or_default();
        Self {
            what,
            word: word.to_owned(),
            nearest: nearest.to_owned(),
        }
    }
}

/// A key. `Debug` never shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `value`, without the line end that files and `$(...)` leave.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into().trim().to_owned())
    }

    /// The key itself: for a request header, nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key: providers like to quote what they refuse. A key of three characters or less is no
    /// secret, and taking it out would tear words apart.
    pub fn hide(&self, text: String) -> String {
        if self.0.len() > 3 && text.contains(&self.0) {
            text.replace(&self.0, "…")
        } else {
            text
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// What is known about a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// As the provider calls it.
    pub name: String,
    /// Its context in tokens.
    pub max_input_tokens: Option<u64>,
    /// The longest answer in tokens.
    pub max_output_tokens: Option<u64>,
    /// Whether it takes images.
    pub supports_vision: bool,
    /// Whether it calls functions.
    pub supports_function_calling: bool,
}

impl ModelFacts {
    /// A model of which only the name is known: it calls functions, it sees nothing.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            max_input_tokens: None,
            max_output_tokens: None,
            supports_vision: false,
            supports_function_calling: true,
        }
    }
}

/// Changes to the requests for some models: `patch.chat_completions.'<model regex>'` (`H-12`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Patch {
    /// A regular expression that must match the whole model name; the first patch that matches is applied.
    pub model: String,
    /// Replaces the URL.
    pub url: Option<String>,
    /// Merged into the body as a JSON merge patch: objects merge, null removes, anything else replaces.
    pub body: Option<Value>,
    /// Headers to set, or to remove where there is no value.
    pub headers: BTreeMap<String, Option<String>>,
}

/// One configured client (`H-12`).
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderConfig {
    /// The name before the colon of `client:model`.
    pub name: String,
    /// Whose wire it speaks.
    pub kind: ProviderKind,
    /// Which wire, where the kind has two.
    pub api: Api,
    /// The key, if any.
    pub api_key: Option<Secret>,
    /// Where it is; with or without a slash at the end or `/v1`. Absent: the kind's usual address.
    pub api_base: Option<String>,
    /// The models on offer, the preferred first.
    pub models: Vec<ModelFacts>,
    /// A proxy URL; `-` for none at all; absent: what the environment says.
    pub proxy: Option<String>,
    /// Absent: ten seconds.
    pub connect_timeout: Option<Duration>,
    /// How long a provider may be silent. Absent: five minutes.
    pub read_timeout: Option<Duration>,
    /// Changes to requests, by model.
    pub patches: Vec<Patch>,
    /// Absent: `coyote/<version>`.
    pub user_agent: Option<String>,
}

impl ProviderConfig {
    /// A client with nothing configured but its name and kind.
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            api: Api::Chat,
            api_key: None,
            api_base: None,
            models: Vec::new(),
            proxy: None,
            connect_timeout: None,
            read_timeout: None,
            patches: Vec::new(),
            user_agent: None,
        }
    }

    /// The variables a key for this client is looked for in, the most specific first: `<NAME>_API_KEY`, then the
    /// kind's usual ones. The latter count only at the kind's own address, so that no key goes to somebody else.
    pub fn key_variables(&self) -> Vec<String> {
        let own = self
            .name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            })
            .collect::<String>()
            + "_API_KEY";
        let mut names = vec![own];
        if self.is_at_usual_base() {
            for usual in self.kind.usual_variables() {
                if !names.iter().any(|name| name == usual) {
                    names.push((*usual).to_owned());
                }
            }
        }
        names
    }

    /// Takes the key from the environment when it is there; what the file says is the fallback (`H-12`).
    #[must_use]
    pub fn with_environment(mut self, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let found = self
            .key_variables()
            .iter()
            .find_map(|name| env(name).filter(|value| !value.trim().is_empty()));
        if let Some(key) = found {
            self.api_key = Some(Secret::new(key));
        }
        self
    }

    /// The facts of `name`: as configured, else what is known of it without asking.
    pub fn model(&self, name: &str) -> ModelFacts {
        self.models
            .iter()
            .find(|model| model.name == name)
            .cloned()
            .unwrap_or_else(|| models::guess(self.kind, name))
    }

    /// Whether a request without a key is pointless.
    pub(super) fn needs_key(&self) -> bool {
        !self.kind.usual_variables().is_empty() && self.is_at_usual_base()
    }

    fn is_at_usual_base(&self) -> bool {
        match (&self.api_base, self.kind.usual_base()) {
            (None, _) => true,
            (Some(base), Some(usual)) => host(base) == host(usual),
            (Some(_), None) => false,
        }
    }

    pub(super) fn base(&self) -> Result<&str, ClientError> {
        self.api_base
            .as_deref()
            .map(str::trim)
            .filter(|base| !base.is_empty())
            .or(self.kind.usual_base())
            .ok_or_else(|| {
                ClientError::Config(format!(
                    "client `{}` of type `{}` has no `api_base`",
                    self.name, self.kind
                ))
            })
    }
}

fn host(url: &str) -> Option<&str> {
    let rest = url.split_once("://")?.1;
    rest.split(['/', '?', '#']).next()
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
