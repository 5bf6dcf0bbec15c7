//! The HTTP API: its routes, what requests and answers hold, and its description.

pub mod approvals;
pub mod decisions;
pub mod health;
pub mod limits;
// The worker serves the file that this writes.
#[cfg(not(target_family = "wasm"))]
pub mod openapi;
pub mod page;
pub mod receipts;
pub mod request;
pub mod route;
pub mod runs;
