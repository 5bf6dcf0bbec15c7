//! The flush of a lane's journal, and counts of events that are not journalled.

/// Writes nothing if D1 lacks the receipt before the rows, so that it has a lane's receipts without a gap. Tenant, lane, a
/// JSON array of journal rows, the receipt before them or null: the trigger of `d1-migrations/0023_logs.sql`
/// distributes each over the tables.
pub const FLUSH_ROWS: &str = "INSERT INTO journal_rows (tenant, lane, row) \
     SELECT ?1, ?2, value FROM json_each(?3) WHERE ?4 IS NULL \
       OR EXISTS (SELECT 1 FROM receipts WHERE tenant = ?1 AND lane = ?2 AND seq = ?4)";

/// Tenant, lane, JSON array of audit counts.
pub const FLUSH_COUNTS: &str = "INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, \
       source, count, detail) \
     SELECT ?1, value->>'event_id' || '.' || ?2, value->>'at_ms', ?2, value->>'kind', value->>'source', \
       value->>'count', '{}' \
     FROM json_each(?3) WHERE true \
     ON CONFLICT (tenant, event_id) DO UPDATE SET count = max(count, excluded.count)";

/// Tenant, lane, last sequence number of the flush or null, now, the lane's report, the receipt before the rows or null: if
/// D1 lacks it, the number stays, because [`FLUSH_ROWS`] wrote nothing. With null as the last number, nothing was flushed,
/// and only the report is replaced. The tenant's epoch shows how far the lane's epoch is behind. A late report changes
/// nothing: it is of an attempt that the lane gave up, and D1 ends such an attempt after 30 s at the latest.
pub const FLUSHED_THROUGH: &str = "INSERT INTO lane_flushes (tenant, lane, seq, flushed_at_ms, report) \
     VALUES (?1, ?2, iif(?6 IS NULL OR EXISTS (SELECT 1 FROM receipts \
         WHERE tenant = ?1 AND lane = ?2 AND seq = ?6), coalesce(?3, 0), 0), ?4, json_set(?5, '$.epochs_behind', iif(?5->>'epoch' > 0, \
       (SELECT max(0, epoch - (?5->>'epoch')) FROM tenants WHERE tenant = ?1), 0))) \
     ON CONFLICT (tenant, lane) DO UPDATE SET seq = max(seq, excluded.seq), \
       (flushed_at_ms, report) = (SELECT iif(newer AND ?3 IS NOT NULL, excluded.flushed_at_ms, flushed_at_ms), \
           iif(newer, excluded.report, report) \
         FROM (SELECT excluded.report->>'number' > coalesce(report->>'number', 0) \
           OR excluded.report->>'at_ms' > coalesce(report->>'at_ms', flushed_at_ms) + 60000 AS newer))";

/// Tenant, lane, first and last sequence number.
pub const STORED_HASHES: &str = "SELECT seq, receipt_hash FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq BETWEEN ?3 AND ?4 ORDER BY seq";

/// A failed authentication that no lane could count. Event id, window start, source, kind,
/// how many more.
pub const COUNT_FAILED_AUTHENTICATION: &str = "INSERT INTO audit_events (tenant, event_id, \
       at_ms, kind, source, count, detail) VALUES ('', ?1, ?2, ?4, ?3, ?5, '{}') \
     ON CONFLICT (tenant, event_id) DO UPDATE SET count = count + excluded.count";
