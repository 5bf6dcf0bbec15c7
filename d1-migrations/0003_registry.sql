-- The complete registry: limits, groups, grants, states, bans.
--
-- revision: the tenant's epoch at the last change of the record. It is the record's ETag.
-- A deleted record stays, with the time of deletion, so that its name cannot be used again.
-- A list that is NULL restricts nothing. An empty list allows nothing.
DROP TRIGGER flush_journal_row;

-- The limits of agents without limits of their own. risk_*: more than risk_denials denials within
-- risk_window_s raise an agent's risk tier by one step. Each risk_quiet_s without a denial lowers it by
-- one step.
ALTER TABLE tenants ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tenants ADD COLUMN updated_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenants ADD COLUMN rate_capacity INTEGER CHECK (rate_capacity > 0);
ALTER TABLE tenants ADD COLUMN rate_refill_per_s REAL CHECK (rate_refill_per_s > 0);
ALTER TABLE tenants ADD COLUMN quota_per_day INTEGER CHECK (quota_per_day >= 0);
ALTER TABLE tenants ADD COLUMN risk_denials INTEGER CHECK (risk_denials > 0);
ALTER TABLE tenants ADD COLUMN risk_window_s INTEGER CHECK (risk_window_s > 0);
ALTER TABLE tenants ADD COLUMN risk_quiet_s INTEGER CHECK (risk_quiet_s > 0);

-- frozen, quarantined, revoked: marks that administrators set. Each has its own undo action; revoked
-- has none. lane_quarantined, risk_steps: copies of what the agent's lane decided, written by its flush.
-- The lane itself uses its own journal. status: the strictest mark.
ALTER TABLE agents ADD COLUMN frozen INTEGER NOT NULL DEFAULT 0 CHECK (frozen IN (0, 1));
ALTER TABLE agents ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
ALTER TABLE agents ADD COLUMN revoked INTEGER NOT NULL DEFAULT 0 CHECK (revoked IN (0, 1));
ALTER TABLE agents ADD COLUMN lane_quarantined INTEGER NOT NULL DEFAULT 0 CHECK (lane_quarantined IN (0, 1));
ALTER TABLE agents ADD COLUMN risk_steps INTEGER NOT NULL DEFAULT 0 CHECK (risk_steps BETWEEN 0 AND 2);
ALTER TABLE agents ADD COLUMN allowed_tools TEXT CHECK (json_type(allowed_tools) = 'array');
ALTER TABLE agents ADD COLUMN deleted_at_ms INTEGER;
ALTER TABLE agents ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE agents ADD COLUMN updated_at_ms INTEGER NOT NULL DEFAULT 0;
-- It is not known whether a lane or an administrator had quarantined an agent. A lane has its own mark
-- in its journal, and `restore` lifts both.
UPDATE agents SET frozen = (status = 'frozen'), revoked = (status = 'revoked'),
  quarantined = (status = 'quarantined'),
  updated_at_ms = created_at_ms;
ALTER TABLE agents DROP COLUMN status;
ALTER TABLE agents ADD COLUMN status TEXT GENERATED ALWAYS AS (
  CASE WHEN revoked THEN 'revoked' WHEN quarantined OR lane_quarantined THEN 'quarantined'
    WHEN frozen THEN 'frozen' ELSE 'active' END) VIRTUAL;

CREATE TABLE groups (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  group_name    TEXT    NOT NULL,
  created_at_ms INTEGER NOT NULL,
  deleted_at_ms INTEGER,
  PRIMARY KEY (tenant, group_name)
) STRICT, WITHOUT ROWID;

CREATE TABLE group_members (
  tenant     TEXT NOT NULL,
  group_name TEXT NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('agent', 'administrator')),
  member     TEXT NOT NULL,
  PRIMARY KEY (tenant, group_name, kind, member),
  FOREIGN KEY (tenant, group_name) REFERENCES groups (tenant, group_name)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_members_by_member ON group_members (tenant, kind, member, group_name);

INSERT INTO groups (tenant, group_name, created_at_ms)
SELECT DISTINCT agents.tenant, value, 0 FROM agents, json_each(agents.groups);
INSERT INTO group_members (tenant, group_name, kind, member)
SELECT DISTINCT agents.tenant, value, 'agent', agent FROM agents, json_each(agents.groups);
ALTER TABLE agents DROP COLUMN groups;

-- administrator: the person's name, which rotation keeps. NULL for an agent's credential.
-- signed: whether requests must be signed. The key is derived and not stored.
ALTER TABLE credentials ADD COLUMN administrator TEXT;
ALTER TABLE credentials ADD COLUMN allowed_servers TEXT CHECK (json_type(allowed_servers) = 'array');
ALTER TABLE credentials ADD COLUMN allowed_tools TEXT CHECK (json_type(allowed_tools) = 'array');
ALTER TABLE credentials ADD COLUMN allowed_networks TEXT CHECK (json_type(allowed_networks) = 'array');
ALTER TABLE credentials ADD COLUMN signed INTEGER NOT NULL DEFAULT 0 CHECK (signed IN (0, 1));
ALTER TABLE credentials ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
UPDATE credentials SET administrator = key_id WHERE kind = 'administrator';
CREATE INDEX credentials_by_agent ON credentials (tenant, agent, key_id);

-- manifest_sha256: lower-case hex of SHA-256 over the RFC 8785 form of the server's list of tools.
-- status: the strictest of the states.
ALTER TABLE servers ADD COLUMN approved INTEGER NOT NULL DEFAULT 0 CHECK (approved IN (0, 1));
ALTER TABLE servers ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1));
ALTER TABLE servers ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
ALTER TABLE servers ADD COLUMN manifest_sha256 TEXT CHECK (length(manifest_sha256) = 64);
ALTER TABLE servers ADD COLUMN deleted_at_ms INTEGER;
ALTER TABLE servers ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE servers ADD COLUMN updated_at_ms INTEGER NOT NULL DEFAULT 0;
UPDATE servers SET approved = (status <> 'pending'), disabled = (status = 'disabled'),
  quarantined = (status = 'quarantined'), updated_at_ms = created_at_ms;
ALTER TABLE servers DROP COLUMN status;
ALTER TABLE servers ADD COLUMN status TEXT GENERATED ALWAYS AS (
  CASE WHEN quarantined THEN 'quarantined' WHEN disabled THEN 'disabled'
    WHEN NOT approved THEN 'pending' ELSE 'active' END) VIRTUAL;

ALTER TABLE tools ADD COLUMN approved INTEGER NOT NULL DEFAULT 0 CHECK (approved IN (0, 1));
ALTER TABLE tools ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0 CHECK (disabled IN (0, 1));
ALTER TABLE tools ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0 CHECK (quarantined IN (0, 1));
ALTER TABLE tools ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE tools ADD COLUMN updated_at_ms INTEGER NOT NULL DEFAULT 0;
UPDATE tools SET approved = (status <> 'pending'), disabled = (status = 'disabled'),
  quarantined = (status = 'quarantined'), updated_at_ms = created_at_ms;
ALTER TABLE tools DROP COLUMN status;
ALTER TABLE tools ADD COLUMN status TEXT GENERATED ALWAYS AS (
  CASE WHEN quarantined THEN 'quarantined' WHEN disabled THEN 'disabled'
    WHEN NOT approved THEN 'pending' ELSE 'active' END) VIRTUAL;

-- subject: a name or id, or for source_address a network in CIDR notation.
CREATE TABLE bans (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  ban_id        TEXT    NOT NULL,
  kind          TEXT    NOT NULL CHECK (kind IN ('agent', 'user', 'run', 'source_address')),
  subject       TEXT    NOT NULL,
  reason        TEXT    NOT NULL,
  created_by    TEXT    NOT NULL,
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (tenant, ban_id)
) STRICT, WITHOUT ROWID;

-- Answers to POSTs with an Idempotency-Key, without the secrets, which are shown only once.
-- fingerprint: hex of SHA-256 over credential, method, path and body. epoch: the epoch that the change
-- gave the changed tenant, which can be another tenant than the operator's.
CREATE TABLE idempotency_keys (
  tenant          TEXT    NOT NULL,
  idempotency_key TEXT    NOT NULL,
  fingerprint     TEXT    NOT NULL CHECK (length(fingerprint) = 64),
  epoch           INTEGER NOT NULL,
  status          INTEGER NOT NULL,
  body            TEXT    NOT NULL,
  created_at_ms   INTEGER NOT NULL,
  changed_tenant  TEXT    NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
) STRICT, WITHOUT ROWID;

-- Most events are decisions. An index of only the other kinds costs decisions nothing.
CREATE INDEX audit_events_by_time ON audit_events (tenant, at_ms, event_id);
CREATE INDEX audit_events_by_kind ON audit_events (tenant, kind, at_ms, event_id) WHERE kind <> 'decision';

-- As in 0002_flush.sql. A row without `kind` is a decision. A row of the kind `registry` is an
-- administrator's command that the lane carried out.
CREATE TRIGGER flush_journal_row INSTEAD OF INSERT ON journal_rows BEGIN
  INSERT INTO decisions (tenant, decision_id, lane, seq, at_ms, agent, server, tool, decision, reason_code, response)
  SELECT NEW.tenant, NEW.row->>'decision_id', NEW.lane, NEW.row->>'seq', NEW.row->>'at_ms', NEW.row->>'agent',
    NEW.row->>'server', NEW.row->>'tool', NEW.row->>'decision', NEW.row->>'reason_code', NEW.row->>'response'
  WHERE NEW.row->>'kind' IS NULL
  ON CONFLICT (tenant, decision_id) DO NOTHING;

  INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body)
  VALUES (NEW.tenant, NEW.lane, NEW.row->>'seq', coalesce(NEW.row->>'kind', 'decision'), NEW.row->>'decision_id',
    NEW.row->>'at_ms', NEW.row->>'receipt_hash', NEW.row->>'prev_receipt_hash', NEW.row->>'receipt')
  ON CONFLICT (tenant, lane, seq) DO NOTHING;

  INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
  SELECT NEW.tenant, NEW.row->>'decision_id', NEW.row->>'at_ms', NEW.lane, 'decision', NEW.row->>'agent',
    NEW.row->>'decision_id', json_object('decision', NEW.row->>'decision', 'reason_code', NEW.row->>'reason_code',
    'server', NEW.row->>'server', 'tool', NEW.row->>'tool')
  WHERE NEW.row->>'kind' IS NULL
  ON CONFLICT (tenant, event_id) DO NOTHING;

  INSERT INTO approvals (tenant, approval_id, decision_id, agent, status, approver_group, quorum, action_hash,
    created_at_ms, expires_at_ms)
  SELECT NEW.tenant, NEW.row->>'$.approval.approval_id', NEW.row->>'decision_id', NEW.row->>'agent', 'pending',
    NEW.row->>'$.approval.approver_group', NEW.row->>'$.approval.quorum', NEW.row->>'$.approval.action_hash',
    NEW.row->>'at_ms', NEW.row->>'$.approval.expires_at_ms'
  WHERE NEW.row->>'$.approval.approval_id' IS NOT NULL
  ON CONFLICT (tenant, approval_id) DO NOTHING;

  -- What the lane decided about the agent itself. `containment` is the state after the row. `event` names
  -- the change, unless the decision says it already.
  INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
  SELECT NEW.tenant, NEW.lane || '.' || (NEW.row->>'seq') || '.' || (NEW.row->>'$.containment.event'),
    NEW.row->>'at_ms', NEW.lane, NEW.row->>'$.containment.event', NEW.row->>'$.containment.source',
    nullif(NEW.row->>'decision_id', ''), NEW.row->'$.containment.detail'
  WHERE NEW.row->>'$.containment.event' IS NOT NULL
  ON CONFLICT (tenant, event_id) DO NOTHING;
  UPDATE agents SET lane_quarantined = NEW.row->>'$.containment.quarantined',
    risk_steps = NEW.row->>'$.containment.risk_steps'
  WHERE NEW.row->>'containment' IS NOT NULL AND tenant = NEW.tenant AND agent = NEW.row->>'agent';
END;
