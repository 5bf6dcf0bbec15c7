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
           'risk_quiet_s', risk_quiet_s, 'taint_s', taint_s, 'lanes', lanes, \
           'rows_per_day', rows_per_day, 'bytes_per_day', bytes_per_day, \
           'grace_read_s', grace_read_s, 'grace_write_s', grace_write_s, \
           'grace_high_risk_s', grace_high_risk_s) \
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
           'signed', json(iif(signed, 'true', 'false')), \
           'assigns_runs', json(iif(assigns_runs, 'true', 'false'))) \
           FROM credentials WHERE tenant = ?1 AND key_id = ?3) AS credential, \
        (SELECT json_object('kind', kind, 'trust', trust, 'status', status, \
           'upstream', json(upstream), 'instructions_sha256', instructions_sha256) FROM servers WHERE tenant = ?1 AND server = ?4 AND deleted_at_ms IS NULL) AS server, \
        (SELECT json_object('status', status, 'mutates', mutates, 'risk', risk, 'canary', canary, \
           'tainted', tainted, 'approval_ttl_s', approval_ttl_s, 'input_schema', input_schema) FROM tools WHERE tenant = ?1 AND server = ?4 AND tool = ?5) AS tool, \
        iif(?6, (SELECT json_group_array(json_object('kind', kind, 'subject', subject, \
           'expires_at_ms', expires_at_ms)) FROM (SELECT kind, subject, expires_at_ms FROM bans \
             WHERE tenant = ?1 AND (expires_at_ms IS NULL OR expires_at_ms > ?7) \
             LIMIT 1001)), NULL) AS bans";

    /// All tools of a server, as a listing needs them, with the epoch at which they were so. Tenant,
    /// server; one tool more than [`crate::bounds::MAX_SERVER_TOOLS`], so that too many are noticed.
    pub const LOAD_LISTING: &str = "SELECT t.epoch, (SELECT json_group_array(json_object('tool', \
           tool, 'status', status, 'mutates', mutates, 'canary', canary, \
           'definition_sha256', definition_sha256)) \
         FROM (SELECT * FROM tools WHERE tenant = ?1 AND server = ?2 LIMIT 5001)) AS tools \
         FROM tenants t WHERE t.tenant = ?1";

    /// Tenant.
    pub const EPOCH: &str = "SELECT epoch FROM tenants WHERE tenant = ?1";

    /// Tenant, lane and a JSON array of journal rows: each is spread over the tables by the
    /// trigger of `d1-migrations/0004_approvals.sql`.
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

    /// Who reads or administers: tenant, key id. Of a deleted agent there is no status. An
    /// administrator's groups come with the epoch at which they, and all the rest, were so.
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

    /// Uses up the nonce of a signature: tenant, key id, nonce, when it was signed. No row: it was
    /// used before.
    pub const USE_SIGNATURE_NONCE: &str = "INSERT INTO signature_nonces \
           (tenant, key_id, nonce, created_at_ms) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO NOTHING RETURNING nonce";

    /// Forgets a tenant's oldest nonces that were signed before a time, a bounded number of them.
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

    /// The receipt of what became of a decision's call. Tenant, decision id.
    pub const OUTCOME: &str = "SELECT body FROM receipts INDEXED BY receipts_of_outcomes \
         WHERE tenant = ?1 AND decision_id = ?2 AND kind = 'outcome' LIMIT 1";

    /// Tenant, approval id.
    pub const APPROVAL: &str =
        "SELECT record FROM approvals WHERE tenant = ?1 AND approval_id = ?2";

    /// A page of approvals by an index. The rest of the filter is tested on what the index finds.
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

    /// The same of one status: of open ones there are few.
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

    /// Messages that a webhook did not take. Tenant, lane, a JSON array of them, now.
    pub const WRITE_DEAD_LETTERS: &str = "INSERT INTO audit_events (tenant, event_id, at_ms, lane, \
           kind, source, decision_id, detail) \
         SELECT ?1, value->>'event_id', ?4, ?2, 'webhook_dead_lettered', 'webhook', \
           value->>'decision_id', value->'detail' FROM json_each(?3) WHERE true \
         ON CONFLICT (tenant, event_id) DO NOTHING";

    /// Tenant.
    pub const RETENTION: &str = "SELECT retention_days FROM tenants WHERE tenant = ?1";

    /// Tenant, lane, the number that they come after, limit.
    pub const OLD_RECEIPTS: &str = "SELECT at_ms, seq, receipt_hash, prev_receipt_hash, body \
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

    /// Tenant, time, limit. Two kinds of events are locks, and stay: the newest change of the
    /// registry, and bootstraps, which are numbered by their count.
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

    /// Tenant, time, limit. What has not expired by then is kept, so an open approval is.
    pub const PRUNE_APPROVALS: &str = "DELETE FROM approvals WHERE tenant = ?1 AND approval_id IN \
         (SELECT approval_id FROM approvals \
            WHERE tenant = ?1 AND created_at_ms < ?2 AND expires_at_ms < ?2 \
          ORDER BY created_at_ms, approval_id LIMIT ?3) RETURNING 1 AS one";

    /// Answers when D1 does.
    pub const PING: &str = "SELECT 1 AS one FROM tenants LIMIT 1";

    /// All of them, for the test.
    pub const ALL: &[&str] = &[
        LOAD_RECORDS,
        LOAD_LISTING,
        EPOCH,
        FLUSH_ROWS,
        FLUSH_COUNTS,
        FLUSHED_THROUGH,
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
        WRITE_DEAD_LETTERS,
        PING,
        RETENTION,
        OLD_RECEIPTS,
        SAVE_ANCHOR,
        PRUNE_DECISIONS,
        PRUNE_RECEIPTS,
        PRUNE_EVENTS,
        PRUNE_APPROVAL_GROUPS,
        PRUNE_APPROVALS,
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
        // Nonces of signatures: of commands that journal nothing, too. id: their order in time.
        "CREATE TABLE IF NOT EXISTS signature_nonces (id INTEGER PRIMARY KEY, \
           at_ms INTEGER NOT NULL, nonce_key TEXT NOT NULL UNIQUE) STRICT",
        "CREATE TABLE IF NOT EXISTS approvals (approval_id TEXT NOT NULL PRIMARY KEY, \
           expires_at_ms INTEGER NOT NULL, closed_at_ms INTEGER, record TEXT NOT NULL, input TEXT, \
           edited_input TEXT) STRICT, WITHOUT ROWID",
        "CREATE INDEX IF NOT EXISTS approvals_open ON approvals (expires_at_ms) \
           WHERE closed_at_ms IS NULL",
        "CREATE INDEX IF NOT EXISTS approvals_closed ON approvals (closed_at_ms) \
           WHERE closed_at_ms IS NOT NULL",
        // What is to be told of an approval's step. attempts: those that failed. due_at_ms: NULL when
        // it was given up.
        "CREATE TABLE IF NOT EXISTS webhook_outbox (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, \
           event TEXT NOT NULL, record TEXT NOT NULL, attempts INTEGER NOT NULL, \
           due_at_ms INTEGER) STRICT",
        "CREATE INDEX IF NOT EXISTS webhook_outbox_due ON webhook_outbox (due_at_ms)",
        "CREATE VIEW IF NOT EXISTS approval_steps (seq, at_ms, receipt_hash, agent, state, \
           request_key, fingerprint, nonce_key, row, input, edited_input) \
         AS SELECT 0, 0, '', '', '', '', '', '', '', '', '' WHERE false",
        "CREATE TRIGGER IF NOT EXISTS write_approval_step INSTEAD OF INSERT ON approval_steps BEGIN \
           INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, request_key, fingerprint, \
             nonce_key, row) VALUES (NEW.seq, NEW.at_ms, NEW.receipt_hash, NEW.agent, NEW.state, \
             NEW.request_key, NEW.fingerprint, NEW.nonce_key, NEW.row); \
           INSERT INTO approvals (approval_id, expires_at_ms, closed_at_ms, record, input, \
             edited_input) \
           SELECT NEW.row->>'$.approval.approval_id', NEW.row->>'$.approval.expires_at_ms', \
             NEW.row->>'$.approval.closed_at_ms', NEW.row->>'approval', NEW.input, NEW.edited_input \
           WHERE NEW.row->>'approval' IS NOT NULL \
           ON CONFLICT (approval_id) DO UPDATE SET closed_at_ms = excluded.closed_at_ms, \
             record = excluded.record, \
             input = iif(excluded.closed_at_ms IS NULL, input, NULL), \
             edited_input = iif(excluded.closed_at_ms IS NULL, \
               coalesce(excluded.edited_input, edited_input), NULL); \
           INSERT INTO webhook_outbox (seq, at_ms, event, record, attempts, due_at_ms) \
           SELECT NEW.seq, NEW.at_ms, coalesce(NEW.row->>'event', 'approval_requested'), \
             NEW.row->>'approval', 0, NEW.at_ms \
           WHERE NEW.row->>'approval' IS NOT NULL; \
         END",
        // Records of the registry, all of one epoch. record: JSON, 'null' for what is not registered.
        "CREATE TABLE IF NOT EXISTS registry (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, \
           name TEXT NOT NULL, record TEXT NOT NULL, UNIQUE (kind, name)) STRICT",
        // Lanes that did not take an epoch: only in the object that goes on telling them.
        "CREATE TABLE IF NOT EXISTS pushes (tenant TEXT NOT NULL, lane INTEGER NOT NULL, \
           epoch INTEGER NOT NULL, until_ms INTEGER NOT NULL, due_at_ms INTEGER NOT NULL, \
           attempts INTEGER NOT NULL, PRIMARY KEY (tenant, lane)) STRICT, WITHOUT ROWID",
        "CREATE TABLE IF NOT EXISTS audit_counts (event_id TEXT NOT NULL PRIMARY KEY, \
           at_ms INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, \
           count INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    ];

    pub const META: &str = "SELECT value FROM meta WHERE name = ?1";
    pub const SET_META: &str = "INSERT INTO meta (name, value) VALUES (?1, ?2) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";

    /// The first and the last number. Of one `SELECT` with both, SQLite would read every row.
    pub const JOURNAL_EXTENT: &str = "SELECT coalesce((SELECT min(seq) FROM journal), 0), \
         coalesce((SELECT max(seq) FROM journal), 0)";
    pub const JOURNAL_HASH: &str = "SELECT receipt_hash FROM journal WHERE seq = ?1";
    /// Bytes of the rows after a sequence number. Of a text, `length` counts characters.
    pub const JOURNAL_BYTES: &str =
        "SELECT coalesce(sum(length(CAST(row AS BLOB))), 0) FROM journal WHERE seq > ?1";
    /// The newest state of each agent among the rows after a sequence number, and how many of them
    /// are the agent's; SQLite takes `state` from the row of the maximum.
    pub const JOURNAL_STATES: &str =
        "SELECT agent, state, max(seq), count(*) FROM journal WHERE seq > ?1 GROUP BY agent";
    /// The latest time of the rows after a sequence number.
    pub const JOURNAL_LATEST: &str = "SELECT coalesce(max(at_ms), 0) FROM journal WHERE seq > ?1";
    pub const INSERT: &str = "INSERT INTO journal (seq, at_ms, receipt_hash, agent, state, \
         request_key, fingerprint, nonce_key, row) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    /// Rows with approvals: a JSON array of the journal's columns, the call's arguments and the
    /// edited ones. The approvals are written with their rows, or not at all.
    pub const INSERT_APPROVAL_STEPS: &str = "INSERT INTO approval_steps SELECT value->>0, value->>1, \
         value->>2, value->>3, value->>4, value->>5, value->>6, value->>7, value->>8, value->>9, \
         value->>10 FROM json_each(?1) ORDER BY key";
    pub const APPROVAL: &str =
        "SELECT record, input, edited_input FROM approvals WHERE approval_id = ?1";
    /// Open ones whose time is over by now, oldest first.
    pub const DUE_APPROVALS: &str = "SELECT record FROM approvals \
         WHERE closed_at_ms IS NULL AND expires_at_ms <= ?1 ORDER BY expires_at_ms LIMIT ?2";
    /// When the next open one is over.
    pub const NEXT_EXPIRY: &str =
        "SELECT coalesce(min(expires_at_ms), 0) FROM approvals WHERE closed_at_ms IS NULL";
    /// Closed ones that are past their time, a bounded number of them.
    pub const FORGET_APPROVALS: &str = "DELETE FROM approvals WHERE approval_id IN \
         (SELECT approval_id FROM approvals WHERE closed_at_ms < ?1 ORDER BY closed_at_ms LIMIT ?2)";
    /// Messages that are due by now.
    pub const DUE_DELIVERIES: &str = "SELECT seq, at_ms, event, record, attempts \
         FROM webhook_outbox WHERE due_at_ms <= ?1 ORDER BY due_at_ms, seq LIMIT ?2";
    /// Those that were given up, and those beyond a number of newer ones, a bounded number of them.
    pub const DEAD_LETTERS: &str = "SELECT seq, at_ms, event, record, attempts FROM webhook_outbox \
         WHERE seq IN (SELECT seq FROM webhook_outbox WHERE due_at_ms IS NULL \
           UNION ALL SELECT seq FROM (SELECT seq FROM webhook_outbox ORDER BY seq DESC \
             LIMIT -1 OFFSET ?1)) ORDER BY seq LIMIT ?2";
    /// When the first message is due; NULL, which comes first, when one was given up.
    pub const NEXT_DELIVERY: &str =
        "SELECT due_at_ms FROM webhook_outbox ORDER BY due_at_ms LIMIT 1";
    pub const DELIVERY_FAILED: &str =
        "UPDATE webhook_outbox SET attempts = ?2, due_at_ms = ?3 WHERE seq = ?1";
    /// Now, and the time beyond which none can be due.
    pub const REPAIR_DELIVERIES: &str =
        "UPDATE webhook_outbox SET due_at_ms = ?1 WHERE due_at_ms > ?2";
    /// Now, and the time beyond which none can have been asked for.
    pub const REPAIR_APPROVALS: &str = "UPDATE approvals SET expires_at_ms = ?1 \
         WHERE closed_at_ms IS NULL AND expires_at_ms > ?2 AND record->>'created_at_ms' > ?2";
    /// A JSON array of sequence numbers.
    pub const DROP_MESSAGES: &str =
        "DELETE FROM webhook_outbox WHERE seq IN (SELECT value FROM json_each(?1))";
    pub const FORGET_DELIVERIES: &str = "DELETE FROM webhook_outbox WHERE seq <= ?1";
    pub const AGENT_STATE: &str = "SELECT state FROM agents WHERE agent = ?1";
    pub const STORED_ANSWER: &str = "SELECT fingerprint, row->>'response' FROM journal \
           WHERE request_key = ?1 \
         UNION ALL SELECT fingerprint, response FROM replay WHERE request_key = ?1 LIMIT 1";
    pub const NONCE_USED: &str = "SELECT 1 FROM journal WHERE nonce_key = ?1 \
         UNION ALL SELECT 1 FROM nonces WHERE nonce_key = ?1 LIMIT 1";
    /// Key id and nonce.
    pub const SIGNATURE_NONCE_USED: &str = "SELECT 1 FROM signature_nonces WHERE nonce_key = ?1";
    pub const USE_SIGNATURE_NONCE: &str =
        "INSERT INTO signature_nonces (nonce_key, at_ms) VALUES (?1, ?2)";
    /// The oldest that are past their time, a bounded number of them.
    pub const EXPIRE_SIGNATURE_NONCES: &str = "DELETE FROM signature_nonces WHERE id IN \
         (SELECT id FROM signature_nonces ORDER BY id LIMIT ?2) AND at_ms < ?1";
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
    /// The newest state of each agent among the rows after a sequence number.
    pub const KEEP_STATES: &str = "INSERT INTO agents (agent, state) SELECT agent, state FROM journal \
         WHERE seq IN (SELECT max(seq) FROM journal WHERE seq > ?1 GROUP BY agent) \
         ON CONFLICT (agent) DO UPDATE SET state = excluded.state";
    pub const PRUNE: &str = "DELETE FROM journal WHERE seq <= ?1";
    /// The oldest rows that are past their time, a bounded number of them: those from before a time, and
    /// those up to a number that bear a time after another, which a clock that was ahead gave them.
    pub const EXPIRE_REPLAYS: &str = "DELETE FROM replay WHERE seq IN \
         (SELECT seq FROM replay ORDER BY seq LIMIT ?2) \
         AND (at_ms < ?1 OR (seq <= ?3 AND at_ms > ?4))";
    pub const EXPIRE_NONCES: &str = "DELETE FROM nonces WHERE seq IN \
         (SELECT seq FROM nonces ORDER BY seq LIMIT ?2) \
         AND (at_ms < ?1 OR (seq <= ?3 AND at_ms > ?4))";

    pub const RECORD: &str = "SELECT record FROM registry WHERE kind = ?1 AND name = ?2";
    /// A JSON array of arrays: kind, name, record.
    pub const KEEP_RECORDS: &str = "INSERT INTO registry (kind, name, record) \
         SELECT value->>0, value->>1, value->>2 FROM json_each(?1) WHERE true \
         ON CONFLICT (kind, name) DO UPDATE SET record = excluded.record \
           WHERE record <> excluded.record";
    /// How many of the newest are kept.
    pub const BOUND_RECORDS: &str =
        "DELETE FROM registry WHERE id <= (SELECT max(id) FROM registry) - ?1";
    pub const FORGET_RECORDS: &str = "DELETE FROM registry";
    /// A JSON array of arrays: kind, first name, and the name before which the last one is.
    pub const FORGET_NAMED_RECORDS: &str = "DELETE FROM registry WHERE id IN \
         (SELECT r.id FROM json_each(?1) n JOIN registry r \
           ON r.kind = n.value->>0 AND r.name >= n.value->>1 AND r.name < n.value->>2)";

    /// Tenant, lane, epoch, until when, when it is due.
    pub const KEEP_PUSH: &str = "INSERT INTO pushes (tenant, lane, epoch, until_ms, due_at_ms, \
           attempts) VALUES (?1, ?2, ?3, ?4, ?5, 0) \
         ON CONFLICT (tenant, lane) DO UPDATE SET epoch = excluded.epoch, \
           until_ms = excluded.until_ms, due_at_ms = excluded.due_at_ms, attempts = 0 \
           WHERE epoch < excluded.epoch";
    pub const FORGET_PUSHES: &str = "DELETE FROM pushes WHERE until_ms <= ?1";
    pub const DUE_PUSHES: &str = "SELECT tenant, lane, epoch, attempts FROM pushes \
         WHERE due_at_ms <= ?1 ORDER BY due_at_ms LIMIT ?2";
    /// Tenant, lane, epoch.
    pub const PUSHED: &str = "DELETE FROM pushes WHERE tenant = ?1 AND lane = ?2 AND epoch <= ?3";
    /// Tenant, lane, epoch, when it is due.
    pub const PUSH_FAILED: &str = "UPDATE pushes SET attempts = attempts + 1, due_at_ms = ?4 \
         WHERE tenant = ?1 AND lane = ?2 AND epoch = ?3";
    pub const NEXT_PUSH: &str = "SELECT due_at_ms FROM pushes ORDER BY due_at_ms LIMIT 1";

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
        JOURNAL_BYTES,
        JOURNAL_STATES,
        KEEP_PUSH,
        FORGET_PUSHES,
        DUE_PUSHES,
        PUSHED,
        PUSH_FAILED,
        NEXT_PUSH,
        RECORD,
        KEEP_RECORDS,
        BOUND_RECORDS,
        FORGET_RECORDS,
        FORGET_NAMED_RECORDS,
        JOURNAL_LATEST,
        INSERT,
        INSERT_APPROVAL_STEPS,
        APPROVAL,
        DUE_APPROVALS,
        NEXT_EXPIRY,
        FORGET_APPROVALS,
        DUE_DELIVERIES,
        DEAD_LETTERS,
        NEXT_DELIVERY,
        DELIVERY_FAILED,
        REPAIR_DELIVERIES,
        REPAIR_APPROVALS,
        DROP_MESSAGES,
        FORGET_DELIVERIES,
        AGENT_STATE,
        STORED_ANSWER,
        NONCE_USED,
        SIGNATURE_NONCE_USED,
        USE_SIGNATURE_NONCE,
        EXPIRE_SIGNATURE_NONCES,
        TOUCH,
        ROWS,
        ROW,
        KEEP_REPLAYS,
        KEEP_NONCES,
        KEEP_STATES,
        PRUNE,
        EXPIRE_REPLAYS,
        EXPIRE_NONCES,
        SET_COUNT,
        COUNTS,
        DROP_COUNT,
    ];
}
