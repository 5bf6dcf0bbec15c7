//! Limits: how often, how much and when agents may call.
//!
//! What was used of a limit is in a [`book::Book`], which the lane stores beside its journal and writes with a
//! decision's own statement. A limit of an agent or a credential is counted there. Limits of anything else are
//! counted by an object of their own ([`pool`]), and the book holds the part that the lane got ([`lease`]).
//!
//! INVARIANT (one step): [`usage::apply`] checks and uses all limits of a call in the order of [`Kind::ALL`], on copies of
//! the books. Only if the call passes, the copies are written as they are. If not, [`usage::revert`] leaves in them only
//! what the call used of the request rate.
//!
//! INVARIANT (never more): what is used and reserved of a limit in a window is at most its bound at the time of
//! the last call that used it. A clock that was at most 31 days ahead reopens no window when it goes back, and nothing is given
//! back twice.

mod amount;
pub mod book;
mod definition;
pub mod lease;
pub mod pool;
pub mod rate_headers;
mod rate_item;
pub mod recall;
mod record;
pub mod reservation;
mod rule;
pub mod status;
pub mod usage;
pub mod violation;
pub mod window;

/// The name in headers and answers of the request rate of agents for which no limit sets one.
pub const DEFAULT_RATE: &str = "agent";

pub use amount::Amount;
pub use book::Book;
pub use definition::{
    Access, Covers, Definition, Kind, MAX_LIMIT_TOOLS, MAX_LIMITS_OF_SUBJECT, MAX_SHARED_LIMITS,
    Refused, Unclear,
};
pub use record::{Limit, RequestRate};
pub use rule::{Calendar, Currency, Measured, Rule};
pub use violation::Violation;
pub use window::{Day, Hours, OffsetS, Window};
