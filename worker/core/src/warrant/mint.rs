//! Making warrants: issuing, narrowing, and proving. The worker itself never does.

use ed25519_dalek::{Signer as _, SigningKey};

use super::approval::Approved;
use super::chain::Envelope;
use super::key::{KEY_BYTES, PublicKey, SIGNATURE_BYTES};
use super::payload::{Payload, WarrantId};
use super::proof::Statement;
use super::revocation;
use crate::json::Json;

/// A secret key.
#[derive(Debug, Clone)]
pub struct Secret(SigningKey);

impl Secret {
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(SigningKey::from_bytes(&bytes))
    }

    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.0.sign(message).to_bytes()
    }

    /// Signs a warrant as its issuer. Returns its CBOR form.
    #[must_use]
    pub fn issue(&self, payload: &Payload) -> Vec<u8> {
        let payload = Payload { issuer: self.public(), ..payload.clone() }.write();
        let signature = self.sign(&Envelope::signed(&payload));
        Envelope { payload: &payload, signature: &signature }.write()
    }

    /// Proves a call: signs tool and arguments as the holder of the warrant.
    #[must_use]
    pub fn prove(
        &self,
        id: WarrantId,
        tool: &str,
        input: &Json,
        now_s: u64,
    ) -> [u8; SIGNATURE_BYTES] {
        self.sign(&Statement::new(id, tool, input).at(now_s))
    }

    /// Approves the calls that have this hash. Returns the approval in CBOR.
    #[must_use]
    pub fn approve(&self, request_hash: [u8; 32], from_s: u64, until_s: u64) -> Vec<u8> {
        let approved = Approved { request_hash: request_hash.to_vec(), from_s, until_s };
        approved.signed_by(&self.public(), |message| self.sign(message))
    }

    /// Signs a list of revocations. Returns its CBOR form. `issued_at` is a time of RFC 3339.
    #[must_use]
    pub fn revoke(&self, revoked: &[WarrantId], version: u64, issued_at: &str) -> Vec<u8> {
        let payload = revocation::Payload {
            revoked: revoked.to_vec(),
            version,
            issued_at: issued_at.to_owned(),
            issuer: self.public(),
        };
        payload.signed_by(|message| self.sign(message))
    }
}
