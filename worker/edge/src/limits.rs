//! Time limits for everything that the shell waits for outside of its isolate. A call gets a
//! response within five seconds if D1 or a lane hangs. A push to many lanes that hang takes longer.
//!
//! The time limits of an upstream are registered with its server (`core/src/registry/upstream.rs`).

/// A read of D1 that a caller waits for: about two hundred times the usual duration.
pub const D1_READ_MS: u32 = 4_000;

/// A write to D1 that a caller waits for.
pub const D1_CHANGE_MS: u32 = 4_000;

/// Statements of a lane's alarm. No caller waits for them. D1 itself ends a batch after 30 s.
pub const D1_BACKGROUND_MS: u32 = 10_000;

/// A load of records by a lane that could decide on the records it holds. Short, since a caller waits.
pub const REGISTRY_CONFIRM_MS: u32 = 1_000;

/// A hop to a lane. Longer than the lane itself waits for D1.
pub const LANE_MS: u32 = 4_500;

/// How long a call may wait in its lane. Less than its caller waits for the lane, so that no call is allowed, and no
/// approval used, after its caller was told that the lane does not answer. The rest is for the hop.
pub const DECIDE_MS: u32 = LANE_MS - 200;

/// A lane's request to a limit's counter object. A caller waits for it, and for what the counter asks of other lanes.
pub const LEASE_MS: u32 = 1_500;

/// A lane's request to the object of a tenant's window. A caller waits for it.
pub const COUNT_CALL_MS: u32 = 1_500;

/// A counter's requests to lanes to give back what they do not use. The limit applies to each request and to all
/// together. A lane that takes longer gives nothing back.
pub const RECALL_MS: u32 = 500;

/// The push of an epoch to a lane: several times what a cold lane needs to start. The administrator's
/// response names lanes that take longer as pending.
pub const EPOCH_PUSH_MS: u32 = 2_000;

/// A webhook's receiver: the shortest limit that Standard Webhooks recommends.
pub const WEBHOOK_MS: u32 = 15_000;

/// A witness: it verifies a signature and a proof. A flush does not wait for it.
pub const WITNESS_MS: u32 = 5_000;

/// The longest time that a caller may wait for the checkpoint of its decision, in seconds: a few times what a lane takes
/// to publish one.
pub const MAX_WAIT_S: u32 = 10;

/// Discovery of a server's tools, all requests together. An administrator waits for it; the API
/// documents that.
pub const DISCOVERY_MS: u32 = 30_000;

/// The arrival of a body, whether it is read or dropped. Its memory is counted from the beginning, so a
/// slow sender keeps others out.
pub const BODY_MS: u32 = 10_000;
