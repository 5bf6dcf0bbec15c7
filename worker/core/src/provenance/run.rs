//! The values of one run.
