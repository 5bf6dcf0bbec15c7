//! Measures `gateward verify` on a million receipts: seconds, and the peak of its memory.
//!
//! `cargo run --release -p gateward --example verify-million [RECEIPTS [RECEIPTS_BETWEEN_CHECKPOINTS]]`
//!
//! The export is written to `target/`. It is verified by a process of its own, so that the memory is that of the
//! verification.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a measurement, which nobody ships")]

#[path = "../tests/exports/mod.rs"]
mod exports;

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use exports::history::History;
use exports::keys::{KEY, TENANT, vkey};
use gateward::verify::{Trust, verify};
use gateward_core::tlog::VerifierKey;

/// The word that makes this program verify instead of measure.
const VERIFY: &str = "verify";

fn main() {
    let program = std::env::current_exe().unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, export] = &arguments[..]
        && word == VERIFY
    {
        return measure(Path::new(export));
    }
    let number = |at: usize, default| arguments.get(at).map_or(default, |it| it.parse().unwrap());
    let (receipts, between) = (number(0, 1_000_000), number(1, 20));
    let export = program.ancestors().nth(3).unwrap().join("verify-million.ndjson");
    let mut file = BufWriter::new(File::create(&export).unwrap());
    History { seed: 1, receipts, lanes: 4, between, eventful: false }
        .write(&mut |line| writeln!(file, "{}", line.text()).unwrap());
    file.flush().unwrap();
    let megabytes = fs::metadata(&export).unwrap().len() / 1_000_000;
    println!("{receipts} receipts, a checkpoint for each {between}: {megabytes} MB");
    assert!(Command::new(program).arg(VERIFY).arg(export).status().unwrap().success());
}

fn measure(export: &Path) {
    let key = VerifierKey::parse(&vkey(&format!("{TENANT}.head"), KEY)).unwrap();
    let trust = Trust::new(vec![key], Vec::new()).unwrap();
    let begun = Instant::now();
    let input = BufReader::with_capacity(256 * 1024, File::open(export).unwrap());
    let report = verify(input, &trust).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    assert!(report.verified, "{}", report.shown());
    let receipts: u64 = report.logs.iter().map(|log| log.receipts).sum();
    println!("verified {receipts} receipts with the head's in {seconds:.2} s");
    if let Ok(status) = fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))
    {
        println!("peak of memory: {}", peak.trim());
    }
}
