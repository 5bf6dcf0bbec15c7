//! Approvals of single calls, signed by the approvers that a warrant names.

use super::bounds::{CLOCK_TOLERANCE_S, MAX_APPROVAL_BYTES, MAX_EXTENSIONS};
use super::cbor::{Malformed, Reader, Writer};
use super::chain::{CONTEXT, sha256};
use super::key::{PublicKey, SIGNATURE_BYTES};
use super::payload::{self, Payload, WarrantId};
use crate::json::Json;

const APPROVAL_CONTEXT: &[u8] = b"tenuo-approval-v1";

/// The version of envelope and payload.
const VERSION: u8 = 1;

/// One approval, as it was sent.
struct Approval<'a> {
    payload: &'a [u8],
    approver: PublicKey,
    signature: [u8; SIGNATURE_BYTES],
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
        let (mut version, mut payload, mut approver, mut signature) = (None, None, None, None);
        let mut reader = Reader::new(bytes);
        reader.members(4, &mut |reader, name| {
            match name {
                "approval_version" => version = Some(reader.unsigned()?),
                "payload" => payload = Some(reader.bytes()?),
                "approver_key" => approver = Some(payload::read_key(reader)?),
                "signature" => signature = Some(payload::read_signature(reader)?),
                _ => return Err(Malformed("an approval has an unknown member")),
            }
            Ok(())
        })?;
        reader.end()?;
        match (version, payload, approver, signature) {
            (Some(version), Some(payload), Some(approver), Some(signature))
                if version == u64::from(VERSION) =>
            {
                Ok(Self { payload, approver, signature })
            }
            _ => Err(Malformed("an approval lacks a member, or its version is unknown")),
        }
    }
}

impl Approved {
    fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let (mut version, mut request_hash, mut approved_at_s, mut expires_at_s) =
            (None, None, None, None);
        let (mut has_nonce, mut has_id) = (false, false);
        let mut reader = Reader::new(bytes);
        reader.members(7, &mut |reader, name| {
            match name {
                "version" => version = Some(reader.unsigned()?),
                "request_hash" => request_hash = Some(reader.octets(32)?),
                "nonce" => has_nonce = reader.octets(16)?.len() == 16,
                "external_id" => has_id = reader.text().is_ok(),
                "approved_at" => approved_at_s = Some(reader.unsigned()?),
                "expires_at" => expires_at_s = Some(reader.unsigned()?),
                "extensions" if reader.null() => {}
                "extensions" => {
                    reader.members(MAX_EXTENSIONS, &mut |reader, _| {
                        reader.octets(MAX_APPROVAL_BYTES).map(drop)
                    })?;
                }
                _ => return Err(Malformed("an approval has an unknown member")),
            }
            Ok(())
        })?;
        reader.end()?;
        match (version, request_hash, approved_at_s, expires_at_s) {
            (Some(version), Some(request_hash), Some(from_s), Some(until_s))
                if version == u64::from(VERSION) && has_nonce && has_id =>
            {
                Ok(Self { request_hash, from_s, until_s })
            }
            _ => Err(Malformed("an approval lacks a member, or its version is unknown")),
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

/// The hash that an approval of a call names.
#[must_use]
pub fn request_hash(id: WarrantId, tool: &str, input: &Json, holder: &PublicKey) -> [u8; 32] {
    let mut arguments = Writer::default();
    arguments.value(input);
    let mut writer = Writer::default();
    writer.array(4);
    writer.text(&[WarrantId::PREFIX, &id.to_string()].concat());
    writer.text(tool);
    writer.bytes(&arguments.bytes);
    writer.bytes(&holder.0);
    sha256(&writer.bytes)
}

/// Whether enough approvers of the leaf approved this call. Approvals that do not count are ignored. A signature
/// is verified only if everything else about the approval is right.
#[must_use]
pub fn suffice(
    leaf: &Payload,
    tool: &str,
    input: &Json,
    approvals: &[Vec<u8>],
    now_s: u64,
) -> bool {
    // Nobody can approve if there is no approver.
    let needed = leaf.threshold().max(1);
    let hash = request_hash(leaf.id, tool, input, &leaf.holder);
    // As many as the reference implementation looks at.
    if approvals.len() > 2 * leaf.approvers.len() {
        return false;
    }
    let mut approved: Vec<PublicKey> = Vec::new();
    for bytes in approvals {
        let Ok(approval) = Approval::read(bytes) else { continue };
        let Ok(said) = Approved::read(approval.payload) else { continue };
        let counts = leaf.approvers.contains(&approval.approver)
            && !approved.contains(&approval.approver)
            && said.request_hash == hash
            && said.from_s < said.until_s
            && now_s < said.until_s
            && said.from_s <= now_s.saturating_add(CLOCK_TOLERANCE_S);
        if counts && approval.approver.verify(&signed(approval.payload), &approval.signature) {
            approved.push(approval.approver);
        }
        if approved.len() >= needed {
            return true;
        }
    }
    false
}
