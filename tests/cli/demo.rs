//! `coyote demo`.
