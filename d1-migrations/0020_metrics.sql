-- Counters for metrics, and what lanes report about themselves.

-- A lane's flush adds to them (`COUNT_ROWS` in worker/core/src/sql/d1.rs). They are kept by tenant and not by
-- lane, so a scrape reads as many rows as it shows.
-- tenant: '' if it belongs to none, such as a request with a forged token.
-- labels: the values of labels with a closed list of values; of a histogram, the last is the upper bound of its
-- bucket in milliseconds, or null. names: the values of labels that are names. Both are JSON arrays, and say the
-- same only if they are the same text.
-- sum: what a histogram observed, in milliseconds.
CREATE TABLE metric_counters (
  tenant TEXT    NOT NULL,
  metric TEXT    NOT NULL,
  labels TEXT    NOT NULL CHECK (json_type(labels) = 'array'),
  names  TEXT    NOT NULL CHECK (json_type(names) = 'array'),
  count  INTEGER NOT NULL CHECK (count >= 0),
  sum    INTEGER NOT NULL DEFAULT 0 CHECK (sum >= 0),
  PRIMARY KEY (tenant, metric, labels, names)
) STRICT, WITHOUT ROWID;

-- report: a JSON object, with the lane's state when it flushed and the totals of what it counted without journal
-- rows. `flushed_at_ms` is its time.
ALTER TABLE lane_flushes ADD COLUMN report TEXT NOT NULL DEFAULT '{}';
