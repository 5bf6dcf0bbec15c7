-- Capability warrants: whose signatures a tenant accepts, and which warrants are revoked.

-- public_key: an Ed25519 key, 64 lower-case hex digits. allowed_servers: NULL restricts nothing.
CREATE TABLE warrant_roots (
  tenant          TEXT    NOT NULL REFERENCES tenants (tenant),
  root_id         TEXT    NOT NULL,
  public_key      TEXT    NOT NULL CHECK (length(public_key) = 64),
  description     TEXT,
  allowed_servers TEXT             CHECK (json_type(allowed_servers) = 'array'),
  status          TEXT    NOT NULL CHECK (status IN ('active', 'disabled')),
  created_by      TEXT    NOT NULL,
  -- Of the newest signed list of revocations.
  list_version    INTEGER,
  list_sha256     TEXT,
  revision        INTEGER NOT NULL,
  created_at_ms   INTEGER NOT NULL,
  updated_at_ms   INTEGER NOT NULL,
  PRIMARY KEY (tenant, root_id),
  UNIQUE (tenant, public_key)
) STRICT, WITHOUT ROWID;

-- warrant_id: 32 lower-case hex digits. A revocation cannot be lifted. It expires when no warrant that was valid at
-- the time of the revocation can still be valid.
CREATE TABLE warrant_revocations (
  tenant        TEXT    NOT NULL REFERENCES tenants (tenant),
  warrant_id    TEXT    NOT NULL CHECK (length(warrant_id) = 32),
  reason        TEXT    NOT NULL,
  revoked_by    TEXT    NOT NULL,
  revoked_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, warrant_id)
) STRICT, WITHOUT ROWID;

-- NULL: the default in the worker's code.
ALTER TABLE tenants ADD COLUMN warrant_max_links INTEGER CHECK (warrant_max_links BETWEEN 1 AND 64);
ALTER TABLE tenants ADD COLUMN warrant_proof_windows INTEGER CHECK (warrant_proof_windows BETWEEN 2 AND 5);
ALTER TABLE tenants ADD COLUMN warrant_reads_once INTEGER CHECK (warrant_reads_once IN (0, 1));
ALTER TABLE tenants ADD COLUMN warrant_required INTEGER CHECK (warrant_required IN (0, 1));
-- The highest source_trust of calls with a warrant and no credential. NULL: such calls are refused.
ALTER TABLE tenants ADD COLUMN warrant_alone_trust TEXT CHECK (warrant_alone_trust IN (
  'trusted_internal_signed', 'trusted_internal_unsigned', 'semi_trusted_customer', 'untrusted_external',
  'malicious_suspected', 'unknown'));

-- The agent's own key, to which warrants can be delegated.
ALTER TABLE agents ADD COLUMN public_key TEXT CHECK (length(public_key) = 64);
ALTER TABLE agents ADD COLUMN warrant_required INTEGER NOT NULL DEFAULT 0 CHECK (warrant_required IN (0, 1));

-- A chain has one agent, and so one lane, which remembers the proofs.
CREATE UNIQUE INDEX agents_public_key ON agents (tenant, public_key)
  WHERE public_key IS NOT NULL AND deleted_at_ms IS NULL;

-- min_clearance: the least clearance that a warrant must have for a call of the tool. NULL: none is needed.
ALTER TABLE tools ADD COLUMN warrant_required INTEGER NOT NULL DEFAULT 0 CHECK (warrant_required IN (0, 1));
ALTER TABLE tools ADD COLUMN min_clearance INTEGER CHECK (min_clearance BETWEEN 0 AND 255);
