-- Definitions of tools as their servers list them, in RFC 8785 form, with a bounded size
-- (MAX_DEFINITION_BYTES in worker/core). An administrator who approves a tool sees what changed since
-- the last approval.

-- The definition whose hash is definition_sha256. NULL: the server has not listed one, or it cannot be
-- used.
ALTER TABLE tools ADD COLUMN definition TEXT CHECK (json_type(definition) = 'object');
-- The definition that was approved last.
ALTER TABLE tools ADD COLUMN approved_definition TEXT CHECK (json_type(approved_definition) = 'object');

-- Earlier definitions were not kept. This clears the hash of each tool that waits for approval, so that
-- the next listing writes the tool again, with its definition.
UPDATE tools SET definition_sha256 = NULL WHERE NOT approved;
