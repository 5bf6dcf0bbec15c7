//! Writes exports for other verifiers: true ones, and those of the table of tamperings.
//!
//! `cargo run -q -p gateward --example exports FOLDER`
//!
//! `FOLDER/cases.json` has the keys and witnesses to trust, and a list of cases: the file, what was done to it, and the
//! report of `gateward verify --json`, which has the fault that must be found first.

#![allow(clippy::unwrap_used, clippy::panic, reason = "writes files for tests")]

#[path = "../tests/exports/mod.rs"]
mod exports;

use std::fs;
use std::path::Path;

use exports::history::History;
use exports::keys::{KEY, OLD_KEY, WITNESSES, vkey, witness};
use exports::line::{Line, text};
use exports::tamper::{Forgery, head};
use exports::tampering::{EVENTFUL, Tampering, UNDETECTED, tamperings};
use gateward::verify::{Trust, verify};
use gateward_core::tlog::VerifierKey;
use serde_json::{Value, json};

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| panic!("usage: exports FOLDER"));
    let folder = Path::new(&folder);
    fs::create_dir_all(folder).unwrap();
    let keys = [KEY, OLD_KEY].map(|key| vkey(&head(), key));
    let witnesses = WITNESSES.map(|key| witness(key).2);
    let parse = |keys: &[String]| keys.iter().map(|key| VerifierKey::parse(key).unwrap()).collect();
    let trust = Trust::new(parse(&keys), parse(&witnesses)).unwrap();

    let long = History { seed: 1, receipts: 2_000, lanes: 6, between: 5, eventful: true };
    let plain = History { seed: 3, receipts: 2, lanes: 1, between: 1, eventful: false };
    let mut exports: Vec<(&str, Vec<Line>)> = vec![
        ("a true export", EVENTFUL.lines()),
        ("a true export of a long history", long.lines()),
        ("a true export of two receipts", plain.lines()),
    ];
    for Tampering { name, tamper, .. } in tamperings().chain(UNDETECTED) {
        let mut forgery = Forgery(EVENTFUL.lines());
        tamper(&mut forgery);
        exports.push((name, forgery.0));
    }
    let cases = exports.iter().enumerate().map(|(at, (name, lines))| -> Value {
        let (file, text) = (format!("{at:03}.ndjson"), text(lines));
        fs::write(folder.join(&file), &text).unwrap();
        let report = verify(text.as_bytes(), &trust).unwrap();
        json!({"file": file, "name": name, "report": report})
    });
    let cases: Vec<Value> = cases.collect();
    let document = json!({"keys": keys, "witnesses": witnesses, "cases": cases});
    fs::write(folder.join("cases.json"), format!("{document:#}\n")).unwrap();
    println!("{} exports in {}", exports.len(), folder.display());
}
