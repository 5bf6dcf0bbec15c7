//! Approvals: calls and registry changes that wait for people.

mod command;
mod record;
mod steps;
mod view;
pub mod webhook;

pub use command::*;
pub use record::*;
pub use steps::*;
pub use view::{ApprovalView, ApproverView, Edited};
