//! Command lines, and what each asks the API: the method and target, and the body.

use serde_json::{Value, json};

pub fn requests() -> Vec<(&'static str, &'static str, Value)> {
    let none = Value::Null;
    vec![
        ("bootstrap --tenant t", "POST /v1/bootstrap", json!({"tenant": "t"})),
        (
            "bootstrap --tenant t --administrator mara",
            "POST /v1/bootstrap",
            json!({"tenant": "t", "administrator": "mara"}),
        ),
        ("tenant create t --lanes 4", "POST /v1/tenants", json!({"tenant": "t", "lanes": 4})),
        ("tenant list", "GET /v1/tenants", none.clone()),
        ("tenant show t", "GET /v1/tenants/t", none.clone()),
        (
            "tenant update t --status suspended",
            "PATCH /v1/tenants/t",
            json!({"status": "suspended"}),
        ),
        ("tenant update t --lanes 8", "PATCH /v1/tenants/t", json!({"lanes": 8})),
        (
            "tenant update t --rows-per-day 9 --bytes-per-day default --retention-days 30",
            "PATCH /v1/tenants/t",
            json!({"rows_per_day": 9, "bytes_per_day": null, "retention_days": 30}),
        ),
        (
            "tenant update t --own-domain a.example --own-domain b.example --own-host c.example",
            "PATCH /v1/tenants/t",
            json!({"destinations": {"accounts": [], "domains": ["a.example", "b.example"],
                "hosts": ["c.example"]}}),
        ),
        ("tenant update t --no-destinations", "PATCH /v1/tenants/t", json!({"destinations": null})),
        ("tenant delete t", "DELETE /v1/tenants/t", none.clone()),
        (
            "limit create l --agent a --kind amount --max 9.5 --pointer /n --window day --currency EUR \
             --currency-pointer /c --tool s/* --access write --time-zone Europe/Berlin --unclear return",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "agent", "subject": "a", "rule": {
                "kind": "amount", "max": "9.5", "pointer": "/n", "window": "day", "tools": ["s/*"],
                "currency": {"pointer": "/c", "is": "EUR"}, "access": "write",
                "time_zone": "Europe/Berlin", "unclear": "return"}}),
        ),
        (
            "limit create l --credential * --kind hours --day mon --hours 09:00-17:00 --hours 18:00-19:00",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "credential", "subject": "*", "rule": {
                "kind": "hours", "days": ["mon"], "hours": ["09:00-17:00", "18:00-19:00"]}}),
        ),
        (
            "limit create l --agent a --kind rate --capacity 5 --refill-per-s 0.5",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "agent", "subject": "a", "rule": {
                "kind": "rate", "capacity": 5, "refill_per_s": 0.5}}),
        ),
        (
            "limit create l --agent * --covers requests --kind rate --capacity 5 --refill-per-s 0.5",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "agent", "subject": "*", "covers": "requests", "rule": {
                "kind": "rate", "capacity": 5, "refill_per_s": 0.5}}),
        ),
        (
            "limit create l --tenant-wide --kind concurrency --max 3",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "tenant", "subject": "*", "rule": {
                "kind": "concurrency", "max": "3"}}),
        ),
        (
            "limit create l --group * --kind concurrency --max 3",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "group", "subject": "*", "rule": {
                "kind": "concurrency", "max": "3"}}),
        ),
        (
            "limit create l --each-tool s/* --kind concurrency --max 3",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "tool", "subject": "s/*", "rule": {
                "kind": "concurrency", "max": "3"}}),
        ),
        (
            "limit create l --each-server s --kind concurrency --max 3",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "server", "subject": "s", "rule": {
                "kind": "concurrency", "max": "3"}}),
        ),
        (
            "limit create l --user u --kind concurrency --max 3",
            "POST /v1/limits",
            json!({"limit_id": "l", "subject_kind": "user", "subject": "u", "rule": {
                "kind": "concurrency", "max": "3"}}),
        ),
        ("limit list", "GET /v1/limits", none.clone()),
        ("limit show l", "GET /v1/limits/l", none.clone()),
        ("limit status", "GET /v1/limits/status", none.clone()),
        (
            "limit status --agent a --credential k",
            "GET /v1/limits/status?agent=a&credential=k",
            none.clone(),
        ),
        ("limit status --limit l", "GET /v1/limits/status?limit=l", none.clone()),
        (
            "limit status --limit l --subject s/t",
            "GET /v1/limits/status?limit=l&subject=s%2Ft",
            none.clone(),
        ),
        ("limit update l --max 3", "PATCH /v1/limits/l", json!({"rule": {"max": "3"}})),
        ("limit delete l", "DELETE /v1/limits/l", none.clone()),
        ("settings show", "GET /v1/settings", none.clone()),
        (
            "settings set --taint-s 600 --risk-denials default",
            "PATCH /v1/settings",
            json!({"taint_s": 600, "risk_denials": null}),
        ),
        (
            "settings set --risk-denials 3 --risk-window-s 60 --risk-quiet-s 900",
            "PATCH /v1/settings",
            json!({"risk_denials": 3, "risk_window_s": 60, "risk_quiet_s": 900}),
        ),
        (
            "agent create a --environment e",
            "POST /v1/agents",
            json!({"agent": "a", "environment": "e"}),
        ),
        (
            "agent create a --environment e --risk-tier high --allowed-tool x/*",
            "POST /v1/agents",
            json!({"agent": "a", "environment": "e", "risk_tier": "high", "allowed_tools": ["x/*"]}),
        ),
        (
            "webhook set https://hooks.example.com/x",
            "PUT /v1/webhook",
            json!({"url": "https://hooks.example.com/x"}),
        ),
        ("webhook show", "GET /v1/webhook", none.clone()),
        ("webhook delete", "DELETE /v1/webhook", none.clone()),
        ("agent list", "GET /v1/agents", none.clone()),
        ("agent show a", "GET /v1/agents/a", none.clone()),
        ("agent update a --environment e", "PATCH /v1/agents/a", json!({"environment": "e"})),
        ("agent delete a", "DELETE /v1/agents/a", none.clone()),
        ("agent freeze a", "POST /v1/agents/a/freeze", none.clone()),
        ("agent unfreeze a", "POST /v1/agents/a/unfreeze", none.clone()),
        ("agent revoke a", "POST /v1/agents/a/revoke", none.clone()),
        ("agent restore a", "POST /v1/agents/a/restore", none.clone()),
        ("agent quarantine a", "POST /v1/agents/a/quarantine", none.clone()),
        ("agent grant a x/*", "GET /v1/agents/a", none.clone()),
        ("agent ungrant a x/*", "GET /v1/agents/a", none.clone()),
        ("administrator create mara", "POST /v1/administrators", json!({"administrator": "mara"})),
        ("administrator list", "GET /v1/administrators", none.clone()),
        ("administrator show mara", "GET /v1/administrators/mara", none.clone()),
        ("administrator delete mara", "DELETE /v1/administrators/mara", none.clone()),
        (
            "administrator delete mara --yes",
            "DELETE /v1/administrators/mara?last=true",
            none.clone(),
        ),
        ("group protect g", "POST /v1/groups/g/protect", none.clone()),
        ("group unprotect g", "POST /v1/groups/g/unprotect", none.clone()),
        (
            "credential create --agent a --max-source-trust unknown",
            "POST /v1/credentials",
            json!({"kind": "agent", "agent": "a", "max_source_trust": "unknown"}),
        ),
        (
            "credential create --administrator m --scope audit:read --scope registry:read --signed \
            --expires-at 2027-01-01T00:00:00Z --no-servers --any-tool --allowed-network ::1 \
            --allowed-network 192.0.2.0/24",
            "POST /v1/credentials",
            json!({"kind": "administrator", "administrator": "m", "signed": true,
                "scopes": ["audit:read", "registry:read"], "expires_at": "2027-01-01T00:00:00Z",
                "allowed_servers": [], "allowed_tools": null,
                "allowed_networks": ["::1", "192.0.2.0/24"]}),
        ),
        ("credential list --agent a", "GET /v1/credentials?agent=a", none.clone()),
        ("credential show k", "GET /v1/credentials/k", none.clone()),
        ("credential rotate k", "POST /v1/credentials/k/rotate", json!({})),
        (
            "credential rotate k --overlap-s 0",
            "POST /v1/credentials/k/rotate",
            json!({"overlap_s": 0}),
        ),
        ("credential revoke k", "POST /v1/credentials/k/revoke", none.clone()),
        ("credential revoke k --yes", "POST /v1/credentials/k/revoke?last=true", none.clone()),
        ("receipts list", "GET /v1/receipts?lane=0&from=1&limit=500", none.clone()),
        (
            "receipts list --lane 2 --from 7 --limit 3",
            "GET /v1/receipts?lane=2&from=7&limit=3",
            none.clone(),
        ),
        ("receipts show rcpt_0_1", "GET /v1/receipts/rcpt_0_1", none.clone()),
        ("receipts verify --lane 3", "GET /v1/receipts/ends?lane=3", none.clone()),
        ("group create g", "POST /v1/groups", json!({"group": "g"})),
        ("group list", "GET /v1/groups", none.clone()),
        ("group show g", "GET /v1/groups/g", none.clone()),
        ("group delete g", "DELETE /v1/groups/g", none.clone()),
        ("group members g", "GET /v1/groups/g/members", none.clone()),
        ("group add g --agent a", "PUT /v1/groups/g/members/agents/a", none.clone()),
        (
            "group add g --administrator m",
            "PUT /v1/groups/g/members/administrators/m",
            none.clone(),
        ),
        ("group remove g --agent a", "DELETE /v1/groups/g/members/agents/a", none.clone()),
        (
            "server create s --kind mcp --trust trusted",
            "POST /v1/servers",
            json!({"server": "s", "kind": "mcp", "trust": "trusted"}),
        ),
        (
            "server create s --kind mcp --upstream-url http://127.0.0.1:3001/mcp --local \
            --credential-binding UPSTREAM_S --credential-header x-api-key --denial error \
            --first-byte-timeout-ms 1000 --max-result-bytes default",
            "POST /v1/servers",
            json!({"server": "s", "kind": "mcp", "upstream": {
                "url": "http://127.0.0.1:3001/mcp", "local": true, "denial": "error",
                "credential": {"binding": "UPSTREAM_S", "header": "x-api-key"},
                "first_byte_timeout_ms": 1000, "max_result_bytes": null}}),
        ),
        (
            "server update s --no-credential --no-routes --local=false --idle-timeout-ms 5 \
            --whole-timeout-ms 6",
            "PATCH /v1/servers/s",
            json!({"upstream": {"credential": null, "routes": [], "local": false,
                "idle_timeout_ms": 5, "whole_timeout_ms": 6}}),
        ),
        (
            "server update s --forwarded-header x-api-version --forwarded-header prefer --shared-cache",
            "PATCH /v1/servers/s",
            json!({"upstream": {"forwarded_headers": ["x-api-version", "prefer"],
                "shared_cache": true}}),
        ),
        (
            "server update s --no-forwarded-headers --shared-cache=false",
            "PATCH /v1/servers/s",
            json!({"upstream": {"forwarded_headers": [], "shared_cache": false}}),
        ),
        ("server update s --no-upstream", "PATCH /v1/servers/s", json!({"upstream": null})),
        ("server update s --discover", "PATCH /v1/servers/s", json!({"upstream": {}})),
        ("server list", "GET /v1/servers", none.clone()),
        ("server show s", "GET /v1/servers/s", none.clone()),
        ("server update s --trust untrusted", "PATCH /v1/servers/s", json!({"trust": "untrusted"})),
        ("server delete s", "DELETE /v1/servers/s", none.clone()),
        ("server approve s", "POST /v1/servers/s/approve", none.clone()),
        ("server disable s", "POST /v1/servers/s/disable", none.clone()),
        ("server quarantine s", "POST /v1/servers/s/quarantine", none.clone()),
        ("server restore s", "POST /v1/servers/s/restore", none.clone()),
        (
            "tool create s/t --mutates true --risk high --canary",
            "POST /v1/servers/s/tools",
            json!({"tool": "t", "mutates": true, "risk": "high", "canary": true}),
        ),
        (
            "tool create s/t --mutates false --egress true --risk low",
            "POST /v1/servers/s/tools",
            json!({"tool": "t", "mutates": false, "egress": true, "risk": "low"}),
        ),
        (
            "tool create s/a/b --mutates false --risk low",
            "POST /v1/servers/s/tools",
            json!({"tool": "a/b", "mutates": false, "risk": "low"}),
        ),
        (
            "tool create s/t --mutates true --risk high --approval-ttl 3600",
            "POST /v1/servers/s/tools",
            json!({"tool": "t", "mutates": true, "risk": "high", "approval_ttl_s": 3600}),
        ),
        (
            "tool update s/t --no-input-schema",
            "PATCH /v1/servers/s/tools/t",
            json!({"input_schema": null}),
        ),
        ("tool update s/t --cost 2.5", "PATCH /v1/servers/s/tools/t", json!({"cost": "2.5"})),
        ("tool update s/t --cost default", "PATCH /v1/servers/s/tools/t", json!({"cost": null})),
        (
            "tool update s/t --approval-ttl default",
            "PATCH /v1/servers/s/tools/t",
            json!({"approval_ttl_s": null}),
        ),
        (
            "tool update s/t --role /to/*=sink --role /a=b=detail --reach by_sinks --result-trust =trusted",
            "PATCH /v1/servers/s/tools/t",
            json!({"argument_roles": {"/to/*": "sink", "/a=b": "detail"}, "reach": "by_sinks",
                "result_trust": {"": "trusted"}}),
        ),
        (
            "tool update s/t --no-roles --no-result-trust",
            "PATCH /v1/servers/s/tools/t",
            json!({"argument_roles": null, "result_trust": null}),
        ),
        (
            "tool create s/t --mutates true --risk low --role /to=sink --reach nobody",
            "POST /v1/servers/s/tools",
            json!({"tool": "t", "mutates": true, "risk": "low", "argument_roles": {"/to": "sink"},
                "reach": "nobody"}),
        ),
        ("tool list s", "GET /v1/servers/s/tools", none.clone()),
        ("tool show s/a/B.1", "GET /v1/servers/s/tools/a%2FB.1", none.clone()),
        ("tool update s/t --egress true", "PATCH /v1/servers/s/tools/t", json!({"egress": true})),
        (
            "tool update s/t --canary=false --mutates false",
            "PATCH /v1/servers/s/tools/t",
            json!({"canary": false, "mutates": false}),
        ),
        ("tool approve s/a/b", "GET /v1/servers/s/tools/a%2Fb", none.clone()),
        (
            "tool approve s/a/b --reads --definition-sha256 aa",
            "GET /v1/servers/s/tools/a%2Fb",
            none.clone(),
        ),
        (
            "tool approve s/a/b --definition-sha256 aa",
            "POST /v1/servers/s/tools/a%2Fb/approve",
            json!({"definition_sha256": "aa"}),
        ),
        ("tool disable s/t", "POST /v1/servers/s/tools/t/disable", none.clone()),
        ("tool quarantine s/t", "POST /v1/servers/s/tools/t/quarantine", none.clone()),
        ("tool restore s/t", "POST /v1/servers/s/tools/t/restore", none.clone()),
        (
            "ban create run r --reason loop",
            "POST /v1/bans",
            json!({"kind": "run", "subject": "r", "reason": "loop"}),
        ),
        (
            "ban create source_address 192.0.2.0/24 --expires-at 2027-01-01T00:00:00Z",
            "POST /v1/bans",
            json!({"kind": "source_address", "subject": "192.0.2.0/24",
                "expires_at": "2027-01-01T00:00:00Z"}),
        ),
        ("ban list --cursor c=", "GET /v1/bans?cursor=c%3D", none.clone()),
        ("ban show b", "GET /v1/bans/b", none.clone()),
        ("ban delete b", "DELETE /v1/bans/b", none.clone()),
        (
            "warrant-root create ci --public-key aa --description d --allowed-server git*",
            "POST /v1/warrant-roots",
            json!({"root_id": "ci", "public_key": "aa", "description": "d", "allowed_servers": ["git*"]}),
        ),
        ("warrant-root list", "GET /v1/warrant-roots", none.clone()),
        ("warrant-root show ci", "GET /v1/warrant-roots/ci", none.clone()),
        (
            "warrant-root update ci --status disabled --no-description --any-server",
            "PATCH /v1/warrant-roots/ci",
            json!({"status": "disabled", "description": null, "allowed_servers": null}),
        ),
        ("warrant-root delete ci", "DELETE /v1/warrant-roots/ci", none.clone()),
        (
            "warrant-revocation create tnu_wrt_aa --reason stolen",
            "POST /v1/warrant-revocations",
            json!({"warrant_id": "tnu_wrt_aa", "reason": "stolen"}),
        ),
        ("warrant-revocation list", "GET /v1/warrant-revocations", none.clone()),
        ("warrant-revocation show aa", "GET /v1/warrant-revocations/aa", none.clone()),
        (
            "agent update a --public-key aa --warrant-required true",
            "PATCH /v1/agents/a",
            json!({"public_key": "aa", "warrant_required": true}),
        ),
        ("agent update a --no-public-key", "PATCH /v1/agents/a", json!({"public_key": null})),
        (
            "tool update s/t --min-clearance 3 --warrant-required false",
            "PATCH /v1/servers/s/tools/t",
            json!({"min_clearance": 3, "warrant_required": false}),
        ),
        (
            "tool update s/t --no-min-clearance",
            "PATCH /v1/servers/s/tools/t",
            json!({"min_clearance": null}),
        ),
        (
            "settings set --warrant-max-links 3 --warrant-reads-once true --warrant-required default --warrant-alone-trust unknown --log-public true",
            "PATCH /v1/settings",
            json!({"warrant_max_links": 3, "warrant_reads_once": true, "warrant_required": null,
                "warrant_alone_trust": "unknown", "log_public": true}),
        ),
        (
            "settings set --shield sql_injection=block,secret=redact",
            "PATCH /v1/settings",
            json!({"shield": {"sql_injection": "block", "secret": "redact"}}),
        ),
        ("settings set --shield default", "PATCH /v1/settings", json!({"shield": null})),
        (
            "server create s --kind mcp --shield secret=off --inspects-results true",
            "POST /v1/servers",
            json!({"server": "s", "kind": "mcp", "shield": {"secret": "off"},
                "inspects_results": true}),
        ),
        (
            "server update s --shield default --inspects-results false",
            "PATCH /v1/servers/s",
            json!({"shield": null, "inspects_results": false}),
        ),
        (
            "tool create s/t --mutates true --risk low --shield path_traversal=block",
            "POST /v1/servers/s/tools",
            json!({"tool": "t", "mutates": true, "risk": "low",
                "shield": {"path_traversal": "block"}}),
        ),
        (
            "tool update s/t --shield default",
            "PATCH /v1/servers/s/tools/t",
            json!({"shield": null}),
        ),
        ("approvals list", "GET /v1/approvals", none.clone()),
        (
            "approvals list --status pending --group g --agent a --cursor c",
            "GET /v1/approvals?status=pending&group=g&agent=a&cursor=c",
            none.clone(),
        ),
        (
            "approvals watch --group g --agent a",
            "GET /v1/approvals?status=pending&group=g&agent=a",
            none.clone(),
        ),
        ("approvals show appr_0_1", "GET /v1/approvals/appr_0_1", none.clone()),
        ("approvals approve appr_0_1 --comment c", "GET /v1/approvals/appr_0_1", none.clone()),
        ("approvals reject appr_0_1", "GET /v1/approvals/appr_0_1", none.clone()),
        ("approvals cancel appr_0_1 --if-match 2", "GET /v1/approvals/appr_0_1", none.clone()),
        (
            "audit list --kind registry --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z",
            "GET /v1/audit-events?kind=registry&from=2026-01-01T00%3A00%3A00Z&to=2026-02-01T00%3A00%3A00Z",
            none.clone(),
        ),
        (
            "decisions list --agent a --decision deny --from x",
            "GET /v1/decisions?agent=a&decision=deny&from=x",
            none.clone(),
        ),
        ("decisions show d", "GET /v1/decisions/d", none.clone()),
        ("decisions follow --agent a", "GET /v1/decisions", none.clone()),
    ]
}
