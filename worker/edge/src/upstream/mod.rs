//! Requests of the worker's own to the servers behind Gateward.

pub mod discovery;
pub mod hold;
pub mod passed;
pub mod relay;
