//! Revocations of warrants. A revoked warrant is denied, and with it each warrant that was delegated from it. A
//! revocation cannot be lifted. One that an administrator made holds for the chains of all roots, and is apart from those
//! that came by roots' lists ([`crate::warrant_root`]).

use gateward_core::bounds::{MAX_WARRANT_REVOCATIONS, WARRANT_REVOCATION_MS};
use gateward_core::field::{Label, Millis};
use gateward_core::problem::Problem;
use gateward_core::registry::{ChangeEvent, ChangedKey};
use gateward_core::sql::administration::{self as sql, Statement};
use gateward_core::warrant::key::PublicKey;
use gateward_core::warrant::payload;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::json;
use std::str::FromStr;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Change, Count, Loaded, Outcome, Write};
use crate::refusal::limit_reached;
use crate::resource::Resource;

/// The id of a warrant, as 32 lower-case hex digits. It is read in three forms: these digits, the digits after
/// `tnu_wrt_`, and as a UUID with dashes.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[schema(
    value_type = String,
    pattern = "^((tnu_wrt_)?[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$",
    example = "0190f3a05b7c7d1e8f2a3b4c5d6e7f80"
)]
pub struct WarrantId(String);

impl WarrantId {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WarrantId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const MUST: &str = "must be a warrant's id: 32 hex digits, alone or after `tnu_wrt_`, or a UUID with dashes";
        text.parse::<payload::WarrantId>().map(|id| Self(id.to_string())).map_err(|_| MUST)
    }
}

impl<'de> Deserialize<'de> for WarrantId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A revocation in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WarrantRevocationRow {
    warrant_id: String,
    root_key: Option<PublicKey>,
    reason: String,
    revoked_by: String,
    revoked_at_ms: Millis,
    expires_at_ms: Millis,
}

/// A revocation of a warrant.
#[derive(Debug, Serialize, ToSchema)]
pub struct WarrantRevocation {
    /// 32 lower-case hex digits.
    warrant_id: String,
    /// The public key of the root whose list revoked the warrant. Then only chains of this root are denied. Null: the
    /// revocation holds for chains of all roots.
    #[schema(value_type = Option<String>)]
    root_key: Option<PublicKey>,
    reason: String,
    /// The administrator's name.
    revoked_by: String,
    #[schema(value_type = String, format = DateTime)]
    revoked_at: Millis,
    /// 91 days later. Then the warrant itself has expired.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Millis,
}

impl Resource for WarrantRevocationRow {
    const SINGULAR: &'static str = "revocation of this warrant";
    const PLURAL: &'static str = "warrant_revocations";
    type View = WarrantRevocation;

    fn cursor(&self) -> String {
        let root_key = self.root_key.map(|key| key.to_string());
        [self.warrant_id.as_str(), root_key.as_deref().unwrap_or_default()].concat()
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> WarrantRevocation {
        WarrantRevocation {
            warrant_id: self.warrant_id.clone(),
            root_key: self.root_key,
            reason: self.reason.clone(),
            revoked_by: self.revoked_by.clone(),
            revoked_at: self.revoked_at_ms,
            expires_at: self.expires_at_ms,
        }
    }
}

/// Revokes a warrant, whatever its root is. If an administrator revoked it already, that revocation stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeWarrant {
    /// 32 hex digits, alone or after `tnu_wrt_`, or a UUID with dashes.
    warrant_id: WarrantId,
    reason: Option<Label>,
}

impl Write for RevokeWarrant {
    fn read(&self, at: &At<'_>) -> Statement {
        let values = vec![at.tenant.into(), self.warrant_id.as_str().into(), at.now_ms.into()];
        Statement::new(sql::LOAD_WARRANT_REVOCATION, values)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        if let Some(row) = loaded.record::<WarrantRevocationRow>()? {
            return AnswerBody::of(&row.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        if loaded.extra::<Count>()?.count >= MAX_WARRANT_REVOCATIONS as u64 {
            return Err(limit_reached("revocations of warrants", MAX_WARRANT_REVOCATIONS as u64));
        }
        let row = WarrantRevocationRow {
            warrant_id: self.warrant_id.as_str().to_owned(),
            root_key: None,
            reason: self.reason.as_deref().unwrap_or_default().to_owned(),
            revoked_by: at.issuer(),
            revoked_at_ms: Millis(at.now_ms),
            expires_at_ms: Millis(at.now_ms + WARRANT_REVOCATION_MS),
        };
        let tenant = || at.tenant.into();
        // This comes first, because the same warrant may have a revocation that has expired.
        let expire =
            Statement::new(sql::EXPIRE_WARRANT_REVOCATIONS, vec![tenant(), at.now_ms.into()]);
        let create = Statement::new(
            sql::CREATE_WARRANT_REVOCATION,
            vec![
                tenant(),
                row.warrant_id.as_str().into(),
                row.reason.as_str().into(),
                row.revoked_by.as_str().into(),
                row.revoked_at_ms.0.into(),
                row.expires_at_ms.0.into(),
            ],
        );
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        let mut change = Change::new(ChangeEvent::WarrantRevoked, answer, vec![expire, create]);
        change.created = true;
        change.detail = json!({ "warrant_id": row.warrant_id, "reason": row.reason });
        change.keys = vec![ChangedKey::Warrants];
        Ok(Outcome::Changed(change))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_in_three_forms_and_kept_in_one() {
        let id = "0190f3a05b7c7d1e8f2a3b4c5d6e7f80";
        let uuid = "0190f3a0-5b7c-7d1e-8f2a-3b4c5d6e7f80";
        for (text, expected) in [
            (id.to_owned(), true),
            (id.to_uppercase(), true),
            (format!("tnu_wrt_{id}"), true),
            (uuid.to_owned(), true),
            (uuid.to_uppercase(), true),
            (format!("tnu_wrt_{uuid}"), false),
            (format!("TNU_WRT_{id}"), false),
            (format!("tnu_wrt_tnu_wrt_{id}"), false),
            (id[1..].to_owned(), false),
            (format!("{id}0"), false),
            (format!("{}-{}", &id[..16], &id[16..]), false),
            (format!("{uuid}-"), false),
            (id.replace('f', "g"), false),
            (String::new(), false),
        ] {
            let read = text.parse::<WarrantId>();
            assert_eq!(read.is_ok(), expected, "{text}");
            assert!(read.is_err() || read.unwrap().as_str() == id, "{text}");
        }
    }
}
