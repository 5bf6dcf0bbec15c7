//! How administrators change the registry: what a request may contain, what the change depends on,
//! and which statements make it. Pure: the shell runs the statement of [`Write::read`], passes the
//! rows to [`Write::apply`], and commits the statements that it returns.
//!
//! INVARIANT (one order): every change of a tenant's registry raises its epoch by one, in the same
//! D1 batch that writes the change and the audit event `registry.<epoch>`. The event's key is the
//! lock: of two changes that were decided at the same epoch, the second fails as a whole and is
//! decided again.
//!
//! INVARIANT (independent states): only an action's own opposite undoes it.

pub mod administrator;
pub mod agent;
mod answer;
pub mod audit;
mod audit_detail;
pub mod ban;
mod change;
mod commit;
pub mod credential;
pub mod egress;
pub mod group;
mod idempotency;
mod last_administrator;
pub mod limit;
pub mod manifest;
mod manifest_difference;
mod manifest_seen;
mod precondition;
pub mod protection;
mod refusal;
mod resource;
pub mod roles;
pub mod server;
pub mod settings;
mod shield;
mod states;
pub mod tenant;
pub mod tool;
pub mod upstream;
pub mod warrant_revocation;
pub mod warrant_root;
pub mod webhook;
mod words;

pub use agent::AgentInLane;
pub use answer::Answer;
pub use change::{Actor, At, Change, Loaded, Outcome, RequiredApproval, Write};
pub use commit::commit;
pub use idempotency::{IDEMPOTENCY_MS, MAX_IDEMPOTENCY_KEY_BYTES, fingerprint, keep};
pub use manifest_difference::MIN_MANIFEST_INTERVAL_MS;
pub use manifest_seen::ManifestSeen;
pub use resource::{Resource, one, page, read_record, view};
pub use states::{StateAction, States};
