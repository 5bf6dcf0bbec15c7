//! Bodies of receipts with random content.

use gateward_core::approval::{ApprovalEvent, ApprovalStatus};
use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::id::rfc3339;
use gateward_core::json;
use gateward_core::receipt::{
    AgentEvent, ApprovalBody, BODY_VERSION, Body, DecisionBody, Ending, Obligations, OutcomeBody,
    ReceiptKind, RegistryBody, seal,
};
use gateward_core::trust::SourceTrust;
use serde_json::Value;

use super::keys::TENANT;

/// The time of the first receipt: 2026-01-01.
const BEGIN_MS: u64 = 1_767_225_600_000;

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn hash(&mut self) -> String {
        let mut hash = String::new();
        for _ in 0..4 {
            hash.push_str(&format!("{:016x}", self.next()));
        }
        hash
    }

    fn one(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len() as u64) as usize]
    }
}

/// The place of a body in its chain.
pub struct Place<'a> {
    pub lane: u16,
    pub seq: u64,
    pub prev_hash: &'a str,
}

pub fn time(tick: u64) -> String {
    rfc3339(BEGIN_MS + 137 * tick)
}

/// A receipt of a lane.
pub fn receipt(random: &mut Random, place: &Place<'_>) -> String {
    let Place { lane, seq, prev_hash } = *place;
    let (time, hash, other) = (time(random.below(1 << 30)), random.hash(), random.hash());
    let agent = random.one(&["billing", "coder", "größe", "support-7"]);
    let server = random.one(&["github", "crm", "mail"]);
    let tool = random.one(&["get_issue", "repos/list", "send", "refund.v1"]);
    let user = random.one(&["", "ada", "eve \"\\\n\u{1}", "李 🚀"]);
    let id = format!("dec_{lane}_{seq}");
    let policies = [random.one(&["allow-reads", "default"]).to_owned()];
    let body = match random.below(20) {
        0 => Body::Approval(ApprovalBody {
            action_hash: &hash,
            administrator: "ada",
            agent,
            approval_id: "appr_0_1",
            change: ApprovalEvent::Approved,
            decision_id: &id,
            epoch: 3,
            key_id: "k1",
            kind: ReceiptKind::Approval,
            lane,
            prev_hash,
            seq,
            status: ApprovalStatus::Approved,
            tenant: TENANT,
            time: &time,
            version: BODY_VERSION,
        }),
        1 => Body::Registry(RegistryBody {
            administrator: "ada",
            agent,
            change: AgentEvent::Restored,
            decision_id: &id,
            epoch: 3,
            kind: ReceiptKind::Registry,
            lane,
            prev_hash,
            seq,
            tenant: TENANT,
            time: &time,
            version: BODY_VERSION,
        }),
        2..8 => Body::Outcome(OutcomeBody {
            agent,
            bytes: random.below(1 << 20),
            decision_hash: &other,
            decision_id: &id,
            duration_ms: random.below(5_000),
            ending: Ending::Complete,
            kind: ReceiptKind::Outcome,
            lane,
            prev_hash,
            result_blocked: false,
            result_sha256: &hash,
            seq,
            server,
            shield: None,
            status: 200,
            tenant: TENANT,
            time: &time,
            version: BODY_VERSION,
        }),
        _ => Body::Decision(DecisionBody {
            action_hash: &hash,
            agent,
            approval_id: "",
            bundle: &other,
            decision: Decision::Allow,
            decision_id: &id,
            degraded_cause: None,
            engine_mode: None,
            epoch: 3,
            key_id: "k1",
            kind: ReceiptKind::Decision,
            lane,
            matched_policies: &policies,
            obligations: Obligations { approver_groups: &[], redact_fields: &[] },
            prev_hash,
            provenance: None,
            reason_code: ReasonCode::PolicyAllow,
            resource: "https://example.com/?q=\u{e9}",
            run: "run-1",
            seq,
            server,
            shield: None,
            taint: None,
            tenant: TENANT,
            time: &time,
            tool,
            trust: SourceTrust::Unknown,
            user,
            version: BODY_VERSION,
            warrant: None,
        }),
    };
    seal(&body).0
}

/// The RFC 8785 form.
pub fn canonical(value: &Value) -> String {
    json::parse(value.to_string().as_bytes()).unwrap().canonical()
}
