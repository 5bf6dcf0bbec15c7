//! Receipts as they are read, and what a check of them found.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::receipt::Body;

/// Receipts of a page, unless the caller asks for fewer or more.
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
    /// What was hashed, byte for byte.
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

/// Where the receipts of a lane begin and end, as the lane itself holds it: what is verified against it
/// cannot have lost its end.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReceiptEnds {
    pub lane: u16,
    /// The newest receipt; null while there is none.
    pub head: Option<ReceiptLink>,
    /// The last one that was deleted by the tenant's retention; null when none was. The receipt after
    /// it links back to its hash.
    pub pruned_through: Option<ReceiptLink>,
}

/// A receipt's place in its lane's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptLink {
    pub seq: u64,
    pub receipt_hash: String,
}

impl ReceiptLink {
    /// The number 0 is that of no receipt.
    #[must_use]
    pub fn new((seq, receipt_hash): (u64, String)) -> Option<Self> {
        (seq > 0).then_some(Self { seq, receipt_hash })
    }
}

/// Which receipts of one lane to verify. One request looks at 10,000 at most, and says where to go on.
#[derive(Debug, Deserialize, ToSchema)]
pub struct VerifyRequest {
    pub lane: u16,
    /// The first one's sequence number.
    #[schema(minimum = 1)]
    pub from: u64,
    /// The last one's; the lane's newest when left out.
    pub to: Option<u64>,
}

/// What a check of receipts found.
#[derive(Debug, Serialize, ToSchema)]
pub struct Verification {
    pub verified: bool,
    /// Receipts that were looked at.
    pub checked: u64,
    /// The first one that was looked at: pruned ones cannot be.
    pub from: u64,
    pub to: u64,
    /// Whether all that was asked for was looked at.
    pub complete: bool,
    /// Where to go on when one request was not enough.
    pub next_from: Option<u64>,
    /// To what the first one's link back was compared.
    pub begins: Beginning,
    /// What vouches for the last one.
    pub anchored: Anchored,
    /// Receipts up to this one were pruned; null when none was.
    pub pruned_through: Option<u64>,
    /// Sequence number of the first broken link.
    pub broken_at: Option<u64>,
    pub problem: Option<String>,
}

/// To what the link back from the first receipt of a range was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// It is the lane's first receipt.
    Genesis,
    /// The hash of the last pruned receipt, which the lane holds.
    Pruned,
    /// The hash of the receipt before it, which is not a part of this check.
    Receipt,
    /// Nothing: the receipt before it is missing.
    Nothing,
}

/// What vouches for the last receipt of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Anchored {
    /// It is the lane's newest, and has the hash that the lane itself holds.
    Head,
    /// Nothing: the range ends before the lane's newest receipt, so whoever can write to the database
    /// could have sealed it anew.
    Nothing,
}
