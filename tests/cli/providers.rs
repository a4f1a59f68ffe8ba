//! Providers that misbehave.
