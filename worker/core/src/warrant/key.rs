//! Ed25519 keys, as warrants name them.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, VerifyingKey};
use serde::{Deserialize, Serialize};

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Bytes of a signature.
pub const SIGNATURE_BYTES: usize = 64;

/// A public key, as bytes. In JSON it is 64 lower-case hex digits.
///
/// Decoding a warrant must be cheap, so only the methods below look at the curve.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey(pub [u8; KEY_BYTES]);

impl PublicKey {
    /// Whether the bytes are a point of the curve, and not one of small order. With such a key, one signature can
    /// verify many messages.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.prepared().is_some()
    }

    /// The key as a point of the curve, for several verifications; `None` if it is not usable.
    #[must_use]
    pub fn prepared(&self) -> Option<Prepared> {
        VerifyingKey::from_bytes(&self.0).ok().filter(|key| !key.is_weak()).map(Prepared)
    }

    /// Verifies a signature, see [`Prepared::verify`].
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.prepared().is_some_and(|key| key.verify(message, signature))
    }
}

/// A usable key, as a point of the curve.
#[derive(Debug)]
pub struct Prepared(VerifyingKey);

impl Prepared {
    /// Verifies a signature strictly: RFC 8032 without cofactor, and no small-order point in it.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = &'static str;

    /// # Errors
    ///
    /// The text is not the hex form of a usable key.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const MUST: &str =
            "an Ed25519 public key: 64 lower-case hex digits, and not of small order";
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| MUST)?;
        let key = Self(bytes);
        (key.to_string() == text && key.is_usable()).then_some(key).ok_or(MUST)
    }
}

impl TryFrom<String> for PublicKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_case_hex_of_a_usable_key_is_a_key() {
        let good = "29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7";
        for (text, expected) in [
            (good.to_owned(), true),
            (good.to_uppercase(), false),
            (good[2..].to_owned(), false),
            (format!("{good}00"), false),
            // The neutral element, and a point of order 8.
            (format!("01{}", "0".repeat(62)), false),
            ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a".to_owned(), false),
            // No point of the curve.
            (format!("02{}", "0".repeat(62)), false),
        ] {
            assert_eq!(text.parse::<PublicKey>().is_ok(), expected, "{text}");
        }
    }
}
