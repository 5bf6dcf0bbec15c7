//! Receipts in answers, and the result of their verification.

use gateward_core::receipt::Body;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Receipts of a page if the caller sets no limit.
pub const DEFAULT_RECEIPT_PAGE: u32 = 100;
/// The largest page of receipts: 500 are some 500 KB.
pub const MAX_RECEIPT_PAGE: u32 = 500;

/// A receipt as it is stored.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReceiptRecord)]
pub struct ReceiptView {
    pub receipt_id: String,
    pub lane: u16,
    pub seq: u64,
    pub receipt_hash: String,
    pub prev_receipt_hash: String,
    pub canon_version: &'static str,
    /// The hashed text, byte for byte.
    #[schema(value_type = Body)]
    pub body: Box<RawValue>,
}

/// Receipts of one lane, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReceiptPage {
    pub receipts: Vec<ReceiptView>,
    /// The sequence number at which the next page begins; null on the last.
    pub next_from: Option<u64>,
}

/// The first and last link of a lane's chain, from the lane itself. A verification against it
/// notices missing receipts at the end.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEnds {
    pub lane: u16,
    /// The newest receipt; null if there is none.
    pub head: Option<ReceiptLink>,
    /// The last receipt that was deleted by age; null if none was. The next receipt links back to
    /// its hash.
    pub pruned_through: Option<ReceiptLink>,
}

/// A receipt's place in its lane's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptLink {
    pub seq: u64,
    pub receipt_hash: String,
}

impl ReceiptLink {
    /// 0 means: no receipt.
    #[must_use]
    pub fn new((seq, receipt_hash): (u64, String)) -> Option<Self> {
        (seq > 0).then_some(Self { seq, receipt_hash })
    }
}

/// Which receipts of one lane to verify. One request checks at most 10,000 and returns where to
/// continue.
#[derive(Debug, Deserialize, ToSchema)]
pub struct VerifyRequest {
    pub lane: u16,
    /// The first one's sequence number.
    #[schema(minimum = 1)]
    pub from: u64,
    /// The last one's sequence number; the lane's newest if left out.
    pub to: Option<u64>,
}

/// The result of a verification.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Verification {
    pub verified: bool,
    /// Number of checked receipts.
    pub checked: u64,
    /// The first checked one: pruned ones cannot be checked.
    pub from: u64,
    pub to: u64,
    /// Whether the whole requested range was checked.
    pub complete: bool,
    /// Where to continue if one request was not enough.
    pub next_from: Option<u64>,
    /// What the first one's link was compared with.
    pub begins: Beginning,
    /// What the last one was compared with.
    pub anchored: Anchored,
    /// Receipts up to this one were pruned; null if none was.
    pub pruned_through: Option<u64>,
    /// Sequence number of the first broken link.
    pub broken_at: Option<u64>,
    pub problem: Option<String>,
}

/// What the first receipt's link was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// It is the lane's first receipt.
    Genesis,
    /// The hash of the last pruned receipt, which the lane holds.
    Pruned,
    /// The hash of the receipt before it, which is not part of this check.
    Receipt,
    /// Nothing: the receipt before it is missing.
    Nothing,
}

/// What the last receipt of a range was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Anchored {
    /// It is an entry of the lane's log, in the tree of a checkpoint whose signature holds. The hashes link the others to
    /// it.
    Checkpoint,
    /// It is the lane's newest receipt and has the hash that the lane stores.
    Head,
    /// Nothing: the range ends before the lane's newest receipt. Somebody who can write to the
    /// database could have rewritten it.
    Nothing,
}
