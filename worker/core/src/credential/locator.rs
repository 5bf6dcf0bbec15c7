//! Locators: which agent, and so which lane, a warrant without a credential is for.
//!
//! The form is `gwl_<tenant>.<agent>.<lane>.<public key>.<seal>`. The key is the agent's Ed25519 key in base64url
//! without padding. The seal is a MAC of 128 bits with the worker's key.
//!
//! A locator is not secret, and proves nothing about who sends it. Its seal shows that Gateward wrote it, so a
//! stranger cannot make one up to wake a lane. Its sender must present a warrant of which the agent was the
//! first holder, and prove to hold the last link. If the agent gets another key, the locator is void.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::token::{Holder, MacKeys, Token, TokenError};
use crate::bounds::MAX_LOCATOR_BYTES;
use crate::id::lane_number;
use crate::name::is_name;
use crate::warrant::key::PublicKey;

/// What a locator begins with.
pub(super) const PREFIX: &str = "gwl_";

/// The message of every other kind of seal begins with another text.
const PURPOSE: &str = "locator:";

/// Used as the key id in records of calls without a credential. It is not a valid name, so no credential has it.
pub const KEY_ID: &str = "@warrant";

/// The locator of an agent with this key.
#[must_use]
pub fn issue(keys: &MacKeys, tenant: &str, agent: &str, lane: u16, key: &PublicKey) -> String {
    let key = URL_SAFE_NO_PAD.encode(key.0);
    let message = format!("{PREFIX}{tenant}.{agent}.{lane}.{key}");
    let seal = keys.seal(&[PURPOSE, &message].concat());
    [&message, ".", &seal].concat()
}

/// Reads a locator, and verifies its seal.
pub(super) fn parse<'a>(text: &'a str, keys: &MacKeys) -> Result<Token<'a>, TokenError> {
    let (token, message, seal) = parse_shape(text).ok_or(TokenError::Malformed)?;
    let sealed = keys.is_seal(&[PURPOSE, message].concat(), seal);
    if sealed { Ok(token) } else { Err(TokenError::Forged) }
}

/// The token, the message that is sealed, and the seal.
fn parse_shape(text: &str) -> Option<(Token<'_>, &str, &str)> {
    if text.len() > MAX_LOCATOR_BYTES {
        return None;
    }
    let (message, seal) = text.rsplit_once('.')?;
    let mut parts = message.strip_prefix(PREFIX)?.split('.');
    let (tenant, agent, lane) = (parts.next()?, parts.next()?, lane_number(parts.next()?)?);
    let key = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
    if parts.next().is_some() || ![tenant, agent].into_iter().all(is_name) {
        return None;
    }
    let token = Token {
        tenant,
        key_id: KEY_ID,
        secret_hash: key.try_into().ok()?,
        holder: Holder::Agent { agent, lane },
        run: None,
        is_locator: true,
    };
    Some((token, message, seal))
}

#[cfg(test)]
mod tests {
    use super::super::run_token::parse_any;
    use super::*;

    const KEY: PublicKey = PublicKey([7; 32]);

    fn keys(key: &str) -> MacKeys {
        MacKeys::new(key, None).unwrap()
    }

    #[test]
    fn a_locator_names_an_agent_its_lane_and_its_key() {
        let keys = keys(&"k".repeat(32));
        let text = issue(&keys, "acme", "bot", 7, &KEY);
        let token = parse_any(&text, &keys).unwrap();
        assert_eq!((token.tenant, token.key_id), ("acme", KEY_ID));
        assert_eq!(token.holder, Holder::Agent { agent: "bot", lane: 7 });
        assert_eq!(token.secret_hash, KEY.0);
        assert!(token.is_locator && token.run.is_none() && !is_name(KEY_ID));
    }

    #[test]
    fn a_changed_locator_is_no_token_of_any_kind() {
        let (own, other) = (keys(&"k".repeat(32)), keys(&"o".repeat(32)));
        let name = "a".repeat(63);
        let longest = issue(&own, &name, &name, 4_095, &KEY);
        assert_eq!(longest.len(), MAX_LOCATOR_BYTES);
        assert!(parse_any(&longest, &own).is_ok());
        let text = issue(&own, "acme", "bot", 7, &KEY);
        assert_eq!(parse_any(&text, &other), Err(TokenError::Forged));
        let changes = [
            ("gwl_", "gwr_"),
            ("gwl_", "gw_"),
            ("gwl_", "gwa_"),
            ("acme", "acne"),
            ("bot", "bat"),
            (".7.", ".8."),
            (".7.", ".07."),
            (".7.", ".7.k1."),
            (".7.", ".7.."),
            ("BwcH", "BwcI"),
            ("BwcH", "Bwc"),
        ];
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            assert!(parse_any(&text.replacen(from, to, 1), &own).is_err(), "{from} {to}");
        }
        for cut in 0..text.len() {
            assert!(parse_any(&text[..cut], &own).is_err(), "{cut}");
        }
    }
}
