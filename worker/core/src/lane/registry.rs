//! The lane's stored copy of the registry's records, so that an eviction while D1 is away does not stop
//! its calls.
//!
//! INVARIANT (one epoch): every stored record is as it was in D1 at the stored epoch. What makes the
//! epoch newer deletes, in the same transaction, every record of which it is not known that it is the
//! same at both.

use serde_json::json;

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, meta, set_meta, unreadable};
use crate::call::command::GateCommand;
use crate::registry::{ChangedKey, EpochPush, RecordKind, StoredRecord, needed};
use crate::sql::lane as sql;

/// Records that are kept; the oldest beyond are deleted. As many as memory keeps of four kinds.
const MAX_STORED_RECORDS: i64 = 40_000;

const EPOCH: &str = "epoch";
const CONFIRMED: &str = "confirmed_at_ms";

impl Lane {
    /// The epoch of the stored records, and when D1 last confirmed it.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn stored_registry(storage: &impl LaneSql) -> Result<(u64, Option<u64>), StorageError> {
        let confirmed = meta(storage, CONFIRMED)?;
        let confirmed = confirmed.map(|at_ms| at_ms.parse()).transpose();
        Ok((Self::noted_epoch(storage)?, confirmed.map_err(|_| unreadable("a confirmation"))?))
    }

    /// Takes records that D1 gave at `epoch`, with which it confirmed that epoch. What comes from an
    /// older epoch than the stored one is dropped.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn keep_records(
        storage: &impl LaneSql,
        epoch: u64,
        asked_at_ms: u64,
        records: &[StoredRecord],
    ) -> Result<(), StorageError> {
        let stored = Self::noted_epoch(storage)?;
        if epoch < stored {
            return Ok(());
        }
        if epoch > stored {
            storage.exec(sql::FORGET_RECORDS, &[])?;
            set_meta(storage, EPOCH, epoch.to_string())?;
        }
        set_meta(storage, CONFIRMED, asked_at_ms.to_string())?;
        if !records.is_empty() {
            let rows = records
                .iter()
                .map(|record| json!([record.kind.as_str(), record.name, record.text]));
            let rows = Value::Text(serde_json::Value::Array(rows.collect()).to_string());
            storage.exec(sql::KEEP_RECORDS, &[rows])?;
            storage.exec(sql::BOUND_RECORDS, &[Value::Integer(MAX_STORED_RECORDS)])?;
        }
        Ok(())
    }

    /// Takes the news of a change: the records that it names go in the write that brings its epoch.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then the lane must not say that it took it.
    pub fn take_push(storage: &impl LaneSql, push: &EpochPush) -> Result<(), StorageError> {
        let stored = Self::noted_epoch(storage)?;
        if push.epoch <= stored {
            // Written all the same, so that an object that was superseded cannot answer.
            return set_meta(storage, EPOCH, stored.to_string());
        }
        if push.from != stored || push.keys.contains(&ChangedKey::All) {
            storage.exec(sql::FORGET_RECORDS, &[])?;
        } else {
            let named: Vec<_> = push.keys.iter().flat_map(of_key).collect();
            let named = serde_json::Value::Array(named).to_string();
            storage.exec(sql::FORGET_NAMED_RECORDS, &[Value::Text(named)])?;
        }
        set_meta(storage, EPOCH, push.epoch.to_string())
    }

    /// The stored records that a command needs, if they are of this epoch.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn stored_records(
        storage: &impl LaneSql,
        epoch: u64,
        command: &GateCommand,
    ) -> Result<Vec<StoredRecord>, StorageError> {
        let mut found = Vec::new();
        if Self::noted_epoch(storage)? != epoch {
            return Ok(found);
        }
        for (kind, name) in needed(command) {
            let key = [Value::Text(kind.as_str().to_owned()), Value::Text(name.clone())];
            let rows = storage.exec(sql::RECORD, &key)?;
            match rows.into_iter().next().as_deref() {
                None => {}
                Some([Value::Text(text)]) => {
                    found.push(StoredRecord { kind, name, text: text.clone() });
                }
                Some(_) => return Err(unreadable("a registry record")),
            }
        }
        Ok(found)
    }

    /// The newest epoch that the lane took.
    pub(super) fn noted_epoch(storage: &impl LaneSql) -> Result<u64, StorageError> {
        match meta(storage, EPOCH)? {
            Some(epoch) => epoch.parse().map_err(|_| unreadable("the epoch")),
            None => Ok(0),
        }
    }
}

/// What a change deletes: kind, first name, and the name before which the last one is. Names have no
/// character below `-`, so `a` and what begins with `a/` are told apart.
fn of_key(key: &ChangedKey) -> Vec<serde_json::Value> {
    let one = |kind: RecordKind, name: &str| json!([kind.as_str(), name, format!("{name}\u{1}")]);
    match key {
        ChangedKey::Tenant => vec![one(RecordKind::Tenant, "")],
        ChangedKey::Agent(agent) => vec![one(RecordKind::Agent, agent)],
        ChangedKey::Credential(key_id) => vec![one(RecordKind::Credential, key_id)],
        ChangedKey::Server(server) => vec![
            one(RecordKind::Server, server),
            one(RecordKind::Listing, server),
            // `0` comes after `/`.
            json!([RecordKind::Tool.as_str(), format!("{server}/"), format!("{server}0")]),
        ],
        ChangedKey::Tool(id) => {
            let server = id.split_once('/').map_or("", |(server, _)| server);
            vec![one(RecordKind::Tool, id), one(RecordKind::Listing, server)]
        }
        ChangedKey::Bans => vec![one(RecordKind::Bans, "")],
        // Came to its end before.
        ChangedKey::All => Vec::new(),
    }
}
