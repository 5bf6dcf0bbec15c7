//! Metrics, from the lane's rows and tallies to the sums in D1.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::collections::BTreeMap;

use crate::support::{self, Fault, Gate, START_MS, TENANT, command, read_call, tool, with};
use gateward_core::credential::token::secret_hash;
use gateward_core::lane::Lane;
use gateward_core::metrics::{
    BOUNDS, BatchMetrics, Ended, Metric, MetricBound, OTHER, Series, UNCOUNTED_DAYS, named,
};
use gateward_core::name::is_name;
use gateward_core::sql::d1;
use rusqlite::{Connection, params};
use serde_json::{Value as Json, json};

fn expect(gate: &Gate, expected: &[(&str, i64)]) {
    let found = gate.counters();
    for (series, count) in expected {
        assert_eq!(found.get(*series), Some(count), "{series}\n{found:#?}");
    }
}

const ALLOWED: &str = r#"decisions ["allow","policy_allow"] ["notes","list"]"#;
const LIMITED_SERIES: &str = r#"["limits_hit",["agent_rate"],[""]]"#;
const LIMITED: &str = r#"limits_hit ["agent_rate"] [""]"#;
const REFUSED: &str = r#"failed_authentications ["unauthorized"] []"#;
const FLUSH_ERRORS: &str = "flush_errors [] []";

/// A request with a wrong secret, which the lane only counts.
fn refused(gate: &Gate) {
    let mut command = command(&read_call());
    command.secret_hash = secret_hash("another");
    assert_eq!(gate.try_call(&command).unwrap().status, 401);
}

#[test]
fn a_decision_counts_by_its_names_and_a_name_that_is_not_registered_is_unknown() {
    let mut gate = Gate::new();
    gate.call(&read_call());
    gate.records.tool = None;
    gate.call(&with(read_call(), json!({"tool_call": {"action": "invented-1"}})));
    gate.call(&with(read_call(), json!({"tool_call": {"action": "invented-2"}})));
    gate.records.server = None;
    gate.call(&with(read_call(), json!({"tool_call": {"tool": "invented"}})));
    gate.flush_all();
    expect(
        &gate,
        &[
            (ALLOWED, 1),
            (r#"decisions ["deny","tool_unknown"] ["notes","unknown"]"#, 2),
            (r#"decisions ["deny","server_unknown"] ["unknown","unknown"]"#, 1),
        ],
    );
    let text: String = gate.counters().into_keys().collect();
    assert!(!text.contains("invented"), "{text}");
    // Neither the key id nor anything that can be computed from it alone.
    assert!(text.contains("credential_decisions") && !text.contains("k1"), "{text}");
}

#[test]
fn a_rotated_credential_keeps_its_name() {
    let mut gate = Gate::new();
    gate.call(&read_call());
    let mut rotated = command(&read_call());
    rotated.key_id = "k2".to_owned();
    gate.credential_mut().first_key_id = Some("k1".to_owned());
    gate.try_call(&rotated).unwrap();
    let credentials = |gate: &Gate| -> Vec<i64> {
        gate.flush_all();
        let found = gate.counters();
        let of_credentials = |series: &&String| series.starts_with("credential_decisions");
        found.keys().filter(of_credentials).map(|series| found[series]).collect()
    };
    assert_eq!(credentials(&gate), [2]);
    gate.credential_mut().first_key_id = None;
    gate.try_call(&rotated).unwrap();
    assert_eq!(credentials(&gate).len(), 2, "another credential");
}

#[test]
fn a_dry_run_counts_nothing() {
    let gate = Gate::new();
    gate.call(&with(read_call(), json!({"dry_run": true})));
    gate.flush_all();
    assert_eq!(gate.counters(), BTreeMap::new());
}

#[test]
fn a_write_counts_by_taint_and_provenance() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate.call(&with(read_call(), json!({"tool_call": {"mutates_state": true}})));
    gate.flush_all();
    let found = gate.counters();
    let writes: Vec<_> = found.iter().filter(|(series, _)| series.starts_with("writes")).collect();
    assert_eq!(writes.len(), 1, "{found:#?}");
    assert!(writes[0].0.contains(r#""false","none"] []"#), "{writes:?}");
}

#[test]
fn a_degraded_decision_counts_as_one() {
    let mut gate = Gate::new();
    gate.records.confirmed = false;
    gate.call(&read_call());
    gate.flush_all();
    expect(&gate, &[("degraded_decisions [] []", 1), (ALLOWED, 1)]);
}

#[test]
fn what_has_no_row_is_tallied_and_goes_on_after_an_eviction() {
    let gate = Gate::new();
    for round in 1..=3 {
        refused(&gate);
        gate.call(&read_call());
        gate.flush_all();
        gate.evict();
        expect(&gate, &[(REFUSED, round), (ALLOWED, round)]);
    }
}

#[test]
fn an_agent_over_its_rate_hits_its_limit() {
    let mut gate = Gate::new();
    gate.config.default_rate = gateward_core::bucket::Rate::new(1, 0.001);
    let statuses: Vec<u16> =
        (0..3).map(|_| gate.try_call(&command(&read_call())).unwrap().status).collect();
    assert_eq!(statuses, [200, 429, 429]);
    gate.flush_all();
    expect(&gate, &[(LIMITED, 2), (ALLOWED, 1)]);
}

/// Each fault, at each batch, and then more rows before the batch is repeated.
#[test]
fn a_batch_that_is_repeated_counts_once() {
    for fault in [Fault::Failed, Fault::Lost] {
        for evicted in [false, true] {
            let gate = Gate::new();
            for round in 0..4 {
                for _ in 0..3 {
                    gate.call(&read_call());
                    refused(&gate);
                }
                if round % 2 == 0 {
                    assert!(gate.flush(Some(fault)).is_err());
                    if evicted {
                        gate.evict();
                    }
                }
                gate.call(&read_call());
            }
            gate.flush_all();
            gate.flush_all();
            let context = format!("{fault:?} {evicted}");
            let found = gate.counters();
            assert_eq!(found.get(ALLOWED), Some(&16), "{context}\n{found:#?}");
            let failed = found.get(REFUSED);
            assert_eq!(failed, Some(&12), "{context}\n{found:#?}");
        }
    }
}

/// A lane tells D1 of a series once, and again after each start. D1 counts the same in both cases.
#[test]
fn a_series_that_d1_was_told_of_goes_on() {
    let mut gate = Gate::new();
    let has_new = |gate: &Gate| {
        let now_ms = gate.now_ms.get();
        let batch = gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, now_ms));
        batch.unwrap().unwrap().has_new_series
    };
    gate.call(&read_call());
    assert!(has_new(&gate), "after a start");
    // A batch that D1 did not get is no news to the lane.
    assert!(gate.flush(Some(Fault::Failed)).is_err());
    assert!(has_new(&gate));
    gate.flush_all();
    gate.call(&read_call());
    assert!(!has_new(&gate));
    gate.flush_all();
    gate.records.tool = None;
    gate.call(&read_call());
    assert!(has_new(&gate), "another series");
    gate.flush_all();
    refused(&gate);
    assert!(!has_new(&gate), "a total without a name");
    gate.flush_all();
    gate.evict();
    gate.call(&read_call());
    assert!(has_new(&gate), "after another start");
    gate.flush_all();
    expect(&gate, &[(ALLOWED, 2), (r#"decisions ["deny","tool_unknown"] ["notes","unknown"]"#, 2)]);
}

/// D1 is restored to a state without the lane's newest receipts, series and totals. Rows that it had lost are not counted
/// again, but whatever comes later is, and the totals are complete.
#[test]
fn a_restored_d1_is_told_of_all_series_again() {
    let mut gate = Gate::new();
    gate.call(&read_call());
    refused(&gate);
    gate.flush_all();
    let tables = ["receipts", "lane_flushes", "metric_counters"];
    for table in tables {
        let copy = format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}");
        gate.database.execute(&copy, []).unwrap();
    }
    let known = gate.records.tool.take();
    gate.call(&read_call());
    refused(&gate);
    gate.flush_all();
    for table in tables {
        let restore =
            format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}");
        gate.database.execute_batch(&restore).unwrap();
    }
    // The first batch has one of the series, the second has the other one.
    gate.records.tool = known;
    gate.call(&read_call());
    gate.flush_all();
    gate.records.tool = None;
    gate.call(&read_call());
    gate.flush_all();
    expect(
        &gate,
        &[
            (ALLOWED, 2),
            (r#"decisions ["deny","tool_unknown"] ["notes","unknown"]"#, 1),
            (REFUSED, 2),
        ],
    );
}

#[test]
fn a_lane_that_lost_its_totals_takes_nothing_back() {
    let gate = Gate::new();
    refused(&gate);
    refused(&gate);
    gate.flush_all();
    gate.storage.connection.execute("DELETE FROM meta WHERE name = 'tallies'", []).unwrap();
    gate.evict();
    refused(&gate);
    gate.flush_all();
    expect(&gate, &[(REFUSED, 2)]);
}

/// Adds to metrics as a flush does that tells D1 of all its series. An entry is a series and its rows.
fn flush_metrics(database: &Connection, tenant: &str, lane: u16, entries: &Json, totals: &Json) {
    let entries = entries.as_array().unwrap();
    let column = |at: usize| entries.iter().map(|entry| entry[at].clone()).collect::<Vec<_>>();
    let (series, rows) = (json!(column(0)).to_string(), json!(column(1)).to_string());
    let counts: Vec<usize> = column(1).iter().map(|rows| rows.as_array().unwrap().len()).collect();
    let all = column(0).into_iter().map(|series| series.to_string());
    let all = all.chain(totals.as_object().unwrap().keys().cloned());
    let metrics = BatchMetrics {
        named: all.filter_map(|series| named(&series)).collect(),
        ..BatchMetrics::default()
    };
    let added = params![tenant, metrics.named_series()];
    database.execute(d1::ADD_SERIES, added).unwrap();
    let totals = params![tenant, lane, totals.to_string()];
    database.execute(d1::COUNT_TOTALS, totals).unwrap();
    let counts = json!(counts).to_string();
    let counted = params![tenant, lane, series, counts, rows, 1, None::<i64>];
    database.execute(d1::COUNT_ROWS, counted).unwrap();
}

fn decisions(numbers: std::ops::Range<usize>) -> Json {
    let series =
        |number| json!(["decisions", ["allow", "policy_allow"], ["s", format!("t{number}")]]);
    numbers.map(|number| json!([series(number), [number + 1]])).collect()
}

#[test]
fn a_batch_that_d1_commits_late_counts_nothing_twice() {
    let gate = Gate::new();
    let flush = |number: u64, total: u64| {
        let totals = json!({LIMITED_SERIES: total});
        flush_metrics(&gate.database, TENANT, 0, &json!([]), &totals);
        let report = json!({"number": number, "epoch": 1, "totals": totals}).to_string();
        let values = params![TENANT, 0, 0, START_MS as i64 + number as i64, report, None::<i64>];
        gate.database.execute(d1::FLUSHED_THROUGH, values).unwrap();
    };
    // The lane gave up on the second batch and sent the third. D1 commits the second one after the third.
    [(1, 3), (3, 12), (2, 10), (4, 13)]
        .into_iter()
        .for_each(|(number, total)| flush(number, total));
    expect(&gate, &[(LIMITED, 13)]);
}

#[test]
fn series_with_names_are_bounded_and_the_rest_is_other() {
    let gate = Gate::new();
    let most = bound_of(Metric::Decisions).names_max;
    // In two flushes. The second one exceeds the bound.
    let first = most - 10;
    flush_metrics(&gate.database, TENANT, 0, &decisions(0..first), &json!({}));
    let more = decisions(first - 5..most + 20);
    flush_metrics(&gate.database, TENANT, 0, &more, &json!({}));
    let found = gate.counters();
    assert_eq!(found.len(), most + 1);
    assert_eq!(found[&format!(r#"decisions ["allow","policy_allow"] ["{OTHER}"]"#)], 20);
    let old = format!(r#"decisions ["allow","policy_allow"] ["s","t{}"]"#, first - 1);
    assert_eq!(found[&old], 2, "a series that exists goes on");
    // Another tenant, and another metric, have bounds of their own.
    flush_metrics(&gate.database, "other", 0, &decisions(0..1), &json!({}));
    let limit = json!({json!(["limits_hit", ["rate"], ["a\"b"]]).to_string(): 3});
    flush_metrics(&gate.database, TENANT, 0, &json!([]), &limit);
    expect(&gate, &[(r#"limits_hit ["rate"] ["a\"b"]"#, 3)]);
    let others = "SELECT count(*) FROM metric_counters WHERE tenant = 'other'";
    assert_eq!(gate.count(others), 1);
}

/// What a lane's alarm does once a day. Returns how many series were deleted.
fn prune(gate: &Gate) -> usize {
    gate.database.execute(d1::PRUNE_SERIES, params![TENANT, UNCOUNTED_DAYS]).unwrap()
}

/// Time passes in D1.
fn pass(gate: &Gate, days: u32) {
    gate.database
        .execute("UPDATE metric_counters SET counted_day = counted_day - ?1", [days])
        .unwrap();
}

#[test]
fn a_name_that_was_not_counted_for_long_is_deleted_with_all_its_series() {
    let gate = Gate::new();
    let flush = |entries: &Json, totals: &Json| {
        flush_metrics(&gate.database, TENANT, 0, entries, totals);
    };
    let (fast, slow) = (json!(10), json!(50));
    flush(&proxied(0..3, "answered", &fast), &json!({}));
    flush(&proxied(0..3, "answered", &slow), &json!({}));
    flush(
        &json!([[["dead_letters", [], []], [1]], [["decisions", ["deny", "x"], [OTHER]], [1]]]),
        &json!({}),
    );
    // The limit of a lane's totals, which the lane's report has.
    let totals = json!({LIMITED_SERIES: 1});
    flush(&json!([]), &totals);
    let report = json!({"number": 1, "totals": totals}).to_string();
    let values = params![TENANT, 0, 0, START_MS as i64, report, None::<i64>];
    gate.database.execute(d1::FLUSHED_THROUGH, values).unwrap();
    flush_metrics(&gate.database, "other", 0, &proxied(0..1, "answered", &fast), &json!({}));
    pass(&gate, UNCOUNTED_DAYS - 1);
    assert_eq!(prune(&gate), 0, "not yet");
    // One of the two buckets of the first server.
    flush(&json!([[proxied(0..1, "answered", &slow)[0][0], [2]]]), &json!({}));
    pass(&gate, 2);
    assert_eq!(prune(&gate), 4);
    let found = gate.counters();
    let left: Vec<_> = found.keys().map(String::as_str).collect();
    let other = format!(r#"decisions ["deny","x"] ["{OTHER}"]"#);
    let expected = [
        "dead_letters [] []",
        other.as_str(),
        LIMITED,
        r#"proxied_ms ["answered",10] ["s000"]"#,
        r#"proxied_ms ["answered",50] ["s000"]"#,
    ];
    assert_eq!(left, expected);
    assert_eq!(gate.count("SELECT count(*) FROM metric_counters WHERE tenant = 'other'"), 1);
    // There is room again.
    let names_max = bound_of(Metric::ProxiedSeconds).names_max;
    flush(&proxied(3..names_max + 2, "answered", &fast), &json!({}));
    assert!(!gate.counters().keys().any(|series| series.contains(r#"10] ["_other"]"#)));
}

#[test]
fn a_name_that_was_deleted_comes_back_when_it_is_counted() {
    let gate = Gate::new();
    gate.call(&read_call());
    gate.flush_all();
    pass(&gate, UNCOUNTED_DAYS + 1);
    // The lane's own alarm ran within the last day. The alarm of another lane deletes the series.
    let asks = gate.on_lane(|lane, _| {
        lane.ask_d1();
        Ok(())
    });
    asks.unwrap();
    gate.flush_all();
    assert_eq!(prune(&gate), 2);
    for round in 1..=2 {
        gate.call(&read_call());
        gate.flush_all();
        expect(&gate, &[(ALLOWED, round)]);
    }
    assert_eq!(gate.counters().len(), 2);
}

fn bound_of(metric: Metric) -> MetricBound {
    BOUNDS.into_iter().find(|bound| bound.metric == metric).unwrap()
}

/// A series of each server, as a forwarded call has it.
fn proxied(servers: std::ops::Range<usize>, outcome: &str, bucket: &Json) -> Json {
    let series = |server| json!(["proxied_ms", [outcome, bucket], [format!("s{server:03}")], 1]);
    servers.map(|server| json!([series(server), [1]])).collect()
}

#[test]
fn a_server_that_is_known_keeps_its_series_when_it_begins_to_fail() {
    let gate = Gate::new();
    let MetricBound { names_max, series_max, .. } = bound_of(Metric::ProxiedSeconds);
    let flush = |servers: std::ops::Range<usize>, outcome: &str, bucket: &Json| {
        let entries = proxied(servers, outcome, bucket);
        flush_metrics(&gate.database, TENANT, 0, &entries, &json!({}));
    };
    // More servers than there is room for, in one flush with a second series of each.
    let mut both = proxied(0..names_max + 3, "answered", &json!(10));
    let second = proxied(0..names_max + 3, "answered", &json!(50));
    both.as_array_mut().unwrap().extend(second.as_array().unwrap().clone());
    flush_metrics(&gate.database, TENANT, 0, &both, &json!({}));
    expect(
        &gate,
        &[
            (r#"proxied_ms ["answered",50] ["s000"]"#, 1),
            (r#"proxied_ms ["answered",10] ["_other"]"#, 3),
            (r#"proxied_ms ["answered",50] ["_other"]"#, 3),
        ],
    );
    assert_eq!(gate.counters().len(), 2 * names_max + 2);
    // All servers begin to time out. All series of the known servers have room.
    let bounds = match Metric::ProxiedSeconds.definition().kind {
        gateward_core::metrics::Kind::Histogram(bounds) => bounds,
        _ => panic!("a histogram"),
    };
    let buckets: Vec<Json> = bounds.iter().map(|bound| json!(bound)).chain([json!(null)]).collect();
    let outcomes = [Ended::Answered, Ended::TimedOut];
    for outcome in outcomes {
        for bucket in &buckets {
            flush(0..names_max + 3, outcome.as_str(), bucket);
        }
    }
    let found = gate.counters();
    let others = buckets.len() * outcomes.len();
    assert_eq!(found.len(), names_max * others + others);
    assert!(names_max * others <= series_max);
    let last = format!(r#"proxied_ms ["timed_out",null] ["s{:03}"]"#, names_max - 1);
    assert_eq!(found[&last], 1);
    assert_eq!(found[r#"proxied_ms ["timed_out",null] ["_other"]"#], 3);
}

#[test]
fn names_that_are_known_have_a_bounded_number_of_series() {
    let gate = Gate::new();
    let MetricBound { series_max, .. } = bound_of(Metric::LimitsHit);
    let kinds = series_max / 10 + 5;
    for kind in 0..kinds {
        let totals = (0..10).map(|limit| {
            let series = json!(["limits_hit", [format!("k{kind:04}")], [format!("l{limit}")]]);
            (series.to_string(), json!(1))
        });
        flush_metrics(&gate.database, TENANT, 0, &json!([]), &totals.collect());
    }
    let found = gate.counters();
    let others = found.keys().filter(|series| series.ends_with(r#"["_other"]"#)).count();
    assert_eq!((found.len() - others, others), (series_max, 5));
    assert_eq!(found.values().sum::<i64>(), 10 * kinds as i64, "nothing is lost");
}

#[test]
fn series_that_are_known_are_found_by_their_keys() {
    let database = support::database();
    let by_key = "(tenant=? AND metric=? AND labels=? AND names=?)";
    for (statement, expected) in [
        (d1::ADD_SERIES, vec![by_key, "(tenant=? AND metric=?)"]),
        (d1::COUNT_ROWS, vec![by_key]),
        (d1::COUNT_TOTALS, vec![by_key]),
        (d1::PRUNE_SERIES, vec!["(tenant=?)"]),
    ] {
        let mut plan = database.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        let mut rows = plan.raw_query();
        let mut lines = Vec::<String>::new();
        while let Some(row) = rows.next().unwrap() {
            lines.push(row.get(3).unwrap());
        }
        let reads: Vec<_> = lines
            .iter()
            .filter(|line| line.contains("metric_counters") || line.contains(" c "))
            .collect();
        assert!(reads.iter().all(|line| line.starts_with("SEARCH")), "{lines:#?}");
        for key in expected {
            assert!(reads.iter().any(|line| line.contains(key)), "{key}\n{lines:#?}");
        }
    }
}

#[test]
fn every_metric_with_names_has_bounds() {
    let named = Metric::ALL.iter().filter(|metric| !metric.definition().names.is_empty());
    assert!(named.copied().eq(BOUNDS.map(|bound| bound.metric)));
}

#[test]
fn the_bounds_and_the_name_in_the_statement_are_the_constants() {
    for MetricBound { metric, names_max, series_max } in BOUNDS {
        let bound = format!("('{}', {names_max}, {series_max})", metric.key());
        assert!(d1::ADD_SERIES.contains(&bound), "{bound}");
    }
    for statement in [d1::ADD_SERIES, d1::COUNT_ROWS, d1::COUNT_TOTALS, d1::PRUNE_SERIES] {
        assert!(statement.contains(&format!("json_array('{OTHER}')")));
    }
    assert!(!is_name(OTHER), "a server of this name would share the series");
}

#[test]
fn a_histogram_adds_up_what_was_observed() {
    let gate = Gate::new();
    let proxied = |ms: u64| json!(["proxied_ms", ["answered", 50], ["crm"], ms]);
    let entries =
        json!([[proxied(20), [1]], [proxied(15), [2, 3]], [["dead_letters", [], []], [2]]]);
    flush_metrics(&gate.database, TENANT, 0, &entries, &json!({}));
    expect(&gate, &[(r#"proxied_ms ["answered",50] ["crm"]"#, 3), ("dead_letters [] []", 1)]);
    assert_eq!(gate.count("SELECT sum FROM metric_counters WHERE metric = 'proxied_ms'"), 50);
}

#[test]
fn a_lanes_report_says_how_it_was_at_its_flush() {
    let gate = Gate::new();
    for _ in 0..10 {
        gate.call(&read_call());
    }
    gate.now_ms.set(START_MS + 1_500);
    assert!(gate.flush(None).unwrap());
    let report = |gate: &Gate| -> Json {
        let values = params![TENANT, START_MS as i64];
        let columns =
            ["lanes", "journal_rows", "journal_age_ms", "epochs_behind", "silent_since_ms"];
        gate.database
            .query_row(d1::LANE_REPORTS, values, |row| {
                let value = |column: &str| row.get::<_, Option<i64>>(column);
                columns.iter().map(|column| Ok(json!(value(column)?))).collect()
            })
            .unwrap()
    };
    // The batches of these tests have seven rows.
    assert_eq!(report(&gate), json!([1, 3, 1_500, 0, START_MS + 1_500]));
    gate.flush_all();
    assert_eq!(report(&gate), json!([1, 0, 1_500, 0, null]));
    // Later, the lane's lag is left out.
    let later = params![TENANT, START_MS as i64 + 10_000];
    let age: Option<i64> =
        gate.database.query_row(d1::LANE_REPORTS, later, |row| row.get("journal_age_ms")).unwrap();
    assert_eq!(age, None);
}

#[test]
fn a_report_has_the_rows_that_stay_while_d1_has_another_receipt() {
    let gate = Gate::new();
    for _ in 0..3 {
        gate.call(&read_call());
    }
    let reported = || gate.count("SELECT report->>'journal_rows' FROM lane_flushes");
    // As another writer of this format would write it.
    let forged = "INSERT INTO receipts (tenant, lane, seq, kind, decision_id, at_ms, receipt_hash, \
         prev_receipt_hash, body) VALUES ('demo', 0, 2, 'decision', '', 0, hex(zeroblob(32)), hex(zeroblob(32)), '{}')";
    gate.database.execute(forged, []).unwrap();
    for expected in [0, 3, 3] {
        assert_eq!(gate.flush(None), Err("receipt 2 differs".to_owned()));
        assert_eq!(reported(), expected, "the first report counts on a confirmation");
    }
    gate.database.execute("DELETE FROM receipts", []).unwrap();
    gate.flush_all();
    assert_eq!(reported(), 0);
    assert_eq!(gate.counters().get(ALLOWED), Some(&3));
}

/// What D1 has of the lane: the last row that was flushed, when a flush last succeeded, and parts of the report.
fn lane_flush(gate: &Gate) -> Json {
    let columns = "SELECT json_array(seq, flushed_at_ms, report->>'journal_rows', \
         report->>'journal_age_ms', report->>'at_ms') FROM lane_flushes";
    serde_json::from_str(&gate.text(columns)).unwrap()
}

#[test]
fn a_flush_that_fails_is_reported_without_its_rows() {
    let gate = Gate::new();
    for _ in 0..3 {
        gate.call(&read_call());
    }
    gate.flush_all();
    // Hours later.
    let later_ms = START_MS + 3 * 3_600_000;
    gate.now_ms.set(later_ms);
    (0..2).for_each(|_| drop(gate.call(&read_call())));
    refused(&gate);
    gate.now_ms.set(later_ms + 90_000);
    for errors in 1..=2 {
        assert!(gate.flush(Some(Fault::Failed)).is_err());
        let report = gate.failure();
        assert_eq!(gate.write(&report), [], "it has no receipts");
        // As when its answer is lost: nobody sends it again, but D1 can have it twice.
        gate.write(&report);
        assert_eq!(lane_flush(&gate), json!([3, START_MS, 2, 90_000, later_ms + 90_000]));
        expect(&gate, &[(FLUSH_ERRORS, errors), (REFUSED, 1), (ALLOWED, 3)]);
        assert_eq!(gate.count("SELECT count(*) FROM receipts"), 3);
    }
    // The lane is silent since its rows wait, and not since its last flush.
    let since = params![TENANT, (later_ms + 80_000) as i64];
    let silent_since: i64 =
        gate.database.query_row(d1::LANE_REPORTS, since, |row| row.get("silent_since_ms")).unwrap();
    assert_eq!(silent_since, later_ms as i64);
    gate.evict();
    gate.flush_all();
    assert_eq!(lane_flush(&gate)[0], 5);
    assert_eq!(lane_flush(&gate)[2], 0);
    expect(&gate, &[(FLUSH_ERRORS, 2), (REFUSED, 1), (ALLOWED, 5)]);
}

#[test]
fn a_lane_whose_first_flush_fails_is_reported() {
    let gate = Gate::new();
    gate.call(&read_call());
    gate.now_ms.set(START_MS + 5_000);
    let report = gate.failure();
    gate.write(&report);
    assert_eq!(lane_flush(&gate), json!([0, START_MS + 5_000, 1, 5_000, START_MS + 5_000]));
    gate.flush_all();
    expect(&gate, &[(FLUSH_ERRORS, 1), (ALLOWED, 1)]);
}

/// The lane gave up on a flush, and D1 took the report about that. Then D1 commits the flush. Its totals are older than
/// those of the report, so the report must stay, or the next flush would count the difference again.
#[test]
fn a_flush_that_d1_commits_after_the_report_of_its_failure_counts_once() {
    let gate = Gate::new();
    gate.call(&read_call());
    gate.flush_all();
    // Longer than D1 takes to commit late.
    gate.now_ms.set(START_MS + 600_000);
    gate.call(&read_call());
    refused(&gate);
    let now_ms = gate.now_ms.get();
    let batch = gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, now_ms));
    let batch = batch.unwrap().unwrap();
    refused(&gate);
    gate.now_ms.set(now_ms + 10_000);
    let report = gate.failure();
    gate.write(&report);
    gate.write(&batch);
    expect(&gate, &[(FLUSH_ERRORS, 1), (REFUSED, 2), (ALLOWED, 2)]);
    assert_eq!(lane_flush(&gate)[4], now_ms + 10_000, "the newer report");
    gate.flush_all();
    expect(&gate, &[(FLUSH_ERRORS, 1), (REFUSED, 2), (ALLOWED, 2)]);
    assert_eq!(lane_flush(&gate)[0], 2);
}

#[test]
fn a_report_of_a_failure_tells_d1_of_the_names_in_its_totals() {
    let mut gate = Gate::new();
    gate.agent_mut().request_rate = support::rate(1, 0.001);
    (0..3).for_each(|_| drop(gate.try_call(&command(&read_call())).unwrap()));
    let report = gate.failure();
    gate.write(&report);
    expect(&gate, &[(r#"limits_hit ["rate"] ["all-requests"]"#, 2), (FLUSH_ERRORS, 1)]);
}

#[test]
fn a_report_has_the_approvals_that_are_open() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let waits = with(
        read_call(),
        json!({"tool_call": {"mutates_state": true}, "context": {"source_trust": "semi_trusted_customer"}}),
    );
    let reported = |gate: &Gate| {
        gate.flush_all();
        gate.count("SELECT report->>'approvals_open' FROM lane_flushes")
    };
    for open in 1..=2 {
        assert_eq!(gate.call(&waits).1["decision"], "require_approval");
        assert_eq!(reported(&gate), open);
    }
    gate.evict();
    gate.call(&read_call());
    assert_eq!(reported(&gate), 2, "after a restart");
    gate.now_ms.set(START_MS + 40 * 60_000);
    let now_ms = gate.now_ms.get();
    let expired = gate.on_lane(|lane, storage| {
        lane.adopt(storage, TENANT, 0)?;
        lane.expire_approvals(storage, &gate.config, now_ms)
    });
    expired.unwrap();
    assert_eq!(reported(&gate), 0, "their time is over");
}

#[test]
fn the_time_of_the_alarm_survives_the_lane() {
    let gate = Gate::new();
    let due = || gate.on_lane(|_, storage| Lane::alarm_due(storage)).unwrap();
    assert_eq!(due(), None);
    gate.on_lane(|_, storage| Lane::set_alarm_due(storage, START_MS)).unwrap();
    gate.evict();
    assert_eq!(due(), Some(START_MS));
}

#[test]
fn epochs_behind_is_the_tenants_epoch_less_the_lanes() {
    let gate = Gate::new();
    gate.database.execute("UPDATE tenants SET epoch = 9", []).unwrap();
    for (lane, epoch, expected) in [(1, 7, 2), (2, 0, 0), (3, 10, 0)] {
        let values = params![TENANT, lane, 0, 0, json!({"epoch": epoch}).to_string(), None::<i64>];
        gate.database.execute(d1::FLUSHED_THROUGH, values).unwrap();
        let behind =
            format!("SELECT report->>'epochs_behind' FROM lane_flushes WHERE lane = {lane}");
        assert_eq!(gate.count(&behind), expected, "{epoch}");
    }
}

#[test]
fn what_no_lane_counts_adds_up_for_a_tenant_or_for_none() {
    let gate = Gate::new();
    let series = Series::FailedAuthentication("unauthorized");
    for (tenant, more) in [("", 1), (TENANT, 2), ("", 4)] {
        let counted = params![tenant, series.encode(), more];
        gate.database.execute(d1::COUNT_METRIC, counted).unwrap();
    }
    assert_eq!(gate.count("SELECT count FROM metric_counters WHERE tenant = ''"), 5);
    // The tenant's lanes add to the same series.
    refused(&gate);
    gate.flush_all();
    expect(&gate, &[(REFUSED, 3)]);
}

/// How many series of each tenant an answer for all tenants has.
fn of_all(database: &Connection, sizes: &[(&str, usize)], limit: u32) -> Vec<(String, usize)> {
    database.execute("DELETE FROM metric_counters", []).unwrap();
    for (tenant, series) in sizes {
        flush_metrics(database, tenant, 0, &decisions(0..*series), &json!({}));
    }
    let mut rows = database.prepare(d1::METRICS_OF_ALL).unwrap();
    let mut found = BTreeMap::<String, BTreeMap<String, i64>>::new();
    // As a double, as D1 gets numbers.
    let mut rows = rows.query([f64::from(limit)]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let of_tenant = found.entry(row.get("tenant").unwrap()).or_default();
        let count = row.get("count").unwrap();
        let before = of_tenant.insert(row.get("names").unwrap(), count);
        assert_eq!((before, count), (None, 1), "each series once");
    }
    found.into_iter().map(|(tenant, series)| (tenant, series.len())).collect()
}

#[test]
fn no_tenant_takes_the_place_of_others_in_an_answer_for_all() {
    let database = support::database();
    let sizes = [("", 1), ("a", 20), ("b", 3), ("c", 2)];
    for (limit, expected) in [
        (27, [1, 20, 3, 2]),
        (26, [1, 20, 3, 2]),
        // The answer has one row more than it may show, so it says that it is truncated.
        (25, [1, 19, 3, 2]),
        (10, [1, 4, 3, 2]),
        (6, [1, 2, 2, 1]),
    ] {
        let found = of_all(&database, &sizes, limit);
        let found: Vec<usize> = found.into_iter().map(|(_, series)| series).collect();
        assert_eq!(found, expected, "{limit}");
    }
    assert_eq!(of_all(&database, &[], 10), []);
    // The first tenant has more than its share, and the others leave room for some of it.
    let small: Vec<String> = (0..19).map(|number| format!("b{number:02}")).collect();
    let small = small.iter().map(|tenant| (tenant.as_str(), 1));
    let sizes: Vec<_> = [("a", 30)].into_iter().chain(small).collect();
    let found = of_all(&database, &sizes, 25);
    assert_eq!(found.first(), Some(&("a".to_owned(), 6)));
    assert_eq!(found.len(), 20);
}

/// What the page, the dashboard and the alert rules name must exist.
mod documents {
    use regex_automata::meta::Regex;

    use super::*;

    fn document(name: &str) -> String {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The groups of each match of a pattern. The first one is the whole match.
    fn matches<'t>(pattern: &str, text: &'t str) -> Vec<Vec<&'t str>> {
        let pattern = Regex::new(pattern).unwrap();
        let groups = pattern.captures_iter(text);
        groups.map(|groups| groups.iter().flatten().map(|at| &text[at.range()]).collect()).collect()
    }

    /// Every `gateward_…` in a text.
    fn named(text: &str) -> Vec<String> {
        let found = matches("gateward_[a-z_]+", text);
        let mut names: Vec<String> = found.iter().map(|found| found[0].to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The names under which Prometheus stores a metric.
    fn stored(metric: Metric) -> Vec<String> {
        let name = metric.definition().name;
        match metric.definition().kind {
            gateward_core::metrics::Kind::Histogram(_) => {
                ["", "_bucket", "_sum", "_count"].map(|suffix| format!("{name}{suffix}")).to_vec()
            }
            _ => vec![name.to_owned()],
        }
    }

    #[test]
    fn the_dashboard_and_the_alert_rules_use_metrics_that_exist() {
        let known: Vec<String> = Metric::ALL.iter().copied().flat_map(stored).collect();
        for name in ["metrics/dashboard.json", "metrics/alerts.yaml", "metrics/alerts.test.yaml"] {
            let unknown: Vec<_> =
                named(&document(name)).into_iter().filter(|it| !known.contains(it)).collect();
            assert!(unknown.is_empty(), "{name}: {unknown:?}");
        }
    }

    #[test]
    fn the_dashboard_shows_every_metric_but_the_one_about_the_answer() {
        let shown = document("metrics/dashboard.json");
        for metric in Metric::ALL {
            let name = metric.definition().name;
            assert!(shown.contains(name), "{name} has no panel");
        }
    }

    #[test]
    fn the_labels_in_queries_are_labels_of_their_metric() {
        for name in ["metrics/dashboard.json", "metrics/alerts.yaml"] {
            for found in matches(r"(gateward_[a-z_]+)\{([^}]*)\}", &document(name)) {
                let metric = Metric::ALL
                    .iter()
                    .copied()
                    .find(|it| stored(*it).iter().any(|name| *name == found[1]));
                let definition = metric.unwrap().definition();
                for label in matches(r"([a-z_]+)\s*(?:=~|!~|!=|=)", found[2]) {
                    let own = definition.labels.iter().chain(definition.names);
                    let known = own.copied().chain(["tenant", "le"]).any(|it| it == label[1]);
                    assert!(known, "{name}: {} has no label {}", found[1], label[1]);
                }
            }
        }
    }

    #[test]
    fn the_page_has_a_row_for_each_metric_and_a_section_for_each_alert() {
        let page = document("metrics.md");
        for metric in Metric::ALL {
            let definition = metric.definition();
            let kind = match definition.kind {
                gateward_core::metrics::Kind::Counter => "counter",
                gateward_core::metrics::Kind::Gauge => "gauge",
                gateward_core::metrics::Kind::Histogram(_) => "histogram",
            };
            let labels: Vec<String> = definition
                .labels
                .iter()
                .chain(definition.names)
                .map(|label| format!("`{label}`"))
                .collect();
            let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
            let row =
                format!("| `{}` | {kind} | {labels} | {} |", definition.name, definition.help);
            assert!(page.contains(&row), "docs/metrics.md lacks:\n{row}");
        }
        let rules = document("metrics/alerts.yaml");
        let alerts = matches(r"alert: (\w+)", &rules);
        for alert in &alerts {
            assert!(page.contains(&format!("\n### {}\n", alert[1])), "{}", alert[1]);
            assert!(document("metrics/alerts.test.yaml").contains(alert[1]), "{}", alert[1]);
        }
        assert_eq!(page.matches("\n### Gateward").count(), alerts.len());
    }
}
