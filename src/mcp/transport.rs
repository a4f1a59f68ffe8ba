//! Bytes to messages and back: our own transports (`M-14`, `M-20`).
