//! The lane's stored copy of registry records, so that an eviction during an outage of D1 does not
//! stop the lane's calls.
//!
//! INVARIANT (one epoch): every stored record is as it was in D1 at the stored epoch. The
//! transaction that raises the epoch deletes every record that may have changed.

use serde_json::json;

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, meta, set_meta, unreadable};
use crate::call::command::GateCommand;
use crate::json;
use crate::registry::{
    ChangedKey, EpochPush, LoadedListing, LoadedTexts, RecordKind, StoredRecord,
};
use crate::sql::lane as sql;

/// Records that are stored; with more, the oldest are deleted. Memory keeps as many of four kinds.
const MAX_STORED_RECORDS: i64 = 40_000;

const EPOCH: &str = "epoch";
const CONFIRMED: &str = "confirmed_at_ms";
const SHAPE: &str = "records_shape";

/// Raise it whenever a stored record gets a member that restricts calls, or another form: records of an older version
/// lack it, and must not be used. `tests/sql.rs` pins the members.
pub const RECORDS_SHAPE: &str = "6";

impl Lane {
    /// The epoch of the stored records, and when D1 last confirmed it.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn stored_registry(storage: &impl LaneSql) -> Result<(u64, Option<u64>), StorageError> {
        let confirmed = meta(storage, CONFIRMED)?;
        let confirmed = confirmed.map(|at_ms| at_ms.parse()).transpose();
        Ok((Self::stored_epoch(storage)?, confirmed.map_err(|_| unreadable("a confirmation"))?))
    }

    /// Stores records that D1 returned at `epoch`. Records of an older epoch than the stored one
    /// are ignored.
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
        let stored = Self::stored_epoch(storage)?;
        if epoch < stored {
            return Ok(());
        }
        let same_shape = meta(storage, SHAPE)?.as_deref() == Some(RECORDS_SHAPE);
        if epoch > stored || !same_shape {
            storage.exec(sql::FORGET_RECORDS, &[])?;
            set_meta(storage, EPOCH, epoch.to_string())?;
            set_meta(storage, SHAPE, RECORDS_SHAPE.to_owned())?;
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

    /// Applies a push: deletes the records that it names and stores its epoch, in one write.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then the lane must not confirm the push.
    pub fn take_push(storage: &impl LaneSql, push: &EpochPush) -> Result<(), StorageError> {
        let stored = Self::stored_epoch(storage)?;
        if push.epoch <= stored {
            // Written anyway, so that an object that was replaced cannot answer.
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

    /// The stored records that a command needs, if they have this epoch.
    pub fn stored_records(
        storage: &impl LaneSql,
        epoch: u64,
        command: &GateCommand,
    ) -> Result<Vec<StoredRecord>, StorageError> {
        let mut found = Vec::new();
        let same_shape = meta(storage, SHAPE)?.as_deref() == Some(RECORDS_SHAPE);
        if Self::stored_epoch(storage)? != epoch || !same_shape {
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

    /// The newest epoch that the lane stored.
    pub(super) fn stored_epoch(storage: &impl LaneSql) -> Result<u64, StorageError> {
        match meta(storage, EPOCH)? {
            Some(epoch) => epoch.parse().map_err(|_| unreadable("the epoch")),
            None => Ok(0),
        }
    }
}

/// What a change deletes: the kind, the first name, and the name before which the last one sorts.
/// Names have no character below `-`, so the range from `a/` to `a0` holds no name that begins with
/// `a-`.
fn of_key(key: &ChangedKey) -> Vec<serde_json::Value> {
    let one = |kind: RecordKind, name: &str| json!([kind.as_str(), name, format!("{name}\u{1}")]);
    match key {
        ChangedKey::Tenant => vec![one(RecordKind::Tenant, "")],
        ChangedKey::Agent(agent) => vec![one(RecordKind::Agent, agent)],
        ChangedKey::Credential(key_id) => vec![one(RecordKind::Credential, key_id)],
        ChangedKey::Server(server) => vec![
            one(RecordKind::Server, server),
            one(RecordKind::Listing, server),
            // `0` sorts directly after `/`.
            json!([RecordKind::Tool.as_str(), format!("{server}/"), format!("{server}0")]),
        ],
        ChangedKey::Tool(id) => {
            let server = id.split_once('/').map_or("", |(server, _)| server);
            vec![one(RecordKind::Tool, id), one(RecordKind::Listing, server)]
        }
        ChangedKey::Bans => vec![one(RecordKind::Bans, "")],
        ChangedKey::Warrants => vec![one(RecordKind::Warrants, "")],
        // Handled above.
        ChangedKey::All => Vec::new(),
    }
}

/// The name of the record of this kind that a command needs.
fn name_of(kind: RecordKind, command: &GateCommand) -> String {
    match kind {
        RecordKind::Tenant | RecordKind::Bans | RecordKind::Warrants => String::new(),
        RecordKind::Agent => command.call.agent.clone(),
        RecordKind::Credential => command.key_id.clone(),
        RecordKind::Server | RecordKind::Listing => command.call.server.clone(),
        RecordKind::Tool => command.call.tool_id(),
    }
}

/// Kind and name of every record that a command needs.
#[must_use]
pub fn needed(command: &GateCommand) -> Vec<(RecordKind, String)> {
    RecordKind::ALL.into_iter().map(|kind| (kind, name_of(kind, command))).collect()
}

/// The loaded records of a command, in their stored form.
#[must_use]
pub fn stored(command: &GateCommand, loaded: LoadedTexts) -> Vec<StoredRecord> {
    let null = || "null".to_owned();
    let LoadedTexts { tenant, agent, credential, server, tool, bans, warrants } = loaded;
    [
        (RecordKind::Tenant, Some(tenant.unwrap_or_else(null))),
        (RecordKind::Agent, Some(agent.unwrap_or_else(null))),
        (RecordKind::Credential, Some(credential.unwrap_or_else(null))),
        (RecordKind::Server, Some(server.unwrap_or_else(null))),
        (RecordKind::Tool, Some(tool.unwrap_or_else(null))),
        (RecordKind::Bans, bans),
        (RecordKind::Warrants, warrants),
    ]
    .into_iter()
    .filter_map(|(kind, text)| {
        Some(StoredRecord { kind, name: name_of(kind, command), text: text? })
    })
    .collect()
}

/// All tools of a command's server, in their stored form.
#[must_use]
pub fn stored_listing(command: &GateCommand, loaded: &LoadedListing) -> StoredRecord {
    let kind = RecordKind::Listing;
    // Plain data always serializes. An empty text could not be read.
    let text = json::to_string(&loaded.tools);
    StoredRecord { kind, name: name_of(kind, command), text }
}
