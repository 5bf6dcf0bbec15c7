//! Step 11: what the policies say becomes a decision with a reason.

use std::rc::Rc;

use crate::approval::{Approval, ApproverGroup};
use crate::decision::{Decision, ReasonCode};
use crate::json;
use crate::limit::Violation;
use crate::policy::Evaluation;
use crate::policy::bundle::{AnnotatedDecision, PolicyRecord, Risk};
use crate::provenance::Provenance;
use crate::registry::{ServerRecord, TaintRule};
use crate::schema::Schema;
use crate::taint::TaintExplanation;
use crate::warrant::NeededApprovals;

/// Policies that a ruling names. What it names goes into the receipt, which has at most
/// [`crate::receipt::MAX_RECEIPT_BYTES`], and a bundle can have thousands of policies.
pub const MAX_MATCHED_POLICIES: usize = 16;

/// Groups that a call can wait for. More people would not decide in time.
pub const MAX_APPROVER_GROUPS: usize = 32;

/// Bytes of the fields that are redacted, as a JSON array: as many as one policy can ask for.
pub const MAX_REDACT_BYTES: usize = 64 * (128 + 3) + 1;

/// A registered, active tool, with what applies to this call of it.
#[derive(Debug, Clone)]
pub struct Tool {
    pub server: Rc<ServerRecord>,
    pub risk: Risk,
    /// Whether the call is a write: the registry says that the tool writes or is an egress tool, or
    /// the caller says that it writes.
    pub writes: bool,
    /// Whether its calls send text out, or fetch an address that the caller gives.
    pub egress: bool,
    pub canary: bool,
    /// What a tainted call of the tool needs.
    pub tainted: TaintRule,
    /// What the arguments were checked against, if they were.
    pub schema: Option<Rc<Schema>>,
}

/// The decision on a call, and what goes with it.
#[derive(Debug, Clone)]
pub struct Ruling {
    pub decision: Decision,
    pub reason_code: ReasonCode,
    pub reason: String,
    /// Policy ids, sorted. If there are more than [`MAX_MATCHED_POLICIES`], the last text says how many more.
    pub matched_policies: Vec<String>,
    /// Sorted by group. Not empty exactly if the decision is `require_approval`.
    pub approver_groups: Vec<ApproverGroup>,
    /// Paths of arguments, sorted.
    pub redact_fields: Vec<String>,
    /// Known from step 8 on.
    pub tool: Option<Tool>,
    /// Present if the decision would have been different without taint.
    pub taint: Option<Box<TaintExplanation>>,
    /// Where the destinations came from, if that was looked up.
    pub provenance: Option<Box<Provenance>>,
    /// The limit that denies the call.
    pub violation: Option<Box<Violation>>,
    /// The approvals that the call's warrant asks for, if the call is denied because it does not have them.
    pub warrant_approvals: Option<Box<NeededApprovals>>,
    /// Whether it denies the caller, whatever it calls: the agent is stopped, or its tenant has
    /// reached its daily bound. Such a denial does not bind the call's request id and nonce,
    /// because it comes before the replay check: the request id may already have an answer.
    pub denies_caller: bool,
    /// Whether it is answered and counted, but not journalled: a repeated denial of a stopped
    /// agent, or one because of the tenant's daily bound.
    pub counted_only: bool,
}

impl Ruling {
    /// A denial without policies.
    #[must_use]
    pub fn deny(reason_code: ReasonCode) -> Self {
        Self {
            decision: Decision::Deny,
            reason_code,
            reason: reason_code.sentence().to_owned(),
            matched_policies: Vec::new(),
            approver_groups: Vec::new(),
            redact_fields: Vec::new(),
            tool: None,
            taint: None,
            provenance: None,
            violation: None,
            warrant_approvals: None,
            denies_caller: false,
            counted_only: false,
        }
    }
}

/// The ruling on a call of `tool` with this evaluation and this approval.
pub fn from_policies(evaluation: &Evaluation, tool: Tool, approval: Option<&Approval>) -> Ruling {
    let mut ruling = Ruling::deny(ReasonCode::NoPolicyPermits);
    ruling.tool = Some(tool);
    if !evaluation.erring.is_empty() {
        // Cedar skips a policy whose evaluation fails. If that policy was a forbid, it did not
        // count.
        ruling.matched_policies = ids(&evaluation.erring);
        return ruled(ruling, Decision::Deny, ReasonCode::PolicyError, Vec::new());
    }
    ruling.matched_policies = ids(&evaluation.determining);
    match evaluation.allowed {
        true => permitted(ruling, &evaluation.determining, approval),
        false => forbidden(ruling, &evaluation.determining),
    }
}

/// The ruling if the policies do not allow the call. `ruling` is the denial if no policy determined that.
fn forbidden(ruling: Ruling, determining: &[&'static PolicyRecord]) -> Ruling {
    let quarantining = annotated(determining, AnnotatedDecision::Quarantine);
    if !quarantining.is_empty() {
        ruled(ruling, Decision::Quarantine, ReasonCode::PolicyQuarantine, quarantining)
    } else if determining.is_empty() {
        ruling
    } else {
        ruled(ruling, Decision::Deny, ReasonCode::PolicyForbid, determining.to_vec())
    }
}

/// The ruling if the policies allow the call, with what they ask for.
fn permitted(
    mut ruling: Ruling,
    determining: &[&'static PolicyRecord],
    approval: Option<&Approval>,
) -> Ruling {
    let approving = annotated(determining, AnnotatedDecision::RequireApproval);
    let redacting = annotated(determining, AnnotatedDecision::Redact);
    ruling.redact_fields =
        sorted(redacting.iter().flat_map(|p| p.annotations.redact_fields).copied());
    let needed = needed_groups(&approving);
    let redacts_too_much = !ruling.redact_fields.is_empty()
        && json::to_string(&ruling.redact_fields).len() > MAX_REDACT_BYTES;
    if redacts_too_much || needed.len() > MAX_APPROVER_GROUPS {
        ruling.redact_fields = Vec::new();
        ruling = ruled(ruling, Decision::Deny, ReasonCode::PolicyError, Vec::new());
        "The policies ask for more approver groups or redacted fields than a receipt can hold."
            .clone_into(&mut ruling.reason);
        return ruling;
    }
    let held_back = match approval {
        None => !approving.is_empty(),
        Some(approval) if needed.iter().all(|needed| approval.covers(needed)) => false,
        Some(_) => {
            return ruled(ruling, Decision::Deny, ReasonCode::ApprovalInsufficient, Vec::new());
        }
    };
    if held_back {
        ruling.approver_groups = needed;
        return ruled(
            ruling,
            Decision::RequireApproval,
            ReasonCode::PolicyRequireApproval,
            approving,
        );
    }
    if !redacting.is_empty() {
        return ruled(ruling, Decision::Redact, ReasonCode::PolicyRedact, redacting);
    }
    if !approving.is_empty() {
        return ruled(ruling, Decision::Allow, ReasonCode::ApprovalGranted, Vec::new());
    }
    let permitting = annotated(determining, AnnotatedDecision::Plain);
    if permitting.is_empty() {
        // The evaluation allows, but no permit of the bundle determined it. Never let that pass.
        return ruled(ruling, Decision::Deny, ReasonCode::PolicyError, Vec::new());
    }
    ruled(ruling, Decision::Allow, ReasonCode::PolicyAllow, permitting)
}

/// The policies with this annotation.
fn annotated(
    policies: &[&'static PolicyRecord],
    decision: AnnotatedDecision,
) -> Vec<&'static PolicyRecord> {
    policies.iter().copied().filter(|policy| policy.annotations.decision == decision).collect()
}

/// A server's request to its client passes or not. It never waits for approval and stops no agent.
pub fn without_effects(mut ruling: Ruling) -> Ruling {
    if !ruling.decision.passes() {
        ruling.decision = Decision::Deny;
        ruling.approver_groups = Vec::new();
    }
    ruling
}

/// A gateway sends the request unchanged. So a call that would pass only after a redaction is denied.
pub fn without_redaction(mut ruling: Ruling) -> Ruling {
    ruling.decision = Decision::Deny;
    let fields = std::mem::take(&mut ruling.redact_fields).join("`, `");
    ruling.reason.push_str(&match fields.is_empty() {
        true => " A gateway cannot replace them.".to_owned(),
        false => format!(" A gateway cannot remove the fields `{fields}`."),
    });
    ruling
}

/// The groups that the policies ask for. If two policies ask for one group, the higher quorum
/// counts.
fn needed_groups(approving: &[&'static PolicyRecord]) -> Vec<ApproverGroup> {
    let mut groups: Vec<ApproverGroup> = Vec::new();
    for annotations in approving.iter().map(|policy| &policy.annotations) {
        let Some(group) = annotations.approver_group else { continue };
        match groups.iter_mut().find(|needed| needed.group == group) {
            Some(needed) => needed.quorum = needed.quorum.max(annotations.quorum),
            None => {
                groups.push(ApproverGroup { group: group.to_owned(), quorum: annotations.quorum });
            }
        }
    }
    groups.sort_unstable();
    groups
}

fn ids(policies: &[&'static PolicyRecord]) -> Vec<String> {
    let named = policies.iter().take(MAX_MATCHED_POLICIES);
    let mut ids: Vec<String> = named.map(|policy| policy.id.to_owned()).collect();
    let more = policies.len() - ids.len();
    if more > 0 {
        // No id has a space.
        ids.push(format!("and {more} more"));
    }
    ids
}

/// Sets the decision. The reason is that of the deciding policies, if they have one.
fn ruled(
    mut ruling: Ruling,
    decision: Decision,
    code: ReasonCode,
    deciding: Vec<&'static PolicyRecord>,
) -> Ruling {
    let mut sentences: Vec<&str> = deciding.iter().filter_map(|p| p.annotations.reason).collect();
    sentences.dedup();
    ruling.decision = decision;
    ruling.reason_code = code;
    ruling.reason =
        if sentences.is_empty() { code.sentence().to_owned() } else { sentences.join(" ") };
    ruling
}

fn sorted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::bundle::Annotations;
    use crate::registry::{ServerKind, ServerStatus, ServerTrust};

    fn policy(number: usize, annotations: Annotations) -> &'static PolicyRecord {
        let id = format!("base/many#p{number:05}").leak();
        Box::leak(Box::new(PolicyRecord {
            id,
            text: "",
            expressions: &[],
            tenant: None,
            forbid: false,
            annotations,
        }))
    }

    fn ruling(policies: Vec<&'static PolicyRecord>) -> Ruling {
        let server = ServerRecord {
            kind: ServerKind::Mcp,
            trust: ServerTrust::Trusted,
            status: ServerStatus::Active,
            upstream: None,
            instructions_sha256: None,
            shield: None,
            inspects_results: false,
        };
        let tool = Tool {
            server: Rc::new(server),
            risk: Risk::Low,
            writes: false,
            egress: false,
            canary: false,
            tainted: TaintRule::default(),
            schema: None,
        };
        let evaluation = Evaluation { allowed: true, determining: policies, erring: Vec::new() };
        from_policies(&evaluation, tool, None)
    }

    const PLAIN: Annotations = Annotations {
        decision: AnnotatedDecision::Plain,
        reason: None,
        approver_group: None,
        quorum: 1,
        redact_fields: &[],
    };

    #[test]
    fn a_ruling_names_a_bounded_number_of_policies_and_says_how_many_more_there_are() {
        for (policies, named, last) in [
            (1, 1, "base/many#p00000"),
            (16, 16, "base/many#p00015"),
            (17, 17, "and 1 more"),
            (20_000, 17, "and 19984 more"),
        ] {
            let ruling = ruling((0..policies).map(|at| policy(at, PLAIN)).collect());
            assert_eq!(ruling.decision, Decision::Allow);
            let matched = &ruling.matched_policies;
            assert_eq!((matched.len(), matched.last().map(String::as_str)), (named, Some(last)));
        }
    }

    #[test]
    fn a_call_with_more_obligations_than_a_receipt_can_hold_is_denied() {
        let asking = |groups: usize| {
            let of = |at| Annotations {
                decision: AnnotatedDecision::RequireApproval,
                approver_group: Some(format!("group-{at}").leak()),
                ..PLAIN
            };
            ruling((0..groups).map(|at| policy(at, of(at))).collect())
        };
        let redacting = |fields: usize, bytes: usize| {
            let of = |at| {
                let field: &'static str = format!("{at:0>bytes$}").leak();
                let redact_fields = Box::leak(Box::new([field]));
                Annotations { decision: AnnotatedDecision::Redact, redact_fields, ..PLAIN }
            };
            ruling((0..fields).map(|at| policy(at, of(at))).collect())
        };
        for (what, ruling, decision) in [
            ("groups", asking(32), Decision::RequireApproval),
            ("too many groups", asking(33), Decision::Deny),
            ("fields", redacting(64, 128), Decision::Redact),
            ("short fields", redacting(500, 5), Decision::Redact),
            ("too many fields", redacting(65, 128), Decision::Deny),
        ] {
            assert_eq!(ruling.decision, decision, "{what}");
            if decision == Decision::Deny {
                assert_eq!(ruling.reason_code, ReasonCode::PolicyError);
                assert!(ruling.redact_fields.is_empty() && ruling.approver_groups.is_empty());
                assert!(ruling.reason.contains("than a receipt can hold"));
            }
        }
    }
}
