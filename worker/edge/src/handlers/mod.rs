//! One module per endpoint.

pub mod administration;
pub mod approvals;
pub mod authorize;
pub mod decisions;
pub mod health;
pub mod receipts;
