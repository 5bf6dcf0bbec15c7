//! What one warrant says.

mod read;

use std::fmt;
use std::str::FromStr;

use super::cbor::{Malformed, Reader, Writer};
use super::constraint::Arguments;
use super::gate::Gates;
use super::key::PublicKey;

/// The only version.
const VERSION: u64 = 1;

/// The only algorithm: Ed25519.
const ALGORITHM: u64 = 1;

/// The extension with the approval gates.
const APPROVAL_GATES: &str = "tenuo.approval_gates";

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
