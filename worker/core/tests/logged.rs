//! The lane's Merkle tree over its receipts: the tree after random histories, and what the lane does if D1 has another
//! tree.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::support::{self, Fault, Gate, read_call};
use gateward_core::bounds::HEAD_LANE;
use gateward_core::gate::head_log::LaneCheckpoint;
use gateward_core::lane::{
    Lane, LogKeys, LogName, MAX_PUBLISHED_LEAVES, Standing, StorageError, TileCursor, TreeHead,
    decode_hashes, encode_hashes,
};
use gateward_core::receipt::ChainHead;
use gateward_core::sql::d1;
use gateward_core::tlog::{EMPTY_ROOT, Edge, Hash, TILE_WIDTH, leaf_hash, node_hash};
use proptest::prelude::*;
use rusqlite::params;
use serde_json::{Value, json};

const ORIGIN: &str = "gateward.example/v1/log/acme.lane-0";

fn note(tree: TreeHead) -> String {
    note_of("gateward.example", "acme.lane-0", tree)
}

/// A note of a log of some deployment.
fn note_of(host: &str, log: &str, tree: TreeHead) -> String {
    let var = |name: &str| match name {
        "LOG_KEY" => Some("01".repeat(32)),
        "LOG_ORIGIN" => Some(host.to_owned()),
        _ => None,
    };
    LogKeys::read(var).unwrap().unwrap().sign(&LogName::parse(log).unwrap(), tree)
}

/// The trees of all sizes over these receipts, by size.
fn heads(gate: &Gate) -> Vec<TreeHead> {
    let mut edge = Edge::default();
    let mut heads = vec![TreeHead { size: 0, root: edge.root() }];
    for receipt in gate.receipts() {
        edge.append(leaf_hash(receipt.body.as_bytes()), &mut |_, _, _| {});
        heads.push(TreeHead { size: edge.size(), root: edge.root() });
    }
    heads
}

fn tree(gate: &Gate) -> TreeHead {
    let unpublished = gate.on_lane(|lane, storage| lane.unpublished(storage)).unwrap();
    unpublished.unwrap().tree
}

fn compare(gate: &Gate, note: Option<&str>) -> Standing {
    gate.on_lane(|lane, storage| lane.compare_published(storage, note, ORIGIN)).unwrap()
}

fn publish(gate: &Gate, tree: TreeHead) {
    gate.on_lane(|lane, storage| lane.note_published(storage, Some(&note(tree)))).unwrap();
}

/// Makes this many calls, and flushes all of them to D1.
fn decided(gate: &Gate, calls: usize) {
    for _ in 0..calls {
        // The rate of the agent refills.
        gate.now_ms.set(gate.now_ms.get() + 1_000);
        assert_eq!(gate.call(&read_call()).0, 200);
    }
    gate.flush_all();
}

/// Faults of one step: which write of the lane fails, and which of D1; and whether the write succeeds and is reported
/// as failed.
type Faults = (Option<(u32, bool)>, Option<bool>);

/// An event of a history.
#[derive(Debug, Clone)]
enum Event {
    Call,
    Flush(Faults),
    Publish(Faults),
    /// D1 is restored to its state after an earlier event.
    RestoreD1(prop::sample::Index),
    /// Somebody writes a checkpoint into D1 that is not the lane's.
    Forge(Forgery),
    Restart,
}

#[derive(Debug, Clone, Copy)]
enum Forgery {
    Root,
    Size,
    Origin,
    Garbage,
}

fn event() -> impl Strategy<Value = Event> {
    let faults = || {
        let lane = proptest::option::weighted(0.3, (0_u32..12, any::<bool>()));
        (lane, proptest::option::weighted(0.3, any::<bool>()))
    };
    let forgeries = [Forgery::Root, Forgery::Size, Forgery::Origin, Forgery::Garbage];
    prop_oneof![
        12 => Just(Event::Call),
        6 => faults().prop_map(Event::Flush),
        6 => faults().prop_map(Event::Publish),
        2 => any::<prop::sample::Index>().prop_map(Event::RestoreD1),
        1 => prop::sample::select(forgeries.to_vec()).prop_map(Event::Forge),
        2 => Just(Event::Restart),
    ]
}

/// What the lane's object holds beside the lane (`worker/edge/src/lane/object/publish.rs`), and the lane's checkpoint in D1.
struct Shell {
    gate: Gate,
    stored: Option<String>,
    /// The state of D1 after each event: the checkpoint, and the newest receipt.
    states: Vec<(Option<String>, i64)>,
    compared: Option<Option<String>>,
    /// All trees that the lane signed, whether or not D1 got them.
    signed: Vec<TreeHead>,
}

/// The tables of D1 that are restored with the checkpoint.
const TABLES: [&str; 2] = ["receipts", "decisions"];

fn fault(is_lost: bool) -> Fault {
    if is_lost { Fault::Lost } else { Fault::Failed }
}

impl Shell {
    fn new() -> Self {
        let gate = Gate::new();
        for table in TABLES {
            let was = format!("CREATE TEMP TABLE was_{table} AS SELECT * FROM {table} WHERE false");
            gate.database.execute(&was, []).unwrap();
            let key = format!("CREATE UNIQUE INDEX temp.was_{table}_by_seq ON was_{table} (seq)");
            gate.database.execute(&key, []).unwrap();
        }
        let states = vec![(None, 0)];
        Self { gate, stored: None, states, compared: None, signed: Vec::new() }
    }

    fn is_own(&self) -> bool {
        self.stored
            .as_ref()
            .is_none_or(|stored| self.signed.iter().any(|tree| note(*tree) == *stored))
    }

    fn look(&mut self) -> Result<(), StorageError> {
        let stored = self.stored.as_deref();
        let standing =
            self.gate.on_lane(|lane, storage| lane.compare_published(storage, stored, ORIGIN))?;
        self.compared = (standing == Standing::Same).then(|| self.stored.clone());
        match standing {
            Standing::Same => {}
            Standing::Other { .. } => {
                assert!(!self.is_own(), "its own checkpoint stopped the lane: {stored:?}");
                assert!(self.gate.try_call(&support::command(&read_call())).is_err());
            }
            Standing::Restored => {
                let through = self.gate.on_lane(|lane, _| Ok(lane.flushed_through()))?;
                self.gate.write_again(through)?;
                self.gate.on_lane(|lane, storage| lane.note_published(storage, stored))?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, of_d1: Option<bool>) -> Result<(), StorageError> {
        match self.gate.flush(of_d1.map(fault)) {
            Ok(true) => self.look(),
            _ => Ok(()),
        }
    }

    fn publish(&mut self, of_d1: Option<bool>) -> Result<(), StorageError> {
        if self.compared.is_none() {
            self.look()?;
        }
        let Some(read) = self.compared.clone() else { return Ok(()) };
        let unpublished = self.gate.on_lane(|lane, storage| lane.unpublished(storage))?;
        let Some(unpublished) = unpublished else { return Ok(()) };
        let last = unpublished.last.map_or(0, |last| last as i64);
        let has_last = format!("SELECT count(*) FROM receipts WHERE seq = {last}");
        if last > 0 && self.gate.count(&has_last) == 0 {
            return self.gate.on_lane(|lane, _| {
                lane.ask_d1();
                Ok(())
            });
        }
        self.compared = None;
        self.signed.push(unpublished.tree);
        let note = note(unpublished.tree);
        // As the statement in D1 does.
        if of_d1 == Some(false) || self.stored != read {
            return Ok(());
        }
        assert!(self.is_own(), "it wrote over {:?}", self.stored);
        let in_d1 = self.gate.count("SELECT count(*) FROM receipts") as u64;
        assert!(in_d1 >= unpublished.tree.size, "it published what D1 lacks");
        self.stored = Some(note.clone());
        if of_d1 == Some(true) {
            return Ok(());
        }
        self.gate.on_lane(|lane, storage| lane.note_published(storage, Some(&note)))?;
        self.compared = Some(Some(note));
        Ok(())
    }

    fn restore(&mut self, (stored, through): (Option<String>, i64)) {
        self.stored = stored;
        for table in TABLES {
            let delete = format!("DELETE FROM {table} WHERE seq > ?1");
            self.gate.database.execute(&delete, [through]).unwrap();
            let insert =
                format!("INSERT OR IGNORE INTO {table} SELECT * FROM was_{table} WHERE seq <= ?1");
            self.gate.database.execute(&insert, [through]).unwrap();
        }
    }

    /// Keeps the present state of D1, so that it can be restored.
    fn keep(&mut self) {
        for table in TABLES {
            let insert = format!("INSERT OR IGNORE INTO was_{table} SELECT * FROM {table}");
            self.gate.database.execute(&insert, []).unwrap();
        }
        let through = self.gate.count("SELECT coalesce(max(seq), 0) FROM receipts");
        assert_eq!(self.gate.count("SELECT count(*) FROM receipts"), through, "there is a gap");
        self.states.push((self.stored.clone(), through));
    }

    fn forge(&mut self, forgery: Forgery) {
        let known = self.stored.as_deref().and_then(TreeHead::of_note);
        let TreeHead { size, root } = known.unwrap_or(TreeHead { size: 0, root: EMPTY_ROOT });
        self.stored = Some(match forgery {
            Forgery::Root => note(TreeHead { size: size + 1, root: [7; 32] }),
            Forgery::Size => note(TreeHead { size: size + 100_000, root }),
            Forgery::Origin => note_of("other.example", "acme.lane-0", TreeHead { size, root }),
            Forgery::Garbage => "garbage".to_owned(),
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn there_is_one_history_whatever_fails_and_whatever_becomes_of_d1(history in proptest::collection::vec(event(), 1..60)) {
        let mut shell = Shell::new();
        for event in history {
            let now_ms = &shell.gate.now_ms;
            now_ms.set(now_ms.get() + 1_000);
            match event {
                Event::Call => drop(shell.gate.try_call(&support::command(&read_call()))),
                Event::Flush((lane, of_d1)) | Event::Publish((lane, of_d1)) => {
                    shell.gate.storage.fault.set(lane.map(|(at, is_lost)| (at, fault(is_lost))));
                    let _ = match event {
                        Event::Flush(_) => shell.flush(of_d1),
                        _ => shell.publish(of_d1),
                    };
                    shell.gate.storage.fault.set(None);
                }
                Event::RestoreD1(to) => shell.restore(to.get(&shell.states).clone()),
                Event::Forge(forgery) => shell.forge(forgery),
                Event::Restart => {
                    shell.gate.evict();
                    shell.compared = None;
                }
            }
            if shell.is_own() {
                shell.keep();
            }
        }
        if !shell.is_own() {
            // A person puts back what D1 had.
            let state = shell.states.last().cloned().unwrap();
            shell.restore(state);
        }
        shell.look().unwrap();
        shell.gate.call(&read_call());
        while shell.gate.flush(None).unwrap() {
            shell.look().unwrap();
        }
        shell.look().unwrap();
        shell.publish(None).unwrap();
        let heads = heads(&shell.gate);
        let newest = heads.last().copied().unwrap();
        prop_assert_eq!(shell.stored.as_deref().and_then(TreeHead::of_note), Some(newest));
        let in_d1 = shell.gate.count("SELECT count(*) FROM receipts");
        prop_assert_eq!(in_d1 as u64, newest.size, "D1 has every receipt");
        // Everything that the lane signed is of one history, including what D1 never got.
        for signed in &shell.signed {
            prop_assert!(heads.contains(signed), "{:?}", signed);
        }
        shell.gate.evict();
        shell.compared = None;
        shell.look().unwrap();
        prop_assert_eq!(shell.compared, Some(shell.stored));
    }
}

#[test]
fn each_earlier_tree_is_known_and_no_other() {
    let gate = Gate::new();
    decided(&gate, 530);
    let heads = heads(&gate);
    let newest = *heads.last().unwrap();
    assert_eq!(compare(&gate, None), Standing::Same, "nothing was published");
    publish(&gate, newest);
    for head in &heads {
        let expected = match head.size {
            530 => Standing::Same,
            _ => Standing::Restored,
        };
        assert_eq!(compare(&gate, Some(&note(*head))), expected, "{}", head.size);
        let other = TreeHead { root: [7; 32], ..*head };
        let standing = compare(&gate, Some(&note(other)));
        assert!(matches!(standing, Standing::Other { .. }), "{}", head.size);
    }
    // Larger than any tree that the lane had, and no note at all.
    let larger = TreeHead { size: 531, ..newest };
    for wrong in [note(larger), "garbage".to_owned()] {
        assert!(matches!(compare(&gate, Some(&wrong)), Standing::Other { .. }));
    }
}

#[test]
fn a_checkpoint_of_another_log_is_not_the_lanes_own_whatever_its_tree_is() {
    let gate = Gate::new();
    decided(&gate, 3);
    let own = tree(&gate);
    let elsewhere = note_of("other.example", "acme.lane-0", own);
    publish(&gate, own);
    for restart in [false, true] {
        if restart {
            gate.evict();
        }
        for other in [&elsewhere, &note_of("gateward.example", "acme.lane-1", own)] {
            let standing = compare(&gate, Some(other));
            assert!(matches!(standing, Standing::Other { .. }), "{restart}: {standing:?}");
        }
        assert_eq!(compare(&gate, Some(&note(own))), Standing::Same);
    }
    // What an earlier version noted has no origin.
    let read = "SELECT value FROM meta WHERE name = 'published'";
    let noted: String = gate.storage.connection.query_row(read, [], |row| row.get(0)).unwrap();
    let (tree, _) = noted.split_once(' ').unwrap();
    let write = "UPDATE meta SET value = ?1 WHERE name = 'published'";
    gate.storage.connection.execute(write, [tree]).unwrap();
    gate.evict();
    assert!(matches!(compare(&gate, Some(&elsewhere)), Standing::Other { .. }));
    assert_eq!(compare(&gate, Some(&note(own))), Standing::Same);
    // The operator changed the origin: what D1 has is still what the lane published. Then somebody deleted the row.
    let changed = |note: Option<&str>| {
        let origin = "other.example/v1/log/acme.lane-0";
        gate.on_lane(|lane, storage| lane.compare_published(storage, note, origin)).unwrap()
    };
    assert_eq!(changed(Some(&note(own))), Standing::Same);
    assert!(matches!(changed(Some(&elsewhere)), Standing::Other { .. }));
    assert_eq!(changed(None), Standing::Restored);
    gate.on_lane(|lane, storage| lane.note_published(storage, None)).unwrap();
    assert_eq!(changed(Some(&elsewhere)), Standing::Same);
    assert!(matches!(changed(Some(&note(own))), Standing::Other { .. }));
}

#[test]
fn a_lane_that_stopped_writes_nothing_until_its_own_checkpoint_is_back() {
    let gate = Gate::new();
    decided(&gate, 3);
    let own = tree(&gate);
    publish(&gate, own);
    let other = note(TreeHead { root: [7; 32], ..own });
    assert_eq!(compare(&gate, Some(&other)), Standing::Other { is_new: true });
    assert_eq!(compare(&gate, Some(&other)), Standing::Other { is_new: false });
    for restart in [false, true] {
        if restart {
            gate.evict();
        }
        let StorageError(why) = gate.try_call(&support::command(&read_call())).unwrap_err();
        assert!(why.contains("stopped"), "{why}");
        assert!(gate.on_lane(|lane, _| Ok(lane.needs_flush())).unwrap(), "it looks again");
    }
    assert_eq!(compare(&gate, Some(&note(own))), Standing::Same);
    assert_eq!(gate.call(&read_call()).0, 200);
    assert_eq!(gate.receipts().len(), 4);
}

#[test]
fn a_checkpoint_that_the_lane_did_not_learn_of_counts() {
    let gate = Gate::new();
    decided(&gate, 3);
    publish(&gate, tree(&gate));
    decided(&gate, 2);
    let newest = tree(&gate);
    // The lane died after D1 took the checkpoint.
    assert_eq!(compare(&gate, Some(&note(newest))), Standing::Same);
    assert_eq!(gate.on_lane(|lane, _| Ok(lane.published())).unwrap(), Some(newest));
    assert_eq!(gate.on_lane(|lane, storage| lane.unpublished(storage)).unwrap(), None);
}

#[test]
fn flushed_rows_are_kept_and_can_be_written_again() {
    let gate = Gate::new();
    decided(&gate, 40);
    let first = gate.on_lane(|lane, storage| lane.first_kept(storage, 11)).unwrap();
    assert_eq!(first, 11);
    let mut next = first;
    let mut seen = Vec::new();
    while let Some(kept) = gate.on_lane(|lane, storage| lane.kept_rows(storage, next)).unwrap() {
        let rows: Vec<Value> = serde_json::from_str(&kept.rows).unwrap();
        assert_eq!(rows.first().unwrap()["seq"], kept.range.0);
        seen.extend(rows.iter().map(|row| row["receipt"].as_str().unwrap().to_owned()));
        next = kept.range.1 + 1;
    }
    let receipts = gate.receipts();
    assert_eq!(seen, receipts[10..].iter().map(|it| it.body.clone()).collect::<Vec<_>>());
}

/// The lane deletes by a time that is up to two hours behind its clock.
#[test]
fn flushed_rows_are_kept_for_an_hour_at_least_and_three_hours_at_most() {
    let gate = Gate::new();
    for row in 1..20_u64 {
        decided(&gate, 1);
        gate.evict();
        let first = gate.on_lane(|lane, storage| lane.first_kept(storage, 1)).unwrap();
        let half_hours = row - first;
        assert!(half_hours >= (row - 1).min(2) && half_hours <= 6, "{first} to {row}");
        gate.now_ms.set(gate.now_ms.get() + 30 * 60 * 1_000);
    }
    let flushes = "SELECT count(*) FROM flushes";
    let flushes: i64 = gate.storage.connection.query_row(flushes, [], |row| row.get(0)).unwrap();
    assert!(flushes <= 8, "{flushes}");
}

#[test]
fn flushed_rows_are_not_kept_while_the_storage_is_almost_full() {
    let gate = Gate::new();
    let first = || gate.on_lane(|lane, storage| lane.first_kept(storage, 1)).unwrap();
    decided(&gate, 40);
    gate.storage.size_bytes.set(gateward_core::gate::config::MAX_STORAGE_BYTES);
    decided(&gate, 1);
    assert_eq!(first(), 42);
    gate.storage.size_bytes.set(0);
    decided(&gate, 2);
    assert_eq!(first(), 42);
}

/// What an earlier version did with the rows that D1 has.
#[test]
fn rows_that_an_earlier_version_kept_can_be_written_again_and_expire() {
    let gate = Gate::new();
    decided(&gate, 30);
    let moved = "INSERT INTO flushed SELECT seq, at_ms, row FROM journal; \
        DELETE FROM journal; DELETE FROM flushes";
    gate.storage.connection.execute_batch(moved).unwrap();
    gate.evict();
    decided(&gate, 10);
    let all = bodies(&gate);
    restore(&gate, 10);
    decided(&gate, 1);
    assert_eq!(bodies(&gate)[..40], all);
    assert_eq!(*gate.told_lost.borrow(), []);
    for _ in 0..3 {
        gate.now_ms.set(gate.now_ms.get() + 2 * 60 * 60 * 1_000);
        decided(&gate, 1);
    }
    let left = "SELECT count(*) FROM flushed";
    assert_eq!(gate.storage.connection.query_row(left, [], |row| row.get(0)), Ok(0));
}

fn bodies(gate: &Gate) -> Vec<String> {
    gate.receipts().into_iter().map(|receipt| receipt.body).collect()
}

/// D1 is restored to the state in which it had this many receipts.
fn restore(gate: &Gate, through: u64) {
    for table in TABLES {
        let delete = format!("DELETE FROM {table} WHERE seq > ?1");
        gate.database.execute(&delete, [through as i64]).unwrap();
    }
}

#[test]
fn what_a_restored_d1_lacks_is_written_again_without_a_checkpoint_and_after_a_crash_in_between() {
    // The lane stops after this many statements, of 500 rows each.
    for statements in 0..3 {
        let gate = Gate::new();
        decided(&gate, 1_300);
        let all = bodies(&gate);
        restore(&gate, 100);
        let mut next = 101;
        for _ in 0..statements {
            let kept =
                gate.on_lane(|lane, storage| lane.kept_rows(storage, next)).unwrap().unwrap();
            let rows = params![support::TENANT, 0, kept.rows, None::<i64>];
            gate.database.execute(d1::FLUSH_ROWS, rows).unwrap();
            next = kept.range.1 + 1;
        }
        gate.evict();
        decided(&gate, 1);
        let now = bodies(&gate);
        assert_eq!(now.len(), 1_301, "{statements}");
        assert_eq!(now[..1_300], all, "{statements}");
    }
}

#[test]
fn what_the_lane_no_longer_has_is_lost_and_its_flushes_go_on() {
    for forgotten in [150, 1_000] {
        let gate = Gate::new();
        decided(&gate, 200);
        restore(&gate, 100);
        let forget = "DELETE FROM journal WHERE seq <= ?1";
        gate.storage.connection.execute(forget, [forgotten as i64]).unwrap();
        decided(&gate, 3);
        decided(&gate, 2);
        let seqs: Vec<u64> = gate.receipts().iter().map(|receipt| receipt.seq).collect();
        let lost = 101..=forgotten.min(200);
        let expected: Vec<u64> = (1..=205).filter(|seq| !lost.contains(seq)).collect();
        assert_eq!(seqs, expected);
        // A lane without calls does not tell of them again.
        gate.on_lane(|lane, _| {
            lane.ask_d1();
            Ok(())
        })
        .unwrap();
        gate.flush_all();
        assert_eq!(*gate.told_lost.borrow(), [lost.into_inner()]);
    }
}

#[test]
fn a_lane_without_calls_notices_a_restore_when_it_asks_d1() {
    let gate = Gate::new();
    decided(&gate, 40);
    let all = bodies(&gate);
    restore(&gate, 10);
    gate.flush_all();
    assert_eq!(bodies(&gate).len(), 10);
    gate.on_lane(|lane, _| {
        lane.ask_d1();
        Ok(())
    })
    .unwrap();
    gate.flush_all();
    assert_eq!(bodies(&gate), all);
}

#[test]
fn a_second_restore_to_an_earlier_time_loses_what_the_first_one_lost() {
    let gate = Gate::new();
    let forget = |through: i64| {
        let forget = "DELETE FROM journal WHERE seq <= ?1";
        gate.storage.connection.execute(forget, [through]).unwrap();
    };
    decided(&gate, 200);
    restore(&gate, 100);
    forget(150);
    decided(&gate, 1);
    restore(&gate, 50);
    forget(160);
    decided(&gate, 1);
    assert_eq!(*gate.told_lost.borrow(), [(101, 150), (51, 160)]);
    let lost = |seq| gate.on_lane(|_, storage| Lane::expected_in_d1(storage, seq)).unwrap();
    assert_eq!([50, 51, 160, 161].map(lost), [Some(50), None, None, Some(161)]);
    assert_eq!(bodies(&gate).len(), 50 + 42);
}

#[test]
fn rows_behind_a_gap_are_neither_written_nor_counted_until_it_is_closed() {
    let gate = Gate::new();
    decided(&gate, 5);
    restore(&gate, 3);
    gate.database.execute("UPDATE lane_flushes SET seq = 3", []).unwrap();
    gate.call(&read_call());
    let now_ms = gate.now_ms.get();
    let batch = gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, now_ms));
    let batch = batch.unwrap().unwrap();
    let state = || {
        [
            "SELECT max(seq) FROM receipts",
            "SELECT seq FROM lane_flushes",
            "SELECT sum(count) FROM metric_counters WHERE metric = 'decisions'",
        ]
        .map(|query| gate.count(query))
    };
    for _ in 0..2 {
        assert_eq!(batch.missing_before(&gate.write(&batch)), Some(5));
        assert_eq!(state(), [3, 3, 5]);
    }
    gate.flush_all();
    assert_eq!(state(), [6, 6, 6]);
}

#[test]
fn rows_are_kept_while_d1_does_not_answer() {
    let gate = Gate::new();
    decided(&gate, 40);
    gate.call(&read_call());
    for _ in 0..10 {
        gate.now_ms.set(gate.now_ms.get() + 3 * 60 * 60 * 1_000);
        assert!(gate.flush(Some(Fault::Failed)).is_err());
    }
    assert_eq!(gate.on_lane(|lane, storage| lane.first_kept(storage, 1)).unwrap(), 1);
    // Meanwhile it was restored.
    restore(&gate, 10);
    gate.flush_all();
    assert_eq!(gate.count("SELECT count(*) FROM receipts"), 41);
}

#[test]
fn a_receipt_that_was_deleted_because_of_its_age_is_not_missing() {
    let gate = Gate::new();
    decided(&gate, 5);
    let receipts = gate.receipts();
    let last = receipts.last().unwrap();
    let anchor = ChainHead { seq: last.seq, hash: last.receipt_hash.clone() };
    gate.on_lane(|_, storage| Lane::set_anchor(storage, &anchor)).unwrap();
    restore(&gate, 0);
    decided(&gate, 2);
    assert_eq!(gate.count("SELECT min(seq) FROM receipts"), 6);
    assert_eq!(gate.count("SELECT count(*) FROM receipts"), 2);
}

#[test]
fn full_tiles_come_once_after_the_size_that_d1_has() {
    let gate = Gate::new();
    decided(&gate, 3 * TILE_WIDTH as usize + 5);
    let leaves: Vec<Hash> =
        gate.receipts().iter().map(|receipt| leaf_hash(receipt.body.as_bytes())).collect();
    for (size, expected) in [(0, 3), (255, 3), (256, 2), (700, 1), (768, 0), (773, 0)] {
        let mut cursor = TileCursor::between(size, leaves.len() as u64);
        let mut tiles = Vec::new();
        while let Some(more) =
            gate.on_lane(|lane, storage| lane.next_tiles(storage, &mut cursor)).unwrap()
        {
            tiles.extend(serde_json::from_str::<Vec<Value>>(&more).unwrap());
        }
        assert_eq!(tiles.len(), expected, "{size}");
        for tile in tiles {
            let number = tile[1].as_u64().unwrap() as usize;
            let of_tile = &leaves[number * 256..][..256];
            assert_eq!(decode_hashes(tile[3].as_str().unwrap()).unwrap(), of_tile);
            let mut edge = Edge::default();
            of_tile.iter().for_each(|leaf| edge.append(*leaf, &mut |_, _, _| {}));
            assert_eq!(decode_hashes(tile[2].as_str().unwrap()).unwrap(), [edge.root()]);
        }
    }
}

#[test]
fn leaves_of_deleted_receipts_are_not_published_again() {
    let gate = Gate::new();
    decided(&gate, 3 * TILE_WIDTH as usize);
    let receipts = gate.receipts();
    let last = receipts.get(299).unwrap();
    let anchor = ChainHead { seq: last.seq, hash: last.receipt_hash.clone() };
    gate.on_lane(|_, storage| Lane::set_anchor(storage, &anchor)).unwrap();
    let mut cursor = TileCursor::between(0, receipts.len() as u64);
    let tiles = gate.on_lane(|lane, storage| lane.next_tiles(storage, &mut cursor)).unwrap();
    let tiles: Vec<Value> = serde_json::from_str(&tiles.unwrap()).unwrap();
    let with_leaves: Vec<bool> = tiles.iter().map(|tile| tile[3].is_string()).collect();
    // Receipt 300 is in the second tile, which is deleted together with its last receipt.
    assert_eq!(with_leaves, [false, true, true]);
}

#[test]
fn a_version_without_trees_in_between_makes_no_second_history() {
    let gate = Gate::new();
    decided(&gate, 300);
    let published = tree(&gate);
    publish(&gate, published);
    let stored = || -> String {
        let read = "SELECT value FROM meta WHERE name = 'tree'";
        gate.storage.connection.query_row(read, [], |row| row.get(0)).unwrap()
    };
    let before = stored();
    // An earlier version, whose lane had no tree, flushed these.
    decided(&gate, 5);
    let put_back = "UPDATE meta SET value = ?1 WHERE name = 'tree'";
    gate.storage.connection.execute(put_back, [before]).unwrap();
    for restart in 0..3 {
        gate.evict();
        if restart == 1 {
            decided(&gate, 400);
        }
        let standing = compare(&gate, Some(&note(published)));
        assert!(matches!(standing, Standing::Other { .. }), "{restart}: {standing:?}");
        // A person took the checkpoint away, to go on with the new tree.
        assert_eq!(compare(&gate, None), Standing::Same);
    }
    let unpublished = gate.on_lane(|lane, storage| lane.unpublished(storage)).unwrap().unwrap();
    assert_eq!((unpublished.first, unpublished.tree.size), (306, 400));
}

/// Tells the head log of a lane's checkpoint. Returns whether the head log took it.
fn tell(head: &Gate, size: u64) -> Result<bool, StorageError> {
    let checkpoint = LaneCheckpoint {
        tenant: support::TENANT.to_owned(),
        of_lane: 0,
        note: note(TreeHead { size, root: [7; 32] }),
        first: 1,
        pruned_through: 0,
    };
    let now_ms = head.now_ms.get();
    let kept = head.on_lane(|lane, storage| {
        lane.keep_checkpoint(storage, &head.config, &checkpoint, now_ms)
    })?;
    Ok(kept.is_ok())
}

#[test]
fn the_head_log_has_a_lanes_checkpoints_in_order_whatever_fails() {
    let mut broken = 0;
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0.. {
            let mut head = Gate::new();
            head.number = HEAD_LANE;
            assert_eq!(tell(&head, 3), Ok(true));
            head.storage.fault.set(Some((at, fault)));
            drop(tell(&head, 5));
            let was_hit = head.storage.fault.take().is_none();
            head.evict();
            // A message that was overtaken, and the one that failed.
            drop(tell(&head, 4));
            assert_eq!(tell(&head, 5), Ok(true), "{fault:?} {at}");
            let sizes: Vec<u64> = head
                .receipts()
                .iter()
                .map(|receipt| {
                    let body: Value = serde_json::from_str(&receipt.body).unwrap();
                    TreeHead::of_note(body["checkpoint"].as_str().unwrap()).unwrap().size
                })
                .collect();
            assert!(sizes.is_sorted() && sizes.ends_with(&[5]), "{fault:?} {at}: {sizes:?}");
            if !was_hit {
                break;
            }
            broken += 1;
        }
    }
    assert!(broken >= 4, "only {broken} writes were broken");
}

/// The perfect trees of a log whose entries are all the same, by their height.
fn perfect() -> Vec<Hash> {
    let mut hashes = vec![leaf_hash(b"the same")];
    for height in 0..32 {
        let below = hashes[height];
        hashes.push(node_hash(&below, &below));
    }
    hashes
}

/// The tree of this many entries of that log.
fn same(size: u64) -> Edge {
    let heights = (0..32).rev().filter(|height| size >> height & 1 == 1);
    let hashes = heights.map(|height| perfect()[height]).collect();
    Edge::from_parts(size, hashes).unwrap()
}

#[test]
fn a_large_tree_is_published_in_parts_that_end_with_a_full_tile() {
    let head = |size: u64| TreeHead { size, root: same(size).root() };
    let size = 2 * MAX_PUBLISHED_LEAVES + 556;
    let gate = Gate::new();
    decided(&gate, 1);
    gate.evict();
    // As if the lane had decided this many calls that are all the same.
    let storage = &gate.storage.connection;
    let leaves = vec![perfect()[0]; (size % TILE_WIDTH) as usize];
    let stored = json!({
        "first": 1, "size": size, "edge": encode_hashes(same(size).hashes()),
        "leaves": encode_hashes(&leaves),
    });
    let set = "UPDATE meta SET value = ?2 WHERE name = ?1";
    storage.execute(set, params!["tree", stored.to_string()]).unwrap();
    storage.execute(set, params!["head", format!("{size}:{}", "0".repeat(64))]).unwrap();
    storage.execute("DELETE FROM tiles", []).unwrap();
    for level in 0..2 {
        let tiles = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2) \
             INSERT INTO tiles (level, number, root) SELECT ?1, n, ?3 FROM n";
        let full = (size >> (8 * (level + 1))) as i64;
        let root = encode_hashes(&[perfect()[8 * (level + 1)]]);
        storage.execute(tiles, params![level as i64, full, root]).unwrap();
    }
    // D1 has a small part of it.
    let mut known = 300;
    publish(&gate, head(known));
    let parts = [256 + MAX_PUBLISHED_LEAVES, 256 + 2 * MAX_PUBLISHED_LEAVES, size];
    for part in parts {
        let unpublished = gate.on_lane(|lane, storage| lane.unpublished(storage)).unwrap().unwrap();
        assert_eq!((unpublished.first, unpublished.tree), (1, head(part)));
        let rest = (part % TILE_WIDTH) as usize;
        assert_eq!(unpublished.leaves, encode_hashes(&vec![perfect()[0]; rest]), "{part}");
        let mut cursor = TileCursor::between(known, part);
        let (mut statements, mut numbers) = (0, [Vec::new(), Vec::new()]);
        while let Some(tiles) =
            gate.on_lane(|lane, storage| lane.next_tiles(storage, &mut cursor)).unwrap()
        {
            statements += 1;
            for tile in serde_json::from_str::<Vec<Value>>(&tiles).unwrap() {
                numbers[tile[0].as_u64().unwrap() as usize].push(tile[1].as_u64().unwrap());
            }
        }
        for (level, numbers) in numbers.into_iter().enumerate() {
            let full = |size: u64| size >> (8 * (level + 1));
            assert!(numbers.into_iter().eq(full(known)..full(part)), "{part}, level {level}");
        }
        assert!(statements <= 52, "{statements} of the 1,000 that one run may send");
        assert_eq!(compare(&gate, Some(&note(head(known)))), Standing::Same);
        publish(&gate, head(part));
        known = part;
    }
    assert_eq!(gate.on_lane(|lane, storage| lane.unpublished(storage)).unwrap(), None);
    assert!(!gate.on_lane(|lane, _| Ok(lane.has_unpublished())).unwrap());
}
