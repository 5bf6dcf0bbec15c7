//! Roots of warrants: keys whose holders may sign warrants for calls of the tenant's agents.

use gateward_core::bounds::{
    MAX_REMEMBERED_LISTS, MAX_WARRANT_REVOCATIONS, MAX_WARRANT_ROOTS, WARRANT_REVOCATION_MS,
};
use gateward_core::field::{Ed25519Key, Label, Millis, Name, bounded, present};
use gateward_core::glob::Glob;
use gateward_core::problem::Problem;
use gateward_core::registry::{ChangeEvent, ChangedKey, WarrantRootStatus};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use gateward_core::warrant::cbor::Malformed;
use gateward_core::warrant::key::PublicKey;
use gateward_core::warrant::revocation::RevocationList;
use gateward_core::warrant::text;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::precondition::check_match;
use crate::refusal::{conflict, limit_reached, name_taken};
use crate::resource::Resource;

/// A root in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WarrantRootRow {
    root_id: String,
    public_key: PublicKey,
    description: Option<String>,
    allowed_servers: Option<Vec<Glob>>,
    status: WarrantRootStatus,
    created_by: String,
    /// The version of the newest list of revocations that the root's holder signed.
    list_version: Option<u64>,
    /// SHA-256 of that list's ids, in hex.
    list_sha256: Option<String>,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// A root of warrants.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WarrantRoot)]
pub struct WarrantRootView {
    root_id: String,
    /// An Ed25519 key: 64 lower-case hex digits.
    #[schema(value_type = String)]
    public_key: PublicKey,
    description: Option<String>,
    /// Globs on the names of servers whose tools its warrants can allow; null allows any, an empty list none.
    allowed_servers: Option<Vec<Glob>>,
    /// Warrants of a disabled root are denied.
    status: WarrantRootStatus,
    /// The administrator's name.
    created_by: String,
    /// The version of the newest list of revocations that was taken for this key; null if none was.
    revocation_list_version: Option<u64>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl Resource for WarrantRootRow {
    const SINGULAR: &'static str = "root of warrants";
    const PLURAL: &'static str = "warrant_roots";
    type View = WarrantRootView;

    fn cursor(&self) -> String {
        self.root_id.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> WarrantRootView {
        WarrantRootView {
            root_id: self.root_id.clone(),
            public_key: self.public_key,
            description: self.description.clone(),
            allowed_servers: self.allowed_servers.clone(),
            status: self.status,
            created_by: self.created_by.clone(),
            revocation_list_version: self.list_version,
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

/// A new root of warrants. It is active at once.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateWarrantRoot {
    root_id: Name,
    /// It never changes. Another key needs another root.
    public_key: Ed25519Key,
    description: Option<Label>,
    /// Globs on the names of servers whose tools its warrants can allow; null allows any, an empty list none.
    allowed_servers: Option<Vec<Glob>>,
}

/// A change of a root; members that are left out stay as they are, null clears.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WarrantRootPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Label>)]
    description: Option<Option<Label>>,
    /// Globs on the names of servers; null allows any, an empty list none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<Glob>>)]
    allowed_servers: Option<Option<Vec<Glob>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = WarrantRootStatus, required = false)]
    status: Option<WarrantRootStatus>,
}

/// What the statement that loads a root counts.
#[derive(Deserialize)]
struct WarrantRootContext {
    /// Roots of the tenant, up to one more than the bound.
    count: u64,
    /// The root that has the key already.
    with_key: Option<String>,
    /// Lists of deleted roots that are remembered, up to the bound.
    lists: u64,
    /// The version of the newest list of a deleted root that had this key.
    list_version: Option<u64>,
    list_sha256: Option<String>,
}

fn load(at: &At<'_>, root_id: &str, key: Option<PublicKey>) -> Statement {
    let most = MAX_WARRANT_ROOTS as u64 + 1;
    // Only for a new root.
    let most_lists = key.map_or(0, |_| MAX_REMEMBERED_LISTS as u64);
    let key = key.map(|key| key.to_string());
    let values = vec![at.tenant.into(), root_id.into(), key.into(), most.into(), most_lists.into()];
    Statement::new(sql::LOAD_WARRANT_ROOT, values)
}

impl Write for CreateWarrantRoot {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.root_id, Some(self.public_key.0))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        bounded("allowed_servers", self.allowed_servers.as_ref())?;
        if loaded.record::<WarrantRootRow>()?.is_some() {
            return Err(name_taken(WarrantRootRow::SINGULAR, false));
        }
        let context: WarrantRootContext = loaded.extra()?;
        if let Some(root_id) = context.with_key {
            return Err(conflict(&format!("the root `{root_id}` has this key")));
        }
        if context.count >= MAX_WARRANT_ROOTS as u64 {
            return Err(limit_reached("roots of warrants", MAX_WARRANT_ROOTS as u64));
        }
        // Deleting a root is never refused. So this bounds the lists that are remembered later.
        let most = MAX_REMEMBERED_LISTS as u64;
        if context.list_version.is_none() && context.lists >= most {
            return Err(limit_reached("deleted roots with a list of revocations", most));
        }
        let row = WarrantRootRow {
            root_id: self.root_id.to_string(),
            public_key: self.public_key.0,
            description: self.description.as_deref().map(str::to_owned),
            allowed_servers: self.allowed_servers.clone(),
            status: WarrantRootStatus::Active,
            created_by: at.issuer(),
            list_version: context.list_version,
            list_sha256: context.list_sha256,
            revision: loaded.next_epoch(),
            created_at_ms: Millis(at.now_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let mut change = save(at, ChangeEvent::WarrantRootCreated, &row)?;
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

/// [`WarrantRootPatch`] of one root.
pub struct PatchWarrantRoot {
    pub root_id: Name,
    pub patch: WarrantRootPatch,
}

impl Write for PatchWarrantRoot {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.root_id, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        let patch = &self.patch;
        bounded("allowed_servers", patch.allowed_servers.as_ref().and_then(Option::as_ref))?;
        if let Some(description) = &patch.description {
            row.description = description.as_deref().map(str::to_owned);
        }
        if let Some(allowed) = &patch.allowed_servers {
            row.allowed_servers.clone_from(allowed);
        }
        row.status = patch.status.unwrap_or(row.status);
        if row == before {
            let answer = AnswerBody::of(&before.view(at.now_ms), Some(before.revision))?;
            return Ok(Outcome::Unchanged(answer));
        }
        row.revision = loaded.next_epoch();
        row.updated_at_ms = Millis(at.now_ms);
        let mut change = save(at, ChangeEvent::WarrantRootUpdated, &row)?;
        let changes = difference(&before.view(at.now_ms), &row.view(at.now_ms));
        change.detail = with_changes(change.detail, Some(changes));
        Ok(Outcome::Changed(change))
    }
}

/// Deletes a root. Its warrants are denied from then on. The version of its newest list of revocations is remembered, so
/// that it does not go back if the key is registered again.
pub struct DeleteWarrantRoot {
    pub root_id: Name,
}

impl Write for DeleteWarrantRoot {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.root_id, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let row = existing(at, loaded)?;
        let values = || vec![at.tenant.into(), row.root_id.as_str().into()];
        let remember = Statement::new(sql::REMEMBER_WARRANT_LIST, values());
        let mut change = concerning(at, ChangeEvent::WarrantRootDeleted, &row, remember)?;
        change.statements.push(Statement::new(sql::DELETE_WARRANT_ROOT, values()));
        change.answer.revision = None;
        Ok(Outcome::Changed(change))
    }
}

/// A list of revocations that the holder of a root's key signed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevocationListRequest {
    /// The signed list in CBOR, as base64.
    #[schema(value_type = String)]
    pub list: SignedList,
}

/// [`RevocationListRequest`], read and verified.
#[derive(Debug)]
pub struct SignedList(RevocationList);

impl<'de> Deserialize<'de> for SignedList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read = text::decode(&text).and_then(|bytes| RevocationList::read(&bytes));
        read.map(Self).map_err(|Malformed(reason)| D::Error::custom(reason))
    }
}

/// Revokes the warrants of a signed list. A list can add revocations, and lifts none. They hold only for chains of
/// this root, because only the holder of this root signed the list.
pub struct TakeRevocationList {
    pub root_id: Name,
    pub request: RevocationListRequest,
}

impl TakeRevocationList {
    fn list(&self) -> &RevocationList {
        &self.request.list.0
    }

    fn ids(&self) -> Value {
        let ids: Vec<String> = self.list().revoked.iter().map(ToString::to_string).collect();
        Value::list(Some(&ids))
    }
}

/// Revocations that lists leave space for: a list must not keep administrators from revoking a warrant.
const KEPT_FREE: u64 = 500;

/// What the statement that loads a root for a list counts.
#[derive(Deserialize)]
struct Revoked {
    /// Revocations of the tenant that have not expired.
    count: u64,
    /// Those of them that earlier lists of the root made for warrants that are also in this list.
    listed: u64,
}

impl Write for TakeRevocationList {
    fn read(&self, at: &At<'_>) -> Statement {
        let root_id: &str = &self.root_id;
        let values = vec![
            at.tenant.into(),
            root_id.into(),
            self.ids(),
            at.now_ms.into(),
            self.list().issuer.to_string().into(),
        ];
        Statement::new(sql::LOAD_REVOCATION_LIST, values)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let (list, sha256) = (self.list(), hex::encode(self.list().ids_sha256));
        if list.issuer != before.public_key {
            return Err(Problem::field("list", "the list is not signed with the root's key"));
        }
        match before.list_version {
            Some(version) if version > list.version => {
                return Err(conflict(&format!("the root already has the newer version {version}")));
            }
            Some(version) if version == list.version => {
                if before.list_sha256.as_deref() != Some(&sha256) {
                    return Err(conflict(&format!("another list of version {version} was taken")));
                }
                let answer = AnswerBody::of(&before.view(at.now_ms), Some(before.revision))?;
                return Ok(Outcome::Unchanged(answer));
            }
            _ => {}
        }
        let revoked: Revoked = loaded.extra()?;
        let most = MAX_WARRANT_REVOCATIONS as u64 - KEPT_FREE;
        if revoked.count - revoked.listed + list.revoked.len() as u64 > most {
            return Err(limit_reached("revocations of warrants", most));
        }
        let row = WarrantRootRow {
            list_version: Some(list.version),
            list_sha256: Some(sha256),
            revision: loaded.next_epoch(),
            updated_at_ms: Millis(at.now_ms),
            ..before
        };
        let mut change = save(at, ChangeEvent::WarrantRevocationListTaken, &row)?;
        let expire = vec![at.tenant.into(), at.now_ms.into()];
        let reason = format!("on list {} of the root {}", list.version, row.root_id);
        let add = vec![
            at.tenant.into(),
            self.ids(),
            reason.into(),
            at.issuer().into(),
            at.now_ms.into(),
            (at.now_ms + WARRANT_REVOCATION_MS).into(),
            row.public_key.to_string().into(),
        ];
        change.statements.push(Statement::new(sql::EXPIRE_WARRANT_REVOCATIONS, expire));
        change.statements.push(Statement::new(sql::ADD_WARRANT_REVOCATIONS, add));
        change.detail = json!({
            "root_id": row.root_id,
            "version": list.version,
            "revoked": list.revoked.len(),
        });
        Ok(Outcome::Changed(change))
    }
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<WarrantRootRow, Problem> {
    let row: Option<WarrantRootRow> = loaded.record()?;
    let row = row.ok_or_else(|| Problem::not_found(WarrantRootRow::SINGULAR))?;
    check_match(at, row.revision)?;
    Ok(row)
}

fn save(at: &At<'_>, event: ChangeEvent, row: &WarrantRootRow) -> Result<Change, Problem> {
    let values = vec![
        at.tenant.into(),
        row.root_id.as_str().into(),
        row.public_key.to_string().into(),
        row.description.as_deref().into(),
        Value::list(row.allowed_servers.as_ref()),
        row.status.as_str().into(),
        row.created_by.as_str().into(),
        row.revision.into(),
        row.created_at_ms.0.into(),
        row.updated_at_ms.0.into(),
        row.list_version.into(),
        row.list_sha256.as_deref().into(),
    ];
    concerning(at, event, row, Statement::new(sql::SAVE_WARRANT_ROOT, values))
}

fn concerning(
    at: &At<'_>,
    event: ChangeEvent,
    row: &WarrantRootRow,
    statement: Statement,
) -> Result<Change, Problem> {
    let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
    let mut change = Change::new(event, answer, vec![statement]);
    change.detail = json!({ "root_id": row.root_id, "public_key": row.public_key });
    change.keys = vec![ChangedKey::Warrants];
    Ok(change)
}
