//! Ed25519 keys, as warrants name them.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Verifier as _, VerifyingKey};
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
    #[inline(never)]
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
    ///
    /// The library's `verify_strict` says the same, but reads the point `R` of the signature first, which takes an
    /// eighth of the time. It need not: `R` is compared with the encoding of a computed point, and such an encoding
    /// is of small order only if it is one of eight.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> bool {
        let signature = Signature::from_bytes(signature);
        !SMALL_ORDER.contains(signature.r_bytes()) && self.0.verify(message, &signature).is_ok()
    }
}

/// The encodings of the points of small order, of which a library writes no others: RFC 8032, section 5.1.2.
#[rustfmt::skip]
const SMALL_ORDER: [[u8; KEY_BYTES]; 8] = [
    [
        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    [
        236, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 127,
    ],
    [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ],
    [
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128,
    ],
    [
        38, 232, 149, 143, 194, 178, 39, 176, 69, 195, 244, 137, 242, 239, 152, 240,
        213, 223, 172, 5, 211, 198, 51, 57, 177, 56, 2, 136, 109, 83, 252, 5,
    ],
    [
        38, 232, 149, 143, 194, 178, 39, 176, 69, 195, 244, 137, 242, 239, 152, 240,
        213, 223, 172, 5, 211, 198, 51, 57, 177, 56, 2, 136, 109, 83, 252, 133,
    ],
    [
        199, 23, 106, 112, 61, 77, 216, 79, 186, 60, 11, 118, 13, 16, 103, 15,
        42, 32, 83, 250, 44, 57, 204, 198, 78, 199, 253, 119, 146, 172, 3, 122,
    ],
    [
        199, 23, 106, 112, 61, 77, 216, 79, 186, 60, 11, 118, 13, 16, 103, 15,
        42, 32, 83, 250, 44, 57, 204, 198, 78, 199, 253, 119, 146, 172, 3, 250,
    ],
];

/// A key as bytes, for messages of a worker to its lane: the worker verified it.
pub mod raw {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use super::{KEY_BYTES, PublicKey};

    pub fn serialize<S: Serializer>(key: &PublicKey, serializer: S) -> Result<S::Ok, S::Error> {
        key.0.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
        <[u8; KEY_BYTES]>::deserialize(deserializer).map(PublicKey)
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
    use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
    use curve25519_dalek::scalar::Scalar;
    use ed25519_dalek::{Signer as _, SigningKey};
    use sha2::{Digest as _, Sha512};

    use super::*;

    /// `R` of each small order, and a signature that verifies with it: `S` is `k` times the secret, plus nothing.
    #[test]
    fn signatures_are_verified_as_strictly_as_by_the_library() {
        let secret = Scalar::from_bytes_mod_order([7; 32]);
        let public = PublicKey((secret * ED25519_BASEPOINT_POINT).compress().0);
        let own = VerifyingKey::from_bytes(&public.0).unwrap();
        let encodings = EIGHT_TORSION.map(|point| point.compress().0);
        assert!(encodings.iter().all(|it| SMALL_ORDER.contains(it)));
        let mut accepted_by_others = 0;
        for (r, number) in
            encodings.into_iter().flat_map(|r| (0..16_u8).map(move |number| (r, number)))
        {
            let message = [number];
            let mut hash = Sha512::new();
            for part in [&r[..], &public.0, &message] {
                hash.update(part);
            }
            let k = Scalar::from_bytes_mod_order_wide(&hash.finalize().into());
            let mut bytes = [0; SIGNATURE_BYTES];
            bytes[..32].copy_from_slice(&r);
            bytes[32..].copy_from_slice((k * secret).as_bytes());
            let signature = Signature::from_bytes(&bytes);
            accepted_by_others += usize::from(own.verify(&message, &signature).is_ok());
            assert!(own.verify_strict(&message, &signature).is_err());
            assert!(!public.verify(&message, &bytes), "{r:?}");
        }
        assert!(accepted_by_others >= 16, "the neutral element verifies without strictness");
        let signer = SigningKey::from_bytes(&[3; 32]);
        let (own, public) = (signer.verifying_key(), PublicKey(signer.verifying_key().to_bytes()));
        let signature = signer.sign(b"m").to_bytes();
        assert!(public.verify(b"m", &signature));
        for bit in 0..8 * SIGNATURE_BYTES {
            let mut changed = signature;
            changed[bit / 8] ^= 1 << (bit % 8);
            let strict = own.verify_strict(b"m", &Signature::from_bytes(&changed)).is_ok();
            assert_eq!((public.verify(b"m", &changed), strict), (false, false), "{bit}");
        }
    }

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
