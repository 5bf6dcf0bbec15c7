//! The form of each receipt, pinned, and that a chain of them shows every tampering.

use super::*;
use crate::provenance::{Level, Reach, SinkOrigin};
use crate::taint::TaintingCall;

fn body<'a>(seq: u64, prev_hash: &'a str, policies: &'a [String]) -> DecisionBody<'a> {
    DecisionBody {
        action_hash: "ah",
        agent: "bot",
        approval_id: "",
        bundle: "b",
        decision: Decision::Allow,
        decision_id: "id",
        degraded_cause: None,
        engine_mode: None,
        epoch: 1,
        key_id: "k",
        kind: ReceiptKind::Decision,
        lane: 0,
        matched_policies: policies,
        obligations: Obligations { approver_groups: &[], redact_fields: policies },
        prev_hash,
        provenance: None,
        shield: None,
        reason_code: ReasonCode::PolicyAllow,
        resource: "r\u{1}\"é",
        run: "",
        seq,
        server: "s",
        taint: None,
        tenant: "t",
        time: "2026-01-01T00:00:00.000Z",
        tool: "x",
        trust: SourceTrust::Unknown,
        user: "",
        version: BODY_VERSION,
        warrant: None,
    }
}

fn chain(length: u64) -> Vec<StoredReceipt> {
    let mut receipts: Vec<StoredReceipt> = Vec::new();
    for seq in 1..=length {
        let previous = receipts.last().map_or(GENESIS.to_owned(), |r| r.receipt_hash.clone());
        let (text, receipt_hash) = seal(&Body::Decision(body(seq, &previous, &["p".to_owned()])));
        receipts.push(StoredReceipt { seq, receipt_hash, prev_receipt_hash: previous, body: text });
    }
    receipts
}

#[test]
fn a_body_is_canonical_as_written_and_its_format_is_unchanged() {
    let (text, hash) = seal(&Body::Decision(body(7, GENESIS, &["p".to_owned()])));
    assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), text);
    let group = [ApproverGroup { group: "g".to_owned(), quorum: 2 }];
    let obligations = Obligations { approver_groups: &group, redact_fields: &[] };
    let (asking, _) = seal(&Body::Decision(DecisionBody { obligations, ..body(7, GENESIS, &[]) }));
    assert_eq!(json::parse(asking.as_bytes()).unwrap().canonical(), asking);
    let degraded = DecisionBody {
        degraded_cause: Some("c"),
        engine_mode: Some("degraded"),
        ..body(7, GENESIS, &[])
    };
    let (degraded, _) = seal(&Body::Decision(degraded));
    assert_eq!(json::parse(degraded.as_bytes()).unwrap().canonical(), degraded);
    let [decision_id, server, tool] = ["id", "web", "get"].map(str::to_owned);
    let taint = TaintExplanation {
        call: Some(TaintingCall { decision_id, server, tool }),
        ends_at: "2026-01-02T00:00:00.000Z".to_owned(),
        last_at: "2026-01-01T00:00:00.000Z".to_owned(),
        servers: vec!["web".to_owned()],
        since: "2026-01-01T00:00:00.000Z".to_owned(),
    };
    let (tainted, _) =
        seal(&Body::Decision(DecisionBody { taint: Some(&taint), ..body(7, GENESIS, &[]) }));
    assert_eq!(json::parse(tainted.as_bytes()).unwrap().canonical(), tainted);
    let pinned = r#""server":"s","taint":{"call":{"decision_id":"id","server":"web","tool":"get"},"ends_at":"2026-01-02T00:00:00.000Z","last_at":"2026-01-01T00:00:00.000Z","servers":["web"],"since":"2026-01-01T00:00:00.000Z"},"tenant":"t""#;
    assert!(tainted.contains(pinned), "{tainted}");
    let provenance = Provenance {
        instruction_known: true,
        lowest: Level::Untrusted,
        reach: Reach::Outside,
        sinks: vec![SinkOrigin {
            call: Some(3),
            decision_id: Some("id".to_owned()),
            level: Level::Untrusted,
            sink: "/to".to_owned(),
            tool: Some("mail/read".to_owned()),
        }],
    };
    let traced = DecisionBody { provenance: Some(&provenance), ..body(7, GENESIS, &[]) };
    let (traced, _) = seal(&Body::Decision(traced));
    assert_eq!(json::parse(traced.as_bytes()).unwrap().canonical(), traced);
    let pinned = r#""provenance":{"instruction_known":true,"lowest":"untrusted","reach":"outside","sinks":[{"call":3,"decision_id":"id","level":"untrusted","sink":"/to","tool":"mail/read"}]},"reason_code""#;
    assert!(traced.contains(pinned), "{traced}");
    assert!(asking.contains(r#""approver_groups":[{"group":"g","quorum":2}]"#));
    assert_eq!(hash, "e6f6d65b93b7be66ee83175f795ce0a171b8d53af0af6b3845eb1d4ebd55705e");
}

#[test]
fn an_approval_body_is_canonical_as_written_and_its_format_is_unchanged() {
    let (text, _) = seal(&Body::Approval(ApprovalBody {
        action_hash: "a",
        administrator: "ada",
        agent: "bot",
        approval_id: "appr_3_6",
        change: ApprovalEvent::Approved,
        decision_id: "id",
        epoch: 2,
        key_id: "k",
        kind: ReceiptKind::Approval,
        lane: 3,
        prev_hash: GENESIS,
        seq: 7,
        status: ApprovalStatus::Approved,
        tenant: "t",
        time: "2026-01-01T00:00:00.000Z",
        version: BODY_VERSION,
    }));
    assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), text);
    let pinned = r#"{"action_hash":"a","administrator":"ada","agent":"bot","approval_id":"appr_3_6","change":"approval_approved","decision_id":"id","epoch":2,"key_id":"k","kind":"approval","lane":3,"prev_hash":"GENESIS","seq":7,"status":"approved","tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#;
    assert_eq!(text, pinned.replace("GENESIS", GENESIS));
}

#[test]
fn a_dead_letters_body_is_canonical_as_written_and_its_format_is_unchanged() {
    let (text, _) = seal(&Body::DeadLetter(DeadLetterBody {
        agent: "bot",
        approval_id: "appr_3_6",
        attempts: 12,
        change: ApprovalEvent::Requested,
        decision_id: "id",
        kind: ReceiptKind::DeadLetter,
        lane: 3,
        last_status: 503,
        message_id: "msg_t_3_6",
        prev_hash: GENESIS,
        seq: 7,
        tenant: "t",
        time: "2026-01-01T00:00:00.000Z",
        version: BODY_VERSION,
    }));
    assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), text);
    let pinned = r#"{"agent":"bot","approval_id":"appr_3_6","attempts":12,"change":"approval_requested","decision_id":"id","kind":"dead_letter","lane":3,"last_status":503,"message_id":"msg_t_3_6","prev_hash":"GENESIS","seq":7,"tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#;
    assert_eq!(text, pinned.replace("GENESIS", GENESIS));
}

#[test]
fn a_registry_body_is_canonical_as_written_and_its_format_is_unchanged() {
    let (text, _) = seal(&Body::Registry(RegistryBody {
        administrator: "ada",
        agent: "bot",
        change: AgentEvent::Restored,
        decision_id: "id",
        epoch: 2,
        kind: ReceiptKind::Registry,
        lane: 3,
        prev_hash: GENESIS,
        seq: 7,
        tenant: "t",
        time: "2026-01-01T00:00:00.000Z",
        version: BODY_VERSION,
    }));
    assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), text);
    let pinned = r#"{"administrator":"ada","agent":"bot","change":"agent_restored","decision_id":"id","epoch":2,"kind":"registry","lane":3,"prev_hash":"GENESIS","seq":7,"tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#;
    assert_eq!(text, pinned.replace("GENESIS", GENESIS));
}

#[test]
fn an_outcome_body_is_canonical_as_written_and_its_format_is_unchanged() {
    let (text, _) = seal(&Body::Outcome(OutcomeBody {
        agent: "bot",
        bytes: 12,
        decision_hash: "dh",
        decision_id: "id",
        duration_ms: 34,
        ending: Ending::Complete,
        kind: ReceiptKind::Outcome,
        lane: 3,
        prev_hash: GENESIS,
        result_blocked: false,
        result_sha256: "rh",
        seq: 7,
        server: "s",
        shield: None,
        status: 200,
        tenant: "t",
        time: "2026-01-01T00:00:00.000Z",
        version: BODY_VERSION,
    }));
    assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), text);
    let pinned = r#"{"agent":"bot","bytes":12,"decision_hash":"dh","decision_id":"id","duration_ms":34,"ending":"complete","kind":"outcome","lane":3,"prev_hash":"GENESIS","result_sha256":"rh","seq":7,"server":"s","status":200,"tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#;
    assert_eq!(text, pinned.replace("GENESIS", GENESIS));
}

#[test]
fn a_chain_verifies_and_every_tampering_is_found_where_it_is() {
    assert_eq!(verify(&chain(5), 1, Some(GENESIS)), Ok(()));
    assert_eq!(verify(&chain(5)[2..], 3, None), Ok(()));
    type Tamper = fn(&mut Vec<StoredReceipt>);
    let cases: [(&str, Tamper, u64); 6] = [
        ("changed body", |c| c[2].body = c[2].body.replace("allow", "denyy"), 3),
        ("other form", |c| c[2].body = c[2].body.replace(":", ": "), 3),
        ("dropped", |c| drop(c.remove(1)), 2),
        ("swapped", |c| c.swap(1, 2), 2),
        ("hash replaced", |c| c[3].receipt_hash = GENESIS.to_owned(), 4),
        (
            "resealed alone",
            |c| {
                c[2].body = c[2].body.replace("bot", "bob");
                c[2].receipt_hash = hash(&c[2].body);
            },
            4,
        ),
    ];
    for (name, tamper, seq) in cases {
        let mut receipts = chain(5);
        tamper(&mut receipts);
        assert_eq!(verify(&receipts, 1, Some(GENESIS)).unwrap_err().seq, seq, "{name}");
    }
}
