//! Run credentials: tokens with which an agent makes calls in one run, and nothing else.
//!
//! The form is `gwr_<tenant>.<agent>.<lane>.<key>.<secret hash>.<run>.<expiry>.<seal>`. It names the
//! credential that it was issued with (the parent), by its key and the SHA-256 of its secret. Hash and run id
//! are in base64url without padding; the expiry is in seconds since 1970. The parent is compared at every
//! call as always, so a run credential ends when its parent is replaced, revoked or expired.
//!
//! A run credential has no secret. Its seal is its only proof, so the seal is a MAC of 128 bits, unlike the
//! truncated MAC of other tokens.
//!
//! Out of scope: whether it has expired, because this module has no clock.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::locator;
use super::token::{self, FixedRun, Holder, MacKeys, Token, TokenError};
use crate::bounds::{MAX_LABEL_BYTES, MAX_RUN_TOKEN_BYTES};
use crate::id::lane_number;
use crate::name::is_name;

/// What a run credential begins with.
const PREFIX: &str = "gwr_";

/// The message of every other kind of seal begins with another text.
const PURPOSE: &str = "run-credential:";

/// A run credential for the agent of `parent`; `None` if the parent is not an agent's own token.
#[must_use]
pub fn issue(keys: &MacKeys, parent: &Token<'_>, run: &FixedRun) -> Option<String> {
    let Holder::Agent { agent, lane } = parent.holder else { return None };
    if parent.run.is_some() || parent.is_locator {
        return None;
    }
    let Token { tenant, key_id, .. } = parent;
    let hash = URL_SAFE_NO_PAD.encode(parent.secret_hash);
    let run_id = URL_SAFE_NO_PAD.encode(&run.run_id);
    let expiry = run.expires_at_s;
    let message = format!("{PREFIX}{tenant}.{agent}.{lane}.{key_id}.{hash}.{run_id}.{expiry}");
    let seal = keys.seal(&[PURPOSE, &message].concat());
    Some([&message, ".", &seal].concat())
}

/// Reads a token of any kind, and verifies its MAC or its seal. The form is checked first, which is fast.
///
/// # Errors
///
/// [`TokenError::Malformed`] or [`TokenError::Forged`].
pub fn parse_any<'a>(text: &'a str, keys: &MacKeys) -> Result<Token<'a>, TokenError> {
    if text.starts_with(locator::PREFIX) {
        return locator::parse(text, keys);
    }
    if !text.starts_with(PREFIX) {
        return token::parse(text, keys);
    }
    let (token, message, seal) = parse_shape(text).ok_or(TokenError::Malformed)?;
    let sealed = keys.is_seal(&[PURPOSE, message].concat(), seal);
    if sealed { Ok(token) } else { Err(TokenError::Forged) }
}

/// The token, the message that is sealed, and the seal.
fn parse_shape(text: &str) -> Option<(Token<'_>, &str, &str)> {
    if text.len() > MAX_RUN_TOKEN_BYTES {
        return None;
    }
    let (message, seal) = text.rsplit_once('.')?;
    let mut parts = message.strip_prefix(PREFIX)?.split('.');
    let (tenant, agent, lane) = (parts.next()?, parts.next()?, lane_number(parts.next()?)?);
    let (key_id, hash) = (parts.next()?, parts.next()?);
    let (run_id, expiry) = (parts.next()?, parts.next()?);
    if parts.next().is_some() || ![tenant, agent, key_id].into_iter().all(is_name) {
        return None;
    }
    let secret_hash = URL_SAFE_NO_PAD.decode(hash).ok()?.try_into().ok()?;
    let run_id = String::from_utf8(URL_SAFE_NO_PAD.decode(run_id).ok()?).ok()?;
    if !(1..=MAX_LABEL_BYTES).contains(&run_id.len()) {
        return None;
    }
    let run = Some(FixedRun { run_id, expires_at_s: expiry.parse().ok()? });
    let holder = Holder::Agent { agent, lane };
    let token = Token { tenant, key_id, secret_hash, holder, run, is_locator: false };
    Some((token, message, seal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::token::{SECRET_BYTES, encode_secret};

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const OLD: &str = "fedcba9876543210fedcba9876543210";

    fn keys(current: &str, previous: Option<&str>) -> MacKeys {
        MacKeys::new(current, previous).unwrap()
    }

    fn run(run_id: &str) -> FixedRun {
        FixedRun { run_id: run_id.to_owned(), expires_at_s: 1_800_000_000 }
    }

    fn issued(keys: &MacKeys, run: &FixedRun) -> String {
        let secret = encode_secret(&[7; SECRET_BYTES]);
        let parent = keys.agent_token("acme", "bot", 7, "k1", &secret);
        issue(keys, &parse_any(&parent, keys).unwrap(), run).unwrap()
    }

    /// Any text with a valid seal.
    fn sealed(message: &str) -> String {
        format!("{message}.{}", keys(KEY, None).seal(&format!("{PURPOSE}{message}")))
    }

    #[test]
    fn a_run_credential_names_its_parent_its_run_and_its_end() {
        let longest = "ü".repeat(MAX_LABEL_BYTES / 2);
        for run_id in ["r", "a.b/c d\n", &longest] {
            let keys = keys(KEY, None);
            let text = issued(&keys, &run(run_id));
            let token = parse_any(&text, &keys).unwrap();
            let secret = encode_secret(&[7; SECRET_BYTES]);
            let parent = keys.agent_token("acme", "bot", 7, "k1", &secret);
            let parent = parse_any(&parent, &keys).unwrap();
            assert_eq!(token, Token { run: Some(run(run_id)), ..parent }, "{run_id}");
            assert_eq!(issue(&keys, &token, &run("other")), None, "it issues no others");
        }
        let administrator = keys(KEY, None).administrator_token("acme", "k1", &"s".repeat(43));
        let keys = keys(KEY, None);
        let administrator = parse_any(&administrator, &keys).unwrap();
        assert_eq!(issue(&keys, &administrator, &run("r")), None);
    }

    #[test]
    fn the_longest_run_credential_is_within_the_bound() {
        let name = "a".repeat(63);
        let keys = keys(KEY, None);
        let secret = encode_secret(&[7; SECRET_BYTES]);
        let parent = keys.agent_token(&name, &name, 4_095, &name, &secret);
        let run = FixedRun { run_id: "r".repeat(MAX_LABEL_BYTES), expires_at_s: u64::MAX };
        let text = issue(&keys, &parse_any(&parent, &keys).unwrap(), &run).unwrap();
        assert!(parse_any(&text, &keys).is_ok());
        assert_eq!(text.len(), MAX_RUN_TOKEN_BYTES);
    }

    #[test]
    fn both_keys_of_a_rotation_verify_a_run_credential() {
        let text = issued(&keys(OLD, None), &run("r"));
        assert!(parse_any(&text, &keys(OLD, None)).is_ok());
        assert!(parse_any(&text, &keys(KEY, Some(OLD))).is_ok());
        assert_eq!(parse_any(&text, &keys(KEY, None)), Err(TokenError::Forged));
    }

    #[test]
    fn a_run_credential_with_another_form_or_seal_is_rejected() {
        let keys = keys(KEY, None);
        let good = issued(&keys, &run("r"));
        let hash = URL_SAFE_NO_PAD.encode([1; 32]);
        let of = |text: &str| sealed(&text.replace("$H", &hash));
        assert!(parse_any(&of("gwr_acme.bot.7.k1.$H.cg.5"), &keys).is_ok());
        let (message, seal) = good.rsplit_once('.').unwrap();
        let raised = message.replace("1800000000", "1900000000");
        for (name, text, expected) in [
            ("empty", String::new(), TokenError::Malformed),
            ("nothing but the prefix", PREFIX.to_owned(), TokenError::Malformed),
            ("a part is missing", of("gwr_acme.bot.7.k1.$H.cg"), TokenError::Malformed),
            ("a part too many", of("gwr_acme.bot.7.k1.$H.cg.5.5"), TokenError::Malformed),
            ("a name that is none", of("gwr_Acme.bot.7.k1.$H.cg.5"), TokenError::Malformed),
            ("a lane that is none", of("gwr_acme.bot.4096.k1.$H.cg.5"), TokenError::Malformed),
            ("a short hash", of("gwr_acme.bot.7.k1.AAAA.cg.5"), TokenError::Malformed),
            ("an empty run", of("gwr_acme.bot.7.k1.$H..5"), TokenError::Malformed),
            ("a run that is not UTF-8", of("gwr_acme.bot.7.k1.$H._w.5"), TokenError::Malformed),
            ("an expiry that is none", of("gwr_acme.bot.7.k1.$H.cg.-5"), TokenError::Malformed),
            (
                "too long",
                of(&format!("gwr_acme.bot.7.k1.$H.{}.5", "a".repeat(800))),
                TokenError::Malformed,
            ),
            ("a later expiry", format!("{raised}.{seal}"), TokenError::Forged),
            ("another run", good.replace(".cg.", ".cw."), TokenError::Forged),
            ("another agent", good.replace(".bot.", ".box."), TokenError::Forged),
            ("without a seal", format!("{message}."), TokenError::Forged),
            ("with a truncated seal", good[..good.len() - 16].to_owned(), TokenError::Forged),
            (
                "the seal of another purpose",
                format!("{message}.{}", keys.seal(message)),
                TokenError::Forged,
            ),
            (
                "the seal of a session",
                format!("{message}.{}", keys.seal(&format!("mcp-session:{message}"))),
                TokenError::Forged,
            ),
        ] {
            assert_eq!(parse_any(&text, &keys), Err(expected), "{name}");
        }
    }

    #[test]
    fn a_run_credential_is_no_other_token_and_no_other_token_is_one() {
        let keys = keys(KEY, None);
        let text = issued(&keys, &run("r"));
        assert_eq!(parse_any(&text.replace("gwr_", "gw_"), &keys), Err(TokenError::Malformed));
        let own = keys.agent_token("acme", "bot", 7, "k1", &"s".repeat(43));
        assert_eq!(parse_any(&own.replace("gw_", "gwr_"), &keys), Err(TokenError::Malformed));
    }

    #[test]
    fn a_run_credential_ends_at_its_expiry() {
        for (now_ms, expected) in
            [(1_799_999_999_999, false), (1_800_000_000_000, true), (u64::MAX, true)]
        {
            assert_eq!(run("r").is_expired(now_ms), expected, "{now_ms}");
        }
    }
}
