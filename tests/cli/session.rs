//! Sessions: saving, resuming, crashing.
