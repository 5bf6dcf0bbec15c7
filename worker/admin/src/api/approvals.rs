//! A page of approvals: those in D1, and those that lanes have not flushed yet.

use gateward_core::approval::{Approval, ApprovalStatus, ApprovalView};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::page::FlushedThrough;

/// Approvals, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalPage<'a> {
    pub approvals: Vec<ApprovalView<'a>>,
    /// The cursor of the next page; null on the last.
    pub next_cursor: Option<String>,
    /// How far the list reaches in each lane. Lists come from D1; an administrator's list also
    /// comes from the lanes if the tenant has at most 32.
    pub flushed_through: Vec<FlushedThrough>,
}

/// The filter of a page. `before` is a time and an id.
#[derive(Debug, Clone)]
pub struct ApprovalFilter {
    pub agent: Option<String>,
    pub status: Option<ApprovalStatus>,
    pub group: Option<String>,
    pub before: (u64, String),
    pub limit: u32,
    pub now_ms: u64,
}

impl ApprovalFilter {
    /// The time after which approvals must end. An expired approval is not open, even if its lane
    /// has not written the expiry yet.
    #[must_use]
    pub fn ends_after_ms(&self) -> Option<u64> {
        self.status.filter(|status| status.is_open()).map(|_| self.now_ms)
    }

    /// Whether the approval matches the filter. D1's statements have the same conditions.
    fn matches(&self, approval: &Approval) -> bool {
        self.agent.as_ref().is_none_or(|agent| *agent == approval.agent)
            && self.status.is_none_or(|status| status == approval.status)
            && self.ends_after_ms().is_none_or(|after| approval.expires_at_ms > after)
            && self.group.as_ref().is_none_or(|group| {
                approval.approver_groups.iter().any(|needed| needed.group == *group)
            })
    }
}

/// The position of an approval in the list.
type Place = (u64, String);

fn place(approval: &Approval) -> Place {
    (approval.created_at_ms, approval.approval_id.clone())
}

/// A page, newest first, and the start of the next one.
#[must_use]
pub fn page(
    filter: &ApprovalFilter,
    stored: Vec<Approval>,
    held: Vec<Approval>,
) -> (Vec<Approval>, Option<Place>) {
    let limit = filter.limit as usize;
    // A full page of D1 ends the page: older approvals belong to the next one.
    let end = stored.last().filter(|_| stored.len() >= limit).map(place);
    let mut approvals: BTreeMap<Place, Approval> = BTreeMap::new();
    for approval in stored.into_iter().chain(held) {
        let at = place(&approval);
        let newer = approvals.get(&at).is_none_or(|known| known.revision < approval.revision);
        if newer && at < filter.before && end.as_ref().is_none_or(|end| at >= *end) {
            approvals.insert(at, approval);
        }
    }
    approvals.retain(|_, approval| filter.matches(approval));
    let more = approvals.len() > limit;
    let page: Vec<Approval> = approvals.into_values().rev().take(limit).collect();
    let next = if more { page.last().map(place) } else { end };
    (page, next)
}

/// The approvals in a lane's journal rows (a JSON array), and the last row's number.
///
/// # Errors
///
/// The rows cannot be read.
pub fn of_journal(rows: &str) -> Result<(Vec<Approval>, Option<u64>), serde_json::Error> {
    #[derive(Deserialize)]
    struct Row {
        seq: u64,
        #[serde(default)]
        approval: Option<Approval>,
    }
    let rows: Vec<Row> = serde_json::from_str(rows)?;
    let last = rows.last().map(|row| row.seq);
    Ok((rows.into_iter().filter_map(|row| row.approval).collect(), last))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW_MS: u64 = 1_000;

    /// An approval asked for at a time, with a revision, a status and a group.
    fn record(at_ms: u64, revision: u64, status: &str, group: &str) -> Value {
        json!({
            "approval_id": format!("appr_0_{at_ms}"), "decision_id": "", "agent": "coder",
            "server": "crm", "tool": "refund", "resource": "", "user_id": "", "run_id": "",
            "source_trust": "unknown", "reason": "", "matched_policies": [], "status": status,
            "revision": revision, "approver_groups": [{"group": group, "quorum": 1}],
            "action_hash": "", "edited_action_hash": null, "edited_by": null, "approvers": [],
            "closed_by": null, "comment": null, "tampering": 0, "used_by": null,
            "created_at_ms": at_ms, "expires_at_ms": NOW_MS + at_ms, "approved_at_ms": null,
            "closed_at_ms": null,
        })
    }

    fn approvals(records: &[(u64, u64, &str, &str)]) -> Vec<Approval> {
        let parse = |(at, revision, status, group): &(u64, u64, &str, &str)| {
            serde_json::from_value(record(*at, *revision, status, group)).unwrap()
        };
        records.iter().map(parse).collect()
    }

    fn filter(limit: u32) -> ApprovalFilter {
        let before = (u64::MAX, String::new());
        ApprovalFilter { agent: None, status: None, group: None, before, limit, now_ms: NOW_MS }
    }

    /// Times and revisions of a page, and the time at which the next begins.
    fn listed(
        filter: &ApprovalFilter,
        stored: &[(u64, u64, &str, &str)],
        held: &[(u64, u64, &str, &str)],
    ) -> (Vec<(u64, u64)>, Option<u64>) {
        let (page, next) = page(filter, approvals(stored), approvals(held));
        let page = page.iter().map(|approval| (approval.created_at_ms, approval.revision));
        (page.collect(), next.map(|(at_ms, _)| at_ms))
    }

    const A: &str = "finance";
    const B: &str = "security";

    #[test]
    fn what_lanes_hold_is_in_the_page_where_it_belongs() {
        let stored = [(8, 1, "pending", A), (5, 1, "pending", A)];
        for (limit, held, expected, next) in [
            (9, &[][..], vec![(8, 1), (5, 1)], None),
            (
                9,
                &[(9, 1, "pending", A), (6, 1, "pending", B)],
                vec![(9, 1), (8, 1), (6, 1), (5, 1)],
                None,
            ),
            // The newer revision counts, wherever it comes from and in whatever order.
            (9, &[(8, 3, "used", A), (8, 2, "approved", A)], vec![(8, 3), (5, 1)], None),
            (9, &[(5, 0, "pending", A)], vec![(8, 1), (5, 1)], None),
            // If a page of D1 is full, approvals after its last one are left to the next page.
            (2, &[(4, 1, "pending", A)], vec![(8, 1), (5, 1)], Some(5)),
            // Approvals that do not fit are left to the next page.
            (2, &[(9, 1, "pending", A)], vec![(9, 1), (8, 1)], Some(8)),
        ] {
            assert_eq!(listed(&filter(limit), &stored, held), (expected, next), "{limit} {held:?}");
        }
        let before = (8, "appr_0_8".to_owned());
        let second = ApprovalFilter { before, ..filter(9) };
        let held = [(9, 1, "pending", A), (8, 2, "used", A), (6, 1, "pending", A)];
        assert_eq!(listed(&second, &stored[1..], &held), (vec![(6, 1), (5, 1)], None));
    }

    #[test]
    fn the_filter_holds_for_what_lanes_hold_and_for_what_changed_since_d1_was_told() {
        let pending =
            |limit| ApprovalFilter { status: Some(ApprovalStatus::Pending), ..filter(limit) };
        let used = ApprovalFilter { status: Some(ApprovalStatus::Used), ..filter(9) };
        let of_group = ApprovalFilter { group: Some(B.to_owned()), ..filter(9) };
        let of_agent = ApprovalFilter { agent: Some("other".to_owned()), ..filter(9) };
        let late = ApprovalFilter { now_ms: NOW_MS + 9, ..pending(9) };
        let stored = [(8, 1, "pending", A), (5, 1, "pending", A)];
        let held = [(8, 2, "used", A), (9, 1, "pending", B), (7, 1, "rejected", A)];
        for (filter, stored, expected, next) in [
            (pending(9), &stored[..], vec![(9, 1), (5, 1)], None),
            // D1's page was full, and less is left of it.
            (pending(2), &stored[..], vec![(9, 1), (5, 1)], Some(5)),
            (used, &[], vec![(8, 2)], None),
            (of_group, &[], vec![(9, 1)], None),
            (of_agent, &[], vec![], None),
            (late, &[], vec![], None),
        ] {
            assert_eq!(listed(&filter, stored, &held), (expected, next), "{filter:?}");
        }
    }

    #[test]
    fn a_lanes_rows_give_their_approvals_and_say_how_far_they_reach() {
        let rows = json!([
            {"seq": 4, "decision": "allow", "approval": null},
            {"seq": 5, "approval": record(5, 1, "pending", A)},
            {"seq": 6, "kind": "outcome"},
        ]);
        let (held, last) = of_journal(&rows.to_string()).unwrap();
        assert_eq!((held.len(), held[0].created_at_ms, last), (1, 5, Some(6)));
        assert_eq!(of_journal("[]").unwrap().1, None);
        assert!(of_journal("[{}]").is_err());
    }
}
