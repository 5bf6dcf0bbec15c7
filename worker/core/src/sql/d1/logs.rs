//! The lanes' logs: checkpoints, tiles, and what a head log includes.

/// The newest checkpoint of a lane. Tenant, lane.
pub const LOG_CHECKPOINT: &str = "SELECT note, first, leaves, cosignatures, cosigned FROM log_checkpoints \
     WHERE tenant = ?1 AND lane = ?2";

/// A row if anybody may read the tenant's logs. Tenant.
pub const LOG_IS_PUBLIC: &str = "SELECT 1 AS one FROM tenants WHERE tenant = ?1 AND log_public = 1";

/// Tenant, lane, a JSON array of tiles: level, number, root, leaves.
pub const WRITE_TILES: &str = "INSERT INTO log_tiles (tenant, lane, level, number, root, leaves) \
     SELECT ?1, ?2, value->>0, value->>1, value->>2, value->>3 FROM json_each(?3) WHERE true \
     ON CONFLICT (tenant, lane, level, number) DO UPDATE SET root = excluded.root, \
       leaves = coalesce(excluded.leaves, leaves)";

/// Replaces a lane's checkpoint. Does nothing if D1 has another checkpoint than the lane read, or if D1 lacks
/// the last receipt of the new checkpoint because D1 was restored. Keeps the checkpoint that witnesses
/// cosigned beside the new one. Tenant, lane, note, first, leaves, the note that was read or NULL, the last
/// receipt or NULL.
pub const PUBLISH: &str = "INSERT INTO log_checkpoints (tenant, lane, note, first, leaves) \
     SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?6 IS \
       (SELECT note FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2) \
       AND (?7 IS NULL OR EXISTS (SELECT 1 FROM receipts WHERE tenant = ?1 AND lane = ?2 AND seq = ?7)) \
     ON CONFLICT (tenant, lane) DO UPDATE SET note = excluded.note, first = excluded.first, \
       leaves = excluded.leaves, cosigned = iif(cosignatures = '', cosigned, note || cosignatures), \
       cosignatures = '' RETURNING 1 AS one";

/// Sets the lines of witnesses for a checkpoint, once they were asked about it. Tenant, lane, note, the lines.
pub const COSIGN: &str = "UPDATE log_checkpoints SET cosignatures = ?4, cosigned = '' \
     WHERE tenant = ?1 AND lane = ?2 AND note = ?3";

/// Tenant, lane, level, first number, how many.
pub const LOG_ROOTS: &str = "SELECT number, root FROM log_tiles \
     WHERE tenant = ?1 AND lane = ?2 AND level = ?3 AND number >= ?4 AND number < ?4 + ?5 ORDER BY number";

/// Tenant, lane, number of a tile of level 0.
pub const LOG_LEAVES: &str = "SELECT leaves FROM log_tiles \
     WHERE tenant = ?1 AND lane = ?2 AND level = 0 AND number = ?3";

/// Forgets the leaves of tiles whose receipts are all deleted by the same transaction. It comes before
/// [`SAVE_ANCHOR`](super::SAVE_ANCHOR), whose row still has the last receipt that was deleted before: so no tile is
/// forgotten, and no older tile is read. Tenant, lane, the last receipt that is deleted.
pub const PRUNE_LEAVES: &str = "UPDATE log_tiles SET leaves = NULL WHERE tenant = ?1 AND lane = ?2 AND level = 0 \
     AND leaves IS NOT NULL AND number < (SELECT (CAST(?3 AS INTEGER) + 1 - first) / 256 FROM log_checkpoints \
       WHERE tenant = ?1 AND lane = ?2) AND number >= (SELECT (coalesce((SELECT seq FROM receipt_anchors \
         WHERE tenant = ?1 AND lane = ?2), 0) + 1 - first) / 256 \
       FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2)";

/// The newest receipt up to a number; 0 if D1 has no such receipt. Tenant, lane, the number.
pub const LAST_RECEIPT: &str = "SELECT coalesce(max(seq), 0) AS seq FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq <= ?3";

/// Events of a tenant's registry after an epoch, in order, and its epoch; at most 100. Tenant, epoch.
pub const REGISTRY_EVENTS: &str = "WITH RECURSIVE epochs (epoch) AS (SELECT CAST(?2 AS INTEGER) + 1 \
       UNION ALL SELECT e.epoch + 1 FROM epochs e, tenants t WHERE t.tenant = ?1 AND e.epoch < t.epoch \
         AND e.epoch < CAST(?2 AS INTEGER) + 100) \
     SELECT at_ms, detail, event_id, kind, source FROM epochs JOIN audit_events \
       ON tenant = ?1 AND event_id = 'registry.' || epochs.epoch ORDER BY epochs.epoch";
