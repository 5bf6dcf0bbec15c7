//! How callers send a warrant: in headers, in MCP's `_meta`, or in the body of `/v1/authorize`.
//!
//! What cannot be read is refused with the call, so that the refusal is on record and has a reason code.

use serde::{Deserialize, Serialize};

use super::bounds::{MAX_APPROVAL_BYTES, MAX_APPROVALS, MAX_TEXT_BYTES};
use super::cbor::{Malformed, Reader};
use super::chain::sha256;
use super::judge::{Cache, Call, Claim, Presented, Tolerance, judge};
use super::refusal::Refusal;
use super::text;
use crate::decision::ReasonCode;
use crate::json::Json;
use crate::json::raw::items_within;

/// The prefix of all headers of the format. None of them is forwarded.
pub const HEADER_PREFIX: &str = "x-tenuo-";

/// The headers with the warrant, the proof and the approvals.
pub const HEADERS: [&str; 3] = ["x-tenuo-warrant", "x-tenuo-pop", "x-tenuo-approvals"];

/// The member of MCP's `_meta`. It is not forwarded.
pub const META: &str = "tenuo";

/// The member of the body of `/v1/authorize`.
pub const BODY: &str = "warrant";

/// A warrant that came with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// SHA-256 of the stack, or of the text that could not be read as one.
    pub hash: [u8; 32],
    pub judged: Judged,
}

/// What is known about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judged {
    /// The call is not known yet: routes say which tool an HTTP request calls.
    Later(Presented),
    Refused(Refusal),
    Holds(Box<Claim>),
}

impl Carried {
    /// The warrant of a request's headers.
    pub fn in_headers(header: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let [warrant, proof, approvals] = HEADERS.map(header);
        let Some(warrant) = warrant else {
            let alone = proof.or(approvals)?;
            return Some(Self::unreadable(&alone, "it is missing"));
        };
        let approvals = approvals.as_deref().map_or(Ok(Vec::new()), approvals_of_header);
        Some(Self::read(&warrant, proof.as_deref(), approvals))
    }

    /// The warrant in a member of a JSON document, of the form of MCP's `_meta.tenuo`: `{"warrant", "signature",
    /// "approvals"}`.
    #[must_use]
    pub fn in_member(member: Option<&Json>) -> Option<Self> {
        let member = member.filter(|member| !matches!(member, Json::Null))?;
        let read = Self::of_member(member);
        Some(read.unwrap_or_else(|error| Self::unreadable(&member.canonical(), error.0)))
    }

    fn of_member(member: &Json) -> Result<Self, Malformed> {
        let Json::Object(fields) = member else {
            return Err(Malformed("`warrant`, or `tenuo` in `_meta`, must be an object"));
        };
        let is_known = |part: &str| matches!(part, "warrant" | "signature" | "approvals");
        if !fields.iter().all(|(part, _)| is_known(part)) {
            return Err(Malformed("its member has an unknown member"));
        }
        let text = |part: &str| match member.get(part) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(Malformed("`warrant` and `signature` must be texts")),
        };
        let approvals = match member.get("approvals") {
            None | Some(Json::Null) => Some(Vec::new()),
            Some(Json::Array(items)) => items.iter().map(Json::as_str).collect(),
            Some(_) => None,
        };
        let approvals = approvals.ok_or(Malformed("`approvals` must be a list of texts"))?;
        let warrant = text("warrant")?.ok_or(Malformed("it is missing"))?;
        Ok(Self::read(warrant, text("signature")?, approvals_of_texts(&approvals)))
    }

    /// One of two places. A request that has a warrant in both is refused.
    #[must_use]
    pub fn only(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(_)) => Some(one.refused("The request has a warrant in two places.")),
            (one, other) => one.or(other),
        }
    }

    /// Refuses the warrant because the request conflicts with it.
    #[must_use]
    pub fn refused(self, reason: &str) -> Self {
        let refusal = Refusal::new(ReasonCode::WarrantMalformed, reason).before_signatures();
        Self { judged: Judged::Refused(refusal), ..self }
    }

    /// What came in place of a warrant.
    fn unreadable(text: &str, reason: &str) -> Self {
        // The text may be of any length.
        let text = text.as_bytes();
        let text = text.get(..MAX_TEXT_BYTES).unwrap_or(text);
        let refusal = Refusal::malformed(reason).before_signatures();
        Self { hash: sha256(text), judged: Judged::Refused(refusal) }
    }

    fn read(
        warrant: &str,
        proof: Option<&str>,
        approvals: Result<Vec<Vec<u8>>, Malformed>,
    ) -> Self {
        let read = || {
            let stack = text::stack(warrant)?;
            let proof = proof.map(|proof| match proof.len() {
                0..=MAX_PROOF_TEXT => text::decode(proof),
                _ => Err(Malformed("the proof is too long")),
            });
            Ok(Presented { stack, proof: proof.transpose()?, approvals: approvals? })
        };
        match read() {
            Ok(presented) => {
                Self { hash: sha256(&presented.stack), judged: Judged::Later(presented) }
            }
            Err(Malformed(reason)) => Self::unreadable(warrant, reason),
        }
    }

    /// Judges the call, unless that was done.
    pub fn judge(&mut self, call: &Call<'_>, tolerance: Tolerance, cache: &mut Cache) {
        if let Judged::Later(presented) = &self.judged {
            self.judged = match judge(presented, call, tolerance, cache) {
                Ok(claim) => Judged::Holds(Box::new(claim)),
                Err(refusal) => Judged::Refused(refusal),
            };
        }
    }

    /// The verified claim; `None` if the warrant was refused or is not judged yet. The claim of a caller without a
    /// credential can have a [`Claim::refusal`]: then the warrant does not carry the call.
    #[must_use]
    pub fn claim(&self) -> Option<&Claim> {
        match &self.judged {
            Judged::Holds(claim) => Some(claim),
            _ => None,
        }
    }

    /// Bytes of memory that it has allocated.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.judged {
            Judged::Later(presented) => presented.heap_bytes(),
            _ => 0,
        }
    }
}

/// Characters of a proof: base64 of 64 bytes, with room for line ends.
const MAX_PROOF_TEXT: usize = 128;

/// Characters of one approval.
const MAX_APPROVAL_TEXT: usize = MAX_APPROVAL_BYTES * 3 / 2;

/// The header's value is base64 of a CBOR array of approvals, or of a JSON array of their base64. Clients send
/// both.
fn approvals_of_header(value: &str) -> Result<Vec<Vec<u8>>, Malformed> {
    if value.len() > MAX_APPROVALS * MAX_APPROVAL_TEXT {
        return Err(Malformed("the approvals are too large"));
    }
    let bytes = text::decode(value)?;
    if bytes.first() == Some(&b'[') {
        // Base64 has no escapes. So the texts need not be read, only found.
        let texts = std::str::from_utf8(&bytes).ok().and_then(|text| {
            let items = items_within(text, text.len())?;
            let texts = items.into_iter().map(|item| {
                let text = item.get().strip_prefix('"')?.strip_suffix('"')?;
                (!text.contains('\\')).then_some(text)
            });
            texts.collect::<Option<Vec<&str>>>()
        });
        return approvals_of_texts(
            &texts.ok_or(Malformed("the approvals are not a list of texts"))?,
        );
    }
    let mut reader = Reader::new(&bytes);
    let approvals = reader.list(MAX_APPROVALS, |reader| {
        let ((), approval) = reader.consumed(Reader::skip)?;
        Ok(approval.to_vec())
    })?;
    reader.end()?;
    Ok(approvals)
}

fn approvals_of_texts(texts: &[&str]) -> Result<Vec<Vec<u8>>, Malformed> {
    if texts.len() > MAX_APPROVALS || texts.iter().any(|text| text.len() > MAX_APPROVAL_TEXT) {
        return Err(Malformed("there are too many approvals, or one is too large"));
    }
    texts.iter().map(|approval| text::decode(approval)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::key::PublicKey;
    use super::super::proof::Proven;
    use super::super::refusal::NeededApprovals;
    use super::*;
    use crate::json::parse;

    fn headers(values: [Option<&str>; 3]) -> Option<Carried> {
        Carried::in_headers(|name| {
            let (_, value) = HEADERS.iter().zip(values).find(|(header, _)| **header == name)?;
            value.map(str::to_owned)
        })
    }

    fn presented(carried: Option<Carried>) -> Presented {
        match carried.unwrap().judged {
            Judged::Later(presented) => presented,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_warrant_is_read_from_headers_and_from_a_member() {
        // A CBOR array of two maps, and a JSON array of the base64 of two maps.
        for approvals in [text::encode(&[0x82, 0xa0, 0xa0]), text::encode(br#"["oA==","oA"]"#)] {
            let read = presented(headers([Some("gA"), Some("AQID"), Some(&approvals)]));
            assert_eq!((read.stack, read.proof), (vec![0x80], Some(vec![1, 2, 3])));
            assert_eq!(read.approvals, [[0xa0], [0xa0]], "{approvals}");
        }
        let member =
            parse(br#"{"warrant":"gA==","signature":"AQID","approvals":["oA=="]}"#).unwrap();
        let read = presented(Carried::in_member(Some(&member)));
        assert_eq!((read.stack, read.approvals), (vec![0x80], vec![vec![0xa0]]));
        assert_eq!(headers([None; 3]), None);
        assert_eq!(Carried::in_member(None), None);
        assert_eq!(Carried::in_member(Some(&Json::Null)), None);
    }

    #[test]
    fn what_is_no_warrant_is_refused_with_the_call_and_has_a_reason_code() {
        let refusal = |carried: Option<Carried>| match carried.unwrap().judged {
            Judged::Refused(refusal) => {
                assert_eq!(refusal.code, ReasonCode::WarrantMalformed, "{refusal:?}");
                assert!(refusal.reason.ends_with("No signature was verified."), "{refusal:?}");
                Some(refusal.reason)
            }
            // No bytes are no warrant either, which the judge says.
            Judged::Later(presented) if presented.stack.is_empty() => None,
            other => panic!("{other:?}"),
        };
        let long = "A".repeat(MAX_TEXT_BYTES + 1);
        for warrant in ["!", "", &long] {
            refusal(headers([Some(warrant), None, None]));
        }
        for alone in [[None, Some("AQ"), None], [None, None, Some("gA")]] {
            assert!(refusal(headers(alone)).unwrap().contains("it is missing"));
        }
        let some = || headers([Some("gA"), None, None]);
        let twice = refusal(Carried::only(some(), some())).unwrap();
        assert!(twice.contains("in two places"), "{twice}");
        let with_nonce = refusal(some().map(|it| it.refused("It has a nonce."))).unwrap();
        assert!(with_nonce.starts_with("It has a nonce."), "{with_nonce}");
        assert_eq!(Carried::only(some(), None), some());
        assert_eq!(Carried::only(None, some()), some());
        for (wrong, why) in [
            ("1", "an object"),
            ("{}", "it is missing"),
            (r#"{"warrant":1}"#, "must be texts"),
            (r#"{"warrant":"gA","signature":[]}"#, "must be texts"),
            (r#"{"warrant":"gA","approvals":"oA"}"#, "a list of texts"),
            (r#"{"warrant":"gA","approvals":[1]}"#, "a list of texts"),
            (r#"{"warrant":"gA","x":1}"#, "unknown member"),
        ] {
            let member = parse(format!("[{wrong}]").as_bytes()).unwrap();
            let Json::Array(items) = member else { panic!() };
            let reason = refusal(Carried::in_member(items.first())).unwrap();
            assert!(reason.contains(why), "{wrong}: {reason}");
        }
    }

    /// Worker and lane may run different versions, so a change of these bytes needs another version of the protocol
    /// (`lane/protocol.rs`).
    #[test]
    fn what_a_lane_gets_keeps_its_bytes() {
        let presented =
            Presented { stack: vec![1], proof: Some(vec![2]), approvals: vec![vec![3]] };
        let refusal = Refusal::new(ReasonCode::WarrantExpired, "r");
        let needed = NeededApprovals { request_hash: "h".to_owned(), got: 1, need: 2 };
        let unapproved = Refusal { approvals: Some(Box::new(needed)), ..refusal.clone() };
        let claim = Claim {
            root: PublicKey([4; 32]),
            agent_key: PublicKey([5; 32]),
            ids: vec![[6; 16]],
            issuer: PublicKey([7; 32]),
            holder: PublicKey([8; 32]),
            clearance: Some(9),
            tools: vec!["t".to_owned()],
            names_server: true,
            expires_at_s: 10,
            chain_hash: [11; 32],
            proven: Proven { hash: [12; 32], window_s: 13 },
            refusal: Some(refusal.clone()),
        };
        let hex = |judged| {
            hex::encode(postcard::to_allocvec(&Carried { hash: [0; 32], judged }).unwrap())
        };
        let zeros = "00".repeat(32);
        for (judged, expected) in [
            (Judged::Later(presented), "000101010102010103"),
            (Judged::Refused(refusal), "011c017200"),
            (Judged::Refused(unapproved), "011c01720101680102"),
            (
                Judged::Holds(Box::new(claim)),
                concat!(
                    "02040404040404040404040404040404040404040404040404040404040404040405050505050505",
                    "05050505050505050505050505050505050505050505050505010606060606060606060606060606",
                    "06060707070707070707070707070707070707070707070707070707070707070707080808080808",
                    "08080808080808080808080808080808080808080808080808080109010174010a0b0b0b0b",
                    "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0c0c0c0c0c0c0c0c0c0c0c0c",
                    "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0d011c017200",
                ),
            ),
        ] {
            assert_eq!(hex(judged), [&zeros, expected].concat());
        }
    }
}
