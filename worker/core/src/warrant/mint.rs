//! Making warrants: issuing, narrowing, and proving. The worker itself never does.

use ed25519_dalek::{Signer as _, SigningKey};

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
        Envelope { payload: &payload, signature }.write()
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
