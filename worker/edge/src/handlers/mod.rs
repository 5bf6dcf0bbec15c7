//! One module per endpoint.

pub mod administration;
pub mod approvals;
pub mod authorize;
pub mod decisions;
pub mod forward_auth;
pub mod health;
pub mod http_tools;
pub mod limits;
pub mod logs;
pub mod mcp;
pub mod metrics;
mod parameters;
pub mod receipts;
pub mod runs;
