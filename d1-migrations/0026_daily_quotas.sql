-- Daily quotas of calls become limits of the kind `quota`. A tenant's own quota becomes a limit of each agent (`*`). If some
-- of its agents have a quota of their own, each of its agents gets a limit instead, so that no agent has two. What an agent
-- used on the day of this migration is not counted.
--
-- The columns stay, empty: the version before reads them until this one is deployed.
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
  SELECT tenant, 'daily-calls', 'agent', '*',
      json_object('kind', 'quota', 'max', CAST(quota_per_day AS TEXT), 'window', 'day'), 'migration', epoch,
      created_at_ms, created_at_ms
    FROM tenants
    WHERE quota_per_day IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM agents WHERE agents.tenant = tenants.tenant AND agents.quota_per_day IS NOT NULL);
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
  SELECT agents.tenant, 'daily-calls-' || row_number() OVER (PARTITION BY agents.tenant ORDER BY agents.agent), 'agent',
      agents.agent,
      json_object('kind', 'quota', 'max', CAST(coalesce(agents.quota_per_day, tenants.quota_per_day) AS TEXT),
        'window', 'day'), 'migration', tenants.epoch, agents.created_at_ms, agents.created_at_ms
    FROM agents JOIN tenants USING (tenant)
    WHERE coalesce(agents.quota_per_day, tenants.quota_per_day) IS NOT NULL AND agents.deleted_at_ms IS NULL
      AND EXISTS (
        SELECT 1 FROM agents AS own WHERE own.tenant = agents.tenant AND own.quota_per_day IS NOT NULL);
UPDATE agents SET quota_per_day = NULL WHERE quota_per_day IS NOT NULL;
UPDATE tenants SET quota_per_day = NULL WHERE quota_per_day IS NOT NULL;
