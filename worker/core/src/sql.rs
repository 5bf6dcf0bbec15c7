//! Every SQL statement, in one place, so that a test prepares each against the real schema
//! (`tests/sql.rs`).

/// Statements on D1. The schema is `d1-migrations/`.
pub mod d1 {
    /// Everything that one call needs, in one round trip and at one epoch, each as JSON text or
    /// null. Tenant, agent, key id, server, tool, whether the bans are wanted (0 or 1), now: bans
    /// that have expired by then are left out. One ban more than [`crate::bounds::MAX_BANS`] is
    /// read, so that too many are noticed.
    ///
    /// An agent's status is what administrators did, and not the column `status`: that holds a copy
    /// of the lane's own quarantine too, which would outlast the lane's lifting it.
    pub const LOAD_RECORDS: &str = "SELECT \
        (SELECT json_object('status', status, 'epoch', epoch, 'rate_capacity', rate_capacity, \
           'rate_refill_per_s', rate_refill_per_s, 'quota_per_day', quota_per_day, \
           'risk_denials', risk_denials, 'risk_window_s', risk_window_s, \
           'risk_quiet_s', risk_quiet_s) \
           FROM tenants WHERE tenant = ?1) AS tenant, \
        (SELECT json_object('lane', lane, 'status', \
           CASE WHEN revoked THEN 'revoked' WHEN quarantined THEN 'quarantined' \
             WHEN frozen THEN 'frozen' ELSE 'active' END, \
           'environment', environment, 'risk_tier', risk_tier, 'groups', \
           json((SELECT json_group_array(group_name) FROM (SELECT m.group_name FROM group_members m \
              JOIN groups g ON g.tenant = m.tenant AND g.group_name = m.group_name \
              WHERE m.tenant = ?1 AND m.kind = 'agent' AND m.member = ?2 \
                AND g.deleted_at_ms IS NULL ORDER BY m.group_name))), \
           'allowed_tools', json(allowed_tools), 'rate_capacity', rate_capacity, \
           'rate_refill_per_s', rate_refill_per_s, 'quota_per_day', quota_per_day) \
           FROM agents WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL) AS agent, \
        (SELECT json_object('agent', agent, 'secret_sha256', secret_sha256, \
           'scopes', json(scopes), 'max_source_trust', max_source_trust, 'status', status, \
           'expires_at_ms', expires_at_ms, 'allowed_servers', json(allowed_servers), \
           'allowed_tools', json(allowed_tools), 'allowed_networks', json(allowed_networks), \
           'signed', json(iif(signed, 'true', 'false'))) \
           FROM credentials WHERE tenant = ?1 AND key_id = ?3) AS credential, \
        (SELECT json_object('kind', kind, 'trust', trust, 'status', status) \
           FROM servers WHERE tenant = ?1 AND server = ?4 AND deleted_at_ms IS NULL) AS server, \
        (SELECT json_object('status', status, 'mutates', mutates, 'risk', risk, 'canary', canary) \
           FROM tools WHERE tenant = ?1 AND server = ?4 AND tool = ?5) AS tool, \
        iif(?6, (SELECT json_group_array(json_object('kind', kind, 'subject', subject, \
           'expires_at_ms', expires_at_ms)) FROM (SELECT kind, subject, expires_at_ms FROM bans \
             WHERE tenant = ?1 AND (expires_at_ms IS NULL OR expires_at_ms > ?7) \
             LIMIT 1001)), NULL) AS bans";

    /// Tenant.
    pub const EPOCH: &str = "SELECT epoch FROM tenants WHERE tenant = ?1";

    /// Tenant, lane and a JSON array of journal rows: each is spread over the tables by the
    /// trigger of `d1-migrations/0003_registry.sql`.
    pub const FLUSH_ROWS: &str = "INSERT INTO journal_rows (tenant, lane, row) \
         SELECT ?1, ?2, value FROM json_each(?3)";

    /// Tenant, lane, JSON array of audit counts.
    pub const FLUSH_COUNTS: &str = "INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, \
           source, count, detail) \
         SELECT ?1, value->>'event_id' || '.' || ?2, value->>'at_ms', ?2, value->>'kind', value->>'source', \
           value->>'count', '{}' \
         FROM json_each(?3) WHERE true \
         ON CONFLICT (tenant, event_id) DO UPDATE SET count = max(count, excluded.count)";

    /// Tenant, lane, last sequence number of the flush, now.
    pub const FLUSHED_THROUGH: &str = "INSERT INTO lane_flushes (tenant, lane, seq, flushed_at_ms) \
         VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (tenant, lane) DO UPDATE SET seq = max(seq, excluded.seq), \
           flushed_at_ms = excluded.flushed_at_ms";

    /// Tenant, lane, first and last sequence number.
    pub const STORED_HASHES: &str = "SELECT seq, receipt_hash FROM receipts \
         WHERE tenant = ?1 AND lane = ?2 AND seq BETWEEN ?3 AND ?4 ORDER BY seq";

    /// A failed authentication that no lane could count. Event id, window start, source, kind,
    /// how many more.
    pub const COUNT_FAILED_AUTHENTICATION: &str = "INSERT INTO audit_events (tenant, event_id, \
           at_ms, kind, source, count, detail) VALUES ('', ?1, ?2, ?4, ?3, ?5, '{}') \
         ON CONFLICT (tenant, event_id) DO UPDATE SET count = count + excluded.count";

    /// Who reads or administers: tenant, key id. Of a deleted agent there is no status.
    pub const LOAD_READER: &str = "SELECT c.kind, c.agent, c.administrator, c.secret_sha256, \
           c.scopes, c.status, c.expires_at_ms, c.allowed_networks, c.signed, \
           t.status AS tenant_status, t.lanes, a.status AS agent_status \
         FROM credentials c JOIN tenants t ON t.tenant = c.tenant \
         LEFT JOIN agents a ON a.tenant = c.tenant AND a.agent = c.agent \
           AND a.deleted_at_ms IS NULL \
         WHERE c.tenant = ?1 AND c.key_id = ?2";

    /// Tenant, decision id.
    pub const DECISION: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, decision, \
           reason_code, response FROM decisions WHERE tenant = ?1 AND decision_id = ?2";

    /// Newest first. Tenant, from and before (decision ids between which to look, since they
    /// sort by time), limit.
    pub const DECISIONS: &str = "SELECT decision_id, lane, seq, at_ms, agent, server, tool, \
           decision, reason_code, response FROM decisions \
         WHERE tenant = ?1 AND decision_id >= ?2 AND decision_id < ?3 \
         ORDER BY decision_id DESC LIMIT ?4";

    /// The same of one agent, whose name follows. Left to itself, the planner would walk the
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

    /// Answers when D1 does.
    pub const PING: &str = "SELECT 1 AS one FROM tenants LIMIT 1";

    /// All of them, for the test.
    pub const ALL: &[&str] = &[
        LOAD_RECORDS,
        EPOCH,
        FLUSH_ROWS,
        FLUSH_COUNTS,
        FLUSHED_THROUGH,
        STORED_HASHES,
        COUNT_FAILED_AUTHENTICATION,
        LOAD_READER,
        DECISION,
        DECISIONS,
        DECISIONS_OF_AGENT,
        DECISIONS_OF_OUTCOME,
        DECISIONS_OF_AGENT_AND_OUTCOME,
        FLUSHES,
        RECEIPTS,
        PING,
    ];
}

/// Statements on a lane's own SQLite.
pub mod lane {
    /// Run at every start; all are idempotent. A journal row is written by one insert: the
    /// partial indexes add a row only where a call has a request id or a nonce.
    pub const SCHEMA: &[&str] = &[
        "CREATE TABLE IF NOT EXISTS meta (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) \
           STRICT, WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
           receipt_hash TEXT NOT NULL, agent TEXT NOT NULL, state TEXT NOT NULL, request_key TEXT, \
           fingerprint TEXT NOT NULL, nonce_key TEXT, row TEXT NOT NULL) STRICT",
        "CREATE UNIQUE INDEX IF NOT EXISTS journal_request ON journal (request_key) \
           WHERE request_key IS NOT NULL",
        "CREATE UNIQUE INDEX IF NOT EXISTS journal_nonce ON journal (nonce_key) \
           WHERE nonce_key IS NOT NULL",
        "CREATE TABLE IF NOT EXISTS agents (agent TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL) \
           STRICT, WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS replay (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
           request_key TEXT NOT NULL UNIQUE, fingerprint TEXT NOT NULL, response TEXT NOT NULL) \
           STRICT",
        "CREATE TABLE IF NOT EXISTS nonces (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
           nonce_key TEXT NOT NULL UNIQUE) STRICT",
        "CREATE TABLE IF NOT EXISTS audit_counts (event_id TEXT NOT NULL PRIMARY KEY, \
           at_ms INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, \
           count INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    ];

    pub const META: &str = "SELECT value FROM meta WHERE name = ?1";
    pub const SET_META: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";

    pub const JOURNAL_EXTENT: &str =
        "SELECT count(*), coalesce(min(seq), 0), coalesce(max(seq), 0) FROM journal";
    pub const JOURNAL_HASH: &str = "SELECT receipt_hash FROM journal WHERE seq = ?1";
    /// The newest state of each agent; SQLite takes `state` from the row of the maximum.
    pub const JOURNAL_STATES: &str = "SELECT agent, state, max(seq) FROM journal GROUP BY agent";
    pub const INSERT: &str = "INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, \
         request_key, fingerprint, nonce_key, row) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    pub const AGENT_STATE: &str = "SELECT state FROM agents WHERE agent = ?1";
    pub const STORED_ANSWER: &str = "SELECT fingerprint, row->>'response' FROM journal \
           WHERE request_key = ?1 \
         UNION ALL SELECT fingerprint, response FROM replay WHERE request_key = ?1 LIMIT 1";
    pub const NONCE_USED: &str = "SELECT 1 FROM journal WHERE nonce_key = ?1 \
         UNION ALL SELECT 1 FROM nonces WHERE nonce_key = ?1 LIMIT 1";
    /// Read by calls that write nothing, so that a superseded object fails instead of answering.
    pub const TOUCH: &str = "SELECT 1 FROM meta LIMIT 1";

    pub const ROWS: &str = "SELECT seq, receipt_hash, row FROM journal WHERE seq >= ?1 \
         ORDER BY seq LIMIT ?2";
    pub const ROW: &str = "SELECT row FROM journal WHERE seq = ?1";

    pub const KEEP_REPLAYS: &str = "INSERT INTO replay (seq, at_ms, request_key, fingerprint, \
           response) SELECT seq, at_ms, request_key, fingerprint, row->>'response' FROM journal \
         WHERE seq <= ?1 AND request_key IS NOT NULL \
         ON CONFLICT (request_key) DO UPDATE SET seq = excluded.seq, at_ms = excluded.at_ms, \
           fingerprint = excluded.fingerprint, response = excluded.response";
    pub const KEEP_NONCES: &str = "INSERT INTO nonces (seq, at_ms, nonce_key) \
         SELECT seq, at_ms, nonce_key FROM journal WHERE seq <= ?1 AND nonce_key IS NOT NULL \
         ON CONFLICT (nonce_key) DO UPDATE SET seq = excluded.seq, at_ms = excluded.at_ms";
    pub const SET_AGENT: &str = "INSERT INTO agents (agent, state) VALUES (?1, ?2) \
         ON CONFLICT (agent) DO UPDATE SET state = excluded.state";
    pub const PRUNE: &str = "DELETE FROM journal WHERE seq <= ?1";
    /// The oldest rows that are past their time, a bounded number of them.
    pub const EXPIRE_REPLAYS: &str = "DELETE FROM replay WHERE seq IN \
         (SELECT seq FROM replay ORDER BY seq LIMIT ?2) AND at_ms < ?1";
    pub const EXPIRE_NONCES: &str = "DELETE FROM nonces WHERE seq IN \
         (SELECT seq FROM nonces ORDER BY seq LIMIT ?2) AND at_ms < ?1";

    pub const SET_COUNT: &str = "INSERT INTO audit_counts (event_id, at_ms, kind, source, count) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (event_id) DO UPDATE SET count = max(count, excluded.count)";
    pub const COUNTS: &str = "SELECT event_id, count, json_object('event_id', event_id, \
         'at_ms', at_ms, 'kind', kind, 'source', source, 'count', count) FROM audit_counts \
         ORDER BY event_id LIMIT ?1";
    pub const DROP_COUNT: &str = "DELETE FROM audit_counts WHERE event_id = ?1 AND count = ?2";

    /// All but the schema, for the test.
    pub const ALL: &[&str] = &[
        META,
        SET_META,
        JOURNAL_EXTENT,
        JOURNAL_HASH,
        JOURNAL_STATES,
        INSERT,
        AGENT_STATE,
        STORED_ANSWER,
        NONCE_USED,
        TOUCH,
        ROWS,
        ROW,
        KEEP_REPLAYS,
        KEEP_NONCES,
        SET_AGENT,
        PRUNE,
        EXPIRE_REPLAYS,
        EXPIRE_NONCES,
        SET_COUNT,
        COUNTS,
        DROP_COUNT,
    ];
}
