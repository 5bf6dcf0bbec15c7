-- How much is kept of a tenant, and for how long.

-- rows_per_day, bytes_per_day: what a tenant's lanes may write down in a UTC day, all of them
-- together. retention_days: how long decisions, receipts and audit events are kept. NULL is the
-- default of the worker's code.
ALTER TABLE tenants ADD COLUMN rows_per_day INTEGER CHECK (rows_per_day > 0);
ALTER TABLE tenants ADD COLUMN bytes_per_day INTEGER CHECK (bytes_per_day > 0);
ALTER TABLE tenants ADD COLUMN retention_days INTEGER CHECK (retention_days > 0);

-- The last receipt of each lane that was pruned. The receipt after it has this hash as its previous
-- one. The lane holds the same; this is a copy for whoever has the tables alone.
CREATE TABLE receipt_anchors (
  tenant       TEXT    NOT NULL,
  lane         INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  receipt_hash TEXT    NOT NULL CHECK (length(receipt_hash) = 64),
  PRIMARY KEY (tenant, lane)
) STRICT, WITHOUT ROWID;
