//! What the registry says about a call's warrant: whether it is needed, trusted, revoked, and whether its proof
//! was used.
//!
//! A warrant narrows what the policies allow, and never widens it: both must permit. So it is checked before the
//! policies are asked, and they see what it says as `context.warrant`.

use super::draft::Draft;
use super::ruling::{Ruling, Tool};
use crate::call::command::GateCommand;
use crate::decision::ReasonCode;
use crate::id;
use crate::policy::{PolicyEngine, Value};
use crate::receipt::WarrantNote;
use crate::registry::CallRecords;
use crate::warrant::bounds::{DEFAULT_MAX_LINKS, DEFAULT_PROOF_WINDOWS, MAX_LINKS};
use crate::warrant::{self, Carried, Claim, Judged, Tolerance};

/// The tolerance of a worker that does not know the tenant's settings. The lane applies them.
pub const ANY_TOLERANCE: Tolerance =
    Tolerance { max_links: MAX_LINKS, proof_windows: DEFAULT_PROOF_WINDOWS };

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

/// The warrant of an HTTP request, judged. The worker cannot, because it does not know the tool and the arguments.
#[must_use]
pub fn of_command(
    engine: &PolicyEngine,
    command: &GateCommand,
    records: &CallRecords,
    now_ms: u64,
) -> Option<Carried> {
    let mut carried = command.warrant.clone()?;
    let (call, now_s) = (&command.call, now_ms / 1_000);
    let (server, tool, input) = (call.server.as_str(), call.tool.as_str(), &call.input);
    let call = warrant::Call { server, tool, input, now_s };
    carried.judge(&call, tolerance(records), &mut engine.chains().borrow_mut());
    Some(carried)
}

/// The name under which a lane remembers that a proof was used. It has a space, so it is not a nonce of a caller's
/// request with the same letters.
#[must_use]
pub fn proof_name(claim: &Claim) -> String {
    ["warrant proof ", &hex::encode(claim.proven.hash)].concat()
}

/// Checks the warrant of a call of this tool.
pub fn check(draft: &Draft<'_>, tool: &Tool) -> Result<(), Box<Ruling>> {
    let deny = |code: ReasonCode, reason: Option<String>| {
        let mut ruling = Ruling::deny(code);
        ruling.reason = reason.unwrap_or(ruling.reason);
        ruling.tool = Some(tool.clone());
        Err(Box::new(ruling))
    };
    let facts = draft.facts;
    let claim = match facts.warrant.map(|carried| &carried.judged) {
        None if is_required(draft) => return deny(ReasonCode::WarrantRequired, None),
        None => return Ok(()),
        Some(Judged::Refused(refusal)) => return deny(refusal.code, Some(refusal.reason.clone())),
        // A call whose tool is not known is denied before.
        Some(Judged::Later(_)) => return deny(ReasonCode::WarrantMalformed, None),
        Some(Judged::Holds(claim)) => claim,
    };
    if draft.command.is_blind() {
        let reason = "The gateway that asks does not show the request's body, so its arguments cannot be compared with the warrant.";
        return deny(ReasonCode::WarrantUnsupported, Some(reason.to_owned()));
    }
    let records = facts.records;
    let tolerance = tolerance(records);
    if claim.ids.len() > tolerance.max_links {
        let most = tolerance.max_links;
        let reason =
            format!("The warrant's chain has more than the {most} links that the tenant accepts.");
        return deny(ReasonCode::WarrantChainBroken, Some(reason));
    }
    let server = &draft.command.call.server;
    let root = records.warrants.root(&claim.root).filter(|root| {
        let servers = root.allowed_servers.as_deref();
        servers.is_none_or(|globs| globs.iter().any(|glob| glob.matches(server)))
    });
    if root.is_none() {
        return deny(ReasonCode::WarrantUntrusted, None);
    }
    if records.agent.as_ref().and_then(|agent| agent.public_key) != Some(claim.agent_key) {
        return deny(ReasonCode::WarrantHolderUnknown, None);
    }
    if records.warrants.first_revoked(&claim.ids).is_some() {
        return deny(ReasonCode::WarrantRevoked, None);
    }
    // The worker judged by its own clock.
    let now_s = facts.now_ms / 1_000;
    if now_s >= claim.expires_at_s {
        return deny(ReasonCode::WarrantExpired, None);
    }
    if !claim.proven.is_accepted(now_s, tolerance.proof_windows) {
        let reason = "The proof was made outside of the time that the tenant accepts.".to_owned();
        return deny(ReasonCode::WarrantProofInvalid, Some(reason));
    }
    let needed = records.tool.as_ref().and_then(|tool| tool.min_clearance);
    if let Some(needed) = needed.filter(|needed| claim.clearance.unwrap_or(0) < *needed) {
        let reason = format!("The tool needs a warrant with a clearance of {needed}.");
        return deny(ReasonCode::WarrantClearanceMissing, Some(reason));
    }
    if facts.proof_used && is_good_once(draft, tool) {
        let next = id::rfc3339(claim.proven.next_at_s().saturating_mul(1_000));
        let reason = format!(
            "The proof was used: it is good once. From {next} on, the same call has another proof."
        );
        return deny(ReasonCode::WarrantProofUsed, Some(reason));
    }
    Ok(())
}

fn is_required(draft: &Draft<'_>) -> bool {
    let records = draft.facts.records;
    let by_tenant = records.tenant.as_ref().and_then(|tenant| tenant.settings.warrant_required);
    by_tenant == Some(true)
        || records.agent.as_ref().is_some_and(|agent| agent.warrant_required)
        || records.tool.as_ref().is_some_and(|tool| tool.warrant_required)
}

/// Whether a proof of the call is good once: of each that changes something, and of each if the tenant says so.
fn is_good_once(draft: &Draft<'_>, tool: &Tool) -> bool {
    let tenant = draft.facts.records.tenant.as_ref();
    tool.writes || tenant.and_then(|tenant| tenant.settings.warrant_reads_once) == Some(true)
}

/// The proof that the decision uses up. A denied call uses none.
#[must_use]
pub fn used_proof(draft: &Draft<'_>, ruling: &Ruling) -> Option<String> {
    let claim = draft.facts.warrant.and_then(Carried::claim)?;
    let tool = ruling.tool.as_ref()?;
    let uses = ruling.decision.passes() && is_good_once(draft, tool);
    uses.then(|| proof_name(claim))
}

/// What a receipt says about the warrant of a decision.
#[must_use]
pub fn note(draft: &Draft<'_>) -> Option<WarrantNote> {
    let claim = draft.facts.warrant.and_then(Carried::claim)?;
    Some(WarrantNote {
        chain_hash: hex::encode(claim.chain_hash),
        depth: claim.ids.len().saturating_sub(1),
        id: claim.ids.last().map(hex::encode).unwrap_or_default(),
        root: claim.root.to_string(),
    })
}

/// `context.warrant`. Without a warrant, texts are empty and numbers 0.
pub fn context(draft: &Draft<'_>) -> Value {
    let claim = draft.facts.warrant.and_then(Carried::claim);
    let text = |of: fn(&Claim) -> String| Value::from(claim.map(of).unwrap_or_default().as_str());
    let long = |of: fn(&Claim) -> usize| {
        Value::from(claim.map(of).and_then(|number| i64::try_from(number).ok()).unwrap_or(0))
    };
    let tools = claim.into_iter().flat_map(|claim| &claim.tools);
    let expires_at_s = claim.map_or(0, |claim| claim.expires_at_s);
    let left_s = expires_at_s.saturating_sub(draft.facts.now_ms / 1_000);
    Value::record(
        [
            ("present", Value::from(claim.is_some())),
            ("id", text(|claim| claim.ids.last().map(hex::encode).unwrap_or_default())),
            ("root", text(|claim| claim.root.to_string())),
            ("issuer", text(|claim| claim.issuer.to_string())),
            ("holder", text(|claim| claim.holder.to_string())),
            ("depth", long(|claim| claim.ids.len().saturating_sub(1))),
            ("tools", Value::set(tools.map(|tool| Value::from(tool.as_str())), None)),
            ("clearance", long(|claim| usize::from(claim.clearance.unwrap_or(0)))),
            ("expires_in_s", Value::from(i64::try_from(left_s).unwrap_or(i64::MAX))),
        ],
        None,
    )
}
