//! Local tools and their permissions.
