//! A child process that never outlives coyote (`M-17`).
