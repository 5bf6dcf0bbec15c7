//! Step 5: identifies the caller, and checks whether it may call.

use super::draft::{Draft, Stop};
use super::facts::Facts;
use super::meter;
use super::ruling::Ruling;
use super::step::CountedEvent;
use super::warrant;
use crate::call::command::{GateCommand, Purpose};
use crate::credential::signature;
use crate::credential::token;
use crate::decision::ReasonCode;
use crate::problem::{Problem, ProblemCode};
use crate::registry::{
    AgentRecord, AgentStatus, BanKind, CallRecords, CredentialRecord, CredentialStatus,
    TenantRecord, TenantStatus,
};

/// In this time, one denial of a stopped agent is journalled; the repeats are counted.
pub const STATUS_DENIAL_WINDOW_MS: u64 = 60_000;

/// Does not say why: a caller must not learn whether the credential ever existed.
const INVALID: &str = "the credential is not valid";

/// Records that exist and belong together.
pub struct Identity<'a> {
    pub tenant: &'a TenantRecord,
    pub agent: &'a AgentRecord,
    pub credential: &'a CredentialRecord,
}

/// Checks the credential: it exists, has this secret, belongs to this agent, is active, has not
/// expired, and is used from one of its networks. If it must be signed, the request was signed and
/// its nonce was not used before.
pub fn verify<'a>(command: &GateCommand, facts: &Facts<'a>) -> Result<Identity<'a>, Stop> {
    let identity = with_secret(command, facts.records)?;
    let credential = identity.credential;
    if credential.expires_at_ms.is_some_and(|at| facts.now_ms >= at) {
        let detail = "the credential has expired";
        return Err(Stop::Terminal(Problem::new(ProblemCode::CredentialExpired, detail)));
    }
    if credential.signed && !command.signed {
        let detail = "the credential has a signing key; sign the request (RFC 9421)";
        return Err(refuse(Problem::new(ProblemCode::SignatureRequired, detail)));
    }
    if command.located
        && let Err(refusal) = warrant::identify(command, facts)
    {
        let problem = Problem::new(ProblemCode::WarrantRefused, &refusal.reason);
        return Err(Stop::Problem(problem, Some(CountedEvent::WarrantRefused(refusal.code))));
    }
    if let Some(networks) = &credential.allowed_networks
        && !command.source_address.is_some_and(|at| networks.iter().any(|net| net.contains(at)))
    {
        let detail = "the credential must not be used from this address";
        return Err(refuse(Problem::new(ProblemCode::SourceAddressForbidden, detail)));
    }
    check_nonce(command, facts)?;
    Ok(identity)
}

/// The records of a caller that has the credential's secret.
fn with_secret<'a>(command: &GateCommand, records: &'a CallRecords) -> Result<Identity<'a>, Stop> {
    // A stranger learns no more from a locator than from an unknown credential. The audit and metrics have the reason.
    let unauthorized = || {
        let counted = match command.located {
            false => CountedEvent::AuthenticationFailed,
            true => CountedEvent::WarrantRefused(warrant::why_unknown(records)),
        };
        Stop::Problem(Problem::new(ProblemCode::Unauthorized, INVALID), Some(counted))
    };
    let Some(credential) = &records.credential else { return Err(unauthorized()) };
    if !token::hash_matches(&command.secret_hash, &credential.secret_sha256) {
        return Err(unauthorized());
    }
    if credential.status == CredentialStatus::Revoked {
        return Err(Stop::Terminal(Problem::new(ProblemCode::Unauthorized, INVALID)));
    }
    let (Some(tenant), Some(agent)) = (&records.tenant, &records.agent) else {
        return Err(unauthorized());
    };
    if credential.agent.as_deref() != Some(command.call.agent.as_str())
        || credential.status != CredentialStatus::Active
        || agent.lane != command.lane
    {
        return Err(unauthorized());
    }
    Ok(Identity { tenant, agent, credential })
}

/// Checks that the nonce of the request's signature, if it has one, is neither old nor used.
fn check_nonce(command: &GateCommand, facts: &Facts<'_>) -> Result<(), Stop> {
    match &command.signature_nonce {
        // The worker checked the time by its own clock. The nonce is remembered by the lane's
        // clock.
        Some(nonce) if nonce.is_stale(facts.now_ms) => Err(refuse(signature::stale())),
        Some(_) if facts.signature_nonce_used => Err(refuse(signature::replayed())),
        _ => Ok(()),
    }
}

fn refuse(problem: Problem) -> Stop {
    Stop::Problem(problem, Some(CountedEvent::AuthenticationFailed))
}

/// Denies a call whose tenant or agent is stopped, or to which a ban applies. A stopped agent's
/// first denial in a window is journalled; the repeats are counted.
pub fn status(draft: &Draft<'_>, identity: &Identity<'_>) -> Result<Option<Ruling>, Stop> {
    // A call that Gateward forwards names no environment.
    if draft.command.purpose == Purpose::Authorize
        && draft.command.call.environment.as_ref() != Some(&identity.agent.environment)
    {
        let problem = Problem::new(
            ProblemCode::EnvironmentMismatch,
            "`agent.environment` is not the environment in which the agent is registered",
        );
        return Err(Stop::Problem(problem, None));
    }
    let now_ms = draft.facts.now_ms;
    let code = match identity.agent.status {
        _ if identity.tenant.status != TenantStatus::Active => ReasonCode::TenantInactive,
        AgentStatus::Revoked | AgentStatus::Deleted => ReasonCode::AgentRevoked,
        AgentStatus::Quarantined => ReasonCode::AgentQuarantined,
        AgentStatus::Active | AgentStatus::Frozen if draft.agent.quarantined => {
            ReasonCode::AgentQuarantined
        }
        AgentStatus::Frozen => ReasonCode::AgentFrozen,
        AgentStatus::Active => match ban(draft) {
            None => return Ok(None),
            Some(BanKind::Agent) => ReasonCode::AgentBanned,
            Some(BanKind::User) => ReasonCode::UserBanned,
            Some(BanKind::Run) => ReasonCode::RunBanned,
            Some(BanKind::SourceAddress) => ReasonCode::SourceAddressBanned,
        },
    };
    let repeated = draft.agent.status_denial.as_ref().is_some_and(|last| {
        last.code == code.code() && now_ms.saturating_sub(last.at_ms) < STATUS_DENIAL_WINDOW_MS
    });
    let mut ruling = Ruling::deny(code);
    ruling.denies_caller = true;
    ruling.counted_only = repeated || meter::deny_at_daily_bound(draft.facts).is_some();
    Ok(Some(ruling))
}

/// The ban that applies to the call.
fn ban(draft: &Draft<'_>) -> Option<BanKind> {
    let (command, facts) = (draft.command, draft.facts);
    let call = &command.call;
    let who = (call.agent.as_str(), call.user_id.as_str(), call.run_id.as_str());
    facts.records.bans.find(who, command.source_address, facts.now_ms)
}
