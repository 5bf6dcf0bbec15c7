//! How far a call's claim about its source counts, and what lowers it.

use serde::Serialize;

use super::draft::{Draft, scope, taint_period_ms};
use super::ruling::{self, Ruling, Tool};
use super::taint_state::Tainted;
use crate::approval::Approval;
use crate::decision::{Decision, ReasonCode};
use crate::policy::Evaluation;
use crate::taint::TAINTED_TRUST;
use crate::trust::SourceTrust;

/// What lowered a call's trust below its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoweredBy {
    /// The credential's highest trust.
    Credential,
    /// Only a signed request of a signed credential can claim `trusted_internal_signed`.
    Signature,
    /// Untrusted text may have reached the agent.
    Taint,
}

/// The trust of the text that made the agent call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = CallTrust)]
pub struct CallTrust {
    /// What the call claims; `trusted_internal_signed` if a request of MCP or HTTP claims nothing.
    pub claimed: SourceTrust,
    /// The trust that counts. Policies see it as `context.source_trust`.
    pub effective: SourceTrust,
    /// What lowered the trust below the claim; null if the claim counts.
    pub lowered_by: Option<LoweredBy>,
}

/// The trust that policies judge a call by.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The lower of the caller's claim and the credential's highest trust.
    pub stated: SourceTrust,
    pub tainted: Option<&'a Tainted>,
}

impl Origin<'_> {
    /// The trust that counts: the stated trust, lowered by the call's taint.
    pub fn effective(self) -> SourceTrust {
        if self.tainted.is_some() { self.stated.lowest(TAINTED_TRUST) } else { self.stated }
    }
}

impl Draft<'_> {
    /// The claim, as far as the signature supports it. Only a verified request of a credential with
    /// a signing key counts as signed.
    fn supported(&self, claim: SourceTrust) -> SourceTrust {
        let credential = self.facts.records.credential.as_ref();
        let signed = self.command.signed && credential.is_some_and(|credential| credential.signed);
        if signed { claim } else { claim.lowest(SourceTrust::TrustedInternalUnsigned) }
    }

    /// The credential's highest trust.
    fn highest_trust(&self) -> SourceTrust {
        let credential = self.facts.records.credential.as_ref();
        credential.map_or(SourceTrust::Unknown, |credential| credential.max_source_trust)
    }

    /// The highest trust that a request like this one can claim.
    pub(super) fn highest_claim(&self) -> SourceTrust {
        self.supported(SourceTrust::TrustedInternalSigned).lowest(self.highest_trust())
    }

    /// The origin of this call.
    pub(super) fn origin(&self) -> Origin<'_> {
        let claim = self.supported(self.command.call.source_trust);
        Origin { stated: claim.lowest(self.highest_trust()), tainted: self.tainted.as_ref() }
    }

    /// The call's trust, and what lowered it.
    pub(super) fn trust(&self) -> CallTrust {
        let claimed = self.command.call.source_trust;
        let origin = self.origin();
        let effective = origin.effective();
        let lowered_by = if effective == claimed {
            None
        } else if effective != origin.stated {
            Some(LoweredBy::Taint)
        } else if origin.stated == claimed.lowest(self.highest_trust()) {
            Some(LoweredBy::Credential)
        } else {
            Some(LoweredBy::Signature)
        };
        CallTrust { claimed, effective, lowered_by }
    }
}

/// Explains a ruling other than `allow`: adds whether the call's taint or the credential's highest trust caused it. To
/// find out, `ask` evaluates the policies again, once without the taint and once with the caller's own claim.
pub fn explain(
    draft: &Draft<'_>,
    mut ruling: Ruling,
    evaluation: &Evaluation,
    approval: Option<&Approval>,
    ask: impl Fn(&Tool, Origin<'_>) -> Result<Evaluation, Box<Ruling>>,
) -> Ruling {
    let origin = draft.origin();
    let Some(tool) = ruling.tool.as_ref().filter(|_| ruling.decision != Decision::Allow) else {
        return ruling;
    };
    if origin.tainted.is_some()
        && let Ok(untainted) = ask(tool, Origin { tainted: None, ..origin })
        && !untainted.agrees_with(evaluation)
    {
        let facts = draft.facts;
        let scope = scope(draft.command, facts.records);
        let period_ms = taint_period_ms(facts.records);
        let taint = facts.agent.taint.explain(scope, period_ms, facts.now_ms);
        ruling.taint = taint.map(Box::new);
    }
    let by_policies =
        matches!(ruling.reason_code, ReasonCode::PolicyForbid | ReasonCode::NoPolicyPermits);
    let claim = draft.supported(draft.command.call.source_trust);
    if by_policies
        && claim != origin.stated
        && let Some(tool) = &ruling.tool
        && let Ok(believed) = ask(tool, Origin { stated: claim, ..origin })
        && !ruling::from_policies(&believed, tool.clone(), approval).decision.denies()
    {
        let highest = draft.highest_trust().as_str();
        ruling.reason.push_str(&format!(
            " The credential's highest trust is `{highest}`: no call with it counts as more trusted."
        ));
    }
    ruling
}
