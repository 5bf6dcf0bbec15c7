//! How long the shell waits for anything outside of it. A caller or an administrator has an answer
//! within five seconds, whatever hangs.
//!
//! What an upstream may take is registered with its server (`core/upstream.rs`).

/// A read of D1 that somebody waits for: some two hundred times what it takes.
pub const D1_READ_MS: u32 = 4_000;

/// A change of D1 that somebody waits for.
pub const D1_CHANGE_MS: u32 = 4_000;

/// What a lane's alarm asks of D1. Nobody waits for it; D1 itself gives up a batch after 30 s.
pub const D1_BACKGROUND_MS: u32 = 10_000;

/// A lane's own load of records when it could go on by those that it holds: then no caller waits for D1.
pub const REGISTRY_CONFIRM_MS: u32 = 1_000;

/// A hop to a lane: longer than the lane itself waits for D1.
pub const LANE_MS: u32 = 4_500;

/// How long a lane has to take an epoch: several times what a cold one needs to start. Whoever takes
/// longer is named as pending, and the administrator need not wait for it.
pub const EPOCH_PUSH_MS: u32 = 2_000;

/// How long a receiver of a webhook may take to answer: the least that Standard Webhooks recommends.
pub const WEBHOOK_MS: u32 = 15_000;

/// Asking a server for its tools, all of it: an administrator waits for it, and was told so.
pub const DISCOVERY_MS: u32 = 30_000;

/// How long a body may take to arrive, whether it is read or dropped: what it will hold of the isolate's
/// memory is counted from the beginning, and then no other request's.
pub const BODY_MS: u32 = 10_000;
