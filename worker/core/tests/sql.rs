//! Every SQL statement prepares against the real schema, and the reads use an index.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod support;

use gateward_core::sql::{d1, lane};
use rusqlite::Connection;

fn plan(connection: &Connection, statement: &str) -> String {
    let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
    let mut rows = explain.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push_str(&row.get::<_, String>(3).unwrap());
        plan.push('\n');
    }
    plan
}

#[test]
fn every_statement_on_d1_prepares_against_the_migrations() {
    let database = support::database();
    for statement in d1::ALL {
        database.prepare(statement).unwrap_or_else(|e| panic!("{e}: {statement}"));
    }
}

#[test]
fn every_statement_on_a_lane_prepares_against_its_schema_which_can_be_run_again() {
    let storage = Connection::open_in_memory().unwrap();
    for statement in lane::SCHEMA.iter().chain(lane::SCHEMA) {
        storage.execute_batch(statement).unwrap();
    }
    for statement in lane::ALL {
        storage.prepare(statement).unwrap_or_else(|e| panic!("{e}: {statement}"));
    }
}

#[test]
fn no_read_endpoint_scans_a_table() {
    let database = support::database();
    for statement in [
        d1::LOAD_RECORDS,
        d1::LOAD_READER,
        d1::EPOCH,
        d1::DECISION,
        d1::DECISIONS,
        d1::DECISIONS_OF_AGENT,
        d1::DECISIONS_OF_OUTCOME,
        d1::DECISIONS_OF_AGENT_AND_OUTCOME,
        d1::FLUSHES,
        d1::RECEIPTS,
        d1::STORED_HASHES,
    ] {
        let plan = plan(&database, statement);
        let scans =
            plan.lines().any(|line| line.starts_with("SCAN") && line != "SCAN CONSTANT ROW");
        assert!(!scans && !plan.contains("TEMP B-TREE"), "{statement}\n{plan}");
    }
}

#[test]
fn a_filter_of_decisions_has_its_index() {
    let database = support::database();
    for (statement, index) in [
        (d1::DECISIONS, "PRIMARY KEY (tenant=? AND decision_id>? AND decision_id<?)"),
        (d1::DECISIONS_OF_AGENT, "decisions_by_agent (tenant=? AND agent=? AND decision_id>?"),
        (
            d1::DECISIONS_OF_OUTCOME,
            "decisions_by_outcome (tenant=? AND decision=? AND decision_id>?",
        ),
    ] {
        let plan = plan(&database, statement);
        assert!(plan.contains(index), "{statement}\n{plan}");
    }
}

#[test]
fn no_statement_of_the_code_is_left_out_of_these_tests() {
    let code = include_str!("../src/sql.rs");
    let constants = code.matches("pub const").count();
    let listed = d1::ALL.len() + lane::ALL.len();
    // SCHEMA and the two ALL are lists.
    assert_eq!(constants, listed + 3);
}
