//! Step 13: writes journal rows to D1, many rows per statement, all statements in one transaction.

use gateward_core::lane::FlushBatch;
use gateward_core::sql::d1::{
    ADD_SERIES, COUNT_ROWS, COUNT_TOTALS, EPOCH, FLUSH_COUNTS, FLUSH_ROWS, FLUSHED_THROUGH,
    LOG_CHECKPOINT, PING, STORED_HASHES,
};
use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::{Env, Result};

use super::{BINDING, number, query, rows, statement};
use crate::io;
use crate::limits::D1_BACKGROUND_MS;
use crate::wait::settled;

/// The contents of D1 after the batch.
pub struct Flushed {
    /// Sequence number and hash of each receipt of [`FlushBatch::expected`] that D1 has.
    pub stored: Vec<(u64, String)>,
    /// The tenant's epoch. 0 if the tenant does not exist.
    pub epoch: u64,
    /// The note of the lane's checkpoint; `None` if it has none.
    pub note: Option<String>,
}

#[derive(Deserialize)]
struct HashRow {
    seq: u64,
    receipt_hash: String,
}

#[derive(Deserialize)]
struct EpochRow {
    epoch: u64,
}

#[derive(Deserialize)]
struct NoteRow {
    note: String,
}

/// Bytes of the whole database as D1 reports them; 0 if it does not report them.
pub async fn size_bytes(env: &Env) -> Result<u64> {
    let size = settled(io::size(env, BINDING, PING, D1_BACKGROUND_MS)).await?;
    Ok(size.as_f64().unwrap_or_default() as u64)
}

/// Writes the batch, and reads back what D1 holds. Writing a batch again is a no-op.
pub async fn flush(env: &Env, tenant: &str, lane: u16, batch: &FlushBatch) -> Result<Flushed> {
    let (tenant, lane) = (JsValue::from_str(tenant), number(lane.into()));
    let text = |text: &str| JsValue::from_str(text);
    let before = batch.before.map_or(JsValue::NULL, number);
    let mut statements = Vec::new();
    // Before the rest: they count only what D1 has not seen.
    let metrics = &batch.metrics;
    if batch.has_new_series {
        let named = metrics.named_series();
        statements.push(statement(ADD_SERIES, &[tenant.clone(), text(&named)]));
    }
    // With each report that has totals: the next one adds to those of the report that D1 has.
    if !batch.report.totals.is_empty() {
        let totals = [tenant.clone(), lane.clone(), text(&batch.report.totals.encode())];
        statements.push(statement(COUNT_TOTALS, &totals));
    }
    if let Some((first, _)) = batch.range {
        let counted = [
            tenant.clone(),
            lane.clone(),
            text(&metrics.series),
            text(&metrics.counts),
            text(&metrics.rows),
            number(first),
            before.clone(),
        ];
        statements.push(statement(COUNT_ROWS, &counted));
        let rows = [tenant.clone(), lane.clone(), text(&batch.rows), before.clone()];
        statements.push(statement(FLUSH_ROWS, &rows));
    }
    let (through, at) = (batch.through.map_or(JsValue::NULL, number), batch.report.at_ms);
    let report = text(&batch.report.encode());
    let through = [tenant.clone(), lane.clone(), through, number(at), report, before];
    statements.push(statement(FLUSHED_THROUGH, &through));
    if !batch.count_keys.is_empty() {
        let counts = [tenant.clone(), lane.clone(), text(&batch.counts)];
        statements.push(statement(FLUSH_COUNTS, &counts));
    }
    let (first, last) = batch.expected();
    statements.push(statement(LOG_CHECKPOINT, &[tenant.clone(), lane.clone()]));
    let range = [tenant.clone(), lane, number(first), number(last)];
    statements.push(statement(STORED_HASHES, &range));
    statements.push(statement(EPOCH, &[tenant]));

    let answered = query(env, &statements, D1_BACKGROUND_MS).await?;
    let mut last = answered.iter().rev().map(Box::as_ref);
    let epochs: Vec<EpochRow> = rows(last.next())?;
    let hashes: Vec<HashRow> = rows(last.next())?;
    let notes: Vec<NoteRow> = rows(last.next())?;
    Ok(Flushed {
        stored: hashes.into_iter().map(|row| (row.seq, row.receipt_hash)).collect(),
        epoch: epochs.first().map_or(0, |row| row.epoch),
        note: notes.into_iter().next().map(|row| row.note),
    })
}
