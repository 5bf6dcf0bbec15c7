//! The tenant's webhook: one address that gets messages about approvals. Only the answer that sets
//! it contains its secret, which is derived from a stored salt when it is needed.

use gateward_core::approval::webhook;
use gateward_core::credential::token::MacKeys;
use gateward_core::field::Millis;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::ChangeEvent;
use gateward_core::sql::administration::{self as sql, Statement};
use gateward_core::target::Target;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::precondition::check_match;
use crate::resource::Resource;

/// Random bytes of a salt: enough that no two salts of a tenant are equal.
pub const SALT_BYTES: usize = 16;

/// A webhook in D1, without its salt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WebhookRow {
    url: String,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// The tenant's webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub struct Webhook {
    url: String,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

/// A webhook that was set, with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuedWebhook {
    #[serde(flatten)]
    webhook: Webhook,
    /// The secret that verifies its messages, in the form of Standard Webhooks: `whsec_` and
    /// base64.
    secret: String,
}

impl Resource for WebhookRow {
    const SINGULAR: &'static str = "webhook";
    const PLURAL: &'static str = "webhooks";
    type View = Webhook;

    fn cursor(&self) -> String {
        String::new()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> Webhook {
        Webhook {
            url: self.url.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

/// Where a tenant's messages go.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookRequest {
    /// `https`, on the internet, without user and password.
    #[schema(max_length = 2048, example = "https://hooks.example.com/gateward")]
    pub url: String,
}

/// Sets the webhook, always with a new secret.
pub struct SetWebhook<'a> {
    pub target: Target,
    pub keys: &'a MacKeys,
    pub salt: [u8; SALT_BYTES],
}

fn load(at: &At<'_>) -> Statement {
    Statement::new(sql::LOAD_WEBHOOK, vec![at.tenant.into()])
}

impl Write for SetWebhook<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before: Option<WebhookRow> = loaded.record()?;
        match &before {
            Some(row) => check_match(at, row.revision)?,
            None if at.if_match.is_some() => {
                let detail = "there is no webhook: leave `If-Match` out";
                return Err(Problem::new(ProblemCode::PreconditionFailed, detail));
            }
            None => {}
        }
        let row = WebhookRow {
            url: self.target.as_str().to_owned(),
            revision: loaded.next_epoch(),
            created_at_ms: before.as_ref().map_or(Millis(at.now_ms), |row| row.created_at_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let salt = hex::encode(self.salt);
        let secret = webhook::secret(self.keys, at.tenant, &salt);
        let issued = IssuedWebhook { webhook: row.view(at.now_ms), secret };
        let answer = AnswerBody::of(&issued, Some(row.revision))?;
        let save = Statement::new(
            sql::SAVE_WEBHOOK,
            vec![
                at.tenant.into(),
                row.url.into(),
                salt.into(),
                row.revision.into(),
                row.created_at_ms.0.into(),
                row.updated_at_ms.0.into(),
            ],
        );
        let mut change = Change::new(ChangeEvent::WebhookSet, answer, vec![save]);
        change.created = before.is_none();
        // The path may be secret.
        change.detail = json!({ "origin": self.target.origin() });
        change.secrets = &["/secret"];
        Ok(Outcome::Changed(change))
    }
}

/// Deletes the webhook: no more messages are sent.
pub struct DeleteWebhook;

impl Write for DeleteWebhook {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let row: WebhookRow = loaded.record()?.ok_or_else(|| Problem::not_found("webhook"))?;
        check_match(at, row.revision)?;
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        let delete = Statement::new(sql::DELETE_WEBHOOK, vec![at.tenant.into()]);
        Ok(Outcome::Changed(Change::new(ChangeEvent::WebhookDeleted, answer, vec![delete])))
    }
}
