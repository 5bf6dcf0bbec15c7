-- Nonces of signatures (docs/signing.md) that were used outside of calls: a signed request that changes
-- something is carried out once. Those of calls are kept by lanes.
CREATE TABLE signature_nonces (
  tenant TEXT NOT NULL,
  key_id TEXT NOT NULL,
  nonce TEXT NOT NULL,
  -- When the request was signed, by the signer's clock.
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, key_id, nonce)
) STRICT, WITHOUT ROWID;

CREATE INDEX signature_nonces_by_age ON signature_nonces (tenant, created_at_ms);
