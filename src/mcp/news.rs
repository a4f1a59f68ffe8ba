//! What servers announce of themselves and a person should hear: lists that changed (`M-41`).
//!
//! Announcements that come together are one piece of news, and what a server announces before anybody has asked it
//! anything is none: some greet every client that way.

use std::fmt;
use std::time::Duration;

use tokio::sync::broadcast;

use super::{ConnectedServer, ListKind, ServerName};

/// How much news may wait to be heard; beyond that the oldest is dropped.
const WAITING_MAX: usize = 64;
/// Announcements within this time are one piece of news.
const TOGETHER: Duration = Duration::from_millis(100);

/// A server's lists changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Whose.
    pub server: ServerName,
    /// Which, in the order of [`ListKind::ALL`].
    pub kinds: Vec<ListKind>,
}

impl fmt::Display for News {
    /// For people: "MCP server `x` changed its tools, prompts".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The protocol announces resources and their templates together.
        let words: Vec<_> = self
            .kinds
            .iter()
            .filter(|kind| **kind != ListKind::ResourceTemplates)
            .map(|kind| kind.words())
            .collect();
        write!(
            f,
            "MCP server `{}` changed its {}",
            self.server,
            words.join(", ")
        )
    }
}

/// Where the news of many servers comes together.
#[derive(Debug, Clone)]
pub(crate) struct Newsroom(broadcast::Sender<News>);

impl Default for Newsroom {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Newsroom {
    /// The news from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<News> {
        self.0.subscribe()
    }

    /// Takes the announcements of `server` as long as there is one.
    pub(crate) fn follow(&self, server: &ConnectedServer) {
        let mut announced = server.announced();
        let (server, news) = (server.name().clone(), self.0.clone());
        tokio::spawn(async move {
            let mut before = *announced.borrow_and_update();
            while announced.changed().await.is_ok() {
                tokio::time::sleep(TOGETHER).await;
                let now = *announced.borrow_and_update();
                let kinds = ListKind::ALL
                    .into_iter()
                    .zip(before.into_iter().zip(now))
                    .filter(|(_, (before, now))| before != now)
                    .map(|(kind, _)| kind)
                    .collect();
                before = now;
                // Nobody has to listen.
                let _ = news.send(News {
                    server: server.clone(),
                    kinds,
                });
            }
        });
    }
}
