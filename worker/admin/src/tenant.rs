//! Tenants: created, suspended and deleted by operators, who are administrators with
//! `tenants:admin`. Only a tenant's own administrators change what is inside it.

use gateward_core::bounds::MAX_TENANT_LANES;
use gateward_core::field::{Millis, Name, Whole, present};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::Destinations;
use gateward_core::registry::{ChangeEvent, ChangedKey, Settings, TenantStatus};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::administrator;
use crate::answer::AnswerBody;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Count, Loaded, Outcome, Write};
use crate::credential::{IssuedCredential, Mint, SECRETS};
use crate::precondition::check_match;
use crate::refusal::{conflict, limit_reached, name_taken};
use crate::resource::Resource;

/// Tenants of a worker, deleted ones included: their names cannot be used again.
pub const MAX_TENANTS: u64 = 100_000;

/// The name of a tenant's first administrator if the request gives none.
const FIRST_ADMINISTRATOR: &str = "admin";

const MOST_LANES: u32 = MAX_TENANT_LANES as u32;

/// The longest time for which records can be kept: a hundred years, longer than any database is used.
const MAX_RETENTION_DAYS: u32 = 36_500;

/// How much a tenant's lanes may write, and how long records are kept. Only operators set it:
/// tenants may share a database. Null: the default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StorageLimits {
    /// Rows that all its lanes together may write in a UTC day. Default 250,000.
    rows_per_day: Option<u32>,
    /// Bytes of these rows. Default 500,000,000.
    bytes_per_day: Option<u32>,
    /// Days after which decisions, receipts and audit events are deleted. Default 400.
    retention_days: Option<u32>,
}

/// A tenant in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TenantRow {
    tenant: String,
    status: TenantStatus,
    lanes: u16,
    #[serde(flatten)]
    pub(super) settings: Settings,
    #[serde(flatten)]
    storage: StorageLimits,
    destinations: Option<Destinations>,
    pub(super) revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct Tenant {
    tenant: String,
    status: TenantStatus,
    /// Number of lanes over which its agents are spread.
    lanes: u16,
    #[serde(flatten)]
    storage: StorageLimits,
    /// Its own accounts, domains and hosts, which tainted runs may reach. Null: none.
    destinations: Option<Destinations>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl Resource for TenantRow {
    const SINGULAR: &'static str = "tenant";
    const PLURAL: &'static str = "tenants";
    type View = Tenant;

    fn cursor(&self) -> String {
        self.tenant.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> Tenant {
        Tenant {
            tenant: self.tenant.clone(),
            status: self.status,
            lanes: self.lanes,
            storage: self.storage.clone(),
            destinations: self.destinations.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

impl TenantRow {
    fn save(&self, at: &At<'_>) -> Statement {
        Statement::new(
            sql::SAVE_TENANT,
            vec![
                at.tenant.into(),
                self.status.as_str().into(),
                u64::from(self.lanes).into(),
                json!(self.settings).to_string().into(),
                json!(self.storage).to_string().into(),
                self.revision.into(),
                at.now_ms.into(),
                Value::json(self.destinations.as_ref()),
            ],
        )
    }
}

/// The statement that every change of a tenant's row reads.
pub(super) fn load(at: &At<'_>) -> Statement {
    Statement::new(sql::LOAD_TENANT, vec![at.tenant.into(), (MAX_TENANTS + 1).into()])
}

pub(super) fn existing(at: &At<'_>, loaded: &Loaded) -> Result<TenantRow, Problem> {
    let row: Option<TenantRow> = loaded.record()?;
    let row = row
        .filter(|row| row.status != TenantStatus::Deleted)
        .ok_or_else(|| Problem::not_found("tenant"))?;
    check_match(at, row.revision)?;
    Ok(row)
}

pub(super) fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: &TenantRow,
    mut row: TenantRow,
    event: ChangeEvent,
) -> Result<Outcome, Problem> {
    if row == *before {
        return AnswerBody::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    row.revision = loaded.next_epoch();
    row.updated_at_ms = Millis(at.now_ms);
    let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
    let mut change = Change::new(event, answer, vec![row.save(at)]);
    let detail = json!({ "tenant": row.tenant, "status": row.status, "lanes": row.lanes });
    let changes = difference(&before.view(at.now_ms), &row.view(at.now_ms));
    change.detail = with_changes(detail, Some(changes));
    change.keys = vec![ChangedKey::Tenant];
    Ok(Outcome::Changed(change))
}

/// A new tenant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantRequest {
    pub tenant: Name,
    /// Number of lanes over which its agents are spread: more lanes, more throughput. 1 if left
    /// out.
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 512)]
    lanes: Option<Whole<1, MOST_LANES>>,
    /// Its first administrator's name; `admin` when left out.
    administrator: Option<Name>,
}

/// A new tenant and its first administrator's credential, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedTenant {
    tenant: Tenant,
    credential: IssuedCredential,
}

/// [`TenantRequest`] with the keys and random bytes of the credential.
pub struct CreateTenant<'a> {
    pub request: TenantRequest,
    pub mint: Mint<'a>,
}

impl Write for CreateTenant<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        if let Some(row) = loaded.record::<TenantRow>()? {
            return Err(name_taken("tenant", row.status == TenantStatus::Deleted));
        }
        if loaded.extra::<Count>()?.count >= MAX_TENANTS {
            return Err(limit_reached("tenants", MAX_TENANTS));
        }
        let lanes = self.request.lanes.map_or(1, |lanes| lanes.0);
        let name = self.request.administrator.as_deref().unwrap_or(FIRST_ADMINISTRATOR);
        let row = TenantRow {
            tenant: at.tenant.to_owned(),
            status: TenantStatus::Active,
            lanes: u16::try_from(lanes).unwrap_or(1),
            settings: Settings::default(),
            storage: StorageLimits::default(),
            destinations: None,
            revision: 1,
            created_at_ms: Millis(at.now_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let issued = self.mint.administrator(at, name, tenant_scopes(), 1);
        let created =
            CreatedTenant { tenant: row.view(at.now_ms), credential: issued.view(at.now_ms) };
        let answer = AnswerBody::of(&created, Some(row.revision))?;
        let statements = vec![
            create(at, u64::from(lanes)),
            administrator::create(at, name, true),
            issued.statement,
        ];
        let mut change = Change::new(ChangeEvent::TenantCreated, answer, statements);
        change.detail = json!({ "tenant": at.tenant, "lanes": lanes, "administrator": name });
        change.created = true;
        change.secrets = &["/credential/token"];
        Ok(Outcome::Changed(change))
    }
}

/// All scopes inside a tenant. Only operators create operators.
fn tenant_scopes() -> Vec<Scope> {
    Scope::ALL.into_iter().filter(|scope| *scope != Scope::TenantsAdmin).collect()
}

fn create(at: &At<'_>, lanes: u64) -> Statement {
    Statement::new(sql::CREATE_TENANT, vec![at.tenant.into(), lanes.into(), at.now_ms.into()])
}

/// A change of a tenant; members that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchTenant {
    /// `active` or `suspended`.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = TenantStatus, required = false)]
    status: Option<TenantStatus>,
    /// Can only grow: an agent never leaves its lane.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = u16, required = false, minimum = 1, maximum = 512)]
    lanes: Option<Whole<1, MOST_LANES>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    rows_per_day: Option<Option<Whole<1, { u32::MAX }>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    bytes_per_day: Option<Option<Whole<1, { u32::MAX }>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 36_500)]
    retention_days: Option<Option<Whole<1, MAX_RETENTION_DAYS>>>,
    /// Replaces all three lists; a list that is left out is empty. Null: no destination is allowed.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Destinations>)]
    destinations: Option<Option<Destinations>>,
}

impl Write for PatchTenant {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        if self.status == Some(TenantStatus::Deleted) {
            let detail = "`status`: must be `active` or `suspended`; DELETE deletes a tenant";
            return Err(Problem::field("status", detail));
        }
        row.status = self.status.unwrap_or(row.status);
        if let Some(lanes) = self.lanes {
            let lanes = u16::try_from(lanes.0).unwrap_or(row.lanes);
            if lanes < row.lanes {
                let detail = format!("`lanes`: must be at least {}, the present number", row.lanes);
                return Err(Problem::field("lanes", detail));
            }
            row.lanes = lanes;
        }
        if let Some(rows) = self.rows_per_day {
            row.storage.rows_per_day = rows.map(|rows| rows.0);
        }
        if let Some(bytes) = self.bytes_per_day {
            row.storage.bytes_per_day = bytes.map(|bytes| bytes.0);
        }
        if let Some(days) = self.retention_days {
            row.storage.retention_days = days.map(|days| days.0);
        }
        if let Some(destinations) = &self.destinations {
            row.destinations = destinations.as_ref().map(Destinations::normal).transpose()?;
        }
        conclude(at, loaded, &before, row, ChangeEvent::TenantChanged)
    }
}

/// Deletes a tenant: none of its credentials and tools can be used. Its records stay.
pub struct DeleteTenant;

impl Write for DeleteTenant {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before: TenantRow = loaded.record()?.ok_or_else(|| Problem::not_found("tenant"))?;
        if before.status == TenantStatus::Deleted {
            return AnswerBody::of(&before.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        check_match(at, before.revision)?;
        if at.tenant == at.actor.tenant {
            let detail = "you belong to this tenant: an operator of another tenant must delete it";
            return Err(conflict(detail));
        }
        let row = TenantRow { status: TenantStatus::Deleted, ..before.clone() };
        let mut outcome = conclude(at, loaded, &before, row, ChangeEvent::TenantDeleted)?;
        if let Outcome::Changed(change) = &mut outcome {
            change.answer.revision = None;
        }
        Ok(outcome)
    }
}

/// The first operator, and its tenant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BootstrapRequest {
    pub tenant: Name,
    /// The operator's name; `admin` when left out.
    administrator: Option<Name>,
}

/// [`BootstrapRequest`] with the keys and random bytes of the credential.
pub struct Bootstrap<'a> {
    pub request: BootstrapRequest,
    pub mint: Mint<'a>,
}

impl Bootstrap<'_> {
    fn administrator(&self) -> &str {
        self.request.administrator.as_deref().unwrap_or(FIRST_ADMINISTRATOR)
    }
}

impl Write for Bootstrap<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        let values = vec![at.tenant.into(), at.now_ms.into(), self.administrator().into()];
        Statement::new(sql::LOAD_BOOTSTRAP, values)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        #[derive(Deserialize)]
        struct Before {
            operators: u64,
            bootstraps: u64,
            /// The administrator of this name, if one exists or existed.
            named: Option<Named>,
            /// Whether the tenant has an administrator who can change it.
            administered: bool,
        }
        #[derive(Deserialize)]
        struct Named {
            deleted: bool,
        }
        let before: Before = loaded.extra()?;
        let row: Option<TenantRow> = loaded.record()?;
        // A tenant that lost its last administrator gets a new one. Only operators create
        // operators.
        let recovers = row.is_some() && !before.administered;
        let operated = before.operators > 0;
        if operated && !recovers {
            let detail = "an operator exists already and can create further administrators";
            return Err(Problem::new(ProblemCode::AlreadyBootstrapped, detail));
        }
        if row.as_ref().is_some_and(|row| row.status == TenantStatus::Deleted) {
            return Err(name_taken("tenant", true));
        }
        // An administrator is a person whose votes count: the bootstrap secret creates a new one,
        // and never takes over an existing one.
        if let Some(named) = before.named {
            return Err(name_taken("administrator", named.deleted));
        }
        let revision = loaded.next_epoch();
        let name = self.administrator();
        let scopes = if operated { tenant_scopes() } else { Scope::ALL.to_vec() };
        let issued = self.mint.administrator(at, name, scopes, revision);
        let answer = AnswerBody::of(&issued.view(at.now_ms), Some(revision))?;
        let detail = json!({ "tenant": at.tenant, "administrator": name });
        // If two run at once, for whatever tenants, the second fails on this key.
        let once = Statement::new(
            sql::INSERT_EVENT,
            vec![
                "".into(),
                format!("bootstrap.{}", before.bootstraps).into(),
                at.now_ms.into(),
                ChangeEvent::Bootstrapped.as_str().into(),
                at.actor.name.as_str().into(),
                detail.to_string().into(),
            ],
        );
        let mut statements = vec![once];
        if row.is_none() {
            statements.push(create(at, 1));
        }
        statements.push(administrator::create(at, name, true));
        statements.push(issued.statement);
        let mut change = Change::new(ChangeEvent::Bootstrapped, answer, statements);
        change.detail = detail;
        change.keys = vec![ChangedKey::All];
        change.created = true;
        change.secrets = SECRETS;
        Ok(Outcome::Changed(change))
    }
}
