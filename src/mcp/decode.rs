//! Decoding, leniently, item by item (`M-20`).
