-- The transparency logs: Merkle trees over receipts, and their signed checkpoints (docs/receipts.md).

-- Whether anybody may read the tenant's logs. NULL: only credentials with the scope audit:read.
ALTER TABLE tenants ADD COLUMN log_public INTEGER CHECK (log_public IN (0, 1));

-- The newest checkpoint of each lane. note: the signed note. first: the number of the receipt that is the first leaf.
-- leaves: the hashes of the last tile, unless it is full; in base64, as all hashes here. cosignatures: lines of witnesses
-- for the note.
CREATE TABLE log_checkpoints (
  tenant       TEXT    NOT NULL,
  lane         INTEGER NOT NULL,
  note         TEXT    NOT NULL,
  first        INTEGER NOT NULL,
  leaves       TEXT    NOT NULL,
  cosignatures TEXT    NOT NULL DEFAULT '',
  PRIMARY KEY (tenant, lane)
) STRICT, WITHOUT ROWID;

-- Full tiles of 256 hashes. The hashes of a tile above level 0 are the roots of tiles below it. leaves: the hashes of a
-- tile of level 0, until its receipts are deleted because of their age.
CREATE TABLE log_tiles (
  tenant TEXT    NOT NULL,
  lane   INTEGER NOT NULL,
  level  INTEGER NOT NULL,
  number INTEGER NOT NULL,
  root   TEXT    NOT NULL,
  leaves TEXT,
  PRIMARY KEY (tenant, lane, level, number)
) STRICT, WITHOUT ROWID;

-- As in 0015_taint_causes.sql. In addition, the entries of a tenant's head log are receipts. Their column `kind` is
-- `registry`: another value would need a copy of the whole table.
DROP TRIGGER flush_journal_row;
CREATE TRIGGER flush_journal_row INSTEAD OF INSERT ON journal_rows BEGIN
  INSERT INTO decisions (tenant, decision_id, lane, seq, at_ms, agent, server, tool, decision, reason_code, response)
  SELECT NEW.tenant, NEW.row->>'decision_id', NEW.lane, NEW.row->>'seq', NEW.row->>'at_ms', NEW.row->>'agent',
    NEW.row->>'server', NEW.row->>'tool', NEW.row->>'decision', NEW.row->>'reason_code', NEW.row->>'response'
  WHERE NEW.row->>'kind' IS NULL
  ON CONFLICT (tenant, decision_id) DO NOTHING;

  INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body)
  VALUES (NEW.tenant, NEW.lane, NEW.row->>'seq', CASE NEW.row->>'kind' WHEN 'lane_checkpoint' THEN 'registry'
    WHEN 'registry_event' THEN 'registry' ELSE coalesce(NEW.row->>'kind', 'decision') END, NEW.row->>'decision_id',
    NEW.row->>'at_ms', NEW.row->>'receipt_hash', NEW.row->>'prev_receipt_hash', NEW.row->>'receipt')
  ON CONFLICT (tenant, lane, seq) DO NOTHING;

  INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
  SELECT NEW.tenant, NEW.row->>'decision_id', NEW.row->>'at_ms', NEW.lane, 'decision', NEW.row->>'agent',
    NEW.row->>'decision_id', json_patch(json_object('decision', NEW.row->>'decision', 'reason_code',
    NEW.row->>'reason_code', 'server', NEW.row->>'server', 'tool', NEW.row->>'tool'),
    json_object('taint', json(NEW.row->'taint')))
  WHERE NEW.row->>'kind' IS NULL
  ON CONFLICT (tenant, event_id) DO NOTHING;

  INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
  SELECT NEW.tenant, NEW.lane || '.' || (NEW.row->>'seq') || '.' || (NEW.row->>'event'), NEW.row->>'at_ms',
    NEW.lane, NEW.row->>'event', NEW.row->>'source', NEW.row->>'decision_id', NEW.row->'detail'
  WHERE NEW.row->>'kind' IN ('approval', 'outcome') AND NEW.row->>'event' IS NOT NULL
  ON CONFLICT (tenant, event_id) DO NOTHING;

  INSERT INTO approvals (tenant, approval_id, agent, status, created_at_ms, expires_at_ms, revision, record)
  SELECT NEW.tenant, NEW.row->>'$.approval.approval_id', NEW.row->>'agent', NEW.row->>'$.approval.status',
    NEW.row->>'$.approval.created_at_ms', NEW.row->>'$.approval.expires_at_ms', NEW.row->>'$.approval.revision',
    NEW.row->>'approval'
  WHERE NEW.row->>'$.approval.status' IS NOT NULL
  ON CONFLICT (tenant, approval_id) DO UPDATE SET status = excluded.status, revision = excluded.revision,
    record = excluded.record WHERE excluded.revision > revision;

  INSERT INTO approval_groups (tenant, group_name, created_at_ms, approval_id)
  SELECT NEW.tenant, value->>'group', NEW.row->>'$.approval.created_at_ms', NEW.row->>'$.approval.approval_id'
  FROM json_each(NEW.row, '$.approval.approver_groups')
  WHERE NEW.row->>'kind' IS NULL AND NEW.row->>'$.approval.status' IS NOT NULL
  ON CONFLICT DO NOTHING;

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
