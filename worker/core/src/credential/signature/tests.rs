//! What a signature must cover, as tables, and the example of the RFC for the signature base.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};

use super::*;
use crate::credential::token;

const MAC_KEY: &str = "0123456789abcdef0123456789abcdef";
const NOW_S: u64 = 1_795_000_000;
const NOW_MS: u64 = NOW_S * 1_000 + 999;
const BODY: &str = r#"{"reason":"leaked"}"#;
const COVERED: &str = r#""@method" "@path" "@query" "content-digest""#;

fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let mut hmac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    hmac.update(message.as_bytes());
    hmac.finalize().into_bytes().to_vec()
}

fn digest(body: &str) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(body)))
}

/// A signed request, and changes to it after signing.
#[derive(Clone)]
struct Case {
    method: &'static str,
    path: &'static str,
    query: &'static str,
    headers: Vec<(String, String)>,
    body: &'static str,
    /// The parameters as the signer writes them.
    covered: String,
    parameters: String,
}

impl Case {
    /// A client's request to freeze an agent.
    fn new() -> Self {
        Self {
            method: "POST",
            path: "/v1/agents/coder/freeze",
            query: "",
            headers: vec![(DIGEST.to_owned(), digest(BODY))],
            body: BODY,
            covered: COVERED.to_owned(),
            parameters: format!(r#";created={NOW_S};keyid="k1";nonce="n1""#),
        }
    }

    fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn parameters(self, parameters: &str) -> Self {
        Self { parameters: parameters.to_owned(), ..self }
    }

    fn covered(self, covered: &str) -> Self {
        Self { covered: covered.to_owned(), ..self }
    }

    /// Signs the request as a client does. The signature base is written by hand here.
    fn signed(self) -> Self {
        let input = format!("({}){}", self.covered, self.parameters);
        let mut base = String::new();
        for name in self.covered.split(' ').filter(|name| !name.is_empty()) {
            let value = match name.trim_matches('"') {
                "@method" => self.method.to_owned(),
                "@path" => self.path.to_owned(),
                "@query" => format!("?{}", self.query),
                name => {
                    let value = self.headers.iter().find(|(known, _)| known == name);
                    value.map(|(_, value)| value.clone()).unwrap_or_default()
                }
            };
            base.push_str(&format!("{name}: {value}\n"));
        }
        base.push_str(&format!("\"@signature-params\": {input}"));
        let key = keys().signing_key("acme", "k1");
        let mac = STANDARD.encode(hmac(key.as_bytes(), &base));
        self.header("signature-input", &format!("sig1={input}"))
            .header("signature", &format!("sig1=:{mac}:"))
    }

    fn verify(&self, needs_nonce: bool, now_ms: u64) -> Result<Verified, Problem> {
        let keys = keys();
        let secret = token::encode_secret(&[7; 32]);
        let text = keys.agent_token("acme", "bot", 0, "k1", &secret);
        let token = token::parse(&text, &keys).unwrap();
        let Self { method, path, query, headers, body, .. } = self;
        let body = body.as_bytes();
        let request = SignedRequest { method, path, query, headers, body };
        verify(&request, &keys, &token, needs_nonce, now_ms)
    }

    /// The code and detail of the problem; empty if the signature verifies.
    fn refusal(&self) -> String {
        match self.verify(true, NOW_MS) {
            Ok(_) => String::new(),
            Err(problem) => format!("{}: {}", problem.code.code(), problem.detail),
        }
    }
}

fn keys() -> MacKeys {
    MacKeys::new(MAC_KEY, None).unwrap()
}

#[test]
fn the_signature_base_is_the_one_of_rfc_9421_appendix_b_2_5() {
    let input =
        r#"("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#;
    let parsed: Dictionary = Parser::new(&format!("sig-b25={input}")).parse().unwrap();
    let ListEntry::InnerList(list) = &parsed[0] else { panic!("{parsed:?}") };
    let base = base(list, |name| {
        let value = match name {
            "date" => "Tue, 20 Apr 2021 02:07:55 GMT",
            "@authority" => "example.com",
            _ => "application/json",
        };
        Some(Cow::Borrowed(value))
    });
    let base = base.unwrap();
    assert_eq!(
        base,
        format!(
            "\"date\": Tue, 20 Apr 2021 02:07:55 GMT\n\"@authority\": example.com\n\
             \"content-type\": application/json\n\"@signature-params\": {input}"
        )
    );
    let key =
        "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
    let mac = hmac(&STANDARD.decode(key).unwrap(), &base);
    assert_eq!(STANDARD.encode(mac), "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
}

#[test]
fn a_signed_request_verifies_and_returns_the_nonce_if_it_needs_one() {
    let nonce = SignatureNonce { nonce: "n1".to_owned(), created_ms: NOW_S * 1_000 };
    let case = Case::new().signed();
    assert_eq!(case.verify(true, NOW_MS).unwrap(), Verified { nonce: Some(nonce) });
    assert_eq!(case.verify(false, NOW_MS).unwrap(), Verified { nonce: None });
    // A read without a body has no digest and needs no nonce.
    let mut read = Case::new().covered(r#""@method" "@path" "@query""#);
    (read.method, read.query, read.body) = ("GET", "limit=2", "");
    read.headers.clear();
    let read = read.parameters(&format!(r#";created={NOW_S};keyid="k1""#)).signed();
    assert_eq!(read.verify(false, NOW_MS).unwrap(), Verified { nonce: None });
    let refused = "signature_invalid: the signature of this request needs a `nonce`";
    assert_eq!(read.refusal(), refused);
}

#[test]
fn optional_components_are_verified_too() {
    let more = format!(r#"{COVERED} "date" "x-gateward-run-id""#);
    let case = Case::new().header("date", "today").header("x-gateward-run-id", "r1").covered(&more);
    let all = format!(
        r#";created={NOW_S};expires={};keyid="k1";nonce="n1";alg="hmac-sha256";tag="t""#,
        NOW_S + 1
    );
    let case = case.parameters(&all).signed();
    assert_eq!(case.refusal(), "");
    let changed = case.clone().header("date", "tomorrow");
    assert!(changed.refusal().starts_with("signature_invalid"));
}

#[test]
fn a_change_of_a_covered_component_is_rejected() {
    let header = "x-gateward-source-trust";
    let covered = format!(r#"{COVERED} "{header}""#);
    let signed = Case::new().header(header, "untrusted_external").covered(&covered).signed();
    assert_eq!(signed.refusal(), "");
    let removed = || {
        let mut case = signed.clone();
        case.headers.retain(|(name, _)| name != header);
        case
    };
    let added = Case::new().signed();
    let cases = [
        ("another method", Case { method: "DELETE", ..signed.clone() }),
        ("another path", Case { path: "/v1/credentials/k1/rotate", ..signed.clone() }),
        ("another query", Case { query: "x=1", ..signed.clone() }),
        ("another body", Case { body: "{}", ..signed.clone() }),
        ("no body", Case { body: "", ..signed.clone() }),
        (
            "another digest with its body",
            Case { body: "{}", ..signed.clone() }.header(DIGEST, &digest("{}")),
        ),
        ("a header removed", removed()),
        ("a header changed", signed.clone().header(header, "trusted_internal_signed")),
        ("a header added", added.header(header, "trusted_internal_signed")),
        ("a condition added", Case::new().signed().header("if-match", "\"1\"")),
        ("a session added", Case::new().signed().header("mcp-session-id", "s")),
    ];
    for (name, case) in cases {
        assert!(case.refusal().starts_with("signature_invalid: "), "{name}: {}", case.refusal());
    }
}

#[test]
fn a_signature_without_a_required_component_is_rejected() {
    for (case, expected) in [
        (Case::new().covered(r#""@path" "@query" "content-digest""#), "must cover `@method`"),
        (Case::new().covered(r#""@method" "@query" "content-digest""#), "must cover `@path`"),
        (Case::new().covered(r#""@method" "@path" "content-digest""#), "must cover `@query`"),
        (Case::new().covered(r#""@method" "@path" "@query""#), "must cover `content-digest`"),
        (Case::new().header("x-gateward-run-id", "r"), "must cover `x-gateward-run-id`"),
        (Case::new().header("x-tenuo-pop", "r"), "must cover `x-tenuo-pop`"),
        (Case::new().header("idempotency-key", "i"), "must cover `idempotency-key`"),
        (Case::new().header("if-match", "\"1\""), "must cover `if-match`"),
        (Case::new().header("mcp-session-id", "s"), "must cover `mcp-session-id`"),
        (Case::new().covered(""), "must cover `@method`"),
        (Case::new().covered(&format!(r#"{COVERED} "date""#)), "which the request does not have"),
        (
            Case::new().covered(&format!(r#"{COVERED} "@authority""#)),
            "which the request does not have",
        ),
        (Case::new().covered(&format!(r#"{COVERED} "@path""#)), "covers `@path` twice"),
        (Case::new().covered(&format!(r#"{COVERED} "date";sf"#)), "without parameters"),
        (Case::new().covered(&format!("{COVERED} date")), "must be strings"),
        (Case::new().header(DIGEST, "sha-512=:AAAA:"), "must have the SHA-256 of the body"),
        (Case::new().header(DIGEST, "sha-256"), "must have the SHA-256 of the body"),
        (Case::new().header(DIGEST, ""), "must have the SHA-256 of the body"),
    ] {
        let refusal = case.signed().refusal();
        assert!(refusal.starts_with("signature_invalid: "), "{refusal}");
        assert!(refusal.contains(expected), "{refusal}, not {expected}");
    }
}

#[test]
fn wrong_parameters_are_rejected() {
    let old = NOW_S - 301;
    for (parameters, expected) in [
        (r#";keyid="k1";nonce="n""#.to_owned(), "signature_invalid: `created` must be present"),
        (format!(r#";created={NOW_S};nonce="n""#), "signature_invalid: `keyid` must be present"),
        (
            format!(r#";created={NOW_S};keyid="k2";nonce="n""#),
            "must be the key id of the credential",
        ),
        (format!(r#";created={NOW_S};keyid="k1""#), "needs a `nonce`"),
        (
            format!(r#";created={NOW_S};keyid="k1";nonce="""#),
            "`nonce` must be a string of 1 to 128",
        ),
        (format!(r#";created={NOW_S};keyid="k1";nonce="{}""#, "n".repeat(129)), "`nonce` must be"),
        (format!(r#";created={NOW_S};keyid="k1";nonce=n"#), "`nonce` must be a string"),
        (format!(r#";created="{NOW_S}";keyid="k1";nonce="n""#), "`created` must be a number"),
        (format!(r#";created=-{NOW_S};keyid="k1";nonce="n""#), "`created` must be a number"),
        (format!(r#";created={NOW_S}.5;keyid="k1";nonce="n""#), "`created` must be a number"),
        (
            format!(r#";created={NOW_S};keyid="k1";nonce="n";alg="ed25519""#),
            "`alg` must be `hmac-sha256`",
        ),
        (
            format!(r#";created={NOW_S};keyid="k1";nonce="n";only-at="night""#),
            "`only-at` is not supported",
        ),
        (format!(r#";created={old};keyid="k1";nonce="n""#), "timestamp_stale: "),
        (format!(r#";created={};keyid="k1";nonce="n""#, NOW_S + 302), "timestamp_stale: "),
        (format!(r#";created={NOW_S};expires={NOW_S};keyid="k1";nonce="n""#), "timestamp_stale: "),
    ] {
        let refusal = Case::new().parameters(&parameters).signed().refusal();
        assert!(refusal.contains(expected), "{parameters}: {refusal}, not {expected}");
    }
    for created in [NOW_S - 299, NOW_S + 300] {
        let parameters = format!(r#";created={created};keyid="k1";nonce="n""#);
        assert_eq!(Case::new().parameters(&parameters).signed().refusal(), "", "{created}");
    }
}

#[test]
fn exactly_one_signature_is_accepted_in_its_canonical_form() {
    let good = Case::new().signed();
    let value =
        |name: &str| good.headers.iter().find(|(known, _)| known == name).unwrap().1.clone();
    let (input, signature) = (value("signature-input"), value("signature"));
    let long = format!("{input}, {}", "x".repeat(MAX_SIGNATURE_FIELD_BYTES));
    for (name, changed) in [
        ("signature-input", String::new()),
        ("signature-input", "sig1".to_owned()),
        ("signature-input", "sig1=1".to_owned()),
        ("signature-input", input.replace("sig1", "sig2")),
        ("signature-input", format!("{input}, {}", input.replace("sig1", "sig2"))),
        ("signature-input", input.replace(')', "")),
        ("signature-input", long),
        ("signature", String::new()),
        ("signature", "sig1".to_owned()),
        ("signature", "sig1=()".to_owned()),
        ("signature", signature.replace("sig1", "sig2")),
        ("signature", format!("{signature}, sig2=:AAAA:")),
        ("signature", signature.replace("=:", "=:A")),
        ("signature", format!("sig1=:{}:", STANDARD.encode([0; 32]))),
        ("signature", "sig1=::".to_owned()),
        ("signature", signature.replace("sig1=:", "sig1=\"").replace("=:", "=\"")),
    ] {
        let refusal = good.clone().header(name, &changed).refusal();
        assert!(refusal.starts_with("signature_invalid: "), "{name}: {changed}: {refusal}");
    }
    // Spaces that the canonical form does not have are not signed, so they change nothing.
    let spaced = input.replace("(\"", "( \"").replace(";nonce", "; nonce");
    assert_eq!(good.clone().header("signature-input", &spaced).refusal(), "");
}
