//! A chain of warrants, from the root to the leaf, and the rules between its links.
//!
//! INVARIANT (each link holds): all rules are checked at every link. A chain that this accepts, the reference
//! implementation accepts too.

use sha2::{Digest as _, Sha256};

use super::bounds::{CLOCK_TOLERANCE_S, MAX_LINKS, MAX_WARRANT_BYTES};
use super::cbor::{Malformed, Reader, Writer};
use super::constraint::{TooMuch, Work, narrow};
use super::key::{PublicKey, SIGNATURE_BYTES};
use super::payload::{self, Payload, Powers};
use super::refusal::Refusal;
use crate::decision::ReasonCode;

/// The version of the envelope.
const ENVELOPE_VERSION: u8 = 1;

/// What every signature of the format begins with.
pub const CONTEXT: &[u8] = b"tenuo-warrant-v1";

/// A warrant as it is on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    pub payload: &'a [u8],
    pub signature: &'a [u8; SIGNATURE_BYTES],
}

impl<'a> Envelope<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (envelope, bytes) = reader.consumed(|reader| {
            reader.tuple(3)?;
            if reader.unsigned()? != u64::from(ENVELOPE_VERSION) {
                return Err(Malformed("the version of its envelope is unknown"));
            }
            let payload = reader.bytes()?;
            Ok(Self { payload, signature: payload::read_signature(reader)? })
        })?;
        if bytes.len() > MAX_WARRANT_BYTES {
            Err(Malformed("it is too large"))
        } else {
            Ok(envelope)
        }
    }

    /// The CBOR form.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.array(3);
        writer.unsigned(u64::from(ENVELOPE_VERSION));
        writer.bytes(self.payload);
        payload::write_signature(&mut writer, self.signature);
        writer.bytes
    }

    /// What its issuer signs.
    #[must_use]
    pub fn signed(payload: &[u8]) -> Vec<u8> {
        [CONTEXT, &[ENVELOPE_VERSION], payload].concat()
    }
}

/// Splits a warrant, or a stack of warrants, into envelopes. The bounds on bytes are the caller's.
///
/// # Errors
///
/// It does not have the form, or has no link, or too many. Says at which link, if one is the reason.
pub fn envelopes(bytes: &[u8]) -> Result<Vec<Envelope<'_>>, Refusal> {
    let (mut links, mut broken) = (0, None);
    split(bytes, |reader| {
        let envelope = Envelope::read(reader).inspect_err(|_| broken = Some(links));
        links += 1;
        envelope
    })
    .map_err(|error| match broken {
        Some(at) => Refusal::at(ReasonCode::WarrantMalformed, at, error.0),
        None => Refusal::malformed(error.0),
    })
}

fn split<'a>(
    bytes: &'a [u8],
    mut read: impl FnMut(&mut Reader<'a>) -> Result<Envelope<'a>, Malformed>,
) -> Result<Vec<Envelope<'a>>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut inner = reader;
    inner.array()?;
    let envelopes = match inner.is_array() {
        true => reader.list(MAX_LINKS, read)?,
        false => vec![read(&mut reader)?],
    };
    reader.end()?;
    if envelopes.is_empty() { Err(Malformed("it has no warrant")) } else { Ok(envelopes) }
}

/// The link `at` of a chain.
///
/// # Errors
///
/// It does not have the form, or exceeds a bound.
#[inline(never)]
pub fn link(envelope: &Envelope<'_>, at: usize) -> Result<Payload, Refusal> {
    let link = Payload::read(envelope.payload);
    link.map_err(|error| Refusal::at(ReasonCode::WarrantMalformed, at, error.0))
}

/// A chain whose rules and signatures hold. Whether its root is trusted, and whether it has expired or was
/// revoked, is checked with each call.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// From the root to the leaf; not empty.
    links: Vec<Payload>,
    /// SHA-256 of the stack's bytes.
    pub hash: [u8; 32],
    /// Steps that its verification took. A call whose chain is in a cache pays for them too, so that the verdict does not
    /// depend on the cache.
    pub steps: u64,
}

impl Chain {
    /// Verifies link after link, from the root on: that it follows its parent, then its signature, then that it is not
    /// wider than its parent. So somebody who signed nothing causes no comparison of constraints.
    ///
    /// # Errors
    ///
    /// The first rule that does not hold, and at which link.
    pub fn verify(
        envelopes: &[Envelope<'_>],
        hash: [u8; 32],
        work: &mut Work,
    ) -> Result<Self, Refusal> {
        let mut links: Vec<Payload> = Vec::new();
        let before = work.left();
        for (at, envelope) in envelopes.iter().enumerate() {
            let link = link(envelope, at)?;
            let parent =
                at.checked_sub(1).and_then(|at| Some((links.get(at)?, envelopes.get(at)?)));
            let refused = |(code, reason): Broken| Refusal::at(code, at, reason);
            match parent {
                None => root(&link),
                Some((parent, envelope)) => linked(parent, envelope.payload, &link),
            }
            .map_err(refused)?;
            if links.iter().any(|other| other.id == link.id) {
                return Err(refused((BROKEN, "its id occurs twice")));
            }
            work.spend_signatures(1, envelope.payload.len()).map_err(too_much).map_err(refused)?;
            if !link.issuer.verify(&Envelope::signed(envelope.payload), envelope.signature) {
                return Err(refused((SIGNATURE, "the signature is not the issuer's")));
            }
            if let Some((parent, _)) = parent {
                powers(parent, &link, work)
                    .and_then(|()| approvals(parent, &link, work))
                    .map_err(refused)?;
            }
            links.push(link);
        }
        // The last link has all approvers of those before it.
        if let Some((leaf, at)) = links.last().zip(links.len().checked_sub(1))
            && !leaf.approvers.iter().all(PublicKey::is_usable)
        {
            return Err(Refusal::at(SIGNATURE, at, "the key of an approver is not usable"));
        }
        Ok(Self { links, hash, steps: before.saturating_sub(work.left()) })
    }

    #[must_use]
    pub fn links(&self) -> &[Payload] {
        &self.links
    }

    /// The first holder: the key of the agent whose calls it is for.
    #[must_use]
    pub fn agent_key(&self) -> Option<&PublicKey> {
        self.links.first().map(|root| &root.holder)
    }

    #[must_use]
    pub fn leaf(&self) -> Option<&Payload> {
        self.links.last()
    }
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

const BROKEN: ReasonCode = ReasonCode::WarrantChainBroken;
const WIDENED: ReasonCode = ReasonCode::WarrantWidened;
const SIGNATURE: ReasonCode = ReasonCode::WarrantSignatureInvalid;

/// Why a chain is refused that takes too many steps.
pub const TOO_MUCH: &str = "it takes too much work to verify";

type Broken = (ReasonCode, &'static str);

/// A root has no parent. The reference implementation accepts any single warrant that a root key signed.
fn root(link: &Payload) -> Result<(), Broken> {
    if link.depth != 0 || link.parent_hash.is_some() {
        return Err((BROKEN, "the first link is not a root"));
    }
    Ok(())
}

/// The rules between a link and its parent that need no comparison of constraints.
fn linked(parent: &Payload, parent_bytes: &[u8], child: &Payload) -> Result<(), Broken> {
    let rules = [
        (child.issuer == parent.holder, BROKEN, "the issuer is not the holder of its parent"),
        (
            child.parent_hash == Some(sha256(parent_bytes)),
            BROKEN,
            "it names another parent than the link before it",
        ),
        (
            Some(child.depth) == parent.depth.checked_add(1),
            BROKEN,
            "its depth is not one more than its parent's",
        ),
        (child.depth <= parent.max_depth, BROKEN, "it is deeper than its parent allows"),
        (
            child.max_depth <= parent.max_depth,
            WIDENED,
            "it may be delegated deeper than its parent",
        ),
        (child.issued_at_s >= parent.issued_at_s, BROKEN, "it was issued before its parent"),
        (child.expires_at_s <= parent.expires_at_s, WIDENED, "it expires after its parent"),
        (child.clearance <= parent.clearance, WIDENED, "its clearance is higher than its parent's"),
    ];
    for (holds, code, reason) in rules {
        if !holds {
            return Err((code, reason));
        }
    }
    Ok(())
}

fn too_much(_: TooMuch) -> Broken {
    (ReasonCode::WarrantUnsupported, TOO_MUCH)
}

/// What the child may do, its parent may do.
fn powers(parent: &Payload, child: &Payload, work: &mut Work) -> Result<(), Broken> {
    let lists = |tools: &[String], tool: &str| tools.iter().any(|name| name == tool || name == "*");
    match (&parent.powers, &child.powers) {
        (Powers::Execution(_), Powers::Execution(tools)) => {
            work.spend(tools.len()).map_err(too_much)?;
            for (name, arguments) in tools {
                let Some(wide) = parent.tool(name) else {
                    return Err((WIDENED, "its parent lacks one of its tools"));
                };
                if !narrow::arguments(wide, arguments, work).map_err(too_much)? {
                    return Err((WIDENED, "its parent is narrower about a tool's arguments"));
                }
            }
        }
        (Powers::Issuer(wide), Powers::Issuer(narrower)) => {
            work.spend(wide.tools.len() * narrower.tools.len()).map_err(too_much)?;
            if !narrower.tools.iter().all(|tool| lists(&wide.tools, tool)) {
                return Err((WIDENED, "its parent cannot issue one of its tools"));
            }
            if wide.max_depth.is_some_and(|most| narrower.max_depth.is_none_or(|mine| mine > most))
            {
                return Err((WIDENED, "it may issue deeper than its parent"));
            }
            if let Some(wide) = &wide.bounds {
                let Some(mine) = &narrower.bounds else {
                    return Err((WIDENED, "it lacks the bounds of its parent"));
                };
                if !narrow::arguments(wide, mine, work).map_err(too_much)? {
                    return Err((WIDENED, "its bounds are wider than its parent's"));
                }
            }
        }
        (Powers::Issuer(issuing), Powers::Execution(tools)) => {
            work.spend(issuing.tools.len() * tools.len()).map_err(too_much)?;
            if !tools.iter().all(|(tool, _)| lists(&issuing.tools, tool)) {
                return Err((WIDENED, "its parent cannot issue one of its tools"));
            }
            if issuing.max_depth.is_some_and(|most| u32::from(child.depth) > most) {
                return Err((BROKEN, "it is deeper than its parent may issue"));
            }
            if let Some(bounds) = &issuing.bounds {
                for (_, arguments) in tools {
                    if !narrow::arguments(bounds, arguments, work).map_err(too_much)? {
                        return Err((
                            WIDENED,
                            "its constraints are not within its issuer's bounds",
                        ));
                    }
                }
            }
            if child.holder == parent.holder || child.holder == parent.issuer {
                return Err((WIDENED, "an issuer cannot issue to itself, or to its own issuer"));
            }
        }
        (Powers::Execution(_), Powers::Issuer(_)) => {
            return Err((WIDENED, "a warrant that calls cannot become one that issues"));
        }
    }
    Ok(())
}

/// Whether a gate's tool is one of these powers'. `refund` can be `pay/refund`.
fn concerns(tool: &str, powers: &Powers) -> bool {
    let ends_with = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|server| server.ends_with('/'))
    };
    let is_it = |name: &str| {
        name == tool || name == "*" || tool == "*" || ends_with(name, tool) || ends_with(tool, name)
    };
    match powers {
        Powers::Execution(tools) => tools.iter().any(|(name, _)| is_it(name)),
        Powers::Issuer(issuing) => issuing.tools.iter().any(|name| is_it(name)),
    }
}

/// A child keeps its parent's approval gates and approvers. If it adds approvers, it needs as many more approvals.
fn approvals(parent: &Payload, child: &Payload, work: &mut Work) -> Result<(), Broken> {
    if let Some(gates) = &parent.gates {
        let tools = match &child.powers {
            Powers::Execution(tools) => tools.len(),
            Powers::Issuer(issuing) => issuing.tools.len(),
        };
        // Looking up the gate of the child, and comparing the tool's name with each of the child's tools, twice.
        let kept = child.gates.as_ref().map_or(0, |gates| gates.tools().count());
        work.spend(gates.tools().count() * (2 * tools + kept)).map_err(too_much)?;
        let concerns = |tool: &str| concerns(tool, &child.powers);
        if !gates.are_kept_by(child.gates.as_ref(), concerns, work).map_err(too_much)? {
            return Err((WIDENED, "it drops or weakens an approval gate"));
        }
        if parent.approvers.is_empty() && !child.approvers.is_empty() && gates.tools().any(concerns)
        {
            return Err((WIDENED, "it names approvers for what nobody can approve"));
        }
    }
    if !parent.approvers.iter().all(|approver| child.approvers.contains(approver)) {
        return Err((WIDENED, "it drops an approver"));
    }
    let added = child.approvers.len() - parent.approvers.len();
    if !parent.approvers.is_empty() && child.threshold() < parent.threshold() + added {
        return Err((WIDENED, "it needs fewer approvals than its parent"));
    }
    Ok(())
}

/// Whether a link is valid at this time.
///
/// # Errors
///
/// It has expired, or was issued in the future.
pub fn in_time(link: &Payload, now_s: u64) -> Result<(), ReasonCode> {
    if now_s >= link.expires_at_s {
        return Err(ReasonCode::WarrantExpired);
    }
    if link.issued_at_s > now_s.saturating_add(CLOCK_TOLERANCE_S) {
        return Err(ReasonCode::WarrantNotYetValid);
    }
    Ok(())
}
