//! The administration's statements on D1. A test prepares each against the migrations
//! (`tests/sql.rs`). Rows are loaded as JSON texts, in the shape of the `…Row` structs.

#[macro_use]
mod rights;
#[macro_use]
mod rows;
mod statement;

pub use statement::{Statement, Value};

/// Defines the statements and, for the test, the list of all of them.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $($part:expr),+;)*) => {
        $($(#[$doc])* pub const $name: &str = concat!($($part),+);)*
        pub const ALL: &[&str] = &[$($name),*];
    };
}

/// A setting as the JSON object `?4` has it; true is 1, and an object is its text.
macro_rules! set_setting {
    ($column:literal) => {
        concat!($column, " = ?4->>'", $column, "'")
    };
}

macro_rules! epoch {
    () => {
        "SELECT (SELECT epoch FROM tenants WHERE tenant = ?1) AS epoch, \
           (SELECT lanes FROM tenants WHERE tenant = ?1) AS lanes, "
    };
}

statements! {
    /// The audit event of a change. Tenant, event id, now, kind, source, detail.
    INSERT_EVENT = "INSERT INTO audit_events (tenant, event_id, at_ms, kind, source, detail) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// Tenant, epoch.
    RAISE_EPOCH = "UPDATE tenants SET epoch = ?2 WHERE tenant = ?1";

    /// The stored answer of this idempotency key, and the changed tenant with its epoch. Tenant,
    /// key.
    KEPT_ANSWER = "SELECT fingerprint, epoch, status, body, changed_tenant, \
          (SELECT lanes FROM tenants WHERE tenant = changed_tenant) AS lanes FROM idempotency_keys \
        WHERE tenant = ?1 AND idempotency_key = ?2";
    /// Tenant, key, fingerprint, epoch, status, body, now, the tenant that was changed.
    KEEP_ANSWER = "INSERT INTO idempotency_keys (tenant, idempotency_key, fingerprint, epoch, \
        status, body, created_at_ms, changed_tenant) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// Tenant, time before which they are deleted.
    EXPIRE_IDEMPOTENCY_KEYS = "DELETE FROM idempotency_keys WHERE tenant = ?1 AND created_at_ms < ?2";

    /// Tenant.
    LOAD_TENANT = epoch!(), "(SELECT ", tenant_row!(), " FROM tenants WHERE tenant = ?1) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM tenants LIMIT ?2))) AS extra";
    /// Tenant.
    READ_TENANT = "SELECT ", tenant_row!(), " AS record FROM tenants \
        WHERE tenant = ?1 AND status <> 'deleted'";
    /// After, limit.
    LIST_TENANTS = "SELECT ", tenant_row!(), " AS record FROM tenants \
        WHERE tenant > ?1 AND status <> 'deleted' ORDER BY tenant LIMIT ?2";
    /// Tenant, lanes, now.
    CREATE_TENANT = "INSERT INTO tenants (tenant, lanes, created_at_ms, updated_at_ms) \
        VALUES (?1, ?2, ?3, ?3)";
    /// Tenant, status, lanes, settings and storage limits as JSON objects, revision, now, destinations.
    SAVE_TENANT = "UPDATE tenants SET status = ?2, lanes = ?3, ", settings!(set_setting, set_setting, set_setting), ", \
        rows_per_day = ?5->>'rows_per_day', bytes_per_day = ?5->>'bytes_per_day', \
        retention_days = ?5->>'retention_days', revision = ?6, updated_at_ms = ?7, \
        destinations = ?8 WHERE tenant = ?1";
    /// Tenant, now, administrator: how many operators there are, how often it was bootstrapped, and
    /// the administrator of this name.
    LOAD_BOOTSTRAP = epoch!(), "(SELECT ", tenant_row!(), " FROM tenants WHERE tenant = ?1) AS record, \
        json_object('operators', (SELECT count(*) FROM credentials c JOIN tenants t USING (tenant) \
            WHERE c.kind = 'administrator' AND c.status = 'active' AND t.status <> 'deleted' \
              AND coalesce(c.expires_at_ms > ?2, true) \
              AND EXISTS (SELECT 1 FROM json_each(c.scopes) WHERE value = 'tenants:admin')), \
          'bootstraps', (SELECT count(*) FROM audit_events \
            WHERE tenant = '' AND event_id >= 'bootstrap.' AND event_id < 'bootstrap/'), \
          'named', json((SELECT json_object('deleted', ", flag!("deleted_at_ms IS NOT NULL"), ") \
            FROM subjects WHERE tenant = ?1 AND subject = ?3)), \
          'administered', ", "json(iif(EXISTS (SELECT 1 FROM credentials c \
            WHERE c.tenant = ?1 AND ", administers!("registry:write", "?2"), "), 'true', 'false'))", ") AS extra";

    /// Tenant.
    LOAD_WEBHOOK = epoch!(), "(SELECT ", webhook_row!(), " FROM webhooks WHERE tenant = ?1) AS record, \
        NULL AS extra";
    /// Tenant.
    READ_WEBHOOK = "SELECT ", webhook_row!(), " AS record FROM webhooks WHERE tenant = ?1";
    /// Tenant, URL, salt, revision, created, updated.
    SAVE_WEBHOOK = "INSERT INTO webhooks (tenant, url, salt, revision, created_at_ms, updated_at_ms) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
        ON CONFLICT (tenant) DO UPDATE SET url = excluded.url, salt = excluded.salt, \
          revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";
    /// Tenant.
    DELETE_WEBHOOK = "DELETE FROM webhooks WHERE tenant = ?1";

    /// Tenant, agent, the most agents and one, public key or NULL.
    LOAD_AGENT = epoch!(), "(SELECT ", agent_row!(), " FROM agents \
          WHERE tenant = ?1 AND agent = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM agents WHERE tenant = ?1 LIMIT ?3)), \
          'with_key', (SELECT agent FROM agents WHERE tenant = ?1 AND public_key = ?4 \
            AND public_key IS NOT NULL AND deleted_at_ms IS NULL AND agent <> ?2)) AS extra";
    /// Tenant, agent.
    READ_AGENT = "SELECT ", agent_row!(), " AS record, \
          (SELECT json_object('status', status, 'epoch', epoch, ", settings!(member, flag_member, json_member), ") \
             FROM tenants WHERE tenant = ?1) AS extra FROM agents \
        WHERE tenant = ?1 AND agent = ?2 AND deleted_at_ms IS NULL";
    /// Tenant, after, limit.
    LIST_AGENTS = "SELECT ", agent_row!(), " AS record FROM agents \
        WHERE tenant = ?1 AND agent > ?2 AND deleted_at_ms IS NULL ORDER BY agent LIMIT ?3";
    /// In the order of the columns. The flush writes the columns that the lane decides.
    SAVE_AGENT = "INSERT INTO agents (tenant, agent, lane, environment, risk_tier, allowed_tools, \
          frozen, quarantined, revoked, revision, \
          created_at_ms, updated_at_ms, public_key, warrant_required) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
        ON CONFLICT (tenant, agent) DO UPDATE SET environment = excluded.environment, \
          risk_tier = excluded.risk_tier, allowed_tools = excluded.allowed_tools, \
          frozen = excluded.frozen, \
          quarantined = excluded.quarantined, revoked = excluded.revoked, \
          public_key = excluded.public_key, warrant_required = excluded.warrant_required, \
          revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";
    /// Tenant, agent, now, revision.
    DELETE_AGENT = "UPDATE agents SET deleted_at_ms = ?3, updated_at_ms = ?3, revision = ?4 \
        WHERE tenant = ?1 AND agent = ?2";
    /// Tenant, agent.
    DELETE_MEMBERSHIPS = "DELETE FROM group_members \
        WHERE tenant = ?1 AND kind = 'agent' AND member = ?2";
    /// Tenant, agent, now, revision.
    REVOKE_CREDENTIALS_OF_AGENT = "UPDATE credentials SET status = 'revoked', \
          expires_at_ms = min(coalesce(expires_at_ms, ?3), ?3), revision = ?4 \
        WHERE tenant = ?1 AND agent = ?2 AND status <> 'revoked'";
    /// Tenant, agent, now, revision.
    TOUCH_AGENT = "UPDATE agents SET updated_at_ms = ?3, revision = ?4 \
        WHERE tenant = ?1 AND agent = ?2";
    /// Tenant, group, now, revision.
    TOUCH_AGENTS_OF_GROUP = "UPDATE agents SET updated_at_ms = ?3, revision = ?4 \
        WHERE tenant = ?1 AND agent IN (SELECT member FROM group_members \
          WHERE tenant = ?1 AND group_name = ?2 AND kind = 'agent')";

    /// Tenant, administrator, the most administrators and one, now.
    LOAD_ADMINISTRATOR = epoch!(), "(SELECT ", administrator_row!(), " FROM subjects \
          WHERE tenant = ?1 AND subject = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM subjects WHERE tenant = ?1 LIMIT ?3)), \
          'operates', ", flag!("EXISTS (SELECT 1 FROM credentials c INDEXED BY credentials_by_administrator \
             WHERE c.tenant = ?1 AND c.administrator = ?2 AND c.status = 'active' AND coalesce(c.expires_at_ms > ?4, true) \
             AND EXISTS (SELECT 1 FROM json_each(c.scopes) WHERE value = 'tenants:admin'))"), ", \
          'protected', ", protected_groups_of!("?2"), ", \
          ", last!("c.administrator = ?2", "?4"), ") AS extra";
    /// Tenant, administrator.
    READ_ADMINISTRATOR = "SELECT ", administrator_row!(), " AS record FROM subjects \
        WHERE tenant = ?1 AND subject = ?2 AND deleted_at_ms IS NULL";
    /// Tenant, after, limit.
    LIST_ADMINISTRATORS = "SELECT ", administrator_row!(), " AS record FROM subjects \
        WHERE tenant = ?1 AND subject > ?2 AND deleted_at_ms IS NULL ORDER BY subject LIMIT ?3";
    /// Tenant, administrator, created by, whether it is the first, now. An existing one stays.
    CREATE_ADMINISTRATOR = "INSERT INTO subjects (tenant, subject, created_by, first, created_at_ms) \
        VALUES (?1, ?2, ?3, ?4, ?5) \
        ON CONFLICT (tenant, subject) DO UPDATE SET first = max(first, excluded.first)";
    /// Tenant, administrator, now.
    DELETE_ADMINISTRATOR = "UPDATE subjects SET deleted_at_ms = ?3 WHERE tenant = ?1 AND subject = ?2";
    /// Tenant, administrator.
    DELETE_MEMBERSHIPS_OF_ADMINISTRATOR = "DELETE FROM group_members \
        WHERE tenant = ?1 AND kind = 'administrator' AND member = ?2";
    /// Tenant, administrator, now, revision.
    REVOKE_CREDENTIALS_OF_ADMINISTRATOR = "UPDATE credentials \
        INDEXED BY credentials_by_administrator SET status = 'revoked', \
          expires_at_ms = min(coalesce(expires_at_ms, ?3), ?3), revision = ?4 \
        WHERE tenant = ?1 AND administrator = ?2 AND status <> 'revoked'";

    /// Tenant, group, the most groups and one, the actor.
    LOAD_GROUP = epoch!(), "(SELECT ", group_row!(), " FROM groups \
          WHERE tenant = ?1 AND group_name = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM groups WHERE tenant = ?1 LIMIT ?3)), \
          'administrators', ", administrators_of!("?2"), ", \
          'first', ", flag!("EXISTS (SELECT 1 FROM subjects WHERE tenant = ?1 AND subject = ?4 \
             AND first AND deleted_at_ms IS NULL)"), ") AS extra";
    /// Tenant, group.
    READ_GROUP = "SELECT ", group_row!(), " AS record FROM groups \
        WHERE tenant = ?1 AND group_name = ?2 AND deleted_at_ms IS NULL";
    /// Tenant, after, limit.
    LIST_GROUPS = "SELECT ", group_row!(), " AS record FROM groups \
        WHERE tenant = ?1 AND group_name > ?2 AND deleted_at_ms IS NULL ORDER BY group_name LIMIT ?3";
    /// Tenant, group, now.
    CREATE_GROUP = "INSERT INTO groups (tenant, group_name, created_at_ms) VALUES (?1, ?2, ?3)";
    /// Tenant, group, whether it is protected.
    PROTECT_GROUP = "UPDATE groups SET protected = ?3 WHERE tenant = ?1 AND group_name = ?2";
    /// Tenant, group, now.
    DELETE_GROUP = "UPDATE groups SET deleted_at_ms = ?3 WHERE tenant = ?1 AND group_name = ?2";
    /// Tenant, group.
    DELETE_MEMBERS = "DELETE FROM group_members WHERE tenant = ?1 AND group_name = ?2";
    /// Tenant, group, kind, member, the most of the two counts and one.
    LOAD_MEMBER = epoch!(), "(SELECT ", group_row!(), " \
          FROM groups WHERE tenant = ?1 AND group_name = ?2) AS record, \
        json_object( \
          'member', ", flag!("EXISTS (SELECT 1 FROM group_members WHERE tenant = ?1 \
             AND group_name = ?2 AND kind = ?3 AND member = ?4)"), ", \
          'exists', ", flag!("CASE ?3 WHEN 'agent' THEN EXISTS (SELECT 1 FROM agents \
               WHERE tenant = ?1 AND agent = ?4 AND deleted_at_ms IS NULL) \
             ELSE EXISTS (SELECT 1 FROM subjects WHERE tenant = ?1 AND subject = ?4 \
               AND deleted_at_ms IS NULL) END"), ", \
          'administrators', ", administrators_of!("?2"), ", \
          'members', (SELECT count(*) FROM (SELECT 1 FROM group_members \
             WHERE tenant = ?1 AND group_name = ?2 LIMIT ?5)), \
          'groups', (SELECT count(*) FROM (SELECT 1 FROM group_members \
             WHERE tenant = ?1 AND kind = ?3 AND member = ?4 LIMIT ?5))) AS extra";
    /// Tenant, group, after (kind/member), limit.
    LIST_MEMBERS = "SELECT json_object('group', group_name, 'kind', kind, 'member', member) AS record \
        FROM group_members WHERE tenant = ?1 AND group_name = ?2 AND (kind, member) > (?3, ?4) \
        ORDER BY kind, member LIMIT ?5";
    /// Tenant, group, kind, member.
    ADD_MEMBER = "INSERT INTO group_members (tenant, group_name, kind, member) \
        VALUES (?1, ?2, ?3, ?4)";
    /// Tenant, group, kind, member.
    REMOVE_MEMBER = "DELETE FROM group_members \
        WHERE tenant = ?1 AND group_name = ?2 AND kind = ?3 AND member = ?4";

    /// Tenant, key id, agent, the most credentials and one, administrator, now.
    LOAD_CREDENTIAL = epoch!(), "(SELECT ", credential_row!(), " FROM credentials \
          WHERE tenant = ?1 AND key_id = ?2) AS record, \
        json_object('agent', json((SELECT json_object('lane', lane, 'revoked', ", flag!("revoked"), ") \
             FROM agents WHERE tenant = ?1 AND deleted_at_ms IS NULL AND agent = coalesce(?3, \
               (SELECT agent FROM credentials WHERE tenant = ?1 AND key_id = ?2)))), \
          'administrator', ", flag!("EXISTS (SELECT 1 FROM subjects WHERE tenant = ?1 \
             AND subject = ?5 AND deleted_at_ms IS NULL)"), ", \
          'first', ", flag!("EXISTS (SELECT 1 FROM subjects WHERE tenant = ?1 \
             AND subject = ?5 AND first)"), ", \
          'protected', ", protected_groups_of!("?5"), ", \
          ", last!("c.key_id = ?2", "?6"), ", \
          'count', (SELECT count(*) FROM (SELECT 1 FROM credentials WHERE tenant = ?1 LIMIT ?4))) AS extra";
    /// Tenant, key id.
    READ_CREDENTIAL = "SELECT ", credential_row!(), " AS record FROM credentials \
        WHERE tenant = ?1 AND key_id = ?2";
    /// Tenant, after, limit.
    LIST_CREDENTIALS = "SELECT ", credential_row!(), " AS record FROM credentials \
        WHERE tenant = ?1 AND key_id > ?2 ORDER BY key_id LIMIT ?3";
    /// Tenant, after, limit, agent.
    LIST_CREDENTIALS_OF_AGENT = "SELECT ", credential_row!(), " AS record FROM credentials \
        INDEXED BY credentials_by_agent \
        WHERE tenant = ?1 AND agent = ?4 AND key_id > ?2 ORDER BY key_id LIMIT ?3";
    /// Tenant, key id, kind, agent, administrator, hash, scopes, trust, three lists, signed, assigns
    /// runs, issuer and its key id, expiry, revision, now.
    CREATE_CREDENTIAL = "INSERT INTO credentials (tenant, key_id, kind, agent, administrator, \
          secret_sha256, scopes, max_source_trust, allowed_servers, allowed_tools, \
          allowed_networks, signed, assigns_runs, issued_by, issuer_key_id, expires_at_ms, \
          revision, created_at_ms, first_key_id) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)";
    /// Tenant, key id, status, expiry, revision.
    END_CREDENTIAL = "UPDATE credentials SET status = ?3, expires_at_ms = ?4, revision = ?5 \
        WHERE tenant = ?1 AND key_id = ?2";
    /// Credentials that ended before a time. Tenant, time.
    EXPIRE_CREDENTIALS = "DELETE FROM credentials WHERE tenant = ?1 AND expires_at_ms < ?2";

    /// Tenant, server, the most servers and one; then, if its tools are listed, a JSON array of
    /// their names, and the most tools and one.
    LOAD_SERVER = epoch!(), "(SELECT ", server_row!(), " FROM servers \
          WHERE tenant = ?1 AND server = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM servers WHERE tenant = ?1 LIMIT ?3)), \
          'tools', iif(?4 IS NULL, 0, (SELECT count(*) FROM (SELECT 1 FROM tools WHERE tenant = ?1 LIMIT ?5))), \
          'of_server', iif(?4 IS NULL, 0, (SELECT count(*) FROM (SELECT 1 FROM tools \
             WHERE tenant = ?1 AND server = ?2 LIMIT ?5))), \
          'changed_at_ms', iif(?4 IS NULL, 0, (SELECT coalesce(max(updated_at_ms), 0) FROM tools \
             WHERE tenant = ?1 AND server = ?2 AND NOT approved AND definition_sha256 IS NOT NULL)), \
          'known', json((SELECT json_group_array(json_object('tool', tool, \
             'definition_sha256', definition_sha256, 'approved', ", flag!("approved"), ")) \
             FROM json_each(?4) CROSS JOIN tools \
             WHERE tenant = ?1 AND server = ?2 AND tool = value))) AS extra";
    /// Tenant, server.
    READ_SERVER = "SELECT ", server_row!(), " AS record FROM servers \
        WHERE tenant = ?1 AND server = ?2 AND deleted_at_ms IS NULL";
    /// Tenant, after, limit.
    LIST_SERVERS = "SELECT ", server_row!(), " AS record FROM servers \
        WHERE tenant = ?1 AND server > ?2 AND deleted_at_ms IS NULL ORDER BY server LIMIT ?3";
    /// Tenant, server, kind, trust, approved, disabled, quarantined, manifest, instructions, upstream,
    /// revision, created, updated, modes of the shield, whether it inspects results.
    SAVE_SERVER = "INSERT INTO servers (tenant, server, kind, trust, approved, disabled, \
          quarantined, manifest_sha256, instructions_sha256, upstream, revision, created_at_ms, \
          updated_at_ms, shield, inspects_results) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
        ON CONFLICT (tenant, server) DO UPDATE SET kind = excluded.kind, trust = excluded.trust, \
          approved = excluded.approved, disabled = excluded.disabled, \
          quarantined = excluded.quarantined, manifest_sha256 = excluded.manifest_sha256, \
          instructions_sha256 = excluded.instructions_sha256, upstream = excluded.upstream, \
          shield = excluded.shield, inspects_results = excluded.inspects_results, \
          revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";
    /// Tenant, server, now, revision.
    DELETE_SERVER = "UPDATE servers SET deleted_at_ms = ?3, updated_at_ms = ?3, revision = ?4 \
        WHERE tenant = ?1 AND server = ?2";
    /// Writes listed tools. Tenant, server, a JSON array of them, revision, now, whether an
    /// administrator asked. A tool that had a definition waits for approval. A tool that was
    /// registered by hand keeps its schema, its egress and, if an administrator asked, its
    /// approval. A changed definition can set egress and never clears it. A registered tool keeps
    /// its roles and its reach: an administrator may have set them.
    SAVE_LISTED_TOOLS = "INSERT INTO tools (tenant, server, tool, mutates, egress, risk, input_schema, \
          argument_roles, reach, definition, definition_sha256, revision, created_at_ms, updated_at_ms) \
        SELECT ?1, ?2, value->>'tool', value->>'mutates', value->>'egress', value->>'risk', value->>'input_schema', \
          value->>'argument_roles', value->>'reach', value->>'definition', value->>'definition_sha256', ?4, ?5, ?5 FROM json_each(?3) WHERE true \
        ON CONFLICT (tenant, server, tool) DO UPDATE SET \
          approved = iif(definition_sha256 IS NULL AND ?6, approved, 0), \
          egress = iif(definition_sha256 IS NULL, egress, max(egress, excluded.egress)), \
          input_schema = iif(definition_sha256 IS NULL, coalesce(input_schema, excluded.input_schema), \
            excluded.input_schema), \
          definition = excluded.definition, definition_sha256 = excluded.definition_sha256, revision = excluded.revision, \
          updated_at_ms = excluded.updated_at_ms";
    /// Tenant, server, a JSON array of registered tools, each with a hash, revision, now.
    SAVE_UNUSABLE_TOOLS = "UPDATE tools SET approved = 0, definition = NULL, \
          definition_sha256 = value->>'definition_sha256', revision = ?4, updated_at_ms = ?5 \
        FROM json_each(?3) WHERE tenant = ?1 AND server = ?2 AND tool = value->>'tool'";
    /// Tenant, server, revision, now.
    UNAPPROVE_TOOLS = "UPDATE tools SET approved = 0, revision = ?3, updated_at_ms = ?4 \
        WHERE tenant = ?1 AND server = ?2";

    /// The tool's definition was reviewed. Tenant, server, tool.
    KEEP_APPROVED_DEFINITION = "UPDATE tools SET approved_definition = definition \
        WHERE tenant = ?1 AND server = ?2 AND tool = ?3";

    /// Tenant, server, tool, the most tools and one.
    LOAD_TOOL = epoch!(), "(SELECT ", tool_row!(), " FROM tools \
          WHERE tenant = ?1 AND server = ?2 AND tool = ?3) AS record, \
        json_object('server', ", flag!("EXISTS (SELECT 1 FROM servers \
            WHERE tenant = ?1 AND server = ?2 AND deleted_at_ms IS NULL)"), ", \
          'has_definition', ", flag!("EXISTS (SELECT 1 FROM tools WHERE tenant = ?1 \
            AND server = ?2 AND tool = ?3 AND definition IS NOT NULL)"), ", \
          'count', (SELECT count(*) FROM (SELECT 1 FROM tools WHERE tenant = ?1 LIMIT ?4))) AS extra";
    /// With the definitions, which lists leave out. Tenant, server, tool.
    READ_TOOL = "SELECT json_insert(", tool_row!(), ", '$.definition', json(definition), \
          '$.approved_definition', json(approved_definition)) AS record FROM tools \
        WHERE tenant = ?1 AND server = ?2 AND tool = ?3 AND EXISTS (SELECT 1 FROM servers s \
          WHERE s.tenant = ?1 AND s.server = ?2 AND s.deleted_at_ms IS NULL)";
    /// Tenant, server, after, limit.
    LIST_TOOLS = "SELECT ", tool_row!(), " AS record FROM tools \
        WHERE tenant = ?1 AND server = ?2 AND tool > ?3 ORDER BY tool LIMIT ?4";
    /// Tenant, server, tool, mutates, egress, risk, canary, tainted, approved, disabled, quarantined,
    /// approval time, schema, definition, revision, created, updated, roles, reach, trust of results, cost, warrants,
    /// modes of the shield.
    SAVE_TOOL = "INSERT INTO tools (tenant, server, tool, mutates, egress, risk, canary, tainted, approved, \
          disabled, quarantined, approval_ttl_s, input_schema, definition_sha256, revision, \
          created_at_ms, updated_at_ms, argument_roles, reach, result_trust, cost, warrant_required, min_clearance, \
          shield) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) \
        ON CONFLICT (tenant, server, tool) DO UPDATE SET mutates = excluded.mutates, \
          egress = excluded.egress, risk = excluded.risk, canary = excluded.canary, tainted = excluded.tainted, \
          approved = excluded.approved, \
          disabled = excluded.disabled, quarantined = excluded.quarantined, \
          approval_ttl_s = excluded.approval_ttl_s, input_schema = excluded.input_schema, \
          argument_roles = excluded.argument_roles, reach = excluded.reach, result_trust = excluded.result_trust, cost = excluded.cost, \
          warrant_required = excluded.warrant_required, min_clearance = excluded.min_clearance, shield = excluded.shield, \
          definition_sha256 = excluded.definition_sha256, revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";

    /// Tenant, ban id, now.
    LOAD_BAN = epoch!(), "(SELECT ", ban_row!(), " FROM bans \
          WHERE tenant = ?1 AND ban_id = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM bans \
          WHERE tenant = ?1 AND coalesce(expires_at_ms > ?3, true))) AS extra";
    /// Tenant, limit id, kind and name of the subject of a new one, the most limits and one. A revoked
    /// credential counts as none.
    LOAD_LIMIT = epoch!(), "(SELECT ", limit_row!(), " FROM limits \
          WHERE tenant = ?1 AND limit_id = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM limits WHERE tenant = ?1 LIMIT ?5)), \
          'first_key_id', (SELECT first_key_id FROM credentials WHERE tenant = ?1 AND key_id = ?4), \
          'shared', (SELECT count(*) FROM limits \
            WHERE tenant = ?1 AND subject_kind IN ('tenant', 'group', 'tool', 'server', 'user')), \
          'of_subject', (SELECT count(*) FROM limits \
            WHERE tenant = ?1 AND subject_kind = ?3 AND subject = coalesce(iif(?3 = 'credential', \
              (SELECT first_key_id FROM credentials WHERE tenant = ?1 AND key_id = ?4), NULL), ?4)), \
          'of_requests', (SELECT count(*) FROM limits INDEXED BY limits_of_requests \
            WHERE tenant = ?1 AND subject = ?4 AND covers = 'requests'), \
          'exists', ", flag!("CASE ?3 WHEN 'agent' THEN EXISTS (SELECT 1 FROM agents \
              WHERE tenant = ?1 AND agent = ?4 AND deleted_at_ms IS NULL) \
            WHEN 'group' THEN EXISTS (SELECT 1 FROM groups \
              WHERE tenant = ?1 AND group_name = ?4 AND deleted_at_ms IS NULL) \
            ELSE EXISTS (SELECT 1 FROM credentials \
              WHERE tenant = ?1 AND key_id = ?4 AND kind = 'agent' AND status <> 'revoked') END"), ") AS extra";
    /// Tenant, limit id.
    READ_LIMIT = "SELECT ", limit_row!(), " AS record FROM limits WHERE tenant = ?1 AND limit_id = ?2";
    /// Tenant, after, limit.
    LIST_LIMITS = "SELECT ", limit_row!(), " AS record FROM limits \
        WHERE tenant = ?1 AND limit_id > ?2 ORDER BY limit_id LIMIT ?3";
    /// In the order of the columns.
    SAVE_LIMIT = "INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, \
          revision, created_at_ms, updated_at_ms, covers) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
        ON CONFLICT (tenant, limit_id) DO UPDATE SET rule = excluded.rule, \
          revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";
    /// Tenant, limit id.
    DELETE_LIMIT = "DELETE FROM limits WHERE tenant = ?1 AND limit_id = ?2";

    /// Tenant, ban id.
    READ_BAN = "SELECT ", ban_row!(), " AS record FROM bans WHERE tenant = ?1 AND ban_id = ?2";
    /// Tenant, after, limit.
    LIST_BANS = "SELECT ", ban_row!(), " AS record FROM bans \
        WHERE tenant = ?1 AND ban_id > ?2 ORDER BY ban_id LIMIT ?3";
    /// Tenant, ban id, kind, subject, reason, created by, now, expiry.
    CREATE_BAN = "INSERT INTO bans (tenant, ban_id, kind, subject, reason, created_by, \
          created_at_ms, expires_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    /// Tenant, ban id.
    DELETE_BAN = "DELETE FROM bans WHERE tenant = ?1 AND ban_id = ?2";
    /// Tenant, now.
    EXPIRE_BANS = "DELETE FROM bans WHERE tenant = ?1 AND expires_at_ms <= ?2";

    /// Tenant, root id, public key of a new one, the most roots and one, the most remembered lists.
    LOAD_WARRANT_ROOT = epoch!(), "(SELECT ", warrant_root_row!(), " FROM warrant_roots \
          WHERE tenant = ?1 AND root_id = ?2) AS record, \
        json_object('count', (SELECT count(*) FROM (SELECT 1 FROM warrant_roots WHERE tenant = ?1 LIMIT ?4)), \
          'with_key', (SELECT root_id FROM warrant_roots WHERE tenant = ?1 AND public_key = ?3), \
          'lists', (SELECT count(*) FROM (SELECT 1 FROM warrant_lists WHERE tenant = ?1 LIMIT ?5)), \
          'list_version', (SELECT list_version FROM warrant_lists WHERE tenant = ?1 AND public_key = ?3), \
          'list_sha256', (SELECT list_sha256 FROM warrant_lists WHERE tenant = ?1 AND public_key = ?3)) AS extra";
    /// Tenant, root id.
    READ_WARRANT_ROOT = "SELECT ", warrant_root_row!(), " AS record FROM warrant_roots \
        WHERE tenant = ?1 AND root_id = ?2";
    /// Tenant, after, limit.
    LIST_WARRANT_ROOTS = "SELECT ", warrant_root_row!(), " AS record FROM warrant_roots \
        WHERE tenant = ?1 AND root_id > ?2 ORDER BY root_id LIMIT ?3";
    /// In the order of the columns. A root keeps its key.
    SAVE_WARRANT_ROOT = "INSERT INTO warrant_roots (tenant, root_id, public_key, description, \
          allowed_servers, status, created_by, revision, created_at_ms, updated_at_ms, \
          list_version, list_sha256) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) \
        ON CONFLICT (tenant, root_id) DO UPDATE SET description = excluded.description, \
          allowed_servers = excluded.allowed_servers, status = excluded.status, \
          list_version = excluded.list_version, list_sha256 = excluded.list_sha256, \
          revision = excluded.revision, updated_at_ms = excluded.updated_at_ms";
    /// Tenant, root id.
    DELETE_WARRANT_ROOT = "DELETE FROM warrant_roots WHERE tenant = ?1 AND root_id = ?2";
    /// Before the root is deleted. Tenant, root id.
    REMEMBER_WARRANT_LIST = "INSERT INTO warrant_lists (tenant, public_key, list_version, list_sha256) \
        SELECT tenant, public_key, list_version, list_sha256 FROM warrant_roots \
          WHERE tenant = ?1 AND root_id = ?2 AND list_version IS NOT NULL \
        ON CONFLICT (tenant, public_key) \
        DO UPDATE SET list_version = excluded.list_version, list_sha256 = excluded.list_sha256 \
        WHERE excluded.list_version > list_version";

    /// Tenant, warrant id, now. A revocation that has expired does not count as a record, and neither does one of a
    /// root's list.
    LOAD_WARRANT_REVOCATION = epoch!(), "(SELECT ", warrant_revocation_row!(), " \
          FROM warrant_revocations \
          WHERE tenant = ?1 AND warrant_id = ?2 AND root_key = '' AND expires_at_ms > ?3) AS record, \
        json_object('count', (SELECT count(*) FROM warrant_revocations \
          WHERE tenant = ?1 AND expires_at_ms > ?3)) AS extra";
    /// Tenant, warrant id. One that holds for all comes before those of roots' lists.
    READ_WARRANT_REVOCATION = "SELECT ", warrant_revocation_row!(), " AS record \
        FROM warrant_revocations WHERE tenant = ?1 AND warrant_id = ?2 ORDER BY root_key LIMIT 1";
    /// Tenant, after (warrant id and root key, joined), limit.
    LIST_WARRANT_REVOCATIONS = "SELECT ", warrant_revocation_row!(), " AS record \
        FROM warrant_revocations \
        WHERE tenant = ?1 AND (warrant_id, root_key) > (substr(?2, 1, 32), substr(?2, 33)) \
        ORDER BY warrant_id, root_key LIMIT ?3";
    /// For all roots. Tenant, warrant id, reason, revoked by, now, expiry.
    CREATE_WARRANT_REVOCATION = "INSERT INTO warrant_revocations (tenant, warrant_id, reason, \
          revoked_by, revoked_at_ms, expires_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// Tenant, root id, warrant ids as a JSON array, now, the root's key.
    LOAD_REVOCATION_LIST = epoch!(), "(SELECT ", warrant_root_row!(), " FROM warrant_roots \
          WHERE tenant = ?1 AND root_id = ?2) AS record, \
        (SELECT json_object('count', count(*), \
            'listed', count(*) FILTER (WHERE root_key = ?5 AND warrant_id IN (SELECT value FROM json_each(?3)))) \
          FROM warrant_revocations WHERE tenant = ?1 AND expires_at_ms > ?4) AS extra";
    /// Tenant, warrant ids as a JSON array, reason, revoked by, now, expiry, the root's key. If a revocation exists
    /// already, only its expiry changes.
    ADD_WARRANT_REVOCATIONS = "INSERT INTO warrant_revocations (tenant, warrant_id, reason, \
          revoked_by, revoked_at_ms, expires_at_ms, root_key) \
        SELECT ?1, value, ?3, ?4, ?5, ?6, ?7 FROM json_each(?2) WHERE true \
        ON CONFLICT (tenant, warrant_id, root_key) \
        DO UPDATE SET expires_at_ms = max(expires_at_ms, excluded.expires_at_ms)";
    /// Tenant, now.
    EXPIRE_WARRANT_REVOCATIONS = "DELETE FROM warrant_revocations \
        WHERE tenant = ?1 AND expires_at_ms <= ?2";

    /// Newest first. Tenant, before (time, event id), from, limit.
    LIST_EVENTS = "SELECT ", event_row!(), " AS record FROM audit_events \
        WHERE tenant = ?1 AND (at_ms, event_id) < (?2, ?3) AND at_ms >= ?4 \
        ORDER BY at_ms DESC, event_id DESC LIMIT ?5";
    /// The same of one kind, which follows, other than `decision`.
    LIST_EVENTS_OF_KIND = "SELECT ", event_row!(), " AS record FROM audit_events \
        INDEXED BY audit_events_by_kind \
        WHERE tenant = ?1 AND (at_ms, event_id) < (?2, ?3) AND at_ms >= ?4 AND kind = ?6 \
          AND kind <> 'decision' ORDER BY at_ms DESC, event_id DESC LIMIT ?5";
    /// The decisions among them.
    LIST_EVENTS_OF_DECISIONS = "SELECT ", event_row!(), " AS record FROM audit_events \
        WHERE tenant = ?1 AND (at_ms, event_id) < (?2, ?3) AND at_ms >= ?4 AND kind = 'decision' \
        ORDER BY at_ms DESC, event_id DESC LIMIT ?5";
}
