//! The batch of statements that writes a change.

use gateward_core::sql::administration::{self as sql, Statement};
use serde_json::Value as Json;

use crate::change::{At, Change};
use crate::idempotency::keep;

/// The statements of the one batch that writes the change. With an idempotency key and the
/// request's fingerprint, the batch also stores the answer.
#[must_use]
pub fn commit(
    at: &At<'_>,
    epoch: u64,
    change: &Change,
    idempotency: Option<(&str, &str)>,
) -> Vec<Statement> {
    let event_id = format!("registry.{epoch}");
    let source = match at.actor.tenant.is_empty() || at.actor.tenant == at.tenant {
        true => at.actor.name.clone(),
        // An operator of another tenant.
        false => format!("{}/{}", at.actor.tenant, at.actor.name),
    };
    let detail = change.detail.to_string();
    let mut statements = vec![Statement::new(
        sql::INSERT_EVENT,
        vec![
            at.tenant.into(),
            event_id.into(),
            at.now_ms.into(),
            change.event.as_str().into(),
            source.into(),
            detail.into(),
        ],
    )];
    statements.extend(change.statements.iter().cloned());
    statements.push(Statement::new(sql::RAISE_EPOCH, vec![at.tenant.into(), epoch.into()]));
    if let Some(idempotency) = idempotency {
        let mut body = Json::Object(change.answer.body.clone());
        for pointer in change.secrets {
            if let Some(secret) = body.pointer_mut(pointer) {
                *secret = Json::Null;
            }
        }
        statements.extend(keep(at, epoch, change.status(), &body, idempotency));
    }
    statements
}
