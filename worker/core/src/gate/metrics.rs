//! What the lane's steps add to metrics.

use super::draft::Draft;
use super::limits::first_key_id;
use super::ruling::Ruling;
use crate::approval::{Approval, ApprovalEvent};
use crate::call::outcome::Reported;
use crate::metrics::{CountedDecision, KeyHash, ReservationEvent, Series, ShownNames};
use crate::registry::ToolStatus;

/// Other effects of a decision that metrics show.
#[derive(Debug, Clone, Copy)]
pub struct Noted {
    /// The registry was not confirmed.
    pub degraded: bool,
    /// The decision asks for an approval.
    pub asks: bool,
    /// The call holds a part of a limit.
    pub reserves: bool,
}

/// What the row of a decision has for the series of the decision and of its credential.
pub fn counted(draft: &Draft<'_>) -> CountedDecision {
    let (facts, records) = (draft.facts, draft.facts.records);
    // Only approved names, so that neither an agent nor a server that lists its tools can create values of labels.
    let is_active = records.tool.as_ref().is_some_and(|tool| tool.status == ToolStatus::Active);
    let names = match (records.server.is_some(), is_active) {
        (false, _) => ShownNames::Neither,
        (true, false) => ShownNames::Server,
        (true, true) => ShownNames::ServerAndTool,
    };
    // A credential keeps its name when it is rotated, so that rotations do not use up the names that a metric can have.
    let key_id = first_key_id(facts.records, &draft.command.key_id);
    let credential = KeyHash::new(facts.config.key_id_key.hash(key_id.as_bytes()));
    CountedDecision::new(credential, names)
}

/// The other series that a decision adds to.
pub fn of_decision<'a>(draft: &Draft<'a>, ruling: &'a Ruling, noted: Noted) -> Vec<Series<'a>> {
    let decision = ruling.decision;
    let mut series = Vec::new();
    if ruling.tool.as_ref().is_some_and(|tool| tool.writes) {
        let provenance = ruling.provenance.as_ref().map_or("none", |found| found.lowest.as_str());
        let tainted = draft.tainted.is_some();
        series.push(Series::Write { decision, tainted, provenance });
    }
    if let Some(violation) = &ruling.violation {
        let kind = violation.kind.as_str();
        series.push(Series::LimitHit { kind, limit: &violation.limit_id });
    }
    if noted.degraded {
        series.push(Series::DegradedDecision);
    }
    if noted.asks {
        series.push(Series::Approval(ApprovalEvent::Requested.as_str()));
    }
    if noted.reserves {
        series.push(Series::Reservation(ReservationEvent::Opened));
    }
    series
}

/// The series that a step of an approval adds to.
pub fn of_approval(approval: &Approval, event: ApprovalEvent, now_ms: u64) -> Vec<Series<'static>> {
    let step = Series::Approval(event.as_str());
    let after_ms = now_ms.saturating_sub(approval.created_at_ms);
    match event {
        ApprovalEvent::Approved
        | ApprovalEvent::Rejected
        | ApprovalEvent::Cancelled
        | ApprovalEvent::Expired => {
            vec![step, Series::ApprovalClosed { event: event.as_str(), after_ms }]
        }
        ApprovalEvent::Requested
        | ApprovalEvent::Endorsed
        | ApprovalEvent::Used
        | ApprovalEvent::Tampered => vec![step],
    }
}

/// The series that a caller's report adds to. A report always ends a reservation.
pub const fn of_report(reported: Reported) -> Series<'static> {
    Series::Reservation(match reported {
        Reported::Succeeded => ReservationEvent::Settled,
        Reported::Failed => ReservationEvent::Returned,
    })
}
