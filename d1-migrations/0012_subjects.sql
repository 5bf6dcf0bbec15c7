-- A subject is an administrator: one person with any number of credentials. Quorums count subjects.
-- If a group is protected, its members must approve each new member.

-- created_by: the administrator who created the record; `<tenant>/<name>` for an operator of another
-- tenant, `_bootstrap` for the bootstrap secret, `_unknown` for records from before this column.
-- first: the tenant's first administrator, made with the bootstrap secret or with the tenant.
-- A deleted record stays, so that its name cannot be used again.
CREATE TABLE subjects (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  subject       TEXT    NOT NULL,
  created_by    TEXT    NOT NULL,
  first         INTEGER NOT NULL DEFAULT 0 CHECK (first IN (0, 1)),
  created_at_ms INTEGER NOT NULL,
  deleted_at_ms INTEGER,
  PRIMARY KEY (tenant, subject)
) STRICT, WITHOUT ROWID;

INSERT INTO subjects (tenant, subject, created_by, first, created_at_ms)
SELECT tenant, subject, '_unknown',
  EXISTS (SELECT 1 FROM audit_events e WHERE e.tenant = known.tenant
    AND e.kind IN ('bootstrapped', 'tenant_created') AND e.detail->>'administrator' = known.subject),
  min(created_at_ms)
FROM (SELECT tenant, administrator AS subject, created_at_ms FROM credentials WHERE kind = 'administrator'
  UNION ALL
  SELECT m.tenant, m.member, g.created_at_ms FROM group_members m JOIN groups g USING (tenant, group_name)
    WHERE m.kind = 'administrator') known
GROUP BY tenant, subject;

-- Who issued the credential (as in subjects.created_by), and which credential they used. NULL: issued
-- before these columns existed.
ALTER TABLE credentials ADD COLUMN issued_by TEXT;
ALTER TABLE credentials ADD COLUMN issuer_key_id TEXT;
CREATE INDEX credentials_by_administrator ON credentials (tenant, administrator, key_id)
  WHERE administrator IS NOT NULL;

ALTER TABLE groups ADD COLUMN protected INTEGER NOT NULL DEFAULT 0 CHECK (protected IN (0, 1));

-- Writes the groups of an approval that no decision requested. flush_journal_row writes the others.
CREATE TRIGGER write_approval_groups AFTER INSERT ON approvals BEGIN
  INSERT INTO approval_groups (tenant, group_name, created_at_ms, approval_id)
  SELECT NEW.tenant, value->>'group', NEW.created_at_ms, NEW.approval_id
  FROM json_each(NEW.record, '$.approver_groups') WHERE true
  ON CONFLICT DO NOTHING;
END;
