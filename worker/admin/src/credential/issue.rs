//! How a credential is issued.

use gateward_core::field::{Millis, Name, Time, bounded};
use gateward_core::glob::Glob;
use gateward_core::network::Network;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangeEvent, CredentialKind};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::Statement;
use gateward_core::trust::SourceTrust;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{CredentialContext, CredentialRow, MAX_CREDENTIALS, Mint, check_grant, load};
use crate::change::{At, Loaded, Outcome, Write};
use crate::protection;
use crate::refusal::{conflict, limit_reached, refused};

/// A new credential.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateCredential {
    kind: CredentialKind,
    /// The agent, for an agent's credential.
    agent: Option<Name>,
    /// The administrator, for an administrator's credential.
    administrator: Option<Name>,
    /// For an agent: `tools:read` and `tools:write` if left out. For an administrator: required,
    /// and only scopes that the caller's own credential has.
    scopes: Option<Vec<Scope>>,
    /// When it ends; null means never.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
    /// The highest source trust that its calls can claim; `unknown` when left out.
    max_source_trust: Option<SourceTrust>,
    allowed_servers: Option<Vec<Glob>>,
    allowed_tools: Option<Vec<Glob>>,
    allowed_networks: Option<Vec<Network>>,
    /// Whether every request must be signed.
    #[serde(default)]
    signed: bool,
    /// Whether it belongs to a harness: the program that drives agents and assigns runs. Only for
    /// an agent's credential.
    #[serde(default)]
    assigns_runs: bool,
}

impl CreateCredential {
    /// The agent's lane, and the scopes.
    fn of_agent(&self, context: &CredentialContext) -> Result<(u16, Vec<Scope>), Problem> {
        if self.agent.is_none() {
            return Err(refused("agent", "must name the agent"));
        }
        if self.administrator.is_some() {
            return Err(refused("administrator", "must be left out for an agent's credential"));
        }
        let Some(agent) = &context.agent else {
            return Err(refused("agent", "this agent does not exist"));
        };
        if agent.revoked {
            return Err(conflict("the agent is revoked, and this is final"));
        }
        let default = vec![Scope::ToolsRead, Scope::ToolsWrite];
        let scopes = self.scopes.clone().unwrap_or(default);
        if !scopes.iter().all(|scope| scope.agent_may_have()) {
            return Err(refused("scopes", "an agent can only have `tools:read` and `tools:write`"));
        }
        Ok((agent.lane, scopes))
    }

    /// The scopes.
    fn of_administrator(
        &self,
        context: &CredentialContext,
        at: &At<'_>,
    ) -> Result<Vec<Scope>, Problem> {
        if self.agent.is_some() {
            return Err(refused("agent", "must be left out for an administrator's credential"));
        }
        if self.assigns_runs {
            return Err(refused("assigns_runs", "must be false: only agents have runs"));
        }
        if self.administrator.is_none() {
            return Err(refused("administrator", "must name the person"));
        }
        let Some(scopes) = self.scopes.clone() else {
            return Err(refused("scopes", "must say what the administrator may do"));
        };
        if !context.administrator {
            return Err(refused("administrator", "this administrator does not exist"));
        }
        // Only this person protects groups, so nobody else may act under this name.
        if context.first && self.administrator.as_deref() != Some(&at.actor.name) {
            let detail = "only the tenant's first administrator issues credentials for this name";
            return Err(Problem::new(ProblemCode::Forbidden, detail));
        }
        Ok(scopes)
    }
}

/// [`CreateCredential`] with the keys and random bytes.
pub struct IssueCredential<'a> {
    pub request: CreateCredential,
    pub mint: Mint<'a>,
}

impl Write for IssueCredential<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        let request = &self.request;
        load(at, "", request.agent.as_deref(), request.administrator.as_deref())
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let request = &self.request;
        let context: CredentialContext = loaded.extra()?;
        bounded("scopes", request.scopes.as_ref())?;
        bounded("allowed_servers", request.allowed_servers.as_ref())?;
        bounded("allowed_tools", request.allowed_tools.as_ref())?;
        bounded("allowed_networks", request.allowed_networks.as_ref())?;
        if request.expires_at.is_some_and(|at_ms| at_ms.0 <= at.now_ms) {
            return Err(refused("expires_at", "must be in the future"));
        }
        let (lane, scopes) = match request.kind {
            CredentialKind::Agent => request.of_agent(&context)?,
            CredentialKind::Administrator => (0, request.of_administrator(&context, at)?),
        };
        if context.count >= MAX_CREDENTIALS {
            return Err(limit_reached("credentials", MAX_CREDENTIALS));
        }
        let row = CredentialRow {
            key_id: String::new(),
            kind: request.kind,
            agent: request.agent.as_deref().map(str::to_owned),
            administrator: request.administrator.as_deref().map(str::to_owned),
            scopes,
            revoked: false,
            expires_at_ms: request.expires_at.map(|time| Millis(time.0)),
            max_source_trust: request.max_source_trust.unwrap_or(SourceTrust::Unknown),
            allowed_servers: request.allowed_servers.clone(),
            allowed_tools: request.allowed_tools.clone(),
            allowed_networks: request.allowed_networks.clone(),
            signed: request.signed,
            assigns_runs: request.assigns_runs,
            issued_by: Some(at.issuer()),
            issuer_key_id: Some(at.actor.key_id.clone()),
            first_key_id: None,
            revision: loaded.next_epoch(),
            created_at_ms: Millis(at.now_ms),
        };
        check_grant(at.actor, &row)?;
        let issued = self.mint.issue(at.tenant, row, lane);
        let change = issued.change(at, ChangeEvent::CredentialCreated)?;
        let holder = request.administrator.as_deref().unwrap_or_default();
        protection::guard(at, &context.protected, holder, change)
    }
}
