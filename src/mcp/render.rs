//! The one content policy: what a server answered becomes what the model reads (`M-60`..`M-68`).
