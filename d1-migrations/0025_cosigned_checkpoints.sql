-- The newest checkpoint of a lane that witnesses cosigned, with their lines, until they answered about the one in `note`.
-- Readers get it until then. Empty if there is none.
ALTER TABLE log_checkpoints ADD COLUMN cosigned TEXT NOT NULL DEFAULT '';
