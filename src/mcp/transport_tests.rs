//! Lines, answers and ends: every request that waits gets exactly one answer.
