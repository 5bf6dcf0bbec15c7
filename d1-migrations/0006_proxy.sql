-- Servers to which Gateward forwards calls.

-- The server's upstream, as JSON (worker/core/src/upstream.rs). NULL: Gateward forwards no requests to
-- this server.
ALTER TABLE servers ADD COLUMN upstream TEXT CHECK (json_type(upstream) = 'object');

-- The JSON Schema of the tool's arguments. NULL: not known.
ALTER TABLE tools ADD COLUMN input_schema TEXT CHECK (json_type(input_schema) = 'object');
-- Lower-case hex of SHA-256 over the RFC 8785 form of the tool's definition as the server listed it.
-- NULL: the server has not listed the tool yet.
ALTER TABLE tools ADD COLUMN definition_sha256 TEXT CHECK (length(definition_sha256) = 64);
