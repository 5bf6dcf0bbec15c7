//! The HTTP API: which change a request is, what requests and answers hold, and its description. The
//! table of its routes is [`gateward_core::route`].

pub mod approvals;
pub mod decisions;
pub mod health;
pub mod limits;
// The worker serves the file that this writes.
#[cfg(not(target_family = "wasm"))]
pub mod openapi;
pub mod page;
pub mod query;
pub mod receipts;
pub mod request;
pub mod runs;
