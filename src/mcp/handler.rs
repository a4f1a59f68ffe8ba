//! What servers say unasked: progress, changed lists, log messages; and polite refusals (`M-14`).
