//! The cost of reading the values of a result, and of looking up a sink.

use std::hint::black_box;

use gateward_core::json::Json;
use gateward_core::provenance::extract;
use gateward_core::provenance::lookup::{self, Found};
use gateward_core::provenance::part::{MAX_READ_BYTES, Part};
use gateward_core::provenance::result::MAX_RESULT_VALUES;
use gateward_core::provenance::{Destinations, Hashes, Level, ValueKey};

use crate::operation::{GATEWARD, Operation};

const KEY: ValueKey = ValueKey::new([7; 16]);

/// Bytes of an ordinary large answer.
const ANSWER_BYTES: usize = 64 * 1024;

/// Values that a run holds.
const HELD: usize = 10_000;

const PROSE: &str = "The quarterly review went well, and most of the open questions were answered during \
    the meeting. Alice Miller will send the remaining figures to the finance team before the end of the \
    week. Please have a look at the draft in the shared folder, and tell me whether the second chapter is \
    clear enough for readers who do not know the project.\n";

const YAML: &str = "- id: '26'\n  sender: emma.johnson@example.com\n  subject: Quarterly figures\n  \
    date: 2026-05-15 10:30\n  status: read\n  body: |\n    hello, the numbers are in the file below\n";

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::new("extract_text_64k", GATEWARD, || {
            let text = format!("{PROSE}{PROSE}{YAML}").repeat(1 + ANSWER_BYTES / 800);
            let text = text[..ANSWER_BYTES].to_owned();
            let observed = extract::result(&KEY, &[Part::whole(&text)], None, true);
            assert!(observed.trusted.len() > 20 && !observed.incomplete);
            move || extract::result(&KEY, &[Part::whole(black_box(&text))], None, true)
        }),
        Operation::new("lookup_sink_10000_values", GATEWARD, || {
            let value = |at: usize| Json::String(format!("user.{at}@example.com"));
            let hash = |at| lookup::hashes(&KEY, &value(at));
            let held: Hashes = (0..HELD).flat_map(hash).collect();
            assert_eq!(held.len(), HELD);
            let found = Found { level: Level::Trusted, source: None };
            let known = move |hash: u64| held.contains(&hash).then_some(found);
            let (sink, allowed) = (value(HELD / 2), Destinations::default());
            assert_eq!(lookup::sink(&KEY, (&sink, true), &allowed, &known), Some(found));
            move || lookup::sink(&KEY, (black_box(&sink), true), &allowed, &known)
        }),
    ]
}

/// A text in which every word is a value, and part of a name.
pub fn worst_case_text() -> String {
    let text: String = (0..MAX_READ_BYTES / 12).map(|at| format!("A{at:x}@x.io, B'C ")).collect();
    let text = text[..MAX_READ_BYTES].to_owned();
    assert_eq!(
        extract::result(&KEY, &[Part::whole(&text)], None, true).trusted.len(),
        MAX_RESULT_VALUES
    );
    text
}

/// Reads all values of a result.
pub fn extract(text: &str) -> usize {
    extract::result(&KEY, &[Part::whole(text)], None, false).untrusted.len()
}
