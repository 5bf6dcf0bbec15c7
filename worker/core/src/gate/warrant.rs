//! What the registry says about a call's warrant: whether it is needed, trusted, revoked, and whether its proof
//! was used.
//!
//! A warrant narrows what the policies allow, and never widens it: both must permit. So it is checked before the
//! policies are asked, and they see what it says as `context.warrant`.

use super::draft::Draft;
use super::facts::Facts;
use super::ruling::{Ruling, Tool};
use crate::bounds::MAX_REQUEST_ID_BYTES;
use crate::call::ToolCall;
use crate::call::command::{GateCommand, Purpose};
use crate::decision::ReasonCode;
use crate::id;
use crate::json::{Json, Names};
use crate::policy::{PolicyEngine, Value, record};
use crate::receipt::WarrantNote;
use crate::registry::{AgentRecord, CallRecords, CredentialRecord, CredentialStatus, TenantRecord};
use crate::scope::Scope;
use crate::warrant::bounds::{DEFAULT_MAX_LINKS, DEFAULT_PROOF_WINDOWS, MAX_LINKS};
use crate::warrant::chain::in_time;
use crate::warrant::key::{KEY_BYTES, PublicKey};
use crate::warrant::{self, Carried, Claim, Judged, Presented, Refusal, Tolerance};

/// The tolerance of a worker that does not know the tenant's settings. The lane applies them.
pub const ANY_TOLERANCE: Tolerance =
    Tolerance { max_links: MAX_LINKS, proof_windows: DEFAULT_PROOF_WINDOWS };

thread_local! {
    /// What policies see of a call without a warrant that was accepted: texts are empty and numbers 0.
    static NO_WARRANT: Value = value(None, 0);
}

/// What a tenant accepts.
fn tolerance(records: &CallRecords) -> Tolerance {
    let settings = records.tenant.as_ref().map(|tenant| &tenant.settings);
    let links = settings.and_then(|settings| settings.warrant_max_links);
    let windows = settings.and_then(|settings| settings.warrant_proof_windows);
    Tolerance {
        max_links: links.map_or(DEFAULT_MAX_LINKS, |links| usize::try_from(links).unwrap_or(0)),
        proof_windows: windows.unwrap_or(DEFAULT_PROOF_WINDOWS),
    }
}

/// The key that the first holder of a call's warrant must have, if the caller's locator names it.
#[must_use]
pub fn agent_key(command: &GateCommand) -> Option<PublicKey> {
    command.located.then_some(PublicKey(command.secret_hash))
}

/// Whether the worker left a call's warrant to the lane: only the lane knows the tool of an HTTP request, and how many
/// links the tenant accepts.
#[must_use]
pub fn is_judged_by_lane(command: &GateCommand) -> bool {
    !matches!(command.purpose, Purpose::Route(_)) && left_to_lane(command).is_some()
}

fn left_to_lane(command: &GateCommand) -> Option<&Presented> {
    match &command.warrant.as_ref()?.judged {
        Judged::Later(presented) => Some(presented),
        _ => None,
    }
}

/// The warrant of a caller without a credential, if the worker left it to the lane to judge.
fn of_stranger(command: &GateCommand) -> Option<&Presented> {
    left_to_lane(command).filter(|_| command.located)
}

/// Whether the lane has to verify signatures to find out who calls.
#[must_use]
pub fn is_from_stranger(command: &GateCommand) -> bool {
    of_stranger(command).is_some()
}

/// Whether a request has no credential and its warrant passes every check that needs no cryptography. If so, the lane
/// must still verify signatures to find out who calls.
#[must_use]
pub fn may_be_known(command: &GateCommand, records: &CallRecords, now_ms: u64) -> bool {
    let may_be = |presented| may_be_of_agent(presented, command, records, now_ms).is_ok();
    of_stranger(command).is_some_and(may_be)
}

/// The warrant of a command, judged if the worker did not.
#[must_use]
pub fn of_command(
    engine: &PolicyEngine,
    command: &GateCommand,
    records: &CallRecords,
    now_ms: u64,
) -> Option<Carried> {
    let mut carried = command.warrant.clone()?;
    if let Some(presented) = of_stranger(command)
        && let Err(refusal) = may_be_of_agent(presented, command, records, now_ms)
    {
        return Some(Carried { judged: Judged::Refused(*refusal), ..carried });
    }
    let (call, now_s) = (&command.call, now_ms / 1_000);
    let (server, tool, input) = (call.server.as_str(), call.tool.as_str(), &call.input);
    let call = warrant::Call { server, tool, input, now_s, agent_key: agent_key(command) };
    carried.judge(&call, tolerance(records), &mut engine.chains().borrow_mut());
    Some(carried)
}

/// What is known without cryptography about the chain of a caller without a credential. Anybody can sign a chain for
/// an agent's public key, but not with a root of the tenant.
fn may_be_of_agent(
    presented: &Presented,
    command: &GateCommand,
    records: &CallRecords,
    now_ms: u64,
) -> Result<(), Box<Refusal>> {
    accepts_alone(records)?;
    let links = warrant::links(presented)?;
    check_length(links.len(), records)?;
    for link in &links {
        in_time(link, now_ms / 1_000).map_err(|code| Box::new(Refusal::of(code)))?;
    }
    let ids: Vec<[u8; 16]> = links.iter().map(|link| link.id.0).collect();
    match links.first() {
        Some(root) => check_registry(&root.issuer, &root.holder, &ids, command, records),
        None => refuse_for(ReasonCode::WarrantMalformed),
    }
}

/// Whether the chain of a caller without a credential belongs to the agent. It is asked for a request whose
/// tool is not known yet. If the answer is no, the lane does not read the records that name the tool.
#[must_use]
pub fn may_identify(
    engine: &PolicyEngine,
    command: &GateCommand,
    records: &CallRecords,
    now_ms: u64,
) -> bool {
    let Some(presented) = left_to_lane(command) else { return false };
    let caller = (agent_key(command), now_ms / 1_000);
    may_be_of_agent(presented, command, records, now_ms).is_ok()
        && warrant::keep_chain(presented, caller, &mut engine.chains().borrow_mut()).is_ok()
}

/// What the names of used proofs begin with.
const PROOF: &str = "warrant proof ";

// A nonce of a caller's request is shorter than every name of a proof, so it cannot use up a proof.
const _: () = assert!(PROOF.len() + 4 * KEY_BYTES > MAX_REQUEST_ID_BYTES);

/// The name under which a lane remembers that a proof was used. It has the holder, because somebody else's warrant can have
/// the same id.
#[must_use]
pub fn proof_name(claim: &Claim) -> String {
    [PROOF, &hex::encode(claim.proven.hash), &hex::encode(claim.holder.0)].concat()
}

/// The claim of a call's warrant, if the tenant accepts the warrant now from this agent. This does not check
/// whether the warrant carries this call: see [`Claim::refusal`].
///
/// # Errors
///
/// Why the tenant does not accept the warrant.
pub fn accepted_claim<'a>(
    command: &GateCommand,
    facts: &Facts<'a>,
) -> Result<&'a Claim, Box<Refusal>> {
    let claim = match facts.warrant.map(|carried| &carried.judged) {
        None => return refuse_for(ReasonCode::WarrantRequired),
        Some(Judged::Refused(refusal)) => return Err(Box::new(refusal.clone())),
        Some(Judged::Later(_)) => {
            let reason = "The request calls no tool that the warrant could be compared with.";
            return refuse(ReasonCode::WarrantToolMissing, reason);
        }
        Some(Judged::Holds(claim)) => claim,
    };
    if command.is_blind() {
        return refuse(
            ReasonCode::WarrantUnsupported,
            "The gateway that asks does not show the request's body, so its arguments cannot be compared with the warrant.",
        );
    }
    let records = facts.records;
    check_length(claim.ids.len(), records)?;
    check_registry(&claim.root, &claim.agent_key, &claim.ids, command, records)?;
    // The worker judged by its own clock.
    let now_s = facts.now_ms / 1_000;
    if now_s >= claim.expires_at_s {
        return refuse_for(ReasonCode::WarrantExpired);
    }
    if !claim.proven.is_accepted(now_s, tolerance(records).proof_windows) {
        let reason = "The proof was made outside of the time that the tenant accepts.";
        return refuse(ReasonCode::WarrantProofInvalid, reason);
    }
    Ok(claim)
}

/// The same as [`accepted_claim`], if the warrant also carries the call.
///
/// # Errors
///
/// Why the tenant does not accept the warrant, or why the warrant does not carry the call.
pub fn carries<'a>(command: &GateCommand, facts: &Facts<'a>) -> Result<&'a Claim, Box<Refusal>> {
    let claim = accepted_claim(command, facts)?;
    match why_not_carried(claim, command) {
        None => Ok(claim),
        Some(refusal) => Err(Box::new(refusal)),
    }
}

/// Why an accepted warrant does not carry the call. `None` if it does.
fn why_not_carried(claim: &Claim, command: &GateCommand) -> Option<Refusal> {
    let refusal = claim.refusal.clone().or_else(|| uncovered_resource(command));
    refusal.or_else(|| unclear_argument(command))
}

/// The refusal of a call whose arguments a tool may read otherwise than the verifier and the policies: tools with exact
/// decimals read a number that was rounded here, and some take names that differ in case only for the same. `/http` and MCP
/// refuse such names also without a warrant.
fn unclear_argument(command: &GateCommand) -> Option<Refusal> {
    let ToolCall { input, rounded, .. } = &command.call;
    let reason = if !rounded.is_empty() && input.has_number_of(rounded) {
        "A number has more digits than can be compared with the warrant."
    } else if input.confusable_key().is_some() {
        "The names of two arguments differ in case only."
    } else {
        return None;
    };
    Some(Refusal::new(ReasonCode::WarrantArgumentRefused, reason))
}

/// The refusal of a call whose `resource` is not one of its arguments. Links and proof cover only the arguments. So with
/// another `resource`, policies would permit something else than what the warrant allows. The path of an HTTP request
/// is not a claim of the caller: the request goes to this path.
fn uncovered_resource(command: &GateCommand) -> Option<Refusal> {
    let ToolCall { resource, input, .. } = &command.call;
    let is_argument = |(_, value): &(String, Json)| value.as_str() == Some(resource.as_str());
    let is_covered = resource.is_empty()
        || matches!(command.purpose, Purpose::Routed(_))
        || matches!(input, Json::Object(arguments) if arguments.iter().any(is_argument));
    let reason = "`resource` must be empty, or the value of an argument: the warrant covers only the arguments.";
    (!is_covered).then(|| Refusal::new(ReasonCode::WarrantArgumentRefused, reason))
}

fn refuse<T>(code: ReasonCode, reason: &str) -> Result<T, Box<Refusal>> {
    Err(Box::new(Refusal::new(code, reason)))
}

fn refuse_for<T>(code: ReasonCode) -> Result<T, Box<Refusal>> {
    Err(Box::new(Refusal::of(code)))
}

fn check_length(links: usize, records: &CallRecords) -> Result<(), Box<Refusal>> {
    let most = tolerance(records).max_links;
    if links <= most {
        return Ok(());
    }
    let reason =
        format!("The warrant's chain has more than the {most} links that the tenant accepts.");
    refuse(ReasonCode::WarrantChainBroken, &reason)
}

/// What the registry says about a chain: its root, its first holder, and its ids.
fn check_registry(
    root: &PublicKey,
    agent_key: &PublicKey,
    ids: &[[u8; 16]],
    command: &GateCommand,
    records: &CallRecords,
) -> Result<(), Box<Refusal>> {
    let server = &command.call.server;
    let root = records.warrants.root(root).filter(|root| {
        let servers = root.allowed_servers.as_deref();
        servers.is_none_or(|globs| globs.iter().any(|glob| glob.matches(server)))
    });
    let Some(root) = root else { return refuse_for(ReasonCode::WarrantUntrusted) };
    if records.agent.as_ref().and_then(|agent| agent.public_key.as_ref()) != Some(agent_key) {
        return refuse_for(ReasonCode::WarrantHolderUnknown);
    }
    match records.warrants.first_revoked(&root.public_key, ids) {
        None => Ok(()),
        Some(_) => refuse_for(ReasonCode::WarrantRevoked),
    }
}

/// Whether the tenant accepts a warrant without a credential.
fn accepts_alone(records: &CallRecords) -> Result<(), Box<Refusal>> {
    let tenant = records.tenant.as_ref();
    if tenant.and_then(|tenant| tenant.settings.warrant_alone_trust).is_some() {
        return Ok(());
    }
    let reason = "The tenant does not accept a warrant without a credential.";
    refuse(ReasonCode::WarrantUntrusted, reason)
}

/// Why a locator identifies nobody, whatever the warrant says: the tenant accepts no warrant alone, or the agent has another
/// key than the locator names.
#[must_use]
pub fn why_unknown(records: &CallRecords) -> ReasonCode {
    match accepts_alone(records) {
        Err(refusal) => refusal.code,
        Ok(()) => ReasonCode::WarrantHolderUnknown,
    }
}

/// Checks whether the warrant identifies a caller without a credential. An attacker who reads a call on its way has its
/// proof. So a proof identifies such a caller only once, even for a read. A repeated request gets its stored answer.
pub fn identify(command: &GateCommand, facts: &Facts<'_>) -> Result<(), Box<Refusal>> {
    accepts_alone(facts.records)?;
    let claim = accepted_claim(command, facts)?;
    let stored = facts.stored.as_ref().filter(|_| !command.call.dry_run);
    let is_repeated = stored.is_some_and(|stored| stored.fingerprint == command.fingerprint());
    match facts.proof_used && !is_repeated {
        true => refuse(ReasonCode::WarrantProofUsed, &used(claim)),
        false => Ok(()),
    }
}

/// Says when the holder can make another proof of the same call.
fn used(claim: &Claim) -> String {
    let next = id::rfc3339(claim.proven.next_at_s().saturating_mul(1_000));
    format!(
        "The proof was used: each proof is valid for one call. From {next} on, the same call has another proof."
    )
}

/// The credential record of a caller that sends a warrant and no credential. It allows all tools, because the
/// warrant says what the caller may do. `None` if the tenant does not accept such callers, or if the agent
/// has no key.
#[must_use]
pub fn credential(
    agent: &str,
    registered: Option<&AgentRecord>,
    tenant: Option<&TenantRecord>,
) -> Option<CredentialRecord> {
    Some(CredentialRecord {
        agent: Some(agent.to_owned()),
        // A locator names the key.
        secret_sha256: registered?.public_key?.to_string(),
        scopes: vec![Scope::ToolsRead, Scope::ToolsWrite],
        max_source_trust: tenant?.settings.warrant_alone_trust?,
        status: CredentialStatus::Active,
        expires_at_ms: None,
        allowed_servers: None,
        allowed_tools: None,
        allowed_networks: None,
        signed: false,
        assigns_runs: false,
        limits: Vec::new(),
        first_key_id: None,
    })
}

/// Denies a call if the caller has no credential and its warrant does not carry the call. This is checked
/// before the tool, so that the caller learns nothing about tools that it may not call.
pub fn deny_if_not_carried(draft: &Draft<'_>) -> Result<(), Box<Ruling>> {
    let claim = draft.facts.warrant.and_then(Carried::claim).filter(|_| draft.command.located);
    match claim.and_then(|claim| why_not_carried(claim, draft.command)) {
        None => Ok(()),
        Some(refusal) => Err(Box::new(denial(refusal, None))),
    }
}

/// Checks the warrant of a call of this tool.
pub fn check(draft: &mut Draft<'_>, tool: &Tool) -> Result<(), Box<Ruling>> {
    let facts = draft.facts;
    if facts.warrant.is_none() && !is_required(draft) {
        return Ok(());
    }
    let deny = |refusal: Refusal| Box::new(denial(refusal, Some(tool)));
    let claim = carries(draft.command, facts).map_err(|refusal| deny(*refusal))?;
    let needed = facts.records.tool.as_ref().and_then(|tool| tool.min_clearance);
    if let Some(needed) = needed.filter(|needed| claim.clearance.unwrap_or(0) < *needed) {
        let reason = format!("The tool needs a warrant with a clearance of {needed}.");
        return Err(deny(Refusal::new(ReasonCode::WarrantClearanceMissing, reason)));
    }
    if facts.proof_used && is_single_use(draft, tool) {
        return Err(deny(Refusal::new(ReasonCode::WarrantProofUsed, used(claim))));
    }
    draft.warranted = Some(claim);
    Ok(())
}

fn denial(refusal: Refusal, tool: Option<&Tool>) -> Ruling {
    let Refusal { code, reason, approvals } = refusal;
    Ruling { reason, tool: tool.cloned(), warrant_approvals: approvals, ..Ruling::deny(code) }
}

/// Denies a call with a warrant if a redaction would remove a part of its arguments: the tool would see other arguments
/// than those that were compared with the warrant, and that the holder signed.
pub fn deny_redaction(draft: &Draft<'_>, tool: &Tool, ruling: Ruling) -> Ruling {
    if draft.warranted.is_none() || ruling.redact_fields.is_empty() {
        return ruling;
    }
    let before = &draft.command.call.input;
    let mut after = before.clone();
    after.remove(&Names::new(&ruling.redact_fields));
    match after == *before {
        true => ruling,
        false => {
            let reason = "A part of the arguments would have to be removed, and the proof covers all of them.";
            denial(Refusal::new(ReasonCode::WarrantArgumentRefused, reason), Some(tool))
        }
    }
}

fn is_required(draft: &Draft<'_>) -> bool {
    let records = draft.facts.records;
    let by_tenant = records.tenant.as_ref().and_then(|tenant| tenant.settings.warrant_required);
    by_tenant == Some(true)
        || records.agent.as_ref().is_some_and(|agent| agent.warrant_required)
        || records.tool.as_ref().is_some_and(|tool| {
            tool.warrant_required || tool.min_clearance.is_some_and(|least| least > 0)
        })
}

/// Whether a proof of the call can be used only once. This holds for each call that changes something, and for every
/// call if the tenant's settings say so.
fn is_single_use(draft: &Draft<'_>, tool: &Tool) -> bool {
    let tenant = draft.facts.records.tenant.as_ref();
    tool.writes || tenant.and_then(|tenant| tenant.settings.warrant_reads_once) == Some(true)
}

/// The proof that the decision uses up. If the caller has no credential, each decision uses one, so that somebody who read
/// the call cannot make it again. Otherwise only a call that passes uses one.
#[must_use]
pub fn used_proof(draft: &Draft<'_>, ruling: &Ruling) -> Option<String> {
    let claim = draft.facts.warrant.and_then(Carried::claim)?;
    let uses = match ruling.decision {
        _ if draft.command.located => true,
        decision => decision.passes() && is_single_use(draft, ruling.tool.as_ref()?),
    };
    uses.then(|| proof_name(claim))
}

/// What a receipt says about the warrant of a decision: nothing if it was refused, because anybody can name an id.
#[must_use]
pub fn note(draft: &Draft<'_>) -> Option<WarrantNote> {
    // If there is no credential, the warrant identifies the caller, even if it does not carry the call.
    let claim = match draft.command.located {
        true => draft.facts.warrant.and_then(Carried::claim),
        false => draft.warranted,
    }?;
    Some(WarrantNote {
        chain_hash: hex::encode(claim.chain_hash),
        depth: claim.ids.len().saturating_sub(1),
        id: claim.id(),
        root: claim.root.to_string(),
    })
}

/// `context.warrant`.
pub fn context(draft: &Draft<'_>) -> Value {
    match draft.warranted {
        None => NO_WARRANT.with(Value::clone),
        claim => value(claim, draft.facts.now_ms),
    }
}

fn value(claim: Option<&Claim>, now_ms: u64) -> Value {
    let text = |of: fn(&Claim) -> String| Value::from(claim.map(of).unwrap_or_default().as_str());
    let long = |of: fn(&Claim) -> usize| {
        Value::from(claim.map(of).and_then(|number| i64::try_from(number).ok()).unwrap_or(0))
    };
    let tools = claim.into_iter().flat_map(|claim| &claim.tools);
    let expires_at_s = claim.map_or(0, |claim| claim.expires_at_s);
    let left_s = expires_at_s.saturating_sub(now_ms / 1_000);
    record(vec![
        ("present", Value::from(claim.is_some())),
        ("id", text(Claim::id)),
        ("root", text(|claim| claim.root.to_string())),
        ("issuer", text(|claim| claim.issuer.to_string())),
        ("holder", text(|claim| claim.holder.to_string())),
        ("depth", long(|claim| claim.ids.len().saturating_sub(1))),
        ("tools", Value::set(tools.map(|tool| Value::from(tool.as_str())), None)),
        ("clearance", long(|claim| usize::from(claim.clearance.unwrap_or(0)))),
        ("expires_in_s", Value::from(i64::try_from(left_s).unwrap_or(i64::MAX))),
    ])
}
