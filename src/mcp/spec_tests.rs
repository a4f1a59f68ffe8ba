//! Server files: what is accepted, what costs an entry, what is said about it.
