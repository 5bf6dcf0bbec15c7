//! Logs, their checkpoints and signatures, and the registry.

use gateward_core::tlog::EMPTY_ROOT;
use serde_json::json;

use super::{Tampering, case};
use crate::exports::keys::{ATTACKER, KEY, checkpoint, cosigned, with_id_of};
use crate::exports::line::Line;
use crate::exports::tamper::{head, lane};

pub const TAMPERINGS: &[Tampering] = &[
    // Forks.
    case(
        "a fork",
        |it| {
            (5..=22).for_each(|seq| it.edit_agent(&lane(0), seq));
            it.reseal();
        },
        "wrong_root: acme.lane-0, receipts 5 to 14, line 50",
    ),
    case(
        "a fork with checkpoints of another key",
        |it| {
            (5..=22).for_each(|seq| it.edit_agent(&lane(0), seq));
            it.reseal();
            it.sign(&lane(0), &[ATTACKER]);
            it.reseal();
            it.sign(&head(), &[ATTACKER]);
        },
        "invalid_checkpoint: acme.head, receipt 7, line 17",
    ),
    case(
        "a checkpoint of another tree by another key",
        |it| {
            it.embed(50, &checkpoint(&lane(0), 14, [7; 32], &[ATTACKER]));
            it.reseal();
        },
        "invalid_checkpoint: acme.head, receipt 12, line 50",
    ),
    case(
        "a fork after the head's newest checkpoint",
        |it| {
            it.edit_agent(&lane(0), 21);
            it.reseal();
            let edge = it.edge(&lane(0), 84);
            *it.note(85) = checkpoint(&lane(0), edge.size(), edge.root(), &[ATTACKER]);
        },
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "two checkpoints that do not extend each other",
        |it| {
            it.embed(50, &checkpoint(&lane(0), 14, [7; 32], &[KEY]));
            it.reseal();
            it.sign(&head(), &[KEY]);
        },
        "wrong_root: acme.lane-0, receipts 5 to 14, line 50",
    ),
    case(
        "two checkpoints of one size that differ",
        |it| {
            it.copy(74, 74);
            it.embed(75, &checkpoint(&lane(2), 26, [7; 32], &[KEY]));
            it.reseal();
            it.sign(&head(), &[KEY]);
        },
        "wrong_root: acme.head, receipt 19, line 75",
    ),
    case(
        "a checkpoint of a smaller tree after one of a larger",
        |it| {
            let smaller = it.embedded(17);
            it.embed(70, &smaller);
            it.reseal();
            it.sign(&head(), &[KEY]);
        },
        "wrong_size: acme.head, receipt 16, line 70",
    ),
    // Lanes and tenants.
    case(
        "a missing lane",
        |it| {
            it.drop_log(&lane(1));
            it.reseal();
        },
        "missing_lane: acme.lane-1, line 58",
    ),
    case(
        "a missing lane, and its checkpoints in the head",
        |it| {
            it.drop_log(&lane(1));
            while let Some(at) = it.lane_checkpoints(1).first() {
                it.remove(*at);
            }
            it.reseal();
        },
        "wrong_size: acme.head, receipts 15 to 20, line 69",
    ),
    case(
        "a missing lane whose last checkpoint is there",
        |it| {
            let note = it.note(86).clone();
            it.drop_log(&lane(1));
            it.0.insert(71, Line::Checkpoint { log: lane(1), note });
            it.reseal();
        },
        "wrong_order: acme.lane-1, line 72",
    ),
    case(
        "another tenant's rows",
        |it| {
            (31..37).for_each(|at| it.edit(at, |body| body["tenant"] = json!("evil")));
            it.reseal();
        },
        "wrong_tenant: acme.lane-0, receipt 5, line 32",
    ),
    case(
        "another tenant's log",
        |it| it.replace(11, "acme.lane-0", "evil.lane-0"),
        "malformed_line: line 12",
    ),
    case("another tenant's export", |it| it.replace(0, "acme", "evil"), "wrong_key: line 1"),
    case(
        "another deployment's export",
        |it| it.replace(0, "gateward.example", "gateward.evil"),
        "wrong_key: line 1",
    ),
    case(
        "another lane's rows",
        |it| {
            it.edit(32, |body| body["lane"] = json!(1));
            it.reseal();
        },
        "wrong_lane: acme.lane-0, receipt 6, line 33",
    ),
    case(
        "a lane number that no lane can have",
        |it| it.replace(11, "acme.lane-0", "acme.lane-4096"),
        "malformed_line: line 12",
    ),
    case(
        "the head as a lane",
        |it| it.replace(11, "acme.lane-0", "acme.lane-65535"),
        "malformed_line: line 12",
    ),
    case(
        "another spelling of a lane",
        |it| it.replace(11, "acme.lane-0", "acme.lane-00"),
        "malformed_line: line 12",
    ),
    // Signatures.
    case(
        "a lane's checkpoint signed by another key",
        |it| {
            let edge = it.edge(&lane(0), 84);
            *it.note(85) = checkpoint(&lane(0), edge.size(), edge.root(), &[ATTACKER]);
        },
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "a lane's checkpoint signed by another key under the given key's id",
        |it| {
            let edge = it.edge(&lane(0), 84);
            let note = checkpoint(&lane(0), edge.size(), edge.root(), &[ATTACKER]);
            *it.note(85) = with_id_of(&note, &lane(0), KEY);
        },
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "a valid and an invalid signature of given keys",
        |it| {
            let edge = it.edge(&lane(0), 84);
            let note = checkpoint(&lane(0), edge.size(), edge.root(), &[ATTACKER]);
            let forged = with_id_of(&note, &lane(0), KEY);
            it.note(85).push_str(forged.split_once("\n\n").unwrap().1);
        },
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "the head's checkpoint signed by another key",
        |it| it.sign(&head(), &[ATTACKER]),
        "invalid_checkpoint: acme.head, line 90",
    ),
    case(
        "all checkpoints signed by another key",
        |it| {
            (0..4).for_each(|number| it.sign(&lane(number), &[ATTACKER]));
            it.reseal();
            it.sign(&head(), &[ATTACKER]);
        },
        "invalid_checkpoint: acme.head, receipt 4, line 3",
    ),
    case(
        "a last checkpoint of another lane",
        |it| *it.note(85) = it.note(86).clone(),
        "wrong_origin: acme.lane-0, line 85",
    ),
    case(
        "a checkpoint of another lane in the head",
        |it| {
            let other = it.embedded(18);
            it.embed(17, &other);
            it.reseal();
        },
        "wrong_origin: acme.head, receipt 7, line 17",
    ),
    case(
        "a checkpoint that is no note",
        |it| *it.note(85) = "acme\n".to_owned(),
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "a checkpoint with a fourth line",
        |it| *it.note(85) = it.note(85).replacen("\n\n", "\nextension\n\n", 1),
        "invalid_checkpoint: acme.lane-0, line 85",
    ),
    case(
        "no last checkpoint of a lane",
        |it| drop(it.remove(84)),
        "missing_checkpoint: acme.lane-0, line 89",
    ),
    case("no last checkpoint of the head", |it| drop(it.remove(89)), "wrong_order: line 90"),
    case(
        "a stripped cosignature",
        |it| {
            let note = it.note(90);
            let end = note.trim_end().rfind('\n').unwrap();
            note.truncate(end + 1);
        },
        "missing_cosignature: acme.head, line 90",
    ),
    case(
        "a cosignature of another checkpoint",
        |it| {
            let other = cosigned(&checkpoint(&head(), 0, EMPTY_ROOT, &[KEY]), 4, 1_795_392_000);
            let note = it.note(90);
            note.push_str(other.trim_end().rsplit('\n').next().unwrap());
            note.push('\n');
        },
        "invalid_checkpoint: acme.head, line 90",
    ),
    // The registry.
    case(
        "an edited registry event",
        |it| it.replace(10, "größe", "eve"),
        "wrong_event: acme.head, receipt 6, line 11",
    ),
    case(
        "an edited registry event, sealed again",
        |it| {
            let Line::Event { event: Some(event), .. } = it.line(11) else { panic!("no event") };
            *event = event.replace("größe", "eve");
            it.reseal();
        },
        "wrong_root: acme.head, receipts 1 to 20, line 90",
    ),
    case(
        "a registry event with an unknown member, sealed again",
        |it| {
            let Line::Event { event: Some(event), .. } = it.line(11) else { panic!("no event") };
            *event = event.replacen('{', "{\"actor\":\"eve\",", 1);
            it.reseal();
        },
        "wrong_event: acme.head, receipt 6, line 11",
    ),
    case(
        "a registry event under another id, sealed again",
        |it| {
            it.edit(9, |body| body["event_id"] = json!("registry.9"));
            it.reseal();
        },
        "wrong_event: acme.head, receipt 6, line 11",
    ),
    case(
        "a registry event whose id has no epoch, sealed again",
        |it| {
            it.edit(9, |body| body["event_id"] = json!("registry.x"));
            it.reseal();
        },
        "malformed_body: acme.head, receipt 6, line 10",
    ),
    case(
        "another form of the same registry event",
        |it| it.replace(10, "\\\"limit\\\":0.25", "\\\"limit\\\":0.250"),
        "wrong_event: acme.head, receipt 6, line 11",
    ),
    case("a registry event that is left out", |it| drop(it.remove(10)), "wrong_order: line 11"),
    case(
        "a registry event of another entry",
        |it| it.replace(10, "\"index\":5", "\"index\":4"),
        "wrong_order: line 11",
    ),
    case("a registry event after another entry", |it| it.move_line(10, 11), "wrong_order: line 11"),
    case("a registry event without an entry", |it| it.copy(11, 11), "wrong_order: line 12"),
    case(
        "a removed registry change, sealed again",
        |it| {
            it.0.drain(9..11);
            it.reseal();
        },
        "wrong_size: acme.head, receipt 20, line 88",
    ),
    case(
        "a head's receipt of an unknown kind",
        |it| {
            it.edit(9, |body| body["kind"] = json!("note"));
            it.reseal();
        },
        "malformed_body: acme.head, receipt 6, line 10",
    ),
    case(
        "a head's receipt with an unknown member",
        |it| {
            it.edit(16, |body| body["comment"] = json!(""));
            it.reseal();
        },
        "malformed_body: acme.head, receipt 7, line 17",
    ),
];
