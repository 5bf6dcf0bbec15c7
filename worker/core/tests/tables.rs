//! The tables of docs/api.md, docs/receipts.md, docs/administration.md and docs/logs.md, and the lists in D1's CHECK constraints have exactly the values of the
//! enums.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests only")]

use std::collections::{BTreeMap, BTreeSet};

use crate::support;
use gateward_core::approval::{ApprovalEvent, ApprovalStatus};
use gateward_core::decision::{Decision, ReasonCode};
use gateward_core::gate::daily_rows::{DailyRows, Written};
use gateward_core::gate::{CountedEvent, LaneEvent};
use gateward_core::limit::Covers;
use gateward_core::log::{Event, MAX_DETAIL_BYTES};
use gateward_core::policy::bundle::Risk;
use gateward_core::policy::risk::RiskTier;
use gateward_core::problem::ProblemCode;
use gateward_core::provenance::Reach;
use gateward_core::receipt::{AgentEvent, Ending, ReceiptKind};
use gateward_core::registry::MemberKind;
use gateward_core::registry::{
    AgentStatus, BanKind, ChangeEvent, CredentialKind, CredentialStatus, ServerKind, ServerTrust,
    SubjectKind, TaintRule, TenantStatus, ToolStatus, WarrantRootStatus,
};
use gateward_core::trust::SourceTrust;

const API: &str = include_str!("../../../docs/api.md");
const LOGS: &str = include_str!("../../../docs/logs.md");
const RECEIPTS: &str = include_str!("../../../docs/receipts.md");
const ADMINISTRATION: &str = include_str!("../../../docs/administration.md");

/// The entry writes the events of a trap itself.
const ENTRY: &str = include_str!("../../edge/src/entry.js");
const RELAY: &str = include_str!("../../edge/src/upstream/relay.js");
const OTHER_SCRIPTS: [&str; 2] = [include_str!("../../edge/src/io.js"), RELAY];

/// Events that the audit counts. A kind that is a reason code is not here.
const COUNTED: [CountedEvent; 8] = [
    CountedEvent::AuthenticationFailed,
    CountedEvent::RateLimited,
    CountedEvent::StatusDenied,
    CountedEvent::TenantRowsExhausted,
    CountedEvent::TenantBytesExhausted,
    CountedEvent::MessagePassed,
    CountedEvent::DecidedDegraded,
    CountedEvent::ClockRepaired,
];

/// The kinds of receipts in D1's column. It has a dead letter as an approval, and entries of head logs as `registry`.
const COLUMN_KINDS: [ReceiptKind; 4] =
    [ReceiptKind::Approval, ReceiptKind::Decision, ReceiptKind::Outcome, ReceiptKind::Registry];

/// The first two cells of each row of the page's table that has this header, sorted; backticks left
/// out.
fn table(header: &str) -> Vec<(String, String)> {
    table_of(API, header)
}

fn table_of(page: &str, header: &str) -> Vec<(String, String)> {
    let mut tables = page.split("\n\n").filter_map(|part| part.trim().strip_prefix(header));
    let rows = tables.next().unwrap_or_else(|| panic!("no table `{header}`"));
    assert!(tables.next().is_none(), "two tables `{header}`");
    let mut rows: Vec<(String, String)> = rows
        .lines()
        .filter(|line| line.starts_with("| "))
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.replace('`', ""));
            let mut cell = || cells.next().unwrap_or_default().trim().to_owned();
            (cell(), cell())
        })
        .collect();
    rows.sort_unstable();
    rows
}

fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values
}

/// The first cells of a table.
fn codes(header: &str) -> Vec<String> {
    table(header).into_iter().map(|(code, _)| code).collect()
}

#[test]
fn the_api_page_has_each_problem_code_once_with_its_status() {
    let expected =
        ProblemCode::ALL.iter().map(|code| (code.code().to_owned(), code.status().to_string()));
    assert_eq!(table("| code | status | meaning |"), sorted(expected));
}

#[test]
fn the_api_page_has_each_reason_code_once_with_a_decision() {
    let rows = table("| reason code | decision | meaning |");
    let page: Vec<&str> = rows.iter().map(|(code, _)| code.as_str()).collect();
    assert_eq!(page, sorted(ReasonCode::ALL.iter().map(|code| code.code())));
    for (code, decision) in &rows {
        assert!(Decision::ALL.iter().any(|known| known.as_str() == decision), "{code}: {decision}");
    }
}

#[test]
fn the_pages_have_each_decision_trust_and_receipt_kind_once() {
    assert_eq!(codes("| decision | meaning |"), sorted(Decision::ALL.map(Decision::as_str)));
    assert_eq!(codes("| value | meaning |"), sorted(SourceTrust::ALL.map(SourceTrust::as_str)));
    let kinds = "| `kind` | written when | its own members |";
    let page: Vec<String> = table_of(RECEIPTS, kinds).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(page, sorted(ReceiptKind::ALL.map(ReceiptKind::as_str)));
    let of_head_logs = [ReceiptKind::LaneCheckpoint, ReceiptKind::RegistryEvent];
    let of_lanes = ReceiptKind::ALL.into_iter().filter(|kind| !of_head_logs.contains(kind));
    assert_eq!(codes(kinds), sorted(of_lanes.map(ReceiptKind::as_str)));
}

#[test]
fn the_page_about_administration_has_each_kind_of_audit_event_once() {
    let (_, table) = ADMINISTRATION.split_once("| kinds of audit events | written when |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut cells = rows.filter_map(|row| row.split('|').nth(1));

    // The first row is about the registry. It has most kinds by a prefix, such as `agent_…`.
    let of_registry = cells.next().unwrap().split('`').skip(1).step_by(2);
    let (prefixes, named): (Vec<&str>, Vec<&str>) =
        of_registry.partition(|kind| kind.ends_with('…'));
    let has_prefix =
        |kind: &str| prefixes.iter().any(|prefix| kind.starts_with(prefix.trim_end_matches('…')));
    let others = ChangeEvent::ALL.map(ChangeEvent::as_str).into_iter();
    assert_eq!(sorted(named), sorted(others.filter(|kind| !has_prefix(kind))));

    let kinds = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let page: Vec<&str> = kinds.filter(|kind| !kind.ends_with('…')).collect();

    let everything = Written { rows: u64::MAX, bytes: u64::MAX };
    let written: Vec<&str> = [ReceiptKind::Decision.as_str()]
        .into_iter()
        .chain(ApprovalEvent::ALL.map(ApprovalEvent::as_str))
        .chain(AgentEvent::ALL.map(AgentEvent::as_str))
        .chain(LaneEvent::ALL.map(LaneEvent::as_str))
        .chain(Ending::ALL.into_iter().filter_map(Ending::event))
        .chain(COUNTED.map(CountedEvent::as_str))
        .chain(DailyRows::of(None).events(everything))
        .collect();
    assert_eq!(sorted(page), sorted(written.iter().copied()));
    assert_eq!(BTreeSet::from_iter(&written).len(), written.len());
}

#[test]
fn the_relay_names_endings_as_the_enum_does() {
    // The worker itself refuses answers.
    for ending in Ending::ALL.into_iter().filter(|ending| *ending != Ending::Refused) {
        let name = format!("\"{}\"", ending.as_str());
        assert!(RELAY.contains(&name), "relay.js does not have {name}");
    }
}

#[test]
fn the_page_about_logs_has_each_event_once_with_its_level() {
    let events =
        Event::ALL.iter().map(|event| (event.code().to_owned(), event.level().as_str().to_owned()));
    let expected: Vec<_> = events.collect();
    assert_eq!(table_of(LOGS, "| event | level | meaning and what to do |"), expected);
}

#[test]
fn scripts_log_events_of_the_list_and_nothing_else() {
    let written = [Event::WasmTrapped, Event::WasmRestarted];
    for event in written {
        let (level, code, sentence) = (event.level().as_str(), event.code(), event.sentence());
        let line = format!(r#"line("{level}", "{code}", "{sentence}""#);
        assert!(ENTRY.contains(&line), "entry.js does not have `{line}`");
    }
    assert_eq!(MAX_DETAIL_BYTES, 1_024);
    assert!(ENTRY.contains("MAX_DETAIL_BYTES = 1_024;"));
    assert_eq!(ENTRY.matches("console.").count(), written.len());
    for script in OTHER_SCRIPTS {
        assert!(!script.contains("console."));
    }
}

/// The lists of texts in the CHECK constraints of a `CREATE TABLE`: column and sorted values.
fn lists(table: &str) -> Vec<(String, Vec<String>)> {
    let checks = table.split("CHECK (").skip(1);
    let list = |check: &str| {
        let (column, rest) = check.split_once(" IN (")?;
        let values = rest.split_once(')')?.0;
        let texts: Option<Vec<String>> = values
            .split(',')
            .map(|value| Some(value.trim().strip_prefix('\'')?.strip_suffix('\'')?.to_owned()))
            .collect();
        Some((column.to_owned(), sorted(texts?)))
    };
    checks.filter_map(list).collect()
}

/// The tables of D1 with the statements that create them.
fn tables() -> Vec<(String, String)> {
    let database = support::database();
    let mut tables = database
        .prepare("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL")
        .unwrap();
    let tables = tables.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    tables.map(Result::unwrap).collect()
}

/// The results of the CASE expression of a table's generated column `status`, sorted.
fn statuses(table: &str) -> Vec<String> {
    let (_, sql) = tables().into_iter().find(|(name, _)| name == table).unwrap();
    let (_, case) = sql.split_once("status TEXT GENERATED ALWAYS AS (").unwrap();
    let case = case.split_once(" END").unwrap().0.replace(" ELSE ", " THEN ");
    let results = case.split(" THEN '").skip(1).map(|rest| rest.split_once('\'').unwrap().0);
    sorted(results.map(str::to_owned))
}

#[test]
fn each_status_that_d1_derives_is_in_the_enum() {
    // Columns of their own say that an agent or a server is deleted.
    let agent = AgentStatus::ALL.into_iter().filter(|status| *status != AgentStatus::Deleted);
    assert_eq!(statuses("agents"), sorted(agent.map(AgentStatus::as_str)));
    for table in ["servers", "tools"] {
        assert_eq!(statuses(table), sorted(ToolStatus::ALL.map(ToolStatus::as_str)), "{table}");
    }
}

#[test]
fn each_list_in_a_check_constraint_of_d1_is_an_enum() {
    let found: BTreeMap<(String, String), Vec<String>> = tables()
        .into_iter()
        .flat_map(|(name, sql)| {
            lists(&sql).into_iter().map(move |(column, values)| ((name.clone(), column), values))
        })
        .collect();

    let credential =
        CredentialStatus::ALL.into_iter().filter(|status| *status != CredentialStatus::Expired);
    // `expires_at_ms` says that a credential has expired.
    let lists: [(&str, &str, Vec<&str>); 19] = [
        ("agents", "risk_tier", RiskTier::ALL.map(RiskTier::as_str).to_vec()),
        ("approvals", "status", ApprovalStatus::ALL.map(ApprovalStatus::as_str).to_vec()),
        ("bans", "kind", BanKind::ALL.map(BanKind::as_str).to_vec()),
        ("credentials", "kind", CredentialKind::ALL.map(CredentialKind::as_str).to_vec()),
        ("credentials", "max_source_trust", SourceTrust::ALL.map(SourceTrust::as_str).to_vec()),
        ("credentials", "status", credential.map(CredentialStatus::as_str).collect()),
        ("decisions", "decision", Decision::ALL.map(Decision::as_str).to_vec()),
        ("group_members", "kind", MemberKind::ALL.map(MemberKind::as_str).to_vec()),
        ("limits", "covers", Covers::ALL.map(Covers::as_str).to_vec()),
        ("limits", "subject_kind", SubjectKind::ALL.map(SubjectKind::as_str).to_vec()),
        ("receipts", "kind", COLUMN_KINDS.map(ReceiptKind::as_str).to_vec()),
        ("servers", "kind", ServerKind::ALL.map(ServerKind::as_str).to_vec()),
        ("servers", "trust", ServerTrust::ALL.map(ServerTrust::as_str).to_vec()),
        ("tenants", "status", TenantStatus::ALL.map(TenantStatus::as_str).to_vec()),
        ("tenants", "warrant_alone_trust", SourceTrust::ALL.map(SourceTrust::as_str).to_vec()),
        ("tools", "reach", Reach::ALL.map(Reach::as_str).to_vec()),
        ("tools", "risk", Risk::ALL.map(Risk::as_str).to_vec()),
        ("tools", "tainted", TaintRule::ALL.map(TaintRule::as_str).to_vec()),
        ("warrant_roots", "status", WarrantRootStatus::ALL.map(WarrantRootStatus::as_str).to_vec()),
    ];
    let expected: BTreeMap<(String, String), Vec<String>> = lists
        .into_iter()
        .map(|(table, column, values)| {
            let values = sorted(values.into_iter().map(str::to_owned));
            ((table.to_owned(), column.to_owned()), values)
        })
        .collect();
    assert_eq!(found, expected);
}
