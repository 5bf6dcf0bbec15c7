-- Taint: which credentials separate it by run, how long it lasts, and what a tainted call needs.

-- Whether the credential belongs to a harness: the program that drives agents and assigns runs.
ALTER TABLE credentials ADD COLUMN assigns_runs INTEGER NOT NULL DEFAULT 0 CHECK (assigns_runs IN (0, 1));
-- What a tainted call of the tool needs.
ALTER TABLE tools ADD COLUMN tainted TEXT NOT NULL DEFAULT 'require_approval'
  CHECK (tainted IN ('allow', 'require_approval', 'forbid'));
-- Seconds that taint lasts after the last text. NULL: a day.
ALTER TABLE tenants ADD COLUMN taint_s INTEGER CHECK (taint_s BETWEEN 60 AND 2592000);
-- SHA-256 of the instructions that were pinned at registration, in lower-case hex.
ALTER TABLE servers ADD COLUMN instructions_sha256 TEXT CHECK (length(instructions_sha256) = 64);
