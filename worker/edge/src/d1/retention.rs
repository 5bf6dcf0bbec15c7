//! Deletes records of a tenant that are past the retention period. Run by a lane's alarm.

use gateward_core::metrics::UNCOUNTED_DAYS;
use gateward_core::receipt::ChainHead;
use gateward_core::receipt::StoredReceipt;
use gateward_core::receipt::retention::{MAX_OLD_RECEIPTS, MAX_PRUNED};
use gateward_core::sql::d1::{
    OLD_RECEIPTS, PRUNE_APPROVAL_GROUPS, PRUNE_APPROVALS, PRUNE_DECISIONS, PRUNE_EVENTS,
    PRUNE_LEAVES, PRUNE_RECEIPTS, PRUNE_SERIES, RETENTION, SAVE_ANCHOR,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use worker::{Env, Result};

use super::{number, query, rows, statement};
use crate::limits::D1_BACKGROUND_MS;

#[derive(Deserialize)]
struct RetentionRow {
    retention_days: Option<u32>,
}

#[derive(Deserialize)]
struct OldReceipt {
    seq: u64,
    receipt_hash: String,
    prev_receipt_hash: String,
    body: String,
}

/// The tenant's retention period; `None` for the default.
pub async fn retention_days(env: &Env, tenant: &str) -> Result<Option<u32>> {
    let period = statement(RETENTION, &[tenant.into()]);
    let answered = query(env, &[period], D1_BACKGROUND_MS).await?;
    let periods: Vec<RetentionRow> = rows(answered.first().map(Box::as_ref))?;
    Ok(periods.first().and_then(|row| row.retention_days))
}

/// The oldest receipts after `anchor`, at most [`MAX_OLD_RECEIPTS`].
pub async fn oldest(
    env: &Env,
    tenant: &str,
    lane: u16,
    anchor: &ChainHead,
) -> Result<Vec<StoredReceipt>> {
    let values =
        [tenant.into(), number(lane.into()), number(anchor.seq), number(MAX_OLD_RECEIPTS.into())];
    let answered = query(env, &[statement(OLD_RECEIPTS, &values)], D1_BACKGROUND_MS).await?;
    let oldest: Vec<OldReceipt> = rows(answered.first().map(Box::as_ref))?;
    let receipt = |row: OldReceipt| StoredReceipt {
        seq: row.seq,
        receipt_hash: row.receipt_hash,
        prev_receipt_hash: row.prev_receipt_hash,
        body: row.body,
    };
    Ok(oldest.into_iter().map(receipt).collect())
}

/// Deletes the lane's receipts and decisions up to `anchor`, and some of the tenant's events and
/// approvals from before `cutoff_ms`. Returns whether there may be more of the latter. Also deletes the tenant's series of
/// metrics that were not counted for long.
///
/// Events without a tenant are deleted by any lane, if they are older than `default_cutoff_ms`.
pub async fn prune(
    env: &Env,
    tenant: &str,
    lane: u16,
    anchor: &ChainHead,
    cutoff_ms: u64,
    default_cutoff_ms: u64,
) -> Result<bool> {
    let through = [tenant.into(), number(lane.into()), number(anchor.seq)];
    let saved =
        [tenant.into(), number(lane.into()), number(anchor.seq), anchor.hash.as_str().into()];
    let before =
        |tenant: &str, cutoff_ms| [tenant.into(), number(cutoff_ms), number(MAX_PRUNED.into())];
    let old = before(tenant, cutoff_ms);
    let mut statements = Vec::new();
    if anchor.seq > 0 {
        statements.push(statement(PRUNE_LEAVES, &through));
        statements.push(statement(SAVE_ANCHOR, &saved));
        statements.push(statement(PRUNE_DECISIONS, &through));
        statements.push(statement(PRUNE_RECEIPTS, &through));
    }
    statements.push(statement(PRUNE_APPROVAL_GROUPS, &old));
    statements.push(statement(PRUNE_APPROVALS, &old));
    statements.push(statement(PRUNE_EVENTS, &old));
    statements.push(statement(PRUNE_EVENTS, &before("", default_cutoff_ms)));
    statements.push(statement(PRUNE_SERIES, &[tenant.into(), number(UNCOUNTED_DAYS.into())]));
    let mut full = false;
    for pruned in query(env, &statements, D1_BACKGROUND_MS).await? {
        full |= rows::<IgnoredAny>(Some(&pruned))?.len() >= MAX_PRUNED as usize;
    }
    Ok(full)
}
