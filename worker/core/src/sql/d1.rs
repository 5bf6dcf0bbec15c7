//! Statements on D1, except those of the administration. The schema is `d1-migrations/`.

/// The limits of a subject's calls, and those that each subject of its kind has: at most twice
/// [`crate::limit::MAX_LIMITS_OF_SUBJECT`].
macro_rules! limits_of {
    ($kind:literal, $subject:literal) => {
        concat!(
            "json((SELECT json_group_array(json_object('limit_id', limit_id, 'created_at_ms', created_at_ms, 'rule', json(rule))) \
               FROM (SELECT limit_id, created_at_ms, rule FROM limits INDEXED BY limits_by_subject WHERE tenant = ?1 AND subject_kind = '",
            $kind,
            "' AND subject IN (",
            $subject,
            ", '*') AND covers = 'calls' ORDER BY subject, limit_id)))"
        )
    };
}

/// The limit of an agent's requests: its own, or else that of each agent. `*` sorts before every name.
macro_rules! request_rate {
    () => {
        "json((SELECT json_object('limit_id', limit_id, 'rule', json(rule)) \
           FROM limits INDEXED BY limits_of_requests WHERE tenant = ?1 AND subject_kind = 'agent' \
             AND subject IN (?2, '*') AND covers = 'requests' ORDER BY subject DESC LIMIT 1))"
    };
}

/// The groups of an agent that were not deleted, sorted.
macro_rules! groups_of_agent {
    () => {
        "json((SELECT json_group_array(group_name) FROM (SELECT m.group_name FROM group_members m \
          JOIN groups g ON g.tenant = m.tenant AND g.group_name = m.group_name \
          WHERE m.tenant = ?1 AND m.kind = 'agent' AND m.member = ?2 \
            AND g.deleted_at_ms IS NULL ORDER BY m.group_name)))"
    };
}

/// The limits that a tenant's lanes share.
macro_rules! shared_limits {
    () => {
        "json((SELECT json_group_array(json_object('subject_kind', subject_kind, 'subject', subject, \
             'limit', json_object('limit_id', limit_id, 'created_at_ms', created_at_ms, 'revision', revision, 'rule', json(rule)))) \
           FROM (SELECT * FROM limits INDEXED BY limits_by_subject WHERE tenant = ?1 \
             AND subject_kind IN ('tenant', 'group', 'tool', 'server', 'user') \
             ORDER BY subject_kind, subject, limit_id)))"
    };
}

/// Everything that one call needs, in one round trip and at one epoch, each as JSON text or null. Tenant, agent, key
/// id, server, tool, whether to read the tenant's lists (0 or 1), now. Expired bans and revocations, and disabled
/// roots, are left out. One entry more than the bound in [`crate::bounds`] is read of each list, so that a list that
/// is too long is noticed.
///
/// An agent's status is computed from administrators' marks. The column `status` also has a copy of
/// the lane's own quarantine, which could be older than its end.
pub const LOAD_RECORDS: &str = concat!(
    "SELECT (SELECT json_object('status', status, 'epoch', epoch, ",
    settings!(member, flag_member, json_member),
    ", 'lanes', lanes, 'rows_per_day', rows_per_day, 'bytes_per_day', bytes_per_day, \
       'destinations', json(destinations), 'shared_limits', ",
    shared_limits!(),
    ") FROM tenants WHERE tenant = ?1) AS tenant, \
    (SELECT json_object('lane', lane, 'status', \
       CASE WHEN revoked THEN 'revoked' WHEN quarantined THEN 'quarantined' \
         WHEN frozen THEN 'frozen' ELSE 'active' END, \
       'environment', environment, 'risk_tier', risk_tier, 'groups', ",
    groups_of_agent!(),
    ", \
       'allowed_tools', json(allowed_tools), \
       'public_key', public_key, 'warrant_required', warrant_required, 'limits', ",
    limits_of!("agent", "?2"),
    ", 'request_rate', ",
    request_rate!(),
    ") \
       FROM agents WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL) AS agent, \
    (SELECT json_object('agent', agent, 'secret_sha256', secret_sha256, \
       'scopes', json(scopes), 'max_source_trust', max_source_trust, 'status', status, \
       'expires_at_ms', expires_at_ms, 'allowed_servers', json(allowed_servers), \
       'allowed_tools', json(allowed_tools), 'allowed_networks', json(allowed_networks), \
       'signed', json(iif(signed, 'true', 'false')), \
       'assigns_runs', json(iif(assigns_runs, 'true', 'false')), 'limits', ",
    limits_of!("credential", "coalesce(first_key_id, key_id)"),
    ", 'first_key_id', first_key_id) \
       FROM credentials WHERE tenant = ?1 AND key_id = ?3) AS credential, \
    (SELECT json_object('kind', kind, 'trust', trust, 'status', status, \
       'upstream', json(upstream), 'instructions_sha256', instructions_sha256, 'shield', json(shield), \
       'inspects_results', inspects_results) FROM servers WHERE tenant = ?1 AND server = ?4 AND deleted_at_ms IS NULL) AS server, \
    (SELECT json_object('status', status, 'mutates', mutates, 'egress', egress, 'risk', risk, 'canary', canary, \
       'tainted', tainted, 'approval_ttl_s', approval_ttl_s, 'input_schema', input_schema, \
       'argument_roles', json(argument_roles), 'reach', reach, 'result_trust', json(result_trust), 'cost', cost, \
       'warrant_required', warrant_required, 'min_clearance', min_clearance, 'shield', json(shield)) \
       FROM tools WHERE tenant = ?1 AND server = ?4 AND tool = ?5) AS tool, \
    iif(?6, (SELECT json_group_array(json_object('kind', kind, 'subject', subject, \
       'expires_at_ms', expires_at_ms)) FROM (SELECT kind, subject, expires_at_ms FROM bans \
         WHERE tenant = ?1 AND (expires_at_ms IS NULL OR expires_at_ms > ?7) \
         LIMIT 1001)), NULL) AS bans, \
    iif(?6, json_object('roots', json((SELECT json_group_array(json_object('id', root_id, \
         'public_key', public_key, 'allowed_servers', json(allowed_servers))) \
       FROM (SELECT root_id, public_key, allowed_servers FROM warrant_roots \
         WHERE tenant = ?1 AND status = 'active' LIMIT 65))), \
       'revoked', json((SELECT json_group_array(json_array(warrant_id, nullif(root_key, ''))) \
         FROM (SELECT warrant_id, root_key FROM warrant_revocations \
           WHERE tenant = ?1 AND expires_at_ms > ?7 LIMIT 4001)))), \
       NULL) AS warrants"
);

/// Limits of an agent and of a credential, the limit of the agent's requests or NULL, the agent's lane and groups, and
/// limits that lanes share. Tenant, agent, key id or NULL.
pub const LIMITS_OF: &str = concat!(
    "SELECT lane, ",
    limits_of!("agent", "?2"),
    " AS of_agent, ",
    request_rate!(),
    " AS of_requests, coalesce((SELECT ",
    limits_of!("credential", "coalesce(first_key_id, key_id)"),
    " FROM credentials WHERE tenant = ?1 AND key_id = ?3), '[]') AS of_credential, \
       (SELECT coalesce(first_key_id, key_id) FROM credentials \
         WHERE tenant = ?1 AND key_id = ?3) AS first_key_id, ",
    shared_limits!(),
    " AS shared, ",
    groups_of_agent!(),
    " AS groups FROM agents WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL \
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM credentials \
         WHERE tenant = ?1 AND key_id = ?3 AND agent = ?2))"
);

/// The limits that a tenant's lanes share. Tenant.
pub const SHARED_LIMITS: &str =
    concat!("SELECT ", shared_limits!(), " AS shared FROM tenants WHERE tenant = ?1");

/// All tools of a server for a listing, with the epoch. Tenant, server; one tool more than
/// [`crate::bounds::MAX_SERVER_TOOLS`], so that too many are noticed.
pub const LOAD_LISTING: &str = "SELECT t.epoch, (SELECT json_group_array(json_object('tool', \
       tool, 'status', status, 'mutates', mutates, 'egress', egress, 'canary', canary, \
       'definition_sha256', definition_sha256)) \
     FROM (SELECT * FROM tools WHERE tenant = ?1 AND server = ?2 LIMIT 5001)) AS tools \
     FROM tenants t WHERE t.tenant = ?1";

/// Tenant.
pub const EPOCH: &str = "SELECT epoch FROM tenants WHERE tenant = ?1";

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

/// Makes rows for the series with names that a tenant's metrics have room for. [`COUNT_ROWS`] and [`COUNT_TOTALS`] count
/// the others under one name. Tenant, a JSON array of series.
///
/// A name is new if no series of the metric has it yet. There is no room for it if the metric already has as many names as
/// it can have, and none for any series if the metric has as many series as it can have ([`crate::metrics::BOUNDS`]).
///
/// A series that D1 has is found by its key. Only if a metric has a new series, all series of this metric are read, once.
/// Preparing this statement takes longer than counting a batch, so it is sent only for series that a lane did not send before.
pub const ADMIT_SERIES: &str = "WITH asked AS (SELECT DISTINCT value->>0 AS metric, value->1 AS labels, \
         value->2 AS names FROM json_each(?2)), \
     missing AS MATERIALIZED (SELECT * FROM asked WHERE NOT EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = asked.metric AND c.labels = asked.labels AND c.names = asked.names)), \
     bounds (metric, names_max, series_max) AS (VALUES ('decisions', 300, 1000), \
       ('credential_decisions', 200, 1000), ('limits_hit', 300, 500), ('proxied_ms', 50, 1500)), \
     held AS MATERIALIZED (SELECT metric, names, count(*) AS series FROM metric_counters \
       WHERE tenant = ?1 AND metric IN (SELECT metric FROM missing) \
         AND names <> json_array('_other') GROUP BY metric, names), \
     room AS (SELECT b.metric, names_max - count(h.names) AS names_left, \
         series_max - coalesce(sum(h.series), 0) AS series_left \
       FROM bounds AS b LEFT JOIN held AS h ON h.metric = b.metric GROUP BY b.metric), \
     placed AS (SELECT m.*, h.names IS NULL AS has_new_names, \
         dense_rank() OVER (PARTITION BY m.metric, h.names IS NULL ORDER BY m.names) AS names_place, \
         row_number() OVER (PARTITION BY m.metric ORDER BY h.names IS NULL, m.names, m.labels) AS series_place \
       FROM missing AS m LEFT JOIN held AS h ON h.metric = m.metric AND h.names = m.names) \
     INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     SELECT ?1, metric, labels, names, 0 FROM placed JOIN room USING (metric) \
     WHERE series_place <= series_left AND (NOT has_new_names OR names_place <= names_left)";

/// Adds a batch's rows to metrics. It comes before [`FLUSHED_THROUGH`] of the same transaction: rows up to the number there
/// were added before. Tenant, lane, three JSON arrays with an entry for each series ([`crate::metrics::BatchMetrics`]):
/// the series, how many rows it has, their sequence numbers; the first row's sequence number; the receipt before the rows
/// or null: if D1 lacks it, the rows are not counted yet, because [`FLUSH_ROWS`] writes nothing.
///
/// Only if D1 has some of the rows, their sequence numbers are read.
pub const COUNT_ROWS: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count, sum) \
     SELECT ?1, metric, labels, iif(names = '[]' OR EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = added.metric AND c.labels = added.labels AND c.names = added.names), \
       names, json_array('_other')), more, coalesce(observed, 0) * more \
     FROM (SELECT entry.value->>0 AS metric, entry.value->1 AS labels, entry.value->2 AS names, \
         entry.value->>3 AS observed, iif(f.seq IS NULL OR f.seq < ?6, ?4->>entry.key, \
           (SELECT count(*) FROM json_each(?5->entry.key) AS row WHERE row.value > f.seq)) AS more \
       FROM json_each(?3) AS entry LEFT JOIN lane_flushes AS f ON f.tenant = ?1 AND f.lane = ?2) AS added \
     WHERE more > 0 AND (?7 IS NULL OR EXISTS (SELECT 1 FROM receipts \
       WHERE tenant = ?1 AND lane = ?2 AND seq = ?7)) \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE \
       SET count = count + excluded.count, sum = sum + excluded.sum, counted_day = excluded.counted_day";

/// Adds to metrics by how much a lane's totals are higher than those in its report. It comes before [`FLUSHED_THROUGH`] of
/// the same transaction, which replaces the report. Tenant, lane, a JSON object of totals by series.
pub const COUNT_TOTALS: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     SELECT ?1, metric, labels, iif(names = '[]' OR EXISTS (SELECT 1 FROM metric_counters AS c \
         WHERE c.tenant = ?1 AND c.metric = added.metric AND c.labels = added.labels AND c.names = added.names), \
       names, json_array('_other')), more \
     FROM (SELECT total.key->>0 AS metric, total.key->1 AS labels, total.key->2 AS names, \
         total.value - coalesce(known.value, 0) AS more \
       FROM json_each(?3) AS total LEFT JOIN \
         (SELECT key, value FROM json_each((SELECT report FROM lane_flushes \
            WHERE tenant = ?1 AND lane = ?2), '$.totals')) AS known ON known.key = total.key) AS added \
     WHERE more > 0 \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE \
       SET count = count + excluded.count, counted_day = excluded.counted_day";

/// Adds to a metric without names that no lane counts. Tenant, or '' if it belongs to none; the series as JSON, how many
/// more.
pub const COUNT_METRIC: &str = "INSERT INTO metric_counters (tenant, metric, labels, names, count) \
     VALUES (?1, ?2->>0, ?2->1, ?2->2, ?3) \
     ON CONFLICT (tenant, metric, labels, names) DO UPDATE SET count = count + excluded.count";

/// The counters of one answer. Tenant, limit.
pub const METRICS: &str = "SELECT tenant, metric, labels, names, count, sum FROM metric_counters \
     WHERE tenant = ?1 LIMIT ?2";

/// The same of all tenants. If D1 has more series than the limit, the first series of each tenant come before the second of
/// any, so no tenant takes the place of others. Limit.
///
/// To order all series by their place in their tenant would read all of them. So of each tenant, this reads an equal share
/// of four times the limit. It adds those of the table's first series that are beyond a share: so it returns fewer
/// rows than the limit only if D1 has no more.
pub const METRICS_OF_ALL: &str = "WITH RECURSIVE held (tenant) AS (SELECT min(tenant) FROM metric_counters \
       UNION ALL SELECT (SELECT min(c.tenant) FROM metric_counters AS c WHERE c.tenant > held.tenant) \
         FROM held WHERE tenant IS NOT NULL LIMIT ?1), \
     share (series) AS (SELECT CAST(4 * ?1 AS INTEGER) / count(*) FROM held), \
     placed AS (SELECT held.tenant, value->>0 AS metric, value->>1 AS labels, value->>2 AS names, \
         value->>3 AS count, value->>4 AS sum, key + 1 AS place \
       FROM held, json_each((SELECT json_group_array(json_array(metric, labels, names, count, sum)) \
         FROM (SELECT metric, labels, names, count, sum FROM metric_counters AS c WHERE c.tenant = held.tenant \
           ORDER BY metric, labels, names LIMIT (SELECT series FROM share)))) \
       UNION ALL SELECT * FROM (SELECT tenant, metric, labels, names, count, sum, \
           row_number() OVER (PARTITION BY tenant ORDER BY metric, labels, names) AS place \
         FROM (SELECT tenant, metric, labels, names, count, sum FROM metric_counters \
           ORDER BY tenant, metric, labels, names LIMIT ?1)) \
         WHERE place > (SELECT series FROM share)) \
     SELECT tenant, metric, labels, names, count, sum FROM placed ORDER BY place, tenant LIMIT ?1";

/// What a tenant's lanes reported, added up. What a lane said about its lag counts only if it is newer than a time,
/// because a lane without work reports nothing. A lane with rows is silent since its last flush, or since the oldest row of
/// its report if that is later.
macro_rules! lane_reports {
    ($which:literal, $since:literal) => {
        concat!(
            "SELECT tenant, count(*) AS lanes, sum(coalesce(report->>'journal_rows', 0)) AS journal_rows, \
               max(coalesce(report->>'journal_rows', 0)) AS journal_rows_max, \
               max(iif(reported_at_ms > ", $since, ", report->>'journal_age_ms', NULL)) AS journal_age_ms, \
               max(iif(reported_at_ms > ", $since, ", report->>'epochs_behind', NULL)) AS epochs_behind, \
               max(iif(reported_at_ms > ", $since, ", report->>'alarm_overdue_ms', NULL)) AS alarm_overdue_ms, \
               sum(coalesce(report->>'approvals_open', 0)) AS approvals_open, \
               sum(coalesce(report->>'reservations_open', 0)) AS reservations_open, \
               min(iif(report->>'journal_rows' > 0, \
                 max(flushed_at_ms, reported_at_ms - (report->>'journal_age_ms')), NULL)) AS silent_since_ms, \
               max(flushed_at_ms) AS last_report_ms \
             FROM (SELECT *, coalesce(report->>'at_ms', flushed_at_ms) AS reported_at_ms FROM lane_flushes ",
            $which,
            ") GROUP BY tenant"
        )
    };
}

/// The reports of one tenant. Tenant, a time.
pub const LANE_REPORTS: &str = lane_reports!("WHERE tenant = ?1", "?2");

/// The same of all tenants. A time, limit of tenants.
pub const LANE_REPORTS_OF_ALL: &str = concat!(lane_reports!("", "?1"), " LIMIT ?2");

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
/// [`SAVE_ANCHOR`], whose row still has the last receipt that was deleted before: so no tile is forgotten, and no
/// older tile is read. Tenant, lane, the last receipt that is deleted.
pub const PRUNE_LEAVES: &str = "UPDATE log_tiles SET leaves = NULL WHERE tenant = ?1 AND lane = ?2 AND level = 0 \
     AND leaves IS NOT NULL AND number < (SELECT (CAST(?3 AS INTEGER) + 1 - first) / 256 FROM log_checkpoints \
       WHERE tenant = ?1 AND lane = ?2) AND number >= (SELECT (coalesce((SELECT seq FROM receipt_anchors \
         WHERE tenant = ?1 AND lane = ?2), 0) + 1 - first) / 256 \
       FROM log_checkpoints WHERE tenant = ?1 AND lane = ?2)";

/// The newest receipt up to a number; 0 if there is none. Tenant, lane, the number.
pub const LAST_RECEIPT: &str = "SELECT coalesce(max(seq), 0) AS seq FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq <= ?3";

/// Events of a tenant's registry after an epoch, in order, and its epoch; at most 100. Tenant, epoch.
pub const REGISTRY_EVENTS: &str = "WITH RECURSIVE epochs (epoch) AS (SELECT CAST(?2 AS INTEGER) + 1 \
       UNION ALL SELECT e.epoch + 1 FROM epochs e, tenants t WHERE t.tenant = ?1 AND e.epoch < t.epoch \
         AND e.epoch < CAST(?2 AS INTEGER) + 100) \
     SELECT at_ms, detail, event_id, kind, source FROM epochs JOIN audit_events \
       ON tenant = ?1 AND event_id = 'registry.' || epochs.epoch ORDER BY epochs.epoch";

/// Tenant, lane, first and last sequence number.
pub const STORED_HASHES: &str = "SELECT seq, receipt_hash FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq BETWEEN ?3 AND ?4 ORDER BY seq";

/// A failed authentication that no lane could count. Event id, window start, source, kind,
/// how many more.
pub const COUNT_FAILED_AUTHENTICATION: &str = "INSERT INTO audit_events (tenant, event_id, \
       at_ms, kind, source, count, detail) VALUES ('', ?1, ?2, ?4, ?3, ?5, '{}') \
     ON CONFLICT (tenant, event_id) DO UPDATE SET count = count + excluded.count";

/// The credential of a reader or administrator: tenant, key id. A deleted agent has no status. An
/// administrator's groups are as of the epoch, as is everything else.
pub const LOAD_READER: &str = "SELECT c.kind, c.agent, c.administrator, c.secret_sha256, \
       c.scopes, c.status, c.expires_at_ms, c.allowed_networks, c.signed, \
       t.status AS tenant_status, t.lanes, t.epoch, a.status AS agent_status, \
       (SELECT json_group_array(m.group_name) FROM group_members m \
          JOIN groups g ON g.tenant = m.tenant AND g.group_name = m.group_name \
          WHERE m.tenant = c.tenant AND m.kind = 'administrator' \
            AND m.member = c.administrator AND g.deleted_at_ms IS NULL) AS groups, \
       c.issued_by \
     FROM credentials c JOIN tenants t ON t.tenant = c.tenant \
     LEFT JOIN agents a ON a.tenant = c.tenant AND a.agent = c.agent \
       AND a.deleted_at_ms IS NULL \
     WHERE c.tenant = ?1 AND c.key_id = ?2";

/// Uses the nonce of a signature: tenant, key id, nonce, when it was signed. No row: it was used
/// before.
pub const USE_SIGNATURE_NONCE: &str = "INSERT INTO signature_nonces \
       (tenant, key_id, nonce, created_at_ms) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT DO NOTHING RETURNING nonce";

/// Deletes a tenant's oldest nonces that were signed before a time, up to a limit.
pub const FORGET_SIGNATURE_NONCES: &str = "DELETE FROM signature_nonces \
     WHERE (tenant, key_id, nonce) IN (SELECT tenant, key_id, nonce \
       FROM signature_nonces INDEXED BY signature_nonces_by_age \
       WHERE tenant = ?1 AND created_at_ms < ?2 ORDER BY created_at_ms LIMIT ?3)";

/// Tenant, decision id.
pub const DECISION: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, decision, \
       reason_code, response FROM decisions WHERE tenant = ?1 AND decision_id = ?2";

/// Newest first. Tenant, from and before (decision ids between which to look, since they
/// sort by time), limit.
pub const DECISIONS: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, \
       decision, reason_code, response FROM decisions \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one agent, whose name follows. Without the index hint, the planner would scan the
/// whole tenant by its primary key.
pub const DECISIONS_OF_AGENT: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, \
       tool, decision, reason_code, response FROM decisions INDEXED BY decisions_by_agent \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND agent = ?5 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one outcome, which follows.
pub const DECISIONS_OF_OUTCOME: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, \
       tool, decision, reason_code, response FROM decisions INDEXED BY decisions_by_outcome \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND decision = ?5 \
     ORDER BY decision_id DESC LIMIT ?4";

/// The same of one agent and outcome, which follow.
pub const DECISIONS_OF_AGENT_AND_OUTCOME: &str = "SELECT decision_id, lane, seq, at_ms, agent, \
       server, tool, decision, reason_code, response \
     FROM decisions INDEXED BY decisions_by_agent \
     WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 AND agent = ?5 \
       AND decision = ?6 ORDER BY decision_id DESC LIMIT ?4";

/// Tenant.
pub const FLUSHES: &str =
    "SELECT lane, seq, flushed_at_ms FROM lane_flushes WHERE tenant = ?1 ORDER BY lane";

/// Tenant, lane, first sequence number, limit.
pub const RECEIPTS: &str = "SELECT seq, receipt_hash, prev_receipt_hash, body FROM receipts \
     WHERE tenant = ?1 AND lane = ?2 AND seq >= ?3 ORDER BY seq LIMIT ?4";

/// The receipt of the outcome of a decision's call. Tenant, decision id.
pub const OUTCOME: &str = "SELECT body FROM receipts INDEXED BY receipts_of_outcomes \
     WHERE tenant = ?1 AND decision_id = ?2 AND kind = 'outcome' LIMIT 1";

/// Tenant, approval id.
pub const APPROVAL: &str = "SELECT record FROM approvals WHERE tenant = ?1 AND approval_id = ?2";

/// A page of approvals by an index. The rest of the filter is tested on the rows that the index
/// finds.
macro_rules! approvals {
    ($index:literal, $found:literal) => {
        concat!(
            "SELECT record FROM approvals a INDEXED BY ",
            $index,
            " WHERE tenant = ?1 AND (created_at_ms, approval_id) < (?2, ?3) AND ",
            $found,
            " AND coalesce(agent = ?5, true) AND coalesce(status = ?6, true) \
              AND coalesce(expires_at_ms > ?8, true) \
              AND (?7 IS NULL OR EXISTS (SELECT 1 FROM approval_groups g \
                WHERE g.tenant = ?1 AND g.group_name = ?7 \
                  AND g.created_at_ms = a.created_at_ms AND g.approval_id = a.approval_id)) \
              ORDER BY created_at_ms DESC, approval_id DESC LIMIT ?4"
        )
    };
}

/// Newest first. Tenant, time and id before which to look, limit, then agent, status, group and
/// a time after which they end, each of them or null.
pub const APPROVALS: &str = approvals!("approvals_by_time", "true");

/// The same of one status: few are open.
pub const APPROVALS_OF_STATUS: &str = approvals!("approvals_by_status", "status = ?6");

/// The same of one agent.
pub const APPROVALS_OF_AGENT: &str = approvals!("approvals_by_agent", "agent = ?5");

/// The same of one agent and status.
pub const APPROVALS_OF_AGENT_AND_STATUS: &str =
    approvals!("approvals_by_agent_and_status", "agent = ?5 AND status = ?6");

/// The same of one group.
pub const APPROVALS_OF_GROUP: &str = "SELECT a.record FROM approval_groups g \
     JOIN approvals a ON a.tenant = g.tenant AND a.approval_id = g.approval_id \
     WHERE g.tenant = ?1 AND (g.created_at_ms, g.approval_id) < (?2, ?3) \
       AND g.group_name = ?7 AND coalesce(a.agent = ?5, true) AND coalesce(a.status = ?6, true) \
       AND coalesce(a.expires_at_ms > ?8, true) \
     ORDER BY g.created_at_ms DESC, g.approval_id DESC LIMIT ?4";

/// Tenant.
pub const WEBHOOK: &str = "SELECT w.url, w.salt FROM webhooks w JOIN tenants t USING (tenant) \
     WHERE w.tenant = ?1 AND t.status <> 'deleted'";

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
/// INVARIANT (told names exist): a lane sends a name for [`ADMIT_SERIES`] again within a day ([`crate::lane::Lane::ask_d1`]).
/// So it counts a deleted name only after it sent the name again. Only the names of a lane's totals are sent without being
/// counted, so they are not deleted. Tenant, days.
pub const PRUNE_SERIES: &str = "DELETE FROM metric_counters WHERE tenant = ?1 AND (metric, names) IN ( \
     SELECT metric, names FROM metric_counters \
       WHERE tenant = ?1 AND names NOT IN ('[]', json_array('_other')) \
       GROUP BY metric, names HAVING max(counted_day) < unixepoch() / 86400 - ?2 \
     EXCEPT SELECT total.key->>0, total.key->2 \
       FROM lane_flushes AS f, json_each(f.report, '$.totals') AS total WHERE f.tenant = ?1)";

/// Answers when D1 does.
pub const PING: &str = "SELECT 1 AS one FROM tenants LIMIT 1";

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
    ADMIT_SERIES,
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
