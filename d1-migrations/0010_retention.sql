-- How many records of a tenant are kept, and for how long.

-- rows_per_day, bytes_per_day: what all lanes of a tenant together may write in a UTC day.
-- retention_days: how long decisions, receipts and audit events are kept. NULL: the default in the
-- worker's code.
ALTER TABLE tenants ADD COLUMN rows_per_day INTEGER CHECK (rows_per_day > 0);
ALTER TABLE tenants ADD COLUMN bytes_per_day INTEGER CHECK (bytes_per_day > 0);
ALTER TABLE tenants ADD COLUMN retention_days INTEGER CHECK (retention_days > 0);

-- The last receipt of each lane that was pruned. The next receipt has this hash as its prev_hash. The
-- lane has the original; this is a copy for readers who have only the tables.
CREATE TABLE receipt_anchors (
  tenant       TEXT    NOT NULL,
  lane         INTEGER NOT NULL,
  seq          INTEGER NOT NULL,
  receipt_hash TEXT    NOT NULL CHECK (length(receipt_hash) = 64),
  PRIMARY KEY (tenant, lane)
) STRICT, WITHOUT ROWID;
