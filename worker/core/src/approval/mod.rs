//! Approvals: calls and registry changes that wait for people.

mod record;
mod view;
pub mod webhook;

pub use record::*;
pub use view::{ApprovalView, ApproverView, Edited};
