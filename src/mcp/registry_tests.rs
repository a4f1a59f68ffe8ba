//! Many servers at once: one in trouble costs the others nothing.
