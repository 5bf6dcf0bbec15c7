//! The parts of a call's path. Each part is the function that the worker or the lane calls.

use std::borrow::Cow;
use std::hint::black_box;

use gateward_core::call::command::GateCommand;
use gateward_core::call::{self, Action, ToolCall};
use gateward_core::credential::token::{self, MacKeys, TokenError};
use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::gate::{
    CallTrust, DecidedBy, DecisionDetail, JournalRow, ReplyReceipt, Ruling, encode_response,
};
use gateward_core::lane::protocol::LaneRequest;
use gateward_core::metrics::{CountedDecision, KeyHash, ShownNames};
use gateward_core::receipt::{
    self, BODY_VERSION, Body, DecisionBody, GENESIS, Obligations, StoredReceipt,
};
use gateward_core::trust::SourceTrust;
use gateward_core::{id, json};
use serde_json::Value;

use crate::decide::{Call, NOW_MS, SECRET, TENANT};
use crate::operation::{GATEWARD, Operation};

/// A receipt in the middle of a long chain.
const MID_SEQ: u64 = 5_000_000;

pub fn operations() -> Vec<Operation> {
    vec![
        // Everything is right except the length of its MAC. Of the tokens that are refused because of their form, it
        // costs the most.
        Operation::new("deny_malformed_token", GATEWARD, || {
            credential(format!("gw_demo.coder.0.k1.{SECRET}.AAAAAAAAAA"), TokenError::Malformed)
        }),
        Operation::new("deny_forged_token", GATEWARD, || {
            credential(format!("gw_demo.coder.0.k1.{SECRET}.AAAAAAAAAAA"), TokenError::Forged)
        }),
        Operation::new("parse_request", GATEWARD, || {
            let body = Call::merge("main").body();
            let (call, _) = call::parse(body.as_bytes(), TENANT).unwrap();
            assert_eq!(
                (call.server.as_str(), call.tool.as_str()),
                ("github", "merge_pull_request")
            );
            move || call::parse(black_box(body.as_bytes()), TENANT)
        }),
        Operation::new("action_hash", GATEWARD, || {
            let call = Call::merge("main").command().call;
            let hash = |call: &ToolCall| Action::of(call, TENANT).hash();
            assert_eq!(hash(&call), call.action_hash);
            move || hash(black_box(&call))
        }),
        Operation::new("encode_command", GATEWARD, || {
            let command = Call::merge("main").command();
            assert_eq!(LaneRequest::decode(&encoded(&command)), Ok(request(&command)));
            move || encoded(black_box(&command))
        }),
        Operation::new("decode_command", GATEWARD, || {
            let command = Call::merge("main").command();
            let bytes = encoded(&command);
            assert_eq!(LaneRequest::decode(&bytes), Ok(request(&command)));
            move || LaneRequest::decode(black_box(&bytes))
        }),
        Operation::new("receipt_hash_head", GATEWARD, || receipt_hash(1, GENESIS.to_owned())),
        Operation::new("receipt_hash_mid", GATEWARD, || {
            let previous = Sealing::new(MID_SEQ - 1, GENESIS.to_owned()).seal().1;
            receipt_hash(MID_SEQ, previous)
        }),
        Operation::new("encode_response", GATEWARD, || {
            let (sealing, ruling) = (Sealing::new(1, GENESIS.to_owned()), allowed());
            let hash = sealing.seal().1;
            let command = Call::read().command();
            let run = move || response(black_box(&command), &ruling, &sealing, &hash);
            let answer: Value = serde_json::from_str(&run()).unwrap();
            assert_eq!(answer["decision"], "allow");
            assert_eq!(answer["receipt"]["seq"], 1);
            run
        }),
        Operation::new("journal_row", GATEWARD, || {
            let sealing = Sealing::new(1, GENESIS.to_owned());
            let (receipt, hash) = sealing.seal();
            let command = Call::read().command();
            let response = response(&command, &allowed(), &sealing, &hash);
            let run = move || row(black_box(&sealing), &response, &receipt, &hash);
            let row: Value = serde_json::from_str(&run()).unwrap();
            assert!(row["response"].is_string() && row["receipt"].is_string());
            run
        }),
    ]
}

/// A call as the worker sends it to its lane.
fn request(command: &GateCommand) -> LaneRequest<'_> {
    LaneRequest::Call(Cow::Borrowed(command))
}

fn encoded(command: &GateCommand) -> Vec<u8> {
    request(command).encode()
}

fn credential(text: String, refused: TokenError) -> impl Fn() -> bool + 'static {
    let keys = MacKeys::new("0123456789abcdef0123456789abcdef", None).unwrap();
    assert_eq!(token::parse(&text, &keys), Err(refused));
    move || token::parse(black_box(&text), &keys).is_ok()
}

/// The decision on an allowed read.
fn allowed() -> Ruling {
    Ruling {
        decision: Decision::Allow,
        reason_code: ReasonCode::PolicyAllow,
        reason: "A read is allowed, even if untrusted text caused it.".to_owned(),
        matched_policies: matched_policies(),
        ..Ruling::deny(ReasonCode::NoPolicyPermits)
    }
}

fn matched_policies() -> Vec<String> {
    vec!["base/provenance#reads-pass".to_owned()]
}

/// What a receipt's body borrows.
struct Sealing {
    seq: u64,
    previous: String,
    decision_id: String,
    action_hash: String,
    time: String,
    matched_policies: Vec<String>,
}

impl Sealing {
    fn new(seq: u64, previous: String) -> Self {
        let call = Call::read().command().call;
        Self {
            seq,
            previous,
            decision_id: id::decision_id(NOW_MS, 0, seq, &call.fingerprint),
            action_hash: hex::encode(call.action_hash),
            time: id::rfc3339(NOW_MS),
            matched_policies: matched_policies(),
        }
    }

    /// The canonical body and its hash.
    fn seal(&self) -> (String, String) {
        receipt::seal(&Body::Decision(DecisionBody {
            action_hash: &self.action_hash,
            agent: "coder",
            approval_id: "",
            bundle: gateward_policies::bundle().digest,
            decision: Decision::Allow,
            decision_id: &self.decision_id,
            degraded_cause: None,
            engine_mode: None,
            epoch: 1,
            key_id: "k1",
            kind: receipt::ReceiptKind::Decision,
            lane: 0,
            matched_policies: &self.matched_policies,
            obligations: Obligations { approver_groups: &[], redact_fields: &[] },
            prev_hash: &self.previous,
            provenance: None,
            shield: None,
            reason_code: ReasonCode::PolicyAllow,
            resource: "",
            run: "",
            seq: self.seq,
            server: "github",
            taint: None,
            tenant: TENANT,
            time: &self.time,
            tool: "list_issues",
            trust: SourceTrust::TrustedInternalSigned,
            user: "",
            version: BODY_VERSION,
            warrant: None,
        }))
    }
}

/// Writing a receipt's body and hashing it.
fn receipt_hash(seq: u64, previous: String) -> impl Fn() -> (String, String) + 'static {
    let sealing = Sealing::new(seq, previous);
    let (body, receipt_hash) = sealing.seal();
    assert_eq!(json::parse(body.as_bytes()).unwrap().canonical(), body);
    let stored =
        StoredReceipt { seq, receipt_hash, prev_receipt_hash: sealing.previous.clone(), body };
    assert_eq!(receipt::verify(&[stored], seq, Some(&sealing.previous)), Ok(()));
    move || black_box(&sealing).seal()
}

const TRUST: CallTrust = CallTrust {
    claimed: SourceTrust::TrustedInternalSigned,
    effective: SourceTrust::TrustedInternalSigned,
    lowered_by: None,
};

fn response(command: &GateCommand, ruling: &Ruling, sealing: &Sealing, hash: &str) -> String {
    encode_response(
        command,
        (ruling, None),
        TRUST,
        DecidedBy { bundle: gateward_policies::bundle().digest, degraded_cause: None },
        &sealing.decision_id,
        None,
        Some(ReplyReceipt::new(0, sealing.seq, hash, &sealing.previous)),
    )
}

fn row(sealing: &Sealing, response: &str, receipt: &str, hash: &str) -> String {
    JournalRow {
        kind: None,
        seq: sealing.seq,
        at_ms: NOW_MS,
        decision_id: &sealing.decision_id,
        agent: "coder",
        detail: DecisionDetail {
            server: "github",
            tool: "list_issues",
            decision: Decision::Allow,
            reason_code: ReasonCode::PolicyAllow,
            approval: None,
            containment: None,
            taint: None,
            counted: CountedDecision::new(KeyHash::new(7), ShownNames::ServerAndTool),
        },
        receipt_hash: hash,
        prev_receipt_hash: &sealing.previous,
        response: Some(response),
        receipt,
        metrics: &[],
    }
    .encode()
}
