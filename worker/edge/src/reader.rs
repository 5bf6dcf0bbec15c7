//! Who reads records: an administrator everything of its tenant, an agent its own decisions.
//!
//! Unlike calls, reads go to D1 anyway, so the credential is read there too, always fresh.

use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::token::{self, Holder};
use worker::Date;

use crate::http::Request;
use crate::router::App;
use crate::{d1, failed_authentications};

/// The scope that reads need of an administrator.
const AUDIT_READ: &str = "audit:read";

/// A reader whose credential was checked.
pub struct Reader {
    pub tenant: String,
    /// Lanes that the tenant has: no other may be asked for.
    pub lanes: u16,
    /// The agent that this is; `None` for an administrator.
    pub agent: Option<String>,
}

impl Reader {
    /// Whether the reader may see a record of `agent`.
    pub fn sees(&self, agent: &str) -> bool {
        self.agent.as_deref().is_none_or(|own| own == agent)
    }
}

/// Checks the credential in `Authorization`.
pub async fn reader(request: &Request, app: &App) -> Result<Reader, Problem> {
    let refuse = |code, detail: &str| {
        failed_authentications::count(request, app);
        Err(Problem::new(code, detail))
    };
    let Some(token) = bearer(&request.authorization)
        .and_then(|text| token::parse(text, &app.settings.mac_keys).ok())
    else {
        return refuse(ProblemCode::Unauthorized, "the credential is not valid");
    };
    let stored = d1::registry::load_reader(&app.env, token.tenant, token.key_id).await?;
    let Some(stored) = stored else {
        return refuse(ProblemCode::Unauthorized, "the credential is not valid");
    };
    let agent = match token.holder {
        Holder::Agent { agent, .. } => Some(agent),
        Holder::Administrator => None,
    };
    let kind = if agent.is_some() { "agent" } else { "administrator" };
    if !token::hash_matches(&token::secret_hash(token.secret), &stored.secret_sha256)
        || stored.kind != kind
        || stored.agent.as_deref() != agent
        || stored.status != "active"
        || stored.tenant_status == "deleted"
    {
        return refuse(ProblemCode::Unauthorized, "the credential is not valid");
    }
    if stored.expires_at_ms.is_some_and(|at| Date::now().as_millis() >= at) {
        return refuse(ProblemCode::CredentialExpired, "the credential has expired");
    }
    if agent.is_some() && stored.agent_status.as_deref() != Some("active") {
        return Err(Problem::new(ProblemCode::Forbidden, "the agent is not active"));
    }
    let scopes: Vec<String> = serde_json::from_str(&stored.scopes).unwrap_or_default();
    if agent.is_none() && !scopes.iter().any(|scope| scope == AUDIT_READ) {
        let detail = format!("the credential does not have the scope `{AUDIT_READ}`");
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    let agent = agent.map(str::to_owned);
    Ok(Reader { tenant: token.tenant.to_owned(), lanes: stored.lanes, agent })
}

/// Like [`reader`], for what only administrators may see.
pub async fn administrator(request: &Request, app: &App) -> Result<Reader, Problem> {
    let reader = reader(request, app).await?;
    if reader.agent.is_some() {
        let detail = "this needs an administrator's credential";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    Ok(reader)
}

/// The credential of an `Authorization: Bearer` header.
pub fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}
