//! `gateward`: administers a worker over its HTTP API.
//!
//! How a command runs: `commands` turns arguments into a plan without any I/O, `run` carries out
//! the plan through `client`, and `table` shows the answers. Out of scope: what the API allows.
//! The worker checks names and values. The command line only checks values of closed lists, which it
//! takes from the core.

mod approval;
mod arguments;
mod bars;
mod chain;
mod client;
mod commands;
mod decision;
mod entry;
mod export;
mod failure;
mod follow;
mod grant;
mod notes;
mod page;
mod plan;
mod provenance;
mod reference;
mod request;
mod review;
mod run;
mod runner;
mod secret;
mod section;
mod sign;
mod table;
mod upstream;
pub mod verify;
mod warrant;
mod watch;

pub use entry::{command, main};
pub use reference::reference;
