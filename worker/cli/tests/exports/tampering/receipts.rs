//! Receipts that are changed, removed, moved, deleted or lost.

use serde_json::json;

use super::{Tampering, case};
use crate::exports::line::Line;
use crate::exports::tamper::{head, lane};

pub const TAMPERINGS: &[Tampering] = &[
    // A changed receipt.
    case(
        "an edited field",
        |it| it.edit_agent(&lane(0), 6),
        "broken_link: acme.lane-0, receipt 7, line 34",
    ),
    case(
        "an edited field, sealed again",
        |it| {
            it.edit_agent(&lane(0), 6);
            it.reseal();
        },
        "wrong_root: acme.lane-0, receipts 5 to 14, line 50",
    ),
    case(
        "an edited field of the last receipt",
        |it| it.edit_agent(&lane(0), 22),
        "wrong_root: acme.lane-0, receipts 20 to 22, line 85",
    ),
    case(
        "an edited field that the head does not cover, sealed again",
        |it| {
            it.edit_agent(&lane(0), 21);
            it.reseal();
        },
        "wrong_root: acme.lane-0, receipts 20 to 22, line 85",
    ),
    case(
        "another form of the same body",
        |it| it.replace(32, "\\\"agent\\\":", "\\\"agent\\\": "),
        "malformed_body: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "a body that is no JSON",
        |it| it.replace(32, "\\\"agent\\\":", "\\\"agent\\\""),
        "malformed_body: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "a body that is larger than an entry can be, sealed again",
        |it| {
            it.edit(32, |body| body["agent"] = json!("x".repeat(65_536)));
            it.reseal();
        },
        "malformed_body: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "a body without a kind, sealed again",
        |it| {
            it.edit(32, |body| drop(body.as_object_mut().unwrap().remove("kind")));
            it.reseal();
        },
        "malformed_body: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "another number",
        |it| it.edit(32, |body| body["seq"] = json!(7)),
        "wrong_number: acme.lane-0, receipt 6, line 33",
    ),
    // Removed and moved receipts.
    case("a removed row", |it| drop(it.remove(32)), "wrong_order: acme.lane-0, receipt 6, line 33"),
    case(
        "a removed row, sealed again",
        |it| {
            it.remove(32);
            it.reseal();
        },
        "wrong_size: acme.lane-0, receipt 14, line 49",
    ),
    case(
        "a removed row, and a later one in its place",
        |it| {
            it.move_line(54, 49);
            it.remove(32);
            it.reseal();
        },
        "wrong_root: acme.lane-0, receipts 5 to 14, line 50",
    ),
    case(
        "a removed tail",
        |it| drop(it.0.drain(81..84)),
        "wrong_size: acme.lane-0, receipts 20 to 22, line 82",
    ),
    case(
        "a removed tail, with the checkpoint before it",
        |it| {
            *it.note(85) = it.embedded(50);
            for seq in 15..=22 {
                let at = it.at(&lane(0), seq);
                it.remove(at);
            }
            it.reseal();
        },
        "wrong_size: acme.lane-0, receipts 15 to 19, line 65",
    ),
    case("swapped rows", |it| it.0.swap(32, 33), "wrong_order: acme.lane-0, receipt 6, line 33"),
    case(
        "swapped rows, sealed again",
        |it| {
            it.0.swap(32, 33);
            it.reseal();
        },
        "wrong_root: acme.lane-0, receipts 5 to 14, line 50",
    ),
    case(
        "rows beyond the claimed end",
        |it| {
            it.copy(84, 84);
            it.reseal();
        },
        "wrong_size: acme.lane-0, receipt 23, line 86",
    ),
    case(
        "rows beyond the head's claimed end",
        |it| {
            it.copy(76, 78);
            it.reseal();
        },
        "wrong_size: acme.head, receipt 21, line 91",
    ),
    case(
        "rows after the last checkpoint",
        |it| {
            it.copy(84, 85);
            it.reseal();
        },
        "wrong_order: line 86",
    ),
    // Deleted receipts.
    case(
        "a pretended deletion by retention",
        |it| it.prune(&lane(0), 10),
        "unrecorded_pruning: acme.lane-0, receipts 1 to 10, line 12",
    ),
    case(
        "a deletion of more than retention deleted",
        |it| it.prune(&lane(1), 10),
        "unrecorded_pruning: acme.lane-1, receipts 1 to 10, line 19",
    ),
    case(
        "a pretended deletion of a lane that is not in the head",
        |it| it.prune(&lane(3), 2),
        "unrecorded_pruning: acme.lane-3, receipts 1 to 2, line 79",
    ),
    case(
        "a pretended deletion that the head is made to record",
        |it| {
            it.prune(&lane(0), 2);
            let newest = *it.lane_checkpoints(0).last().unwrap();
            it.edit(newest, |body| body["pruned_through"] = json!(2));
            it.reseal();
        },
        "wrong_root: acme.head, receipts 1 to 20, line 88",
    ),
    case(
        "other hashes of what was deleted",
        |it| {
            let Line::Log { edge, .. } = it.line(19) else { panic!("no log") };
            edge[0] = [7; 32];
        },
        "wrong_root: acme.lane-1, receipts 1 to 10, line 23",
    ),
    case(
        "too few hashes of what was deleted",
        |it| {
            let Line::Log { edge, .. } = it.line(19) else { panic!("no log") };
            edge.pop();
        },
        "malformed_line: acme.lane-1, line 19",
    ),
    case(
        "another hash of the last deleted receipt",
        |it| {
            let Line::Log { prev_hash, .. } = it.line(19) else { panic!("no log") };
            *prev_hash = "7".repeat(64);
        },
        "broken_link: acme.lane-1, receipt 8, line 20",
    ),
    case(
        "a hash before the first receipt",
        |it| {
            let Line::Log { prev_hash, .. } = it.line(12) else { panic!("no log") };
            *prev_hash = "7".repeat(64);
            it.reseal();
        },
        "malformed_line: acme.lane-0, line 12",
    ),
    case(
        "another first number",
        |it| {
            let Line::Log { first, .. } = it.line(4) else { panic!("no log") };
            *first = 17;
            it.reseal();
        },
        "wrong_number: acme.head, receipt 5, line 9",
    ),
    case(
        "another first number of a lane that the head has named",
        |it| {
            let Line::Log { first, .. } = it.line(19) else { panic!("no log") };
            *first = 2;
            it.reseal();
        },
        "wrong_number: acme.lane-1, line 19",
    ),
    case(
        "another first number of the head",
        |it| {
            let Line::Log { first, .. } = it.line(2) else { panic!("no log") };
            *first = 2;
            it.reseal();
        },
        "malformed_line: acme.head, line 2",
    ),
    // Lost rows. They do not end the verification.
    case(
        "a lost row",
        |it| it.lose(&lane(0), 6),
        "missing_receipt: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "lost rows",
        |it| (6..=8).for_each(|seq| it.lose(&lane(0), seq)),
        "missing_receipt: acme.lane-0, receipts 6 to 8, line 33",
    ),
    case(
        "a lost row of the head",
        |it| it.lose(&head(), 7),
        "missing_receipt: acme.head, receipt 7, line 17",
    ),
    case(
        "a lost row with another hash",
        |it| {
            it.lose(&lane(0), 6);
            let Line::Missing { leaf_hash, .. } = it.line(33) else { panic!("no row") };
            *leaf_hash = [7; 32];
        },
        "missing_receipt: acme.lane-0, receipt 6, line 33",
    ),
];
