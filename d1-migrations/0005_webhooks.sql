-- Each tenant's webhook: the URL to which the steps of its approvals are sent.
--
-- salt: the signing secret is derived from it and the worker's MAC key. The secret is not stored.
-- revision: the tenant's epoch at the last change.
CREATE TABLE webhooks (
  tenant        TEXT    NOT NULL PRIMARY KEY REFERENCES tenants (tenant),
  url           TEXT    NOT NULL,
  salt          TEXT    NOT NULL CHECK (length(salt) = 32),
  revision      INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
