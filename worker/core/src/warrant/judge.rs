//! Checks a call against its warrant, without the registry.
//!
//! The lane checks what needs the registry: whether the root is trusted, revocations, clearance, the agent,
//! and whether the proof was used.
//!
//! For a caller with a credential, checks without cryptography come first; their refusals are marked. A caller without
//! one proves first who it is.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::approval;
use super::bounds::{MAX_APPROVALS, MAX_STACK_BYTES};
use super::chain::{self, Chain, Envelope};
use super::constraint::fit::{self, Misfit};
use super::constraint::{Arguments, TooMuch, Work};
use super::key::{PublicKey, SIGNATURE_BYTES, raw};
use super::payload::{Issuing, Payload, Powers};
use super::proof::{Proven, Statement};
use super::refusal::{NeededApprovals, Refusal};
use crate::decision::ReasonCode;
use crate::json::Json;
use crate::schema::shortened;

/// What a caller presents with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presented {
    /// A warrant, or a stack of warrants from the root to the leaf, in CBOR.
    pub stack: Vec<u8>,
    /// An Ed25519 signature.
    pub proof: Option<Vec<u8>>,
    /// Approvals in CBOR.
    pub approvals: Vec<Vec<u8>>,
}

impl Presented {
    /// How many links the chain has; 0 if it cannot be read.
    #[must_use]
    pub fn links(&self) -> usize {
        chain::envelopes(&self.stack).map_or(0, |envelopes| envelopes.len())
    }

    /// Bytes of memory that it has allocated.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let approvals: usize = self.approvals.iter().map(Vec::capacity).sum();
        self.stack.capacity() + self.proof.as_ref().map_or(0, Vec::capacity) + approvals
    }
}

/// What a verified chain says about one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The key that the tenant must trust.
    #[serde(with = "raw")]
    pub root: PublicKey,
    /// The holder of the first warrant: the key of the agent whose call it is.
    #[serde(with = "raw")]
    pub agent_key: PublicKey,
    /// The ids of all links, from the root to the leaf.
    pub ids: Vec<[u8; 16]>,
    #[serde(with = "raw")]
    pub issuer: PublicKey,
    /// Who proved to hold the leaf.
    #[serde(with = "raw")]
    pub holder: PublicKey,
    pub clearance: Option<u8>,
    /// The names of the leaf's tools, sorted.
    pub tools: Vec<String>,
    /// Whether the leaf names the tool with its server. Without, the root must be good for the server.
    pub names_server: bool,
    /// The least of all links, in seconds since 1970.
    pub expires_at_s: u64,
    /// SHA-256 of the stack's bytes.
    pub chain_hash: [u8; 32],
    pub proven: Proven,
    /// Why the warrant does not carry the call. Present only for a caller without a credential: the warrant still
    /// proves who calls, so the refused call is one of that agent's calls. For every other caller, [`judge`] returns
    /// the refusal and no claim.
    pub refusal: Option<Refusal>,
}

impl Claim {
    /// The leaf's id, in hex.
    #[must_use]
    pub fn id(&self) -> String {
        self.ids.last().map(hex::encode).unwrap_or_default()
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// An object.
    pub input: &'a Json,
    pub now_s: u64,
    /// The first holder, if the caller named it. It is compared before signatures are verified.
    pub agent_key: Option<PublicKey>,
}

/// Links and windows that are accepted.
#[derive(Debug, Clone, Copy)]
pub struct Tolerance {
    pub max_links: usize,
    pub proof_windows: u32,
}

/// Chains that were verified before. A chain in it pays for its proof alone.
#[derive(Debug, Default)]
pub struct Cache {
    /// Sorted by the hash of their bytes. `MAX_CACHED_BYTES` bounds how many there are, and a map is ten times the code.
    chains: Vec<Rc<Chain>>,
    /// Bytes of the stacks.
    bytes: usize,
}

/// Bytes of the stacks in a cache: one of the greatest size fits. In memory, a chain takes at most some forty times its
/// bytes.
const MAX_CACHED_BYTES: usize = MAX_STACK_BYTES;

impl Cache {
    /// Where the chain with this hash is, or would be.
    #[inline(never)]
    fn find(&self, hash: &[u8; 32]) -> Result<usize, usize> {
        self.chains.binary_search_by(|chain| chain.hash.cmp(hash))
    }

    /// Keeps a chain whose stack has so many bytes, at most [`MAX_STACK_BYTES`]. If it does not fit, all others are
    /// dropped.
    fn keep(&mut self, chain: &Rc<Chain>, bytes: usize) {
        let Err(mut at) = self.find(&chain.hash) else { return };
        if self.bytes + bytes > MAX_CACHED_BYTES {
            *self = Self::default();
            at = 0;
        }
        self.chains.insert(at, Rc::clone(chain));
        self.bytes += bytes;
    }
}

/// Reads the links without verifying them.
///
/// # Errors
///
/// They cannot be read.
pub fn links(presented: &Presented) -> Result<Vec<Payload>, Refusal> {
    let envelopes = chain::envelopes(&presented.stack)?;
    envelopes.iter().enumerate().map(|(at, envelope)| chain::link(envelope, at)).collect()
}

/// The chain of what is presented, if its last link is valid at this time and all of it can be verified. For calls whose
/// tool is not known yet. It is not kept, because its holder has proved nothing: see [`keep`].
///
/// # Errors
///
/// The first rule that does not hold.
pub fn chain(
    presented: &Presented,
    (agent_key, now_s): (Option<PublicKey>, u64),
    cache: &Cache,
) -> Result<Rc<Chain>, Refusal> {
    let envelopes = chain::envelopes(&presented.stack)?;
    leaf(&envelopes, agent_key, now_s)?;
    verified(presented, &envelopes, &mut Work::default(), cache)
}

/// Keeps a chain of a root that the tenant trusts, or of a caller whose proof was verified. A chain that is not in the cache
/// is verified here.
///
/// # Errors
///
/// The first rule that does not hold.
pub fn keep(
    presented: &Presented,
    (agent_key, now_s): (Option<PublicKey>, u64),
    cache: &mut Cache,
) -> Result<(), Refusal> {
    let chain = chain(presented, (agent_key, now_s), cache)?;
    cache.keep(&chain, presented.stack.len());
    Ok(())
}

fn check_agent(envelopes: &[Envelope<'_>], agent_key: Option<PublicKey>) -> Result<(), Refusal> {
    let (Some(key), Some(root)) = (agent_key, envelopes.first()) else { return Ok(()) };
    match chain::link(root, 0)?.holder == key {
        true => Ok(()),
        false => Err(Refusal::of(ReasonCode::WarrantHolderUnknown)),
    }
}

/// The chain, from the cache or verified.
fn verified(
    presented: &Presented,
    envelopes: &[Envelope<'_>],
    work: &mut Work,
    cache: &Cache,
) -> Result<Rc<Chain>, Refusal> {
    let hash = chain::sha256(&presented.stack);
    if let Some(chain) = cache.find(&hash).ok().and_then(|at| cache.chains.get(at)) {
        return match work.spend(usize::try_from(chain.steps).unwrap_or(usize::MAX)) {
            Ok(()) => Ok(Rc::clone(chain)),
            Err(TooMuch) => {
                let last = envelopes.len().saturating_sub(1);
                Err(too_much(last))
            }
        };
    }
    Chain::verify(envelopes, hash, work).map(Rc::new)
}

/// The last link, as it says, if it is valid at this time.
fn leaf(
    envelopes: &[Envelope<'_>],
    agent_key: Option<PublicKey>,
    now_s: u64,
) -> Result<Payload, Refusal> {
    check_agent(envelopes, agent_key)?;
    let (at, leaf) = envelopes
        .iter()
        .enumerate()
        .next_back()
        .ok_or_else(|| Refusal::malformed("it is empty"))?;
    let leaf = chain::link(leaf, at)?;
    timely(&leaf, at, now_s)?;
    Ok(leaf)
}

fn check_length(links: usize, tolerance: Tolerance) -> Result<(), Refusal> {
    let most = tolerance.max_links;
    if links <= most {
        return Ok(());
    }
    let reason = format!("The warrant's chain is longer than the {most} links that are accepted.");
    Err(Refusal::new(ReasonCode::WarrantChainBroken, reason))
}

/// Judges a call.
///
/// # Errors
///
/// The first rule that does not hold.
pub fn judge(
    presented: &Presented,
    call: &Call<'_>,
    tolerance: Tolerance,
    cache: &mut Cache,
) -> Result<Claim, Refusal> {
    if presented.stack.len() > MAX_STACK_BYTES || presented.approvals.len() > MAX_APPROVALS {
        let refusal = Refusal::malformed("it is too large, or has too many approvals");
        return Err(refusal.before_signatures());
    }
    let envelopes = chain::envelopes(&presented.stack).map_err(Refusal::before_signatures)?;
    let mut work = Work::default();
    let leaf = check_length(envelopes.len(), tolerance)
        .and_then(|()| leaf(&envelopes, call.agent_key, call.now_s))
        .map_err(Refusal::before_signatures)?;
    let last = envelopes.len() - 1;
    // Without a credential, the chain and the proof say who calls. So the constraints are checked after both, and
    // somebody who proved nothing causes none of that work.
    let is_identified = call.agent_key.is_none();
    if is_identified {
        check_leaf(&leaf, call, last, &mut work).map_err(Refusal::before_signatures)?;
    }
    let Some(proof) = &presented.proof else {
        return Err(Refusal::of(ReasonCode::WarrantProofMissing).before_signatures());
    };
    let proof: &[u8; SIGNATURE_BYTES] = proof
        .as_slice()
        .try_into()
        .map_err(|_| Refusal::malformed("the proof has another length than 64 bytes"))
        .map_err(Refusal::before_signatures)?;

    let chain = verified(presented, &envelopes, &mut work, cache)?;
    let links = chain.links();
    for (at, link) in links.iter().enumerate() {
        timely(link, at, call.now_s)?;
    }
    let before_leaf = links.split_last().map_or(&[][..], |(_, before)| before);
    if is_identified {
        check_links(before_leaf, call, &mut work)?;
    }
    let names_server = arguments(&leaf, call).is_some_and(|(_, names_server)| names_server);
    let name = name(call, names_server);
    let statement = Statement::new(leaf.id, &name, call.input);
    let times = (call.now_s, tolerance.proof_windows);
    let proven = statement.verify(&leaf.holder, proof, times, &mut work);
    let Some(proven) = proven.map_err(|TooMuch| too_much(last))? else {
        let reason = "The proof is not a signature of this tool and these arguments by the warrant's holder, made within the accepted time.";
        return Err(Refusal::new(ReasonCode::WarrantProofInvalid, reason));
    };
    cache.keep(&chain, presented.stack.len());
    let fitting = match is_identified {
        true => Ok(()),
        false => check_leaf(&leaf, call, last, &mut work)
            .and_then(|()| check_links(before_leaf, call, &mut work)),
    };
    let carried = fitting
        .and_then(|()| check_approvals(links, &statement, call, &presented.approvals, &mut work));
    if is_identified && let Err(refusal) = carried {
        return Err(refusal);
    }

    let Some(root) = links.first() else { return Err(Refusal::malformed("it is empty")) };
    let tools = match &leaf.powers {
        Powers::Execution(tools) => tools.iter().map(|(name, _)| name.clone()).collect(),
        Powers::Issuer(_) => Vec::new(),
    };
    Ok(Claim {
        root: root.issuer,
        agent_key: root.holder,
        ids: links.iter().map(|link| link.id.0).collect(),
        issuer: leaf.issuer,
        holder: leaf.holder,
        clearance: leaf.clearance,
        tools,
        names_server,
        expires_at_s: links.iter().map(|link| link.expires_at_s).min().unwrap_or(0),
        chain_hash: chain.hash,
        proven,
        refusal: carried.err(),
    })
}

/// Checks the constraints of these links, and the bounds of those that issue.
fn check_links(links: &[Payload], call: &Call<'_>, work: &mut Work) -> Result<(), Refusal> {
    for (at, link) in links.iter().enumerate() {
        match &link.powers {
            Powers::Issuer(Issuing { bounds: None, .. }) => {}
            Powers::Issuer(Issuing { bounds: Some(bounds), .. }) => {
                fits(bounds, call.input, at, work)?;
            }
            Powers::Execution(_) => check_leaf(link, call, at, work)?,
        }
    }
    Ok(())
}

/// Bytes of the name of an argument or a tool in a reason.
const MAX_NAME_BYTES: usize = 100;

/// The tool as the leaf names it.
fn name(call: &Call<'_>, names_server: bool) -> String {
    match names_server {
        true => [call.server, "/", call.tool].concat(),
        false => call.tool.to_owned(),
    }
}

/// What a link says about the tool's arguments, and whether it names the tool with its server. A name with the
/// server comes first, then the tool's own name, then `*`.
///
/// A tool's own name with a `/` could be the name of another server's tool. So a link that has this name says nothing
/// about the tool, also not by `*`: the link may mean the tool, and restrict it more than `*`.
fn arguments<'a>(link: &'a Payload, call: &Call<'_>) -> Option<(&'a Arguments, bool)> {
    if let Some(with_server) = link.named_with_server(call.server, call.tool) {
        return Some((with_server, true));
    }
    let alone = match link.named(call.tool) {
        Some(_) if call.tool.contains('/') => return None,
        None => link.named("*"),
        own => own,
    };
    alone.map(|it| (it, false))
}

/// What a link that calls says about the call.
#[inline(never)]
fn check_leaf(leaf: &Payload, call: &Call<'_>, at: usize, work: &mut Work) -> Result<(), Refusal> {
    if matches!(leaf.powers, Powers::Issuer(_)) {
        let reason = "it only issues warrants; it carries no call";
        return Err(Refusal::at(ReasonCode::WarrantToolMissing, at, reason));
    }
    let Some((arguments, _)) = arguments(leaf, call) else {
        let tool = shortened(call.tool, MAX_NAME_BYTES);
        let after = if call.tool.contains('/') { " with its server" } else { "" };
        let reason = ("it does not name the tool ", Some(&*tool), after);
        return Err(Refusal::about(ReasonCode::WarrantToolMissing, at, reason));
    };
    fits(arguments, call.input, at, work)
}

/// The refusal of a chain, a proof or approvals that take too many steps. The last link is named: it belongs to the call.
fn too_much(at: usize) -> Refusal {
    Refusal::at(ReasonCode::WarrantUnsupported, at, chain::TOO_MUCH)
}

#[inline(never)]
fn timely(link: &Payload, at: usize, now_s: u64) -> Result<(), Refusal> {
    chain::in_time(link, now_s).map_err(|code| {
        let reason = match code {
            ReasonCode::WarrantExpired => "it has expired",
            _ => "it was issued in the future",
        };
        Refusal::at(code, at, reason)
    })
}

fn fits(arguments: &Arguments, input: &Json, at: usize, work: &mut Work) -> Result<(), Refusal> {
    use ReasonCode::{WarrantArgumentRefused, WarrantUnsupported};
    let Err(misfit) = fit::arguments(arguments, input, work) else { return Ok(()) };
    let (code, before, name, after) = match misfit {
        Misfit::Unlisted(name) => {
            (WarrantArgumentRefused, "it does not list the argument ", name, "")
        }
        Misfit::Missing(name) => (WarrantArgumentRefused, "it needs the argument ", name, ""),
        Misfit::Refused(name) => {
            (WarrantArgumentRefused, "it does not allow this value of ", name, "")
        }
        Misfit::Unsupported(name) => {
            (WarrantUnsupported, "its constraint on ", name, " cannot be evaluated for this value")
        }
        Misfit::TooMuch => {
            return Err(Refusal::at(WarrantUnsupported, at, "it takes too much work to evaluate"));
        }
    };
    let name = shortened(name, MAX_NAME_BYTES);
    Err(Refusal::about(code, at, (before, Some(&name), after)))
}

/// A gate of any link asks for the approvals of the last one, which has all approvers of those before it.
fn check_approvals(
    links: &[Payload],
    statement: &Statement<'_>,
    call: &Call<'_>,
    approvals: &[Vec<u8>],
    work: &mut Work,
) -> Result<(), Refusal> {
    let with_server = self::name(call, true);
    let mut closed = false;
    for (at, link) in links.iter().enumerate() {
        let Some(gates) = &link.gates else { continue };
        let names = [with_server.as_str(), call.tool, "*"];
        closed |= gates.need_approvals(&names, call.input, work).map_err(|_| {
            let reason = "a condition of its approval gates cannot be evaluated";
            Refusal::at(ReasonCode::WarrantUnsupported, at, reason)
        })?;
    }
    let Some(leaf) = links.last().filter(|_| closed) else { return Ok(()) };
    // Nobody can approve if there is no approver.
    let need = leaf.threshold().max(1);
    let hash = statement.request_hash(&leaf.holder);
    let got = approval::count(leaf, hash, need, approvals, call.now_s, work)
        .map_err(|TooMuch| too_much(links.len().saturating_sub(1)))?;
    if got >= need {
        return Ok(());
    }
    let needed = NeededApprovals { request_hash: hex::encode(hash), got, need };
    Err(Refusal::without_approvals(needed, leaf.approvers.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_any_accepted_size_is_kept_within_the_bound() {
        let mut cache = Cache::default();
        let large = 40 * 1024;
        for (number, bytes, expected, held) in [
            (1, large, [true, false, false, false], large),
            (2, large, [true, true, false, false], 2 * large),
            (1, large, [true, true, false, false], 2 * large),
            (3, MAX_STACK_BYTES, [false, false, true, false], MAX_STACK_BYTES),
            (4, 1, [false, false, false, true], 1),
        ] {
            let chain = Chain::verify(&[], [number; 32], &mut Work::default()).unwrap();
            cache.keep(&Rc::new(chain), bytes);
            let known = [1, 2, 3, 4].map(|number| cache.find(&[number; 32]).is_ok());
            assert_eq!((known, cache.bytes), (expected, held), "{number}");
        }
    }
}
