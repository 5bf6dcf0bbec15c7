//! `receipts`.

use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::StoredReceipt;
use gateward_core::sql::d1::RECEIPTS;
use serde::Deserialize;
use worker::Env;

use super::{number, read};

/// A receipt in D1 (`body`) or in a journal row (`receipt`).
#[derive(Deserialize)]
struct ReceiptRow {
    seq: u64,
    receipt_hash: String,
    prev_receipt_hash: String,
    #[serde(alias = "receipt")]
    body: String,
}

impl From<ReceiptRow> for StoredReceipt {
    fn from(row: ReceiptRow) -> Self {
        Self {
            seq: row.seq,
            receipt_hash: row.receipt_hash,
            prev_receipt_hash: row.prev_receipt_hash,
            body: row.body,
        }
    }
}

/// Receipts that are flushed, from `from` on.
pub async fn list(
    env: &Env,
    tenant: &str,
    lane: u16,
    from: u64,
    limit: u32,
) -> Result<Vec<StoredReceipt>, Problem> {
    let values = [tenant.into(), number(lane.into()), number(from), number(limit.into())];
    let rows: Vec<ReceiptRow> = read(env, RECEIPTS, &values).await?;
    Ok(rows.into_iter().map(StoredReceipt::from).collect())
}

/// Receipts of a JSON array of journal rows.
pub fn from_journal(rows: &str) -> Result<Vec<StoredReceipt>, Problem> {
    let rows: Vec<ReceiptRow> = serde_json::from_str(rows).map_err(|_| {
        Problem::new(ProblemCode::LaneUnavailable, "the lane's journal cannot be read")
    })?;
    Ok(rows.into_iter().map(StoredReceipt::from).collect())
}
