//! The columns of each kind of record, as the JSON text that its `…Row` struct reads.

/// A condition as a JSON boolean.
macro_rules! flag {
    ($condition:literal) => {
        concat!("json(iif(", $condition, ", 'true', 'false'))")
    };
}

macro_rules! tenant_row {
    () => {
        concat!(
            "json_object('tenant', tenant, 'status', status, 'lanes', lanes, ",
            settings!(member, flag_member, json_member),
            ", 'rows_per_day', rows_per_day, 'bytes_per_day', bytes_per_day, \
               'retention_days', retention_days, 'destinations', json(destinations), \
               'revision', revision, 'created_at_ms', created_at_ms, 'updated_at_ms', updated_at_ms)"
        )
    };
}

macro_rules! agent_row {
    () => {
        concat!(
            "json_object('agent', agent, 'lane', lane, 'environment', environment, \
               'risk_tier', risk_tier, 'allowed_tools', json(allowed_tools), \
               'public_key', public_key, 'warrant_required', ",
            flag!("warrant_required"),
            ", 'frozen', ",
            flag!("frozen"),
            ", 'quarantined', ",
            flag!("quarantined"),
            ", 'revoked', ",
            flag!("revoked"),
            ", 'lane_quarantined', ",
            flag!("lane_quarantined"),
            ", 'risk_steps', risk_steps, 'deleted', ",
            flag!("deleted_at_ms IS NOT NULL"),
            ", 'revision', revision, 'created_at_ms', created_at_ms, \
               'updated_at_ms', updated_at_ms, 'groups', \
               json((SELECT json_group_array(group_name) FROM (SELECT group_name FROM group_members m \
                  WHERE m.tenant = agents.tenant AND m.kind = 'agent' AND m.member = agents.agent \
                  ORDER BY group_name))))"
        )
    };
}

macro_rules! credential_row {
    () => {
        concat!(
            "json_object('key_id', key_id, 'kind', kind, 'agent', agent, \
               'administrator', administrator, 'scopes', json(scopes), 'revoked', ",
            flag!("status = 'revoked'"),
            ", 'expires_at_ms', expires_at_ms, 'max_source_trust', max_source_trust, \
               'allowed_servers', json(allowed_servers), 'allowed_tools', json(allowed_tools), \
               'allowed_networks', json(allowed_networks), 'signed', ",
            flag!("signed"),
            ", 'assigns_runs', ",
            flag!("assigns_runs"),
            ", 'issued_by', issued_by, 'issuer_key_id', issuer_key_id, 'first_key_id', first_key_id, 'revision', revision, \
               'created_at_ms', created_at_ms)"
        )
    };
}

macro_rules! server_row {
    () => {
        concat!(
            "json_object('server', server, 'kind', kind, 'trust', trust, 'approved', ",
            flag!("approved"),
            ", 'disabled', ",
            flag!("disabled"),
            ", 'quarantined', ",
            flag!("quarantined"),
            ", 'manifest_sha256', manifest_sha256, 'instructions_sha256', instructions_sha256, \
               'upstream', json(upstream), 'shield', json(shield), 'inspects_results', ",
            flag!("inspects_results"),
            ", 'deleted', ",
            flag!("deleted_at_ms IS NOT NULL"),
            ", 'revision', revision, 'created_at_ms', created_at_ms, \
               'updated_at_ms', updated_at_ms)"
        )
    };
}

macro_rules! tool_row {
    () => {
        concat!(
            "json_object('server', server, 'tool', tool, 'mutates', ",
            flag!("mutates"),
            ", 'egress', ",
            flag!("egress"),
            ", 'risk', risk, 'canary', ",
            flag!("canary"),
            ", 'tainted', tainted, 'approval_ttl_s', approval_ttl_s, 'input_schema', json(input_schema), \
               'argument_roles', json(argument_roles), 'reach', reach, \
               'result_trust', json(result_trust), 'cost', cost, 'min_clearance', min_clearance, \
               'shield', json(shield), 'warrant_required', ",
            flag!("warrant_required"),
            ", 'definition_sha256', definition_sha256, 'approved', ",
            flag!("approved"),
            ", 'disabled', ",
            flag!("disabled"),
            ", 'quarantined', ",
            flag!("quarantined"),
            ", 'revision', revision, 'created_at_ms', created_at_ms, \
               'updated_at_ms', updated_at_ms)"
        )
    };
}

macro_rules! webhook_row {
    () => {
        "json_object('url', url, 'revision', revision, 'created_at_ms', created_at_ms, \
           'updated_at_ms', updated_at_ms)"
    };
}

macro_rules! ban_row {
    () => {
        "json_object('ban_id', ban_id, 'kind', kind, 'subject', subject, 'reason', reason, \
           'created_by', created_by, 'created_at_ms', created_at_ms, \
           'expires_at_ms', expires_at_ms)"
    };
}

macro_rules! warrant_root_row {
    () => {
        "json_object('root_id', root_id, 'public_key', public_key, 'description', description, \
           'allowed_servers', json(allowed_servers), 'status', status, 'created_by', created_by, \
           'list_version', list_version, 'list_sha256', list_sha256, 'revision', revision, \
           'created_at_ms', created_at_ms, 'updated_at_ms', updated_at_ms)"
    };
}

macro_rules! warrant_revocation_row {
    () => {
        "json_object('warrant_id', warrant_id, 'root_key', nullif(root_key, ''), 'reason', reason, \
           'revoked_by', revoked_by, 'revoked_at_ms', revoked_at_ms, 'expires_at_ms', expires_at_ms)"
    };
}

macro_rules! limit_row {
    () => {
        "json_object('limit_id', limit_id, 'subject_kind', subject_kind, 'subject', subject, \
           'covers', covers, 'rule', json(rule), 'created_by', created_by, 'revision', revision, \
           'created_at_ms', created_at_ms, 'updated_at_ms', updated_at_ms)"
    };
}

macro_rules! administrator_row {
    () => {
        concat!(
            "json_object('administrator', subject, 'created_by', created_by, 'first', ",
            flag!("first"),
            ", 'created_at_ms', created_at_ms, 'deleted', ",
            flag!("deleted_at_ms IS NOT NULL"),
            ")"
        )
    };
}

macro_rules! group_row {
    () => {
        concat!(
            "json_object('group', group_name, 'protected', ",
            flag!("protected"),
            ", 'created_at_ms', created_at_ms, 'deleted', ",
            flag!("deleted_at_ms IS NOT NULL"),
            ")"
        )
    };
}

macro_rules! event_row {
    () => {
        "json_object('event_id', event_id, 'at_ms', at_ms, 'kind', kind, 'source', source, \
           'lane', lane, 'decision_id', nullif(decision_id, ''), 'count', count, 'detail', json(detail))"
    };
}
