//! An answer as it arrives: bytes → events → [`Event`]s, with one bound on silence and one way out.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;

use super::sse::Framing;
use super::wire::{Decoder, Fault};
use super::{ClientError, ProviderConfig, Secret};
use crate::chat::Event;
use crate::utils::AbortToken;
use crate::utils::abort::unless_aborted;
use crate::utils::http::describe;

/// How long to wait for the usage once the answer is complete: some servers leave the connection open.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// An answer as it arrives. Dropping it closes the connection, which stops the provider.
#[derive(Debug)]
pub struct EventStream {
    provider: String,
    key: Option<Secret>,
    response: Option<Response>,
    framing: Framing,
    decoder: Decoder,
    ready: VecDeque<Event>,
    failed: Option<ClientError>,
    idle: Duration,
    abort: AbortToken,
}

impl EventStream {
    pub(super) fn new(
        config: &ProviderConfig,
        response: Response,
        decoder: Decoder,
        idle: Duration,
        abort: AbortToken,
    ) -> Self {
        Self {
            provider: config.name.clone(),
            key: config.api_key.clone(),
            response: Some(response),
            framing: Framing::default(),
            decoder,
            ready: VecDeque::new(),
            failed: None,
            idle,
            abort,
        }
    }

    /// The next event; `None` after [`Event::End`] or after an error. Text that came before an error has been
    /// delivered before it.
    pub async fn next(&mut self) -> Option<Result<Event, ClientError>> {
        self.fill().await;
        match self.ready.pop_front() {
            Some(event) => Some(Ok(event)),
            None => self.failed.take().map(Err),
        }
    }

    /// Waits until something is ready to be delivered, or nothing more will be.
    pub(super) async fn fill(&mut self) {
        while self.ready.is_empty() && self.failed.is_none() {
            let Some(response) = &mut self.response else {
                return;
            };
            let complete = self.decoder.is_complete();
            let wait = if complete {
                LAST_WORDS.min(self.idle)
            } else {
                self.idle
            };
            let chunk =
                unless_aborted(&self.abort, tokio::time::timeout(wait, response.chunk())).await;
            let result = match chunk {
                Err(aborted) => {
                    self.response = None;
                    self.failed = Some(aborted.into());
                    return;
                }
                Ok(Ok(Ok(Some(bytes)))) => self.take(&bytes),
                Ok(Ok(Ok(None))) => self.end(None),
                // The connection broke, or went silent, after everything had been said.
                Ok(Ok(Err(_)) | Err(_)) if complete => self.end(None),
                Ok(Ok(Err(error))) => self.end(Some(describe(error))),
                Ok(Err(_)) => {
                    self.response = None;
                    self.failed = Some(ClientError::Idle {
                        provider: self.provider.clone(),
                        after: self.idle,
                    });
                    return;
                }
            };
            if let Err(fault) = result {
                self.response = None;
                self.failed = Some(self.error(fault));
            }
        }
    }

    /// The error that `fill` met before anything could be delivered.
    pub(super) fn failed_early(&mut self) -> Option<ClientError> {
        if self.ready.is_empty() {
            self.failed.take()
        } else {
            None
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut frames = Vec::new();
        let cut = self.framing.feed(bytes, &mut frames);
        self.decode(&frames)?;
        cut?;
        if self.decoder.is_ended() {
            self.finish()?;
        }
        Ok(())
    }

    /// The body is over; `broken` says how, when it did not end well.
    fn end(&mut self, broken: Option<String>) -> Result<(), Fault> {
        let mut frames = Vec::new();
        self.framing.finish(&mut frames);
        let decoded = self.decode(&frames);
        match (decoded.and_then(|()| self.finish()), broken) {
            // Half an event is what a broken connection leaves; that is not its cause.
            (Err(Fault::Truncated(_) | Fault::Nonsense(_)), Some(message)) => {
                Err(Fault::Truncated(message))
            }
            // A document that is whole and says nothing that this wire knows: asking again would not change it.
            (Err(Fault::Truncated(_)), None)
                if self.framing.is_json() && !self.decoder.has_delivered() =>
            {
                let end = frames.last().map_or("", String::as_str);
                Err(Fault::Nonsense(format!(
                    "it is JSON without an answer: {}",
                    crate::utils::text::bounded(end, 200)
                )))
            }
            (result, _) => result,
        }
    }

    fn decode(&mut self, frames: &[String]) -> Result<(), Fault> {
        let mut events = Vec::new();
        let result = frames
            .iter()
            .try_for_each(|frame| self.decoder.frame(frame, &mut events));
        self.ready.extend(events);
        result
    }

    fn finish(&mut self) -> Result<(), Fault> {
        self.response = None;
        let mut events = Vec::new();
        let result = self.decoder.finish(&mut events);
        self.ready.extend(events);
        result
    }

    fn error(&self, fault: Fault) -> ClientError {
        let provider = self.provider.clone();
        let fresh = !self.decoder.has_delivered();
        match fault {
            Fault::Reported {
                message,
                overflow: true,
                ..
            } => ClientError::ContextOverflow {
                message: self.hide(message),
            },
            Fault::Reported {
                message, retryable, ..
            } => ClientError::Frame {
                provider,
                message: self.hide(message),
                retryable: retryable && fresh,
            },
            Fault::TooLarge(message) => ClientError::TooLarge { provider, message },
            Fault::Nonsense(message) => ClientError::Nonsense { provider, message },
            Fault::Truncated(message) => ClientError::Truncated {
                provider,
                message,
                retryable: fresh,
            },
        }
    }

    fn hide(&self, message: String) -> String {
        match &self.key {
            Some(key) => key.hide(message),
            None => message,
        }
    }
}
