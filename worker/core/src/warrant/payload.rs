//! What one warrant says.

use std::str::FromStr;
use std::{fmt, mem};

use super::bounds::{
    MAX_APPROVERS, MAX_EXTENSION_BYTES, MAX_EXTENSION_KEY_BYTES, MAX_EXTENSIONS, MAX_LIFETIME_S,
    MAX_LINKS, MAX_TOOLS,
};
use super::cbor::{Malformed, Reader, Writer};
use super::constraint::Arguments;
use super::gate::Gates;
use super::key::{KEY_BYTES, PublicKey};

/// The only version.
const VERSION: u64 = 1;

/// The only algorithm: Ed25519.
const ALGORITHM: u64 = 1;

/// Names that only the format itself may use.
const RESERVED_TOOLS: &str = "tenuo:";

/// Extensions that only the format itself may use. The ones that this version knows follow.
const RESERVED_EXTENSIONS: &str = "tenuo.";
const APPROVAL_GATES: &str = "tenuo.approval_gates";
const KNOWN_EXTENSIONS: [&str; 4] =
    [APPROVAL_GATES, "tenuo.session_id", "tenuo.agent_id", "tenuo.identity_binding"];
/// Those of them whose value is a text.
const TEXT_EXTENSIONS: [&str; 2] = ["tenuo.session_id", "tenuo.agent_id"];

/// A warrant's id. Its text is 32 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WarrantId(pub [u8; 16]);

impl WarrantId {
    /// What some texts put before the digits.
    pub const PREFIX: &str = "tnu_wrt_";
}

impl fmt::Display for WarrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for WarrantId {
    type Err = &'static str;

    /// Reads 32 hex digits, also after `tnu_wrt_` or with the dashes of a UUID.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const MUST: &str = "a warrant's id: 32 hex digits";
        // More dashes leave too few digits.
        let is_dash = |at: &usize| text.as_bytes().get(*at) == Some(&b'-');
        let digits = match text.len() == 36 && [8, 13, 18, 23].iter().all(is_dash) {
            true => text.replace('-', ""),
            false => text.strip_prefix(Self::PREFIX).unwrap_or(text).to_owned(),
        };
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| MUST)?;
        Ok(Self(bytes))
    }
}

/// What the holder may do.
#[derive(Debug, Clone, PartialEq)]
pub enum Powers {
    /// Call these tools. Sorted by name; `*` is every other tool.
    Execution(Vec<(String, Arguments)>),
    /// Issue warrants for others.
    Issuer(Issuing),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Issuing {
    /// Not empty. `*` is every tool.
    pub tools: Vec<String>,
    /// The greatest depth of a warrant that calls.
    pub max_depth: Option<u32>,
    /// What the constraints of every tool must be within.
    pub bounds: Option<Arguments>,
}

/// A warrant without its signature.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    pub id: WarrantId,
    pub powers: Powers,
    pub holder: PublicKey,
    pub issuer: PublicKey,
    /// Seconds since 1970, as the next.
    pub issued_at_s: u64,
    pub expires_at_s: u64,
    pub max_depth: u8,
    /// How many links precede it.
    pub depth: u8,
    /// SHA-256 of the parent's payload.
    pub parent_hash: Option<[u8; 32]>,
    /// Sorted by key, without the approval gates.
    pub extensions: Vec<(String, Vec<u8>)>,
    /// Which calls need approvals.
    pub gates: Option<Gates>,
    /// Who may approve; no key occurs twice.
    pub approvers: Vec<PublicKey>,
    /// How many of them must. `None`: all.
    pub min_approvals: Option<u32>,
    pub clearance: Option<u8>,
}

impl Payload {
    /// # Errors
    ///
    /// It does not have the form, or exceeds a bound.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new();
        fields.read(bytes)?;
        Ok(fields.payload)
    }

    /// The constraints on a tool's arguments, under its own name or under `*`.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arguments> {
        self.named(name).or_else(|| self.named("*"))
    }

    /// The constraints under exactly this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arguments> {
        let Powers::Execution(tools) = &self.powers else { return None };
        let at = tools.binary_search_by(|(key, _)| key.as_str().cmp(name)).ok()?;
        tools.get(at).map(|(_, arguments)| arguments)
    }

    /// The constraints under the name of a server's tool: `server/tool`.
    #[must_use]
    pub fn named_with_server(&self, server: &str, tool: &str) -> Option<&Arguments> {
        let Powers::Execution(tools) = &self.powers else { return None };
        // Texts are in the order of their bytes.
        let name = || server.bytes().chain([b'/']).chain(tool.bytes());
        let at = tools.binary_search_by(|(key, _)| key.bytes().cmp(name())).ok()?;
        tools.get(at).map(|(_, arguments)| arguments)
    }

    /// How many of the approvers must approve a call that needs approvals.
    #[must_use]
    pub fn threshold(&self) -> usize {
        let all = self.approvers.len();
        self.min_approvals.map_or(all, |min| usize::try_from(min).unwrap_or(usize::MAX).min(all))
    }

    /// The CBOR form.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut extensions: Vec<(&str, Vec<u8>)> =
            self.extensions.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        extensions.extend(self.gates.as_ref().map(|gates| (APPROVAL_GATES, gates.write())));
        extensions.sort_unstable();
        let (tools, issuing) = match &self.powers {
            Powers::Execution(tools) => (tools.as_slice(), None),
            Powers::Issuer(issuing) => (&[][..], Some(issuing)),
        };
        let optional = [
            self.parent_hash.is_some(),
            !extensions.is_empty(),
            issuing.is_some(),
            issuing.is_some_and(|it| it.max_depth.is_some()),
            issuing.is_some_and(|it| it.bounds.is_some()),
            !self.approvers.is_empty(),
            self.min_approvals.is_some(),
            self.clearance.is_some(),
        ];
        let mut writer = Writer::default();
        writer.map(10 + optional.into_iter().filter(|is_present| *is_present).count());
        writer.unsigned(keys::VERSION);
        writer.unsigned(VERSION);
        writer.unsigned(keys::ID);
        writer.bytes(&self.id.0);
        writer.unsigned(keys::KIND);
        writer.unsigned(u64::from(issuing.is_some()));
        writer.unsigned(keys::TOOLS);
        writer.map(tools.len());
        for (name, arguments) in tools {
            writer.text(name);
            arguments.write(&mut writer);
        }
        writer.unsigned(keys::HOLDER);
        write_key(&mut writer, &self.holder);
        writer.unsigned(keys::ISSUER);
        write_key(&mut writer, &self.issuer);
        for (key, value) in [
            (keys::ISSUED_AT, self.issued_at_s),
            (keys::EXPIRES_AT, self.expires_at_s),
            (keys::MAX_DEPTH, u64::from(self.max_depth)),
        ] {
            writer.unsigned(key);
            writer.unsigned(value);
        }
        if let Some(hash) = &self.parent_hash {
            writer.unsigned(keys::PARENT_HASH);
            writer.octets(hash);
        }
        if !extensions.is_empty() {
            writer.unsigned(keys::EXTENSIONS);
            writer.map(extensions.len());
            for (name, value) in &extensions {
                writer.text(name);
                writer.octets(value);
            }
        }
        if let Some(issuing) = issuing {
            writer.unsigned(keys::ISSUABLE);
            writer.array(issuing.tools.len());
            issuing.tools.iter().for_each(|tool| writer.text(tool));
            if let Some(depth) = issuing.max_depth {
                writer.unsigned(keys::MAX_ISSUE_DEPTH);
                writer.unsigned(u64::from(depth));
            }
            if let Some(bounds) = &issuing.bounds {
                writer.unsigned(keys::BOUNDS);
                bounds.write(&mut writer);
            }
        }
        if !self.approvers.is_empty() {
            writer.unsigned(keys::APPROVERS);
            writer.array(self.approvers.len());
            self.approvers.iter().for_each(|approver| write_key(&mut writer, approver));
        }
        if let Some(min) = self.min_approvals {
            writer.unsigned(keys::MIN_APPROVALS);
            writer.unsigned(u64::from(min));
        }
        if let Some(clearance) = self.clearance {
            writer.unsigned(keys::CLEARANCE);
            writer.unsigned(u64::from(clearance));
        }
        writer.unsigned(keys::DEPTH);
        writer.unsigned(u64::from(self.depth));
        writer.bytes
    }
}

/// The keys of the map.
mod keys {
    pub const VERSION: u64 = 0;
    pub const ID: u64 = 1;
    pub const KIND: u64 = 2;
    pub const TOOLS: u64 = 3;
    pub const HOLDER: u64 = 4;
    pub const ISSUER: u64 = 5;
    pub const ISSUED_AT: u64 = 6;
    pub const EXPIRES_AT: u64 = 7;
    pub const MAX_DEPTH: u64 = 8;
    pub const PARENT_HASH: u64 = 9;
    pub const EXTENSIONS: u64 = 10;
    pub const ISSUABLE: u64 = 11;
    pub const MAX_ISSUE_DEPTH: u64 = 13;
    pub const BOUNDS: u64 = 14;
    pub const APPROVERS: u64 = 15;
    pub const MIN_APPROVALS: u64 = 16;
    pub const CLEARANCE: u64 = 17;
    pub const DEPTH: u64 = 18;
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

impl Payload {
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
}

impl Payload {
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

fn allowed_tool(name: &str) -> Result<(), Malformed> {
    match name.starts_with(RESERVED_TOOLS) || name.is_empty() {
        true => Err(Malformed("a tool's name is empty or reserved")),
        false => Ok(()),
    }
}

/// # Errors
///
/// It is no Ed25519 key. Whether it is usable is checked with the first signature.
#[inline(never)]
pub fn read_key(reader: &mut Reader<'_>) -> Result<PublicKey, Malformed> {
    reader.tuple(2)?;
    match reader.unsigned()? {
        ALGORITHM => Ok(PublicKey(*reader.exact()?)),
        _ => Err(Malformed("a key has another algorithm than Ed25519")),
    }
}

/// # Errors
///
/// It is no Ed25519 signature.
pub fn read_signature<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8; 64], Malformed> {
    reader.tuple(2)?;
    match reader.unsigned()? {
        ALGORITHM => reader.exact(),
        _ => Err(Malformed("a signature has another algorithm than Ed25519")),
    }
}

pub fn write_key(writer: &mut Writer, key: &PublicKey) {
    writer.array(2);
    writer.unsigned(ALGORITHM);
    writer.bytes(&key.0);
}

pub fn write_signature(writer: &mut Writer, signature: &[u8; 64]) {
    writer.array(2);
    writer.unsigned(ALGORITHM);
    writer.bytes(signature);
}
