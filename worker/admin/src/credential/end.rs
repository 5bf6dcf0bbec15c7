//! How a credential ends: after another one replaced it, or revoked.

use gateward_core::field::{Millis, Name, Whole, present};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangeEvent, ChangedKey, CredentialKind};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::{self as sql, Statement};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{CredentialContext, CredentialRow, MAX_CREDENTIALS, Mint, check_grant, existing, load};
use crate::answer::AnswerBody;
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::refusal::{conflict, limit_reached, operators_only};
use crate::resource::Resource;

/// The longest overlap after a rotation: 30 days.
const MAX_OVERLAP_S: u32 = 2_592_000;
/// The overlap if the request gives none: a day.
const DEFAULT_OVERLAP_S: u32 = 86_400;

/// The statement that writes the end of `row`.
fn end(at: &At<'_>, row: &CredentialRow) -> Statement {
    Statement::new(
        sql::END_CREDENTIAL,
        vec![
            at.tenant.into(),
            row.key_id.as_str().into(),
            if row.revoked { "revoked" } else { "active" }.into(),
            row.expires_at_ms.map(|time| time.0).into(),
            row.revision.into(),
        ],
    )
}

/// How a credential is rotated.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    /// Seconds for which the old credential stays valid; a day if left out, at most 30 days.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = u32, required = false, minimum = 0, maximum = 2_592_000)]
    overlap_s: Option<Whole<0, MAX_OVERLAP_S>>,
}

/// Issues a copy of a credential with a new secret. The old one ends after the overlap.
pub struct RotateCredential<'a> {
    pub key_id: Name,
    pub request: RotateRequest,
    pub mint: Mint<'a>,
}

impl Write for RotateCredential<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.key_id, None, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut old = existing(at, loaded)?;
        if old.revoked || old.expired(at.now_ms) {
            return Err(conflict("the credential is revoked or has expired: create a new one"));
        }
        let context: CredentialContext = loaded.extra()?;
        let lane = match (&context.agent, old.kind) {
            (_, CredentialKind::Administrator) => {
                // The caller gets the new secret.
                if old.administrator.as_deref() != Some(at.actor.name.as_str()) {
                    let detail = "only the administrator of a credential rotates it";
                    return Err(Problem::new(ProblemCode::Forbidden, detail));
                }
                check_grant(at.actor, &old)?;
                0
            }
            (Some(agent), CredentialKind::Agent) if !agent.revoked => agent.lane,
            (_, CredentialKind::Agent) => {
                return Err(conflict("the credential's agent is revoked or deleted"));
            }
        };
        if context.count >= MAX_CREDENTIALS {
            return Err(limit_reached("credentials", MAX_CREDENTIALS));
        }
        let revision = loaded.next_epoch();
        let new = CredentialRow {
            issued_by: Some(at.issuer()),
            issuer_key_id: Some(at.actor.key_id.clone()),
            first_key_id: Some(old.first_key_id.clone().unwrap_or_else(|| old.key_id.clone())),
            revision,
            created_at_ms: Millis(at.now_ms),
            ..old.clone()
        };
        let overlap_s = self.request.overlap_s.map_or(DEFAULT_OVERLAP_S, |value| value.0);
        let ends = at.now_ms.saturating_add(u64::from(overlap_s) * 1_000);
        old.expires_at_ms = Some(Millis(old.expires_at_ms.map_or(ends, |time| time.0.min(ends))));
        old.revision = revision;
        let end_old = end(at, &old);
        let mut change =
            self.mint.issue(at.tenant, new, lane).change(at, ChangeEvent::CredentialRotated)?;
        change.statements.push(end_old);
        change.keys.push(ChangedKey::Credential(old.key_id.clone()));
        if let Some(detail) = change.detail.as_object_mut() {
            detail.insert("rotated".to_owned(), old.key_id.into());
        }
        Ok(Outcome::Changed(change))
    }
}

/// Revokes a credential, at once and for ever.
pub struct RevokeCredential {
    pub key_id: Name,
    /// Whether the last administrator's last credential may be revoked.
    pub last: bool,
}

impl Write for RevokeCredential {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.key_id, None, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut row = existing(at, loaded)?;
        if row.revoked {
            let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
            return Ok(Outcome::Unchanged(answer));
        }
        let operates = row.scopes.contains(&Scope::TenantsAdmin);
        if operates && !at.actor.scopes.contains(&Scope::TenantsAdmin) {
            return Err(operators_only());
        }
        loaded.extra::<CredentialContext>()?.last.check(self.last)?;
        row.revoked = true;
        row.revision = loaded.next_epoch();
        // It can be read for a while, then it is deleted.
        let ends = row.expires_at_ms.map_or(at.now_ms, |time| time.0.min(at.now_ms));
        row.expires_at_ms = Some(Millis(ends));
        let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
        let mut change = Change::new(ChangeEvent::CredentialRevoked, answer, vec![end(at, &row)]);
        change.detail = json!({ "key_id": row.key_id });
        change.keys = vec![ChangedKey::Credential(row.key_id)];
        Ok(Outcome::Changed(change))
    }
}
