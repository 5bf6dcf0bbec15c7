//! Credentials. For a call, this verifies only the MAC and the signature; the lane checks the rest.
//!
//! All other requests read D1 anyway, so their credential is read from D1 too. A revoked one is refused
//! from the moment that D1 holds the revocation. If the caller is an agent, its lane charges the request
//! to the agent's rate first.

pub mod failures;

use gateward_admin::Actor;
use gateward_core::approval::Approval;
use gateward_core::call::ToolCall;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::credential::run_token;
use gateward_core::credential::signature::{self, SignatureNonce, SignedRequest, Verified};
use gateward_core::credential::token::{self, Holder, Token};
use gateward_core::decision::ReasonCode;
use gateward_core::gate::warrant::agent_key;
use gateward_core::json::Json;
use gateward_core::log::{Event, of_json};
use gateward_core::network::Network;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{AgentStatus, CredentialKind, CredentialStatus, TenantStatus};
use gateward_core::route::{Access, Operation, Route};
use gateward_core::scope::Scope;
use gateward_core::warrant::{self, Judged};
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::d1::registry::ReaderRow;
use crate::http::Request;
use crate::io;
use crate::lane::refusals;
use crate::{d1, lane, log};

/// The name of the caller of `/v1/bootstrap` in the audit.
const BOOTSTRAP: &str = "bootstrap";

/// The caller of a request that is not a call. Its credential was checked.
pub struct Caller {
    pub tenant: String,
    /// The number of the tenant's lanes. A request must not name another lane.
    pub lanes: u16,
    /// `None` for an administrator.
    pub agent: Option<String>,
    /// The run of a run credential.
    run: Option<String>,
    /// The administrator's name; empty for an agent.
    pub administrator: String,
    pub key_id: String,
    /// Who issued the credential.
    pub issued_by: Option<String>,
    /// The groups that the administrator is a member of.
    pub groups: Vec<String>,
    /// The tenant's epoch when these records were read.
    pub epoch: u64,
    scopes: Vec<Scope>,
    expires_at_ms: Option<u64>,
    allowed_networks: Option<Vec<Network>>,
    signed: bool,
    /// The nonce of a signed request that must not be carried out twice.
    nonce: Option<SignatureNonce>,
}

impl Caller {
    /// Whether the caller may see a record of `agent`.
    pub fn sees(&self, agent: &str) -> bool {
        self.agent.as_deref().is_none_or(|own| own == agent)
    }

    /// Whether the caller may see this approval.
    pub fn sees_approval(&self, approval: &Approval) -> bool {
        self.sees(&approval.agent) && self.run.as_ref().is_none_or(|run| *run == approval.run_id)
    }

    /// Whether the caller sees all tenants.
    pub fn is_operator(&self) -> bool {
        self.scopes.contains(&Scope::TenantsAdmin)
    }

    /// The administrator, for the core's registry changes.
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

/// Verifies the token's MAC, or the bootstrap secret. The credential itself is checked later, by
/// [`authenticate`].
pub fn verify_mac(request: &Request, app: &App, access: Access) -> Result<(), Problem> {
    match access {
        Access::Bootstrap => bootstrap(request, app).map(drop),
        _ => token(request, app).map(drop),
    }
}

/// Checks the access that the route needs. `body` is the raw body, which a signature covers. This does not
/// use up the signature's nonce; [`use_nonce`] does.
pub async fn authenticate(
    request: &Request,
    app: &App,
    route: &Route,
    body: &[u8],
) -> Result<Caller, Problem> {
    match route.access {
        Access::Bootstrap => bootstrap(request, app),
        Access::Reader(scope) => {
            let caller = caller(request, app, body).await?;
            if caller.run.is_some() && route.operation != Operation::ReadApproval {
                // Decisions and lists show other runs of the agent.
                let detail = "a run credential reads only approvals of its run";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            if caller.agent.is_none() { with_scope(caller, scope) } else { Ok(caller) }
        }
        Access::Administrator(scope) => administrator(request, app, body, scope).await,
        Access::Log => administrator(request, app, body, Scope::AuditRead).await,
        // The router does not authenticate these routes here.
        Access::Open | Access::Call => Err(Problem::new(
            ProblemCode::Internal,
            "this route does not authenticate its callers here",
        )),
    }
}

async fn administrator(
    request: &Request,
    app: &App,
    body: &[u8],
    scope: Scope,
) -> Result<Caller, Problem> {
    let caller = caller(request, app, body).await?;
    if caller.agent.is_some() {
        let detail = "this route needs an administrator's credential";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    with_scope(caller, scope)
}

/// The refusal of a request without a credential for a log that is not public.
pub fn no_credential(request: &Request, app: &App) -> Problem {
    refuse(request, app, None, ProblemCode::Unauthorized, INVALID)
}

fn with_scope(caller: Caller, scope: Scope) -> Result<Caller, Problem> {
    if caller.scopes.contains(&scope) {
        return Ok(caller);
    }
    let detail = format!("the credential does not have the scope `{}`", scope.as_str());
    Err(Problem::new(ProblemCode::Forbidden, detail))
}

/// The request's token, if it is a credential.
pub fn token<'a>(request: &'a Request, app: &App) -> Result<Token<'a>, Problem> {
    let token = sealed_token(request, app)?;
    if token.is_locator {
        let tenant = Some(token.tenant);
        return Err(refuse(request, app, tenant, ProblemCode::Unauthorized, NO_CREDENTIAL));
    }
    Ok(token)
}

/// Checks the warrant of a caller without a credential: its chain and, if the tool is known, its proof. Only a caller
/// who passes may wake the lane, because a locator is not secret.
pub fn identify(request: &Request, app: &App, command: &GateCommand) -> Result<(), Problem> {
    if !command.located {
        return Ok(());
    }
    let refused = |code, reason: &str| {
        failures::count_warrant(request, app, &command.tenant, code);
        Err(Problem::new(ProblemCode::WarrantRefused, reason))
    };
    let agent_key = match command.warrant.as_ref().map(|carried| &carried.judged) {
        None => return refused(ReasonCode::WarrantRequired, NO_CREDENTIAL),
        Some(Judged::Refused(refusal)) => return refused(refusal.code, &refusal.reason),
        Some(Judged::Holds(claim)) => Some(claim.agent_key),
        // Only the lane knows the tool.
        Some(Judged::Later(presented)) => {
            let cache = app.settings.engine.chains().borrow();
            let caller = (agent_key(command), io::now_ms() / 1_000);
            match warrant::chain_of(presented, caller, &cache) {
                Ok(chain) => chain.agent_key().copied(),
                Err(refusal) => return refused(refusal.code, &refusal.reason),
            }
        }
    };
    match agent_key.is_some_and(|key| key.0 == command.secret_hash) {
        true => Ok(()),
        false => {
            let reason = "The first holder of the warrant is not the agent of the locator.";
            refused(ReasonCode::WarrantHolderUnknown, reason)
        }
    }
}

const NO_CREDENTIAL: &str = "a locator is no credential; send a call with a warrant";

/// The request's token, which may be a locator. It is refused if its MAC is wrong, if it is a run credential that has
/// expired, or if this isolate remembers that the credential was revoked or has expired.
fn sealed_token<'a>(request: &'a Request, app: &App) -> Result<Token<'a>, Problem> {
    let token = bearer(&request.authorization)
        .and_then(|text| run_token::parse_any(text, &app.settings.mac_keys).ok())
        .ok_or_else(|| refuse(request, app, None, ProblemCode::Unauthorized, INVALID))?;
    let tenant = Some(token.tenant);
    if token.run.as_ref().is_some_and(|run| run.is_expired(io::now_ms())) {
        let detail = "the run credential has expired; the harness can issue another one";
        return Err(refuse(request, app, tenant, ProblemCode::CredentialExpired, detail));
    }
    match refusals::find(&token) {
        None => Ok(token),
        Some(problem) => {
            failures::count(request, app, tenant, problem.code);
            Err(problem)
        }
    }
}

/// The request's token if it is an agent's credential, with the agent's name and lane.
pub fn agent_token<'a>(
    request: &'a Request,
    app: &App,
) -> Result<(Token<'a>, &'a str, u16), Problem> {
    of_agent(token(request, app)?)
}

/// The same for a call, which can come with a locator instead. Before the lane is woken, [`identify`] must say that the
/// call has a warrant.
pub fn caller_token<'a>(
    request: &'a Request,
    app: &App,
) -> Result<(Token<'a>, &'a str, u16), Problem> {
    of_agent(sealed_token(request, app)?)
}

fn of_agent(token: Token<'_>) -> Result<(Token<'_>, &str, u16), Problem> {
    let Holder::Agent { agent, lane } = token.holder else {
        let detail = "calls need an agent's credential; this is an administrator's";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    };
    Ok((token, agent, lane))
}

/// Step 4: the command for the lane.
///
/// # Errors
///
/// The caller has a run credential, and the call claims another run or a user.
pub fn command(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    lane: u16,
    signature: Option<Verified>,
    purpose: Purpose,
    call: ToolCall,
) -> Result<GateCommand, Problem> {
    let call = match &token.run {
        Some(run) => call.in_run(&run.run_id)?,
        None => call,
    };
    Ok(GateCommand {
        tenant: token.tenant.to_owned(),
        lane,
        key_id: token.key_id.to_owned(),
        secret_hash: token.secret_hash,
        located: token.is_locator,
        http_request_id: app.request_id.clone(),
        trace_id: app.trace.as_ref().map(|trace| trace.trace_id),
        source_address: request.source_address(),
        signed: signature.is_some(),
        run_credential: token.run.is_some(),
        forwarded: false,
        signature_nonce: signature.and_then(|verified| verified.nonce),
        purpose,
        session: None,
        parameters: Vec::new(),
        beside: Json::Null,
        warrant: None,
        call,
    })
}

/// Verifies the request's signature; `None` if the request is not signed. An invalid signature is refused
/// even if the credential does not need one.
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
    let tenant = Some(token.tenant);
    if token.run.is_some() || token.is_locator {
        let detail = "only a credential has a signing key; send the request without a signature";
        return Err(refuse(request, app, tenant, ProblemCode::SignatureInvalid, detail));
    }
    let signed = SignedRequest {
        method: &request.method,
        path: request.path(),
        query: request.raw_query(),
        headers: request.headers(),
        body,
    };
    let now_ms = io::now_ms();
    let verified = signature::verify(&signed, &app.settings.mac_keys, token, needs_nonce, now_ms);
    verified.map(Some).inspect_err(|problem| failures::count(request, app, tenant, problem.code))
}

/// Uses up the nonce of a request that is not a call. The request must have no effect before this.
pub async fn use_nonce(request: &Request, app: &App, caller: &Caller) -> Result<(), Problem> {
    let Some(nonce) = &caller.nonce else { return Ok(()) };
    let now_ms = io::now_ms();
    if d1::signatures::use_nonce(app, &caller.tenant, &caller.key_id, nonce, now_ms).await? {
        return Ok(());
    }
    let problem = signature::replayed();
    failures::count(request, app, Some(&caller.tenant), problem.code);
    Err(problem)
}

const INVALID: &str = "the credential is not valid";

/// Reads and checks the credential of a request that is not a call.
async fn caller(request: &Request, app: &App, body: &[u8]) -> Result<Caller, Problem> {
    let token = token(request, app)?;
    let needs_nonce = !matches!(request.method.as_str(), "GET" | "HEAD");
    let signature = verify_signature(request, app, &token, body, needs_nonce)?;
    if let Holder::Agent { agent, lane } = token.holder {
        charge(request, app, &token, (agent, lane), signature.clone()).await?;
    }
    let stored = d1::registry::load_reader(app, token.tenant, token.key_id).await?;
    let unknown = || refuse(request, app, Some(token.tenant), ProblemCode::Unauthorized, INVALID);
    let stored = stored.ok_or_else(unknown)?;
    let unreadable = |error: serde_json::Error| unreadable(app, &error);
    let allowed_networks: Option<Vec<Network>> = match &stored.allowed_networks {
        None => None,
        Some(networks) => Some(serde_json::from_str(networks).map_err(unreadable)?),
    };
    check(request, app, &token, &stored, signature.is_some(), allowed_networks.as_deref())?;
    let scopes: Vec<String> = serde_json::from_str(&stored.scopes).map_err(unreadable)?;
    Ok(Caller {
        tenant: token.tenant.to_owned(),
        lanes: stored.lanes,
        agent: stored.agent,
        run: token.run.map(|run| run.run_id),
        administrator: stored.administrator.unwrap_or_default(),
        key_id: token.key_id.to_owned(),
        issued_by: stored.issued_by,
        groups: serde_json::from_str(&stored.groups).map_err(unreadable)?,
        epoch: stored.epoch,
        // A scope that this version does not know is ignored.
        scopes: scopes.iter().filter_map(|scope| scope.parse().ok()).collect(),
        expires_at_ms: stored.expires_at_ms,
        allowed_networks,
        signed: stored.signed != 0,
        nonce: signature.and_then(|verified| verified.nonce),
    })
}

/// Checks a token against its stored credential.
fn check(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    stored: &ReaderRow,
    is_signed: bool,
    allowed_networks: Option<&[Network]>,
) -> Result<(), Problem> {
    let refuse = |code, detail| Err(refuse(request, app, Some(token.tenant), code, detail));
    let (kind, agent) = match token.holder {
        Holder::Agent { agent, .. } => (CredentialKind::Agent, Some(agent)),
        Holder::Administrator => (CredentialKind::Administrator, None),
    };
    let secret_hash = token.secret_hash;
    if !token::hash_matches(&secret_hash, &stored.secret_sha256)
        || stored.kind != kind
        || stored.agent.as_deref() != agent
    {
        return refuse(ProblemCode::Unauthorized, INVALID);
    }
    let refuse_for_good = |code, detail| {
        refuse(code, detail).inspect_err(|problem: &Problem| {
            refusals::remember(secret_hash, problem.clone());
        })
    };
    if stored.status == CredentialStatus::Revoked {
        return refuse_for_good(ProblemCode::Unauthorized, INVALID);
    }
    if stored.status != CredentialStatus::Active || stored.tenant_status == TenantStatus::Deleted {
        return refuse(ProblemCode::Unauthorized, INVALID);
    }
    if stored.expires_at_ms.is_some_and(|at| io::now_ms() >= at) {
        return refuse_for_good(ProblemCode::CredentialExpired, "the credential has expired");
    }
    if stored.signed != 0 && !is_signed {
        let detail = "the credential has a signing key; sign the request (RFC 9421)";
        return refuse(ProblemCode::SignatureRequired, detail);
    }
    if let Some(networks) = allowed_networks {
        let address = request.source_address();
        if !address.is_some_and(|address| networks.iter().any(|net| net.contains(address))) {
            let detail = "the credential must not be used from this address";
            return refuse(ProblemCode::SourceAddressForbidden, detail);
        }
    }
    // A deleted agent has no status, and is refused too.
    if agent.is_some() && stored.agent_status != Some(AgentStatus::Active) {
        return Err(Problem::new(ProblemCode::Forbidden, "the agent is not active"));
    }
    Ok(())
}

/// Asks the lane to charge the request to the agent's rate. This happens before any read of D1. So a refused
/// credential, or an agent over its rate, causes no read.
async fn charge(
    request: &Request,
    app: &App,
    token: &Token<'_>,
    (agent, lane): (&str, u16),
    signature: Option<Verified>,
) -> Result<(), Problem> {
    let call =
        Claims::default().call((token.tenant, agent), ("", "", ""), Json::Object(Vec::new()));
    let command = command(request, app, token, lane, signature, Purpose::Read, call)?;
    let (rate, charged) = match lane::client::judge(&app.env, &command).await {
        Ok(judged) => (judged.rate, Ok(())),
        Err(refused) => (refused.rate, Err(refused.problem)),
    };
    *request.rate.borrow_mut() = rate;
    charged
}

fn bootstrap(request: &Request, app: &App) -> Result<Caller, Problem> {
    let refuse = || Err(refuse(request, app, None, ProblemCode::Unauthorized, INVALID));
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
        run: None,
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

fn refuse(
    request: &Request,
    app: &App,
    tenant: Option<&str>,
    code: ProblemCode,
    detail: &str,
) -> Problem {
    failures::count(request, app, tenant, code);
    Problem::new(code, detail)
}

fn unreadable(app: &App, error: &serde_json::Error) -> Problem {
    log::write(&app.line(Event::CredentialUnreadable, of_json(error)));
    Problem::new(
        ProblemCode::RegistryUnavailable,
        "the registry cannot be read; the worker's log says why",
    )
}

/// The credential of an `Authorization: Bearer` header.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim())
}
