//! What the tests share: a throw-away home, a scripted provider, a pseudo-terminal.
