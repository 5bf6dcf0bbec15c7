-- A lane's flush inserts journal rows into this view, and the trigger writes each row to the tables.
-- One batch is one statement, so the batch is sent and parsed once. Flushing a row again is a no-op.
-- lane: the lane's number; row: a journal row, a JSON object.
CREATE VIEW journal_rows (tenant, lane, row) AS SELECT '', 0, '{}' WHERE false;

CREATE TRIGGER flush_journal_row INSTEAD OF INSERT ON journal_rows BEGIN
  INSERT INTO decisions (tenant, decision_id, lane, seq, at_ms, agent, server, tool, decision, reason_code, response)
  VALUES (NEW.tenant, NEW.row->>'decision_id', NEW.lane, NEW.row->>'seq', NEW.row->>'at_ms', NEW.row->>'agent',
    NEW.row->>'server', NEW.row->>'tool', NEW.row->>'decision', NEW.row->>'reason_code', NEW.row->>'response')
  ON CONFLICT (tenant, decision_id) DO NOTHING;

  INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body)
  VALUES (NEW.tenant, NEW.lane, NEW.row->>'seq', 'decision', NEW.row->>'decision_id', NEW.row->>'at_ms',
    NEW.row->>'receipt_hash', NEW.row->>'prev_receipt_hash', NEW.row->>'receipt')
  ON CONFLICT (tenant, lane, seq) DO NOTHING;

  INSERT INTO audit_events (tenant, event_id, at_ms, lane, kind, source, decision_id, detail)
  VALUES (NEW.tenant, NEW.row->>'decision_id', NEW.row->>'at_ms', NEW.lane, 'decision', NEW.row->>'agent',
    NEW.row->>'decision_id', json_object('decision', NEW.row->>'decision', 'reason_code', NEW.row->>'reason_code',
    'server', NEW.row->>'server', 'tool', NEW.row->>'tool'))
  ON CONFLICT (tenant, event_id) DO NOTHING;

  INSERT INTO approvals (tenant, approval_id, decision_id, agent, status, approver_group, quorum, action_hash,
    created_at_ms, expires_at_ms)
  SELECT NEW.tenant, NEW.row->>'$.approval.approval_id', NEW.row->>'decision_id', NEW.row->>'agent', 'pending',
    NEW.row->>'$.approval.approver_group', NEW.row->>'$.approval.quorum', NEW.row->>'$.approval.action_hash',
    NEW.row->>'at_ms', NEW.row->>'$.approval.expires_at_ms'
  WHERE NEW.row->>'$.approval.approval_id' IS NOT NULL
  ON CONFLICT (tenant, approval_id) DO NOTHING;

  -- A quarantine also stops the agent in the registry. The epoch is updated first, while the agent's
  -- old status still shows that something changes.
  UPDATE tenants SET epoch = epoch + 1
  WHERE NEW.row->>'decision' = 'quarantine' AND tenant = NEW.tenant AND EXISTS (
    SELECT 1 FROM agents WHERE tenant = NEW.tenant AND agent = NEW.row->>'agent' AND status IN ('active', 'frozen'));
  UPDATE agents SET status = 'quarantined'
  WHERE NEW.row->>'decision' = 'quarantine' AND tenant = NEW.tenant AND agent = NEW.row->>'agent'
    AND status IN ('active', 'frozen');
END;
