-- The request rates of agents become limits of the kind `rate` that cover requests. The most specific limit holds: an agent's
-- own, or else the tenant's limit of each agent (`*`). Before, capacity and refill were looked up separately. So the limit of an
-- agent that had only one of the two gets the other from its tenant, or else the default of the worker's vars (600 and 100).
--
-- The ids are random, so that none is taken. The columns stay, empty: the version before reads and writes them until this one is
-- deployed. Until then, it takes these limits for limits of calls.
--
-- covers: `calls`: calls of tools. `requests`: all requests of an agent.
ALTER TABLE limits ADD COLUMN covers TEXT NOT NULL DEFAULT 'calls' CHECK (covers IN ('calls', 'requests'));
-- At most one for each agent, and one for each agent without its own.
CREATE UNIQUE INDEX limits_of_requests ON limits (tenant, subject) WHERE covers = 'requests';
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms, covers)
  SELECT tenant, 'request-rate-' || lower(hex(randomblob(8))), 'agent', '*',
      json_object('kind', 'rate', 'capacity', min(max(coalesce(rate_capacity, 600), 1), 1000000),
        'refill_per_s', min(max(coalesce(rate_refill_per_s, 100.0), 0.001), 1000000.0)), 'migration', epoch,
      created_at_ms, created_at_ms, 'requests'
    FROM tenants
    WHERE coalesce(rate_capacity, rate_refill_per_s) IS NOT NULL;
INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms, covers)
  SELECT agents.tenant, 'request-rate-' || lower(hex(randomblob(8))), 'agent', agents.agent,
      json_object('kind', 'rate',
        'capacity', min(max(coalesce(agents.rate_capacity, tenants.rate_capacity, 600), 1), 1000000),
        'refill_per_s',
          min(max(coalesce(agents.rate_refill_per_s, tenants.rate_refill_per_s, 100.0), 0.001), 1000000.0)),
      'migration', tenants.epoch, agents.created_at_ms, agents.created_at_ms, 'requests'
    FROM agents JOIN tenants USING (tenant)
    WHERE coalesce(agents.rate_capacity, agents.rate_refill_per_s) IS NOT NULL AND agents.deleted_at_ms IS NULL;
UPDATE agents SET rate_capacity = NULL, rate_refill_per_s = NULL WHERE coalesce(rate_capacity, rate_refill_per_s) IS NOT NULL;
UPDATE tenants SET rate_capacity = NULL, rate_refill_per_s = NULL WHERE coalesce(rate_capacity, rate_refill_per_s) IS NOT NULL;
