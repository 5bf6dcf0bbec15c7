//! `GET /v1/log/{log}/…`: the transparency logs of a tenant, laid out as in <https://c2sp.org/tlog-tiles>, and proofs.
//!
//! Everything is read from D1: no lane is woken, and a reader verifies what it gets with the log's keys.

use gateward_core::lane::{LogName, encode_hashes};
use gateward_core::prefer;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::{
    ConsistencyProof, HashedEvent, InclusionProof, Logged, RegistryEvents,
};
use gateward_core::route::{Operation, Route};
use gateward_core::tlog::proof::{consistency, inclusion, verify_inclusion};
use gateward_core::tlog::tile::bundle;
use gateward_core::tlog::{Hash, Layer, TILE_WIDTH, TilePath, leaf_hash};
use serde::Deserialize;
use worker::worker_sys::web_sys::Response;

use crate::answer::{Answer, Answered, internal, whole};
use crate::app::App;
use crate::authentication;
use crate::authentication::Caller;
use crate::d1;
use crate::d1::logs::{Nodes, StoredCheckpoint, no_tile};
use crate::handlers::parameters::malformed;
use crate::http::{Head, Request, json};
use crate::limits::{D1_READ_MS, MAX_WAIT_S};
use crate::{io, lane};

const TEXT: &str = "text/plain; charset=utf-8";

/// Answers a request for a log. A caller without a credential may read the logs of tenants that publish them.
pub async fn answer(
    request: &Request,
    app: &App,
    route: &Route,
    log: &str,
    tile: &str,
) -> Answered {
    let not_found = || Problem::new(ProblemCode::NotFound, "this log does not exist");
    let name = LogName::parse(log);
    if request.authorization.is_empty() {
        let name = name.as_ref().ok_or_else(|| authentication::no_credential(request, app))?;
        if !d1::logs::is_public(app, &name.tenant).await? {
            return Err(authentication::no_credential(request, app));
        }
    } else {
        authentication::verify_mac(request, app, route.access)?;
        let caller = authentication::authenticate(request, app, route, &[]).await?;
        authentication::use_nonce(request, app, &caller).await?;
        if name.as_ref().is_none_or(|name| name.tenant != caller.tenant) {
            return Err(not_found());
        }
    }
    let name = name.ok_or_else(not_found)?;
    let Some(keys) = &app.settings.log_keys else { return Err(not_found()) };
    if route.operation == Operation::ReadLogKeys {
        let keys = keys.verifier_keys(&name);
        let lines: String = keys.iter().map(|key| format!("{key}\n")).collect();
        return whole(Head::of_type(200, TEXT, &app.request_id).with(&lines));
    }
    let checkpoint = newest(app, &name).await?.ok_or_else(not_found)?;
    match route.operation {
        Operation::ReadTile => read_tile(app, &name, &checkpoint, tile).await,
        Operation::ReadInclusion => {
            let (index, size) = numbers(request, ("index", "size"), checkpoint.size)?;
            let proof = prove_inclusion(app, &name, &checkpoint, (index, size)).await?;
            json(&proof).map(Answer::Json)
        }
        Operation::ReadConsistency => {
            let (from, to) = numbers(request, ("from", "to"), checkpoint.size)?;
            if from > to || to > checkpoint.size {
                return Err(malformed("from", "at most `to`, and `to` at most the log's size"));
            }
            let proof = prove(app, &name, &checkpoint, |node| consistency(from, to, node)).await?;
            let proof = proof.iter().map(encode).collect();
            json(&ConsistencyProof { log: name.to_string(), from, to, proof }).map(Answer::Json)
        }
        Operation::ReadCheckpoint => {
            let StoredCheckpoint { note, cosignatures, cosigned, .. } = checkpoint;
            // Until the witnesses have answered about the newest checkpoint, readers get the last cosigned one. Otherwise
            // they would rarely see a cosignature: the head log of a busy tenant has a new checkpoint every second.
            let is_asked = cosigned.is_empty() || !cosignatures.is_empty();
            let note = match is_asked || app.settings.witnesses.is_empty() {
                true => [note, cosignatures].concat(),
                false => cosigned,
            };
            whole(Head::of_type(200, TEXT, &app.request_id).with(&note))
        }
        _ => Err(not_found()),
    }
}

/// The seconds of the request's `Prefer: wait=…` (RFC 7240), at most [`MAX_WAIT_S`].
pub fn preferred_wait_s(request: &Request) -> Option<u32> {
    let wait_s = prefer::wait_s(request.header("prefer")?)?;
    Some(wait_s.min(MAX_WAIT_S))
}

/// Waits until a checkpoint covers the receipt of a decision, and adds the checkpoint and a proof to the lane's answer.
/// Without a receipt, the answer is not changed. If no checkpoint comes in time, the body is not changed.
pub async fn with_checkpoint(
    app: &App,
    tenant: &str,
    answer: Response,
    wait_s: u32,
) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    struct Decided {
        receipt: Option<Position>,
    }
    #[derive(Deserialize)]
    struct Position {
        lane: u16,
        seq: u64,
    }
    if app.settings.log_keys.is_none() || answer.status() != 200 {
        return Ok(answer);
    }
    let body = lane::client::text(&answer).await;
    let mut body = body.map_err(|why| lane::client::unavailable_to(app, why))?;
    let decided = serde_json::from_str(&body).ok().and_then(|decided: Decided| decided.receipt);
    let applied = decided.is_some().then(|| format!("wait={wait_s}"));
    if let Some(Position { lane, seq }) = decided {
        let log = LogName { tenant: tenant.to_owned(), lane };
        // The decision is valid, even if its checkpoint cannot be read.
        if let Ok(Some(logged)) = logged(app, &log, seq, wait_s).await
            && body.ends_with('}')
        {
            body.pop();
            body.extend([",\"log\":", &json(&logged)?, "}"]);
        }
    }
    io::with_body(&answer, &body, applied)
        .map_err(|_| internal("the response could not be written"))
}

/// The newest checkpoint; `None` if the log has none.
async fn newest(app: &App, log: &LogName) -> Result<Option<StoredCheckpoint>, Problem> {
    let read = d1::logs::checkpoint(&app.env, log).await;
    read.map_err(|error| d1::failed(app, error))
}

async fn logged(
    app: &App,
    log: &LogName,
    seq: u64,
    wait_s: u32,
) -> Result<Option<Logged>, Problem> {
    let of_lane = (log.tenant.as_str(), log.lane);
    if lane::client::await_checkpoint(app, of_lane, seq, wait_s * 1_000).await? < seq {
        return Ok(None);
    }
    let Some(stored) = newest(app, log).await? else { return Ok(None) };
    let Some(index) = seq.checked_sub(stored.first) else { return Ok(None) };
    let inclusion = prove_inclusion(app, log, &stored, (index, stored.size)).await?;
    Ok(Some(Logged { checkpoint: stored.note, inclusion }))
}

/// Whether a receipt is in the tree of the log's newest checkpoint. `None`: this is not known, because the checkpoint does
/// not cover the receipt, its signature is not valid, or D1 lacks hashes of its tree.
pub async fn is_in_tree(
    app: &App,
    log: &LogName,
    seq: u64,
    body: &[u8],
) -> Result<Option<bool>, Problem> {
    let Some(keys) = &app.settings.log_keys else { return Ok(None) };
    let Some(stored) = newest(app, log).await? else { return Ok(None) };
    let Some(index) = seq.checked_sub(stored.first).filter(|index| *index < stored.size) else {
        return Ok(None);
    };
    // A log without new entries can have a note that only an earlier key signed.
    let Some(tree) = keys.open(log, &stored.note) else { return Ok(None) };
    match prove(app, log, &stored, |node| inclusion(index, tree.size, node)).await {
        Ok(proof) => {
            Ok(Some(verify_inclusion(index, tree.size, &leaf_hash(body), &proof, &tree.root)))
        }
        Err(problem) if problem.code == ProblemCode::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// The proof that an entry is in a tree of the log.
async fn prove_inclusion(
    app: &App,
    log: &LogName,
    checkpoint: &StoredCheckpoint,
    (index, size): (u64, u64),
) -> Result<InclusionProof, Problem> {
    if index >= size || size > checkpoint.size {
        return Err(malformed("index", "below `size`, and `size` at most the log's size"));
    }
    let mut leaf = None;
    let proof = prove(app, log, checkpoint, |node| {
        leaf = node(0, index);
        leaf.and_then(|_| inclusion(index, size, node))
    });
    let proof = proof.await?.iter().map(encode).collect();
    let leaf_hash = leaf.as_ref().map(encode).unwrap_or_default();
    Ok(InclusionProof { log: log.to_string(), index, size, leaf_hash, proof })
}

/// Computes a proof twice: first to find out which hashes it needs, then with the hashes from D1.
async fn prove(
    app: &App,
    log: &LogName,
    checkpoint: &StoredCheckpoint,
    mut make: impl FnMut(&mut dyn FnMut(u8, u64) -> Option<Hash>) -> Option<Vec<Hash>>,
) -> Result<Vec<Hash>, Problem> {
    let mut needed = Vec::new();
    make(&mut |height, index| {
        needed.push((height, index));
        Some(Hash::default())
    });
    let nodes: Nodes = d1::logs::nodes(app, log, checkpoint, &needed).await?;
    make(&mut |height, index| nodes.get(&(height, index)).copied()).ok_or_else(|| {
        Problem::new(
            ProblemCode::NotFound,
            "the log no longer has the hashes that this proof needs: its receipts were deleted because of their age",
        )
    })
}

/// A tile, or a bundle of entries.
async fn read_tile(
    app: &App,
    log: &LogName,
    checkpoint: &StoredCheckpoint,
    path: &str,
) -> Answered {
    let path = TilePath::parse(path).ok_or_else(no_tile)?;
    let bytes = match path.layer {
        Layer::Hashes(_) => {
            let hashes = d1::logs::tile(app, log, checkpoint, &path).await?;
            hashes.ok_or_else(no_tile)?.concat()
        }
        Layer::Entries => {
            let width = u64::from(path.width);
            let first = path.number.checked_mul(TILE_WIDTH).ok_or_else(no_tile)?;
            if first.saturating_add(width) > checkpoint.size {
                return Err(no_tile());
            }
            let from = checkpoint.first + first;
            let limit = path.width.into();
            let rows = d1::receipts::list(app, &log.tenant, log.lane, from, limit).await?;
            let follows = rows.iter().zip(from..).all(|(row, seq)| row.seq == seq);
            if !follows || rows.len() as u64 != width {
                return Err(no_tile());
            }
            bundle(rows.iter().map(|row| row.body.as_bytes())).ok_or_else(no_tile)?
        }
    };
    whole(Head::of_type(200, "application/octet-stream", &app.request_id).with_bytes(&bytes))
}

/// The audit events of the registry as the head log hashes them; `after`.
pub async fn registry_events(request: &Request, app: &App, caller: &Caller) -> Answered {
    let mut after = 0;
    for (name, value) in request.query() {
        match name.as_ref() {
            "after" => after = value.parse().map_err(|_| malformed("after", "an epoch"))?,
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let read = d1::logs::registry_events(&app.env, &caller.tenant, after, D1_READ_MS).await;
    let (events, through, _) = read.map_err(|error| d1::failed(app, error))?;
    let events = events
        .into_iter()
        .map(|event| HashedEvent { event: event.canonical(), event_id: event.event_id })
        .collect();
    json(&RegistryEvents { events, through }).map(Answer::Json)
}

/// Two numbers of the query; the second one may be left out.
fn numbers(
    request: &Request,
    (first, second): (&str, &str),
    default: u64,
) -> Result<(u64, u64), Problem> {
    let (mut a, mut b) = (None, default);
    for (name, value) in request.query() {
        let number = value.parse::<u64>().map_err(|_| malformed(&name, "a number from 0 on"));
        match name.as_ref() {
            name if name == first => a = Some(number?),
            name if name == second => b = number?,
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    Ok((a.ok_or_else(|| malformed(first, "present"))?, b))
}

fn encode(hash: &Hash) -> String {
    encode_hashes(std::slice::from_ref(hash))
}
