//! The lane's Merkle tree over its receipts: what it is after any history, and what the lane does if D1 has another one.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use gateward_core::gate::head_log::LaneCheckpoint;
use gateward_core::lane::{
    Lane, LogKeys, LogName, Standing, StorageError, TileCursor, TreeHead, decode_hashes,
};
use gateward_core::receipt::{ChainHead, HEAD_LANE};
use gateward_core::tlog::{EMPTY_ROOT, Edge, Hash, TILE_WIDTH, leaf_hash};
use proptest::prelude::*;
use serde_json::Value;
use support::{Fault, Gate, read_call};

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
    gate.on_lane(|lane, storage| lane.compare_published(storage, note)).unwrap()
}

fn publish(gate: &Gate, tree: TreeHead) {
    gate.on_lane(|lane, storage| lane.note_published(storage, Some(&note(tree)))).unwrap();
}

/// So many calls, and all of them in D1.
fn decided(gate: &Gate, calls: usize) {
    for _ in 0..calls {
        // The rate of the agent refills.
        gate.now_ms.set(gate.now_ms.get() + 1_000);
        assert_eq!(gate.call(&read_call()).0, 200);
    }
    gate.flush_all();
}

/// An event of a history.
#[derive(Debug, Clone)]
enum Event {
    Call,
    /// A write of the lane fails, and then D1.
    Flush(Option<(u32, bool)>, Option<bool>),
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let lane = proptest::option::of((0_u32..12, any::<bool>()));
    prop_oneof![
        6 => Just(Event::Call),
        3 => (lane, proptest::option::of(any::<bool>())).prop_map(|(lane, d1)| Event::Flush(lane, d1)),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_tree_has_each_receipt_once_whatever_fails(history in proptest::collection::vec(event(), 1..60)) {
        let gate = Gate::new();
        let fault = |lost: bool| if lost { Fault::Lost } else { Fault::Failed };
        for event in history {
            gate.now_ms.set(gate.now_ms.get() + 1_000);
            match event {
                Event::Call => drop(gate.call(&read_call())),
                Event::Flush(lane, d1) => {
                    gate.storage.fault.set(lane.map(|(at, lost)| (at, fault(lost))));
                    let _ = gate.flush(d1.map(fault));
                    gate.storage.fault.set(None);
                }
                Event::Restart => gate.evict(),
            }
        }
        gate.call(&read_call());
        gate.flush_all();
        prop_assert_eq!(Some(tree(&gate)), heads(&gate).last().copied());
        gate.evict();
        prop_assert_eq!(Some(tree(&gate)), heads(&gate).last().copied());
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
            size => Standing::Restored { tree: *head, from: size + 1 },
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
    // What an earlier version noted has no origin: it is learnt from D1.
    let read = "SELECT value FROM meta WHERE name = 'published'";
    let noted: String = gate.storage.connection.query_row(read, [], |row| row.get(0)).unwrap();
    let (tree, _) = noted.split_once(' ').unwrap();
    let write = "UPDATE meta SET value = ?1 WHERE name = 'published'";
    gate.storage.connection.execute(write, [tree]).unwrap();
    gate.evict();
    assert_eq!(compare(&gate, Some(&note(own))), Standing::Same);
    assert!(matches!(compare(&gate, Some(&elsewhere)), Standing::Other { .. }));
    // The operator changed the origin and deleted the row.
    let none = TreeHead { size: 0, root: EMPTY_ROOT };
    assert_eq!(compare(&gate, None), Standing::Restored { tree: none, from: 1 });
    gate.on_lane(|lane, storage| lane.note_published(storage, None)).unwrap();
    assert_eq!(compare(&gate, Some(&elsewhere)), Standing::Same);
    assert!(matches!(compare(&gate, Some(&note(own))), Standing::Other { .. }));
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
    while let Some(kept) = gate.on_lane(|_, storage| Lane::kept_rows(storage, next)).unwrap() {
        let rows: Vec<Value> = serde_json::from_str(&kept.rows).unwrap();
        assert_eq!(rows.first().unwrap()["seq"], kept.range.0);
        seen.extend(rows.iter().map(|row| row["receipt"].as_str().unwrap().to_owned()));
        next = kept.range.1 + 1;
    }
    let receipts = gate.receipts();
    assert_eq!(seen, receipts[10..].iter().map(|it| it.body.clone()).collect::<Vec<_>>());
    // Hours later they are gone.
    for _ in 0..3 {
        gate.now_ms.set(gate.now_ms.get() + 3 * 60 * 60 * 1_000);
        decided(&gate, 1);
    }
    let first = gate.on_lane(|lane, storage| lane.first_kept(storage, 1)).unwrap();
    assert!(first > 40, "{first}");
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
    // Receipt 300 is in the second tile, which goes with its last receipt.
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
    // That version flushed these, and its lane knew no tree.
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

/// Tells the head log of a lane's checkpoint; whether it was taken.
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
