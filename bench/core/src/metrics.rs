//! What metrics add to a decision, and what a scrape costs.

use std::cell::RefCell;
use std::hint::black_box;

use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::metrics::{CounterRow, KeyHash, Scrape, Series};
use gateward_core::provenance::ValueKey;

use crate::operation::{GATEWARD, Operation};

/// The rows of a tenant with some forty tools.
const ROWS: usize = 160;

const KEY_ID: &str = "k_3f9a0c41d2e8b765";

pub fn operations() -> Vec<Operation> {
    vec![
        // What the row of a decision has: its series as text, with the hash of the key id. The reference is
        // `sha256_32b_portable`.
        Operation::new("metrics_record", GATEWARD, || {
            let key = ValueKey::new([7; 16]);
            let expected = concat!(
                r#"["decisions",["allow","policy_allow"],["github","list_issues"]]"#,
                r#"["credential_decisions",["allow"],["kh_"#,
            );
            assert!(record(&mut String::new(), &key, KEY_ID).starts_with(expected));
            // The row's own buffer, which a decision needs in any case.
            let row = RefCell::new(String::with_capacity(256));
            move || {
                let row = &mut *row.borrow_mut();
                row.clear();
                record(row, black_box(&key), black_box(KEY_ID)).len()
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

fn record<'a>(row: &'a mut String, key: &ValueKey, key_id: &str) -> &'a str {
    let (decision, reason) = (Decision::Allow, ReasonCode::PolicyAllow);
    let credential = KeyHash::new(key.hash(key_id.as_bytes()));
    let series = [
        Series::Decision { decision, reason, server: "github", tool: "list_issues" },
        Series::CredentialDecision { decision, credential },
    ];
    series.iter().for_each(|series| series.push(row));
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
