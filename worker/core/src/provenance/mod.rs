//! Provenance of values: where the destination of a call came from.
//!
//! Whether a write is an attack depends mostly on the source of its destination: the account to pay, the
//! address to mail, the branch to merge. In a run that a harness assigned, Gateward sees the user's
//! instruction and the results that the agent gets. It keeps a keyed hash of every value in them, with the
//! trust of its source. When the agent calls a tool that writes, each destination among the arguments is
//! looked up.
//!
//! INVARIANT (no raising): a value that was first seen in an untrusted result, or that the agent sent before
//! any result had it, is raised only by the instruction, an allow-list or an approver. A later result never
//! raises it.
//!
//! INVARIANT (overflow lowers): what does not fit, or cannot be read, is missing. A missing value counts as
//! seen nowhere, which is the lowest level.
//!
//! Out of scope: which calls need which level. Policies say that.

pub mod action;
mod blob;
pub mod call;
mod class;
pub mod destinations;
pub mod explanation;
pub mod extract;
pub mod hidden;
pub mod joined;
pub mod key;
mod leaves;
pub mod level;
pub mod link;
pub mod lookup;
pub mod normal;
pub mod part;
pub mod plan;
pub mod pointers;
pub mod reference;
pub mod result;
pub mod roles;
pub mod run;
mod search;
pub mod sinks;
pub mod undeclared;
mod uses;

pub use destinations::Destinations;
pub use explanation::{Provenance, SinkOrigin};
pub use key::{Hashes, ValueKey};
pub use level::Level;
pub use plan::PlannedCall;
pub use result::{Observed, ResultLevel, ResultTrust};
pub use roles::{ArgumentRoles, Reach, Role};
