//! Measures how long a lane takes to start on a full journal, and what its checkpoints cost. It writes
//! files of 4 GB to the temporary directory: `cargo run --release -p gateward-core --example lane_start`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it fails by panicking")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use gateward_core::gate::config::OUTAGE_ROWS;
use gateward_core::lane::Lane;
use rusqlite::Connection;
use serde_json::json;
use support::{Gate, command, read_call, with};

/// Rows after which the lane takes a checkpoint of itself (`lane/checkpoint.rs`).
const CHECKPOINT_ROWS: u64 = 1_000;

fn main() {
    for agents in [100, 20_000] {
        let path = std::env::temp_dir().join(format!("gateward-journal-{agents}.sqlite"));
        drop(std::fs::remove_file(&path));
        let mut gate = Gate::new();
        let bounds = json!({"status": "active", "epoch": 1, "rows_per_day": u32::MAX, "bytes_per_day": u32::MAX});
        gate.records.tenant = serde_json::from_value(bounds).unwrap();
        (gate.config.journal_soft_rows, gate.config.journal_hard_rows) = (u64::MAX, u64::MAX);
        let open = || Connection::open(&path).unwrap();
        gate.storage.connection = open();
        let begin = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF";
        gate.storage.connection.execute_batch(begin).unwrap();
        gate.on_lane(|lane, storage| lane.adopt(storage, "demo", 0)).unwrap();
        gate.call(&read_call());
        gate.evict();
        let checkpoint = OUTAGE_ROWS - CHECKPOINT_ROWS + 1;
        let fill = format!(
            "WITH RECURSIVE n (seq) AS \
               (SELECT 2 UNION ALL SELECT seq + 1 FROM n WHERE seq < {OUTAGE_ROWS}) \
             INSERT INTO journal SELECT n.seq, at_ms, receipt_hash, 'agent-' || (n.seq % {agents}), \
               state, NULL, fingerprint, NULL, row, NULL FROM n, journal WHERE journal.seq = 1; \
             INSERT INTO agents SELECT DISTINCT agent, state FROM journal \
               WHERE seq BETWEEN 2 AND 200000; \
             INSERT INTO meta VALUES ('checkpoint', '{checkpoint}:0'); \
             UPDATE meta SET value = replace(value, ':0:0:0', ':0:0:{checkpoint}') WHERE name = 'day'; \
             PRAGMA wal_checkpoint(TRUNCATE)",
        );
        gate.storage.connection.execute_batch(&fill).unwrap();
        gate.storage.connection = open();
        for _ in 0..3 {
            let begun = Instant::now();
            let mut lane = Lane::start(&gate.storage).unwrap();
            let started = begun.elapsed();
            assert_eq!(lane.journal_rows(), OUTAGE_ROWS);
            let begun = Instant::now();
            lane.flush_batch(&gate.storage, &gate.config, gate.now_ms.get()).unwrap();
            println!("{agents} agents: start {started:?}, a batch to flush {:?}", begun.elapsed());
        }
        // Each thousandth takes a checkpoint.
        let mut times = Vec::new();
        for at in 0..10_000 {
            let agent = format!("agent-{}", at % agents);
            gate.credential_mut().agent = Some(agent.clone());
            let command = command(&with(read_call(), json!({"agent": {"id": agent}})));
            let begun = Instant::now();
            let reply = gate.try_call(&command).unwrap();
            times.push(begun.elapsed());
            assert!(reply.body.contains("policy_allow"), "{}", reply.body);
        }
        let all: Duration = times.iter().sum();
        times.sort();
        println!(
            "{agents} agents: a call takes {:?}, with a checkpoint {:?}",
            times[5_000], times[9_994]
        );
        println!(
            "10,000 calls take {all:?}; without checkpoints {:?}",
            times[..9_989].iter().sum::<Duration>()
        );
        std::fs::remove_file(&path).unwrap();
    }
}
