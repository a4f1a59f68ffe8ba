//! Who shares a connection, and who does not.
