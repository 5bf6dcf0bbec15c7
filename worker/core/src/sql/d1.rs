//! Statements on D1, except those of the administration. The schema is `d1-migrations/`.

mod flush;
mod history;
mod logs;
mod metrics;
mod records;
mod retention;

pub use flush::*;
pub use history::*;
pub use logs::*;
pub use metrics::*;
pub use records::*;
pub use retention::*;

/// All of them, for the test.
pub const ALL: &[&str] = &[
    LOAD_RECORDS,
    LOAD_LISTING,
    LIMITS_OF,
    SHARED_LIMITS,
    EPOCH,
    FLUSH_ROWS,
    LOG_CHECKPOINT,
    LOG_IS_PUBLIC,
    WRITE_TILES,
    PUBLISH,
    COSIGN,
    LOG_ROOTS,
    LOG_LEAVES,
    PRUNE_LEAVES,
    LAST_RECEIPT,
    REGISTRY_EVENTS,
    FLUSH_COUNTS,
    FLUSHED_THROUGH,
    ADD_SERIES,
    COUNT_ROWS,
    COUNT_TOTALS,
    COUNT_METRIC,
    METRICS,
    METRICS_OF_ALL,
    LANE_REPORTS,
    LANE_REPORTS_OF_ALL,
    STORED_HASHES,
    COUNT_FAILED_AUTHENTICATION,
    LOAD_READER,
    USE_SIGNATURE_NONCE,
    FORGET_SIGNATURE_NONCES,
    DECISION,
    DECISIONS,
    DECISIONS_OF_AGENT,
    DECISIONS_OF_OUTCOME,
    DECISIONS_OF_AGENT_AND_OUTCOME,
    FLUSHES,
    RECEIPTS,
    OUTCOME,
    APPROVAL,
    APPROVALS,
    APPROVALS_OF_STATUS,
    APPROVALS_OF_AGENT,
    APPROVALS_OF_AGENT_AND_STATUS,
    APPROVALS_OF_GROUP,
    WEBHOOK,
    PING,
    RETENTION,
    OLD_RECEIPTS,
    SAVE_ANCHOR,
    PRUNE_DECISIONS,
    PRUNE_RECEIPTS,
    PRUNE_EVENTS,
    PRUNE_APPROVAL_GROUPS,
    PRUNE_APPROVALS,
    PRUNE_SERIES,
];
