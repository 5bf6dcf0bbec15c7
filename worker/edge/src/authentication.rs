//! Who asks, outside of calls: an administrator for what its scopes open, an agent for its own.
//!
//! Unlike calls, these requests go to D1 anyway, so the credential is read there too, always
//! fresh: a revoked one is refused from the moment that D1 has it. An agent's requests are charged
//! by its lane before that, as its calls are.

use gateward_core::admin::Actor;
use gateward_core::api::route::Access;
use gateward_core::call::ToolCall;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::credential::signature::{self, SignatureNonce, SignedRequest, Verified};
use gateward_core::credential::token::{self, Holder, Token};
use gateward_core::json::Json;
use gateward_core::network::Network;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::scope::Scope;
use subtle::ConstantTimeEq as _;
use worker::{Date, console_error};

use crate::http::Request;
use crate::router::App;
use crate::{d1, failed_authentications, lanes, terminal_refusals};

/// Who makes the first operator, in the audit.
const BOOTSTRAP: &str = "bootstrap";

/// Whoever asks, its credential checked.
pub struct Caller {
    pub tenant: String,
    /// Lanes that the tenant has: no other may be asked for.
    pub lanes: u16,
    /// The agent that this is; `None` for an administrator.
    pub agent: Option<String>,
    /// The administrator's name; empty for an agent.
    pub administrator: String,
    pub key_id: String,
    /// Who issued the credential.
    pub issued_by: Option<String>,
    /// The groups that the administrator is a member of.
    pub groups: Vec<String>,
    /// The tenant's epoch at which all this was so.
    pub epoch: u64,
    scopes: Vec<Scope>,
    expires_at_ms: Option<u64>,
    allowed_networks: Option<Vec<Network>>,
    signed: bool,
    /// Of a signed request that must not be carried out twice.
    nonce: Option<SignatureNonce>,
}

impl Caller {
    /// Whether the caller may see a record of `agent`.
    pub fn sees(&self, agent: &str) -> bool {
        self.agent.as_deref().is_none_or(|own| own == agent)
    }

    /// The one who changes the registry.
    pub fn actor(&self) -> Actor {
        Actor {
            tenant: self.tenant.clone(),
            name: self.administrator.clone(),
            key_id: self.key_id.clone(),
            scopes: self.scopes.clone(),
            expires_at_ms: self.expires_at_ms,
            allowed_networks: self.allowed_networks.clone(),
            signed: self.signed,
        }
    }
}

/// Whether the request could come from somebody with a credential, before anything is read.
pub fn believe(request: &Request, app: &App, access: Access) -> Result<(), Problem> {
    match access {
        Access::Bootstrap => bootstrap(request, app).map(drop),
        _ => token(request, app).map(drop),
    }
}

/// Checks what the route needs. `body` is the raw body, which a signature covers. A signature's nonce
/// is not used up yet: [`use_nonce`] does that.
pub async fn authenticate(
    request: &Request,
    app: &App,
    access: Access,
    body: &[u8],
) -> Result<Caller, Problem> {
    match access {
        Access::Bootstrap => bootstrap(request, app),
        Access::Reader(scope) => {
            let caller = caller(request, app, body).await?;
            if caller.agent.is_none() { with_scope(caller, scope) } else { Ok(caller) }
        }
        Access::Administrator(scope) => {
            let caller = caller(request, app, body).await?;
            if caller.agent.is_some() {
                let detail = "this needs an administrator's credential";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            with_scope(caller, scope)
        }
        // The router answers these without asking who it is.
        Access::Open | Access::Call => {
            Err(Problem::new(ProblemCode::Internal, "this route knows its callers otherwise"))
        }
    }
}

fn with_scope(caller: Caller, scope: Scope) -> Result<Caller, Problem> {
    if caller.scopes.contains(&scope) {
        return Ok(caller);
    }
    let detail = format!("the credential does not have the scope `{}`", scope.as_str());
    Err(Problem::new(ProblemCode::Forbidden, detail))
}

/// The token of the request, if Gateward issued it and this isolate does not know that it has ended.
pub fn token<'a>(request: &'a Request, app: &App) -> Result<Token<'a>, Problem> {
    let token = bearer(&request.authorization)
        .and_then(|text| token::parse(text, &app.settings.mac_keys).ok())
        .ok_or_else(|| refuse(request, app, ProblemCode::Unauthorized, INVALID))?;
    match terminal_refusals::find(&token) {
        None => Ok(token),
        Some(problem) => {
            failed_authentications::count(request, app);
            Err(problem)
        }
    }
}

/// The same of an agent, with its name and lane.
pub fn agent_token<'a>(
    request: &'a Request,
    app: &App,
) -> Result<(Token<'a>, &'a str, u16), Problem> {
    let token = token(request, app)?;
    let Holder::Agent { agent, lane } = token.holder else {
        let detail = "calls need an agent's credential; this is an administrator's";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    };
    Ok((token, agent, lane))
}

/// Step 5: what the lane is told.
pub fn command(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    lane: u16,
    signature: Option<Verified>,
    purpose: Purpose,
    call: ToolCall,
) -> GateCommand {
    GateCommand {
        tenant: token.tenant.to_owned(),
        lane,
        key_id: token.key_id.to_owned(),
        secret_hash: token::secret_hash(token.secret),
        http_request_id: app.request_id.clone(),
        source_address: request.source_address(),
        signed: signature.is_some(),
        signature_nonce: signature.and_then(|verified| verified.nonce),
        purpose,
        session: None,
        parameters: Vec::new(),
        call,
    }
}

/// The request's signature, verified; `None` if the request is not signed. A signature that does not
/// verify is refused, whether the credential needs one or not.
pub fn verify_signature(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    body: &[u8],
    needs_nonce: bool,
) -> Result<Option<Verified>, Problem> {
    if request.signature_input.is_empty() {
        return Ok(None);
    }
    let headers = request.headers();
    let signed = SignedRequest {
        method: &request.method,
        path: request.path(),
        query: request.raw_query(),
        headers: &headers,
        body,
    };
    let now_ms = Date::now().as_millis();
    let verified = signature::verify(&signed, &app.settings.mac_keys, token, needs_nonce, now_ms);
    verified.map(Some).inspect_err(|_| failed_authentications::count(request, app))
}

/// Uses up the nonce of a request that is no call. Nothing may be done before this.
pub async fn use_nonce(request: &Request, app: &App, caller: &Caller) -> Result<(), Problem> {
    let Some(nonce) = &caller.nonce else { return Ok(()) };
    let now_ms = Date::now().as_millis();
    if d1::signatures::use_nonce(&app.env, &caller.tenant, &caller.key_id, nonce, now_ms).await? {
        return Ok(());
    }
    failed_authentications::count(request, app);
    Err(signature::replayed())
}

const INVALID: &str = "the credential is not valid";

async fn caller(request: &Request, app: &App, body: &[u8]) -> Result<Caller, Problem> {
    let refuse = |code, detail| Err(refuse(request, app, code, detail));
    let token = token(request, app)?;
    let needs_nonce = !matches!(request.method.as_str(), "GET" | "HEAD");
    let signature = verify_signature(request, app, &token, body, needs_nonce)?;
    if let Holder::Agent { agent, lane } = token.holder {
        charge(request, app, &token, (agent, lane), signature.clone()).await?;
    }
    let stored = d1::registry::load_reader(&app.env, token.tenant, token.key_id).await?;
    let Some(stored) = stored else { return refuse(ProblemCode::Unauthorized, INVALID) };
    let agent = match token.holder {
        Holder::Agent { agent, .. } => Some(agent),
        Holder::Administrator => None,
    };
    let kind = if agent.is_some() { "agent" } else { "administrator" };
    let secret_hash = token::secret_hash(token.secret);
    if !token::hash_matches(&secret_hash, &stored.secret_sha256)
        || stored.kind != kind
        || stored.agent.as_deref() != agent
    {
        return refuse(ProblemCode::Unauthorized, INVALID);
    }
    let refuse_for_good = |code, detail| {
        refuse(code, detail).inspect_err(|problem: &Problem| {
            terminal_refusals::remember(secret_hash, problem.clone());
        })
    };
    if stored.status == "revoked" {
        return refuse_for_good(ProblemCode::Unauthorized, INVALID);
    }
    if stored.status != "active" || stored.tenant_status == "deleted" {
        return refuse(ProblemCode::Unauthorized, INVALID);
    }
    if stored.expires_at_ms.is_some_and(|at| Date::now().as_millis() >= at) {
        return refuse_for_good(ProblemCode::CredentialExpired, "the credential has expired");
    }
    if stored.signed != 0 && signature.is_none() {
        let detail = "the credential has a signing key; sign the request (RFC 9421)";
        return refuse(ProblemCode::SignatureRequired, detail);
    }
    let allowed_networks: Option<Vec<Network>> = match &stored.allowed_networks {
        None => None,
        Some(networks) => Some(serde_json::from_str(networks).map_err(unreadable)?),
    };
    if let Some(networks) = &allowed_networks {
        let address = request.source_address();
        if !address.is_some_and(|address| networks.iter().any(|net| net.contains(address))) {
            let detail = "the credential is not good from this address";
            return refuse(ProblemCode::SourceAddressForbidden, detail);
        }
    }
    // Also when the agent is there no more.
    if agent.is_some() && stored.agent_status.as_deref() != Some("active") {
        return Err(Problem::new(ProblemCode::Forbidden, "the agent is not active"));
    }
    // A scope that this version does not know opens nothing.
    let scopes: Vec<String> = serde_json::from_str(&stored.scopes).map_err(unreadable)?;
    Ok(Caller {
        tenant: token.tenant.to_owned(),
        lanes: stored.lanes,
        agent: agent.map(str::to_owned),
        administrator: stored.administrator.unwrap_or_default(),
        key_id: token.key_id.to_owned(),
        issued_by: stored.issued_by,
        groups: serde_json::from_str(&stored.groups).map_err(unreadable)?,
        epoch: stored.epoch,
        scopes: scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
        expires_at_ms: stored.expires_at_ms,
        allowed_networks,
        signed: stored.signed != 0,
        nonce: signature.and_then(|verified| verified.nonce),
    })
}

/// Charges an agent's request to its bucket. The lane does it, before D1 is asked for anything: a
/// credential that the lane refuses, or an agent that is over its rate, causes no read.
async fn charge(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    (agent, lane): (&str, u16),
    signature: Option<Verified>,
) -> Result<(), Problem> {
    let call =
        Claims::default().call((token.tenant, agent), ("", "", ""), Json::Object(Vec::new()));
    let command = command(request, app, token, lane, signature, Purpose::Read, call);
    lanes::judge(&app.env, &command).await.map(drop).map_err(|refused| refused.problem)
}

fn bootstrap(request: &Request, app: &App) -> Result<Caller, Problem> {
    let refuse = || Err(refuse(request, app, ProblemCode::Unauthorized, INVALID));
    let (Some(secret), Some(given)) =
        (app.settings.bootstrap_secret, bearer(&request.authorization))
    else {
        return refuse();
    };
    if !bool::from(token::secret_hash(given).ct_eq(&secret)) {
        return refuse();
    }
    Ok(Caller {
        tenant: String::new(),
        lanes: 0,
        agent: None,
        administrator: BOOTSTRAP.to_owned(),
        key_id: BOOTSTRAP.to_owned(),
        issued_by: None,
        groups: Vec::new(),
        epoch: 0,
        scopes: Scope::ALL.to_vec(),
        expires_at_ms: None,
        allowed_networks: None,
        signed: false,
        nonce: None,
    })
}

fn refuse(request: &Request, app: &App, code: ProblemCode, detail: &str) -> Problem {
    failed_authentications::count(request, app);
    Problem::new(code, detail)
}

fn unreadable(error: serde_json::Error) -> Problem {
    console_error!("a credential cannot be read: {error}");
    Problem::new(ProblemCode::RegistryUnavailable, "the registry cannot be read")
}

/// The credential of an `Authorization: Bearer` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}
