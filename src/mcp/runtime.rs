//! Live servers and what the meta-functions do with them.
