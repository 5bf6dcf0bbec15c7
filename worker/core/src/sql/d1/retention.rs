//! Deleting what is older than a tenant keeps.

/// Tenant.
pub const RETENTION: &str = "SELECT retention_days FROM tenants WHERE tenant = ?1";

/// Tenant, lane, the sequence number before the first, limit.
pub const OLD_RECEIPTS: &str = "SELECT seq, receipt_hash, prev_receipt_hash, body \
     FROM receipts WHERE tenant = ?1 AND lane = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4";

/// Tenant, lane, number and hash of the last receipt that is deleted.
pub const SAVE_ANCHOR: &str = "INSERT INTO receipt_anchors (tenant, lane, seq, receipt_hash) \
     VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT (tenant, lane) DO UPDATE SET seq = excluded.seq, \
       receipt_hash = excluded.receipt_hash WHERE excluded.seq > seq";

/// Tenant, lane, last number.
pub const PRUNE_DECISIONS: &str = "DELETE FROM decisions WHERE tenant = ?1 AND decision_id IN \
     (SELECT decision_id FROM receipts \
      WHERE tenant = ?1 AND lane = ?2 AND seq <= ?3 AND kind = 'decision')";

/// Tenant, lane, last number.
pub const PRUNE_RECEIPTS: &str =
    "DELETE FROM receipts WHERE tenant = ?1 AND lane = ?2 AND seq <= ?3";

/// Tenant, time, limit. Two kinds of events are locks and stay: the newest change of the registry,
/// and bootstraps, which are numbered by their count.
pub const PRUNE_EVENTS: &str = "DELETE FROM audit_events WHERE tenant = ?1 AND event_id IN \
     (SELECT event_id FROM audit_events WHERE tenant = ?1 AND at_ms < ?2 \
        AND kind <> 'bootstrapped' \
        AND event_id IS NOT 'registry.' || (SELECT epoch FROM tenants WHERE tenant = ?1) \
      ORDER BY at_ms LIMIT ?3) RETURNING 1 AS one";

/// Tenant, time, limit; before [`PRUNE_APPROVALS`], which deletes the same approvals.
pub const PRUNE_APPROVAL_GROUPS: &str = "WITH old AS (SELECT approval_id, record FROM approvals \
       WHERE tenant = ?1 AND created_at_ms < ?2 AND expires_at_ms < ?2 \
       ORDER BY created_at_ms, approval_id LIMIT ?3) \
     DELETE FROM approval_groups WHERE tenant = ?1 AND created_at_ms < ?2 \
       AND group_name IN (SELECT asked.value->>'group' \
         FROM old, json_each(old.record, '$.approver_groups') AS asked) \
       AND approval_id IN (SELECT approval_id FROM old)";

/// Tenant, time, limit. Approvals that have not expired by then stay, so open ones do.
pub const PRUNE_APPROVALS: &str = "DELETE FROM approvals WHERE tenant = ?1 AND approval_id IN \
     (SELECT approval_id FROM approvals \
        WHERE tenant = ?1 AND created_at_ms < ?2 AND expires_at_ms < ?2 \
      ORDER BY created_at_ms, approval_id LIMIT ?3) RETURNING 1 AS one";

/// Deletes names that nothing counted for some days. A name's series of a metric are deleted together: a histogram that
/// loses one of its buckets would be wrong. A tenant has at most 4,000 series with names ([`crate::metrics::BOUNDS`]).
///
/// INVARIANT (told names exist): a lane sends a name for [`ADD_SERIES`](super::ADD_SERIES) again within a day
/// ([`crate::lane::Lane::ask_d1`]). So it counts a deleted name only after it sent the name again. Only the names of a lane's totals are sent without being
/// counted, so they are not deleted. Tenant, days.
pub const PRUNE_SERIES: &str = "DELETE FROM metric_counters WHERE tenant = ?1 AND (metric, names) IN ( \
     SELECT metric, names FROM metric_counters \
       WHERE tenant = ?1 AND names NOT IN ('[]', json_array('_other')) \
       GROUP BY metric, names HAVING max(counted_day) < unixepoch() / 86400 - ?2 \
     EXCEPT SELECT total.key->>0, total.key->2 \
       FROM lane_flushes AS f, json_each(f.report, '$.totals') AS total WHERE f.tenant = ?1)";
