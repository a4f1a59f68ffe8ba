//! The configuration file, its variables and its errors.
