-- Whether a tool's calls send text out or fetch an address that the caller gives. For policies such a
-- call is a write, also if the tool does not mutate. Nobody has said so of tools that are registered by
-- now.
ALTER TABLE tools ADD COLUMN egress INTEGER NOT NULL DEFAULT 0 CHECK (egress IN (0, 1));
