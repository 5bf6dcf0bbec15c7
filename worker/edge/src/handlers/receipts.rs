//! `GET /v1/receipts`, `/v1/receipts/{id}`, `/v1/receipts/ends` and `POST /v1/receipts/verify`.

use gateward_admin::api::receipts::{
    Anchored, Beginning, DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE, ReceiptEnds, ReceiptLink,
    ReceiptPage, ReceiptView, Verification, VerifyRequest,
};
use gateward_core::bounds::HEAD_LANE;
use gateward_core::id::{MAX_SEQ, receipt_id, receipt_position};
use gateward_core::lane::LogName;
use gateward_core::lane::protocol::ChainEnds;
use gateward_core::log::of_json;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::{self, CANON_VERSION, ChainHead, GENESIS, StoredReceipt};
use serde_json::value::RawValue;

use crate::answer::{Answer, Answered, internal};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1;
use crate::d1::receipts::from_journal;
use crate::handlers::logs;
use crate::handlers::parameters::{malformed, page_limit};
use crate::http::{Request, json};
use crate::lane;

/// Receipts that one request verifies, in about a second.
const MAX_VERIFIED: u64 = 10_000;

fn view(row: StoredReceipt, lane: u16) -> Result<ReceiptView, Problem> {
    let unreadable = |_| internal("the receipt's row cannot be read");
    Ok(ReceiptView {
        receipt_id: receipt_id(lane, row.seq),
        lane,
        seq: row.seq,
        receipt_hash: row.receipt_hash,
        prev_receipt_hash: row.prev_receipt_hash,
        canon_version: CANON_VERSION,
        body: RawValue::from_string(row.body).map_err(unreadable)?,
    })
}

/// In order; `lane`, `from`, `limit`.
pub async fn list(request: &Request, app: &App, caller: &Caller) -> Answered {
    let (mut lane, mut from, mut limit) = (None, 1, DEFAULT_RECEIPT_PAGE);
    for (name, value) in request.query() {
        match name.as_ref() {
            "lane" => lane = Some(value.parse().map_err(|_| malformed("lane", "a lane's number"))?),
            "from" => {
                from = value
                    .parse()
                    .ok()
                    .filter(|from| (1..=MAX_SEQ).contains(from))
                    .ok_or_else(|| malformed("from", "a sequence number"))?;
            }
            "limit" => limit = page_limit(&value, MAX_RECEIPT_PAGE)?,
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let lane = own_lane(caller, lane.ok_or_else(|| malformed("lane", "present"))?)?;
    let rows = acknowledged(app, &caller.tenant, lane, from, limit).await?;
    let full = rows.len() == limit as usize;
    let next_from = rows.last().filter(|_| full).map(|row| row.seq + 1);
    let receipts = rows.into_iter().map(|row| view(row, lane)).collect::<Result<_, _>>()?;
    json(&ReceiptPage { receipts, next_from }).map(Answer::Json)
}

/// The first and last receipt of a lane, from the lane itself; `lane`.
pub async fn ends(request: &Request, app: &App, caller: &Caller) -> Answered {
    let mut lane = None;
    for (name, value) in request.query() {
        match name.as_ref() {
            "lane" => lane = Some(value.parse().map_err(|_| malformed("lane", "a lane's number"))?),
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let lane = own_lane(caller, lane.ok_or_else(|| malformed("lane", "present"))?)?;
    let ChainEnds { head, pruned_through } =
        lane::client::chain_ends(app, &caller.tenant, lane).await?;
    json(&ReceiptEnds {
        lane,
        head: ReceiptLink::new((head.seq, head.hash)),
        pruned_through: ReceiptLink::new((pruned_through.seq, pruned_through.hash)),
    })
    .map(Answer::Json)
}

/// One receipt, flushed or not.
pub async fn read(app: &App, caller: &Caller, id: &str) -> Answered {
    let not_found = || Problem::new(ProblemCode::NotFound, "this receipt does not exist");
    let (lane, seq) = receipt_position(id).ok_or_else(not_found)?;
    own_lane(caller, lane)?;
    let rows = acknowledged(app, &caller.tenant, lane, seq, 1).await?;
    let row = rows.into_iter().find(|row| row.seq == seq).ok_or_else(not_found)?;
    json(&view(row, lane)?).map(Answer::Json)
}

/// Verifies a range of stored receipts. The lane says with which hash its chain ends. So the check finds a removed tail,
/// and a chain that was rewritten completely. It also says which receipts were pruned, so deleting
/// others is detected.
pub async fn verify(request: &Request, app: &App, caller: &Caller, body: &[u8]) -> Answered {
    request.require_json()?;
    // Refuses ambiguous JSON like every other route.
    gateward_core::json::parse(body)?;
    let asked: VerifyRequest = serde_json::from_str(gateward_core::json::utf8(body)?)
        .map_err(|error| Problem::new(ProblemCode::MalformedRequest, of_json(&error)))?;
    let lane = own_lane(caller, asked.lane)?;
    if asked.from == 0 || asked.to.is_some_and(|to| to < asked.from) {
        return Err(malformed("from", "a sequence number from 1, and not above `to`"));
    }
    let ChainEnds { head, pruned_through } =
        lane::client::chain_ends(app, &caller.tenant, lane).await?;
    if asked.from > head.seq + 1 {
        return Err(malformed("from", "at most one above the lane's newest receipt"));
    }
    let end = asked.to.unwrap_or(head.seq).min(head.seq);
    let pruned = pruned_through.seq;
    let from = asked.from.max(pruned + 1);
    let to = end.min(from.saturating_add(MAX_VERIFIED - 1));
    let (begins, mut previous) =
        link_before(app, &caller.tenant, lane, from, pruned_through).await?;
    let mut verification = Verification {
        verified: true,
        checked: 0,
        from,
        to,
        complete: false,
        next_from: None,
        begins,
        anchored: Anchored::Nothing,
        pruned_through: Some(pruned).filter(|pruned| *pruned > 0),
        broken_at: None,
        problem: None,
    };
    if end < from && asked.from <= pruned {
        verification.verified = false;
        verification.problem = Some("all receipts of this range were pruned".to_owned());
    }
    let (mut next, mut last) = (from, None);
    while next <= to {
        let limit = u32::try_from(to - next + 1).unwrap_or(MAX_RECEIPT_PAGE).min(MAX_RECEIPT_PAGE);
        let rows = acknowledged(app, &caller.tenant, lane, next, limit).await?;
        if let Err(broken) = verify_rows(&rows, next, previous.as_deref(), &head) {
            verification.verified = false;
            verification.checked += broken.seq - next;
            verification.broken_at = Some(broken.seq);
            verification.problem = Some(broken.problem);
            break;
        }
        verification.checked += rows.len() as u64;
        next += rows.len() as u64;
        previous = rows.last().map(|row| row.receipt_hash.clone());
        last = rows.into_iter().next_back();
    }
    if verification.verified {
        verification.complete = next > end;
        verification.next_from = Some(next).filter(|next| *next <= end);
        if next == head.seq + 1 && previous.as_deref() == Some(head.hash.as_str()) {
            verification.anchored = Anchored::Head;
        }
        let log = LogName { tenant: caller.tenant.clone(), lane };
        let in_tree = match &last {
            Some(last) => logs::is_in_tree(app, &log, last.seq, last.body.as_bytes()).await?,
            None => None,
        };
        match in_tree {
            Some(true) => verification.anchored = Anchored::Checkpoint,
            Some(false) => {
                verification.verified = false;
                verification.broken_at = last.map(|last| last.seq);
                let problem = "the receipt is not in the tree of the lane's signed checkpoint";
                verification.problem = Some(problem.to_owned());
            }
            None => {}
        }
    }
    json(&verification).map(Answer::Json)
}

/// The hash that the receipt `from` must link back to, and where it comes from.
async fn link_before(
    app: &App,
    tenant: &str,
    lane: u16,
    from: u64,
    pruned_through: ChainHead,
) -> Result<(Beginning, Option<String>), Problem> {
    if from == 1 {
        return Ok((Beginning::Genesis, Some(GENESIS.to_owned())));
    }
    let before = from - 1;
    if before == pruned_through.seq {
        return Ok((Beginning::Pruned, Some(pruned_through.hash)));
    }
    let rows = acknowledged(app, tenant, lane, before, 1).await?;
    Ok(match rows.into_iter().find(|row| row.seq == before) {
        Some(row) => (Beginning::Receipt, Some(row.receipt_hash)),
        None => (Beginning::Nothing, None),
    })
}

/// Verifies receipts from `next` on. If the lane's newest receipt is among them, it must be the one that the
/// lane issued.
fn verify_rows(
    rows: &[StoredReceipt],
    next: u64,
    previous: Option<&str>,
    head: &ChainHead,
) -> Result<(), receipt::Break> {
    if rows.is_empty() {
        let problem = format!("receipt {next} is missing");
        return Err(receipt::Break { seq: next, problem });
    }
    receipt::verify(rows, next, previous)?;
    if rows.iter().any(|row| row.seq == head.seq && row.receipt_hash != head.hash) {
        let problem = "the newest receipt does not have the hash that the lane holds".to_owned();
        return Err(receipt::Break { seq: head.seq, problem });
    }
    Ok(())
}

/// A lane of the tenant, or the one that keeps its head log.
fn own_lane(caller: &Caller, lane: u16) -> Result<u16, Problem> {
    let not_found = || Problem::new(ProblemCode::NotFound, "the tenant does not have this lane");
    (lane < caller.lanes || lane == HEAD_LANE).then_some(lane).ok_or_else(not_found)
}

/// Receipts from `from` on: flushed ones from D1, then unflushed ones from the lane's journal.
async fn acknowledged(
    app: &App,
    tenant: &str,
    lane: u16,
    from: u64,
    limit: u32,
) -> Result<Vec<StoredReceipt>, Problem> {
    let mut rows = d1::receipts::list(app, tenant, lane, from, limit).await?;
    if rows.len() == limit as usize {
        return Ok(rows);
    }
    let journal = from_journal(&lane::client::rows(app, tenant, lane, from).await?)?;
    if journal.is_empty() {
        // The rows were flushed after the read of D1, so it holds them now.
        return d1::receipts::list(app, tenant, lane, from, limit).await;
    }
    let gap = rows.last().map_or(from, |row| row.seq + 1);
    if journal.first().is_some_and(|first| first.seq > gap) {
        rows = d1::receipts::list(app, tenant, lane, from, limit).await?;
    }
    let end = rows.last().map_or(from, |row| row.seq + 1);
    rows.extend(journal.into_iter().filter(|row| row.seq >= end));
    rows.truncate(limit as usize);
    Ok(rows)
}
