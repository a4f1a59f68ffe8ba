//! URI templates, level 1 of RFC 6570 (`M-51`).
