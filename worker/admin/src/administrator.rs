//! Administrators: each is one person with any number of credentials. Approvals count persons, so a
//! quorum is worth only as much as the control over these records.

use gateward_core::field::{Millis, Name};
use gateward_core::problem::Problem;
use gateward_core::registry::{ChangeEvent, ChangedKey};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::{self as sql, Statement};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::last_administrator::LastAdministrator;
use crate::precondition::check_no_match;
use crate::protection::{self, Protected};
use crate::refusal::{limit_reached, name_taken, operators_only};
use crate::resource::Resource;

/// Administrators of a tenant, deleted ones included: their names cannot be used again.
pub const MAX_ADMINISTRATORS: u64 = 10_000;

/// An administrator in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AdministratorRow {
    administrator: String,
    created_by: String,
    first: bool,
    created_at_ms: Millis,
    deleted: bool,
}

/// An administrator: one person.
#[derive(Debug, Serialize, ToSchema)]
pub struct Administrator {
    administrator: String,
    /// The administrator who created the record, `<tenant>/<name>` for an operator of another
    /// tenant, `_bootstrap` for the bootstrap secret, `_unknown` if the record is older than this
    /// field.
    created_by: String,
    /// Whether this is the tenant's first administrator, created by the bootstrap secret or with
    /// the tenant.
    first: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl Resource for AdministratorRow {
    const SINGULAR: &'static str = "administrator";
    const PLURAL: &'static str = "administrators";
    type View = Administrator;

    fn cursor(&self) -> String {
        self.administrator.clone()
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> Administrator {
        Administrator {
            administrator: self.administrator.clone(),
            created_by: self.created_by.clone(),
            first: self.first,
            created_at: self.created_at_ms,
        }
    }
}

#[derive(Deserialize)]
struct AdministratorContext {
    count: u64,
    /// Whether one of the administrator's active credentials administers tenants.
    operates: bool,
    protected: Vec<Protected>,
    #[serde(flatten)]
    last: LastAdministrator,
}

fn load(at: &At<'_>, administrator: &str) -> Statement {
    let most = (MAX_ADMINISTRATORS + 1).into();
    let now = at.now_ms.into();
    Statement::new(sql::LOAD_ADMINISTRATOR, vec![at.tenant.into(), administrator.into(), most, now])
}

/// The statement that creates an administrator's record. An existing record stays; it becomes the
/// tenant's first administrator if `first` is true.
pub(super) fn create(at: &At<'_>, administrator: &str, first: bool) -> Statement {
    Statement::new(
        sql::CREATE_ADMINISTRATOR,
        vec![
            at.tenant.into(),
            administrator.into(),
            at.issuer().into(),
            u64::from(first).into(),
            at.now_ms.into(),
        ],
    )
}

/// A new administrator, without credentials.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAdministrator {
    administrator: Name,
}

impl Write for CreateAdministrator {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.administrator)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        if let Some(row) = loaded.record::<AdministratorRow>()? {
            return Err(name_taken("administrator", row.deleted));
        }
        if loaded.extra::<AdministratorContext>()?.count >= MAX_ADMINISTRATORS {
            return Err(limit_reached("administrators", MAX_ADMINISTRATORS));
        }
        let row = AdministratorRow {
            administrator: self.administrator.to_string(),
            created_by: at.issuer(),
            first: false,
            created_at_ms: Millis(at.now_ms),
            deleted: false,
        };
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        let statement = create(at, &row.administrator, false);
        let mut change = Change::new(ChangeEvent::AdministratorCreated, answer, vec![statement]);
        change.detail = json!({ "administrator": row.administrator });
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

/// Deletes an administrator: its credentials are revoked and it leaves all groups.
pub struct DeleteAdministrator {
    pub administrator: Name,
    /// Whether the last administrator may be deleted.
    pub last: bool,
}

impl Write for DeleteAdministrator {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.administrator)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        check_no_match(at)?;
        let row: AdministratorRow =
            loaded.record()?.ok_or_else(|| Problem::not_found("administrator"))?;
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        if row.deleted {
            return Ok(Outcome::Unchanged(answer));
        }
        let context: AdministratorContext = loaded.extra()?;
        if context.operates && !at.actor.scopes.contains(&Scope::TenantsAdmin) {
            return Err(operators_only());
        }
        context.last.check(self.last)?;
        protection::keeps_a_member(&context.protected)?;
        let key = || vec![at.tenant.into(), row.administrator.as_str().into()];
        let mut deleted = key();
        deleted.push(at.now_ms.into());
        let mut revoked = deleted.clone();
        revoked.push(loaded.next_epoch().into());
        let statements = vec![
            Statement::new(sql::REVOKE_CREDENTIALS_OF_ADMINISTRATOR, revoked),
            Statement::new(sql::DELETE_MEMBERSHIPS_OF_ADMINISTRATOR, key()),
            Statement::new(sql::DELETE_ADMINISTRATOR, deleted),
        ];
        let mut change = Change::new(ChangeEvent::AdministratorDeleted, answer, statements);
        change.detail = json!({ "administrator": row.administrator });
        // The administrator may have many credentials.
        change.keys = vec![ChangedKey::All];
        protection::guard(at, &context.protected, &row.administrator, change)
    }
}
