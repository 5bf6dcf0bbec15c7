//! A lane: the state of a share of a tenant's agents, kept by one object in one total order.
//!
//! INVARIANT (written first): memory takes a new state only after the row that carries it was
//! written. Every method that writes returns an error when storage fails, and then the caller
//! must drop the lane and [`Lane::start`] anew: memory may be behind storage, never ahead.
//!
//! INVARIANT (no await inside): every method is synchronous, so in a Durable Object nothing
//! else runs while one does, and writes made in one become durable together.
//!
//! State rebuilt at a start: the chain's head from `meta` and the journal's last row; agents' states
//! from the rows after the newest checkpoint. Any other agent's state is read from its snapshot
//! (`agents`) when the agent calls.
//!
//! Out of scope: talking to D1 (`worker/edge`), deciding ([`crate::gate`]).

mod approvals;
pub mod audit;
mod checkpoint;
mod clock;
mod day;
mod flush;
mod outbox;
mod pushes;
mod registry;
mod repair;
mod retention;
mod state;
mod storage;

pub use approvals::DecideOutcome;
pub use flush::{Confirmed, FlushBatch};
pub use outbox::{DeadLetters, Delivery, MAX_ATTEMPTS, MAX_DELIVERIES, MAX_OUTBOX_ROWS};
pub use pushes::{PUSH_AGAIN_MS, PendingPush};
pub use state::Lane;
pub use storage::{LaneSql, StorageError, Value};
