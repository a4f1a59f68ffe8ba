//! The interactive line loop and its commands.
