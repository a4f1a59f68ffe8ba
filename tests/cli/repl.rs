//! The REPL in a real pseudo-terminal.
