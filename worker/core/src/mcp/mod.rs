//! MCP as a proxy handles it: reading each message, choosing what happens to it, and the few changes to
//! what is forwarded.
//!
//! Two eras of the protocol are served: the revisions with sessions (2025-03-26 to 2025-11-25) and the
//! stateless one (2026-07-28). Each message belongs to one era and is forwarded in it. Gateward filters
//! messages; it does not translate between eras.
//!
//! Out of scope: whether a call is allowed, which the lane decides; and all I/O.

pub mod action;
pub mod answer;
pub mod denial;
pub mod envelope;
pub mod error;
pub mod forward;
pub mod jsonrpc;
pub mod listing;
pub mod message;
pub mod method;
pub mod origin;
pub mod parts;
pub mod redact;
pub mod response;
pub mod review;
pub mod seal;
pub mod sse;
pub mod unreviewed;

/// Which era of the protocol a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// The revisions with `initialize`, sessions, GET streams and requests from the server.
    Session,
    /// The revision in which every request is complete by itself.
    Stateless,
}

/// The revision of [`Era::Stateless`].
pub const STATELESS_VERSION: &str = "2026-07-28";
/// The revisions of [`Era::Session`].
pub const SESSION_VERSIONS: [&str; 3] = [BATCH_VERSION, "2025-06-18", "2025-11-25"];
/// The only revision with batches. A request without a version belongs to it.
pub const BATCH_VERSION: &str = "2025-03-26";

/// The prefix of Gateward's own keys in `_meta`.
pub const META_PREFIX: &str = "dev.gateward/";

/// The extension of the stateless revision that Gateward does not support.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
