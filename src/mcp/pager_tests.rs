//! Lists end, whatever the cursors do.
