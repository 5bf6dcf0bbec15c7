//! How long records are cached, how many, and what a push of a new epoch drops.

use super::*;
use crate::call;
use crate::json::Json;

const TTL_MS: u64 = 1_000;

fn command(tool: &str) -> GateCommand {
    let body = format!(
        r#"{{"agent":{{"id":"bot","environment":"e"}},
            "tool_call":{{"tool":"s","action":"{tool}","mutates_state":false,"parameters":{{}}}},
            "context":{{"source_trust":"","contains_sensitive_data":false}}}}"#
    );
    GateCommand {
        tenant: "t".to_owned(),
        lane: 0,
        key_id: "k".to_owned(),
        secret_hash: [0; 32],
        located: false,
        http_request_id: String::new(),
        trace_id: None,
        source_address: None,
        signed: false,
        run_credential: false,
        forwarded: false,
        signature_nonce: None,
        purpose: Purpose::Authorize,
        session: None,
        parameters: Vec::new(),
        beside: Json::Null,
        warrant: None,
        call: call::parse(body.as_bytes(), "t").unwrap().0,
    }
}

/// What a load brings; `mark` tells servers apart.
fn loaded(epoch: u64, mark: &str) -> Loaded {
    serde_json::from_value(serde_json::json!({
        "tenant": {"status": "active", "epoch": epoch},
        "agent": null, "credential": null, "tool": null, "bans": [],
        "warrants": {"roots": [], "revoked": []},
        "server": {"kind": "mcp", "trust": "trusted", "status": "active",
            "instructions_sha256": mark},
    }))
    .unwrap()
}

/// What is cached for `command`: `None`, or the server's mark and whether it is complete.
fn cached(cache: &RegistryCache, command: &GateCommand, now_ms: u64) -> Option<(String, bool)> {
    let (records, complete) = cache.records(command, now_ms, TTL_MS)?;
    let mark = records.server.and_then(|server| server.instructions_sha256.clone());
    Some((mark.unwrap_or_default(), complete))
}

#[test]
fn records_are_of_one_epoch_which_was_confirmed_in_time() {
    let (x, y) = (command("x"), command("y"));
    let mut cache = RegistryCache::default();
    assert_eq!(cached(&cache, &x, 0), None, "nothing was read");
    cache.accept(&x, loaded(5, "old"), 100);
    assert_eq!(cached(&cache, &x, 100), Some(("old".to_owned(), true)), "absent records count");
    assert_eq!(cached(&cache, &y, 100), Some(("old".to_owned(), false)), "another tool");
    assert_eq!(cached(&cache, &x, 1_099), Some(("old".to_owned(), true)));
    assert_eq!(cached(&cache, &x, 1_100), None, "the epoch was not confirmed in time");
    assert!(cache.confirm(5, 1_000));
    assert_eq!(cached(&cache, &x, 1_100), Some(("old".to_owned(), true)), "now it is");
    assert!(cache.confirm(6, 1_200));
    assert_eq!(cached(&cache, &x, 1_200), None, "a newer epoch empties the cache");
    cache.accept(&x, loaded(5, "old"), 1_300);
    assert_eq!(cached(&cache, &x, 1_300), None, "what was read at an older epoch is thrown away");
    cache.accept(&x, loaded(6, "new"), 1_250);
    assert_eq!(cached(&cache, &x, 1_300), Some(("new".to_owned(), true)));
    assert!(!cache.confirm(5, 9_000), "an older epoch confirms nothing");
    assert_eq!(cached(&cache, &x, 9_000), None);
}

/// An object that starts after an upgrade may have stored bans, and no warrants yet.
#[test]
fn a_list_that_is_not_stored_is_loaded_and_does_not_count_as_empty() {
    let x = command("x");
    let record = |kind: RecordKind, name: &str, text: &str| StoredRecord {
        kind,
        name: name.to_owned(),
        text: text.to_owned(),
    };
    let tenant = r#"{"status":"active","epoch":5}"#;
    let without = vec![
        record(RecordKind::Tenant, "", tenant),
        record(RecordKind::Agent, "bot", "null"),
        record(RecordKind::Credential, "k", "null"),
        record(RecordKind::Bans, "", "[]"),
    ];
    let mut cache = RegistryCache::default();
    cache.resume(5, Some(100));
    cache.restore(without).unwrap();
    assert_eq!(cached(&cache, &x, 100), None);
    assert!(cache.needs_lists());
    let warrants = record(RecordKind::Warrants, "", r#"{"roots":[],"revoked":[]}"#);
    cache.restore(vec![warrants]).unwrap();
    assert_eq!(cached(&cache, &x, 100), Some((String::new(), false)));
    assert!(!cache.needs_lists());
}

#[test]
fn a_full_cache_is_read_anew() {
    let mut cache = RegistryCache::default();
    for at in 0..=MAX_CACHED_RECORDS {
        cache.accept(&command(&format!("tool-{at}")), loaded(1, "s"), 0);
    }
    assert_eq!(cache.tools.len(), 1);
}

#[test]
fn the_schemas_of_tools_stay_within_their_bytes() {
    let mut cache = RegistryCache::default();
    let mut most = 0;
    for at in 0..600 {
        let mut loaded = loaded(1, "s");
        loaded.tool = serde_json::from_value(serde_json::json!({
            "status": "pending", "mutates": 0, "risk": "low", "canary": 0,
            "approval_ttl_s": null, "tainted": "require_approval",
            "input_schema": "x".repeat(64 * 1024),
        }))
        .unwrap();
        cache.accept(&command(&format!("tool-{at}")), loaded, 0);
        assert!(cache.tools.contains_key(&format!("s/tool-{at}")));
        most = most.max(cache.tools.len());
    }
    assert_eq!(most * 64 * 1024, MAX_CACHED_SCHEMA_BYTES);
}

#[test]
fn a_push_drops_what_it_names_and_only_where_nothing_was_missed() {
    use ChangedKey::{Agent, All, Bans, Credential, Server, Tenant, Tool, Warrants};
    let text = str::to_owned;
    type Expected = Option<(&'static str, bool)>;
    let cases: [(&str, u64, u64, Vec<ChangedKey>, Expected); 15] = [
        ("nothing that is held", 5, 6, vec![Agent(text("a2"))], Some(("k", true))),
        ("the tenant", 5, 6, vec![Tenant], None),
        ("the agent", 5, 6, vec![Agent(text("bot"))], None),
        ("the credential", 5, 6, vec![Credential(text("k"))], None),
        ("the server", 5, 6, vec![Server(text("s"))], Some(("", false))),
        ("another server", 5, 6, vec![Server(text("s2"))], Some(("k", true))),
        ("the tool", 5, 6, vec![Tool(text("s/x"))], Some(("k", false))),
        ("another tool", 5, 6, vec![Tool(text("s/y"))], Some(("k", true))),
        ("the bans", 5, 6, vec![Bans], None),
        ("the warrants", 5, 6, vec![Warrants], None),
        ("all", 5, 6, vec![All], None),
        ("a push before it was lost", 6, 7, vec![], None),
        ("one that is known", 4, 5, vec![All], Some(("k", true))),
        ("one from before", 3, 4, vec![All], Some(("k", true))),
        ("several at once", 5, 9, vec![Tool(text("s/y"))], Some(("k", true))),
    ];
    for (name, from, epoch, keys, expected) in cases {
        let x = command("x");
        let mut cache = RegistryCache::default();
        cache.accept(&x, loaded(5, "k"), 100);
        cache.push(&EpochPush { from, epoch, keys });
        let expected = expected.map(|(mark, complete)| (mark.to_owned(), complete));
        assert_eq!(cached(&cache, &x, 1_099), expected, "{name}");
        assert_eq!(cached(&cache, &x, 1_100), None, "{name}: a push confirms nothing");
        if let Some((records, _)) = cache.records(&x, 100, TTL_MS) {
            assert_eq!(records.tenant.unwrap().epoch, epoch.max(5), "{name}");
        }
        let before = cached(&cache, &x, 1_099);
        cache.accept(&x, loaded(epoch.max(5) - 1, "slow"), 200);
        assert_eq!(cached(&cache, &x, 1_099), before, "{name}: a slow load");
    }
}
