//! The table `receipts`, and receipts in journal rows.

use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::{ReceiptKind, StoredReceipt};
use gateward_core::sql::d1::{OUTCOME, RECEIPTS};
use serde::Deserialize;

use super::{number, read};
use crate::app::App;

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

/// Flushed receipts from `from` on.
pub async fn list(
    app: &App,
    tenant: &str,
    lane: u16,
    from: u64,
    limit: u32,
) -> Result<Vec<StoredReceipt>, Problem> {
    let values = [tenant.into(), number(lane.into()), number(from), number(limit.into())];
    let rows: Vec<ReceiptRow> = read(app, RECEIPTS, &values).await?;
    Ok(rows.into_iter().map(StoredReceipt::from).collect())
}

/// The body of the flushed receipt that records the outcome of a decision's call.
pub async fn outcome(
    app: &App,
    tenant: &str,
    decision_id: &str,
) -> Result<Option<String>, Problem> {
    #[derive(Deserialize)]
    struct OutcomeRow {
        body: String,
    }
    let rows: Vec<OutcomeRow> = read(app, OUTCOME, &[tenant.into(), decision_id.into()]).await?;
    Ok(rows.into_iter().next().map(|row| row.body))
}

/// The same, searched in a JSON array of journal rows.
pub fn outcome_in_journal(rows: &str, decision_id: &str) -> Result<Option<String>, Problem> {
    #[derive(Deserialize)]
    struct JournalRow {
        #[serde(default)]
        kind: Option<String>,
        decision_id: String,
        receipt: String,
    }
    let rows: Vec<JournalRow> = serde_json::from_str(rows).map_err(|_| unreadable_journal())?;
    let outcome = |row: &JournalRow| {
        row.kind.as_deref() == Some(ReceiptKind::Outcome.as_str()) && row.decision_id == decision_id
    };
    Ok(rows.into_iter().find(outcome).map(|row| row.receipt))
}

fn unreadable_journal() -> Problem {
    Problem::new(ProblemCode::LaneUnavailable, "the lane's journal cannot be read; try again")
}

/// The receipts in a JSON array of journal rows.
pub fn from_journal(rows: &str) -> Result<Vec<StoredReceipt>, Problem> {
    let rows: Vec<ReceiptRow> = serde_json::from_str(rows).map_err(|_| unreadable_journal())?;
    Ok(rows.into_iter().map(StoredReceipt::from).collect())
}
