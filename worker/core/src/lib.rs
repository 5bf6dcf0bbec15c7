//! How Gateward decides a tool call.
//!
//! Pure: no worker, no clock, no I/O. Stored data and the time are arguments; what must be written
//! is a return value. The one interface to the outside is [`lane::LaneSql`], through which the lane
//! runs its SQL: Durable Object storage in production, SQLite in memory in the tests.
//!
//! The modules below are in the order in which they use each other: a module uses only those above it. The exceptions
//! are in docs/ARCHITECTURE.md.

// Values: small types that are parsed once, and the bounds on what comes in.
pub mod bounds;
pub mod bucket;
pub mod clock;
pub mod decision;
pub mod decode;
pub mod etag;
pub mod field;
pub mod glob;
pub mod id;
pub mod json;
pub mod merge_patch;
pub mod name;
pub mod network;
pub mod percent;
pub mod prefer;
pub mod problem;
pub mod scope;
pub mod taint;
pub mod target;
mod text_enum;
pub mod trace;
pub mod trust;

pub mod log;

pub mod schema;

pub mod warrant;

pub mod credential;

pub mod isolate;

pub mod metrics;

pub mod sql;

pub mod provenance;

pub mod shield;

pub mod limit;

pub mod velocity;

pub mod call;

pub mod policy;

pub mod registry;

pub mod approval;

pub mod tlog;

pub mod receipt;

pub mod gate;

pub mod lane;

pub mod mcp;

pub mod route;
