//! One-shot questions.
