-- Limits of a tenant, groups, tools, servers and users. SQLite cannot change a check, so the table is made anew.
CREATE TABLE limits_new (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  limit_id      TEXT    NOT NULL,
  subject_kind  TEXT    NOT NULL
    CHECK (subject_kind IN ('agent', 'credential', 'tenant', 'group', 'tool', 'server', 'user')),
  subject       TEXT    NOT NULL,
  rule          TEXT    NOT NULL CHECK (json_type(rule) = 'object'),
  created_by    TEXT    NOT NULL,
  revision      INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, limit_id)
) STRICT, WITHOUT ROWID;
INSERT INTO limits_new SELECT * FROM limits;
DROP TABLE limits;
ALTER TABLE limits_new RENAME TO limits;
CREATE INDEX limits_by_subject ON limits (tenant, subject_kind, subject, limit_id);
