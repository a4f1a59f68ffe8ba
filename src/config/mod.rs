//! What is configured, and what is true now.
