//! Every SQL statement prepares against the real schema, and the reads use an index.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use crate::support;
use gateward_core::bounds::{
    MAX_BANS, MAX_SERVER_TOOLS, MAX_WARRANT_REVOCATIONS, MAX_WARRANT_ROOTS,
};
use gateward_core::bucket::Rate;
use gateward_core::lane::RECORDS_SHAPE;
use gateward_core::limit::{Definition, Limit, RequestRate};
use gateward_core::provenance::{ArgumentRoles, Reach, ResultLevel, ResultTrust, Role};
use gateward_core::registry::{ListedTool, Loaded, RecordKind};
use gateward_core::scope::Scope;
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration as admin;
use gateward_core::sql::{d1, lane};
use rusqlite::{Connection, params};
use serde_json::{Value, json};

fn plan(connection: &Connection, statement: &str) -> String {
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let mut rows = explain.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push_str(&row.get::<_, String>(3).unwrap());
        plan.push('\n');
    }
    plan
}

#[test]
fn every_statement_on_d1_prepares_against_the_migrations() {
    let database = support::database();
    for statement in d1::ALL.iter().chain(admin::ALL) {
        database.prepare(statement).unwrap_or_else(|e| panic!("{e}: {statement}"));
    }
}

#[test]
fn every_statement_on_a_lane_prepares_against_its_schema_which_can_be_run_again() {
    let storage = Connection::open_in_memory().unwrap();
    for statement in lane::SCHEMA.iter().chain(lane::SCHEMA) {
        storage.execute_batch(statement).unwrap();
    }
    for statement in lane::ALL {
        storage.prepare(statement).unwrap_or_else(|e| panic!("{e}: {statement}"));
    }
}

#[test]
fn no_read_endpoint_scans_a_table() {
    let database = support::database();
    for statement in [
        d1::LOAD_RECORDS,
        d1::LOAD_READER,
        d1::EPOCH,
        d1::DECISION,
        d1::DECISIONS,
        d1::DECISIONS_OF_AGENT,
        d1::DECISIONS_OF_OUTCOME,
        d1::DECISIONS_OF_AGENT_AND_OUTCOME,
        d1::FLUSHES,
        d1::RECEIPTS,
        d1::APPROVAL,
        d1::APPROVALS,
        d1::APPROVALS_OF_STATUS,
        d1::APPROVALS_OF_AGENT,
        d1::APPROVALS_OF_AGENT_AND_STATUS,
        d1::APPROVALS_OF_GROUP,
        d1::WEBHOOK,
        d1::STORED_HASHES,
        d1::FORGET_SIGNATURE_NONCES,
        d1::RETENTION,
        d1::OLD_RECEIPTS,
        d1::PRUNE_DECISIONS,
        d1::PRUNE_RECEIPTS,
        d1::PRUNE_EVENTS,
        d1::PRUNE_APPROVALS,
        admin::KEPT_ANSWER,
        admin::READ_WEBHOOK,
        admin::LIST_TENANTS,
        admin::READ_AGENT,
        admin::LIST_AGENTS,
        admin::LIST_GROUPS,
        admin::LIST_MEMBERS,
        admin::LIST_ADMINISTRATORS,
        admin::LOAD_MEMBER,
        admin::REVOKE_CREDENTIALS_OF_ADMINISTRATOR,
        admin::LIST_CREDENTIALS,
        admin::LIST_CREDENTIALS_OF_AGENT,
        admin::LIST_SERVERS,
        admin::LIST_TOOLS,
        admin::LIST_BANS,
        admin::LOAD_WARRANT_ROOT,
        admin::LIST_WARRANT_ROOTS,
        admin::LOAD_WARRANT_REVOCATION,
        admin::LIST_WARRANT_REVOCATIONS,
        admin::LIST_EVENTS,
        admin::LIST_EVENTS_OF_KIND,
        admin::LIST_EVENTS_OF_DECISIONS,
    ] {
        let plan = plan(&database, statement);
        // A scan of the result of an inner search is allowed.
        let harmless =
            |line: &str| line == "SCAN CONSTANT ROW" || line.starts_with("SCAN (subquery");
        let scans = plan.lines().any(|line| line.starts_with("SCAN") && !harmless(line));
        assert!(!scans && !plan.contains("TEMP B-TREE"), "{statement}\n{plan}");
    }
}

#[test]
fn a_filter_of_decisions_has_its_index() {
    let database = support::database();
    for (statement, index) in [
        (d1::DECISIONS, "PRIMARY KEY (tenant=? AND decision_id>? AND decision_id<?)"),
        (d1::DECISIONS_OF_AGENT, "decisions_by_agent (tenant=? AND agent=? AND decision_id>?"),
        (
            d1::DECISIONS_OF_OUTCOME,
            "decisions_by_outcome (tenant=? AND decision=? AND decision_id>?",
        ),
    ] {
        let plan = plan(&database, statement);
        assert!(plan.contains(index), "{statement}\n{plan}");
    }
}

#[test]
fn what_is_known_of_tools_that_are_listed_is_found_by_their_names() {
    let plan = plan(&support::database(), admin::LOAD_SERVER);
    let found = "SEARCH tools USING PRIMARY KEY (tenant=? AND server=? AND tool=?)";
    assert!(plan.contains(found), "{plan}");
}

#[test]
fn an_administrators_credentials_and_groups_are_found_by_its_name() {
    let plan = plan(&support::database(), admin::LOAD_ADMINISTRATOR);
    for found in [
        "SEARCH c USING INDEX credentials_by_administrator (tenant=? AND administrator=?)",
        "group_members_by_member (tenant=? AND kind=? AND member=?)",
        "SEARCH a USING PRIMARY KEY (tenant=? AND group_name=? AND kind=?)",
    ] {
        assert!(plan.contains(found), "{found}\n{plan}");
    }
}

#[test]
fn no_statement_of_the_code_is_left_out_of_these_tests() {
    let code = [
        include_str!("../src/sql/d1.rs"),
        include_str!("../src/sql/d1/flush.rs"),
        include_str!("../src/sql/d1/history.rs"),
        include_str!("../src/sql/d1/logs.rs"),
        include_str!("../src/sql/d1/metrics.rs"),
        include_str!("../src/sql/d1/records.rs"),
        include_str!("../src/sql/d1/retention.rs"),
        include_str!("../src/sql/lane.rs"),
    ];
    let constants: usize = code.map(|code| code.matches("pub const").count()).iter().sum();
    let listed = d1::ALL.len() + lane::ALL.len();
    // SCHEMA, ADD_BOOKS (`limited.rs`) and the two ALL are lists.
    assert_eq!(constants, listed + 4);
}

/// A tenant with one record of each kind, and records beside it that must not be seen.
const REGISTRY: &str = r#"
INSERT INTO tenants (tenant, epoch, risk_denials,
    risk_window_s, risk_quiet_s, taint_s, rows_per_day, bytes_per_day, created_at_ms)
    VALUES ('demo', 7, 4, 5, 6, 70, 7, 8, 0);
INSERT INTO tenants (tenant, created_at_ms) VALUES ('other', 0);
INSERT INTO agents (tenant, agent, lane, environment, allowed_tools, created_at_ms)
    VALUES ('demo', 'coder', 2, 'production', '["github/*"]', 0), ('demo', 'free', 0, 'production', NULL, 0),
      ('demo', 'gone', 0, 'production', NULL, 0), ('other', 'coder', 0, 'production', NULL, 0);
UPDATE agents SET deleted_at_ms = 1 WHERE agent = 'gone';
INSERT INTO groups (tenant, group_name, created_at_ms, deleted_at_ms) VALUES ('demo', 'b', 0, NULL),
    ('demo', 'a', 0, NULL), ('demo', 'deleted', 0, 1), ('other', 'c', 0, NULL);
INSERT INTO group_members (tenant, group_name, kind, member) VALUES ('demo', 'b', 'agent', 'coder'),
    ('demo', 'a', 'agent', 'coder'), ('demo', 'a', 'administrator', 'free'),
    ('demo', 'deleted', 'agent', 'coder'), ('other', 'c', 'agent', 'coder'),
    ('demo', 'a', 'administrator', 'ada'), ('demo', 'deleted', 'administrator', 'ada'),
    ('demo', 'b', 'agent', 'ada'), ('other', 'c', 'administrator', 'ada');
INSERT INTO credentials (tenant, key_id, kind, agent, secret_sha256, scopes, created_at_ms, allowed_servers,
    allowed_tools, allowed_networks, signed)
    VALUES ('demo', 'k1', 'agent', 'coder', printf('%064d', 1), '["tools:read","tools:all"]', 0,
      '["git*"]', '[]', '["10.0.0.0/8"]', 1);
INSERT INTO credentials (tenant, key_id, kind, agent, secret_sha256, created_at_ms)
    VALUES ('demo', 'k2', 'agent', 'free', printf('%064d', 2), 0), ('demo', 'k3', 'agent', 'gone', printf('%064d', 3), 0);
INSERT INTO credentials (tenant, key_id, kind, administrator, secret_sha256, created_at_ms)
    VALUES ('demo', 'k4', 'administrator', 'ada', printf('%064d', 4), 0);
INSERT INTO servers (tenant, server, kind, approved, created_at_ms, deleted_at_ms)
    VALUES ('demo', 'github', 'mcp', 1, 0, NULL), ('demo', 'old', 'mcp', 1, 0, 1);
UPDATE servers SET upstream = '{"url":"https://example.com/mcp"}' WHERE server = 'github';
INSERT INTO tools (tenant, server, tool, approved, mutates, risk, input_schema, created_at_ms)
    VALUES ('demo', 'github', 'x', 1, 0, 'low', '{"type":"object"}', 0), ('demo', 'old', 'x', 1, 0, 'low', NULL, 0);
INSERT INTO bans (tenant, ban_id, kind, subject, reason, created_by, created_at_ms, expires_at_ms)
    VALUES ('demo', 'b1', 'user', 'mallory', '', 'ada', 0, NULL), ('demo', 'b2', 'run', 'r', '', 'ada', 0, 100),
      ('demo', 'b3', 'agent', 'old', '', 'ada', 0, 99), ('other', 'b4', 'agent', 'coder', '', 'ada', 0, NULL);
"#;

/// What [`d1::LOAD_RECORDS`] gives at time 99, as JSON.
fn load(database: &Connection, agent: &str, key_id: &str, server: &str, lists: bool) -> Value {
    let mut statement = database.prepare(d1::LOAD_RECORDS).unwrap();
    let columns = ["tenant", "agent", "credential", "server", "tool", "bans", "warrants"];
    assert!(statement.column_names().eq(columns));
    let values = params!["demo", agent, key_id, server, "x", lists, 99];
    statement
        .query_row(values, |row| {
            let mut loaded = json!({});
            for (at, column) in columns.into_iter().enumerate() {
                let text: Option<String> = row.get(at)?;
                loaded[column] = serde_json::from_str(text.as_deref().unwrap_or("null")).unwrap();
            }
            Ok(loaded)
        })
        .unwrap()
}

#[test]
fn a_load_brings_the_records_of_one_call_and_the_lists_if_they_are_wanted() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    let grace = "UPDATE tenants SET grace_read_s = 9, grace_write_s = 10, grace_high_risk_s = 11";
    database.execute_batch(grace).unwrap();
    let provenance = r#"UPDATE tenants SET destinations = '{"hosts":["a.example"]}';
        UPDATE tools SET argument_roles = '{"/to":"sink"}', reach = 'nobody', result_trust = '{"":"trusted"}'
          WHERE server = 'github'"#;
    database.execute_batch(provenance).unwrap();
    let shield = r#"UPDATE tenants SET shield = '{"secret":"redact"}';
        UPDATE servers SET shield = '{"sql_injection":"block"}', inspects_results = 1;
        UPDATE tools SET shield = '{"sql_injection":"off"}'"#;
    database.execute_batch(shield).unwrap();
    let limits = r#"INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision,
          created_at_ms, updated_at_ms) SELECT 'demo', value->>0, value->>1, value->>2,
          '{"kind":"concurrency","max":"1"}', 'a', 1, 0, 0
        FROM json_each('[["a","agent","coder"],["b","agent","*"],["c","agent","other"],
          ["d","credential","k1"],["e","credential","coder"],["f","user","*"],["g","tenant","*"]]');
        INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision,
          created_at_ms, updated_at_ms, covers) SELECT 'demo', value->>0, 'agent', value->>1,
          '{"kind":"rate","capacity":3,"refill_per_s":0.5}', 'a', 1, 0, 0, 'requests'
        FROM json_each('[["h","*"],["i","coder"],["j","other"]]');
        UPDATE tools SET cost = '2.5' WHERE server = 'github'"#;
    database.execute_batch(limits).unwrap();
    let limit = |id: &str| json!({"limit_id": id, "created_at_ms": 0, "rule": {"kind": "concurrency", "max": "1"}});
    let request_rate = |id: &str| json!({"limit_id": id, "rule": {"kind": "rate", "capacity": 3, "refill_per_s": 0.5}});
    let shared = |id: &str, kind: &str| {
        let rule = json!({"kind": "concurrency", "max": "1"});
        let limit = json!({"limit_id": id, "created_at_ms": 0, "revision": 1, "rule": rule});
        json!({"subject_kind": kind, "subject": "*", "limit": limit})
    };
    let key = "29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7";
    let [revoked, expired, listed] = ["0a", "0b", "0c"].map(|byte| byte.repeat(16));
    let warrants = format!(
        r#"UPDATE tenants SET warrant_max_links = 12, warrant_proof_windows = 4, warrant_reads_once = 1,
          warrant_required = 0, warrant_alone_trust = 'untrusted_external', log_public = 1;
        UPDATE agents SET public_key = '{key}', warrant_required = 1 WHERE agent = 'coder';
        UPDATE tools SET warrant_required = 1, min_clearance = 14 WHERE server = 'github';
        INSERT INTO warrant_roots (tenant, root_id, public_key, allowed_servers, status, created_by, revision,
            created_at_ms, updated_at_ms)
          VALUES ('demo', 'b', '{key}', '["git*"]', 'active', 'ada', 1, 0, 0),
            ('demo', 'a', printf('%064d', 5), NULL, 'disabled', 'ada', 1, 0, 0),
            ('other', 'c', '{key}', NULL, 'active', 'ada', 1, 0, 0);
        INSERT INTO warrant_revocations (tenant, warrant_id, reason, revoked_by, revoked_at_ms, expires_at_ms,
            root_key)
          VALUES ('demo', '{revoked}', '', 'ada', 0, 100, ''), ('demo', '{expired}', '', 'ada', 0, 99, ''),
            ('demo', '{expired}', '', 'ada', 0, 99, '{key}'), ('demo', '{listed}', '', 'ada', 0, 100, '{key}'),
            ('other', '{expired}', '', 'ada', 0, 100, '');"#
    );
    database.execute_batch(&warrants).unwrap();
    let expected = json!({
        "tenant": {
            "status": "active", "epoch": 7,
            "risk_denials": 4, "risk_window_s": 5, "risk_quiet_s": 6,
            "taint_s": 70,
            "grace_read_s": 9,
            "grace_write_s": 10,
            "grace_high_risk_s": 11,
            "warrant_max_links": 12, "warrant_proof_windows": 4, "warrant_reads_once": true,
            "warrant_required": false, "warrant_alone_trust": "untrusted_external", "log_public": true,
            "shield": {"secret": "redact"},
            "lanes": 1, "rows_per_day": 7, "bytes_per_day": 8,
            "destinations": {"hosts": ["a.example"]},
            "shared_limits": [shared("g", "tenant"), shared("f", "user")],
        },
        "agent": {
            "lane": 2, "status": "active", "environment": "production", "risk_tier": "low",
            "groups": ["a", "b"], "allowed_tools": ["github/*"],
            "public_key": key, "warrant_required": 1, "limits": [limit("b"), limit("a")],
            "request_rate": request_rate("i"),
        },
        "credential": {
            "agent": "coder", "secret_sha256": format!("{:064}", 1),
            "scopes": ["tools:read", "tools:all"], "max_source_trust": "unknown",
            "status": "active", "expires_at_ms": null, "allowed_servers": ["git*"],
            "allowed_tools": [], "allowed_networks": ["10.0.0.0/8"], "signed": true,
            "assigns_runs": false, "limits": [limit("d")], "first_key_id": null,
        },
        "server": {"kind": "mcp", "trust": "untrusted", "status": "active",
            "upstream": {"url": "https://example.com/mcp"}, "instructions_sha256": null,
            "shield": {"sql_injection": "block"}, "inspects_results": 1},
        "tool": {"status": "active", "mutates": 0, "egress": 0, "risk": "low", "canary": 0,
            "tainted": "require_approval", "approval_ttl_s": null, "input_schema": r#"{"type":"object"}"#,
            "argument_roles": {"/to": "sink"}, "reach": "nobody", "result_trust": {"": "trusted"},
            "cost": "2.5", "warrant_required": 1, "min_clearance": 14,
            "shield": {"sql_injection": "off"}},
        "bans": [
            {"kind": "user", "subject": "mallory", "expires_at_ms": null},
            {"kind": "run", "subject": "r", "expires_at_ms": 100},
        ],
        "warrants": {
            "roots": [{"id": "b", "public_key": key, "allowed_servers": ["git*"]}],
            "revoked": [[revoked, null], [listed, key]],
        },
    });
    let loaded = load(&database, "coder", "k1", "github", true);
    assert_eq!(loaded, expected);
    let read: Loaded = serde_json::from_value(loaded).unwrap();
    assert_eq!(read.credential.unwrap().scopes, [Scope::ToolsRead]);
    let server = read.server.unwrap();
    assert_eq!(server.upstream.as_ref().unwrap().idle_timeout_ms, 120_000);
    assert!(server.inspects_results);
    let tenant = read.tenant.unwrap();
    let settings = &tenant.settings;
    let flags = (settings.warrant_reads_once, settings.warrant_required);
    assert_eq!(flags, (Some(true), Some(false)));
    assert_eq!(tenant.destinations.as_ref().unwrap().hosts, ["a.example"]);
    let warrants = read.warrants.unwrap();
    assert_eq!(warrants.root(&key.parse().unwrap()).unwrap().id, "b");
    let ids = [[11; 16], [12; 16], [10; 16]];
    assert_eq!(warrants.first_revoked(&key.parse().unwrap(), &ids), Some([12; 16]));
    let other = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let other = other.parse().unwrap();
    assert_eq!(warrants.first_revoked(&other, &ids), Some([10; 16]));
    let tool = read.tool.unwrap();
    assert_eq!(tool.input_schema.as_deref(), Some(r#"{"type":"object"}"#));
    let roles = ArgumentRoles(vec![("/to".to_owned(), Role::Sink)]);
    assert_eq!(tool.argument_roles.as_deref(), Some(&roles));
    let trust = ResultTrust(vec![(String::new(), ResultLevel::Trusted)]);
    assert_eq!((tool.reach, tool.result_trust.as_deref()), (Reach::Nobody, Some(&trust)));
    assert_eq!(tool.cost, "2.5".parse().ok());
    assert_eq!((tool.warrant_required, tool.min_clearance), (true, Some(14)));
    let modes = [tool.shield.as_ref(), server.shield.as_ref(), tenant.settings.shield.as_ref()];
    let mode = |category| Modes::resolve(modes).of(category);
    assert_eq!([mode(Category::SqlInjection), mode(Category::Secret)], [Mode::Off, Mode::Redact]);
    let agent = read.agent.unwrap();
    assert_eq!((agent.limits.len(), agent.warrant_required), (2, true));
    assert_eq!(agent.request_rate.as_ref().map(|it| it.rate), Some(Rate::new(3, 0.5)));
    assert_eq!(agent.public_key, key.parse().ok());
    let other = load(&database, "free", "k2", "old", false);
    assert_eq!((&other["bans"], &other["server"]), (&Value::Null, &Value::Null));
    assert_eq!(other["warrants"], Value::Null);
    assert_eq!(other["agent"]["request_rate"], request_rate("h"), "that of each agent");
    assert_eq!(
        (&other["agent"]["groups"], &other["agent"]["allowed_tools"]),
        (&json!([]), &Value::Null)
    );
    for list in ["allowed_servers", "allowed_tools", "allowed_networks"] {
        assert_eq!(other["credential"].get(list), Some(&Value::Null), "{list}");
    }
    let read: Loaded = serde_json::from_value(other).unwrap();
    assert_eq!((read.bans, read.credential.unwrap().signed), (None, false));
    assert_eq!(load(&database, "gone", "k3", "github", false)["agent"], Value::Null, "deleted");
    assert_eq!(load(&database, "nobody", "k9", "github", false)["credential"], Value::Null);
    for bound in [MAX_BANS, MAX_WARRANT_ROOTS, MAX_WARRANT_REVOCATIONS] {
        assert!(d1::LOAD_RECORDS.contains(&format!("LIMIT {})", bound + 1)), "{bound}");
    }
}

/// The names of a record's members, sorted. If it is a list, those of its first item. A list or a limit inside of it adds
/// its own members, with its name before them.
fn members(record: &Value) -> Vec<String> {
    let record = record.get(0).unwrap_or(record);
    let named = record.as_object().into_iter().flatten().flat_map(|(name, value)| {
        let has_members = value.is_array() || value.get("limit_id").is_some();
        let inner = if has_members { members(value) } else { Vec::new() };
        let inner = inner.into_iter().map(move |member| format!("{name}.{member}"));
        std::iter::once(name.clone()).chain(inner)
    });
    let mut names: Vec<String> = named.collect();
    names.sort_unstable();
    names
}

#[test]
fn a_new_member_of_a_stored_record_raises_the_version_of_the_records() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    let limits_and_roots = r#"INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision,
          created_at_ms, updated_at_ms, covers) SELECT 'demo', value->>0, value->>1, value->>2,
          '{"kind":"rate","capacity":3,"refill_per_s":0.5}', 'a', 1, 0, 0, value->>3
        FROM json_each('[["a","agent","coder","calls"],["b","credential","k1","calls"],["c","tenant","*","calls"],
          ["d","agent","coder","requests"]]');
        INSERT INTO warrant_roots (tenant, root_id, public_key, allowed_servers, status, created_by, revision,
          created_at_ms, updated_at_ms) VALUES ('demo', 'a', printf('%064d', 5), NULL, 'active', 'ada', 1, 0, 0)"#;
    database.execute_batch(limits_and_roots).unwrap();
    let mut records = load(&database, "coder", "k1", "github", true);
    let listing = params!["demo", "github"];
    let listing: String = database.query_row(d1::LOAD_LISTING, listing, |row| row.get(1)).unwrap();
    records["listing"] = serde_json::from_str(&listing).unwrap();
    let names = RecordKind::ALL.map(|kind| members(&records[kind.as_str()]).join(" "));
    let pinned = [
        "bytes_per_day destinations epoch grace_high_risk_s grace_read_s grace_write_s lanes log_public risk_denials \
         risk_quiet_s risk_window_s rows_per_day shared_limits shared_limits.limit shared_limits.limit.created_at_ms \
         shared_limits.limit.limit_id shared_limits.limit.revision shared_limits.limit.rule shared_limits.subject \
         shared_limits.subject_kind shield status taint_s warrant_alone_trust warrant_max_links warrant_proof_windows \
         warrant_reads_once warrant_required",
        "allowed_tools environment groups lane limits limits.created_at_ms limits.limit_id limits.rule public_key \
         request_rate request_rate.limit_id request_rate.rule risk_tier status warrant_required",
        "agent allowed_networks allowed_servers allowed_tools assigns_runs expires_at_ms first_key_id limits \
         limits.created_at_ms limits.limit_id limits.rule max_source_trust scopes secret_sha256 signed status",
        "inspects_results instructions_sha256 kind shield status trust upstream",
        "approval_ttl_s argument_roles canary cost egress input_schema min_clearance mutates reach result_trust risk \
         shield status tainted warrant_required",
        "expires_at_ms kind subject",
        "revoked roots roots.allowed_servers roots.id roots.public_key",
        "canary definition_sha256 egress mutates status tool",
    ];
    assert_eq!(
        (RECORDS_SHAPE, names.each_ref().map(String::as_str)),
        ("6", pinned),
        "a stored record has other members: if a new one restricts calls, or if one has another form, raise \
         `RECORDS_SHAPE` in `lane/stored_registry.rs`; then write both here"
    );
}

#[test]
fn a_listing_brings_all_tools_of_one_server_with_the_epoch() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    let listing = |tenant: &str, server: &str| -> Option<(u64, Value)> {
        let found = database.query_row(d1::LOAD_LISTING, params![tenant, server], |row| {
            Ok((row.get::<_, i64>(0)? as u64, row.get::<_, String>(1)?))
        });
        found.ok().map(|(epoch, tools)| (epoch, serde_json::from_str(&tools).unwrap()))
    };
    let (epoch, tools) = listing("demo", "github").unwrap();
    assert_eq!(epoch, 7);
    let tools: Vec<ListedTool> = serde_json::from_value(tools).unwrap();
    assert!(!tools.is_empty() && tools.iter().all(|tool| tool.definition_sha256.is_none()));
    assert_eq!(listing("demo", "nowhere"), Some((7, json!([]))));
    assert_eq!(listing("nobody", "github"), None);
    assert!(d1::LOAD_LISTING.contains(&format!("LIMIT {})", MAX_SERVER_TOOLS + 1)));
}

#[test]
fn an_agents_status_is_what_administrators_did_and_not_the_lanes_copy() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    for (flags, loaded, shown) in [
        ("lane_quarantined = 1", "active", "quarantined"),
        ("frozen = 1", "frozen", "quarantined"),
        ("quarantined = 1", "quarantined", "quarantined"),
        ("lane_quarantined = 0", "quarantined", "quarantined"),
        ("revoked = 1", "revoked", "revoked"),
        ("quarantined = 0, revoked = 0", "frozen", "frozen"),
    ] {
        let update = format!("UPDATE agents SET {flags} WHERE tenant = 'demo' AND agent = 'coder'");
        database.execute(&update, []).unwrap();
        let agent = &load(&database, "coder", "k1", "github", false)["agent"];
        let status = "SELECT status FROM agents WHERE tenant = 'demo' AND agent = 'coder'";
        let status: String = database.query_row(status, [], |row| row.get(0)).unwrap();
        assert_eq!((agent["status"].as_str(), status.as_str()), (Some(loaded), shown), "{flags}");
    }
}

#[test]
fn a_list_that_is_left_out_of_a_load_is_no_list_that_restricts_nothing() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    let loaded = load(&database, "coder", "k1", "github", true);
    for (record, list) in [
        ("agent", "allowed_tools"),
        ("credential", "allowed_servers"),
        ("credential", "allowed_tools"),
        ("credential", "allowed_networks"),
        ("credential", "signed"),
    ] {
        let mut without = loaded.clone();
        without[record].as_object_mut().unwrap().remove(list);
        assert!(serde_json::from_value::<Loaded>(without).is_err(), "{record}.{list}");
        let mut wrong = loaded.clone();
        wrong[record][list] = json!(["not a glob", "not a network"]);
        assert!(serde_json::from_value::<Loaded>(wrong).is_err(), "{record}.{list}");
    }
}

#[test]
fn a_reader_is_known_by_its_credential_and_a_deleted_agent_has_no_status() {
    let database = support::database();
    database.execute_batch(REGISTRY).unwrap();
    let mut statement = database.prepare(d1::LOAD_READER).unwrap();
    let columns = "kind,agent,administrator,secret_sha256,scopes,status,expires_at_ms,\
        allowed_networks,signed,tenant_status,lanes,epoch,agent_status,groups,issued_by";
    assert!(statement.column_names().eq(columns.split(',')));
    for (key_id, expected, groups) in [
        ("k1", (Some("coder"), None, Some("active")), "[]"),
        ("k3", (Some("gone"), None, None), "[]"),
        // Neither the member of a deleted group, nor an agent's membership with the same name, counts.
        ("k4", (None, Some("ada"), None), r#"["a"]"#),
    ] {
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get(1)?, row.get(2)?, row.get(12)?, row.get(13)?, row.get(11)?))
        };
        type Row = (Option<String>, Option<String>, Option<String>, String, i64);
        let (agent, administrator, status, of_groups, epoch): Row =
            statement.query_row(params!["demo", key_id], read).unwrap();
        assert_eq!((of_groups.as_str(), epoch), (groups, 7), "{key_id}");
        let actual = (agent.as_deref(), administrator.as_deref(), status.as_deref());
        assert_eq!(actual, expected, "{key_id}");
    }
}

#[test]
fn a_checkpoint_is_not_published_while_d1_lacks_its_last_receipt() {
    let database = support::database();
    let publish = |last: Option<i64>| {
        let values = params!["demo", 9, "a", 1, "", None::<&str>, last];
        database.query_row(d1::PUBLISH, values, |row| row.get::<_, i64>(0)).is_ok()
    };
    assert!(!publish(Some(1)));
    let receipt = "INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, prev_receipt_hash, body) \
         VALUES ('demo', 9, 1, 'decision', 'd', 0, ?1, ?1, '{}')";
    database.execute(receipt, ["0".repeat(64)]).unwrap();
    assert!(publish(Some(1)));
}

#[test]
fn a_cosigned_checkpoint_is_kept_until_witnesses_were_asked_about_a_newer_one() {
    let database = support::database();
    let row = || -> (String, String, String) {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(3)?, row.get(4)?));
        database.query_row(d1::LOG_CHECKPOINT, params!["demo", 9], read).unwrap()
    };
    let publish = |note: &str, read: Option<&str>| {
        let values = params!["demo", 9, note, 1, "", read, None::<i64>];
        let published = database.query_row(d1::PUBLISH, values, |row| row.get::<_, i64>(0));
        assert!(published.is_ok(), "{note}");
    };
    let cosign = |note: &str, lines: &str| {
        database.execute(d1::COSIGN, params!["demo", 9, note, lines]).unwrap();
    };
    let expect = |note: &str, cosignatures: &str, cosigned: &str| {
        let text = str::to_owned;
        assert_eq!(row(), (text(note), text(cosignatures), text(cosigned)));
    };
    publish("a", None);
    expect("a", "", "");
    cosign("a", "+w");
    expect("a", "+w", "");
    publish("b", Some("a"));
    expect("b", "", "a+w");
    // No witness was asked about b.
    publish("c", Some("b"));
    expect("c", "", "a+w");
    cosign("b", "+w");
    expect("c", "", "a+w");
    // No witness answered.
    cosign("c", "");
    expect("c", "", "");
    publish("d", Some("c"));
    expect("d", "", "");
}

#[test]
fn a_deletion_forgets_the_leaves_of_every_tile_that_it_ends_however_many_failed_before() {
    let database = support::database();
    database
        .execute_batch(
            "INSERT INTO log_checkpoints (tenant, lane, note, first, leaves) VALUES ('demo', 0, '', 3, ''), ('demo', 1, '', 3, '');
             WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 19)
             INSERT INTO log_tiles (tenant, lane, level, number, root, leaves)
               SELECT 'demo', lane, level, n, '', 'leaves' FROM n, (SELECT 0 AS lane UNION SELECT 1), (SELECT 0 AS level UNION SELECT 1)",
        )
        .unwrap();
    // Entry 0 is receipt 3. The deletions between these failed.
    for (through, first) in
        [(2, 0), (257, 0), (258, 1), (600, 2), (4_098, 16), (4_098, 16), (4_355, 17)]
    {
        database.execute(d1::PRUNE_LEAVES, params!["demo", 0, through]).unwrap();
        let anchor = params!["demo", 0, through, "0".repeat(64)];
        database.execute(d1::SAVE_ANCHOR, anchor).unwrap();
        let left = "SELECT lane || '.' || level || ': ' || min(number) || ' ' || count(*) FROM log_tiles \
             WHERE leaves IS NOT NULL GROUP BY lane, level ORDER BY lane, level";
        let mut left = database.prepare(left).unwrap();
        let left: Vec<String> =
            left.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let own = format!("0.0: {first} {}", 20 - first);
        assert_eq!(left, [&own, "0.1: 0 20", "1.0: 0 20", "1.1: 0 20"], "{through}");
    }
}

/// A database with the migrations before this one, and this one.
fn before(name: &str) -> (Connection, String) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../d1-migrations");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let at = files.iter().position(|file| file.ends_with(name)).unwrap();
    let read = |file: &std::path::PathBuf| std::fs::read_to_string(file).unwrap();
    let database = Connection::open_in_memory().unwrap();
    for earlier in &files[..at] {
        database.execute_batch(&read(earlier)).unwrap();
    }
    (database, read(&files[at]))
}

#[test]
fn a_daily_quota_of_a_tenant_or_an_agent_becomes_a_limit() {
    let (database, quotas) = before("0026_daily_quotas.sql");
    database
        .execute_batch(
            "INSERT INTO tenants (tenant, quota_per_day, created_at_ms)
               VALUES ('both', 5, 1), ('neither', NULL, 1), ('own', NULL, 1), ('tenant', 5, 1);
             INSERT INTO agents (tenant, agent, lane, environment, quota_per_day, created_at_ms)
               VALUES ('both', 'a', 0, 'e', 9, 2), ('both', 'b', 0, 'e', NULL, 3), ('both', 'gone', 0, 'e', 1, 4),
                 ('neither', 'a', 0, 'e', NULL, 2), ('own', 'a', 0, 'e', 0, 2), ('own', 'b', 0, 'e', NULL, 3),
                 ('tenant', 'a', 0, 'e', NULL, 2), ('tenant', 'gone', 0, 'e', 7, 2);
             UPDATE agents SET deleted_at_ms = 5 WHERE agent = 'gone'",
        )
        .unwrap();
    database.execute_batch(&quotas).unwrap();
    let limits = "SELECT tenant || ' ' || subject_kind || ' ' || subject, json_object('limit_id', limit_id, 'created_at_ms', created_at_ms, 'rule', json(rule)) FROM limits \
        WHERE limit_id LIKE 'daily-calls-%' ORDER BY tenant, subject";
    let mut limits = database.prepare(limits).unwrap();
    let limits: Vec<(String, String)> = limits
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let expected = [
        ("both agent a", "9"),
        ("both agent b", "5"),
        ("own agent a", "0"),
        ("tenant agent *", "5"),
    ];
    assert_eq!(limits.len(), expected.len(), "{limits:?}");
    for ((found, limit), (name, max)) in limits.iter().zip(expected) {
        assert_eq!(found, name);
        let rule = json!({"kind": "quota", "max": max, "window": "day"});
        let limit: Limit = serde_json::from_str(limit).unwrap();
        let expected: Definition = serde_json::from_value(rule).unwrap();
        assert_eq!(limit.rule, expected.rule().unwrap(), "{name}");
    }
    let left =
        "SELECT count(quota_per_day) + (SELECT count(quota_per_day) FROM tenants) FROM agents";
    let left: i64 = database.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn a_request_rate_of_a_tenant_or_an_agent_becomes_a_limit() {
    let (database, rates) = before("0028_request_rates.sql");
    database
        .execute_batch(
            "INSERT INTO tenants (tenant, rate_capacity, rate_refill_per_s, created_at_ms)
               VALUES ('both', 5, 0.5, 1), ('half', 7, NULL, 1), ('none', NULL, NULL, 1);
             INSERT INTO agents (tenant, agent, lane, environment, rate_capacity, rate_refill_per_s, created_at_ms)
               VALUES ('both', 'a', 0, 'e', 9, 2.5, 2), ('both', 'b', 0, 'e', NULL, NULL, 3),
                 ('both', 'gone', 0, 'e', 1, 1, 4), ('half', 'a', 0, 'e', NULL, 4, 2), ('half', 'b', 0, 'e', 3, NULL, 2),
                 ('none', 'a', 0, 'e', 3, NULL, 2), ('none', 'b', 0, 'e', 2000000, 0.0000001, 2),
                 ('none', 'c', 0, 'e', NULL, NULL, 2);
             UPDATE agents SET deleted_at_ms = 5 WHERE agent = 'gone'",
        )
        .unwrap();
    database.execute_batch(&rates).unwrap();
    let limits = "SELECT tenant || ' ' || subject_kind || ' ' || subject, json_object('limit_id', limit_id, 'rule', json(rule)) FROM limits \
        WHERE limit_id LIKE 'request-rate-%' AND covers = 'requests' ORDER BY tenant, subject";
    let mut limits = database.prepare(limits).unwrap();
    let limits: Vec<(String, String)> = limits
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let rates: Vec<_> = limits
        .iter()
        .map(|(name, limit)| {
            let limit: RequestRate = serde_json::from_str(limit).unwrap();
            (name.as_str(), limit.rate)
        })
        .collect();
    let expected = [
        ("both agent *", Rate::new(5, 0.5)),
        ("both agent a", Rate::new(9, 2.5)),
        ("half agent *", Rate::new(7, 100.0)),
        ("half agent a", Rate::new(7, 4.0)),
        ("half agent b", Rate::new(3, 100.0)),
        ("none agent a", Rate::new(3, 100.0)),
        ("none agent b", Rate::new(1_000_000, 0.001)),
    ];
    assert_eq!(rates, expected);
    let left = "SELECT count(coalesce(rate_capacity, rate_refill_per_s)) + (SELECT \
        count(coalesce(rate_capacity, rate_refill_per_s)) FROM tenants) FROM agents";
    let left: i64 = database.query_row(left, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

/// docs/limits.md says so: limits of one kind are checked in this order.
#[test]
fn limits_are_read_by_subject_and_then_by_id() {
    let database = support::database();
    database
        .execute_batch(
            r#"INSERT INTO tenants (tenant, created_at_ms) VALUES ('demo', 0);
               INSERT INTO agents (tenant, agent, lane, environment, created_at_ms) VALUES ('demo', 'bot', 0, 'e', 0);
               WITH made (kind, subject, id) AS (VALUES ('agent', 'bot', 'l2'), ('agent', '*', 'l9'), ('agent', 'bot', 'l1'),
                 ('agent', '*', 'l8'), ('user', '*', 'l3'), ('tenant', '*', 'l5'), ('group', 'g', 'l7'), ('tenant', '*', 'l4'),
                 ('tool', 'x/*', 'l0'), ('server', 'x', 'l6'))
               INSERT INTO limits (tenant, limit_id, subject_kind, subject, rule, created_by, revision, created_at_ms, updated_at_ms)
                 SELECT 'demo', id, kind, subject, '{"kind":"concurrency","max":"1"}', 'ada', 1, 0, 0 FROM made"#,
        )
        .unwrap();
    let read = |column: &str| -> Vec<Value> {
        let key = params!["demo", "bot", None::<String>];
        let text: String = database.query_row(d1::LIMITS_OF, key, |row| row.get(column)).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let ids = |limits: Vec<Value>, pointer: &str| -> Vec<String> {
        let id = |limit: &Value| limit.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        limits.iter().map(id).collect()
    };
    assert_eq!(ids(read("of_agent"), "/limit_id"), ["l8", "l9", "l1", "l2"]);
    let shared = ids(read("shared"), "/limit/limit_id");
    assert_eq!(shared, ["l7", "l6", "l4", "l5", "l0", "l3"]);
}

#[test]
fn a_database_from_before_subjects_gets_one_for_each_administrator() {
    let (database, subjects) = before("0012_subjects.sql");
    database.execute_batch(REGISTRY).unwrap();
    database
        .execute_batch(
            r#"INSERT INTO credentials (tenant, key_id, kind, administrator, secret_sha256, created_at_ms)
                 VALUES ('demo', 'k5', 'administrator', 'ada', printf('%064d', 5), 9),
                   ('demo', 'k6', 'administrator', 'bob', printf('%064d', 6), 5);
               INSERT INTO audit_events (tenant, event_id, at_ms, kind, source, detail)
                 VALUES ('demo', 'registry.2', 0, 'bootstrapped', 'bootstrap', '{"administrator":"ada"}'),
                   ('other', 'registry.2', 0, 'credential_created', 'x', '{"administrator":"ada"}')"#,
        )
        .unwrap();
    database.execute_batch(&subjects).unwrap();
    let mut rows = database
        .prepare(
            "SELECT tenant || '/' || subject || ' ' || created_by || ' ' || first FROM subjects",
        )
        .unwrap();
    let rows: Vec<String> =
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let expected = [
        "demo/ada _unknown 1",
        "demo/bob _unknown 0",
        // A member whose credentials were deleted.
        "demo/free _unknown 0",
        "other/ada _unknown 0",
    ];
    assert_eq!(rows, expected);
}
