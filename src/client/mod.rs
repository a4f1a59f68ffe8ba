//! Providers behind one façade: a request in, a stream of events out.
//!
//! Knows wires, keys and HTTP; knows nothing of files, sessions or the terminal. What is configured arrives as a
//! [`ProviderConfig`]; what a person should see leaves as a [`Notice`](crate::chat::Notice) or an error.

mod config;
mod discover;
mod error;

use serde_json::Value;

use crate::chat::{Event, NoticeSink, Request};
use crate::utils::AbortToken;

pub use config::{Api, ModelFacts, Patch, ProviderConfig, ProviderKind, Secret, UnknownWord};
pub use discover::{from_environment, probe_local};
pub use error::ClientError;

/// One model of one provider.
#[derive(Debug)]
pub struct Client {
    config: ProviderConfig,
    model: ModelFacts,
}

impl Client {
    /// Checks the configuration; nothing is connected yet.
    pub fn new(config: &ProviderConfig, model: &ModelFacts) -> Result<Self, ClientError> {
        config.base()?;
        Ok(Self {
            config: config.clone(),
            model: model.clone(),
        })
    }

    /// The configured client's name.
    pub fn provider_name(&self) -> &str {
        &self.config.name
    }

    /// The model that answers.
    pub fn model(&self) -> &ModelFacts {
        &self.model
    }

    /// Sends `request` and waits until the answer begins, retrying what may succeed a little later (`H-44`).
    pub async fn send(
        &self,
        _request: &Request,
        _abort: &AbortToken,
        _sink: &dyn NoticeSink,
    ) -> Result<EventStream, ClientError> {
        tokio::task::yield_now().await;
        Err(ClientError::Config(
            "providers are not available yet".to_owned(),
        ))
    }

    /// The body that [`send`](Self::send) would post, patches included; holds no key.
    pub fn preview(&self, _request: &Request) -> Value {
        Value::Null
    }

    /// The request as a shell command, fit to be shown and logged: the key is a variable, the URL has no query
    /// values.
    pub fn preview_curl(&self, _request: &Request) -> String {
        String::new()
    }
}

/// An answer as it arrives. Dropping it cancels the request.
#[derive(Debug)]
pub struct EventStream {}

impl EventStream {
    /// The next event; `None` after [`Event::End`] or after an error.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        tokio::task::yield_now().await;
        None
    }
}
