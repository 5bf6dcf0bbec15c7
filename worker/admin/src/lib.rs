//! How administrators change the registry: what a request may contain, what the change depends on,
//! and which statements make it. Pure, as the core is: the shell runs the statement of
//! [`Write::read`], passes the rows to [`Write::apply`], and commits the statements that it returns.
//!
//! A crate of its own because no call passes through it: it is compiled to be small, and the core to
//! be fast.
//!
//! INVARIANT (one order): every change of a tenant's registry raises its epoch by one, in the same
//! D1 batch that writes the change and the audit event `registry.<epoch>`. The event's key is the
//! lock: of two changes that were decided at the same epoch, the second fails as a whole and is
//! decided again.
//!
//! INVARIANT (independent states): only an action's own opposite undoes it.

mod administrator;
pub mod agent;
mod answer;
pub mod api;
mod audit;
mod audit_detail;
mod ban;
mod change;
mod commit;
mod credential;
pub mod egress;
mod group;
mod idempotency;
mod last_administrator;
mod limit;
pub mod manifest;
mod manifest_difference;
mod manifest_seen;
mod precondition;
pub mod protection;
mod refusal;
mod resource;
pub mod roles;
mod server;
mod settings;
mod shield;
mod states;
mod tenant;
mod tool;
mod upstream;
mod warrant_revocation;
mod warrant_root;
mod webhook;
mod words;

pub use agent::AgentInLane;
pub use answer::AnswerBody;
pub use change::{Actor, At, Change, Loaded, Outcome, RequiredApproval, Write};
pub use commit::commit;
pub use idempotency::{MAX_IDEMPOTENCY_KEY_BYTES, fingerprint, keep};
pub use manifest_difference::MIN_MANIFEST_INTERVAL_MS;
pub use manifest_seen::ManifestSeen;
pub use resource::{Resource, one, read_record, view};
