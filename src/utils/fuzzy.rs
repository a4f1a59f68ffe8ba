//! Which known name a mistyped one probably meant, and which names fit what has been typed so far.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

/// Names longer than this many characters are compared by their beginning: distance is quadratic, and a server may
/// call a tool anything.
const COMPARED_CHARS: usize = 64;

/// The known names `name` most likely meant, best first, at most `limit`; none when nothing is close.
///
/// Close means: a few letters apart (a third of the longer name), or one begins with the other, or one contains the
/// other. Case never counts.
pub fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let wanted = folded(name);
    let mut ranked: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| Some((distance(&wanted, &folded(candidate))?, candidate)))
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance); // stable: ties stay in the order they were given in
    ranked.dedup_by(|a, b| a.1 == b.1);
    ranked.truncate(limit);
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The names in a sentence: `` `a`, `b` or `c` ``. Empty for none.
pub fn alternatives(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

/// A candidate that fits what has been typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// Its place among the candidates.
    pub index: usize,
    /// What places, by index of the candidate's graphemes, ascending.
    pub places: Vec<usize>,
}

/// The candidates that contain the characters of `typed` in order, best first; all, in the given order, when
/// nothing was typed.
pub fn filter(typed: &str, candidates: &[&str]) -> Vec<Fit> {
    let pattern = Pattern::parse(&escaped(typed), CaseMatching::Smart, Normalization::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut fits: Vec<(u32, Fit)> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let mut indices = Vec::new();
        let haystack = Utf32Str::new(candidate, &mut buffer);
        if let Some(score) = pattern.indices(haystack, &mut matcher, &mut indices) {
            indices.sort_unstable();
            indices.dedup();
            let places = indices.into_iter().map(|at| at as usize).collect();
            fits.push((score, Fit { index, places }));
        }
    }
    fits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    fits.into_iter().map(|(_, fit)| fit).collect()
}

/// Switches off the pattern language (`^`, `!`, `'`, `$` and spaces that separate words): what was typed is a name.
fn escaped(typed: &str) -> String {
    let mut pattern = String::with_capacity(typed.len() + 2);
    for c in typed.chars() {
        if matches!(c, '^' | '!' | '\'' | '$' | ' ' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn folded(name: &str) -> String {
    name.chars()
        .take(COMPARED_CHARS)
        .flat_map(char::to_lowercase)
        .collect()
}

/// Smaller is nearer; `None` is not near at all.
fn distance(wanted: &str, candidate: &str) -> Option<usize> {
    if wanted.is_empty() || candidate.is_empty() {
        return None;
    }
    let edits = strsim::damerau_levenshtein(wanted, candidate);
    let longer = wanted.chars().count().max(candidate.chars().count());
    let begins = candidate.starts_with(wanted) || wanted.starts_with(candidate);
    let contains = candidate.contains(wanted) || wanted.contains(candidate);
    let near = edits <= (longer / 3).max(1) && edits < longer;
    if begins {
        return Some(edits.min(2));
    }
    (near || contains).then_some(edits)
}

#[cfg(test)]
#[path = "fuzzy_tests.rs"]
mod tests;
