//! Tokens: their form, and the MAC that proves that Gateward issued them.
//!
//! An agent's token is `gw_<tenant>.<agent>.<lane>.<key>.<secret>.<mac>`, an administrator's is
//! `gwa_<tenant>.<key>.<secret>.<mac>`. The secret is 32 random bytes in base64url without padding; it
//! authenticates the caller. The MAC is HMAC-SHA-256 (RFC 2104) with the worker's key over everything
//! before the last dot, truncated to 64 bits. It only prevents strangers from waking lanes, and guessing
//! one takes 2^63 requests. Two other kinds are in [`super::run_token`] and [`super::locator`].
//!
//! Out of scope: whether the credential is still valid, which only the registry knows.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::bounds::MAX_TOKEN_BYTES;
use crate::id::lane_number;
use crate::name::is_name;

/// Bytes of a secret: 256 bits.
pub const SECRET_BYTES: usize = 32;
/// Characters of a secret: 32 bytes in base64url.
const SECRET_CHARS: usize = 43;
/// Characters of a MAC: 8 bytes in base64url.
const MAC_CHARS: usize = 11;
/// Bytes of a MAC: HMAC output, truncated.
const MAC_BYTES: usize = 8;
/// Bytes of HMAC output in a seal.
const SEAL_BYTES: usize = 16;
/// The smallest length of the worker's MAC key, in characters: a 128-bit key in hex.
pub const MIN_MAC_KEY_CHARS: usize = 32;

/// The worker's MAC keys: the current one, and the previous one during a rotation.
pub struct MacKeys {
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
}

impl MacKeys {
    /// `None` when a key has fewer than [`MIN_MAC_KEY_CHARS`] characters.
    #[must_use]
    pub fn new(current: &str, previous: Option<&str>) -> Option<Self> {
        let key = |text: &str| {
            (text.len() >= MIN_MAC_KEY_CHARS)
                .then(|| Hmac::<Sha256>::new_from_slice(text.as_bytes()).ok())
                .flatten()
        };
        let previous = match previous {
            None => None,
            Some(text) => Some(key(text)?),
        };
        Some(Self { current: key(current)?, previous })
    }

    /// Compares in constant time.
    fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        let matches = |key: &Hmac<Sha256>| {
            let mut hmac = key.clone();
            hmac.update(message);
            hmac.verify_truncated_left(mac).is_ok()
        };
        matches(&self.current) || self.previous.as_ref().is_some_and(matches)
    }

    /// An agent's token. The secret comes from [`encode_secret`].
    #[must_use]
    pub fn agent_token(
        &self,
        tenant: &str,
        agent: &str,
        lane: u16,
        key_id: &str,
        secret: &str,
    ) -> String {
        self.sign(format!("gw_{tenant}.{agent}.{lane}.{key_id}.{secret}"))
    }

    /// An administrator's token.
    #[must_use]
    pub fn administrator_token(&self, tenant: &str, key_id: &str, secret: &str) -> String {
        self.sign(format!("gwa_{tenant}.{key_id}.{secret}"))
    }

    fn sign(&self, message: String) -> String {
        let mut hmac = self.current.clone();
        hmac.update(message.as_bytes());
        let mac = hmac.finalize().into_bytes();
        let mac = mac.get(..MAC_BYTES).unwrap_or_default();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac))
    }

    /// A seal: 128 bits of a MAC over the message, as 32 hexadecimal digits. The message must begin with
    /// its purpose, so that no seal is valid for another purpose.
    #[must_use]
    pub fn seal(&self, message: &str) -> String {
        let mut hmac = self.current.clone();
        hmac.update(message.as_bytes());
        let mac = hmac.finalize().into_bytes();
        hex::encode(mac.get(..SEAL_BYTES).unwrap_or_default())
    }

    /// Whether one of the keys made this seal. Compares in constant time.
    #[must_use]
    pub fn is_seal(&self, message: &str, seal: &str) -> bool {
        let mut mac = [0; SEAL_BYTES];
        hex::decode_to_slice(seal, &mut mac).is_ok() && self.verify(message.as_bytes(), &mac)
    }

    /// The key that signs requests with a credential: 64 hexadecimal digits. It is derived from the MAC
    /// key, so it is not stored.
    #[must_use]
    pub fn signing_key(&self, tenant: &str, key_id: &str) -> String {
        signing_key(&self.current, tenant, key_id)
    }

    /// The key of the hashes of values that runs have seen. It is derived from the current MAC key, so it is
    /// not stored.
    #[must_use]
    pub fn value_key(&self) -> [u8; 16] {
        self.derived(b"value-key")
    }

    /// The key of the hashes of key ids that metrics show. It is derived from the MAC key, and not stored.
    #[must_use]
    pub fn key_id_key(&self) -> [u8; 16] {
        self.derived(b"key-id-key")
    }

    fn derived(&self, purpose: &[u8]) -> [u8; 16] {
        let mut hmac = self.current.clone();
        hmac.update(purpose);
        let mac: [u8; 32] = hmac.finalize().into_bytes().into();
        std::array::from_fn(|at| mac.get(at).copied().unwrap_or_default())
    }

    /// The keys that sign a webhook's messages, 32 bytes each: derived from the current MAC key, then from
    /// the previous one.
    pub fn webhook_keys(&self, tenant: &str, salt: &str) -> impl Iterator<Item = [u8; 32]> {
        let message = format!("webhook-key:{tenant}.{salt}");
        [Some(&self.current), self.previous.as_ref()].into_iter().flatten().map(move |key| {
            let mut hmac = key.clone();
            hmac.update(message.as_bytes());
            hmac.finalize().into_bytes().into()
        })
    }

    /// Whether `mac` is the HMAC-SHA-256 of the message with the credential's signing key. The key's bytes
    /// are its 64 hexadecimal digits. Compares in constant time.
    #[must_use]
    pub fn verify_signature(&self, token: &Token<'_>, message: &[u8], mac: &[u8]) -> bool {
        [Some(&self.current), self.previous.as_ref()].into_iter().flatten().any(|key| {
            let key = signing_key(key, token.tenant, token.key_id);
            Hmac::<Sha256>::new_from_slice(key.as_bytes()).is_ok_and(|mut hmac| {
                hmac.update(message);
                hmac.verify_slice(mac).is_ok()
            })
        })
    }
}

fn signing_key(key: &Hmac<Sha256>, tenant: &str, key_id: &str) -> String {
    let mut hmac = key.clone();
    hmac.update(format!("signing-key:{tenant}.{key_id}").as_bytes());
    hex::encode(hmac.finalize().into_bytes())
}

/// Encodes random bytes as a secret.
#[must_use]
pub fn encode_secret(random: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(random)
}

/// A token whose MAC was verified, borrowed from the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    pub tenant: &'a str,
    pub key_id: &'a str,
    /// SHA-256 of the credential's secret. For a locator, the agent's public key.
    pub secret_hash: [u8; 32],
    pub holder: Holder<'a>,
    /// The run that the token is for, if it is a run credential.
    pub run: Option<FixedRun>,
    /// Whether it is a locator, which does not authenticate its sender.
    pub is_locator: bool,
}

/// The run of a run credential, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedRun {
    pub run_id: String,
    /// Seconds since 1970.
    pub expires_at_s: u64,
}

impl FixedRun {
    #[must_use]
    pub const fn is_expired(&self, now_ms: u64) -> bool {
        now_ms / 1_000 >= self.expires_at_s
    }
}

/// Who holds the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder<'a> {
    Agent { agent: &'a str, lane: u16 },
    Administrator,
}

/// Why a token was rejected. Callers get the same 401 for both reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenError {
    /// It does not have the form of a token.
    Malformed,
    /// Its MAC does not verify.
    Forged,
}

/// Reads an agent's or an administrator's token and verifies its MAC. The form is checked first, which is
/// fast.
///
/// # Errors
///
/// [`TokenError::Malformed`] or [`TokenError::Forged`].
pub fn parse<'a>(text: &'a str, keys: &MacKeys) -> Result<Token<'a>, TokenError> {
    let Shape { tenant, key_id, secret, holder } =
        parse_shape(text).ok_or(TokenError::Malformed)?;
    let (message, mac) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
    // The decoder needs one byte more than a MAC has.
    let mut buffer = [0; MAC_BYTES + 1];
    let length =
        URL_SAFE_NO_PAD.decode_slice(mac, &mut buffer).map_err(|_| TokenError::Malformed)?;
    let mac = buffer.get(..length).filter(|mac| mac.len() == MAC_BYTES);
    let mac = mac.ok_or(TokenError::Malformed)?;
    if !keys.verify(message.as_bytes(), mac) {
        return Err(TokenError::Forged);
    }
    let secret_hash = secret_hash(secret);
    Ok(Token { tenant, key_id, secret_hash, holder, run: None, is_locator: false })
}

/// The tenant that a credential names. Its MAC is not verified.
#[must_use]
pub fn tenant_of(text: &str) -> Option<&str> {
    parse_shape(text).map(|shape| shape.tenant)
}

/// A token whose MAC was not verified.
struct Shape<'a> {
    tenant: &'a str,
    key_id: &'a str,
    secret: &'a str,
    holder: Holder<'a>,
}

fn parse_shape(text: &str) -> Option<Shape<'_>> {
    if text.len() > MAX_TOKEN_BYTES {
        return None;
    }
    if let Some(rest) = text.strip_prefix("gw_") {
        let mut parts = rest.split('.');
        let (tenant, agent, lane) = (parts.next()?, parts.next()?, parts.next()?);
        let (key_id, secret, mac) = (parts.next()?, parts.next()?, parts.next()?);
        let lane = lane_number(lane)?;
        (parts.next().is_none() && is_name(agent) && secret_shape(tenant, key_id, secret, mac))
            .then_some(Shape { tenant, key_id, secret, holder: Holder::Agent { agent, lane } })
    } else {
        let mut parts = text.strip_prefix("gwa_")?.split('.');
        let (tenant, key_id) = (parts.next()?, parts.next()?);
        let (secret, mac) = (parts.next()?, parts.next()?);
        (parts.next().is_none() && secret_shape(tenant, key_id, secret, mac)).then_some(Shape {
            tenant,
            key_id,
            secret,
            holder: Holder::Administrator,
        })
    }
}

fn secret_shape(tenant: &str, key_id: &str, secret: &str, mac: &str) -> bool {
    secret.len() == SECRET_CHARS && mac.len() == MAC_CHARS && is_name(tenant) && is_name(key_id)
}

/// The hash of a secret that the registry stores: the SHA-256 of its characters.
#[must_use]
pub fn secret_hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Compares a secret's hash with the stored lower-case hex, in constant time.
#[must_use]
pub fn hash_matches(hash: &[u8; 32], stored_hex: &str) -> bool {
    let mut text = [0; 64];
    hex::encode_to_slice(hash, &mut text).is_ok()
        && text.as_slice().ct_eq(stored_hex.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn mint(message: &str, key: &str) -> String {
        let mut hmac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        hmac.update(message.as_bytes());
        let mac = hmac.finalize().into_bytes();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(&mac[..MAC_BYTES]))
    }

    #[test]
    fn a_token_verifies_with_the_current_and_the_previous_key() {
        let secret = "s".repeat(SECRET_CHARS);
        let old = "fedcba9876543210fedcba9876543210";
        let keys = MacKeys::new(KEY, Some(old)).unwrap();
        for key in [KEY, old] {
            let text = mint(&format!("gw_acme.bot.7.k1.{secret}"), key);
            let token = parse(&text, &keys).unwrap();
            assert_eq!(token.holder, Holder::Agent { agent: "bot", lane: 7 });
            assert_eq!((token.tenant, token.key_id, token.run), ("acme", "k1", None));
            assert_eq!(token.secret_hash, secret_hash(&secret));
            let text = mint(&format!("gwa_acme.k1.{secret}"), key);
            assert_eq!(parse(&text, &keys).unwrap().holder, Holder::Administrator);
        }
    }

    #[test]
    fn a_token_with_another_form_or_mac_is_rejected() {
        let secret = "s".repeat(SECRET_CHARS);
        let keys = MacKeys::new(KEY, None).unwrap();
        let good = mint(&format!("gw_acme.bot.7.k1.{secret}"), KEY);
        let cases = [
            (String::new(), TokenError::Malformed),
            ("Bearer".to_owned(), TokenError::Malformed),
            ("gw_".to_owned() + &"a".repeat(MAX_TOKEN_BYTES), TokenError::Malformed),
            (mint(&format!("gw_acme.bot.07.k1.{secret}"), KEY), TokenError::Malformed),
            (mint(&format!("gw_acme.bot.+7.k1.{secret}"), KEY), TokenError::Malformed),
            (mint(&format!("gw_acme.bot.4096.k1.{secret}"), KEY), TokenError::Malformed),
            (mint(&format!("gw_Acme.bot.7.k1.{secret}"), KEY), TokenError::Malformed),
            (mint(&format!("gw_acme.bot.7.k1.{secret}x"), KEY), TokenError::Malformed),
            (good.clone() + ".x", TokenError::Malformed),
            (good.replace("bot", "box"), TokenError::Forged),
            (
                mint(&format!("gw_acme.bot.7.k1.{secret}"), &KEY.replace('0', "1")),
                TokenError::Forged,
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(&text, &keys), Err(expected), "{text}");
        }
    }

    #[test]
    fn an_issued_token_verifies() {
        let keys = MacKeys::new(KEY, None).unwrap();
        let secret = encode_secret(&[7; SECRET_BYTES]);
        let text = keys.agent_token("acme", "bot", 7, "k1", &secret);
        assert_eq!(text, mint(&format!("gw_acme.bot.7.k1.{secret}"), KEY));
        assert_eq!(parse(&text, &keys).unwrap().secret_hash, secret_hash(&secret));
        let text = keys.administrator_token("acme", "k1", &secret);
        assert_eq!(parse(&text, &keys).unwrap().holder, Holder::Administrator);
    }

    #[test]
    fn a_signature_verifies_only_for_its_message_and_credential() {
        let old = "fedcba9876543210fedcba9876543210";
        let (before, after) =
            (MacKeys::new(old, None).unwrap(), MacKeys::new(KEY, Some(old)).unwrap());
        let secret = encode_secret(&[7; SECRET_BYTES]);
        let text = before.agent_token("acme", "bot", 7, "k1", &secret);
        let token = parse(&text, &before).unwrap();
        let signed = |key: &str, message: &[u8]| {
            let mut hmac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
            hmac.update(message);
            hmac.finalize().into_bytes().to_vec()
        };
        let key = before.signing_key("acme", "k1");
        assert_eq!(key.len(), 64);
        let good = signed(&key, b"message");
        assert!(before.verify_signature(&token, b"message", &good));
        assert!(after.verify_signature(&token, b"message", &good), "while the MAC key is rotated");
        assert!(!before.verify_signature(&token, b"messagE", &good));
        for bad in [
            signed(&before.signing_key("acme", "k2"), b"message"),
            signed(&before.signing_key("acmf", "k1"), b"message"),
            good[..good.len() - 1].to_vec(),
            [&good[..], &[0]].concat(),
            Vec::new(),
        ] {
            assert!(!before.verify_signature(&token, b"message", &bad), "{bad:?}");
        }
    }

    #[test]
    fn a_short_mac_key_is_rejected() {
        assert!(MacKeys::new("short", None).is_none());
        assert!(MacKeys::new(KEY, Some("short")).is_none());
    }
}
