//! Epochs that other lanes of the tenant did not confirm. This object keeps sending them.
//!
//! INVARIANT (until it is safe): an epoch is sent to a lane until the lane confirms it, or until
//! the lane must have read it from D1 by itself.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, unreadable, unsigned};
use crate::registry::{MAX_GRACE_S, PendingPushes};
use crate::sql::lane as sql;

/// The pause after the first failed attempt. Each pause is twice the one before.
pub const PUSH_AGAIN_MS: u64 = 1_000;
/// The longest pause.
const MAX_PAUSE_MS: u64 = 30_000;
/// Lanes that get an epoch at the same time. Each may take two seconds.
const MAX_PUSHES: i64 = 32;

/// An epoch that a lane must be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPush {
    pub tenant: String,
    pub lane: u16,
    pub epoch: u64,
    /// Failed attempts.
    pub attempts: u32,
}

impl Lane {
    /// Stores the lanes that did not confirm an epoch.
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

    /// The pushes that are due. Deletes those that have expired.
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

    /// Deletes a push that the lane confirmed.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn pushed(storage: &impl LaneSql, pending: &PendingPush) -> Result<(), StorageError> {
        storage.exec(sql::PUSHED, &key(pending)?).map(drop)
    }

    /// Records a failed attempt.
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

    /// When the next push is due.
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
