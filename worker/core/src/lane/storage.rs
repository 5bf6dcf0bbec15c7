//! The lane's own SQLite, and reading what is stored there.
//!
//! INVARIANT (absent is not unreadable): a value that was never written is `None`. A value that
//! cannot be read is an error, and never becomes zero or empty.

use serde_json::json;

use super::audit::AuditCount;
use crate::approval::{Approval, ApprovalInput, HeldApproval};
use crate::gate::{AgentState, JournalEntry, StoredAnswer};
use crate::id::decision_position;
use crate::metrics::Tallies;
use crate::problem::Problem;
use crate::receipt::ChainHead;
use crate::sql::lane as sql;

/// The name in `meta` under which the tallies are kept.
pub(super) const TALLIES: &str = "tallies";

/// The name in `meta` under which the newest state checkpoint is kept.
pub(super) const CHECKPOINT: &str = "checkpoint";

/// A value of SQLite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// Storage failed. The text is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageError(pub String);

impl std::fmt::Display for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lane storage: {}", self.0)
    }
}

impl std::error::Error for StorageError {}

/// What a lane's method returns. The outer error is the storage's, the inner one is for the caller.
pub type LaneResult<T> = Result<Result<T, Problem>, StorageError>;

/// The lane's own SQLite. A statement runs completely or not at all.
pub trait LaneSql {
    /// Runs one statement and returns its rows.
    ///
    /// # Errors
    ///
    /// [`StorageError`]. An absent row is not an error.
    fn exec(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StorageError>;

    /// The size of the database in bytes.
    fn size_bytes(&self) -> u64;
}

pub(super) fn stored_answer(
    storage: &impl LaneSql,
    key: String,
) -> Result<Option<StoredAnswer>, StorageError> {
    let rows = storage.exec(sql::STORED_ANSWER, &[Value::Text(key)])?;
    match rows.first().map(Vec::as_slice) {
        None => Ok(None),
        Some([Value::Text(fingerprint), Value::Text(response)]) => {
            Ok(Some(StoredAnswer { fingerprint: fingerprint.clone(), response: response.clone() }))
        }
        Some(_) => Err(unreadable("a stored answer")),
    }
}

/// Forgets that a decision answers its request id. The next request with this id is decided anew.
pub(super) fn forget_answer(storage: &impl LaneSql, decision_id: &str) -> Result<(), StorageError> {
    let Some((_, seq)) = decision_position(decision_id) else { return Ok(()) };
    for statement in [sql::FORGET_REQUEST, sql::FORGET_REPLAY] {
        storage.exec(statement, &[integer(seq)?])?;
    }
    Ok(())
}

pub(super) fn meta(storage: &impl LaneSql, name: &str) -> Result<Option<String>, StorageError> {
    let rows = storage.exec(sql::META, &[Value::Text(name.to_owned())])?;
    Ok(first_text(&rows).map(str::to_owned))
}

pub(super) fn set_meta(
    storage: &impl LaneSql,
    name: &str,
    value: String,
) -> Result<(), StorageError> {
    storage.exec(sql::SET_META, &[Value::Text(name.to_owned()), Value::Text(value)]).map(drop)
}

/// Tallies that cannot be read begin anew: metrics must not keep a lane from starting.
pub(super) fn read_tallies(storage: &impl LaneSql) -> Result<Tallies, StorageError> {
    let stored = meta(storage, TALLIES)?;
    Ok(stored.and_then(|stored| Tallies::parse(&stored)).unwrap_or_default())
}

pub(super) fn set_head(storage: &impl LaneSql, head: &ChainHead) -> Result<(), StorageError> {
    set_meta(storage, "head", format!("{}:{}", head.seq, head.hash))
}

/// The agent's state as of the newest state checkpoint.
pub(super) fn checkpointed_state(
    storage: &impl LaneSql,
    agent: &str,
) -> Result<Option<AgentState>, StorageError> {
    let rows = storage.exec(sql::AGENT_STATE, &[Value::Text(agent.to_owned())])?;
    first_text(&rows).map(parse_state).transpose()
}

pub(super) fn parse_state(text: &str) -> Result<AgentState, StorageError> {
    serde_json::from_str(text).map_err(|_| unreadable("an agent's state"))
}

pub(super) fn parse_identity(text: &str) -> Result<(String, u16), StorageError> {
    let parts = text.split_once('/').and_then(|(t, lane)| Some((t.to_owned(), lane.parse().ok()?)));
    parts.ok_or_else(|| unreadable("the lane's identity"))
}

pub(super) fn parse_head(text: &str) -> Result<ChainHead, StorageError> {
    let parts = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
    let (seq, hash) = parts.ok_or_else(|| unreadable("the chain's head"))?;
    Ok(ChainHead { seq, hash: hash.to_owned() })
}

pub(super) fn first_text(rows: &[Vec<Value>]) -> Option<&str> {
    match rows.first()?.first()? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

pub(super) fn unreadable(what: &str) -> StorageError {
    StorageError(format!("{what} cannot be read"))
}

pub(super) fn missing_rows() -> StorageError {
    unreadable("the journal: rows are missing")
}

/// SQLite's integers are signed.
pub(super) fn integer(value: u64) -> Result<Value, StorageError> {
    i64::try_from(value).map(Value::Integer).map_err(|_| unreadable("a number above 2^63"))
}

pub(super) fn unsigned(value: i64) -> Result<u64, StorageError> {
    u64::try_from(value).map_err(|_| unreadable("a number below zero"))
}

pub(super) fn write_count(storage: &impl LaneSql, count: &AuditCount) -> Result<(), StorageError> {
    let values = [
        Value::Text(count.event_id.clone()),
        integer(count.at_ms)?,
        Value::Text(count.kind.to_owned()),
        Value::Text(count.source.clone()),
        integer(count.count)?,
    ];
    storage.exec(sql::SET_COUNT, &values).map(drop)
}

/// An approval with its call's arguments.
pub(super) fn read_approval(
    storage: &impl LaneSql,
    approval_id: &str,
) -> Result<Option<HeldApproval>, StorageError> {
    let rows = storage.exec(sql::APPROVAL, &[Value::Text(approval_id.to_owned())])?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let Ok([Value::Text(record), asked, edited]) = <[Value; 3]>::try_from(row) else {
        return Err(unreadable("an approval"));
    };
    let text = |value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    };
    let input = ApprovalInput { asked: text(asked), edited: text(edited) };
    Ok(Some(HeldApproval { approval: parse_approval(&record)?, input }))
}

pub(super) fn parse_approval(record: &str) -> Result<Approval, StorageError> {
    serde_json::from_str(record).map_err(|_| unreadable("an approval"))
}

/// Rows with approvals or limits, as the statement expects them.
pub(super) fn encode_steps(entries: &[&JournalEntry], now_ms: u64) -> String {
    let steps = entries.iter().map(|entry| {
        let input = entry.approval.as_ref();
        let limits = entry.limits.as_ref();
        let settles = limits.and_then(|limits| limits.settles.as_deref());
        json!([
            entry.head.seq,
            now_ms,
            entry.head.hash,
            entry.agent,
            entry.state,
            entry.request_key,
            entry.fingerprint,
            entry.nonce_key,
            entry.row,
            input.and_then(|input| input.asked.as_deref()),
            input.and_then(|input| input.edited.as_deref()),
            limits.map(|limits| &limits.books),
            limits.and_then(|limits| limits.reservation.as_ref()),
            settles,
        ])
    });
    serde_json::Value::Array(steps.collect()).to_string()
}

/// The sequence number of the newest state checkpoint, and the latest time of any row. Both are 0 before
/// the first one, and in a storage of a version that took none.
pub(super) fn read_checkpoint(storage: &impl LaneSql) -> Result<(u64, u64), StorageError> {
    let (seq, stored_ms) = match meta(storage, CHECKPOINT)? {
        Some(stored) => {
            let parts = stored.split_once(':');
            let parts = parts.and_then(|(seq, ms)| Some((seq.parse().ok()?, ms.parse().ok()?)));
            parts.ok_or_else(|| unreadable("the checkpoint"))?
        }
        None => (0, 0),
    };
    match storage.exec(sql::JOURNAL_LATEST, &[integer(seq)?])?.first().map(Vec::as_slice) {
        Some([Value::Integer(at_ms)]) => Ok((seq, unsigned(*at_ms)?.max(stored_ms))),
        _ => Err(unreadable("the journal's times")),
    }
}
