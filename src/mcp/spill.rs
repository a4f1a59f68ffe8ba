//! Where payloads a model cannot read go (`M-64`, `M-65`).
