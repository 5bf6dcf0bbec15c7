//! What a call, a listing or a reader needs of the registry.

/// The limits of a subject's calls, and those that each subject of its kind has: at most twice
/// [`crate::limit::MAX_LIMITS_OF_SUBJECT`].
macro_rules! limits_of {
    ($kind:literal, $subject:literal) => {
        concat!(
            "json((SELECT json_group_array(json_object('limit_id', limit_id, 'created_at_ms', created_at_ms, 'rule', json(rule))) \
               FROM (SELECT limit_id, created_at_ms, rule FROM limits INDEXED BY limits_by_subject WHERE tenant = ?1 AND subject_kind = '",
            $kind,
            "' AND subject IN (",
            $subject,
            ", '*') AND covers = 'calls' ORDER BY subject, limit_id)))"
        )
    };
}

/// The limit of an agent's requests: its own, or else that of each agent. `*` sorts before every name.
macro_rules! request_rate {
    () => {
        "json((SELECT json_object('limit_id', limit_id, 'rule', json(rule)) \
           FROM limits INDEXED BY limits_of_requests WHERE tenant = ?1 AND subject_kind = 'agent' \
             AND subject IN (?2, '*') AND covers = 'requests' ORDER BY subject DESC LIMIT 1))"
    };
}

/// The groups of an agent that were not deleted, sorted.
macro_rules! groups_of_agent {
    () => {
        "json((SELECT json_group_array(group_name) FROM (SELECT m.group_name FROM group_members m \
          JOIN groups g ON g.tenant = m.tenant AND g.group_name = m.group_name \
          WHERE m.tenant = ?1 AND m.kind = 'agent' AND m.member = ?2 \
            AND g.deleted_at_ms IS NULL ORDER BY m.group_name)))"
    };
}

/// The limits that a tenant's lanes share.
macro_rules! shared_limits {
    () => {
        "json((SELECT json_group_array(json_object('subject_kind', subject_kind, 'subject', subject, \
             'limit', json_object('limit_id', limit_id, 'created_at_ms', created_at_ms, 'revision', revision, 'rule', json(rule)))) \
           FROM (SELECT * FROM limits INDEXED BY limits_by_subject WHERE tenant = ?1 \
             AND subject_kind IN ('tenant', 'group', 'tool', 'server', 'user') \
             ORDER BY subject_kind, subject, limit_id)))"
    };
}

/// Everything that one call needs, in one round trip and at one epoch, each as JSON text or null. Tenant, agent, key
/// id, server, tool, whether to read the tenant's lists (0 or 1), now. Expired bans and revocations, and disabled
/// roots, are left out. One entry more than the bound in [`crate::bounds`] is read of each list, so that a list that
/// is too long is noticed.
///
/// An agent's status is computed from administrators' marks. The column `status` also has a copy of
/// the lane's own quarantine, which could be older than its end.
pub const LOAD_RECORDS: &str = concat!(
    "SELECT (SELECT json_object('status', status, 'epoch', epoch, ",
    settings!(member, flag_member, json_member),
    ", 'lanes', lanes, 'rows_per_day', rows_per_day, 'bytes_per_day', bytes_per_day, \
       'destinations', json(destinations), 'shared_limits', ",
    shared_limits!(),
    ") FROM tenants WHERE tenant = ?1) AS tenant, \
    (SELECT json_object('lane', lane, 'status', \
       CASE WHEN revoked THEN 'revoked' WHEN quarantined THEN 'quarantined' \
         WHEN frozen THEN 'frozen' ELSE 'active' END, \
       'environment', environment, 'risk_tier', risk_tier, 'groups', ",
    groups_of_agent!(),
    ", \
       'allowed_tools', json(allowed_tools), \
       'public_key', public_key, 'warrant_required', warrant_required, 'limits', ",
    limits_of!("agent", "?2"),
    ", 'request_rate', ",
    request_rate!(),
    ") \
       FROM agents WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL) AS agent, \
    (SELECT json_object('agent', agent, 'secret_sha256', secret_sha256, \
       'scopes', json(scopes), 'max_source_trust', max_source_trust, 'status', status, \
       'expires_at_ms', expires_at_ms, 'allowed_servers', json(allowed_servers), \
       'allowed_tools', json(allowed_tools), 'allowed_networks', json(allowed_networks), \
       'signed', json(iif(signed, 'true', 'false')), \
       'assigns_runs', json(iif(assigns_runs, 'true', 'false')), 'limits', ",
    limits_of!("credential", "coalesce(first_key_id, key_id)"),
    ", 'first_key_id', first_key_id) \
       FROM credentials WHERE tenant = ?1 AND key_id = ?3) AS credential, \
    (SELECT json_object('kind', kind, 'trust', trust, 'status', status, \
       'upstream', json(upstream), 'instructions_sha256', instructions_sha256, 'shield', json(shield), \
       'inspects_results', inspects_results) FROM servers WHERE tenant = ?1 AND server = ?4 AND deleted_at_ms IS NULL) AS server, \
    (SELECT json_object('status', status, 'mutates', mutates, 'egress', egress, 'risk', risk, 'canary', canary, \
       'tainted', tainted, 'approval_ttl_s', approval_ttl_s, 'input_schema', input_schema, \
       'argument_roles', json(argument_roles), 'reach', reach, 'result_trust', json(result_trust), 'cost', cost, \
       'warrant_required', warrant_required, 'min_clearance', min_clearance, 'shield', json(shield)) \
       FROM tools WHERE tenant = ?1 AND server = ?4 AND tool = ?5) AS tool, \
    iif(?6, (SELECT json_group_array(json_object('kind', kind, 'subject', subject, \
       'expires_at_ms', expires_at_ms)) FROM (SELECT kind, subject, expires_at_ms FROM bans \
         WHERE tenant = ?1 AND (expires_at_ms IS NULL OR expires_at_ms > ?7) \
         LIMIT 1001)), NULL) AS bans, \
    iif(?6, json_object('roots', json((SELECT json_group_array(json_object('id', root_id, \
         'public_key', public_key, 'allowed_servers', json(allowed_servers))) \
       FROM (SELECT root_id, public_key, allowed_servers FROM warrant_roots \
         WHERE tenant = ?1 AND status = 'active' LIMIT 65))), \
       'revoked', json((SELECT json_group_array(json_array(warrant_id, nullif(root_key, ''))) \
         FROM (SELECT warrant_id, root_key FROM warrant_revocations \
           WHERE tenant = ?1 AND expires_at_ms > ?7 LIMIT 4001)))), \
       NULL) AS warrants"
);

/// Limits of an agent and of a credential, the limit of the agent's requests or NULL, the agent's lane and groups, and
/// limits that lanes share. Tenant, agent, key id or NULL.
pub const LIMITS_OF: &str = concat!(
    "SELECT lane, ",
    limits_of!("agent", "?2"),
    " AS of_agent, ",
    request_rate!(),
    " AS of_requests, coalesce((SELECT ",
    limits_of!("credential", "coalesce(first_key_id, key_id)"),
    " FROM credentials WHERE tenant = ?1 AND key_id = ?3), '[]') AS of_credential, \
       (SELECT coalesce(first_key_id, key_id) FROM credentials \
         WHERE tenant = ?1 AND key_id = ?3) AS first_key_id, ",
    shared_limits!(),
    " AS shared, ",
    groups_of_agent!(),
    " AS groups FROM agents WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL \
       AND (?3 IS NULL OR EXISTS (SELECT 1 FROM credentials \
         WHERE tenant = ?1 AND key_id = ?3 AND agent = ?2))"
);

/// The limits that a tenant's lanes share. Tenant.
pub const SHARED_LIMITS: &str =
    concat!("SELECT ", shared_limits!(), " AS shared FROM tenants WHERE tenant = ?1");

/// All tools of a server for a listing, with the epoch. Tenant, server; one tool more than
/// [`crate::bounds::MAX_SERVER_TOOLS`], so that too many are noticed.
pub const LOAD_LISTING: &str = "SELECT t.epoch, (SELECT json_group_array(json_object('tool', \
       tool, 'status', status, 'mutates', mutates, 'egress', egress, 'canary', canary, \
       'definition_sha256', definition_sha256)) \
     FROM (SELECT * FROM tools WHERE tenant = ?1 AND server = ?2 LIMIT 5001)) AS tools \
     FROM tenants t WHERE t.tenant = ?1";

/// Tenant.
pub const EPOCH: &str = "SELECT epoch FROM tenants WHERE tenant = ?1";

/// The credential of a reader or administrator: tenant, key id. A deleted agent has no status. An
/// administrator's groups are as of the epoch, as is everything else.
pub const LOAD_READER: &str = "SELECT c.kind, c.agent, c.administrator, c.secret_sha256, \
       c.scopes, c.status, c.expires_at_ms, c.allowed_networks, c.signed, \
       t.status AS tenant_status, t.lanes, t.epoch, a.status AS agent_status, \
       (SELECT json_group_array(m.group_name) FROM group_members m \
          JOIN groups g ON g.tenant = m.tenant AND g.group_name = m.group_name \
          WHERE m.tenant = c.tenant AND m.kind = 'administrator' \
            AND m.member = c.administrator AND g.deleted_at_ms IS NULL) AS groups, \
       c.issued_by \
     FROM credentials c JOIN tenants t ON t.tenant = c.tenant \
     LEFT JOIN agents a ON a.tenant = c.tenant AND a.agent = c.agent \
       AND a.deleted_at_ms IS NULL \
     WHERE c.tenant = ?1 AND c.key_id = ?2";

/// Uses the nonce of a signature: tenant, key id, nonce, when it was signed. No row: it was used
/// before.
pub const USE_SIGNATURE_NONCE: &str = "INSERT INTO signature_nonces \
       (tenant, key_id, nonce, created_at_ms) VALUES (?1, ?2, ?3, ?4) \
     ON CONFLICT DO NOTHING RETURNING nonce";

/// Deletes a tenant's oldest nonces that were signed before a time, up to a limit.
pub const FORGET_SIGNATURE_NONCES: &str = "DELETE FROM signature_nonces \
     WHERE (tenant, key_id, nonce) IN (SELECT tenant, key_id, nonce \
       FROM signature_nonces INDEXED BY signature_nonces_by_age \
       WHERE tenant = ?1 AND created_at_ms < ?2 ORDER BY created_at_ms LIMIT ?3)";

/// Answers when D1 does.
pub const PING: &str = "SELECT 1 AS one FROM tenants LIMIT 1";
