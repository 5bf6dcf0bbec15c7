//! How far a call's claim about its source counts, and what lowers it.

use serde::Serialize;

use super::outcome::{Decision, ReasonCode, Ruling};
use super::resolve::Tool;
use super::{Draft, TAINTED_TRUST};
use crate::trust::SourceTrust;

/// What lowered a call's trust below its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoweredBy {
    /// The credential's highest trust.
    Credential,
    /// Only a signed request of a signed credential can claim `trusted_internal_signed`.
    Signature,
    /// Text of an untrusted server reached the agent.
    Taint,
}

/// The trust of what made the agent call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = CallTrust)]
pub struct CallTrust {
    /// What the call claims; `trusted_internal_signed` where a request of MCP or HTTP claims nothing.
    pub claimed: SourceTrust,
    /// What counts, and what policies see as `context.source_trust`.
    pub effective: SourceTrust,
    /// What made it less than the claim; null when the claim counts.
    pub lowered_by: Option<LoweredBy>,
}

impl Draft<'_> {
    /// The claim, as far as the request's signature supports it.
    fn supported_claim(&self) -> SourceTrust {
        let claim = self.command.call.source_trust;
        let credential = self.facts.records.credential.as_ref();
        let signed = self.command.signed && credential.is_some_and(|credential| credential.signed);
        if signed { claim } else { claim.lowest(SourceTrust::TrustedInternalUnsigned) }
    }

    /// The credential's highest trust.
    fn highest_trust(&self) -> SourceTrust {
        let credential = self.facts.records.credential.as_ref();
        credential.map_or(SourceTrust::Unknown, |credential| credential.max_source_trust)
    }

    /// The lower of the caller's claim and what its credential may claim. Only a request whose
    /// signature was verified, of a credential that has a signing key, is trusted as signed.
    pub(super) fn stated_trust(&self) -> SourceTrust {
        self.supported_claim().lowest(self.highest_trust())
    }

    /// What counts: the stated trust, lowered by the call's taint.
    pub(super) fn effective_trust(&self, stated: SourceTrust) -> SourceTrust {
        if self.tainted.is_some() { stated.lowest(TAINTED_TRUST) } else { stated }
    }

    /// What counts, and why.
    pub(super) fn trust(&self) -> CallTrust {
        let claimed = self.command.call.source_trust;
        let stated = self.stated_trust();
        let effective = self.effective_trust(stated);
        let lowered_by = if effective == claimed {
            None
        } else if effective != stated {
            Some(LoweredBy::Taint)
        } else if stated == claimed.lowest(self.highest_trust()) {
            Some(LoweredBy::Credential)
        } else {
            Some(LoweredBy::Signature)
        };
        CallTrust { claimed, effective, lowered_by }
    }
}

/// Names the credential's highest trust in a policy's denial that it caused: with the claim as it is,
/// the policies would not deny the call. `decide` asks them about the tool with another stated trust.
pub fn name_highest_trust(
    draft: &Draft<'_>,
    mut ruling: Ruling,
    decide: impl FnOnce(Tool, SourceTrust) -> Ruling,
) -> Ruling {
    let by_policies =
        matches!(ruling.reason_code, ReasonCode::PolicyForbid | ReasonCode::NoPolicyPermits);
    let (claim, stated) = (draft.supported_claim(), draft.stated_trust());
    let Some(tool) = ruling.tool.as_ref().filter(|_| by_policies && claim != stated) else {
        return ruling;
    };
    if !matches!(decide(tool.clone(), claim).decision, Decision::Deny | Decision::Quarantine) {
        let highest = draft.highest_trust().as_str();
        ruling.reason.push_str(&format!(
            " The credential's highest trust is `{highest}`: no call with it counts as more trusted."
        ));
    }
    ruling
}
