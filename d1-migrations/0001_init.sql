-- The registry (written by administrators) and the records (written by the lanes' flush).
-- Times are Unix milliseconds. JSON columns hold text that was validated before it was written.
-- There is an index for each query of the read endpoints. Each index costs a write for every decision.

CREATE TABLE tenants (
  tenant        TEXT    NOT NULL PRIMARY KEY,
  status        TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'suspended', 'deleted')),
  lanes         INTEGER NOT NULL DEFAULT 1 CHECK (lanes BETWEEN 1 AND 4096),
  epoch         INTEGER NOT NULL DEFAULT 1,
  created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
  tenant            TEXT    NOT NULL REFERENCES tenants (tenant),
  agent             TEXT    NOT NULL,
  lane              INTEGER NOT NULL CHECK (lane BETWEEN 0 AND 4095),
  status            TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'frozen', 'revoked', 'quarantined')),
  environment       TEXT    NOT NULL,
  risk_tier         TEXT    NOT NULL DEFAULT 'low' CHECK (risk_tier IN ('low', 'medium', 'high')),
  groups            TEXT    NOT NULL DEFAULT '[]' CHECK (json_type(groups) = 'array'),
  rate_capacity     INTEGER CHECK (rate_capacity > 0),
  rate_refill_per_s REAL    CHECK (rate_refill_per_s > 0),
  quota_per_day     INTEGER CHECK (quota_per_day >= 0),
  created_at_ms     INTEGER NOT NULL,
  PRIMARY KEY (tenant, agent)
) STRICT, WITHOUT ROWID;

-- secret_sha256: lower-case hex of SHA-256 over the secret part of the token, not decoded.
CREATE TABLE credentials (
  tenant           TEXT    NOT NULL REFERENCES tenants (tenant),
  key_id           TEXT    NOT NULL,
  kind             TEXT    NOT NULL CHECK (kind IN ('agent', 'administrator')),
  agent            TEXT    CHECK ((kind = 'agent') = (agent IS NOT NULL)),
  secret_sha256    TEXT    NOT NULL CHECK (length(secret_sha256) = 64),
  scopes           TEXT    NOT NULL DEFAULT '[]' CHECK (json_type(scopes) = 'array'),
  max_source_trust TEXT    NOT NULL DEFAULT 'unknown' CHECK (max_source_trust IN (
    'trusted_internal_signed', 'trusted_internal_unsigned', 'semi_trusted_customer',
    'untrusted_external', 'malicious_suspected', 'unknown')),
  status           TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'revoked')),
  expires_at_ms    INTEGER,
  created_at_ms    INTEGER NOT NULL,
  PRIMARY KEY (tenant, key_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE servers (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  server        TEXT    NOT NULL,
  kind          TEXT    NOT NULL CHECK (kind IN ('mcp', 'http', 'named')),
  trust         TEXT    NOT NULL DEFAULT 'untrusted' CHECK (trust IN ('trusted', 'untrusted')),
  status        TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'pending', 'disabled', 'quarantined')),
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, server)
) STRICT, WITHOUT ROWID;

CREATE TABLE tools (
  tenant        TEXT    NOT NULL,
  server        TEXT    NOT NULL,
  tool          TEXT    NOT NULL,
  status        TEXT    NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'pending', 'disabled', 'quarantined')),
  mutates       INTEGER NOT NULL CHECK (mutates IN (0, 1)),
  risk          TEXT    NOT NULL CHECK (risk IN ('low', 'medium', 'high', 'critical')),
  canary        INTEGER NOT NULL DEFAULT 0 CHECK (canary IN (0, 1)),
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, server, tool),
  FOREIGN KEY (tenant, server) REFERENCES servers (tenant, server)
) STRICT, WITHOUT ROWID;

-- response: the answer as the caller got it, JSON text.
CREATE TABLE decisions (
  tenant      TEXT    NOT NULL,
  decision_id TEXT    NOT NULL,
  lane        INTEGER NOT NULL,
  seq         INTEGER NOT NULL,
  at_ms       INTEGER NOT NULL,
  agent       TEXT    NOT NULL,
  server      TEXT    NOT NULL,
  tool        TEXT    NOT NULL,
  decision    TEXT    NOT NULL CHECK (decision IN ('allow', 'deny', 'require_approval', 'redact', 'quarantine')),
  reason_code TEXT    NOT NULL,
  response    TEXT    NOT NULL,
  PRIMARY KEY (tenant, decision_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX decisions_by_agent ON decisions (tenant, agent, decision_id);
CREATE INDEX decisions_by_outcome ON decisions (tenant, decision, decision_id);

-- body: the receipt's hashed JSON, in its RFC 8785 form; receipt_hash: lower-case hex of SHA-256 over it.
CREATE TABLE receipts (
  tenant            TEXT    NOT NULL,
  lane              INTEGER NOT NULL,
  seq               INTEGER NOT NULL,
  kind              TEXT    NOT NULL CHECK (kind IN ('decision', 'approval', 'outcome', 'registry')),
  decision_id       TEXT    NOT NULL,
  at_ms             INTEGER NOT NULL,
  receipt_hash      TEXT    NOT NULL CHECK (length(receipt_hash) = 64),
  prev_receipt_hash TEXT    NOT NULL CHECK (length(prev_receipt_hash) = 64),
  body              TEXT    NOT NULL,
  PRIMARY KEY (tenant, lane, seq)
) STRICT, WITHOUT ROWID;

-- tenant: '' if the tenant was not verified (a forged token).
-- source: who caused the event: an agent's name, or a network address.
-- count: the number of equal events that the row counts.
CREATE TABLE audit_events (
  tenant      TEXT    NOT NULL,
  event_id    TEXT    NOT NULL,
  at_ms       INTEGER NOT NULL,
  lane        INTEGER,
  kind        TEXT    NOT NULL,
  source      TEXT    NOT NULL,
  decision_id TEXT,
  count       INTEGER NOT NULL DEFAULT 1,
  detail      TEXT    NOT NULL,
  PRIMARY KEY (tenant, event_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE approvals (
  tenant         TEXT    NOT NULL,
  approval_id    TEXT    NOT NULL,
  decision_id    TEXT    NOT NULL,
  agent          TEXT    NOT NULL,
  status         TEXT    NOT NULL CHECK (status IN ('pending', 'approved', 'rejected', 'cancelled', 'expired', 'used')),
  approver_group TEXT    NOT NULL,
  quorum         INTEGER NOT NULL CHECK (quorum BETWEEN 1 AND 16),
  action_hash    TEXT    NOT NULL CHECK (length(action_hash) = 64),
  created_at_ms  INTEGER NOT NULL,
  expires_at_ms  INTEGER NOT NULL,
  PRIMARY KEY (tenant, approval_id)
) STRICT, WITHOUT ROWID;

-- The last row of each lane's journal that was flushed to these tables. Lists show it as
-- flushed_through.
CREATE TABLE lane_flushes (
  tenant        TEXT    NOT NULL,
  lane          INTEGER NOT NULL,
  seq           INTEGER NOT NULL,
  flushed_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, lane)
) STRICT, WITHOUT ROWID;
