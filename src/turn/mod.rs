//! The loop, once: for one-shot questions, the REPL and delegates.
