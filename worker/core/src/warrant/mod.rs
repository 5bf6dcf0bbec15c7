//! Capability warrants: signed, delegated, narrowed at each step, and proved at each call.

pub mod key;
