//! Credentials, with which agents and administrators authenticate. Only the first answer contains
//! the secret and the signing key: D1 stores the secret's SHA-256, and the signing key is derived
//! when it is needed.
//!
//! Here is the record, how its secrets are made, and what an administrator may give. The changes are
//! in [`issue`] and [`end`].

pub mod end;
pub mod issue;

use gateward_core::credential::token::{self, MacKeys};
use gateward_core::field::Millis;
use gateward_core::glob::Glob;
use gateward_core::network::Network;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangeEvent, ChangedKey, CredentialKind, CredentialStatus};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::{self as sql, Statement, Value};
use gateward_core::trust::SourceTrust;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{Actor, At, Change, Loaded};
use crate::last_administrator::LastAdministrator;
use crate::precondition::check_match;
use crate::protection::Protected;
use crate::resource::Resource;

/// Credentials of a tenant. Those that expired long ago are deleted, so that rotation does not
/// reach the limit.
pub const MAX_CREDENTIALS: u64 = 200_000;
/// How long a credential that has ended can still be read.
const KEPT_MS: u64 = 90 * 24 * 60 * 60 * 1_000;
/// Random bytes that a new credential takes: the secret's, then the key id's.
pub const RANDOM_BYTES: usize = token::SECRET_BYTES + KEY_ID_BYTES;
/// 64 bits: a collision within a tenant has a chance of about 1 in 10^14; then the request fails
/// and the caller tries again.
const KEY_ID_BYTES: usize = 8;

/// A credential in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CredentialRow {
    key_id: String,
    kind: CredentialKind,
    agent: Option<String>,
    administrator: Option<String>,
    #[serde(deserialize_with = "Scope::deserialize_known")]
    scopes: Vec<Scope>,
    revoked: bool,
    expires_at_ms: Option<Millis>,
    max_source_trust: SourceTrust,
    allowed_servers: Option<Vec<Glob>>,
    allowed_tools: Option<Vec<Glob>>,
    allowed_networks: Option<Vec<Network>>,
    signed: bool,
    assigns_runs: bool,
    issued_by: Option<String>,
    issuer_key_id: Option<String>,
    /// The first credential of those that were rotated into this one; `None` if it is the first. All of them have
    /// the same limits, and count together.
    first_key_id: Option<String>,
    revision: u64,
    created_at_ms: Millis,
}

/// A credential, without its secrets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Credential {
    key_id: String,
    kind: CredentialKind,
    /// Its agent; null for an administrator's credential.
    agent: Option<String>,
    /// Its administrator, which rotation keeps; null for an agent's credential.
    administrator: Option<String>,
    scopes: Vec<Scope>,
    status: CredentialStatus,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Millis>,
    /// The highest source trust that its calls can claim.
    max_source_trust: SourceTrust,
    /// Globs on a server's name; null allows any, an empty list none.
    allowed_servers: Option<Vec<Glob>>,
    /// Globs on `server/tool`; null allows any, an empty list none.
    allowed_tools: Option<Vec<Glob>>,
    /// CIDR; null allows any, an empty list none.
    allowed_networks: Option<Vec<Network>>,
    /// Whether every request must be signed (RFC 9421).
    signed: bool,
    /// Whether it belongs to a harness, which assigns runs and users. Taint and approvals then
    /// belong to the run.
    assigns_runs: bool,
    /// The administrator who issued it, `<tenant>/<name>` for an operator of another tenant,
    /// `_bootstrap` for the bootstrap secret; null if the credential is older than this field.
    issued_by: Option<String>,
    /// The credential that it was issued with.
    issuer_key_id: Option<String>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

/// A new credential with its secrets, which are shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuedCredential {
    #[serde(flatten)]
    credential: Credential,
    /// Null when the answer is repeated for an `Idempotency-Key`.
    token: Option<String>,
    /// Null unless the credential is signed.
    signing_key: Option<String>,
}

impl Resource for CredentialRow {
    const SINGULAR: &'static str = "credential";
    const PLURAL: &'static str = "credentials";
    type View = Credential;

    fn cursor(&self) -> String {
        self.key_id.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, now_ms: u64) -> Credential {
        Credential {
            key_id: self.key_id.clone(),
            kind: self.kind,
            agent: self.agent.clone(),
            administrator: self.administrator.clone(),
            scopes: self.scopes.clone(),
            status: match self {
                _ if self.revoked => CredentialStatus::Revoked,
                _ if self.expired(now_ms) => CredentialStatus::Expired,
                _ => CredentialStatus::Active,
            },
            expires_at: self.expires_at_ms,
            max_source_trust: self.max_source_trust,
            allowed_servers: self.allowed_servers.clone(),
            allowed_tools: self.allowed_tools.clone(),
            allowed_networks: self.allowed_networks.clone(),
            signed: self.signed,
            assigns_runs: self.assigns_runs,
            issued_by: self.issued_by.clone(),
            issuer_key_id: self.issuer_key_id.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
        }
    }
}

impl CredentialRow {
    fn expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|at| now_ms >= at.0)
    }
}

/// The secrets in an [`IssuedCredential`].
pub(super) const SECRETS: &[&str] = &["/token", "/signing_key"];

/// Creates credentials from the worker's keys and the request's random bytes.
pub struct Mint<'a> {
    pub keys: &'a MacKeys,
    pub random: [u8; RANDOM_BYTES],
}

/// A credential with its secrets and the statement that stores it.
pub struct Issued {
    pub row: CredentialRow,
    pub statement: Statement,
    token: String,
    signing_key: Option<String>,
}

impl Mint<'_> {
    /// Gives `row` a key id and a secret; `lane` is its agent's.
    fn issue(&self, tenant: &str, mut row: CredentialRow, lane: u16) -> Issued {
        let (secret, key_id) = self.random.split_at(token::SECRET_BYTES);
        row.key_id = format!("k{}", hex::encode(key_id));
        let secret = token::encode_secret(secret);
        let token = match &row.agent {
            Some(agent) => self.keys.agent_token(tenant, agent, lane, &row.key_id, &secret),
            None => self.keys.administrator_token(tenant, &row.key_id, &secret),
        };
        let signing_key = row.signed.then(|| self.keys.signing_key(tenant, &row.key_id));
        let scopes: Vec<&str> = row.scopes.iter().map(|scope| scope.as_str()).collect();
        let statement = Statement::new(
            sql::CREATE_CREDENTIAL,
            vec![
                tenant.into(),
                row.key_id.as_str().into(),
                row.kind.as_str().into(),
                row.agent.as_deref().into(),
                row.administrator.as_deref().into(),
                hex::encode(token::secret_hash(&secret)).into(),
                Value::list(Some(&scopes)),
                row.max_source_trust.as_str().into(),
                Value::list(row.allowed_servers.as_ref()),
                Value::list(row.allowed_tools.as_ref()),
                Value::list(row.allowed_networks.as_ref()),
                u64::from(row.signed).into(),
                u64::from(row.assigns_runs).into(),
                row.issued_by.as_deref().into(),
                row.issuer_key_id.as_deref().into(),
                row.expires_at_ms.map(|at| at.0).into(),
                row.revision.into(),
                row.created_at_ms.0.into(),
                row.first_key_id.as_deref().into(),
            ],
        );
        Issued { row, statement, token, signing_key }
    }

    /// An administrator's credential without restrictions.
    pub(super) fn administrator(
        &self,
        at: &At<'_>,
        name: &str,
        scopes: Vec<Scope>,
        revision: u64,
    ) -> Issued {
        let row = CredentialRow {
            key_id: String::new(),
            kind: CredentialKind::Administrator,
            agent: None,
            administrator: Some(name.to_owned()),
            scopes,
            revoked: false,
            expires_at_ms: None,
            max_source_trust: SourceTrust::Unknown,
            allowed_servers: None,
            allowed_tools: None,
            allowed_networks: None,
            signed: false,
            assigns_runs: false,
            issued_by: Some(at.issuer()),
            issuer_key_id: Some(at.actor.key_id.clone()),
            first_key_id: None,
            revision,
            created_at_ms: Millis(at.now_ms),
        };
        self.issue(at.tenant, row, 0)
    }
}

impl Issued {
    /// The answer, with the secrets.
    pub(super) fn view(&self, now_ms: u64) -> IssuedCredential {
        IssuedCredential {
            credential: self.row.view(now_ms),
            token: Some(self.token.clone()),
            signing_key: self.signing_key.clone(),
        }
    }

    fn change(self, at: &At<'_>, event: ChangeEvent) -> Result<Change, Problem> {
        let answer = AnswerBody::of(&self.view(at.now_ms), Some(self.row.revision))?;
        let long_ago = at.now_ms.saturating_sub(KEPT_MS).into();
        let expire = Statement::new(sql::EXPIRE_CREDENTIALS, vec![at.tenant.into(), long_ago]);
        let mut change = Change::new(event, answer, vec![expire, self.statement]);
        change.detail = json!({
            "key_id": self.row.key_id, "kind": self.row.kind, "agent": self.row.agent,
            "administrator": self.row.administrator, "scopes": self.row.scopes,
        });
        // A lane may have stored that the key does not exist.
        change.keys = vec![ChangedKey::Credential(self.row.key_id)];
        change.created = true;
        change.secrets = SECRETS;
        Ok(change)
    }
}

#[derive(Deserialize)]
struct CredentialContext {
    agent: Option<HoldingAgent>,
    /// Whether the credential's administrator exists.
    administrator: bool,
    /// Whether that is the tenant's first administrator.
    first: bool,
    /// The protected groups that this administrator is a member of.
    protected: Vec<Protected>,
    count: u64,
    #[serde(flatten)]
    last: LastAdministrator,
}

#[derive(Deserialize)]
struct HoldingAgent {
    lane: u16,
    revoked: bool,
}

fn load(at: &At<'_>, key_id: &str, agent: Option<&str>, administrator: Option<&str>) -> Statement {
    let most = (MAX_CREDENTIALS + 1).into();
    let (agent, administrator) = (agent.into(), administrator.into());
    let now = at.now_ms.into();
    let values = vec![at.tenant.into(), key_id.into(), agent, most, administrator, now];
    Statement::new(sql::LOAD_CREDENTIAL, values)
}

/// An administrator can only issue or rotate administrators' credentials that have at most the
/// rights of its own. What an agent may do is decided by the registry.
fn check_grant(actor: &Actor, row: &CredentialRow) -> Result<(), Problem> {
    let refuse = |detail: String| Err(Problem::new(ProblemCode::Forbidden, detail));
    if row.kind == CredentialKind::Agent {
        return Ok(());
    }
    if let Some(scope) = row.scopes.iter().find(|scope| !actor.scopes.contains(scope)) {
        return refuse(format!("your own credential does not have the scope `{}`", scope.as_str()));
    }
    let outlasts = |own: u64| row.expires_at_ms.is_none_or(|at| at.0 > own);
    if actor.expires_at_ms.is_some_and(outlasts) {
        return refuse("your own credential expires earlier".to_owned());
    }
    let inside = |own: &Vec<Network>| {
        row.allowed_networks.as_ref().is_some_and(|networks| {
            networks.iter().all(|network| own.iter().any(|own| own.covers(network)))
        })
    };
    if !actor.allowed_networks.as_ref().is_none_or(inside) {
        return refuse("your own credential does not allow these networks".to_owned());
    }
    if actor.signed && !row.signed {
        return refuse("your own credential must sign requests, so this one must, too".to_owned());
    }
    Ok(())
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<CredentialRow, Problem> {
    let row: CredentialRow = loaded.record()?.ok_or_else(|| Problem::not_found("credential"))?;
    check_match(at, row.revision)?;
    Ok(row)
}
