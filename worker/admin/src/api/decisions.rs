//! Decisions in answers.

use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::gate::AuthorizeResponse;
use gateward_core::id::receipt_id;
use gateward_core::policy::bundle::Bundle;
use gateward_core::receipt::Ending;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::page::FlushedThrough;

/// A decision with its answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DecisionRecord)]
pub struct DecisionView {
    pub decision_id: String,
    pub lane: u16,
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub decision: Decision,
    // Text, because rows of older versions may have codes that no longer exist.
    #[schema(value_type = ReasonCode)]
    pub reason_code: String,
    /// The answer that the caller got.
    #[schema(value_type = AuthorizeResponse)]
    pub response: Box<RawValue>,
}

/// A decision with its policies and the outcome of its call.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecisionDetail {
    #[serde(flatten)]
    pub decision: DecisionView,
    /// The policies that determined it, in the order of `response.matched_policies`.
    pub policies: Vec<DecidingPolicy>,
    /// The outcome of the call; null if it was not forwarded or has not ended, and for agents.
    pub outcome: Option<CallOutcome>,
}

/// A policy that determined a decision.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecidingPolicy {
    pub policy_id: String,
    /// Its Cedar source. Null if the worker now has other policies, and for agents, which only see
    /// the policy's reason.
    pub text: Option<&'static str>,
}

impl DecidingPolicy {
    /// The policies that a decision's answer names. Texts come from this bundle, so they are left
    /// out if another bundle decided, or if `with_text` is false.
    #[must_use]
    pub fn of(response: &str, bundle: &'static Bundle, with_text: bool) -> Vec<Self> {
        #[derive(Deserialize)]
        struct Answer {
            matched_policies: Vec<String>,
            bundle: String,
        }
        // If it is unreadable, the rest is still useful.
        let Ok(answer) = serde_json::from_str::<Answer>(response) else { return Vec::new() };
        let with_text = with_text && answer.bundle == bundle.digest;
        let known = |id: &str| {
            let at = bundle.policies.binary_search_by(|policy| policy.id.cmp(id)).ok()?;
            bundle.policies.get(at).filter(|_| with_text).map(|policy| policy.text)
        };
        let ids = answer.matched_policies.into_iter();
        ids.map(|policy_id| Self { text: known(&policy_id), policy_id }).collect()
    }
}

/// The outcome of a forwarded call.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallOutcome {
    pub receipt_id: String,
    #[schema(format = DateTime)]
    pub at: String,
    /// How the answer ended.
    #[schema(value_type = Ending)]
    pub ending: String,
    /// The server's HTTP status; 0 if there was none.
    pub status: u16,
    /// Bytes of the body that was sent to the caller.
    pub bytes: u64,
    pub duration_ms: u64,
    /// SHA-256 over the body that the server sent; empty if it sent none.
    pub result_sha256: String,
}

impl CallOutcome {
    /// From the outcome's receipt; `None` if it is another kind of receipt.
    #[must_use]
    pub fn of_receipt(body: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Receipt {
            lane: u16,
            seq: u64,
            time: String,
            ending: String,
            status: u16,
            bytes: u64,
            duration_ms: u64,
            result_sha256: String,
        }
        let receipt: Receipt = serde_json::from_str(body).ok()?;
        Some(Self {
            receipt_id: receipt_id(receipt.lane, receipt.seq),
            at: receipt.time,
            ending: receipt.ending,
            status: receipt.status,
            bytes: receipt.bytes,
            duration_ms: receipt.duration_ms,
            result_sha256: receipt.result_sha256,
        })
    }
}

/// Decisions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecisionPage {
    pub decisions: Vec<DecisionView>,
    /// The cursor of the next page; null on the last.
    pub next_cursor: Option<String>,
    /// How far the list reaches in each lane. Lists come from D1.
    pub flushed_through: Vec<FlushedThrough>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateward_core::policy::bundle::{AnnotatedDecision, Annotations, PolicyRecord};
    use gateward_core::shield::Rules;

    const fn policy(id: &'static str, text: &'static str) -> PolicyRecord {
        let annotations = Annotations {
            decision: AnnotatedDecision::Plain,
            reason: None,
            approver_group: None,
            quorum: 1,
            redact_fields: &[],
        };
        PolicyRecord { id, text, expressions: &[], tenant: None, forbid: false, annotations }
    }

    static BUNDLE: Bundle = Bundle {
        digest: "b1",
        symbols: &[],
        index: &[],
        postings: &[],
        policies: &[policy("base/a#x", "permit (a);"), policy("base/b#y", "forbid (b);")],
        tools: &[],
        velocity: &[],
        shield: Rules { rules: &[], disabled: &[] },
    };

    #[test]
    fn policies_have_their_text_where_the_same_bundle_decided_and_it_may_be_read() {
        let of = |bundle: &str, with_text| {
            let response =
                format!(r#"{{"matched_policies":["base/b#y","base/gone#z"],"bundle":"{bundle}"}}"#);
            let policies = DecidingPolicy::of(&response, &BUNDLE, with_text);
            policies.into_iter().map(|policy| (policy.policy_id, policy.text)).collect::<Vec<_>>()
        };
        let named = |text| vec![("base/b#y".to_owned(), text), ("base/gone#z".to_owned(), None)];
        assert_eq!(of("b1", true), named(Some("forbid (b);")));
        assert_eq!(of("b1", false), named(None));
        assert_eq!(of("b2", true), named(None));
        assert!(DecidingPolicy::of("{}", &BUNDLE, true).is_empty());
    }

    #[test]
    fn an_outcome_is_read_from_its_receipt_and_from_no_other() {
        let receipt = r#"{"agent":"bot","bytes":12,"decision_hash":"dh","decision_id":"id","duration_ms":34,"ending":"complete","kind":"outcome","lane":3,"prev_hash":"p","result_sha256":"rh","seq":7,"server":"s","status":200,"tenant":"t","time":"T","version":2}"#;
        let outcome = CallOutcome::of_receipt(receipt).unwrap();
        let expected = r#"{"receipt_id":"rcpt_3_7","at":"T","ending":"complete","status":200,"bytes":12,"duration_ms":34,"result_sha256":"rh"}"#;
        assert_eq!(serde_json::to_string(&outcome).unwrap(), expected);
        assert!(CallOutcome::of_receipt(r#"{"kind":"decision"}"#).is_none());
    }
}
