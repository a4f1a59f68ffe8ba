//! Names: identities that round-trip, look-alikes that do not.
