//! How a request becomes a call: which tool, with which arguments, and with which claims.

pub mod claims;
pub mod command;
pub mod forward_auth;
pub mod headers;
pub mod http_tool;
pub mod location;
pub mod outcome;
pub mod parameters;
pub mod run;
mod tool_call;

pub use tool_call::*;
