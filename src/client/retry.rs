//! When to ask again (`H-44`): pure decisions; whoever sends also waits.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use http::HeaderMap;

/// How often, and how long between.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPolicy {
    /// Requests at most, the first included.
    pub(super) attempts: u32,
    /// The bound of the first pause; doubles with every other.
    pub(super) base: Duration,
    /// The longest pause that we choose.
    pub(super) ceiling: Duration,
    /// The longest pause that a provider may ask for; more than that is for the person to decide.
    pub(super) patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_millis(500),
            ceiling: Duration::from_secs(8),
            patience: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// How long to wait after `failed` attempts; `None` to give up. `jitter` is between 0 and 1.
    pub(super) fn pause(
        &self,
        failed: u32,
        retry_after: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        if failed >= self.attempts {
            return None;
        }
        if let Some(asked) = retry_after {
            return (asked <= self.patience).then_some(asked);
        }
        let bound = self
            .base
            .saturating_mul(
                1_u32
                    .checked_shl(failed.saturating_sub(1))
                    .unwrap_or(u32::MAX),
            )
            .min(self.ceiling);
        // Half is sure, half is chance: many clients must not come back at the same moment.
        Some(bound.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0)))
    }
}

/// Chance, as far as politeness needs it.
pub(super) fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0_u8);
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// What `retry-after-ms` or `retry-after` ask for: milliseconds, seconds (also broken ones), or a date.
pub(super) fn retry_after(
    headers: &HeaderMap,
    now: chrono::DateTime<chrono::Utc>,
) -> Option<Duration> {
    let header = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite() && *number >= 0.0)
    };
    if let Some(milliseconds) = header("retry-after-ms").and_then(number) {
        return Some(span(milliseconds / 1000.0));
    }
    let text = header("retry-after")?;
    if let Some(seconds) = number(text) {
        return Some(span(seconds));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.to_utc() - now).to_std().unwrap_or_default())
}

/// More than a duration can hold is still a wish to be left alone.
fn span(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
