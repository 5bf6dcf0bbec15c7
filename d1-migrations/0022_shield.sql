-- How the shield treats what it finds in the texts of calls.

-- The mode of each category of findings: a JSON object from categories to modes. A tool's mode comes before its
-- server's, and that before the tenant's. NULL, and a category that is left out: as the next of them says, and at last
-- the default in the worker's code.
ALTER TABLE tenants ADD COLUMN shield TEXT CHECK (json_type(shield) = 'object');
ALTER TABLE servers ADD COLUMN shield TEXT CHECK (json_type(shield) = 'object');
ALTER TABLE tools ADD COLUMN shield TEXT CHECK (json_type(shield) = 'object');

-- Whether the shield also reads what the server returns.
ALTER TABLE servers ADD COLUMN inspects_results INTEGER NOT NULL DEFAULT 0 CHECK (inspects_results IN (0, 1));
