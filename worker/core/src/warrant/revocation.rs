//! Signed revocation lists.

use super::bounds::MAX_STACK_BYTES;
use super::cbor::{Malformed, Reader, Writer};
use super::chain::{CONTEXT, sha256};
use super::key::{KEY_BYTES, PublicKey, SIGNATURE_BYTES};
use super::payload::{self, WarrantId};

const LIST_CONTEXT: &[u8] = b"tenuo-srl-v1";

/// Warrants of one list.
pub const MAX_LISTED: usize = 4_000;

/// The largest version: larger numbers are not exact in JSON.
pub const MAX_VERSION: u64 = (1 << 53) - 1;

const LACKING: Malformed = Malformed("the list lacks a member");

/// A list whose signature was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevocationList {
    pub issuer: PublicKey,
    /// It never goes back, and a list of the same version has the same ids.
    pub version: u64,
    /// As the issuer wrote it (RFC 3339).
    pub issued_at: String,
    /// Sorted, without repetitions.
    pub revoked: Vec<WarrantId>,
    /// SHA-256 of the sorted ids.
    pub ids_sha256: [u8; 32],
}

impl RevocationList {
    /// Reads a list and verifies its signature. Whether the issuer is trusted is the caller's to check.
    ///
    /// # Errors
    ///
    /// It does not have the form, is too large, or the signature is not its issuer's.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_STACK_BYTES {
            return Err(Malformed("the list is too large"));
        }
        let mut payload = Payload {
            revoked: Vec::new(),
            version: 0,
            issued_at: String::new(),
            issuer: PublicKey([0; KEY_BYTES]),
        };
        let mut signed: &[u8] = &[];
        let mut signature = &[0; SIGNATURE_BYTES];
        let mut reader = Reader::new(bytes);
        let members = reader.members(&mut |reader, name| {
            match name {
                "payload" => (_, signed) = reader.consumed(|reader| payload.read(reader))?,
                "signature" => signature = payload::read_signature(reader)?,
                _ => return Err(Malformed("the list has an unknown member")),
            }
            Ok(())
        })?;
        reader.end()?;
        if members.count() < 2 {
            return Err(LACKING);
        }
        if !payload.issuer.verify(&[CONTEXT, LIST_CONTEXT, signed].concat(), signature) {
            return Err(Malformed("the signature is not the issuer's"));
        }
        let Payload { revoked, version, issued_at, issuer } = payload;
        // Inserted instead of sorted: a sort is ten times the code. `MAX_LISTED` bounds what the inserts move.
        let mut sorted = Vec::with_capacity(revoked.len());
        for id in revoked {
            if let Err(at) = sorted.binary_search(&id) {
                sorted.insert(at, id);
            }
        }
        let revoked = sorted;
        let ids: Vec<u8> = revoked.iter().flat_map(|id| id.0).collect();
        Ok(Self { issuer, version, issued_at, revoked, ids_sha256: sha256(&ids) })
    }
}

/// What the issuer signs.
pub(super) struct Payload {
    pub revoked: Vec<WarrantId>,
    pub version: u64,
    pub issued_at: String,
    pub issuer: PublicKey,
}

impl Payload {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Malformed> {
        let members = reader.members(&mut |reader, name| {
            match name {
                "revoked_ids" => {
                    self.revoked = reader.list(MAX_LISTED, |reader| {
                        let id = reader.text()?.parse();
                        id.map_err(|_| Malformed("an id of the list has another form"))
                    })?;
                }
                "version" => {
                    self.version = reader.unsigned()?;
                    if self.version > MAX_VERSION {
                        return Err(Malformed("the list's version is too large"));
                    }
                }
                "issued_at" => self.issued_at = reader.owned_text()?,
                "issuer" => self.issuer = payload::read_key(reader)?,
                _ => return Err(Malformed("the list has an unknown member")),
            }
            Ok(())
        })?;
        if members.count() < 4 { Err(LACKING) } else { Ok(()) }
    }

    /// The list in CBOR.
    pub fn signed_by(&self, sign: impl Fn(&[u8]) -> [u8; SIGNATURE_BYTES]) -> Vec<u8> {
        let mut payload = Writer::default();
        payload.map(4);
        payload.text("revoked_ids");
        payload.array(self.revoked.len());
        for id in &self.revoked {
            payload.text(&[WarrantId::PREFIX, &id.to_string()].concat());
        }
        payload.text("version");
        payload.unsigned(self.version);
        payload.text("issued_at");
        payload.text(&self.issued_at);
        payload.text("issuer");
        payload::write_key(&mut payload, &self.issuer);
        let signature = sign(&[CONTEXT, LIST_CONTEXT, &payload.bytes].concat());
        let mut list = Writer::default();
        list.map(2);
        list.text("payload");
        list.bytes.extend(payload.bytes);
        list.text("signature");
        payload::write_signature(&mut list, &signature);
        list.bytes
    }
}
