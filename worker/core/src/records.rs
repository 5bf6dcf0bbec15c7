//! What readers get: decisions, receipts, what a check of them found, and what is deployed.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bundle::Bundle;
use crate::gate::respond::Response;
use crate::gate::{Decision, Ending, ReasonCode};
use crate::id::receipt_id;
use crate::receipt::Body;

/// Records of a page, unless the caller asks for fewer or more.
pub const DEFAULT_PAGE: u32 = 50;
/// The largest page: 200 decisions are some 300 KB.
pub const MAX_PAGE: u32 = 200;
/// Receipts of a page, unless the caller asks for fewer or more.
pub const DEFAULT_RECEIPT_PAGE: u32 = 100;
/// The largest page of receipts: 500 are some 500 KB.
pub const MAX_RECEIPT_PAGE: u32 = 500;

/// A decision as it was answered.
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
    #[schema(value_type = Decision)]
    pub decision: String,
    #[schema(value_type = ReasonCode)]
    pub reason_code: String,
    /// The answer as the caller got it.
    #[schema(value_type = Response)]
    pub response: Box<RawValue>,
}

/// A decision with what belongs to it.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecisionDetail {
    #[serde(flatten)]
    pub decision: DecisionView,
    /// The policies that determined it, in the order of `response.matched_policies`.
    pub policies: Vec<DecidingPolicy>,
    /// What became of the call; null when it was not forwarded, or has not ended, and for agents.
    pub outcome: Option<CallOutcome>,
}

/// A policy that determined a decision.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecidingPolicy {
    pub policy_id: String,
    /// Its Cedar source. Null when the worker has other policies than those that decided, and for
    /// agents, who are told the policy's reason alone.
    pub text: Option<&'static str>,
}

impl DecidingPolicy {
    /// The policies that a decision's answer names. Their texts are this bundle's, so they are left out
    /// when another bundle decided, or when `with_text` is false.
    #[must_use]
    pub fn of(response: &str, bundle: &'static Bundle, with_text: bool) -> Vec<Self> {
        #[derive(Deserialize)]
        struct Answer {
            matched_policies: Vec<String>,
            bundle: String,
        }
        // Whoever reads is better served by the rest than by nothing.
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

/// What became of a call that was forwarded.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallOutcome {
    pub receipt_id: String,
    #[schema(format = DateTime)]
    pub at: String,
    /// How the answer ended.
    #[schema(value_type = Ending)]
    pub ending: String,
    /// The server's HTTP status; 0 when there was none.
    pub status: u16,
    /// Of the answer's body, as the caller was sent it.
    pub bytes: u64,
    pub duration_ms: u64,
    /// SHA-256 over the answer's body as far as the server sent it; empty when it sent none.
    pub result_sha256: String,
}

impl CallOutcome {
    /// From the outcome's receipt; `None` when the receipt is none.
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
    /// Where the next page begins; null on the last.
    pub next_cursor: Option<String>,
    /// Lists come from D1; of each lane, they reach to here.
    pub flushed_through: Vec<FlushedThrough>,
}

/// The newest decision of a lane that lists have.
#[derive(Debug, Serialize, ToSchema)]
pub struct FlushedThrough {
    pub lane: u16,
    pub seq: u64,
    #[schema(format = DateTime)]
    pub at: String,
}

/// A receipt as it is stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceiptRecord)]
pub struct ReceiptView {
    pub receipt_id: String,
    pub lane: u16,
    pub seq: u64,
    pub receipt_hash: String,
    pub prev_receipt_hash: String,
    pub canon_version: &'static str,
    /// What was hashed, byte for byte.
    #[schema(value_type = Body)]
    pub body: Box<RawValue>,
}

/// Receipts of one lane, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceiptPage {
    pub receipts: Vec<ReceiptView>,
    /// The sequence number at which the next page begins; null on the last.
    pub next_from: Option<u64>,
}

/// Where the receipts of a lane begin and end, as the lane itself holds it: what is verified against it
/// cannot have lost its end.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEnds {
    pub lane: u16,
    /// The newest receipt; null while there is none.
    pub head: Option<ReceiptLink>,
    /// The last one that was deleted by the tenant's retention; null when none was. The receipt after
    /// it links back to its hash.
    pub pruned_through: Option<ReceiptLink>,
}

/// A receipt's place in its lane's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptLink {
    pub seq: u64,
    pub receipt_hash: String,
}

impl ReceiptLink {
    /// The number 0 is that of no receipt.
    #[must_use]
    pub fn new((seq, receipt_hash): (u64, String)) -> Option<Self> {
        (seq > 0).then_some(Self { seq, receipt_hash })
    }
}

/// Which receipts of one lane to verify. One request looks at 10,000 at most, and says where to go on.
#[derive(Debug, Deserialize, ToSchema)]
pub struct VerifyRequest {
    pub lane: u16,
    /// The first one's sequence number.
    #[schema(minimum = 1)]
    pub from: u64,
    /// The last one's; the lane's newest when left out.
    pub to: Option<u64>,
}

/// What a check of receipts found.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verification {
    pub verified: bool,
    /// Receipts that were looked at.
    pub checked: u64,
    /// The first one that was looked at: pruned ones cannot be.
    pub from: u64,
    pub to: u64,
    /// Whether all that was asked for was looked at.
    pub complete: bool,
    /// Where to go on when one request was not enough.
    pub next_from: Option<u64>,
    /// To what the first one's link back was compared.
    pub begins: Beginning,
    /// What vouches for the last one.
    pub anchored: Anchored,
    /// Receipts up to this one were pruned; null when none was.
    pub pruned_through: Option<u64>,
    /// Sequence number of the first broken link.
    pub broken_at: Option<u64>,
    pub problem: Option<String>,
}

/// To what the link back from the first receipt of a range was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// It is the lane's first receipt.
    Genesis,
    /// The hash of the last pruned receipt, which the lane holds.
    Pruned,
    /// The hash of the receipt before it, which is not a part of this check.
    Receipt,
    /// Nothing: the receipt before it is missing.
    Nothing,
}

/// What vouches for the last receipt of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Anchored {
    /// It is the lane's newest, and has the hash that the lane itself holds.
    Head,
    /// Nothing: the range ends before the lane's newest receipt, so whoever can write to the database
    /// could have sealed it anew.
    Nothing,
}

/// That the worker runs, or is ready.
#[derive(Debug, Serialize, ToSchema)]
pub struct Health {
    /// `ok` or `ready`.
    pub status: &'static str,
}

/// What is deployed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Version<'a> {
    pub version: &'a str,
    pub commit: &'a str,
    /// The digest of the policies.
    pub bundle: &'a str,
    /// How many policies the bundle has.
    pub policies: usize,
    /// How many tools the bundle describes.
    pub tools: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::{AnnotatedDecision, Annotations, PolicyRecord};

    const fn policy(id: &'static str, text: &'static str) -> PolicyRecord {
        let annotations = Annotations {
            decision: AnnotatedDecision::Plain,
            reason: None,
            approver_group: None,
            quorum: 1,
            redact_fields: &[],
        };
        PolicyRecord { id, text, tenant: None, forbid: false, annotations }
    }

    static BUNDLE: Bundle = Bundle {
        digest: "b1",
        symbols: &[],
        index: &[],
        postings: &[],
        policies: &[policy("base/a#x", "permit (a);"), policy("base/b#y", "forbid (b);")],
        tools: &[],
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
