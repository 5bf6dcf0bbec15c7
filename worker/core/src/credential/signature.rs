//! Signed requests: HTTP Message Signatures (RFC 9421) with `hmac-sha256`, and Content-Digest
//! (RFC 9530). docs/signing.md describes the same for clients.
//!
//! This module decides what a signature must cover, and verifies it. Out of scope: the keys
//! ([`crate::credential::token`]), whether a credential must sign (`gate/identity.rs` and the worker), and
//! storing nonces (the lane for calls, D1 for other requests).
//!
//! INVARIANT (the whole meaning is signed): a signature that verifies covers the method, path, query, body,
//! and every header for which [`must_be_covered`] is true.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sfv::{Dictionary, FieldType as _, InnerList, ListEntry, Parser};
use sha2::{Digest as _, Sha256};

use crate::bounds::{MAX_CLOCK_SKEW_MS, MAX_REQUEST_ID_BYTES, MAX_SIGNATURE_FIELD_BYTES};
use crate::credential::token::{MacKeys, Token};
use crate::name::OWN_PREFIX;
use crate::problem::{Problem, ProblemCode};
use crate::warrant::carried::HEADER_PREFIX;

/// The only algorithm: HMAC-SHA-256 with the credential's signing key.
pub const ALGORITHM: &str = "hmac-sha256";

/// Components that every signature covers.
const ALWAYS_COVERED: [&str; 3] = ["@method", "@path", "@query"];

/// Covered if the request has a body.
const DIGEST: &str = "content-digest";

/// The supported parameters. Others are rejected, because they could restrict the signature.
const PARAMETERS: [&str; 6] = ["alg", "created", "expires", "keyid", "nonce", "tag"];

/// A received request.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    pub method: &'a str,
    pub path: &'a str,
    /// Without the question mark. Empty if there is no query.
    pub query: &'a str,
    /// Names in lower case. The values of one name are joined by a comma and a space.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

/// A signature that verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Present if the request needs one. The nonce must be recorded as used before anything else is done.
    pub nonce: Option<SignatureNonce>,
}

/// The nonce of a signed request, which prevents a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureNonce {
    pub nonce: String,
    /// When the request was signed, on the signer's clock.
    pub created_ms: u64,
}

impl SignatureNonce {
    /// Whether the request was signed too long ago or too far in the future.
    #[must_use]
    pub fn is_stale(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.created_ms) > MAX_CLOCK_SKEW_MS
    }
}

/// Verifies the request's signature with the signing key of `token`'s credential.
///
/// # Errors
///
/// `signature_invalid`, whose detail says what is wrong; `timestamp_stale` if the signature verifies but
/// is too old.
pub fn verify(
    request: &SignedRequest<'_>,
    keys: &MacKeys,
    token: &Token<'_>,
    needs_nonce: bool,
    now_ms: u64,
) -> Result<Verified, Problem> {
    // `extend` and not `collect`: `collect` would add a sort to the Wasm for this type of map alone.
    let mut headers: BTreeMap<&str, &str> = BTreeMap::new();
    headers.extend(request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let inputs = dictionary(&headers, "signature-input")?;
    let (Some((label, ListEntry::InnerList(input))), 1) = (inputs.first(), inputs.len()) else {
        return Err(invalid("`Signature-Input` must describe exactly one signature"));
    };
    let signatures = dictionary(&headers, "signature")?;
    let mac = match signatures.get(label) {
        Some(ListEntry::Item(item)) if signatures.len() == 1 => item.bare_item.as_byte_sequence(),
        _ => None,
    };
    let mac = mac.ok_or_else(|| {
        invalid(
            "`Signature` must contain the one signature that `Signature-Input` describes, as bytes",
        )
    })?;
    let covered = covered(input)?;
    let required = ALWAYS_COVERED
        .into_iter()
        .chain((!request.body.is_empty()).then_some(DIGEST))
        .chain(headers.keys().copied().filter(|name| must_be_covered(name)));
    for name in required {
        if !covered.contains(name) {
            return Err(invalid(format!("the signature must cover `{name}`")));
        }
    }
    let parameters = Parameters::read(input)?;
    if parameters.key_id != token.key_id {
        return Err(invalid("`keyid` must be the key id of the credential"));
    }
    let base = base(input, |name| match name {
        "@method" => Some(Cow::Borrowed(request.method)),
        "@path" => Some(Cow::Borrowed(request.path)),
        "@query" => Some(Cow::Owned(["?", request.query].concat())),
        name => headers.get(name).copied().map(Cow::Borrowed),
    })?;
    if !keys.verify_signature(token, base.as_bytes(), mac) {
        return Err(invalid(
            "the signature does not match: sign this request with the signing key of its credential",
        ));
    }
    if covered.contains(DIGEST) && !digest_matches(&headers, request.body)? {
        return Err(invalid("`Content-Digest` must have the SHA-256 of the body as `sha-256`"));
    }
    let nonce = SignatureNonce {
        nonce: parameters.nonce.unwrap_or_default().to_owned(),
        created_ms: parameters.created_ms,
    };
    if nonce.is_stale(now_ms) {
        return Err(stale());
    }
    if parameters.expires_ms.is_some_and(|at_ms| at_ms <= now_ms) {
        let detail = "the signature has expired: `expires` is in the past";
        return Err(Problem::new(ProblemCode::TimestampStale, detail));
    }
    if needs_nonce && nonce.nonce.is_empty() {
        return Err(invalid("the signature of this request needs a `nonce`"));
    }
    Ok(Verified { nonce: needs_nonce.then_some(nonce) })
}

/// The problem for a signature that verifies, but whose `created` is too far from now.
#[must_use]
pub fn stale() -> Problem {
    let seconds = MAX_CLOCK_SKEW_MS / 1_000;
    let detail =
        format!("the signature's `created` must be within {seconds} s of the current time");
    Problem::new(ProblemCode::TimestampStale, detail)
}

/// The problem for a signature that verifies, but whose nonce was used before.
#[must_use]
pub fn replayed() -> Problem {
    let detail = "the signature's `nonce` was used before: sign every request with a new nonce";
    Problem::new(ProblemCode::NonceReplayed, detail)
}

/// Whether a signature must cover this header if it is present: Gateward acts on it. A signature may cover
/// other headers too; they are verified.
fn must_be_covered(name: &str) -> bool {
    matches!(name, DIGEST | "idempotency-key" | "if-match" | "last-event-id")
        || name.starts_with(OWN_PREFIX)
        || name.starts_with(HEADER_PREFIX)
        || name.starts_with("mcp-")
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemCode::SignatureInvalid, detail)
}

/// A header that is a dictionary (RFC 9651).
fn dictionary(headers: &BTreeMap<&str, &str>, name: &str) -> Result<Dictionary, Problem> {
    let text = headers.get(name).copied().unwrap_or_default();
    let parsed = (text.len() <= MAX_SIGNATURE_FIELD_BYTES).then(|| Parser::new(text).parse());
    match parsed {
        Some(Ok(dictionary)) => Ok(dictionary),
        _ => Err(invalid(format!(
            "`{name}` must be a dictionary of RFC 9651 of at most {MAX_SIGNATURE_FIELD_BYTES} bytes"
        ))),
    }
}

/// The names of the covered components. Components with parameters are not supported.
fn covered(input: &InnerList) -> Result<BTreeSet<&str>, Problem> {
    let mut names = BTreeSet::new();
    for item in &input.items {
        let name = item.bare_item.as_string().filter(|_| item.params.is_empty());
        let name = name.ok_or_else(|| {
            invalid("the components in `Signature-Input` must be strings without parameters")
        })?;
        if !names.insert(name.as_str()) {
            return Err(invalid(format!("the signature covers `{}` twice", name.as_str())));
        }
    }
    Ok(names)
}

/// The parameters of a signature.
struct Parameters<'a> {
    created_ms: u64,
    expires_ms: Option<u64>,
    key_id: &'a str,
    nonce: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    fn read(input: &'a InnerList) -> Result<Self, Problem> {
        if let Some(name) = input.params.keys().find(|name| !PARAMETERS.contains(&name.as_str())) {
            return Err(invalid(format!("the parameter `{}` is not supported", name.as_str())));
        }
        let text = |name: &str| match input.params.get(name) {
            None => Ok(None),
            Some(value) => match value.as_string().map(|text| text.as_str()) {
                Some(text) if (1..=MAX_REQUEST_ID_BYTES).contains(&text.len()) => Ok(Some(text)),
                _ => Err(invalid(format!(
                    "`{name}` must be a string of 1 to {MAX_REQUEST_ID_BYTES} characters"
                ))),
            },
        };
        let time_ms = |name: &str| match input.params.get(name) {
            None => Ok(None),
            Some(value) => {
                let seconds = value.as_integer().and_then(|at| u64::try_from(at).ok());
                let seconds = seconds.and_then(|seconds| seconds.checked_mul(1_000));
                let must = || invalid(format!("`{name}` must be a number of seconds since 1970"));
                seconds.ok_or_else(must).map(Some)
            }
        };
        if text("alg")?.is_some_and(|algorithm| algorithm != ALGORITHM) {
            return Err(invalid(format!("`alg` must be `{ALGORITHM}`")));
        }
        text("tag")?;
        Ok(Self {
            created_ms: time_ms("created")?.ok_or_else(|| invalid("`created` must be present"))?,
            expires_ms: time_ms("expires")?,
            key_id: text("keyid")?.ok_or_else(|| invalid("`keyid` must be present"))?,
            nonce: text("nonce")?,
        })
    }
}

/// The signature base (RFC 9421, section 2.5). `value` returns the value of a component.
fn base<'a>(
    input: &InnerList,
    value: impl Fn(&str) -> Option<Cow<'a, str>>,
) -> Result<String, Problem> {
    let mut base = String::new();
    for item in &input.items {
        let name = item.bare_item.as_string().map_or("", |name| name.as_str());
        let value = value(name).ok_or_else(|| {
            invalid(format!("the signature covers `{name}`, which the request does not have"))
        })?;
        base.extend(["\"", name, "\": ", &value, "\n"]);
    }
    let parameters = vec![ListEntry::InnerList(input.clone())].serialize().unwrap_or_default();
    base.extend(["\"@signature-params\": ", &parameters]);
    Ok(base)
}

fn digest_matches(headers: &BTreeMap<&str, &str>, body: &[u8]) -> Result<bool, Problem> {
    let digests = dictionary(headers, DIGEST)?;
    let claimed = match digests.get("sha-256") {
        Some(ListEntry::Item(item)) => item.bare_item.as_byte_sequence(),
        _ => None,
    };
    Ok(claimed == Some(Sha256::digest(body).as_slice()))
}

#[cfg(test)]
mod tests;
