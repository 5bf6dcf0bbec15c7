//! A lane: the state of a share of a tenant's agents. One object keeps it, in one total order.
//!
//! INVARIANT (written first): memory takes a new state only after the row that holds it was
//! written. Every method that writes returns an error if storage fails. The caller must then drop
//! the lane and call [`Lane::start`] again: memory may be behind storage, never ahead of it.
//!
//! INVARIANT (no await inside): every method is synchronous. So in a Durable Object nothing else
//! runs during a method, and its writes become durable together.
//!
//! A start reads the chain's head from `meta` and from the journal's last row, and agents' states
//! from the rows after the newest state checkpoint. The state of any other agent is read from its
//! row in `agents` when the agent calls.
//!
//! Out of scope: reading and writing D1 (`worker/edge`), and deciding ([`crate::gate`]).

mod approvals;
pub mod audit;
mod calls;
mod checkpoint;
mod clock;
mod day;
mod events;
mod flush;
mod head_log;
mod journal;
mod leases;
mod limits;
mod log_keys;
mod lost;
mod observe;
mod outbox;
pub mod protocol;
mod publish;
mod pushes;
mod registry_cache;
mod repair;
mod reservations;
mod retention;
mod runs;
mod shared_windows;
mod state;
mod storage;
mod stored_registry;
mod tree;
mod windows;
mod witness;

pub use approvals::DecideOutcome;
pub use calls::{Answers, CallResult};
pub use flush::{Confirmed, FlushBatch, Report};
pub use head_log::{TELL_HEAD_MS, Told};
pub use log_keys::{LogKeys, LogName};
pub use outbox::{Delivery, MAX_ATTEMPTS, MAX_DELIVERIES, MAX_OUTBOX_ROWS};
pub use publish::{KeptRows, Standing, Unpublished};
pub use pushes::{PUSH_AGAIN_MS, PendingPush};
pub use registry_cache::RegistryCache;
pub use shared_windows::PRUNE_WINDOWS_MS;
pub use state::Lane;
pub use storage::{LaneResult, LaneSql, StorageError, Value};
pub use stored_registry::{RECORDS_SHAPE, needed, stored, stored_listing};
pub use tree::{MAX_PUBLISHED_LEAVES, TileCursor, TreeHead, decode_hashes, encode_hashes};
pub use witness::{MAX_WITNESSES, Witness};
