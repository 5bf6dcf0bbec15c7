//! Measures whether a lane becomes slower as its log grows to a million receipts: the time of the calls, of the flushes,
//! of comparing and publishing, and of a start, and the size of the lane's storage:
//! `cargo run --release -p gateward-core --example lane_growth`.

#![allow(clippy::unwrap_used, reason = "it fails by panicking")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use gateward_core::lane::{LogKeys, LogName, Standing, TileCursor};
use serde_json::json;
use support::{Gate, command, read_call};

const RECEIPTS: u32 = 1_000_000;
const MEASURED_EVERY: u32 = 100_000;
/// Receipts of a flush.
const FLUSH: u32 = 500;
/// Between two calls. A lane keeps the flushed rows of the last hour, which are 36,000 then.
const CALL_MS: u64 = 100;

/// How long something took since the last line was printed.
fn timed<T>(sum: &mut Duration, run: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = run();
    *sum += begun.elapsed();
    result
}

/// What the lane does for its log at the end of a flush. Returns the note that D1 then has.
fn publish(gate: &Gate, (keys, log): (&LogKeys, &LogName), published: Option<&str>) -> String {
    gate.on_lane(|lane, storage| {
        assert_eq!(lane.compare_published(storage, published, "")?, Standing::Same);
        let known = lane.published().map_or(0, |tree| tree.size);
        let tree = lane.unpublished(storage)?.unwrap().tree;
        let mut cursor = TileCursor::between(known, tree.size);
        while lane.next_tiles(storage, &mut cursor)?.is_some() {}
        let note = keys.sign(log, tree);
        lane.note_published(storage, Some(&note))?;
        Ok(note)
    })
    .unwrap()
}

fn main() {
    let mut gate = Gate::new();
    let bounds = json!({"status": "active", "epoch": 1, "rows_per_day": u32::MAX, "bytes_per_day": u32::MAX});
    gate.records.tenant = serde_json::from_value(bounds).unwrap();
    let call = command(&read_call());
    let keys = LogKeys::read(|name| match name {
        "LOG_KEY" => Some("01".repeat(32)),
        "LOG_ORIGIN" => Some("gateward.example".to_owned()),
        _ => None,
    });
    let keys = keys.unwrap().unwrap();
    let log = LogName { tenant: call.tenant.clone(), lane: 0 };
    let mut published: Option<String> = None;
    let [mut calls, mut flushes, mut publishing] = [Duration::ZERO; 3];
    for receipt in 1..=RECEIPTS {
        gate.now_ms.set(gate.now_ms.get() + CALL_MS);
        timed(&mut calls, || gate.try_call(&call)).unwrap();
        if receipt % FLUSH == 0 {
            timed(&mut flushes, || gate.flush_all());
            let note =
                timed(&mut publishing, || publish(&gate, (&keys, &log), published.as_deref()));
            published = Some(note);
            // Only the lane is measured. It asks for the newest receipt.
            let empty = "DELETE FROM decisions; DELETE FROM audit_events; \
                 DELETE FROM receipts WHERE seq < (SELECT max(seq) FROM receipts);";
            gate.database.execute_batch(empty).unwrap();
        }
        if receipt % MEASURED_EVERY == 0 {
            let mut start = Duration::ZERO;
            gate.evict();
            timed(&mut start, || gate.try_call(&call)).unwrap();
            let pragma = |name: &str| -> i64 {
                let storage = &gate.storage.connection;
                storage.pragma_query_value(None, name, |row| row.get(0)).unwrap()
            };
            let bytes = pragma("page_size") * (pragma("page_count") - pragma("freelist_count"));
            println!(
                "{receipt} receipts: call {:.1} us, flush of {FLUSH} {:.2} ms, publishing {:.2} ms, start {:.2} ms, storage {} KB",
                calls.as_secs_f64() * 1e6 / f64::from(MEASURED_EVERY),
                flushes.as_secs_f64() * 1e3 / f64::from(MEASURED_EVERY / FLUSH),
                publishing.as_secs_f64() * 1e3 / f64::from(MEASURED_EVERY / FLUSH),
                start.as_secs_f64() * 1e3,
                bytes / 1_000,
            );
            [calls, flushes, publishing] = [Duration::ZERO; 3];
        }
    }
}
