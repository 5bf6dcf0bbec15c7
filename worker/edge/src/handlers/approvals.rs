//! `GET /v1/approvals`, `/v1/approvals/{id}`, and the decisions on one.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use gateward_admin::api::approvals::{self as listing, ApprovalFilter, ApprovalPage};
use gateward_admin::api::page::{DEFAULT_PAGE, FlushedThrough, MAX_PAGE};
use gateward_core::approval::{
    Approval, ApprovalInput, ApprovalStatus, DecideCommand, HeldApproval, VerdictKind,
};
use gateward_core::etag::etag;
use gateward_core::id::{approval_position, rfc3339};
use gateward_core::log::{Event, of_json};
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::route::Route;

use crate::answer::{Answer, Answered, whole};
use crate::app::App;
use crate::authentication::{Caller, authenticate};
use crate::handlers::parameters::{malformed, page_limit};
use crate::http::{Head, Request, json};
use crate::io;
use crate::{d1, lane, log};

/// `Retry-After` of a pending approval, in seconds. People do not decide faster.
const POLL_AFTER_S: u64 = 5;

/// Attempts at a decision. An attempt fails when the registry changes during it.
const MAX_ATTEMPTS: usize = 3;

/// A list also reads the unflushed rows of all lanes, if the tenant has at most this many. A tenant with
/// more lanes sees only what D1 holds, about a second later. Bounds the hops of one request.
const MAX_ASKED_LANES: u16 = 32;

/// Sorts after every approval.
const AFTER_ALL: u64 = 1 << 53;

/// Newest first; `status`, `group`, `agent`, `limit`, `cursor`.
pub async fn list(request: &Request, app: &App, caller: &Caller) -> Answered {
    let mut filter = ApprovalFilter {
        agent: caller.agent.clone(),
        status: None,
        group: None,
        before: (AFTER_ALL, String::new()),
        limit: DEFAULT_PAGE,
        now_ms: io::now_ms(),
    };
    for (name, value) in request.query() {
        match name.as_ref() {
            "agent" | "group" if !is_name(&value) => return Err(malformed(&name, "a name")),
            "agent" if !caller.sees(&value) => {
                let detail = "an agent's credential reads only its own approvals";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "agent" => filter.agent = Some(value.into_owned()),
            "group" => filter.group = Some(value.into_owned()),
            "status" => {
                let status = ApprovalStatus::parse(&value);
                let names = || ApprovalStatus::ALL.map(ApprovalStatus::as_str).join(", ");
                let malformed = || malformed("status", &format!("one of {}", names()));
                filter.status = Some(status.ok_or_else(malformed)?);
            }
            "cursor" => {
                let before = value.split_once('.').and_then(|(at_ms, id)| {
                    approval_position(id)?;
                    Some((at_ms.parse().ok().filter(|at| *at <= AFTER_ALL)?, id.to_owned()))
                });
                filter.before =
                    before.ok_or_else(|| malformed("cursor", "the `next_cursor` of a page"))?;
            }
            "limit" => filter.limit = page_limit(&value, MAX_PAGE)?,
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    // A row leaves its lane only after D1 holds it. Reading flushes, lanes and D1 in this order therefore
    // misses none.
    let flushes = d1::decisions::flushes(app, &caller.tenant).await?;
    // `extend` and not `collect`: `collect` would add a sort to the Wasm for this type of map alone.
    let mut reach: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    reach.extend(flushes.iter().map(|row| (row.lane, (row.seq, row.flushed_at_ms))));
    let held = held_by_lanes(app, caller, filter.now_ms, &mut reach).await;
    let stored = d1::approvals::list(app, &caller.tenant, &filter).await?;
    let (approvals, next) = listing::page(&filter, stored, held);
    let next_cursor = next.map(|(at_ms, id)| format!("{at_ms}.{id}"));
    let input = ApprovalInput::default();
    let approvals = approvals.iter().map(|one| one.view(&input, filter.now_ms, false)).collect();
    let flushed_through = reach
        .into_iter()
        .map(|(lane, (seq, at_ms))| FlushedThrough { lane, seq, at: rfc3339(at_ms) })
        .collect();
    json(&ApprovalPage { approvals, next_cursor, flushed_through }).map(Answer::Json)
}

/// Lanes that are read at once. A page of journal rows has up to 2.5 MB, and the isolate has 128.
const ASKED_AT_ONCE: usize = 4;

/// Approvals in the unflushed rows of the tenant's lanes, at most a page of rows of each lane. `reach` holds
/// how far each lane was flushed; this raises it to how far the lane was read. A lane that does not answer
/// is left out.
async fn held_by_lanes(
    app: &App,
    caller: &Caller,
    now_ms: u64,
    reach: &mut BTreeMap<u16, (u64, u64)>,
) -> Vec<Approval> {
    // An agent can poll its approval, which reads only its own lane. Its lists must not read every lane.
    if caller.lanes > MAX_ASKED_LANES || caller.agent.is_some() {
        return Vec::new();
    }
    let mut held = Vec::new();
    let all: Vec<u16> = (0..caller.lanes).collect();
    for some in all.chunks(ASKED_AT_ONCE) {
        let asked = some.iter().map(|lane| {
            let from = reach.get(lane).map_or(1, |(seq, _)| seq + 1);
            async move { (*lane, lane::client::rows(app, &caller.tenant, *lane, from).await) }
        });
        for (lane, rows) in join_all(asked).await {
            let Ok((approvals, last)) = rows.map_err(drop).and_then(|rows| {
                listing::of_journal(&rows).map_err(|error| {
                    let line = app.line(Event::JournalUnreadable, of_json(&error));
                    log::write(&line.in_lane(&caller.tenant, lane));
                })
            }) else {
                continue;
            };
            held.extend(approvals);
            if let Some(last) = last {
                reach.insert(lane, (last, now_ms));
            }
        }
    }
    held
}

/// One approval, from its lane.
pub async fn read(request: &Request, app: &App, caller: &Caller, id: &str) -> Answered {
    let lane = lane_of(caller, id)?;
    let held = match lane::client::approval(app, &caller.tenant, lane, id).await? {
        Some(held) => Some(held),
        // The lane deletes closed approvals after a while.
        None => d1::approvals::by_id(app, &caller.tenant, id)
            .await?
            .map(|approval| HeldApproval { approval, input: ApprovalInput::default() }),
    };
    let held = held
        .filter(|held| caller.sees_approval(&held.approval))
        .ok_or_else(|| Problem::not_found("approval"))?;
    let now_ms = io::now_ms();
    let approval = &held.approval;
    let mut head = Head::new(200, &app.request_id).field("etag", etag(approval.revision));
    if approval.status_at(now_ms) == ApprovalStatus::Pending {
        head = head.retry_after(Some(POLL_AFTER_S));
    }
    let head = request.rate.borrow().add_to(head);
    whole(head.with(&json(&approval.view(&held.input, now_ms, false))?))
}

/// An administrator's decision, which the lane applies. If the lane knows a newer epoch than the one at which
/// the administrator was checked, the check is repeated.
pub async fn decide(
    request: &Request,
    app: &App,
    mut caller: Caller,
    (route, kind): (&Route, VerdictKind),
    id: &str,
    body: &[u8],
) -> Answered {
    if !body.is_empty() {
        request.require_json()?;
    }
    let lane = lane_of(&caller, id)?;
    let (verdict, comment, action_hash) = kind.read(body)?;
    let mut command = DecideCommand {
        tenant: caller.tenant.clone(),
        lane,
        approval_id: id.to_owned(),
        administrator: caller.administrator.clone(),
        key_id: caller.key_id.clone(),
        issued_by: caller.issued_by.clone(),
        http_request_id: app.request_id.clone(),
        groups: Vec::new(),
        epoch: 0,
        verdict,
        comment,
        action_hash,
        if_match: request.header("if-match").map(str::to_owned),
    };
    for _ in 0..MAX_ATTEMPTS {
        command.groups = caller.groups;
        command.epoch = caller.epoch;
        if let Some(response) = lane::client::decide_approval(app, &command).await? {
            return Ok(Answer::Whole(response));
        }
        caller = authenticate(request, app, route, body).await?;
    }
    let detail = "the registry keeps changing; try again";
    Err(Problem::new(ProblemCode::RegistryUnavailable, detail))
}

fn lane_of(caller: &Caller, id: &str) -> Result<u16, Problem> {
    let lane = approval_position(id).map(|(lane, _)| lane);
    lane.filter(|lane| *lane < caller.lanes).ok_or_else(|| Problem::not_found("approval"))
}
