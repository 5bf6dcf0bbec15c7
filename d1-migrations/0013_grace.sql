-- For how long, in seconds, a tenant's lanes go on deciding while D1 does not confirm the registry: for
-- calls that read, that write, and of tools of high or critical risk. NULL is the default of the
-- worker's code.
ALTER TABLE tenants ADD COLUMN grace_read_s INTEGER CHECK (grace_read_s BETWEEN 0 AND 3600);
ALTER TABLE tenants ADD COLUMN grace_write_s INTEGER CHECK (grace_write_s BETWEEN 0 AND 3600);
ALTER TABLE tenants ADD COLUMN grace_high_risk_s INTEGER CHECK (grace_high_risk_s BETWEEN 0 AND 3600);
