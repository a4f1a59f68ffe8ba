//! Ranking a catalog for a query (`M-42`): BM25 over weighted fields, computed anew each time, the same on every run.
//!
//! Words are split at everything that is no letter or digit and again where case or digits change, and the unsplit word
//! counts too: `issue` finds `createIssue`, `github` finds `GitHub`.

use std::cmp::Ordering;

use serde_json::Value;

use super::catalog::{CatalogItem, FIELD_BYTES};
use crate::utils::text;

/// Distinct words of a query that count.
const TERMS: usize = 16;
/// Property and argument names that count, per item.
const PARAMETERS: usize = 64;
/// The fields of an item and what a word in each is worth: name, title, description, URI, parameters.
const WEIGHTS: [f64; FIELDS] = [3.0, 2.0, 1.0, 1.0, 0.5];
const FIELDS: usize = 5;
/// How quickly a word's repetition stops counting.
const SATURATION: f64 = 1.2;
/// How much a longer field makes a word count less.
const LENGTH_NORMALISATION: f64 = 0.75;

/// The best `top_k` items for `query`: an exact name or URI first, then by score, ties by key. A query without any word
/// gets the items in the order of their keys.
pub fn rank<'a>(items: &'a [CatalogItem], query: &str, top_k: usize) -> Vec<&'a CatalogItem> {
    let query = text::prefix(query, FIELD_BYTES).trim();
    let terms = terms(query);
    let scores = if terms.is_empty() {
        vec![1.0; items.len()]
    } else {
        scores(items, &terms)
    };
    let mut ranked: Vec<(bool, f64, &CatalogItem)> = items
        .iter()
        .zip(scores)
        .map(|(item, score)| (is_exact(item, query), score, item))
        .filter(|(exact, score, _)| *exact || *score > 0.0)
        .collect();
    let order = |a: &(bool, f64, &CatalogItem), b: &(bool, f64, &CatalogItem)| {
        b.0.cmp(&a.0)
            .then(b.1.total_cmp(&a.1))
            .then_with(|| by_key(a.2, b.2))
    };
    if top_k < ranked.len() {
        ranked.select_nth_unstable_by(top_k, order);
        ranked.truncate(top_k);
    }
    ranked.sort_by(order);
    ranked.into_iter().map(|(_, _, item)| item).collect()
}

fn is_exact(item: &CatalogItem, query: &str) -> bool {
    item.name == query || item.uri.as_deref() == Some(query)
}

/// The order of [`CatalogItem::key`], without building the keys.
fn by_key(a: &CatalogItem, b: &CatalogItem) -> Ordering {
    (a.kind.as_str(), a.id()).cmp(&(b.kind.as_str(), b.id()))
}

/// The distinct words of a query.
fn terms(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    words(query, &mut |word| {
        let word = stem(word).to_lowercase();
        if terms.len() < TERMS && !terms.contains(&word) {
            terms.push(word);
        }
    });
    terms
}

/// Counts of every term in every field of every item, and the fields' lengths.
struct Counts {
    terms: usize,
    found: Vec<u16>,
    lengths: Vec<[u16; FIELDS]>,
}

impl Counts {
    fn new(items: &[CatalogItem], terms: &[String]) -> Self {
        let mut counts = Self {
            terms: terms.len(),
            found: vec![0; items.len() * FIELDS * terms.len()],
            lengths: Vec::with_capacity(items.len()),
        };
        for (index, item) in items.iter().enumerate() {
            let mut lengths = [0; FIELDS];
            each_field(item, &mut |field, text| {
                words(text::prefix(text, FIELD_BYTES), &mut |word| {
                    if let Some(length) = lengths.get_mut(field) {
                        *length = u16::saturating_add(*length, 1);
                    }
                    let word = stem(word);
                    if let Some(term) = terms.iter().position(|term| is_word(word, term)) {
                        counts.count(index, field, term);
                    }
                });
            });
            counts.lengths.push(lengths);
        }
        counts
    }

    fn count(&mut self, item: usize, field: usize, term: usize) {
        let place = (item * FIELDS + field) * self.terms + term;
        if let Some(found) = self.found.get_mut(place) {
            *found = found.saturating_add(1);
        }
    }

    fn found(&self, item: usize, field: usize, term: usize) -> f64 {
        let place = (item * FIELDS + field) * self.terms + term;
        self.found.get(place).copied().map_or(0.0, f64::from)
    }

    fn average_lengths(&self) -> [f64; FIELDS] {
        let mut sums = [0.0; FIELDS];
        for lengths in &self.lengths {
            for (sum, length) in sums.iter_mut().zip(lengths) {
                *sum += f64::from(*length);
            }
        }
        sums.map(|sum| sum / count_as_f64(self.lengths.len().max(1)))
    }

    /// What a term is worth in an item: its occurrences, weighted, less in long fields.
    fn weight(&self, item: usize, term: usize, averages: &[f64; FIELDS]) -> f64 {
        let lengths = self.lengths.get(item).copied().unwrap_or_default();
        let fields = WEIGHTS.iter().zip(averages).zip(lengths).enumerate();
        fields
            .map(|(field, ((weight, average), length))| {
                let relative = if *average > 0.0 {
                    f64::from(length) / average
                } else {
                    1.0
                };
                let norm = 1.0 - LENGTH_NORMALISATION + LENGTH_NORMALISATION * relative;
                weight * self.found(item, field, term) / norm
            })
            .sum()
    }
}

fn scores(items: &[CatalogItem], terms: &[String]) -> Vec<f64> {
    let counts = Counts::new(items, terms);
    let averages = counts.average_lengths();
    let mut scores = vec![0.0; items.len()];
    for term in 0..terms.len() {
        let weights: Vec<f64> = (0..items.len())
            .map(|item| counts.weight(item, term, &averages))
            .collect();
        let with = count_as_f64(weights.iter().filter(|weight| **weight > 0.0).count());
        let without = count_as_f64(items.len()) - with;
        let rarity = ((without + 0.5) / (with + 0.5)).ln_1p();
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score += rarity * weight * (SATURATION + 1.0) / (weight + SATURATION);
        }
    }
    scores
}

/// Exact up to 2^32 and that many items are never listed.
fn count_as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn each_field(item: &CatalogItem, field: &mut dyn FnMut(usize, &str)) {
    field(0, &item.name);
    field(1, item.title.as_deref().unwrap_or_default());
    field(2, &item.description);
    // A resource without a name is named by its URI, which counts once.
    field(
        3,
        item.uri
            .as_deref()
            .filter(|uri| *uri != item.name)
            .unwrap_or_default(),
    );
    for argument in item.arguments.iter().flatten().take(PARAMETERS) {
        field(4, &argument.name);
    }
    let properties = item
        .raw
        .get("inputSchema")
        .and_then(|schema| schema.get("properties"))
        .and_then(Value::as_object);
    for name in properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .take(PARAMETERS)
    {
        field(4, name);
    }
}

/// A plural counts as its singular, roughly: both sides are treated alike.
fn stem(word: &str) -> &str {
    match word.strip_suffix(['s', 'S']) {
        Some(stem) if stem.len() >= 3 && !stem.ends_with(['s', 'S']) => stem,
        _ => word,
    }
}

/// Whether a stemmed word is the term, which is stemmed and in lower case.
fn is_word(word: &str, term: &str) -> bool {
    if word.is_ascii() {
        word.eq_ignore_ascii_case(term)
    } else {
        word.to_lowercase() == term
    }
}

/// What a character is, as far as words are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// Scripts that put no spaces between words: each character is one.
    Ideograph,
    Other,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        c if c.is_ascii() => Class::Other,
        '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
            Class::Ideograph
        }
        c if c.is_uppercase() => Class::Upper,
        c if c.is_numeric() => Class::Digit,
        c if c.is_alphabetic() => Class::Lower,
        _ => Class::Other,
    }
}

/// Calls `word` with each part of each word, and with the whole word when it has several parts.
fn words(text: &str, word: &mut dyn FnMut(&str)) {
    let mut splitter = Splitter {
        text,
        word_start: 0,
        part_start: 0,
        parts: 0,
        word,
    };
    let mut before = Class::Other;
    let mut characters = text.char_indices().peekable();
    while let Some((index, c)) = characters.next() {
        let now = class(c);
        let next = characters
            .peek()
            .map_or(Class::Other, |(_, next)| class(*next));
        match (before, now) {
            (Class::Other, Class::Other) => {}
            (_, Class::Other) => splitter.end_word(index),
            (Class::Other, _) => splitter.start_word(index),
            (Class::Ideograph, _) | (_, Class::Ideograph) => {
                splitter.end_word(index);
                splitter.start_word(index);
            }
            (Class::Lower, Class::Upper)
            | (Class::Digit, Class::Lower | Class::Upper)
            | (Class::Lower | Class::Upper, Class::Digit) => splitter.end_part(index),
            // The last capital of `HTTPServer` belongs to what follows.
            (Class::Upper, Class::Upper) if next == Class::Lower => splitter.end_part(index),
            (Class::Upper, Class::Upper | Class::Lower)
            | (Class::Lower, Class::Lower)
            | (Class::Digit, Class::Digit) => {}
        }
        before = now;
    }
    if before != Class::Other {
        splitter.end_word(text.len());
    }
}

struct Splitter<'t, 'w> {
    text: &'t str,
    word_start: usize,
    part_start: usize,
    parts: usize,
    word: &'w mut dyn FnMut(&str),
}

impl Splitter<'_, '_> {
    fn start_word(&mut self, index: usize) {
        (self.word_start, self.part_start, self.parts) = (index, index, 0);
    }

    fn end_part(&mut self, index: usize) {
        self.give(self.part_start, index);
        self.part_start = index;
        self.parts += 1;
    }

    fn end_word(&mut self, index: usize) {
        self.end_part(index);
        if self.parts > 1 {
            self.give(self.word_start, index);
        }
    }

    fn give(&mut self, start: usize, end: usize) {
        (self.word)(self.text.get(start..end).unwrap_or_default());
    }
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
