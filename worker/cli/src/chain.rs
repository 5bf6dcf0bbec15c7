//! Verifies a lane's receipts on this machine. It computes each hash from the receipt's text
//! (SHA-256 over RFC 8785), and compares the last hash with the one that the lane itself holds.
//! Pure; `run` reads the receipts.
//!
//! It does not check whether the lane's own copy of the newest hash is correct, nor the signatures of the lane's log.
//! If you do not trust the deployment, verify an export (`gateward verify`).

use gateward_admin::api::receipts::{Anchored, ReceiptEnds, ReceiptLink, Verification};
use gateward_core::receipt::{self, Break, GENESIS, StoredReceipt};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, from_str};

use crate::failure::Failure;
use crate::request::{Fields, Request};
use crate::section::{field, one, printable_lines, row, section, text_section};

/// The API's largest page of receipts.
pub const PAGE_ROWS_MAX: u32 = 500;

/// The receipts to verify.
#[derive(Debug, PartialEq)]
pub struct VerifyReceipts {
    /// Default: all lanes of the tenant.
    pub lane: Option<u16>,
    /// Default: the first receipt that was not deleted.
    pub from: Option<u64>,
    /// Default: the lane's newest receipt.
    pub to: Option<u64>,
}

/// A page of receipts, with the API's own text.
#[derive(Debug, Deserialize, Serialize)]
pub struct ReceiptPage {
    pub receipts: Vec<Box<RawValue>>,
    pub next_from: Option<u64>,
}

impl ReceiptPage {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        from_str(text).map_err(|_| Failure::other("the answer is not a list of receipts"))
    }

    fn rows(&self) -> Result<Vec<StoredReceipt>, Failure> {
        self.receipts.iter().map(|receipt| stored(receipt.get())).collect()
    }
}

/// A receipt of the API, with the original text of its body.
pub fn stored(text: &str) -> Result<StoredReceipt, Failure> {
    #[derive(Deserialize)]
    struct Receipt {
        seq: u64,
        receipt_hash: String,
        prev_receipt_hash: String,
        body: Box<RawValue>,
    }
    let receipt: Receipt =
        from_str(text).map_err(|_| Failure::other("the answer is no receipt"))?;
    Ok(StoredReceipt {
        seq: receipt.seq,
        receipt_hash: receipt.receipt_hash,
        prev_receipt_hash: receipt.prev_receipt_hash,
        body: receipt.body.get().to_owned(),
    })
}

/// Checks whether a receipt has the hash that it claims. The error says what is wrong.
pub fn verify_one(receipt: &StoredReceipt) -> Result<(), String> {
    let one = std::slice::from_ref(receipt);
    receipt::verify(one, receipt.seq, None).map_err(|broken| broken.problem)
}

/// A receipt for people: its content, and whether its hash matches its text.
pub fn shown(text: &str) -> Result<String, Failure> {
    let receipt = stored(text)?;
    let record: Value = from_str(text).map_err(|_| Failure::other("the answer is no receipt"))?;
    let body = record.get("body").map(|body| format!("{body:#}")).unwrap_or_default();
    let hash = match verify_one(&receipt) {
        Ok(()) => "valid: computed on this machine, and equal".to_owned(),
        Err(problem) => format!("NOT VALID: {problem}"),
    };
    let mut rows: Vec<_> = ["lane", "seq", "receipt_hash", "prev_receipt_hash", "canon_version"]
        .map(|name| field(&record, name))
        .into();
    rows.push(row("hash", hash));
    let title = one(&record, "receipt_id");
    Ok(format!("{}\n\n{}", section(&title, &rows), text_section("Body", &printable_lines(&body))))
}

/// A page of a lane's receipts.
pub fn page(lane: u16, from: u64, rows: u32) -> Request {
    Request::get(&["receipts"])
        .parameter("lane", Some(&lane.to_string()))
        .parameter("from", Some(&from.to_string()))
        .parameter("limit", Some(&rows.clamp(1, PAGE_ROWS_MAX).to_string()))
}

/// The first and last link of a lane's chain.
pub fn ends(lane: u16) -> Request {
    Request::get(&["receipts", "ends"]).parameter("lane", Some(&lane.to_string()))
}

/// What a receipt of a lane is anchored to.
pub fn anchor(lane: u16, seq: u64) -> Request {
    let fields = Fields::new().with("lane", Some(lane)).with("from", Some(seq));
    Request::post(&["receipts", "verify"]).body(fields.with("to", Some(seq)))
}

/// What the first receipt's `prev_hash` was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// It is the lane's first receipt.
    Genesis,
    /// The hash of the last deleted receipt, as the lane holds it.
    Pruned,
    /// The hash of the receipt before it, which was not verified.
    Receipt,
}

/// The result of a verification.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    pub lane: u16,
    pub verified: bool,
    /// The number of valid receipts.
    pub checked: u64,
    pub from: u64,
    /// The last receipt of the requested range.
    pub to: u64,
    pub begins: Beginning,
    /// The lane's newest receipt when the check began. Null if it has none.
    pub head: Option<ReceiptLink>,
    /// What the last verified receipt was compared with.
    pub anchored: Anchored,
    pub broken_at: Option<u64>,
    pub problem: Option<String>,
}

impl Found {
    /// One line for people.
    pub fn line(&self) -> String {
        let lane = self.lane;
        let Some(head) = &self.head else {
            return format!("lane {lane}: there are no receipts yet");
        };
        if let (Some(at), Some(problem)) = (self.broken_at, &self.problem) {
            return format!("lane {lane}: broken at receipt {at}: {problem}");
        }
        let begins = match self.begins {
            Beginning::Genesis => "the lane's first",
            Beginning::Pruned => "which follows the last deleted one",
            Beginning::Receipt => "whose predecessor was not verified",
        };
        let (from, to, checked) = (self.from, self.to, self.checked);
        let anchored = match self.anchored {
            Anchored::Checkpoint => "anchored to the lane's signed checkpoint".to_owned(),
            Anchored::Head => format!("anchored to the lane's newest, {}", head.receipt_hash),
            Anchored::Nothing => {
                format!("anchored to nothing: the lane's newest is receipt {}", head.seq)
            }
        };
        format!("lane {lane}: verified {checked} receipts, {from} ({begins}) to {to}; {anchored}")
    }
}

/// A chain under verification.
#[derive(Debug)]
pub struct Chain {
    found: Found,
    next: u64,
    /// The hash before `next`.
    previous: String,
}

impl Chain {
    /// The chain to verify. `before` returns the hash of the receipt before the first one, if the
    /// lane does not hold it.
    pub fn begin(
        verify: &VerifyReceipts,
        ends: ReceiptEnds,
        before: impl FnOnce(u64) -> Result<String, Failure>,
    ) -> Result<Self, Failure> {
        let newest = ends.head.as_ref().map_or(0, |head| head.seq);
        let pruned = ends.pruned_through.as_ref().map_or(0, |link| link.seq);
        let from = verify.from.unwrap_or(1).max(pruned + 1);
        let to = verify.to.unwrap_or(newest).min(newest);
        if from > to && newest > 0 {
            return Err(Failure::Other(format!(
                "lane {} has no receipts in this range: it has {} to {newest}",
                ends.lane,
                pruned + 1
            )));
        }
        let (begins, previous) = match ends.pruned_through {
            _ if from == 1 => (Beginning::Genesis, GENESIS.to_owned()),
            Some(link) if from == link.seq + 1 => (Beginning::Pruned, link.receipt_hash),
            _ if newest == 0 => (Beginning::Genesis, GENESIS.to_owned()),
            _ => (Beginning::Receipt, before(from - 1)?),
        };
        let found = Found {
            lane: ends.lane,
            verified: true,
            checked: 0,
            from,
            to,
            begins,
            head: ends.head,
            anchored: Anchored::Nothing,
            broken_at: None,
            problem: None,
        };
        Ok(Self { found, next: from, previous })
    }

    /// The next receipts to read: the first number and the count. `None` at the end, or after a
    /// break.
    pub fn wants(&self) -> Option<(u64, u32)> {
        let left = (self.found.to + 1).checked_sub(self.next).filter(|left| *left > 0)?;
        let rows = u32::try_from(left).unwrap_or(PAGE_ROWS_MAX).min(PAGE_ROWS_MAX);
        self.found.verified.then_some((self.next, rows))
    }

    /// Verifies receipts that were read.
    pub fn take(&mut self, page: &ReceiptPage) -> Result<(), Failure> {
        let mut rows = page.rows()?;
        rows.retain(|row| row.seq <= self.found.to);
        if let Err(Break { seq, problem }) = self.check(&rows) {
            self.found.checked += seq.saturating_sub(self.next);
            self.found.verified = false;
            self.found.broken_at = Some(seq);
            self.found.problem = Some(problem);
            return Ok(());
        }
        self.found.checked += rows.len() as u64;
        if let Some(last) = rows.pop() {
            self.next = last.seq + 1;
            if self.found.head.as_ref().is_some_and(|head| head.seq == last.seq) {
                self.found.anchored = Anchored::Head;
            }
            self.previous = last.receipt_hash;
        }
        Ok(())
    }

    fn check(&self, rows: &[StoredReceipt]) -> Result<(), Break> {
        if rows.is_empty() {
            let problem = format!("receipt {} is missing", self.next);
            return Err(Break { seq: self.next, problem });
        }
        let mut previous = self.previous.as_str();
        for (seq, row) in (self.next..).zip(rows) {
            receipt::verify(std::slice::from_ref(row), seq, Some(previous))?;
            let broken = |problem: &str| Err(Break { seq, problem: problem.to_owned() });
            let body: Value = from_str(&row.body).unwrap_or_default();
            if body.get("lane").and_then(Value::as_u64) != Some(self.found.lane.into()) {
                return broken("the body belongs to another lane");
            }
            let head = self.found.head.as_ref().filter(|head| head.seq == seq);
            if head.is_some_and(|head| head.receipt_hash != row.receipt_hash) {
                return broken(
                    "its hash is not the one that the lane holds for its newest receipt",
                );
            }
            previous = &row.receipt_hash;
        }
        Ok(())
    }

    /// The number of the last verified receipt. `None` before the first receipt, and after a break.
    pub fn last(&self) -> Option<u64> {
        (self.found.verified && self.found.checked > 0).then_some(self.found.to)
    }

    /// Takes what the worker says about the last receipt: only the worker knows the log of the lane.
    pub fn anchor(&mut self, last: Verification) {
        if let Some(problem) = last.problem {
            self.found.verified = false;
            self.found.broken_at = last.broken_at.or(Some(self.found.to));
            self.found.problem = Some(problem);
        }
        if last.anchored == Anchored::Checkpoint {
            self.found.anchored = last.anchored;
        }
    }

    pub fn found(self) -> Found {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Sealed receipts of lane 0, as the API gives them.
    fn chain(length: u64) -> Vec<Value> {
        let mut previous = GENESIS.to_owned();
        let mut receipts = Vec::new();
        for seq in 1..=length {
            receipts
                .push(sealed(&json!({"agent": "é", "lane": 0, "prev_hash": previous, "seq": seq})));
            previous = hash_of(receipts.last().unwrap());
        }
        receipts
    }

    /// The keys of `body` are sorted, and its text is canonical.
    fn sealed(body: &Value) -> Value {
        use sha2::{Digest as _, Sha256};
        let hash: String =
            Sha256::digest(body.to_string()).iter().map(|byte| format!("{byte:02x}")).collect();
        json!({"receipt_id": format!("rcpt_0_{}", body["seq"]), "lane": 0, "seq": body["seq"],
            "receipt_hash": hash, "prev_receipt_hash": body["prev_hash"],
            "canon_version": "rfc8785", "body": body})
    }

    fn hash_of(receipt: &Value) -> String {
        receipt["receipt_hash"].as_str().unwrap().to_owned()
    }

    fn link(receipts: &[Value], seq: u64) -> Option<ReceiptLink> {
        let receipt = receipts.iter().find(|receipt| receipt["seq"] == seq)?;
        Some(ReceiptLink { seq, receipt_hash: hash_of(receipt) })
    }

    /// Verifies what an API with these receipts, in pages of two, and these ends answers.
    fn verified(
        served: &[Value],
        ends: ReceiptEnds,
        verify: &VerifyReceipts,
    ) -> Result<Found, Failure> {
        let before = |seq| Ok(link(served, seq).unwrap().receipt_hash);
        let mut chain = Chain::begin(verify, ends, before)?;
        while let Some((from, rows)) = chain.wants() {
            let later = served.iter().filter(|receipt| receipt["seq"].as_u64() >= Some(from));
            let rows: Vec<_> = later.take(rows.min(2) as usize).collect();
            let page = json!({"receipts": rows, "next_from": null}).to_string();
            chain.take(&ReceiptPage::parse(&page)?)?;
        }
        Ok(chain.found())
    }

    const ALL: VerifyReceipts = VerifyReceipts { lane: None, from: None, to: None };

    #[test]
    fn a_chain_is_verified_as_far_as_it_is_asked_for() {
        let receipts = chain(5);
        let range = |from, to| VerifyReceipts { lane: None, from, to };
        for (verify, pruned, expected) in [
            (ALL, None, (5, 1, 5, Beginning::Genesis, Anchored::Head)),
            (range(Some(3), None), None, (3, 3, 5, Beginning::Receipt, Anchored::Head)),
            (range(None, Some(4)), None, (4, 1, 4, Beginning::Genesis, Anchored::Nothing)),
            (range(Some(2), Some(9)), None, (4, 2, 5, Beginning::Receipt, Anchored::Head)),
            (ALL, link(&receipts, 2), (3, 3, 5, Beginning::Pruned, Anchored::Head)),
            (
                range(Some(1), Some(3)),
                link(&receipts, 2),
                (1, 3, 3, Beginning::Pruned, Anchored::Nothing),
            ),
        ] {
            let kept = pruned.as_ref().map_or(0, |link| link.seq) as usize;
            let ends = ReceiptEnds { lane: 0, head: link(&receipts, 5), pruned_through: pruned };
            let served = if verify.from.is_some() { &receipts[..] } else { &receipts[kept..] };
            let found = verified(served, ends, &verify).unwrap();
            let Found { checked, from, to, begins, anchored, .. } = found;
            assert!(found.verified, "{verify:?}: {:?}", found.problem);
            assert_eq!((checked, from, to, begins, anchored), expected, "{verify:?}");
        }
    }

    #[test]
    fn every_tampering_is_found_where_it_is() {
        let long = chain(6);
        type Tamper = fn(&mut Vec<Value>);
        let cases: [(&str, Tamper, u64); 8] = [
            ("a changed body", |c| c[2]["body"]["agent"] = json!("eve"), 3),
            (
                "a changed body with its own hash",
                |c| {
                    c[2]["body"]["agent"] = json!("eve");
                    c[2] = sealed(&c[2]["body"].clone());
                },
                4,
            ),
            ("a dropped receipt", |c| drop(c.remove(3)), 4),
            ("a cut end", |c| c.truncate(4), 5),
            ("another hash", |c| c[1]["receipt_hash"] = json!(GENESIS), 2),
            ("another link back in the row", |c| c[1]["prev_receipt_hash"] = json!(GENESIS), 2),
            (
                "another lane's receipt",
                |c| {
                    c[0]["body"]["lane"] = json!(1);
                    c[0] = sealed(&c[0]["body"].clone());
                },
                1,
            ),
            (
                "another end, sealed anew",
                |c| {
                    c[4]["body"]["agent"] = json!("eve");
                    c[4] = sealed(&c[4]["body"].clone());
                },
                5,
            ),
        ];
        for (name, tamper, at) in cases {
            let mut served = long[..5].to_vec();
            tamper(&mut served);
            let ends = ReceiptEnds { lane: 0, head: link(&long, 5), pruned_through: None };
            let found = verified(&served, ends, &ALL).unwrap();
            let result = (found.verified, found.broken_at, found.checked, found.anchored);
            assert_eq!(
                result,
                (false, Some(at), at - 1, Anchored::Nothing),
                "{name}: {:?}",
                found.problem
            );
        }
    }

    #[test]
    fn a_line_says_what_the_last_receipt_is_anchored_to() {
        let receipts = chain(3);
        let hash = hash_of(&receipts[2]);
        for (length, to, expected) in [
            (0, None, "lane 0: there are no receipts yet".to_owned()),
            (
                3,
                None,
                format!(
                    "lane 0: verified 3 receipts, 1 (the lane's first) to 3; anchored to the lane's newest, {hash}"
                ),
            ),
            (
                3,
                Some(2),
                "lane 0: verified 2 receipts, 1 (the lane's first) to 2; anchored to \
                nothing: the lane's newest is receipt 3"
                    .to_owned(),
            ),
        ] {
            let ends = ReceiptEnds { lane: 0, head: link(&receipts, length), pruned_through: None };
            let found = verified(&receipts, ends, &VerifyReceipts { to, ..ALL }).unwrap();
            assert_eq!(found.line(), expected);
        }
        let ends = ReceiptEnds { lane: 0, head: link(&receipts, 3), pruned_through: None };
        let beyond = VerifyReceipts { from: Some(4), ..ALL };
        let refused = verified(&receipts, ends, &beyond).unwrap_err().to_string();
        assert_eq!(refused, "lane 0 has no receipts in this range: it has 1 to 3");
    }
}
