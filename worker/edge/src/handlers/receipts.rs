//! `GET /v1/receipts`, `/v1/receipts/{id}`, `/v1/receipts/ends` and `POST /v1/receipts/verify`.

use gateward_core::api::receipts::{
    Anchored, Beginning, DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE, ReceiptEnds, ReceiptLink,
    ReceiptPage, ReceiptView, Verification, VerifyRequest,
};
use gateward_core::id::{receipt_id, receipt_position};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::{self, CANON_VERSION, GENESIS, StoredReceipt};
use serde_json::value::RawValue;

use crate::authentication::Caller;
use crate::d1::receipts::from_journal;
use crate::handlers::decisions::{malformed, page_limit};
use crate::http::{Request, json};
use crate::router::{Answer, Answered, App};
use crate::{d1, lanes};

/// Receipts that one request verifies: about a second of hashing and reading.
const MAX_VERIFIED: u64 = 10_000;

fn view(row: StoredReceipt, lane: u16) -> Result<ReceiptView, Problem> {
    let unreadable = |_| Problem::new(ProblemCode::Internal, "the receipt's row cannot be read");
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
                    .filter(|from| *from > 0)
                    .ok_or_else(|| malformed("from", "a sequence number"))?;
            }
            "limit" => limit = page_limit(&value, MAX_RECEIPT_PAGE)?,
            _ => return Err(malformed(&name, "left out: there is no such parameter")),
        }
    }
    let lane = own_lane(caller, lane.ok_or_else(|| malformed("lane", "present"))?)?;
    let rows = acknowledged(app, &caller.tenant, lane, from, limit).await?;
    let full = rows.len() == limit as usize;
    let next_from = rows.last().filter(|_| full).map(|row| row.seq + 1);
    let receipts = rows.into_iter().map(|row| view(row, lane)).collect::<Result<_, _>>()?;
    json(&ReceiptPage { receipts, next_from }).map(Answer::Json)
}

/// Where a lane's receipts begin and end, as the lane itself holds it; `lane`.
pub async fn ends(request: &Request, app: &App, caller: &Caller) -> Answered {
    let mut lane = None;
    for (name, value) in request.query() {
        match name.as_ref() {
            "lane" => lane = Some(value.parse().map_err(|_| malformed("lane", "a lane's number"))?),
            _ => return Err(malformed(&name, "left out: there is no such parameter")),
        }
    }
    let lane = own_lane(caller, lane.ok_or_else(|| malformed("lane", "present"))?)?;
    let head = lanes::head(&app.env, &caller.tenant, lane).await?;
    let pruned = lanes::anchor(&app.env, &caller.tenant, lane).await?;
    json(&ReceiptEnds {
        lane,
        head: ReceiptLink::new(head),
        pruned_through: ReceiptLink::new(pruned),
    })
    .map(Answer::Json)
}

/// One receipt, flushed or not.
pub async fn read(app: &App, caller: &Caller, id: &str) -> Answered {
    let not_found = || Problem::new(ProblemCode::NotFound, "there is no such receipt");
    let (lane, seq) = receipt_position(id).ok_or_else(not_found)?;
    own_lane(caller, lane)?;
    let rows = acknowledged(app, &caller.tenant, lane, seq, 1).await?;
    let row = rows.into_iter().find(|row| row.seq == seq).ok_or_else(not_found)?;
    json(&view(row, lane)?).map(Answer::Json)
}

/// Verifies a range as it is stored. The lane says where its chain ends and with which hash, so
/// that a tail that was cut off is found too, and a chain that was sealed anew as a whole. It says
/// likewise which receipts were pruned, so that deleting others does not look like pruning.
pub async fn verify(request: &Request, app: &App, caller: &Caller, body: &[u8]) -> Answered {
    request.require_json()?;
    // Refuses ambiguous JSON, with the code that every other body gets.
    gateward_core::json::parse(body)?;
    let asked: VerifyRequest = serde_json::from_slice(body)
        .map_err(|error| Problem::new(ProblemCode::MalformedRequest, error.to_string()))?;
    let lane = own_lane(caller, asked.lane)?;
    if asked.from == 0 || asked.to.is_some_and(|to| to < asked.from) {
        return Err(malformed("from", "a sequence number from 1, and not above `to`"));
    }
    let (head, head_hash) = lanes::head(&app.env, &caller.tenant, lane).await?;
    if asked.from > head + 1 {
        return Err(malformed("from", "at most one above the lane's newest receipt"));
    }
    let (pruned, pruned_hash) = lanes::anchor(&app.env, &caller.tenant, lane).await?;
    let end = asked.to.unwrap_or(head).min(head);
    let from = asked.from.max(pruned + 1);
    let to = end.min(from.saturating_add(MAX_VERIFIED - 1));
    // The link back from the first.
    let (begins, mut previous) = if from == 1 {
        (Beginning::Genesis, Some(GENESIS.to_owned()))
    } else if from == pruned + 1 {
        (Beginning::Pruned, Some(pruned_hash))
    } else {
        let before = from - 1;
        let rows = acknowledged(app, &caller.tenant, lane, before, 1).await?;
        match rows.into_iter().find(|row| row.seq == before) {
            Some(row) => (Beginning::Receipt, Some(row.receipt_hash)),
            None => (Beginning::Nothing, None),
        }
    };
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
    let mut next = from;
    while next <= to {
        let limit = u32::try_from(to - next + 1).unwrap_or(MAX_RECEIPT_PAGE).min(MAX_RECEIPT_PAGE);
        let rows = acknowledged(app, &caller.tenant, lane, next, limit).await?;
        let ends_otherwise = |row: &StoredReceipt| row.seq == head && row.receipt_hash != head_hash;
        let result = if rows.is_empty() {
            Err(receipt::Break { seq: next, problem: format!("receipt {next} is missing") })
        } else {
            receipt::verify(&rows, next, previous.as_deref()).and_then(|()| {
                let problem = "the newest receipt is not the one that the lane issued".to_owned();
                let ends_otherwise = rows.iter().any(ends_otherwise);
                if ends_otherwise { Err(receipt::Break { seq: head, problem }) } else { Ok(()) }
            })
        };
        if let Err(broken) = result {
            verification.verified = false;
            verification.checked += broken.seq - next;
            verification.broken_at = Some(broken.seq);
            verification.problem = Some(broken.problem);
            break;
        }
        verification.checked += rows.len() as u64;
        next += rows.len() as u64;
        previous = rows.last().map(|row| row.receipt_hash.clone());
    }
    if verification.verified {
        verification.complete = next > end;
        verification.next_from = Some(next).filter(|next| *next <= end);
        if next == head + 1 && previous.as_deref() == Some(head_hash.as_str()) {
            verification.anchored = Anchored::Head;
        }
    }
    json(&verification).map(Answer::Json)
}

fn own_lane(caller: &Caller, lane: u16) -> Result<u16, Problem> {
    let not_found = || Problem::new(ProblemCode::NotFound, "the tenant has no such lane");
    (lane < caller.lanes).then_some(lane).ok_or_else(not_found)
}

/// Receipts from `from` on, from D1 and, where that ends, from the lane's journal.
async fn acknowledged(
    app: &App,
    tenant: &str,
    lane: u16,
    from: u64,
    limit: u32,
) -> Result<Vec<StoredReceipt>, Problem> {
    let mut rows = d1::receipts::list(&app.env, tenant, lane, from, limit).await?;
    if rows.len() == limit as usize {
        return Ok(rows);
    }
    let journal = from_journal(&lanes::rows(&app.env, tenant, lane, from).await?)?;
    if journal.is_empty() {
        // What the journal held at the first look is in D1 by now.
        return d1::receipts::list(&app.env, tenant, lane, from, limit).await;
    }
    let gap = rows.last().map_or(from, |row| row.seq + 1);
    if journal.first().is_some_and(|first| first.seq > gap) {
        rows = d1::receipts::list(&app.env, tenant, lane, from, limit).await?;
    }
    let end = rows.last().map_or(from, |row| row.seq + 1);
    rows.extend(journal.into_iter().filter(|row| row.seq >= end));
    rows.truncate(limit as usize);
    Ok(rows)
}
