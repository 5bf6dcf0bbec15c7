//! `gateward verify` on true exports, and on the same after somebody tampered with them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

mod exports;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use exports::body::Random;
use exports::history::History;
use exports::keys::{KEY, OLD_KEY, TENANT, WITNESSES, vkey, witness};
use exports::line::{Line, text};
use exports::tamper::{Forgery, head, lane};
use exports::tampering::{EVENTFUL, Tampering, UNDETECTED, tamperings};
use gateward::verify::{Kind, LINE_BYTES_MAX, Report, Trust, verify};
use gateward_core::tlog::VerifierKey;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A history that is small enough to change each of its bytes.
const SMALL: History = History { seed: 3, receipts: 2, lanes: 1, between: 1, eventful: false };

fn trust() -> Trust {
    trusting(&[KEY, OLD_KEY], &WITNESSES)
}

fn trusting(keys: &[u8], witnesses: &[u8]) -> Trust {
    let key = |key: &u8| VerifierKey::parse(&vkey(&head(), *key)).unwrap();
    let witness = |key: &u8| VerifierKey::parse(&witness(*key).2).unwrap();
    Trust::new(keys.iter().map(key).collect(), witnesses.iter().map(witness).collect()).unwrap()
}

fn verified(lines: &[Line]) -> Report {
    verify(text(lines).as_bytes(), &trust()).unwrap()
}

#[test]
fn a_true_export_verifies_and_the_report_says_what_was_verified() {
    let report = verified(&EVENTFUL.lines());
    let expected = "\
log             receipts       size  root                                          key_id
acme.lane-0     22 (1 to 22)   22    guvl4/pCQoceVAZUgmZqOrroKcriakSImLxUuoimGS0=  1a5d8fc4
acme.lane-1     13 (8 to 20)   20    +4vbGukwFvS1KT71pIqIRMxN5Mnz4wlHQAttorjlnCE=  8067b50f
acme.lane-2     20 (24 to 43)  26    1tZX3iH+j6WHZ20Yu5Lm1XTQ6M/2vpyuxsRLkuG0+9k=  0f2a98b2
acme.lane-3     2 (1 to 2)     2     bxqTBXA2ue0Wcf39Z+Qb22StsfyP05r35gPxd930C1w=  a1ddfdc2
acme.lane-4095  0              5     h8SSdBVbo9PM1lCb6FNidEU/0s6UxMOLddcodgXOAGs=  b61f2dfb
acme.head       17 (4 to 20)   20    yti2ZBBnfZVM8cgIFZUOlw6Bv177z+sVZEc90RWbtAs=  8e3a993e

The head is cosigned by witness.example/w4 at 2026-11-23T00:00:00.000Z
The head is cosigned by witness.example/w5 at 2026-11-24T00:00:00.000Z
Note: acme.lane-0: the head has no checkpoint of the receipts 20 to 22 yet; only the lane's own has them
Note: acme.lane-1: the receipts 1 to 7 were deleted; the head records that retention did it
Note: acme.lane-2: the receipts up to 17 are older than the log
Note: acme.lane-2: the receipts 18 to 23 were deleted; the head records that retention did it
Note: acme.lane-3: the head has no checkpoint of this lane yet
Note: acme.lane-4095: the receipts 1 to 5 were deleted; the head records that retention did it
Note: acme.head: the receipts 1 to 3 were deleted; nothing records that retention did it
Note: acme.head: audit events of registry changes that are gone: 1; the tree has their hashes";
    assert_eq!((report.shown().as_str(), report.verified), (expected, true));
    let json = serde_json::to_value(&report).unwrap();
    let logs = &json["logs"];
    let key = vkey(&lane(2), KEY);
    assert_eq!(
        logs[2],
        json!({
            "log": "acme.lane-2", "receipts": 20, "first_receipt": 24, "last_receipt": 43, "size": 26,
            "root": "1tZX3iH+j6WHZ20Yu5Lm1XTQ6M/2vpyuxsRLkuG0+9k=", "keys": [key],
        })
    );
    assert_eq!((&logs[4]["first_receipt"], &logs[4]["receipts"]), (&Value::Null, &json!(0)));
    let cosignature =
        json!({"witness": "witness.example/w4", "cosigned_at": "2026-11-23T00:00:00.000Z"});
    assert_eq!(json["cosignatures"][0], cosignature);
    assert_eq!((&json["verified"], &json["faults"]), (&json!(true), &json!([])));
}

#[test]
fn long_random_histories_verify() {
    for seed in 0..8 {
        let eventful = seed % 2 == 0;
        let history = History { seed, receipts: 500, lanes: 5, between: 1 + seed, eventful };
        let lines = history.lines();
        let report = verified(&lines);
        assert!(report.verified, "{seed}: {:?}", report.faults);
        let receipts: u64 = report.logs.iter().map(|log| log.receipts).sum();
        let entries = lines.iter().filter(|line| matches!(line, Line::Entry { .. })).count();
        assert_eq!(receipts, entries as u64, "{seed}");
    }
}

#[test]
fn sealing_a_true_export_again_changes_nothing() {
    let lines = EVENTFUL.lines();
    let mut forgery = Forgery(lines.clone());
    forgery.reseal();
    assert!(forgery.0 == lines);
}

#[test]
fn every_tampering_is_found_where_it_is() {
    let mut wrong = Vec::new();
    for tampering in tamperings() {
        let mut forgery = Forgery(EVENTFUL.lines());
        (tampering.tamper)(&mut forgery);
        let report = verified(&forgery.0);
        let found = report.faults.first().map(ToString::to_string).unwrap_or_default();
        if report.verified || !found.starts_with(&format!("{}: ", tampering.found)) {
            wrong.push(format!("{}: expected {}, found {found}", tampering.name, tampering.found));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_help_says_cannot_be_detected_is_not_detected() {
    for Tampering { name, tamper, .. } in UNDETECTED {
        let mut forgery = Forgery(EVENTFUL.lines());
        tamper(&mut forgery);
        let report = verified(&forgery.0);
        assert!(report.verified, "{name}: {:?}", report.faults);
    }
}

#[test]
fn a_lost_row_is_a_fault_but_everything_else_is_verified() {
    let mut lines = EVENTFUL.lines();
    let lose = |lines: &mut Vec<Line>, numbers: &[u64]| {
        let mut forgery = Forgery(std::mem::take(lines));
        numbers.iter().for_each(|number| forgery.lose(&lane(0), *number));
        *lines = forgery.0;
    };
    lose(&mut lines, &[2, 3, 6, 22]);
    let report = verified(&lines);
    let faults: Vec<_> = report
        .faults
        .iter()
        .map(|it| (it.fault, it.first_receipt, it.last_receipt, it.line))
        .collect();
    let lost = |from, to, line| (Kind::MissingReceipt, Some(from), Some(to), line);
    assert_eq!(faults, [lost(2, 3, 14), lost(6, 6, 33), lost(22, 22, 84)]);
    assert!(!report.verified);
    assert_eq!((report.logs.len(), report.logs[0].receipts, report.logs[0].size), (6, 18, 22));

    // A later fault of another kind is found too, and then nothing is said of the rest.
    let mut forgery = Forgery(lines);
    let at = forgery.at(&lane(2), 40);
    forgery.edit(at, |body| body["agent"] = json!("mallory"));
    let report = verified(&forgery.0);
    let kinds: Vec<_> = report.faults.iter().map(|it| it.fault).collect();
    assert_eq!(kinds, [Kind::MissingReceipt, Kind::MissingReceipt, Kind::BrokenLink]);
    assert!(report.logs.is_empty() && report.notes.is_empty());
}

/// A pretended deletion is found only at the end of the head.
#[test]
fn faults_are_in_the_order_of_their_lines() {
    let mut forgery = Forgery(EVENTFUL.lines());
    forgery.prune(&lane(3), 2);
    forgery.lose(&lane(0), 5);
    forgery.lose(&lane(0), 22);
    let report = verified(&forgery.0);
    let kinds: Vec<_> = report.faults.iter().map(|it| it.fault).collect();
    let expected = [Kind::MissingReceipt, Kind::UnrecordedPruning, Kind::MissingReceipt];
    assert_eq!(kinds, expected, "{:?}", report.faults);
}

#[test]
fn only_so_many_lost_rows_are_listed() {
    let history = History { seed: 5, receipts: 400, lanes: 1, between: 9, eventful: false };
    let mut forgery = Forgery(history.lines());
    (2..=300).step_by(2).for_each(|number| forgery.lose(&lane(0), number));
    let report = verified(&forgery.0);
    assert_eq!((report.faults.len(), report.unlisted_faults), (100, 50));
    assert!(report.shown().contains("… and 50 more lost rows"), "{}", report.shown());
}

#[test]
fn of_several_signatures_that_do_not_hold_the_first_is_found_each_time() {
    for _ in 0..50 {
        let mut forgery = Forgery(EVENTFUL.lines());
        for number in [45, 50, 54, 70] {
            let note = forgery.embedded(number).replace("A", "B");
            forgery.embed(number, &note);
        }
        // A lost row before it, one after it, and what is found only at the end, but is in an earlier line.
        forgery.lose(&lane(0), 5);
        forgery.lose(&lane(2), 43);
        forgery.prune(&lane(3), 2);
        let found = verified(&forgery.0).faults;
        let lines: Vec<_> = found.iter().map(|it| (it.fault, it.line)).collect();
        let expected = [(Kind::MissingReceipt, 32), (Kind::InvalidCheckpoint, 45)];
        assert_eq!(lines, expected, "{found:?}");
    }
}

#[test]
fn each_key_that_signed_is_needed_and_each_witness_must_have_cosigned() {
    let text = text(&EVENTFUL.lines());
    let found = |keys: &[u8], witnesses: &[u8]| {
        let report = verify(text.as_bytes(), &trusting(keys, witnesses)).unwrap();
        report.faults.first().map(ToString::to_string).unwrap_or_default()
    };
    for (keys, witnesses, expected) in [
        (&[KEY, OLD_KEY][..], &WITNESSES[..], ""),
        (&[OLD_KEY, KEY, KEY, 9], &[5, 4, 5], ""),
        (&[KEY, OLD_KEY], &[], ""),
        (&[KEY], &WITNESSES, "invalid_checkpoint: acme.head, receipt 4, line 3: "),
        (&[OLD_KEY], &WITNESSES, "invalid_checkpoint: acme.head, receipt "),
        (&[9], &WITNESSES, "invalid_checkpoint: acme.head, receipt 4, line 3: "),
        (
            &[KEY, OLD_KEY],
            &[4, 9],
            "missing_cosignature: acme.head, line 90: the witness `witness.example/w9`",
        ),
    ] {
        let found = found(keys, witnesses);
        let same = found.is_empty() == expected.is_empty() && found.starts_with(expected);
        assert!(same, "{keys:?} {witnesses:?}: {found}");
    }
    let others = verify(text.as_bytes(), &trusting(&[KEY, OLD_KEY], &[])).unwrap();
    let shown = others.shown();
    for note in [
        "cosignatures of witnesses that were not given, and not checked: 2",
        "no witness was given: the key's holder could have shown others another log",
    ] {
        assert!(shown.contains(note), "{shown}");
    }
}

#[test]
fn epochs_without_a_registry_event_are_reported() {
    let history = History { seed: 4, receipts: 400, lanes: 1, between: 3, eventful: false };
    let notes = |forgery: &Forgery| {
        let export = text(&forgery.0);
        let report = verify(export.as_bytes(), &trusting(&[KEY], &[])).unwrap();
        assert!(report.verified, "{:?}", report.faults);
        let notes = report.notes.into_iter().map(|it| it.note);
        notes.filter(|note| note.starts_with("epochs")).collect::<Vec<_>>()
    };
    let mut forgery = Forgery(history.lines());
    assert!(notes(&forgery).is_empty());
    // The head never got these. What it got before the first event is not known.
    for epoch in [1, 3, 4, 6] {
        let id = format!("registry.{epoch}\\\"");
        let at = forgery.find(&["registry_event", &id]);
        forgery.0.drain(at..at + 2);
    }
    forgery.reseal();
    forgery.sign(&head(), &[KEY]);
    let seq = forgery.0[forgery.find(&["registry_event", "registry.5\\\""])].body().unwrap()["seq"]
        .clone();
    let expected = format!(
        "epochs of the registry without an event: 3, the first is 3, before receipt {seq}; nothing records why"
    );
    assert_eq!(notes(&forgery), [expected]);

    // An event that the head has twice skips nothing.
    let mut forgery = Forgery(history.lines());
    let at = forgery.find(&["registry_event", "registry.2\\\""]);
    let twice = forgery.0[at..at + 2].to_vec();
    let at = forgery.find(&["registry_event", "registry.3\\\""]);
    forgery.0.splice(at + 2..at + 2, twice);
    forgery.reseal();
    forgery.sign(&head(), &[KEY]);
    assert!(notes(&forgery).is_empty());
}

/// What the holder of the key does is found only with a witness.
#[test]
fn another_log_that_the_key_signs_is_not_cosigned() {
    let mut forgery = Forgery(EVENTFUL.lines());
    forgery.edit(32, |body| body["agent"] = json!("mallory"));
    forgery.reseal();
    forgery.sign(&lane(0), &[KEY]);
    forgery.reseal();
    forgery.sign(&head(), &[KEY]);
    let text = text(&forgery.0);
    assert!(verify(text.as_bytes(), &trusting(&[KEY, OLD_KEY], &[])).unwrap().verified);
    let report = verify(text.as_bytes(), &trust()).unwrap();
    assert_eq!(report.faults[0].fault, Kind::MissingCosignature);
}

/// Nothing of an export goes unread: each byte is a part of what is verified, or of no meaning.
#[test]
fn a_changed_byte_is_a_fault_or_changes_nothing_that_is_verified() {
    let original = text(&SMALL.lines()).into_bytes();
    let expected = verify(&original[..], &trust()).unwrap();
    assert!(expected.verified, "{:?}", expected.faults);
    let mut random = Random(7);
    let mut without_meaning = 0;
    for at in 0..original.len() {
        let mut changed = original.clone();
        match random.below(4) {
            0 => drop(changed.remove(at)),
            1 => changed.insert(at, random.next() as u8),
            2 => changed[at] ^= 1 << random.below(8),
            _ => changed[at] = b" \"\\{}[]:,0123456789abcdef+/=\n"[random.below(28) as usize],
        }
        let report = verify(&changed[..], &trust()).unwrap();
        if report.verified {
            assert_eq!(report, expected, "byte {at}");
            without_meaning += usize::from(changed != original);
        }
    }
    // The export's time, and spaces between tokens.
    assert!(without_meaning < original.len() / 50, "{without_meaning} of {}", original.len());
}

proptest! {
    #[test]
    fn garbage_is_a_fault_and_never_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in 0..91_usize,
        cut in any::<prop::sample::Index>(),
        kept in any::<bool>(),
    ) {
        let lines = EVENTFUL.lines();
        let mut export = text(&lines[..at]).into_bytes();
        let line = lines[at].text().into_bytes();
        // Within the line, or instead of its end.
        let cut = cut.index(line.len());
        export.extend(&line[..cut]);
        export.extend(&bytes);
        if kept {
            export.extend(&line[cut..]);
            export.push(b'\n');
            export.extend(text(&lines[at + 1..]).into_bytes());
        }
        let blank = bytes.iter().all(|byte| b" \t\r".contains(byte));
        let report = verify(&export[..], &trust()).unwrap();
        prop_assert!(!report.verified || blank && kept || (at == 90 && blank));
    }
}

struct Exported(PathBuf);

impl Exported {
    fn new(name: &str, text: &str) -> Self {
        let file = std::env::temp_dir().join(format!("gateward-{name}-{}", std::process::id()));
        fs::write(&file, text).unwrap();
        Self(file)
    }

    fn verify(&self, options: &[&str]) -> (Option<i32>, String, String) {
        let key = vkey(&head(), KEY);
        let output = Command::new(env!("CARGO_BIN_EXE_gateward"))
            .args(["verify", &self.0.display().to_string(), "--key", &key])
            .args(options)
            .output()
            .unwrap();
        printed(output)
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn printed(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_says_what_is_wrong_and_exits_with_1() {
    let old = vkey(&head(), OLD_KEY);
    let witness = witness(4).2;
    let options = ["--key", &old, "--witness", &witness];
    let lines = EVENTFUL.lines();
    let export = Exported::new("true", &text(&lines));
    let (status, shown, errors) = export.verify(&options);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{shown}");
    assert!(shown.contains("The head is cosigned by witness.example/w4 at"), "{shown}");

    let mut forgery = Forgery(lines);
    forgery.edit(32, |body| body["agent"] = json!("mallory"));
    forgery.reseal();
    let export = Exported::new("tampered", &text(&forgery.0));
    let (status, shown, errors) = export.verify(&options);
    let found = "wrong_root: acme.lane-0, receipts 5 to 14, line 50: the signed checkpoint is of a tree with other \
                 receipts: at least one of these was changed, added, removed or moved\n";
    let failed = "gateward: the export does not verify\n";
    assert_eq!((status, &*shown, &*errors), (Some(1), found, failed));
    let (status, json, errors) = export.verify(&[&options[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&json).unwrap();
    let expected = json!({
        "verified": false, "unlisted_faults": 0, "logs": [], "cosignatures": [], "notes": [],
        "faults": [{
            "fault": "wrong_root", "log": "acme.lane-0", "first_receipt": 5, "last_receipt": 14,
            "line": 50, "detail": found.trim().split_once("line 50: ").unwrap().1,
        }],
    });
    assert_eq!((status, &report, &*errors), (Some(1), &expected, failed));
}

#[test]
fn an_export_can_come_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gateward"))
        .args(["verify", "-", "--key", &vkey(&head(), KEY)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text(&SMALL.lines()).as_bytes()).unwrap();
    let (status, shown, _) = printed(child.wait_with_output().unwrap());
    assert_eq!(status, Some(0), "{shown}");
}

#[test]
fn text_of_an_export_does_not_command_the_terminal() {
    let hostile = "\\u001b[2J\\u202e\\u009b";
    for line in [
        format!("{{\"type\":\"{hostile}\"}}"),
        format!("{{\"type\":\"end\",\"entries\":0,\"{hostile}\":1}}"),
        format!("{{\"type\":\"checkpoint\",\"log\":\"{hostile}\",\"note\":\"\"}}"),
        format!("{{\"type\":\"{}\"}}", "x".repeat(LINE_BYTES_MAX as usize - 20)),
    ] {
        let export = text(&EVENTFUL.lines()[..2]) + &line + "\n";
        let export = Exported::new("hostile", &export);
        for json in [&[][..], &["--json"]] {
            let (status, shown, errors) = export.verify(json);
            assert_eq!(status, Some(1), "{shown}");
            let control = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
            assert!(!shown.contains(control) && !errors.contains(control), "{shown:?}");
            assert!(shown.len() < 5_000, "{} bytes", shown.len());
        }
    }
}

#[test]
fn what_makes_no_sense_is_a_mistake_of_usage() {
    let export = Exported::new("usage", "");
    let (lane_key, witness, log_key) = (vkey(&lane(0), KEY), witness(4).2, vkey(&head(), KEY));
    let other = log_key.replace(TENANT, "evil");
    for options in [
        &["--key", "no key"][..],
        &["--key", &other],
        &["--key", &lane_key],
        &["--key", &witness],
        &["--witness", &log_key],
        &["--witness", "no key"],
    ] {
        let (status, _, errors) = export.verify(options);
        assert_eq!(status, Some(2), "{options:?}: {errors}");
    }
    let absent = Exported(std::env::temp_dir().join("gateward-there-is-no-such-export"));
    let (status, _, errors) = absent.verify(&[]);
    assert_eq!(status, Some(1), "{errors}");
}
