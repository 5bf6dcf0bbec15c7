//! What one isolate of the worker remembers between requests, in memory only.

pub mod memory;
pub mod outage;
pub mod readiness;
pub mod recent;
