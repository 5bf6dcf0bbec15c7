-- What provenance of values needs to know of tools and tenants.

-- What the tool's arguments are for: a JSON object from JSON Pointers to roles. NULL: every argument is a
-- sink.
ALTER TABLE tools ADD COLUMN argument_roles TEXT CHECK (json_type(argument_roles) = 'object');
-- Whom a call reaches.
ALTER TABLE tools ADD COLUMN reach TEXT NOT NULL DEFAULT 'outside'
  CHECK (reach IN ('nobody', 'tenant', 'outside', 'by_sinks'));
-- Which parts of the tool's results are trusted: a JSON object from JSON Pointers to levels. NULL: the
-- results have the trust of the server.
ALTER TABLE tools ADD COLUMN result_trust TEXT CHECK (json_type(result_trust) = 'object');

-- Destinations that are the tenant's own: a JSON object with the lists `accounts`, `domains` and `hosts`.
-- NULL: none.
ALTER TABLE tenants ADD COLUMN destinations TEXT CHECK (json_type(destinations) = 'object');
