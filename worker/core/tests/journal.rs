//! A journal that grows while D1 is away: the space of its rows, and what a lane reads when it starts with it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{self, Gate, command, read_call, tool, with};
use gateward_core::approval::ApproverGroup;
use gateward_core::bounds::{MAX_LABEL_BYTES, MAX_NAME_BYTES, MAX_RESOURCE_BYTES, MAX_TOOL_BYTES};
use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::gate::config::JOURNAL_ROW_BYTES;
use gateward_core::gate::{MAX_APPROVER_GROUPS, MAX_MATCHED_POLICIES, MAX_REDACT_BYTES};
use gateward_core::provenance::{Level, Provenance, Reach, SinkOrigin};
use gateward_core::receipt::{
    self, BODY_VERSION, Body, DecisionBody, Ending, GENESIS, MAX_RECEIPT_BYTES, Obligations,
    OutcomeBody, ReceiptKind, WarrantNote, seal,
};
use gateward_core::shield::{
    Category, Decoding, Finding, MAX_FINDINGS, MAX_POINTER_BYTES, Noted, Severity,
};
use gateward_core::taint::{TaintExplanation, TaintingCall};
use gateward_core::tlog::tile::bundle;
use gateward_core::trust::SourceTrust;
use serde_json::{Value, json};

/// Rows after which the lane takes a checkpoint of itself (`lane/checkpoint.rs`).
const CHECKPOINT_ROWS: i64 = 1_000;

fn call_of(agent: &str) -> Value {
    with(read_call(), json!({"agent": {"id": agent}}))
}

/// A number that a query on the lane's storage gives.
fn stored(gate: &Gate, query: &str) -> i64 {
    gate.storage.connection.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Journal rows that a start would read.
fn rows_of_a_start(gate: &Gate) -> i64 {
    let after = |mark: &str| {
        stored(gate, &format!("SELECT count(*) FROM journal WHERE seq > coalesce({mark}, 0)"))
    };
    let checkpoint = "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'checkpoint')";
    // day:begins_after:bytes:through
    let day = "(SELECT CAST(json_extract('[' || replace(value, ':', ',') || ']', '$[3]') AS INTEGER) \
         FROM meta WHERE name = 'day')";
    after(checkpoint).max(after(day))
}

/// Agents that each call a share of `calls` times, in turn.
fn calls_of_agents(gate: &mut Gate, calls: usize, agents: usize) {
    for at in 0..calls {
        let agent = format!("agent-{}", at % agents);
        gate.credential_mut().agent = Some(agent.clone());
        assert_eq!(gate.call(&call_of(&agent)).0, 200);
    }
}

#[test]
fn a_start_reads_a_bounded_number_of_rows_however_long_the_journal_is() {
    let mut gate = Gate::new();
    for rows in [10, 980, 20, 1_500, 700] {
        calls_of_agents(&mut gate, rows, 7);
        assert!(rows_of_a_start(&gate) <= CHECKPOINT_ROWS);
        gate.evict();
    }
    assert_eq!(gate.on_lane(|lane, _| Ok(lane.journal_rows())), Ok(3_210));
    assert_eq!(gate.receipts().len(), 3_210);
    gate.config.flush_batch_rows = 300;
    gate.flush_all();
    assert_eq!(gate.count("SELECT count(*) FROM receipts"), 3_210);
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(GENESIS)), Ok(()));
    assert_eq!(stored(&gate, "SELECT count(*) FROM agents"), 7);
}

#[test]
fn an_agent_whose_rows_are_before_the_checkpoint_keeps_its_state_through_eviction_and_flush() {
    for between in [Gate::evict as fn(&Gate), |gate| drop(gate.flush(None)), Gate::flush_all] {
        let mut gate = Gate::new();
        gate.agent_mut().limits = support::daily(200);
        gate.quarantine();
        calls_of_agents(&mut gate, 2_100, 20);
        between(&gate);
        gate.evict();
        gate.credential_mut().agent = Some("coder".to_owned());
        assert_eq!(gate.call(&read_call()).1["reason_code"], "agent_quarantined");
        // Each has used up its 105 calls.
        calls_of_agents(&mut gate, 95 * 20, 20);
        assert_eq!(gate.call(&call_of("agent-19")).1["reason_code"], "quota_exhausted");
    }
}

#[test]
fn a_row_that_is_missing_is_noticed_at_the_start_or_before_the_flush_that_would_skip_it() {
    for (missing, starts) in [("seq = 3300", false), ("seq = 500", true), ("seq > 2000", false)] {
        let mut gate = Gate::new();
        gate.on_lane(|lane, storage| lane.adopt(storage, "demo", 0)).unwrap();
        calls_of_agents(&mut gate, 3_400, 3);
        gate.evict();
        let delete = format!("DELETE FROM journal WHERE {missing}");
        gate.storage.connection.execute_batch(&delete).unwrap();
        assert_eq!(gate.try_call(&command(&call_of("agent-2"))).is_ok(), starts, "{missing}");
        gate.config.flush_batch_rows = 200;
        while gate.flush(None).is_ok() {}
        assert!(gate.flush(None).unwrap_err().contains("rows are missing"), "{missing}");
        let through = gate.count("SELECT coalesce(max(seq), 0) FROM receipts");
        assert_eq!(through, if starts { 400 } else { 0 }, "{missing}");
    }
}

/// A lane's storage of an older version: no checkpoint, and nothing that one would have copied.
#[test]
fn a_journal_of_a_version_without_checkpoints_is_read_whole_once() {
    let mut gate = Gate::new();
    calls_of_agents(&mut gate, 1_300, 3);
    gate.evict();
    gate.storage
        .connection
        .execute_batch("DELETE FROM meta WHERE name = 'checkpoint'; DELETE FROM agents")
        .unwrap();
    calls_of_agents(&mut gate, 1, 1);
    assert_eq!((rows_of_a_start(&gate), stored(&gate, "SELECT count(*) FROM agents")), (0, 3));
}

/// Bytes that the database takes, without free pages.
fn database_bytes(gate: &Gate) -> u64 {
    let pages = "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)";
    stored(gate, pages) as u64 * stored(gate, "SELECT * FROM pragma_page_size") as u64
}

#[test]
fn an_ordinary_row_takes_as_much_storage_as_is_reckoned_with() {
    let mut gate = Gate::new();
    let before = database_bytes(&gate);
    for at in 0..2_000 {
        let id = format!("01a1fe15-df15-7000-8000-{at:012}");
        let bound = json!({"request_id": id, "nonce": id, "timestamp": "2026-11-18T11:06:40Z"});
        assert_eq!(gate.call(&with(read_call(), bound)).0, 200);
    }
    let bytes = (database_bytes(&gate) - before) / 2_000;
    println!("an ordinary row takes {bytes} bytes");
    assert!((JOURNAL_ROW_BYTES * 9 / 10..=JOURNAL_ROW_BYTES).contains(&bytes), "{bytes}");
    // The row with the longest texts that a call can have, in the characters that take the most bytes.
    gate.records.tool = tool(true, false);
    let long = |bytes: usize| "\u{1}".repeat(bytes);
    let largest = json!({
        "tool_call": {"resource": long(2_048), "mutates_state": true},
        "user": {"id": "\"".repeat(256), "role": long(256)}, "trace": {"run_id": long(256), "trace_id": long(256)},
        "context": {"source_trust": "semi_trusted_customer"},
        "request_id": "r".repeat(128), "nonce": "n".repeat(128), "timestamp": "2026-11-18T11:06:40Z",
    });
    let before = database_bytes(&gate);
    let (_, body) = gate.call(&with(read_call(), largest));
    assert_eq!(body["decision"], "require_approval", "{body}");
    println!("the largest takes {} bytes", database_bytes(&gate) - before);
}

/// The longest text of so many bytes: each control character takes six in JSON.
fn long(bytes: usize) -> String {
    "\u{1}".repeat(bytes)
}

/// As much as the shield can say about one text or answer.
fn most_found() -> Noted {
    let longest = |text: Category| text.as_str().len();
    let category = Category::ALL.into_iter().max_by_key(|it| longest(*it)).unwrap();
    let finding = Finding {
        category,
        decodings: vec![Decoding::Hexadecimal; 7],
        digest: "d".repeat(16),
        length: u32::MAX,
        pointer: long(MAX_POINTER_BYTES) + "#key",
        // As long as an id of a rule in `policies/shield` may be.
        rule: "r".repeat(128),
        severity: Severity::Critical,
    };
    let redacts = Category::ALL.to_vec();
    Noted { findings: vec![finding; MAX_FINDINGS], redacts, truncated: false }
}

#[test]
fn the_largest_receipts_fit_an_entry_of_a_log() {
    let (name, tool) = ("n".repeat(MAX_NAME_BYTES), "t".repeat(MAX_TOOL_BYTES));
    let (hash, id) = ("0".repeat(64), "0".repeat(36));
    let time = "2026-01-01T00:00:00.000Z".to_owned();
    let policy = format!("tenants/{name}/{name}#{name}");
    let mut policies = vec![policy; MAX_MATCHED_POLICIES];
    policies.push("and 19984 more".to_owned());
    let groups = vec![ApproverGroup { group: name.clone(), quorum: u8::MAX }; MAX_APPROVER_GROUPS];
    // As a JSON array they have `MAX_REDACT_BYTES`.
    let fields = vec!["f".repeat(128); 64];
    assert_eq!(serde_json::to_string(&fields).unwrap().len(), MAX_REDACT_BYTES);
    let sink = SinkOrigin {
        call: Some(u32::MAX),
        decision_id: Some(id.clone()),
        level: Level::Instruction,
        sink: long(100_000),
        tool: Some(format!("{name}/{tool}")),
    };
    let provenance = Provenance {
        instruction_known: false,
        lowest: Level::Instruction,
        reach: Reach::BySinks,
        sinks: vec![sink; 64],
    };
    let provenance = provenance.bounded();
    let taint = TaintExplanation {
        call: Some(TaintingCall {
            decision_id: id.clone(),
            server: name.clone(),
            tool: tool.clone(),
        }),
        ends_at: time.clone(),
        last_at: time.clone(),
        servers: vec![name.clone(); 4],
        since: time.clone(),
    };
    let warrant = WarrantNote {
        chain_hash: hash.clone(),
        depth: usize::MAX,
        id: "0".repeat(32),
        root: hash.clone(),
    };
    let found = most_found();
    let (resource, label) = (long(MAX_RESOURCE_BYTES), long(MAX_LABEL_BYTES));
    let decision = Body::Decision(DecisionBody {
        action_hash: &hash,
        agent: &name,
        approval_id: "appr_4095_9007199254740991",
        bundle: &hash,
        decision: Decision::RequireApproval,
        decision_id: &id,
        degraded_cause: Some("registry_unconfirmed"),
        engine_mode: Some("degraded"),
        epoch: u64::MAX,
        key_id: &name,
        kind: ReceiptKind::Decision,
        lane: u16::MAX,
        matched_policies: &policies,
        obligations: Obligations { approver_groups: &groups, redact_fields: &fields },
        prev_hash: &hash,
        provenance: Some(&provenance),
        reason_code: ReasonCode::ApprovalInputTooLarge,
        resource: &resource,
        run: &label,
        seq: u64::MAX,
        server: &name,
        shield: Some(&found),
        taint: Some(&taint),
        tenant: &name,
        time: &time,
        tool: &tool,
        trust: SourceTrust::TrustedInternalUnsigned,
        user: &label,
        version: BODY_VERSION,
        warrant: Some(&warrant),
    });
    let outcome = Body::Outcome(OutcomeBody {
        agent: &name,
        bytes: u64::MAX,
        decision_hash: &hash,
        decision_id: &id,
        duration_ms: u64::MAX,
        ending: Ending::UpstreamFailed,
        kind: ReceiptKind::Outcome,
        lane: u16::MAX,
        prev_hash: &hash,
        result_blocked: true,
        result_sha256: &hash,
        seq: u64::MAX,
        server: &name,
        shield: Some(&found),
        status: u16::MAX,
        tenant: &name,
        time: &time,
        version: BODY_VERSION,
    });
    for (kind, body) in [("decision", decision), ("outcome", outcome)] {
        let (text, _) = seal(&body);
        println!("the largest {kind} has {} bytes", text.len());
        assert!(text.len() <= MAX_RECEIPT_BYTES, "{} bytes", text.len());
        assert!(bundle([text.as_bytes()].into_iter()).is_some());
    }
}
