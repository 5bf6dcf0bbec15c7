-- Definitions of tools as their servers list them, in RFC 8785 form, of at most 64 KiB each
-- (MAX_DEFINITION_BYTES in worker/core/src/admin/manifest.rs): an administrator who approves a tool
-- is shown what changed since the last approval.

-- The definition whose hash is definition_sha256. NULL: the server has listed none, or one that
-- cannot be used.
ALTER TABLE tools ADD COLUMN definition TEXT CHECK (json_type(definition) = 'object');
-- The definition that was approved last.
ALTER TABLE tools ADD COLUMN approved_definition TEXT CHECK (json_type(approved_definition) = 'object');

-- Definitions that were listed before were not kept. Without its hash, a tool that waits for approval
-- is written down anew by the next listing, with its definition.
UPDATE tools SET definition_sha256 = NULL WHERE NOT approved;
