//! Timings of the content policy.

fn main() {}
