//! The registry as administrators change it: which routes there are and what each needs, what a
//! request may say, and what becomes of a record. Pure: the shell reads what [`Write::read`] asks
//! for, hands it to [`Write::apply`], and commits what that returns.
//!
//! INVARIANT (one order): every change of a tenant's registry raises its epoch by one, in the same
//! D1 batch that writes the change and the audit event `registry.<epoch>`. The event's key is the
//! lock: of two changes that were decided on the same epoch one fails whole, and is decided anew.
//!
//! INVARIANT (states are honest): what one action did is undone by its own opposite, or by nothing.

pub mod administrator;
pub mod agent;
pub mod audit;
pub mod ban;
pub mod credential;
pub mod egress;
pub mod group;
pub mod limits;
pub mod manifest;
pub mod protection;
pub mod server;
pub mod tenant;
pub mod tool;
pub mod upstream;
pub mod webhook;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};

use self::manifest::Listing;
use self::protection::Held;
use crate::approval::Approval;
use crate::etag::matches_etag;
use crate::gate::LaneAction;
use crate::network::Network;
use crate::problem::{Problem, ProblemCode};
use crate::registry::ChangedKey;
use crate::registry::upstream::Upstream;
use crate::scope::Scope;
use crate::sql::administration::{self as sql, Statement, Value};

/// How long a POST's answer is kept under its `Idempotency-Key`.
pub const IDEMPOTENCY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Characters of an `Idempotency-Key`: a UUID with a prefix fits several times.
pub const MAX_IDEMPOTENCY_KEY_BYTES: usize = 128;

/// Who changes the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The tenant whose administrator this is.
    pub tenant: String,
    /// The person's name.
    pub name: String,
    pub key_id: String,
    pub scopes: Vec<Scope>,
    /// What narrows the actor's own credential.
    pub expires_at_ms: Option<u64>,
    pub allowed_networks: Option<Vec<Network>>,
    pub signed: bool,
}

impl Actor {
    /// Gateward itself.
    #[must_use]
    pub fn gateward() -> Self {
        Self {
            tenant: String::new(),
            name: "gateward".to_owned(),
            key_id: String::new(),
            scopes: Vec::new(),
            expires_at_ms: None,
            allowed_networks: None,
            signed: false,
        }
    }
}

/// The circumstances of one change.
#[derive(Debug)]
pub struct At<'a> {
    pub actor: &'a Actor,
    /// The tenant whose registry changes.
    pub tenant: &'a str,
    pub now_ms: u64,
    /// The `If-Match` header.
    pub if_match: Option<&'a str>,
    /// What [`Write::discovers`] asked for, once the server has said it.
    pub discovered: Option<&'a Listing>,
    /// The approval that the request presents for the change. Its status and its hash are checked
    /// when its lane uses it up, before the change is committed.
    pub approval: Option<&'a Approval>,
}

impl At<'_> {
    /// Who makes a record or issues a credential. Nobody can have a name with an underscore in
    /// front.
    fn issuer(&self) -> String {
        match self.actor.tenant.as_str() {
            "" => format!("_{}", self.actor.name),
            own if own == self.tenant => self.actor.name.clone(),
            // An operator of another tenant.
            other => format!("{other}/{}", self.actor.name),
        }
    }
}

/// What [`Write::read`] found, in one statement. JSON texts; `None` when there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
pub struct Loaded {
    /// `None` when there is no such tenant.
    pub epoch: Option<u64>,
    pub lanes: Option<u16>,
    pub record: Option<String>,
    /// What else the change depends on.
    pub extra: Option<String>,
}

impl Loaded {
    /// The epoch that a change decided on this has.
    #[must_use]
    pub fn next_epoch(&self) -> u64 {
        self.epoch.unwrap_or(0) + 1
    }

    fn record<T: DeserializeOwned>(&self) -> Result<Option<T>, Problem> {
        self.record.as_deref().map(read_record).transpose()
    }

    fn extra<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        read_record(self.extra.as_deref().unwrap_or("null"))
    }
}

/// How many records of a kind there are, as far as it matters.
#[derive(serde::Deserialize)]
struct Room {
    count: u64,
}

/// A record as D1 holds it; one that cannot be read stops the request.
pub fn read_record<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text)
        .map_err(|_| Problem::new(ProblemCode::Internal, "a record of the registry cannot be read"))
}

/// What a request comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Everything is already as it was asked to be.
    Unchanged(Answer),
    Changed(Change),
    /// It is a change of who can approve, and members of protected groups must approve it first.
    Held(Held),
}

/// The body of an answer, an object, and the record's revision.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub body: Map<String, Json>,
    pub revision: Option<u64>,
}

/// An agent and its lane, as an answer has them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
pub struct AgentInLane {
    pub agent: String,
    pub lane: u16,
}

/// A change of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub statements: Vec<Statement>,
    /// The audit event's kind.
    pub event: &'static str,
    /// The audit event's detail; no secrets.
    pub detail: Json,
    /// What lanes must forget.
    pub keys: Vec<ChangedKey>,
    pub created: bool,
    /// Whether it uses up the approval that the request presented.
    pub approved: bool,
    pub answer: Answer,
    /// JSON pointers to what in the answer is shown once, and stored nowhere.
    pub secrets: &'static [&'static str],
}

impl Answer {
    fn of(view: &impl Serialize, revision: Option<u64>) -> Result<Self, Problem> {
        match serde_json::to_value(view) {
            Ok(Json::Object(body)) => Ok(Self { body, revision }),
            _ => Err(Problem::new(ProblemCode::Internal, "the answer could not be written")),
        }
    }
}

impl Change {
    fn new(event: &'static str, answer: Answer, statements: Vec<Statement>) -> Self {
        let keys = Vec::new();
        let detail = json!({});
        Self {
            statements,
            event,
            detail,
            keys,
            created: false,
            approved: false,
            answer,
            secrets: &[],
        }
    }
}

/// One write of the administration API.
pub trait Write {
    /// What must be known before.
    fn read(&self, at: &At<'_>) -> Statement;

    /// What becomes of it.
    ///
    /// # Errors
    ///
    /// The problem that the caller is told; nothing is written then.
    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem>;

    /// The server whose tools must be listed before the change is made: then it is read and decided
    /// anew, with the listing.
    ///
    /// # Errors
    ///
    /// As [`Write::apply`]: what is refused in any case is asked of no server.
    fn discovers(&self, _: &At<'_>, _: &Loaded) -> Result<Option<Upstream>, Problem> {
        Ok(None)
    }

    /// What the lane of the agent that the answer shows must do then.
    fn lane_action(&self) -> Option<LaneAction> {
        None
    }
}

/// A kind of record that is read one at a time and in pages.
pub trait Record: DeserializeOwned {
    /// What one is called in a sentence.
    const SINGULAR: &'static str;
    /// The list's name in a page.
    const PLURAL: &'static str;
    type View: Serialize;

    /// Where a page that ends with this record goes on.
    fn cursor(&self) -> String;
    fn view(&self, now_ms: u64) -> Self::View;
    fn revision(&self) -> Option<u64>;
}

/// A page of records, and where the next one begins when this one is full.
///
/// # Errors
///
/// `internal` when a record cannot be read.
pub fn page<R: Record>(rows: &[String], limit: u32, now_ms: u64) -> Result<Json, Problem> {
    let records: Vec<R> = rows.iter().map(|row| read_record(row)).collect::<Result<_, _>>()?;
    let full = records.len() >= limit as usize;
    let next_cursor = records.last().filter(|_| full).map(R::cursor);
    let views: Vec<R::View> = records.iter().map(|record| record.view(now_ms)).collect();
    Ok(json!({ R::PLURAL: views, "next_cursor": next_cursor }))
}

/// One record.
///
/// # Errors
///
/// `not_found`, or `internal` when it cannot be read.
pub fn one<R: Record>(row: Option<&str>, now_ms: u64) -> Result<Answer, Problem> {
    let record: R =
        row.map(read_record).transpose()?.ok_or_else(|| Problem::not_found(R::SINGULAR))?;
    view(&record, now_ms)
}

/// A record as an answer has it.
///
/// # Errors
///
/// `internal` when it cannot be written.
pub fn view<R: Record>(record: &R, now_ms: u64) -> Result<Answer, Problem> {
    Answer::of(&record.view(now_ms), record.revision())
}

/// The statements of one batch that makes the change. With an idempotency key and the request's
/// fingerprint, the answer is kept under it.
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
            change.event.into(),
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

/// The statements that keep an answer under its idempotency key, with the request's fingerprint.
#[must_use]
pub fn keep(
    at: &At<'_>,
    epoch: u64,
    status: u16,
    body: &Json,
    (key, fingerprint): (&str, &str),
) -> [Statement; 2] {
    // Keys belong to the tenant whose administrator sent them.
    let tenant = Value::from(at.actor.tenant.as_str());
    let expired = at.now_ms.saturating_sub(IDEMPOTENCY_MS).into();
    [
        Statement::new(sql::EXPIRE_IDEMPOTENCY_KEYS, vec![tenant.clone(), expired]),
        Statement::new(
            sql::KEEP_ANSWER,
            vec![
                tenant,
                key.into(),
                fingerprint.into(),
                epoch.into(),
                u64::from(status).into(),
                body.to_string().into(),
                at.now_ms.into(),
                at.tenant.into(),
            ],
        ),
    ]
}

impl Change {
    #[must_use]
    pub fn status(&self) -> u16 {
        if self.created { 201 } else { 200 }
    }
}

/// What an idempotency key binds.
#[must_use]
pub fn fingerprint(key_id: &str, method: &str, path: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [key_id, method, path] {
        hash.update(part);
        hash.update([0]);
    }
    hex::encode(hash.chain_update(body).finalize())
}

/// Whether `If-Match` lets a change of this revision through.
fn check_match(at: &At<'_>, revision: u64) -> Result<(), Problem> {
    if at.if_match.is_none_or(|header| matches_etag(header, revision)) {
        return Ok(());
    }
    let detail = "the record was changed since you read it: read it again";
    Err(Problem::new(ProblemCode::PreconditionFailed, detail))
}

/// Records that never change have no revision: no entity tag but `*` can be theirs.
fn check_no_match(at: &At<'_>) -> Result<(), Problem> {
    if at.if_match.is_none_or(|header| header.trim() == "*") {
        return Ok(());
    }
    let detail = "this record has no revision: leave `If-Match` out";
    Err(Problem::new(ProblemCode::PreconditionFailed, detail))
}

/// A detail with what is different; a new record differs from nothing.
fn with_changes(mut detail: Json, changes: Option<Json>) -> Json {
    if let (Json::Object(fields), Some(changes)) = (&mut detail, changes) {
        fields.insert("changes".to_owned(), changes);
    }
    detail
}

/// What is different between two views of a record, for the audit.
fn difference(before: &impl Serialize, after: &impl Serialize) -> Json {
    let (before, after) = (json!(before), json!(after));
    let Json::Object(after) = after else { return Json::Null };
    let changed = after.into_iter().filter(|(name, value)| {
        !["revision", "updated_at"].contains(&name.as_str()) && before.get(name) != Some(value)
    });
    Json::Object(changed.collect())
}

/// An operator's credentials are ended by operators.
fn operators_only() -> Problem {
    Problem::new(ProblemCode::Forbidden, "only an operator revokes an operator's credential")
}

/// Whether a change ends the last credentials that administer, as D1 has them.
#[derive(serde::Deserialize)]
struct Last {
    /// The last of the tenant that can change its registry.
    last_administrator: bool,
    /// The last of all that can administer tenants.
    last_operator: bool,
}

impl Last {
    /// Refuses the change, unless its request says that this is meant.
    fn check(&self, meant: bool) -> Result<(), Problem> {
        let left = match self {
            _ if meant => return Ok(()),
            Self { last_administrator: true, .. } => {
                "no administrator who can change the tenant (scope `registry:write`)"
            }
            Self { last_operator: true, .. } => "no operator (scope `tenants:admin`)",
            _ => return Ok(()),
        };
        let detail = format!(
            "{left} would be left, and only `bootstrap` would make another: if that is meant, send \
             `?last=true` (`gateward`: `--yes`)"
        );
        Err(Problem::new(ProblemCode::LastAdministrator, detail))
    }
}

fn conflict(detail: &str) -> Problem {
    Problem::new(ProblemCode::StateConflict, detail)
}

fn name_taken(what: &str, deleted: bool) -> Problem {
    let detail = match deleted {
        true => format!("the name was that of a deleted {what}, and cannot be used again"),
        false => format!("another {what} has this name"),
    };
    Problem::new(ProblemCode::NameTaken, detail)
}

fn limit_reached(what: &str, max: u64) -> Problem {
    Problem::new(ProblemCode::LimitReached, format!("there are {max} {what} already, the most"))
}
