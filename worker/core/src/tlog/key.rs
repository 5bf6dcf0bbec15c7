//! Keys of signed notes: who signs, and how a reader names the keys that it trusts (c2sp.org/signed-note).
//!
//! A key has a name and an id. The id depends on the name, the kind and the public key. So one Ed25519 key has another
//! id, and another verifier key, for each log that it signs.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use super::cosignature::{self, SIGNATURE_BYTES};

/// The kind of a key that signs the text of notes.
pub const ED25519: u8 = 0x01;

/// The kind of a witness's key, which signs a time and the text of a checkpoint (c2sp.org/tlog-cosignature).
pub const COSIGNATURE: u8 = 0x04;

/// Bytes of a public key.
pub const PUBLIC_BYTES: usize = 32;

/// Bytes of a key's name, and of a log's origin. Newer cosignatures write their length in one byte.
pub const MAX_NAME_BYTES: usize = 255;

/// Bytes of a verifier key: name, id in hex, base64 of kind and public key, and two `+`. So it bounds the name too.
const MAX_TEXT_BYTES: usize = MAX_NAME_BYTES + 8 + 44 + 2;

/// Whether a text can be the name of a key: it is not empty and has no spaces, no `+` and no control characters.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '+' || c < ' ')
}

/// The id of a key.
fn id(name: &str, kind: u8, public: &[u8; PUBLIC_BYTES]) -> u32 {
    let hash: [u8; 32] = Sha256::new()
        .chain_update(name)
        .chain_update([b'\n', kind])
        .chain_update(public)
        .finalize()
        .into();
    let [a, b, c, d, ..] = hash;
    u32::from_be_bytes([a, b, c, d])
}

/// A key that signatures are verified with: a *vkey*.
///
/// As a text it is `<name>+<id in hex>+<base64 of kind and public key>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    kind: u8,
    public: VerifyingKey,
}

impl VerifierKey {
    /// Reads a verifier key.
    ///
    /// # Errors
    ///
    /// The form is wrong, the id is not the key's, the kind is neither [`ED25519`] nor [`COSIGNATURE`], or the public
    /// key is not usable: not a point of the curve, or one of small order.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(KeyError::Form);
        }
        // Base64 has the character `+` too, so only the first two separate.
        let mut parts = text.splitn(3, '+');
        let (Some(name), Some(given_id), Some(key)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(KeyError::Form);
        };
        if !is_name(name) {
            return Err(KeyError::Name);
        }
        let key = STANDARD.decode(key).map_err(|_| KeyError::Form)?;
        let (kind, public) = key.split_first().ok_or(KeyError::Form)?;
        if ![ED25519, COSIGNATURE].contains(kind) {
            return Err(KeyError::Kind(*kind));
        }
        let public = <&[u8; PUBLIC_BYTES]>::try_from(public).map_err(|_| KeyError::Form)?;
        let key = Self::new(name, *kind, public)?;
        if given_id != format!("{:08x}", key.id()) { Err(KeyError::Id) } else { Ok(key) }
    }

    /// The key of a log whose deployment signs with this public key.
    ///
    /// # Errors
    ///
    /// The public key is not usable, see [`VerifierKey::parse`].
    pub fn ed25519(name: &str, public: &[u8; PUBLIC_BYTES]) -> Result<Self, KeyError> {
        Self::new(name, ED25519, public)
    }

    fn new(name: &str, kind: u8, public: &[u8; PUBLIC_BYTES]) -> Result<Self, KeyError> {
        let public = VerifyingKey::from_bytes(public).map_err(|_| KeyError::Unusable)?;
        if public.is_weak() {
            return Err(KeyError::Unusable);
        }
        Ok(Self { name: name.to_owned(), kind, public })
    }

    /// The name that signatures of this key begin with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// [`ED25519`] or [`COSIGNATURE`].
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// The public key in the form of RFC 8032.
    #[must_use]
    pub fn public(&self) -> [u8; PUBLIC_BYTES] {
        self.public.to_bytes()
    }

    /// The id that signatures of this key begin with.
    #[must_use]
    pub fn id(&self) -> u32 {
        id(&self.name, self.kind, self.public.as_bytes())
    }

    /// The same public key under another name. If [`is_name`] does not hold for the name, the key verifies no
    /// signature: a note with such a name cannot be read.
    #[must_use]
    pub fn with_name(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// Verifies what follows the id in a signature of `text`. Strict: RFC 8032 without cofactor, and no point of small
    /// order.
    pub(super) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        let message;
        let (message, signature) = if self.kind == COSIGNATURE {
            let Some((time_s, signature)) = cosignature::split(signature) else { return false };
            message = cosignature::message(time_s, text);
            (&*message, signature)
        } else {
            (text, signature)
        };
        let Ok(signature) = <&[u8; SIGNATURE_BYTES]>::try_from(signature) else { return false };
        self.public.verify_strict(message.as_bytes(), &Signature::from_bytes(signature)).is_ok()
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = vec![self.kind];
        key.extend(self.public.as_bytes());
        write!(f, "{}+{:08x}+{}", self.name, self.id(), STANDARD.encode(key))
    }
}

/// Why a text is not a verifier key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    Form,
    Name,
    Kind(u8),
    Id,
    Unusable,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => write!(
                f,
                "a verifier key is `<name>+<id>+<key>`: a name of at most {MAX_NAME_BYTES} bytes, 8 lower-case hex \
                 digits, and base64"
            ),
            Self::Name => f.write_str(
                "the name of a verifier key is empty, or has spaces, plus signs or control characters",
            ),
            Self::Kind(kind) => write!(
                f,
                "the verifier key is of the kind {kind}, but only Ed25519 keys ({ED25519}) and Ed25519 keys of \
                 witnesses ({COSIGNATURE}) are supported"
            ),
            Self::Id => f.write_str("the id in the verifier key is not the id of its name and key"),
            Self::Unusable => {
                f.write_str("the public key is not a point of the curve, or one of small order")
            }
        }
    }
}

impl std::error::Error for KeyError {}

/// A secret key that signs notes. Its debug form does not show the secret.
#[derive(Debug, Clone)]
pub struct Signer(SigningKey);

impl Signer {
    /// The key of a seed: the secret key of RFC 8032. It takes about as long as a signature.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// The public key in the form of RFC 8032.
    #[must_use]
    pub fn public(&self) -> [u8; PUBLIC_BYTES] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs the text of a note under a name. Returns the signature's line, with its newline. A note is the text, an
    /// empty line, and such lines.
    ///
    /// [`is_name`] must hold for the name, and the text must end in a newline. Otherwise nobody can read the note.
    #[must_use]
    pub fn sign(&self, name: &str, text: &str) -> String {
        let id = id(name, ED25519, self.0.verifying_key().as_bytes());
        line(name, id, &self.0.sign(text.as_bytes()).to_bytes())
    }
}

/// A signature's line, with its newline.
pub(super) fn line(name: &str, id: u32, signature: &[u8]) -> String {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend(signature);
    format!("\u{2014} {name} {}\n", STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_key_has_one_form_only() {
        // The example of c2sp.org/signed-note.
        let good = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
        let (name, key) = ("example.com/foo", good.rsplit_once('+').unwrap().1);
        let own_id = |kind: u8, public: &[u8]| {
            let bytes: Vec<u8> = [&[kind], public].concat();
            let hash = Sha256::new().chain_update(name).chain_update(b"\n").chain_update(&bytes);
            format!("{name}+{}+{}", hex::encode(&hash.finalize()[..4]), STANDARD.encode(bytes))
        };
        let public = STANDARD.decode(key).unwrap()[1..].to_vec();
        let (mut neutral, mut no_point) = ([0; 32], [0; 32]);
        (neutral[0], no_point[0]) = (1, 2);
        for (text, expected) in [
            (good.to_owned(), None),
            (own_id(COSIGNATURE, &public), None),
            (own_id(2, &public), Some(KeyError::Kind(2))),
            (own_id(6, &[0; 100]), Some(KeyError::Kind(6))),
            (own_id(ED25519, &public[1..]), Some(KeyError::Form)),
            (own_id(ED25519, &[0; 33]), Some(KeyError::Form)),
            (own_id(ED25519, &neutral), Some(KeyError::Unusable)),
            (own_id(ED25519, &no_point), Some(KeyError::Unusable)),
            (own_id(ED25519, &[]), Some(KeyError::Form)),
            (String::new(), Some(KeyError::Form)),
            (name.to_owned(), Some(KeyError::Form)),
            (format!("{name}+530d903a"), Some(KeyError::Form)),
            (format!("{name}+530d903a+"), Some(KeyError::Form)),
            (format!("+530d903a+{key}"), Some(KeyError::Name)),
            (format!("exam ple+530d903a+{key}"), Some(KeyError::Name)),
            (format!("exam\u{a0}ple+530d903a+{key}"), Some(KeyError::Name)),
            (format!("exam\u{2028}ple+530d903a+{key}"), Some(KeyError::Name)),
            (format!("exam\u{1}ple+530d903a+{key}"), Some(KeyError::Name)),
            (format!("{}+530d903a+{key}", "n".repeat(255)), Some(KeyError::Id)),
            (format!("{}+530d903a+{key}", "n".repeat(256)), Some(KeyError::Form)),
            (format!("example.com/bar+530d903a+{key}"), Some(KeyError::Id)),
            (format!("{name}+530d903b+{key}"), Some(KeyError::Id)),
            (format!("{name}+530D903A+{key}"), Some(KeyError::Id)),
            (format!("{name}+0530d903a+{key}"), Some(KeyError::Id)),
            (format!("{name}++{key}"), Some(KeyError::Id)),
            (format!("{good}="), Some(KeyError::Form)),
            (format!("{good}\n"), Some(KeyError::Form)),
            (good.replace("U2k", "U2"), Some(KeyError::Form)),
        ] {
            let read = VerifierKey::parse(&text);
            assert_eq!(read.as_ref().err(), expected.as_ref(), "{text}");
            if let Ok(key) = read {
                assert_eq!(key.to_string(), text);
                assert_eq!(key.public(), public[..]);
            }
        }
    }

    #[test]
    fn a_key_has_another_id_under_each_name() {
        let signer = Signer::from_seed([7; 32]);
        let key = VerifierKey::ed25519("a", &signer.public()).unwrap();
        let renamed = key.with_name("b");
        assert_eq!((renamed.name(), renamed.public()), ("b", key.public()));
        assert_ne!(renamed.id(), key.id());
        assert_eq!(VerifierKey::parse(&renamed.to_string()), Ok(renamed));
    }

    /// Test 1 of RFC 8032, section 7.1, with a text of our own.
    #[test]
    fn the_form_of_a_signature_is_unchanged() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let signer = Signer::from_seed(hex::decode(seed).unwrap().try_into().unwrap());
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(hex::encode(signer.public()), public);
        assert_eq!(
            signer.sign("k", "text\n"),
            "\u{2014} k qpEy/9SEwW2ZYB+egrqYmKIXEqkur8jxw7FVDkAxyYlqW+48b948CuJ/MNXG5vzzGPRsUiClhZ9R+ShnCFysk7mE3As=\n"
        );
        assert!(
            !format!("{signer:?}").contains("9d61") && !format!("{signer:?}").contains("157, 97")
        );
    }
}
