//! Searches for the text that costs the shield most, as a multiple of ordinary text of the same length:
//! `cargo run --release -p gateward-core --example shield_worst_case -- [rounds]`.
//!
//! A candidate repeats a few fragments. They are characters with a meaning, and parts of the texts that rules match. Each
//! round makes candidates of the fragments of the most expensive ones so far.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "it fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use gateward_core::json::Json;
use gateward_core::provenance::ValueKey;
use gateward_core::shield::Shield;
use proptest::collection::vec;
use proptest::sample::select;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

const KEY: ValueKey = ValueKey::new([7; 16]);
/// Bytes of a text while searching, and of the texts that are shown.
const SEARCHED_BYTES: usize = 8_192;
const SHOWN_BYTES: usize = 65_536;
/// Bytes of the leaves into which a candidate is cut.
const LEAF_BYTES: [usize; 5] = [6, 40, 300, 5_000, SHOWN_BYTES];
const CANDIDATES: usize = 4_000;
const KEPT: usize = 60;
const SHOWN: usize = 12;
const MAX_FRAGMENTS: usize = 5;
const MAX_FRAGMENT_BYTES: usize = 40;

const CHARACTERS: &str =
    " \n\t.,:;!?\"'`()[]{}<>=+-*/\\|&%$#@^~_0a1xXeEoO é\u{430}\u{200b}\u{ff1c}\u{3b1}";
const ORDINARY: &str = "The build of the web client fails since Tuesday: `cargo test -p web` stops in src/client.rs, \
    line 42, with an error that O'Brien saw too (see https://ci.example/runs/8812?job=3). ";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    fragments: Vec<String>,
    leaf_bytes: usize,
}

impl Candidate {
    fn value(&self, bytes: usize) -> Json {
        let text = self.fragments.concat();
        let leaf = text.repeat(self.leaf_bytes.min(bytes) / text.len() + 1);
        // A leaf of a JSON text also has two quotes and a comma.
        Json::Array(vec![Json::String(leaf.clone()); (bytes / (leaf.len() + 3)).max(1)])
    }
}

/// The shortest of some times, for each byte of JSON text.
fn ns_per_byte(shield: &Shield, value: &Json, times: usize) -> f64 {
    let timed = |_| {
        let begun = Instant::now();
        let _ = shield.inspect("", &KEY, ("", value, &Json::Null), None);
        begun.elapsed()
    };
    let shortest = (0..times).map(timed).min().unwrap_or(Duration::ZERO);
    let Json::Array(leaves) = value else { unreachable!() };
    let bytes: usize = leaves.iter().map(|leaf| leaf.as_str().unwrap().len() + 3).sum();
    shortest.as_secs_f64() * 1e9 / bytes as f64
}

/// The characters, and the examples and literals of all rules, cut into parts.
fn fragments() -> Vec<String> {
    let mut all: BTreeSet<String> = CHARACTERS.chars().map(String::from).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies/shield");
    for entry in fs::read_dir(folder).unwrap() {
        let rules = fs::read_to_string(entry.unwrap().path()).unwrap();
        let rules: serde_json::Value = serde_json::from_str(&rules).unwrap();
        texts_of(&rules["rules"], &mut all);
    }
    all.into_iter().collect()
}

fn texts_of(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::String(text) => {
            into.extend(text.split_inclusive([' ', '=', '(', '/']).map(shortened));
            into.insert(shortened(text));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts_of(item, into)),
        serde_json::Value::Object(fields) => fields.values().for_each(|item| texts_of(item, into)),
        _ => {}
    }
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_FRAGMENT_BYTES)].to_owned()
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(4, |rounds| rounds.parse().unwrap());
    let shield = Shield::new(gateward_policies::bundle().shield);
    let ordinary = Candidate { fragments: vec![ORDINARY.to_owned()], leaf_bytes: SHOWN_BYTES };
    let usual = ns_per_byte(&shield, &ordinary.value(SHOWN_BYTES), 50);
    println!("ordinary text: {usual:.1} ns a byte");

    let mut runner = TestRunner::deterministic();
    let mut from = fragments();
    let mut best: Vec<(f64, Candidate)> = Vec::new();
    for round in 1..=rounds {
        let candidates = (vec(select(from.clone()), 1..=MAX_FRAGMENTS), select(&LEAF_BYTES[..]))
            .prop_map(|(fragments, leaf_bytes)| Candidate { fragments, leaf_bytes });
        for _ in 0..CANDIDATES {
            let candidate = candidates.new_tree(&mut runner).unwrap().current();
            if candidate.fragments.concat().is_empty() {
                continue;
            }
            let ratio = ns_per_byte(&shield, &candidate.value(SEARCHED_BYTES), 2) / usual;
            if !best.iter().any(|(_, known)| *known == candidate) {
                best.push((ratio, candidate));
            }
        }
        best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        best.truncate(2 * KEPT);
        // Some were only disturbed.
        for (ratio, candidate) in &mut best {
            *ratio = ns_per_byte(&shield, &candidate.value(SEARCHED_BYTES), 10) / usual;
        }
        best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        best.truncate(KEPT);
        // Half of the next texts are new. So the search does not end at the first text that is dearer than its neighbours.
        let mut next: Vec<String> = best.iter().flat_map(|(_, it)| it.fragments.clone()).collect();
        let all = fragments();
        let step = (all.len() / next.len().max(1)).max(1);
        next.extend(all.into_iter().skip(round % step).step_by(step));
        from = next;
        println!("round {round}: {:.1} times", best[0].0);
    }
    for (_, candidate) in best.iter().take(SHOWN) {
        let ratio = ns_per_byte(&shield, &candidate.value(SHOWN_BYTES), 7) / usual;
        let Candidate { fragments, leaf_bytes } = candidate;
        println!("{ratio:5.1} times, leaves of {leaf_bytes}: {:?}", fragments.concat());
    }
}
