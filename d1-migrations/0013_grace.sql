-- How many seconds a tenant's lanes go on deciding while D1 does not confirm the registry: for reads,
-- for writes, and for tools of high or critical risk. NULL: the default in the worker's code.
ALTER TABLE tenants ADD COLUMN grace_read_s INTEGER CHECK (grace_read_s BETWEEN 0 AND 3600);
ALTER TABLE tenants ADD COLUMN grace_write_s INTEGER CHECK (grace_write_s BETWEEN 0 AND 3600);
ALTER TABLE tenants ADD COLUMN grace_high_risk_s INTEGER CHECK (grace_high_risk_s BETWEEN 0 AND 3600);
