//! Tests of the module beside.
