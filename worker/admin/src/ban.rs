//! Bans: calls of an agent, a user, a run or a network are denied, until a time or for ever.

use gateward_core::bounds::MAX_BANS;
use gateward_core::field::{Label, Millis, Name, Time};
use gateward_core::name::is_name;
use gateward_core::network::Network;
use gateward_core::problem::Problem;
use gateward_core::registry::{BanKind, ChangeEvent, ChangedKey};
use gateward_core::sql::administration::{self as sql, Statement};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Change, Count, Loaded, Outcome, Write};
use crate::precondition::check_no_match;
use crate::refusal::{limit_reached, refused};
use crate::resource::Resource;

/// Random bytes of a ban's id.
pub const RANDOM_BYTES: usize = 8;

/// A ban in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BanRow {
    ban_id: String,
    kind: BanKind,
    subject: String,
    reason: String,
    created_by: String,
    created_at_ms: Millis,
    expires_at_ms: Option<Millis>,
}

/// A ban.
#[derive(Debug, Serialize, ToSchema)]
pub struct Ban {
    ban_id: String,
    kind: BanKind,
    /// A name or id; for `source_address` a network in CIDR notation.
    subject: String,
    reason: String,
    /// The administrator's name.
    created_by: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    /// Null: never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
}

impl Resource for BanRow {
    const SINGULAR: &'static str = "ban";
    const PLURAL: &'static str = "bans";
    type View = Ban;

    fn cursor(&self) -> String {
        self.ban_id.clone()
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> Ban {
        Ban {
            ban_id: self.ban_id.clone(),
            kind: self.kind,
            subject: self.subject.clone(),
            reason: self.reason.clone(),
            created_by: self.created_by.clone(),
            created_at: self.created_at_ms,
            expires_at: self.expires_at_ms,
        }
    }
}

/// A new ban.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BanRequest {
    kind: BanKind,
    /// A name or id; for `source_address` an address or a network in CIDR notation.
    subject: Label,
    reason: Option<Label>,
    /// When it ends; null means never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

/// [`BanRequest`] with the random part of the ban's id.
pub struct CreateBan {
    pub request: BanRequest,
    pub random: [u8; RANDOM_BYTES],
}

fn load(at: &At<'_>, ban_id: &str) -> Statement {
    Statement::new(sql::LOAD_BAN, vec![at.tenant.into(), ban_id.into(), at.now_ms.into()])
}

impl Write for CreateBan {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, "")
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let request = &self.request;
        let subject = match request.kind {
            BanKind::Agent if !is_name(&request.subject) => {
                return Err(refused("subject", "must be an agent's name"));
            }
            BanKind::Agent | BanKind::User | BanKind::Run => request.subject.to_string(),
            BanKind::SourceAddress => match request.subject.parse::<Network>() {
                Ok(network) => network.to_string(),
                Err(_) => return Err(refused("subject", "must be an address or a network")),
            },
        };
        if request.expires_at.is_some_and(|at_ms| at_ms.0 <= at.now_ms) {
            return Err(refused("expires_at", "must be in the future"));
        }
        if loaded.extra::<Count>()?.count >= MAX_BANS as u64 {
            return Err(limit_reached("bans", MAX_BANS as u64));
        }
        let row = BanRow {
            ban_id: format!("ban-{}", hex::encode(self.random)),
            kind: request.kind,
            subject,
            reason: request.reason.as_deref().unwrap_or_default().to_owned(),
            created_by: at.actor.name.clone(),
            created_at_ms: Millis(at.now_ms),
            expires_at_ms: request.expires_at.map(|time| Millis(time.0)),
        };
        let create = Statement::new(
            sql::CREATE_BAN,
            vec![
                at.tenant.into(),
                row.ban_id.as_str().into(),
                row.kind.as_str().into(),
                row.subject.as_str().into(),
                row.reason.as_str().into(),
                row.created_by.as_str().into(),
                at.now_ms.into(),
                row.expires_at_ms.map(|time| time.0).into(),
            ],
        );
        let expire = Statement::new(sql::EXPIRE_BANS, vec![at.tenant.into(), at.now_ms.into()]);
        let mut change = concerning(ChangeEvent::BanCreated, at, &row, vec![expire, create])?;
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

fn concerning(
    event: ChangeEvent,
    at: &At<'_>,
    row: &BanRow,
    statements: Vec<Statement>,
) -> Result<Change, Problem> {
    let mut change = Change::new(event, AnswerBody::of(&row.view(at.now_ms), None)?, statements);
    change.detail = json!({ "ban_id": row.ban_id, "kind": row.kind, "subject": row.subject });
    change.keys = vec![ChangedKey::Bans];
    Ok(change)
}

/// Lifts a ban.
pub struct DeleteBan {
    pub ban_id: Name,
}

impl Write for DeleteBan {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.ban_id)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        check_no_match(at)?;
        let row: BanRow = loaded.record()?.ok_or_else(|| Problem::not_found("ban"))?;
        let values = vec![at.tenant.into(), row.ban_id.as_str().into()];
        let statement = Statement::new(sql::DELETE_BAN, values);
        concerning(ChangeEvent::BanDeleted, at, &row, vec![statement]).map(Outcome::Changed)
    }
}
