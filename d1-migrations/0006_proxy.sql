-- Servers that Gateward stands in front of.

-- Where requests for the server go, as JSON (worker/core/src/upstream.rs); NULL when Gateward does
-- not forward them.
ALTER TABLE servers ADD COLUMN upstream TEXT CHECK (json_type(upstream) = 'object');

-- The JSON Schema of the tool's arguments. NULL: none is known.
ALTER TABLE tools ADD COLUMN input_schema TEXT CHECK (json_type(input_schema) = 'object');
-- Of the tool's definition as the server listed it, over its RFC 8785 form, in lower-case hex. NULL:
-- the server has not listed it yet.
ALTER TABLE tools ADD COLUMN definition_sha256 TEXT CHECK (length(definition_sha256) = 64);
