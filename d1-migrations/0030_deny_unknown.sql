-- A fourth rule for tainted calls of a tool. SQLite cannot change a check, so the column is made anew.
ALTER TABLE tools ADD COLUMN tainted_new TEXT NOT NULL DEFAULT 'require_approval'
  CHECK (tainted_new IN ('allow', 'require_approval', 'deny_unknown', 'forbid'));
UPDATE tools SET tainted_new = tainted;
ALTER TABLE tools DROP COLUMN tainted;
ALTER TABLE tools RENAME COLUMN tainted_new TO tainted;
