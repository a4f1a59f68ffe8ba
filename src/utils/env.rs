//! The only reader of the process environment.
//!
//! Everything else receives values, so that tests need no global state and so that the list of variables coyote
//! reads can be found in one place. Writing to the environment happens nowhere.

/// The value of `name`, when it is set, is Unicode and is not empty.
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether `name` is set to anything at all, the empty string included (`NO_COLOR` counts so).
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// Every variable whose name and value are Unicode.
pub fn all() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}
