//! Approvals of single calls, signed by the approvers that a warrant names.

use super::bounds::{CLOCK_TOLERANCE_S, MAX_APPROVAL_BYTES, MAX_EXTENSIONS};
use super::cbor::{Malformed, Reader, Writer};
use super::chain::CONTEXT;
use super::constraint::{TooMuch, Work};
use super::key::{KEY_BYTES, PublicKey, SIGNATURE_BYTES};
use super::payload::{self, Payload};

const APPROVAL_CONTEXT: &[u8] = b"tenuo-approval-v1";

/// The version of envelope and payload.
const VERSION: u8 = 1;

const LACKING: Malformed = Malformed("an approval lacks a member, or its version is unknown");

/// One approval, as it was sent.
struct Approval<'a> {
    payload: &'a [u8],
    approver: PublicKey,
    signature: &'a [u8; SIGNATURE_BYTES],
}

/// What an approver signs.
pub(super) struct Approved {
    pub request_hash: Vec<u8>,
    pub from_s: u64,
    pub until_s: u64,
}

impl<'a> Approval<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len() > MAX_APPROVAL_BYTES {
            return Err(Malformed("an approval is too large"));
        }
        let mut version = 0;
        let mut read = Self {
            payload: &[],
            approver: PublicKey([0; KEY_BYTES]),
            signature: &[0; SIGNATURE_BYTES],
        };
        let mut reader = Reader::new(bytes);
        let members = reader.members(&mut |reader, name| {
            match name {
                "approval_version" => version = reader.unsigned()?,
                "payload" => read.payload = reader.bytes()?,
                "approver_key" => read.approver = payload::read_key(reader)?,
                "signature" => read.signature = payload::read_signature(reader)?,
                _ => return Err(Malformed("an approval has an unknown member")),
            }
            Ok(())
        })?;
        reader.end()?;
        match members.count() == 4 && version == u64::from(VERSION) {
            true => Ok(read),
            false => Err(LACKING),
        }
    }
}

impl Approved {
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mut version, mut has_nonce) = (0, false);
        let mut read = Self { request_hash: Vec::new(), from_s: 0, until_s: 0 };
        let mut reader = Reader::new(bytes);
        let members = reader.members(&mut |reader, name| {
            match name {
                "version" => version = reader.unsigned()?,
                "request_hash" => read.request_hash = reader.octets(32)?,
                "nonce" => has_nonce = reader.octets(16)?.len() == 16,
                "external_id" => reader.text().map(drop)?,
                "approved_at" => read.from_s = reader.unsigned()?,
                "expires_at" => read.until_s = reader.unsigned()?,
                "extensions" if reader.null() => {}
                "extensions" => {
                    reader.entries(MAX_EXTENSIONS, |reader, _| {
                        reader.octets(MAX_APPROVAL_BYTES).map(drop)
                    })?;
                }
                _ => return Err(Malformed("an approval has an unknown member")),
            }
            Ok(())
        })?;
        reader.end()?;
        // All but the extensions.
        let has_all = members.count() == 6 + usize::from(members.contains("extensions"));
        match has_all && has_nonce && version == u64::from(VERSION) {
            true => Ok(read),
            false => Err(LACKING),
        }
    }

    /// The approval in CBOR.
    pub fn signed_by(
        &self,
        approver: &PublicKey,
        sign: impl Fn(&[u8]) -> [u8; SIGNATURE_BYTES],
    ) -> Vec<u8> {
        let mut payload = Writer::default();
        payload.map(6);
        payload.text("version");
        payload.unsigned(u64::from(VERSION));
        payload.text("request_hash");
        payload.octets(&self.request_hash);
        payload.text("nonce");
        payload.octets(&[0; 16]);
        payload.text("external_id");
        payload.text("");
        payload.text("approved_at");
        payload.unsigned(self.from_s);
        payload.text("expires_at");
        payload.unsigned(self.until_s);
        let mut approval = Writer::default();
        approval.map(4);
        approval.text("approval_version");
        approval.unsigned(u64::from(VERSION));
        approval.text("payload");
        approval.bytes(&payload.bytes);
        approval.text("approver_key");
        payload::write_key(&mut approval, approver);
        approval.text("signature");
        payload::write_signature(&mut approval, &sign(&signed(&payload.bytes)));
        approval.bytes
    }
}

/// The bytes that an approver signs.
#[must_use]
pub fn signed(payload: &[u8]) -> Vec<u8> {
    [CONTEXT, APPROVAL_CONTEXT, &[VERSION], payload].concat()
}

/// How many approvers of the leaf approved the call with this request hash. It stops at `need`. Approvals that do not
/// count are ignored. A signature is verified only if everything else about the approval is right, and for each approver
/// only one.
///
/// # Errors
///
/// It takes too much work.
pub fn count(
    leaf: &Payload,
    request_hash: [u8; 32],
    need: usize,
    approvals: &[Vec<u8>],
    now_s: u64,
    work: &mut Work,
) -> Result<usize, TooMuch> {
    // As many as the reference implementation looks at.
    if approvals.len() > 2 * leaf.approvers.len() {
        return Ok(0);
    }
    let mut tried: Vec<PublicKey> = Vec::new();
    let mut approved = 0;
    for bytes in approvals {
        let Ok(approval) = Approval::read(bytes) else { continue };
        let Ok(said) = Approved::read(approval.payload) else { continue };
        let counts = leaf.approvers.contains(&approval.approver)
            && !tried.contains(&approval.approver)
            && said.request_hash == request_hash
            && said.from_s < said.until_s
            && now_s < said.until_s
            && said.from_s <= now_s.saturating_add(CLOCK_TOLERANCE_S);
        if counts {
            tried.push(approval.approver);
            work.spend_signatures(1, approval.payload.len())?;
            let is_signed = approval.approver.verify(&signed(approval.payload), approval.signature);
            approved += usize::from(is_signed);
        }
        if approved >= need {
            break;
        }
    }
    Ok(approved)
}
