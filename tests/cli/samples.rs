//! Files as an existing user has them.
