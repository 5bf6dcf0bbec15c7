//! Decisions and reason codes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::text_enum::{self, text_enum};

text_enum! {
    /// The decision on a call, most restrictive first. If several policies apply, the most restrictive wins.
    #[derive(PartialOrd, Ord)]
    Decision {
        Quarantine = "quarantine",
        Deny = "deny",
        RequireApproval = "require_approval",
        Redact = "redact",
        Allow = "allow",
    }
}

impl Decision {
    /// Whether the call may run.
    #[must_use]
    pub const fn passes(self) -> bool {
        matches!(self, Self::Allow | Self::Redact)
    }

    /// Whether the call counts as a denial.
    #[must_use]
    pub const fn denies(self) -> bool {
        matches!(self, Self::Deny | Self::Quarantine)
    }
}

/// Defines [`ReasonCode`] from a list, so that adding a code takes one line.
macro_rules! reason_codes {
    ($($name:ident = $code:literal, $sentence:literal;)+) => {
        /// The reason for a decision, as a stable code. Programs compare the code; the sentence is for people.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ReasonCode {
            $($name,)+
        }

        impl ReasonCode {
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            #[must_use]
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)+
                }
            }

            /// Whether a warrant is the reason.
            #[must_use]
            pub fn is_about_warrant(self) -> bool {
                self.code().starts_with("warrant_")
            }

            /// The reason that callers get if no policy has a sentence of its own.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => $sentence,)+
                }
            }
        }

        impl<'de> Deserialize<'de> for ReasonCode {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let at = text_enum::place(deserializer, "ReasonCode", &[$($code,)+])?;
                Self::ALL.get(at).copied().ok_or_else(|| D::Error::custom("no such reason code"))
            }
        }
    };
}

// docs/api.md has a row for each. A test compares them.
reason_codes! {
    PolicyAllow = "policy_allow", "A policy permits this call.";
    PolicyRedact = "policy_redact", "A policy permits this call without the redacted fields.";
    PolicyRequireApproval = "policy_require_approval", "A policy permits this call once it is approved.";
    ApprovalGranted = "approval_granted", "The call was approved.";
    ApprovalPending = "approval_pending", "The approval is not decided yet.";
    ApprovalUnknown = "approval_unknown", "The agent has no such approval.";
    ApprovalMismatch = "approval_mismatch", "This is not the call that the approval is for.";
    ApprovalInsufficient = "approval_insufficient", "The approval lacks a group that the policies require now. Request another one.";
    ApprovalRejected = "approval_rejected", "The approval was rejected.";
    ApprovalCancelled = "approval_cancelled", "The approval was cancelled.";
    ApprovalExpired = "approval_expired", "The approval has expired.";
    ApprovalUsed = "approval_used", "The approval was already used. Each approval allows one call; request another one.";
    ApprovalsExhausted = "approvals_exhausted", "The agent has as many open approvals as it can have; use some, or let them expire.";
    ApprovalInputTooLarge = "approval_input_too_large", "The call needs approval, and its arguments are too large for an approver to read.";
    ApprovalCoversNoAnswers = "approval_covers_no_answers", "The call needs approval, and an approval cannot cover the answers in `inputResponses`. Put what the server needs into the arguments.";
    PolicyForbid = "policy_forbid", "A policy forbids this call.";
    PolicyQuarantine = "policy_quarantine", "A policy forbids this call and stops the agent.";
    NoPolicyPermits = "no_policy_permits", "No policy permits this call.";
    PolicyError = "policy_error", "A policy could not be evaluated.";
    InputInvalid = "input_invalid", "The arguments have a duplicate key, a number that is too large, or a value without a Cedar type.";
    ScopeMissing = "scope_missing", "The credential's scopes do not cover this tool.";
    ToolNotGranted = "tool_not_granted", "The agent or its credential is not granted this tool.";
    WarrantRequired = "warrant_required", "This call needs a warrant.";
    WarrantMalformed = "warrant_malformed", "The warrant cannot be read.";
    WarrantUntrusted = "warrant_untrusted", "The warrant's root key is not registered for this tenant, or not for this server.";
    WarrantChainBroken = "warrant_chain_broken", "The links of the warrant's chain do not belong together, or are too many.";
    WarrantWidened = "warrant_widened", "A link of the warrant's chain allows more than the link before it.";
    WarrantSignatureInvalid = "warrant_signature_invalid", "A link of the warrant's chain is not signed by its issuer.";
    WarrantExpired = "warrant_expired", "The warrant has expired.";
    WarrantNotYetValid = "warrant_not_yet_valid", "The warrant was issued in the future.";
    WarrantRevoked = "warrant_revoked", "The warrant, or one that it comes from, was revoked.";
    WarrantHolderUnknown = "warrant_holder_unknown", "The warrant's first holder is not the agent's registered key.";
    WarrantToolMissing = "warrant_tool_missing", "The warrant does not name this tool.";
    WarrantArgumentRefused = "warrant_argument_refused", "The warrant does not allow these arguments.";
    WarrantUnsupported = "warrant_unsupported", "The warrant has a constraint that cannot be evaluated.";
    WarrantClearanceMissing = "warrant_clearance_missing", "The warrant's clearance is lower than the tool's.";
    WarrantProofMissing = "warrant_proof_missing", "The call has a warrant, but no proof that the caller holds it.";
    WarrantProofInvalid = "warrant_proof_invalid", "The proof is not a signature of this call by the warrant's holder.";
    WarrantProofUsed = "warrant_proof_used", "The proof was already used. Each proof is valid for one call.";
    WarrantApprovalMissing = "warrant_approval_missing", "The warrant asks for approvals that the call does not have.";
    ServerUnknown = "server_unknown", "This server is not registered.";
    ToolUnknown = "tool_unknown", "This tool is not registered.";
    ToolInactive = "tool_inactive", "This tool or its server is not active.";
    RouteUnmapped = "route_unmapped", "No route of the server fits this request.";
    InputSchemaMismatch = "input_schema_mismatch", "The arguments do not match the tool's schema.";
    SchemaUnusable = "schema_unusable", "The tool's schema cannot be used.";
    HeaderMismatch = "header_mismatch", "A header that mirrors an argument is not as the tool's schema says.";
    UpstreamMissing = "upstream_missing", "Gateward does not know where this server is.";
    AgentFrozen = "agent_frozen", "The agent is frozen.";
    AgentRevoked = "agent_revoked", "The agent is revoked.";
    AgentQuarantined = "agent_quarantined", "The agent is quarantined.";
    AgentBanned = "agent_banned", "The agent is banned.";
    UserBanned = "user_banned", "The user is banned.";
    RunBanned = "run_banned", "The run is banned.";
    SourceAddressBanned = "source_address_banned", "The address that the call comes from is banned.";
    TenantInactive = "tenant_inactive", "The tenant is not active.";
    ShieldBlocked = "shield_blocked", "The shield blocks these arguments for this tool.";
    ShieldRedact = "shield_redact", "The call passes without the secrets and personal data in its arguments.";
    QuotaExhausted = "quota_exhausted", "A quota is used up.";
    OutsideHours = "outside_hours", "A limit does not allow calls at this time.";
    PerCallExceeded = "per_call_exceeded", "The call's number is larger than a limit allows in one call.";
    AmountExhausted = "amount_exhausted", "The call's number is larger than what is left of a limit.";
    BudgetExhausted = "budget_exhausted", "The call costs more than what is left of a budget.";
    LimitUnreadable = "limit_unreadable", "The call does not have the number that a limit needs.";
    LimitUnavailable = "limit_unavailable", "The counter of a shared limit does not answer or does not know the limit's time zone, or the call counts for too many shared limits.";
    VelocityUnreadable = "velocity_unreadable", "The call does not have the number that a window of the policies sums up.";
    VelocityUnavailable = "velocity_unavailable", "Gateward could not read a count of calls that a policy needs. Try again.";
    TenantRowsExhausted = "tenant_rows_exhausted", "The tenant has written as many records as it may today.";
    TenantBytesExhausted = "tenant_bytes_exhausted", "The tenant has written as many bytes of records as it may today.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_decisions_are_serialized_as_their_names() {
        for code in ReasonCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.code());
        }
        for decision in Decision::ALL {
            assert_eq!(serde_json::to_value(decision).unwrap(), decision.as_str());
        }
    }
}
