//! Signs requests: HTTP Message Signatures (RFC 9421) with `hmac-sha256`, and Content-Digest (RFC
//! 9530). docs/signing.md has the same code in other languages.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::failure::Failure;

/// A request to sign.
pub struct Unsigned<'a> {
    pub method: &'a str,
    /// Percent-encoded, from the first slash on.
    pub path: &'a str,
    /// Without the question mark. Empty if there is no query.
    pub query: &'a str,
    /// All of them are signed.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
}

/// Signs requests with a credential: the key id comes from its token, and the secret is its signing
/// key.
pub struct Signer {
    key_id: String,
    key: Hmac<Sha256>,
}

impl Signer {
    /// The bytes of the HMAC's key are the characters of `key`.
    pub fn new(token: &str, key: &str) -> Result<Self, Failure> {
        let key = Hmac::new_from_slice(key.as_bytes())
            .map_err(|_| Failure::other("the signing key cannot be used"))?;
        // `gw_<tenant>.<agent>.<lane>.<key id>…` and `gwa_<tenant>.<key id>…`
        let at = if token.starts_with("gwa_") { 1 } else { 3 };
        let key_id = token.split('.').nth(at);
        let key_id = key_id.ok_or_else(|| Failure::other("the token has no key id"))?.to_owned();
        Ok(Self { key_id, key })
    }

    /// The headers of a signature made now, for one request.
    pub fn sign(&self, request: &Unsigned<'_>) -> Vec<(String, String)> {
        // If the clock is before 1970, Gateward refuses the signature as stale.
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        self.sign_with(request, now_s, &Uuid::new_v4().to_string())
    }

    fn sign_with(
        &self,
        request: &Unsigned<'_>,
        created: u64,
        nonce: &str,
    ) -> Vec<(String, String)> {
        let mut added = Vec::new();
        if !request.body.is_empty() {
            let digest = STANDARD.encode(Sha256::digest(request.body));
            added.push(("content-digest".to_owned(), format!("sha-256=:{digest}:")));
        }
        let headers = request.headers.iter().chain(&added);
        let mut components = vec![
            ("@method".to_owned(), request.method.to_owned()),
            ("@path".to_owned(), request.path.to_owned()),
            ("@query".to_owned(), format!("?{}", request.query)),
        ];
        components.extend(headers.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
        let names: Vec<_> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let parameters = format!(
            "({});created={created};keyid=\"{}\";nonce=\"{nonce}\";alg=\"hmac-sha256\"",
            names.join(" "),
            self.key_id,
        );
        let mut base = String::new();
        for (name, value) in &components {
            base.push_str(&format!("\"{name}\": {value}\n"));
        }
        base.push_str(&format!("\"@signature-params\": {parameters}"));
        let mut hmac = self.key.clone();
        hmac.update(base.as_bytes());
        let mac = STANDARD.encode(hmac.finalize().into_bytes());
        added.push(("signature-input".to_owned(), format!("sig1={parameters}")));
        added.push(("signature".to_owned(), format!("sig1=:{mac}:")));
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_covers_method_path_query_body_and_every_header() {
        let headers = [("X-Gateward-Run-Id".to_owned(), "r1".to_owned())];
        let request = Unsigned {
            method: "POST",
            path: "/v1/authorize",
            query: "",
            headers: &headers,
            body: b"{}",
        };
        let signer = Signer::new("gw_acme.bot.0.k1.secret.mac", &"0".repeat(64)).unwrap();
        // The signature is computed by Python's hmac over the base of RFC 9421, section 2.5.
        let expected = [
            ("content-digest", "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"),
            (
                "signature-input",
                "sig1=(\"@method\" \"@path\" \"@query\" \"x-gateward-run-id\" \"content-digest\");\
                 created=1795000000;keyid=\"k1\";nonce=\"n\";alg=\"hmac-sha256\"",
            ),
            ("signature", "sig1=:g7MFquLFizVvX5TrdVwF3A6EK+GZrRoRztA/aOBF5kI=:"),
        ];
        let signed = signer.sign_with(&request, 1_795_000_000, "n");
        let signed: Vec<_> =
            signed.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(signed, expected);
    }

    #[test]
    fn the_key_id_is_the_one_of_the_token() {
        for (token, expected) in [
            ("gw_acme.bot.0.k1.secret.mac", Some("k1")),
            ("gwa_acme.k2.secret.mac", Some("k2")),
            ("gwa_acme", None),
            ("x", None),
        ] {
            let signer = Signer::new(token, "").ok();
            assert_eq!(signer.map(|signer| signer.key_id).as_deref(), expected, "{token}");
        }
    }
}
