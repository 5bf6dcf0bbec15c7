-- Who a revocation is good against. root_key: the public key of the root whose signed list revoked the warrant; then it
-- holds only for chains that begin with this root. Empty: for all, because an administrator revoked the warrant. It is a
-- part of the key, so that the list of one root takes no place from another root or an administrator. The key and not
-- the root's name, so that it still holds when the same key is registered again under another name. SQLite cannot change
-- a primary key, so the table is made anew. Revocations of earlier lists hold for all until they expire.
CREATE TABLE warrant_revocations_new (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  warrant_id    TEXT    NOT NULL CHECK (length(warrant_id) = 32),
  reason        TEXT    NOT NULL,
  revoked_by    TEXT    NOT NULL,
  revoked_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  root_key      TEXT    NOT NULL DEFAULT '' CHECK (length(root_key) IN (0, 64)),
  PRIMARY KEY (tenant, warrant_id, root_key)
) STRICT, WITHOUT ROWID;
INSERT INTO warrant_revocations_new (tenant, warrant_id, reason, revoked_by, revoked_at_ms, expires_at_ms)
  SELECT tenant, warrant_id, reason, revoked_by, revoked_at_ms, expires_at_ms FROM warrant_revocations;
DROP TABLE warrant_revocations;
ALTER TABLE warrant_revocations_new RENAME TO warrant_revocations;
