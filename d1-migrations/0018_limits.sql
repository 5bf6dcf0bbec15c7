-- Limits as records of their own.

-- subject: an agent's name, or a credential's key id. `*`: each agent or credential, on its own.
-- rule: a JSON object with the limit's kind and the fields of that kind.
CREATE TABLE limits (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  limit_id      TEXT    NOT NULL,
  subject_kind  TEXT    NOT NULL CHECK (subject_kind IN ('agent', 'credential')),
  subject       TEXT    NOT NULL,
  rule          TEXT    NOT NULL CHECK (json_type(rule) = 'object'),
  created_by    TEXT    NOT NULL,
  revision      INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, limit_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX limits_by_subject ON limits (tenant, subject_kind, subject, limit_id);

-- The first credential of those that were rotated into this one, whose limits all of them have. NULL: it is the
-- first.
ALTER TABLE credentials ADD COLUMN first_key_id TEXT;

-- What a call of the tool takes of a budget, as a decimal number. NULL: 1.
ALTER TABLE tools ADD COLUMN cost TEXT;
