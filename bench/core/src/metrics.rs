//! What metrics add to a decision, and what a scrape costs.

use std::cell::RefCell;
use std::hint::black_box;

use gateward_core::metrics::{CountedDecision, CounterRow, KeyHash, Scrape, ShownNames};
use gateward_core::provenance::ValueKey;

use crate::operation::{GATEWARD, Operation};

/// The rows of a tenant with some forty tools.
const ROWS: usize = 160;

const KEY_ID: &str = "k_3f9a0c41d2e8b765";

pub fn operations() -> Vec<Operation> {
    vec![
        // What the row of a decision has for metrics, with the hash of the key id. The reference is
        // `sha256_32b_portable`.
        Operation::new("metrics_record", GATEWARD, || {
            let key = ValueKey::new([7; 16]);
            let recorded = String::from_utf8(record(Vec::new(), &key, KEY_ID)).unwrap();
            assert!(recorded.starts_with('[') && recorded.ends_with(",2]"));
            // The row's own buffer, which a decision needs in any case.
            let row = RefCell::new(Vec::with_capacity(256));
            move || {
                let mut buffer = row.take();
                buffer.clear();
                row.replace(record(buffer, black_box(&key), black_box(KEY_ID)));
                row.borrow().len()
            }
        }),
        Operation::new("metrics_render_160_rows", GATEWARD, || {
            let scrape = Scrape { counters: (0..ROWS).map(row).collect(), lanes: Vec::new() };
            let text = scrape.render(0).unwrap();
            assert_eq!(text.matches("gateward_decisions_total{").count(), ROWS);
            move || black_box(&scrape).render(0)
        }),
    ]
}

fn record(mut row: Vec<u8>, key: &ValueKey, key_id: &str) -> Vec<u8> {
    let credential = KeyHash::new(key.hash(key_id.as_bytes()));
    let counted = CountedDecision::new(credential, ShownNames::ServerAndTool);
    // Plain data always serializes.
    serde_json::to_writer(&mut row, &counted).unwrap_or_default();
    row
}

fn row(number: usize) -> CounterRow {
    CounterRow {
        tenant: "demo".to_owned(),
        metric: "decisions".to_owned(),
        labels: r#"["allow","policy_allow"]"#.to_owned(),
        names: format!(r#"["github","tool_{number}"]"#),
        count: 1_234,
        sum: 0,
    }
}
