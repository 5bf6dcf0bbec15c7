//! What the parts of an export share: the form of its lines, and why it fails.

use gateward_core::lane::{LogName, encode_hashes};
use gateward_core::tlog::Hash;
use serde::Deserialize;
use serde_json::{Value, from_str, json};

use crate::failure::Failure;

/// The members of a head log's entries.
#[derive(Deserialize)]
pub(super) struct HeadBody {
    pub kind: String,
    pub checkpoint: Option<String>,
    pub first: Option<u64>,
    pub of_lane: Option<u16>,
    pub pruned_through: Option<u64>,
    pub event_id: Option<String>,
}

pub(super) fn head_body(body: &str) -> Result<HeadBody, Failure> {
    from_str(body).map_err(|_| broken("a head log's entry"))
}

pub(super) fn broken(what: &str) -> Failure {
    Failure::Other(format!("the answer is not {what}"))
}

/// The receipt was there a moment ago, or when an earlier run began.
pub(super) fn deleted(log: &LogName) -> Failure {
    Failure::Other(format!(
        "receipts of `{log}` were deleted because of their age before they were exported: begin a new export"
    ))
}

pub(super) fn smaller(log: &LogName) -> Failure {
    Failure::Other(format!(
        "`{log}` has fewer entries than the file: name a file that does not exist"
    ))
}

pub(super) fn log_line(
    log: &LogName,
    first: u64,
    begin: u64,
    edge: &[Hash],
    prev_hash: &str,
) -> Value {
    let edge: Vec<String> = edge.iter().map(|hash| encode_hashes(&[*hash])).collect();
    json!({
        "type": "log", "log": log.to_string(), "first": first, "begin": begin, "edge": edge,
        "prev_hash": prev_hash,
    })
}
