-- Whether a tool's calls send text out, or fetch an address from the arguments. For policies such a
-- call is a write, even if the tool does not mutate. Tools that exist before this migration have 0.
ALTER TABLE tools ADD COLUMN egress INTEGER NOT NULL DEFAULT 0 CHECK (egress IN (0, 1));
