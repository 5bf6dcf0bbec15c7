//! Reads a warrant's payload and checks it.

use std::mem;

use super::super::bounds::{
    MAX_APPROVERS, MAX_EXTENSION_BYTES, MAX_EXTENSION_KEY_BYTES, MAX_EXTENSIONS, MAX_LIFETIME_S,
    MAX_LINKS, MAX_TOOLS,
};
use super::super::cbor::{Malformed, Reader};
use super::super::constraint::Arguments;
use super::super::gate::Gates;
use super::super::key::{KEY_BYTES, PublicKey};
use super::{APPROVAL_GATES, Issuing, Payload, Powers, VERSION, WarrantId, keys, read_key};

/// Names that only the format itself may use.
const RESERVED_TOOLS: &str = "tenuo:";

/// Extensions that only the format itself may use. The ones that this version knows follow.
const RESERVED_EXTENSIONS: &str = "tenuo.";
const KNOWN_EXTENSIONS: [&str; 4] =
    [APPROVAL_GATES, "tenuo.session_id", "tenuo.agent_id", "tenuo.identity_binding"];
/// Those of them whose value is a text.
const TEXT_EXTENSIONS: [&str; 2] = ["tenuo.session_id", "tenuo.agent_id"];

impl Payload {
    /// # Errors
    ///
    /// It does not have the form, or exceeds a bound.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new();
        fields.read(bytes)?;
        Ok(fields.payload)
    }

    fn extensions(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        self.extensions = reader.entries(MAX_EXTENSIONS, |reader, name| {
            if name.len() > MAX_EXTENSION_KEY_BYTES {
                return Err(Malformed("an extension's key is too long"));
            }
            if name.starts_with(RESERVED_EXTENSIONS) && !KNOWN_EXTENSIONS.contains(&name) {
                return Err(Malformed("a reserved extension is unknown"));
            }
            reader.octets(MAX_EXTENSION_BYTES)
        })?;
        let mut gates_at = None;
        for (at, (name, value)) in self.extensions.iter().enumerate() {
            let name = name.as_str();
            if TEXT_EXTENSIONS.contains(&name) && std::str::from_utf8(value).is_err() {
                return Err(Malformed("an extension is not a text"));
            }
            if name == APPROVAL_GATES {
                self.gates = Some(Gates::read(value)?);
                gates_at = Some(at);
            }
        }
        if let Some(at) = gates_at {
            drop(self.extensions.remove(at));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Malformed> {
        let lifetime_s = self.expires_at_s.checked_sub(self.issued_at_s).filter(|life| *life > 0);
        match lifetime_s {
            None => return Err(Malformed("it expires before it is issued")),
            Some(life) if life > MAX_LIFETIME_S => return Err(Malformed("it lives for too long")),
            Some(_) => {}
        }
        if usize::from(self.max_depth) > MAX_LINKS || self.depth > self.max_depth {
            return Err(Malformed("its depth is out of range"));
        }
        if let Powers::Issuer(Issuing { max_depth: Some(depth), .. }) = &self.powers
            && *depth > u32::from(self.max_depth)
        {
            return Err(Malformed("it may issue deeper than it may be delegated"));
        }
        let approvers = &self.approvers;
        let twice = approvers
            .iter()
            .enumerate()
            .any(|(at, key)| approvers.get(..at).is_some_and(|before| before.contains(key)));
        if twice {
            return Err(Malformed("an approver occurs twice"));
        }
        let is_quorum =
            |min: u32| usize::try_from(min).is_ok_and(|min| (1..=approvers.len()).contains(&min));
        if self.min_approvals.is_some_and(|min| !is_quorum(min)) {
            return Err(Malformed("it needs more approvals than it has approvers, or none"));
        }
        Ok(())
    }
}

/// The fields of the map, before they are checked against each other.
///
/// They are read into their last place, by functions that return errors alone. So an error drops them in one place of
/// the code, and nothing is moved.
struct Fields {
    /// One bit for each key that was read.
    seen: u32,
    version: u64,
    kind: u64,
    tools: Vec<(String, Arguments)>,
    issuing: Issuing,
    /// Everything else. Its powers are set at the end.
    payload: Payload,
}

impl Fields {
    const fn new() -> Self {
        Self {
            seen: 0,
            version: 0,
            kind: 0,
            tools: Vec::new(),
            issuing: Issuing { tools: Vec::new(), max_depth: None, bounds: None },
            payload: Payload {
                id: WarrantId([0; 16]),
                powers: Powers::Execution(Vec::new()),
                holder: PublicKey([0; KEY_BYTES]),
                issuer: PublicKey([0; KEY_BYTES]),
                issued_at_s: 0,
                expires_at_s: 0,
                max_depth: 0,
                depth: 0,
                parent_hash: None,
                extensions: Vec::new(),
                gates: None,
                approvers: Vec::new(),
                min_approvals: None,
                clearance: None,
            },
        }
    }

    /// Whether each of these keys was read.
    fn has(&self, keys: &[u64]) -> bool {
        keys.iter().all(|key| self.seen >> key & 1 == 1)
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(bytes);
        for _ in 0..reader.map()? {
            let key = reader.unsigned()?;
            let bit = u32::try_from(key).ok().and_then(|key| 1_u32.checked_shl(key));
            let bit = bit.ok_or(Malformed("a field is unknown"))?;
            if self.seen & bit != 0 {
                return Err(Malformed("a field occurs twice"));
            }
            self.seen |= bit;
            self.field(key, &mut reader)?;
        }
        self.powers()?;
        self.payload.check()?;
        reader.end()
    }

    fn field(&mut self, key: u64, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let payload = &mut self.payload;
        match key {
            keys::VERSION => self.version = reader.unsigned()?,
            keys::ID => payload.id = WarrantId(*reader.exact()?),
            keys::KIND => self.kind = reader.unsigned()?,
            keys::TOOLS => {
                self.tools = reader.entries(MAX_TOOLS, |reader, name| {
                    allowed_tool(name)?;
                    Arguments::read(reader)
                })?;
            }
            keys::HOLDER => payload.holder = read_key(reader)?,
            keys::ISSUER => payload.issuer = read_key(reader)?,
            keys::ISSUED_AT => payload.issued_at_s = reader.unsigned()?,
            keys::EXPIRES_AT => payload.expires_at_s = reader.unsigned()?,
            keys::MAX_DEPTH => payload.max_depth = reader.small()?,
            keys::PARENT_HASH => {
                let hash = reader.octets(32)?.try_into();
                payload.parent_hash = Some(hash.map_err(|_| Malformed("a hash is too short"))?);
            }
            keys::EXTENSIONS => payload.extensions(reader)?,
            keys::ISSUABLE => {
                self.issuing.tools = reader.list(MAX_TOOLS, |reader| {
                    let name = reader.text()?;
                    allowed_tool(name)?;
                    Ok(name.to_owned())
                })?;
            }
            keys::MAX_ISSUE_DEPTH => self.issuing.max_depth = Some(reader.small()?),
            keys::BOUNDS => self.issuing.bounds = Some(Arguments::read(reader)?),
            keys::APPROVERS => payload.approvers = reader.list(MAX_APPROVERS, read_key)?,
            keys::MIN_APPROVALS => payload.min_approvals = Some(reader.small()?),
            keys::CLEARANCE => payload.clearance = Some(reader.small()?),
            keys::DEPTH => payload.depth = reader.small()?,
            _ => return Err(Malformed("a field is unknown")),
        }
        Ok(())
    }

    /// Checks which fields there are, and sets the powers.
    fn powers(&mut self) -> Result<(), Malformed> {
        const MISSING: Malformed = Malformed("a field is missing");
        if !self.has(&[keys::VERSION]) {
            return Err(MISSING);
        }
        if self.version != VERSION {
            return Err(Malformed("the version is unknown"));
        }
        if !self.has(&[keys::TOOLS, keys::KIND]) {
            return Err(MISSING);
        }
        let tools = mem::take(&mut self.tools);
        self.payload.powers = match self.kind {
            0 => {
                let issues = [keys::ISSUABLE, keys::MAX_ISSUE_DEPTH, keys::BOUNDS];
                if issues.iter().any(|key| self.has(&[*key])) {
                    return Err(Malformed("a warrant that calls cannot issue"));
                }
                Powers::Execution(tools)
            }
            1 => {
                if self.issuing.tools.is_empty() {
                    return Err(Malformed("a warrant that issues names no tool"));
                }
                if !tools.is_empty() {
                    return Err(Malformed("a warrant that issues cannot call"));
                }
                Powers::Issuer(mem::take(&mut self.issuing))
            }
            _ => return Err(Malformed("the kind is unknown")),
        };
        let others = [
            keys::ID,
            keys::HOLDER,
            keys::ISSUER,
            keys::ISSUED_AT,
            keys::EXPIRES_AT,
            keys::MAX_DEPTH,
        ];
        if self.has(&others) { Ok(()) } else { Err(MISSING) }
    }
}

fn allowed_tool(name: &str) -> Result<(), Malformed> {
    match name.starts_with(RESERVED_TOOLS) || name.is_empty() {
        true => Err(Malformed("a tool's name is empty or reserved")),
        false => Ok(()),
    }
}
