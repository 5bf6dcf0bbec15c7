//! A journal that grows while D1 is out: what its rows take, and what a start on it reads.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use gateward_core::gate::config::JOURNAL_ROW_BYTES;
use gateward_core::receipt::{self, GENESIS};
use serde_json::{Value, json};
use support::{Gate, command, read_call, tool, with};

/// Rows after which the lane takes a checkpoint of itself (`lane/checkpoint.rs`).
const CHECKPOINT_ROWS: i64 = 1_000;

fn call_of(agent: &str) -> Value {
    with(read_call(), json!({"agent": {"id": agent}}))
}

/// A number that a query on the lane's storage gives.
fn stored(gate: &Gate, query: &str) -> i64 {
    gate.storage.connection.query_row(query, [], |row| row.get(0)).unwrap()
}

/// Journal rows that a start would read.
fn rows_of_a_start(gate: &Gate) -> i64 {
    let after = |mark: &str| {
        stored(gate, &format!("SELECT count(*) FROM journal WHERE seq > coalesce({mark}, 0)"))
    };
    let checkpoint = "(SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'checkpoint')";
    // day:begins_after:bytes:through
    let day = "(SELECT CAST(json_extract('[' || replace(value, ':', ',') || ']', '$[3]') AS INTEGER) \
         FROM meta WHERE name = 'day')";
    after(checkpoint).max(after(day))
}

/// Agents that each call a share of `calls` times, in turn.
fn calls_of_agents(gate: &mut Gate, calls: usize, agents: usize) {
    for at in 0..calls {
        let agent = format!("agent-{}", at % agents);
        gate.records.credential.as_mut().unwrap().agent = Some(agent.clone());
        assert_eq!(gate.call(&call_of(&agent)).0, 200);
    }
}

#[test]
fn a_start_reads_a_bounded_number_of_rows_however_long_the_journal_is() {
    let mut gate = Gate::new();
    for rows in [10, 980, 20, 1_500, 700] {
        calls_of_agents(&mut gate, rows, 7);
        assert!(rows_of_a_start(&gate) <= CHECKPOINT_ROWS);
        gate.evict();
    }
    assert_eq!(gate.on_lane(|lane, _| Ok(lane.journal_rows())), Ok(3_210));
    assert_eq!(gate.receipts().len(), 3_210);
    gate.config.flush_batch_rows = 300;
    gate.flush_all();
    assert_eq!(gate.count("SELECT count(*) FROM receipts"), 3_210);
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(GENESIS)), Ok(()));
    assert_eq!(stored(&gate, "SELECT count(*) FROM agents"), 7);
}

#[test]
fn an_agent_whose_rows_are_before_the_checkpoint_keeps_its_state_through_eviction_and_flush() {
    for between in [Gate::evict as fn(&Gate), |gate| drop(gate.flush(None)), Gate::flush_all] {
        let mut gate = Gate::new();
        gate.records.agent.as_mut().unwrap().quota_per_day = Some(200);
        gate.quarantine();
        calls_of_agents(&mut gate, 2_100, 20);
        between(&gate);
        gate.evict();
        gate.records.credential.as_mut().unwrap().agent = Some("coder".to_owned());
        assert_eq!(gate.call(&read_call()).1["reason_code"], "agent_quarantined");
        // 105 calls of each are used up.
        calls_of_agents(&mut gate, 95 * 20, 20);
        assert_eq!(gate.call(&call_of("agent-19")).1["reason_code"], "quota_exhausted");
    }
}

#[test]
fn a_row_that_is_missing_is_noticed_at_the_start_or_before_the_flush_that_would_skip_it() {
    for (missing, starts) in [("seq = 3300", false), ("seq = 500", true), ("seq > 2000", false)] {
        let mut gate = Gate::new();
        gate.on_lane(|lane, storage| lane.adopt(storage, "demo", 0)).unwrap();
        calls_of_agents(&mut gate, 3_400, 3);
        gate.evict();
        let delete = format!("DELETE FROM journal WHERE {missing}");
        gate.storage.connection.execute_batch(&delete).unwrap();
        assert_eq!(gate.try_call(&command(&call_of("agent-2"))).is_ok(), starts, "{missing}");
        gate.config.flush_batch_rows = 200;
        while gate.flush(None).is_ok() {}
        assert!(gate.flush(None).unwrap_err().contains("rows are missing"), "{missing}");
        let through = gate.count("SELECT coalesce(max(seq), 0) FROM receipts");
        assert_eq!(through, if starts { 400 } else { 0 }, "{missing}");
    }
}

/// A lane's storage of an older version: no checkpoint, and nothing that one would have copied.
#[test]
fn a_journal_of_a_version_without_checkpoints_is_read_whole_once() {
    let mut gate = Gate::new();
    calls_of_agents(&mut gate, 1_300, 3);
    gate.evict();
    gate.storage
        .connection
        .execute_batch("DELETE FROM meta WHERE name = 'checkpoint'; DELETE FROM agents")
        .unwrap();
    calls_of_agents(&mut gate, 1, 1);
    assert_eq!((rows_of_a_start(&gate), stored(&gate, "SELECT count(*) FROM agents")), (0, 3));
}

/// Bytes that the database takes, without free pages.
fn database_bytes(gate: &Gate) -> u64 {
    let pages = "SELECT (SELECT * FROM pragma_page_count) - (SELECT * FROM pragma_freelist_count)";
    stored(gate, pages) as u64 * stored(gate, "SELECT * FROM pragma_page_size") as u64
}

#[test]
fn an_ordinary_row_takes_as_much_storage_as_is_reckoned_with() {
    let mut gate = Gate::new();
    let before = database_bytes(&gate);
    for at in 0..2_000 {
        let id = format!("01a1fe15-df15-7000-8000-{at:012}");
        let bound = json!({"request_id": id, "nonce": id, "timestamp": "2026-11-18T11:06:40Z"});
        assert_eq!(gate.call(&with(read_call(), bound)).0, 200);
    }
    let bytes = (database_bytes(&gate) - before) / 2_000;
    println!("an ordinary row takes {bytes} bytes");
    assert!((JOURNAL_ROW_BYTES * 9 / 10..=JOURNAL_ROW_BYTES).contains(&bytes), "{bytes}");
    // The row with the longest texts that a call brings, each character of which takes the most.
    gate.records.tool = tool(true, false);
    let long = |bytes: usize| "\u{1}".repeat(bytes);
    let largest = json!({
        "tool_call": {"resource": long(2_048), "mutates_state": true},
        "user": {"id": long(256), "role": long(256)}, "trace": {"run_id": long(256), "trace_id": long(256)},
        "context": {"source_trust": "semi_trusted_customer"},
        "request_id": "r".repeat(128), "nonce": "n".repeat(128), "timestamp": "2026-11-18T11:06:40Z",
    });
    let before = database_bytes(&gate);
    let (_, body) = gate.call(&with(read_call(), largest));
    assert_eq!(body["decision"], "require_approval", "{body}");
    println!("the largest takes {} bytes", database_bytes(&gate) - before);
}
