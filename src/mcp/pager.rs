//! Lists, page by page, within bounds (`M-19`).
