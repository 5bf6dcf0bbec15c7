-- When a series was last counted, so that a name that nothing counts any more can make room for another one. SQLite adds no
-- column with a computed default, so the table is made anew. Series that an old worker adds get the day by the default too.
--
-- counted_day: days since 1970 by D1's clock. Existing series get the day of this migration.
CREATE TABLE metric_counters_new (
  tenant      TEXT    NOT NULL,
  metric      TEXT    NOT NULL,
  labels      TEXT    NOT NULL CHECK (json_type(labels) = 'array'),
  names       TEXT    NOT NULL CHECK (json_type(names) = 'array'),
  count       INTEGER NOT NULL CHECK (count >= 0),
  sum         INTEGER NOT NULL DEFAULT 0 CHECK (sum >= 0),
  counted_day INTEGER NOT NULL DEFAULT (unixepoch() / 86400),
  PRIMARY KEY (tenant, metric, labels, names)
) STRICT, WITHOUT ROWID;
INSERT INTO metric_counters_new (tenant, metric, labels, names, count, sum)
  SELECT tenant, metric, labels, names, count, sum FROM metric_counters;
DROP TABLE metric_counters;
ALTER TABLE metric_counters_new RENAME TO metric_counters;
