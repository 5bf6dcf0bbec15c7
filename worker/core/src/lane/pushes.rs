//! Epochs that some lanes did not take. This object is none of them: it goes on telling them.
//!
//! INVARIANT (until it is safe): a lane is told again until it confirms, or until it could no longer go
//! on by what it held when the change was made.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, unreadable, unsigned};
use crate::registry::{MAX_GRACE_S, PendingPushes};
use crate::sql::lane as sql;

/// The pause after the first failed attempt; each is twice the one before.
pub const PUSH_AGAIN_MS: u64 = 1_000;
/// The longest pause.
const MAX_PAUSE_MS: u64 = 30_000;
/// Lanes that are told at once; each may take two seconds.
const MAX_PUSHES: i64 = 32;

/// A lane that is to be told of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPush {
    pub tenant: String,
    pub lane: u16,
    pub epoch: u64,
    /// Attempts that failed.
    pub attempts: u32,
}

impl Lane {
    /// Takes lanes that did not confirm an epoch.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn keep_pushes(
        storage: &impl LaneSql,
        pending: &PendingPushes,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let until_ms = now_ms + u64::from(MAX_GRACE_S) * 1_000;
        for lane in &pending.lanes {
            let values = [
                Value::Text(pending.tenant.clone()),
                Value::Integer(i64::from(*lane)),
                integer(pending.epoch)?,
                integer(until_ms)?,
                integer(now_ms + PUSH_AGAIN_MS)?,
            ];
            storage.exec(sql::KEEP_PUSH, &values)?;
        }
        Ok(())
    }

    /// What is due by now. What is past its time is forgotten.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn due_pushes(
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<Vec<PendingPush>, StorageError> {
        storage.exec(sql::FORGET_PUSHES, &[integer(now_ms)?])?;
        let due = [integer(now_ms)?, Value::Integer(MAX_PUSHES)];
        let rows = storage.exec(sql::DUE_PUSHES, &due)?;
        let pending = |row: &Vec<Value>| match row.as_slice() {
            [
                Value::Text(tenant),
                Value::Integer(lane),
                Value::Integer(epoch),
                Value::Integer(n),
            ] => Some(PendingPush {
                tenant: tenant.clone(),
                lane: u16::try_from(*lane).ok()?,
                epoch: unsigned(*epoch).ok()?,
                attempts: u32::try_from(*n).ok()?,
            }),
            _ => None,
        };
        rows.iter().map(|row| pending(row).ok_or_else(|| unreadable("a push"))).collect()
    }

    /// The lane confirmed the epoch.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn pushed(storage: &impl LaneSql, pending: &PendingPush) -> Result<(), StorageError> {
        storage.exec(sql::PUSHED, &key(pending)?).map(drop)
    }

    /// It did not.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn push_failed(
        storage: &impl LaneSql,
        pending: &PendingPush,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let pause_ms = PUSH_AGAIN_MS.saturating_mul(2_u64.saturating_pow(pending.attempts));
        let due_ms = integer(now_ms + pause_ms.min(MAX_PAUSE_MS))?;
        let [tenant, lane, epoch] = key(pending)?;
        storage.exec(sql::PUSH_FAILED, &[tenant, lane, epoch, due_ms]).map(drop)
    }

    /// When the next one is due.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_push(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        match storage.exec(sql::NEXT_PUSH, &[])?.first().map(Vec::as_slice) {
            None => Ok(None),
            Some([Value::Integer(at_ms)]) => unsigned(*at_ms).map(Some),
            Some(_) => Err(unreadable("when a lane is told again")),
        }
    }
}

fn key(pending: &PendingPush) -> Result<[Value; 3], StorageError> {
    let tenant = Value::Text(pending.tenant.clone());
    Ok([tenant, Value::Integer(i64::from(pending.lane)), integer(pending.epoch)?])
}
