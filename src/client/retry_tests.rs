use super::*;

fn headers(name: &'static str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
}

fn asked(name: &'static str, value: &str) -> Option<Duration> {
    let now = chrono::DateTime::parse_from_rfc2822("Wed, 21 Oct 2026 07:28:00 GMT").unwrap();
    retry_after(&headers(name, value), now.to_utc())
}

#[test]
fn every_form_of_retry_after_is_read() {
    assert_eq!(asked("retry-after", "3"), Some(Duration::from_secs(3)));
    assert_eq!(
        asked("retry-after", " 0.5 "),
        Some(Duration::from_millis(500))
    );
    assert_eq!(
        asked("retry-after-ms", "250"),
        Some(Duration::from_millis(250))
    );
    assert_eq!(
        asked("retry-after", "Wed, 21 Oct 2026 07:28:07 GMT"),
        Some(Duration::from_secs(7))
    );
    assert_eq!(
        asked("retry-after", "Wed, 21 Oct 2020 07:28:07 GMT"),
        Some(Duration::ZERO)
    );
    assert_eq!(asked("retry-after", "1e300"), Some(Duration::MAX));
    for nonsense in ["-1", "soon", "NaN", "inf", ""] {
        assert_eq!(asked("retry-after", nonsense), None, "{nonsense}");
    }
}

#[test]
fn pauses_grow_up_to_a_bound_and_attempts_end() {
    let policy = RetryPolicy {
        attempts: 10,
        ..RetryPolicy::default()
    };
    let pauses: Vec<_> = (1..=10)
        .map(|failed| policy.pause(failed, None, 1.0))
        .collect();
    assert_eq!(pauses[0], Some(policy.base));
    assert_eq!(pauses[1], Some(policy.base * 2));
    assert_eq!(pauses[8], Some(policy.ceiling));
    assert_eq!(pauses[9], None);
    assert_eq!(policy.pause(1, None, 0.0), Some(policy.base / 2));
}

#[test]
fn a_provider_is_given_the_time_it_asks_for_unless_that_is_too_long() {
    let policy = RetryPolicy::default();
    let second = Duration::from_secs(1);
    assert_eq!(policy.pause(1, Some(second * 20), 0.0), Some(second * 20));
    assert_eq!(policy.pause(1, Some(policy.patience + second), 0.0), None);
    assert_eq!(policy.pause(policy.attempts, Some(second), 0.0), None);
}

#[test]
fn chance_is_between_none_and_one() {
    assert!((0..100).all(|_| (0.0..=1.0).contains(&jitter())));
}
