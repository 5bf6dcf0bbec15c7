-- Where a tenant is told what becomes of its approvals.
--
-- salt: with the worker's MAC key it gives the secret that signs; a secret is stored nowhere.
-- revision: the tenant's epoch at the last change.
CREATE TABLE webhooks (
  tenant        TEXT    NOT NULL PRIMARY KEY REFERENCES tenants (tenant),
  url           TEXT    NOT NULL,
  salt          TEXT    NOT NULL CHECK (length(salt) = 32),
  revision      INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
