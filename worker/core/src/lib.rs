//! How Gateward decides a tool call.
//!
//! Pure: no worker, no clock, no I/O. What storage holds and what time it is are arguments; what
//! is to be written is a return value. The one seam is [`lane::LaneSql`], through which the lane
//! runs its SQL: Durable Object storage when it ships, SQLite in memory in the tests.
//!
//! The modules stand in the order of a call's life (docs/ARCHITECTURE.md).

pub mod bounds;
pub mod problem;

pub mod signature;
pub mod token;

pub mod call;
pub mod glob;
pub mod headers;
pub mod json;
pub mod name;
pub mod network;
pub mod scope;
pub mod target;
pub mod trust;

pub mod shield;

pub mod command;

pub mod approval;
pub mod bucket;
pub mod budget;
pub mod bundle;
pub mod config;
pub mod egress;
pub mod forward_auth;
pub mod gate;
pub mod hierarchy;
pub mod http_tool;
pub mod id;
pub mod input;
pub mod memory;
pub mod outage;
pub mod policy;
pub mod proxy;
pub mod readiness;
pub mod receipt;
pub mod refusals;
pub mod registry;
pub mod retention;
pub mod risk;
pub mod schema;
pub mod stated;
pub mod upstream;

pub mod audit;
pub mod lane;
pub mod records;
pub mod sql;
pub mod webhook;

pub mod admin;

pub mod mcp;
