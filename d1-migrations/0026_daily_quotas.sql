-- Daily quotas of calls become limits of the kind `quota`. A tenant's own quota becomes a limit of each agent (`*`). If some
-- of its agents have a quota of their own, each of its agents gets a limit instead, so that no agent has two. What an agent
-- used on the day of this migration is not counted.
--
-- The ids are random, so that none is taken. The columns stay, empty: the version before reads them until this one is
-- deployed.
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
  SELECT tenant, 'daily-calls-' || lower(hex(randomblob(8))), 'agent', '*',
      json_object('kind', 'quota', 'max', CAST(quota_per_day AS TEXT), 'window', 'day'), 'migration', epoch,
      created_at_ms, created_at_ms
    FROM tenants
    WHERE quota_per_day IS NOT NULL AND tenant NOT IN (
      SELECT tenant FROM agents WHERE quota_per_day IS NOT NULL AND deleted_at_ms IS NULL);
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
  SELECT agents.tenant, 'daily-calls-' || lower(hex(randomblob(8))), 'agent', agents.agent,
      json_object('kind', 'quota', 'max', CAST(coalesce(agents.quota_per_day, tenants.quota_per_day) AS TEXT),
        'window', 'day'), 'migration', tenants.epoch, agents.created_at_ms, agents.created_at_ms
    FROM agents JOIN tenants USING (tenant)
    WHERE coalesce(agents.quota_per_day, tenants.quota_per_day) IS NOT NULL AND agents.deleted_at_ms IS NULL
      AND agents.tenant IN (
        SELECT tenant FROM agents WHERE quota_per_day IS NOT NULL AND deleted_at_ms IS NULL);
UPDATE agents SET quota_per_day = NULL WHERE quota_per_day IS NOT NULL;
UPDATE tenants SET quota_per_day = NULL WHERE quota_per_day IS NOT NULL;
