-- The version of the newest list of revocations of each root that was deleted. If the same key is registered again, its
-- root continues with this version, so that an older list is still refused.
CREATE TABLE warrant_lists (
  tenant       TEXT    NOT NULL REFERENCES tenants (tenant),
  public_key   TEXT    NOT NULL CHECK (length(public_key) = 64),
  list_version INTEGER NOT NULL,
  list_sha256  TEXT    NOT NULL,
  PRIMARY KEY (tenant, public_key)
) STRICT, WITHOUT ROWID;
