-- Used nonces of signatures (docs/signing.md), so that a signed request that changes something is
-- carried out only once. Lanes keep the nonces of calls.
CREATE TABLE signature_nonces (
  tenant TEXT NOT NULL,
  key_id TEXT NOT NULL,
  nonce TEXT NOT NULL,
  -- When the request was signed, by the signer's clock.
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, key_id, nonce)
) STRICT, WITHOUT ROWID;

CREATE INDEX signature_nonces_by_age ON signature_nonces (tenant, created_at_ms);
