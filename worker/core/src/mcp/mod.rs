//! MCP, as a proxy sees it: what each message is, what becomes of it, and what is changed on the way.
//!
//! Two eras of the protocol run side by side: revisions with sessions (2025-03-26 to 2025-11-25), and
//! the stateless one (2026-07-28). Each message is of one era, and is forwarded in it: Gateward
//! filters, and does not translate.
//!
//! Out of scope: whether a call is allowed, which the lane decides; and all I/O.

pub mod action;
pub mod answer;
pub mod denial;
pub mod envelope;
pub mod error;
pub mod forward;
pub mod listing;
pub mod message;
pub mod method;
pub mod origin;
pub mod raw;
pub mod redact;
pub mod review;
pub mod seal;
pub mod sse;

/// Which kind of protocol a message speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, sessions, GET streams, requests from the server.
    Session,
    /// Every request says all that it needs.
    Stateless,
}

/// The revision of [`Era::Stateless`].
pub const STATELESS_VERSION: &str = "2026-07-28";
/// The revisions of [`Era::Session`].
pub const SESSION_VERSIONS: [&str; 3] = [BATCH_VERSION, "2025-06-18", "2025-11-25"];
/// The one revision that has batches, and the one that a request without a version is of.
pub const BATCH_VERSION: &str = "2025-03-26";

/// How Gateward's own keys in `_meta` begin.
pub const META_PREFIX: &str = "dev.gateward/";

/// The extension of the stateless revision that does not pass through Gateward.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
