//! The registry as the worker serves it, on SQLite in memory and with faults on demand: what
//! `worker/edge/src/handlers/administration/` and `worker/edge/src/d1/administration.rs` do.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use gateward_admin::ManifestSeen;
use gateward_admin::agent::AgentRow;
use gateward_admin::api::openapi::document;
use gateward_admin::api::request::{Asked, RANDOM_BYTES, Request};
use gateward_admin::manifest::{Discovered, ToolManifest};
use gateward_admin::{Actor, AgentInLane, AnswerBody, At, Loaded, Outcome, Write};
use gateward_core::approval::{Approval, ApproverGroup};
use gateward_core::credential::token::MacKeys;
use gateward_core::field::Name;
use gateward_core::gate::LaneAction;
use gateward_core::limit::window::utc_only;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{self, EpochPush, LoadedTexts};
use gateward_core::route::{Found, find};
use gateward_core::scope::Scope;
use gateward_core::sql::administration::{KEPT_ANSWER, Statement, Value};
use gateward_core::sql::d1;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension as _, Row, params, params_from_iter};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{Fault, START_MS, TENANT, database};

pub const MAC_KEY: &str = "a MAC key of these tests, long enough";

const MAX_ATTEMPTS: u32 = 8;

/// The name of a shared response is the list of its codes.
fn assert_described(ask: &Ask, code: ProblemCode) {
    static DOCUMENT: LazyLock<Json> = LazyLock::new(|| serde_json::to_value(document()).unwrap());
    let path = ask.path.split('?').next().unwrap();
    let Found::Route(route, _) = find(ask.method, path) else { panic!("{ask:?} is no route") };
    let operation = &DOCUMENT["paths"][route.path][route.method.to_ascii_lowercase()];
    let response = operation["responses"][code.status().to_string()]["$ref"].as_str();
    let listed = response.unwrap_or_default().rsplit('/').next().unwrap();
    let code = code.code();
    assert!(listed.split('.').any(|known| known == code), "{ask:?}: `{code}` is not described");
}

/// A request of an administrator.
#[derive(Clone)]
pub struct Ask {
    pub method: &'static str,
    /// `@3` in it is the fourth credential or ban that was made; the count goes round and round.
    pub path: String,
    /// Null for none.
    pub body: Json,
    pub if_match: Option<String>,
    pub idempotency_key: Option<String>,
    pub approval: Option<Approval>,
    pub actor: Actor,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.path, self.body)?;
        self.if_match.as_ref().map_or(Ok(()), |tags| write!(f, " If-Match: {tags}"))
    }
}

impl Ask {
    pub fn new(method: &'static str, path: &str, body: Json) -> Self {
        let actor = Actor {
            tenant: TENANT.to_owned(),
            name: "ada".to_owned(),
            key_id: "k0".to_owned(),
            scopes: Scope::ALL.to_vec(),
            expires_at_ms: None,
            allowed_networks: None,
            signed: false,
        };
        let path = path.to_owned();
        Self { method, path, body, if_match: None, idempotency_key: None, approval: None, actor }
    }

    pub fn of_tenant(mut self, tenant: &str) -> Self {
        tenant.clone_into(&mut self.actor.tenant);
        self
    }

    pub fn of_actor(mut self, actor: &Actor) -> Self {
        self.actor = actor.clone();
        self
    }

    pub fn matching(mut self, etag: &str) -> Self {
        self.if_match = Some(etag.to_owned());
        self
    }

    /// Presents an approval of these people, each for this group.
    pub fn approved(mut self, group: &str, people: &[&str]) -> Self {
        let approver = |name: &&str| json!({"administrator": name, "groups": [group], "at_ms": 0});
        let approvers: Vec<Json> = people.iter().map(approver).collect();
        let approval = json!({
            "approval_id": "appr_0_1", "decision_id": "", "agent": "_registry",
            "server": "gateward", "tool": "group_member_added", "resource": "", "user_id": "ada",
            "run_id": "", "source_trust": "unknown", "reason": "", "matched_policies": [],
            "status": "approved", "revision": 2, "approver_groups": [], "action_hash": "",
            "edited_action_hash": null, "edited_by": null, "approvers": approvers,
            "closed_by": null, "comment": null, "tampering": 0, "used_by": null,
            "created_at_ms": 0, "expires_at_ms": 1, "approved_at_ms": 1, "closed_at_ms": null,
        });
        self.approval = Some(serde_json::from_value(approval).unwrap());
        self
    }

    pub fn once(mut self, key: &str) -> Self {
        self.idempotency_key = Some(key.to_owned());
        self
    }
}

pub fn get(path: &str) -> Ask {
    Ask::new("GET", path, Json::Null)
}

pub fn post(path: &str, body: Json) -> Ask {
    Ask::new("POST", path, body)
}

pub fn patch(path: &str, body: Json) -> Ask {
    Ask::new("PATCH", path, body)
}

pub fn put(path: &str) -> Ask {
    Ask::new("PUT", path, Json::Null)
}

pub fn delete(path: &str) -> Ask {
    Ask::new("DELETE", path, Json::Null)
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Created,
    Changed,
    Unchanged,
    /// Whether the idempotency key had an answer already.
    Replayed,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub status: u16,
    pub body: Json,
    pub revision: Option<u64>,
    pub effect: Effect,
    /// The push to every lane; `None` for a read.
    pub push: Option<EpochPush>,
    /// The command to an agent's lane, and its epoch.
    pub told_lane: Option<(LaneAction, AgentInLane, u64)>,
}

impl Answered {
    pub fn changed(&self) -> bool {
        matches!(self.effect, Effect::Created | Effect::Changed)
    }
}

pub struct Registry {
    pub database: Connection,
    pub now_ms: Cell<u64>,
    /// How often random bytes were drawn: each draw differs.
    pub drawn: Cell<u64>,
    /// The fault of the next commit: it fails at this statement, or its answer is lost.
    pub fault: Cell<Option<(usize, Fault)>>,
    /// Another request, which is carried out between the next request's load and its commit.
    pub between: RefCell<Option<Ask>>,
    pub commits: Cell<u32>,
    pub local_targets: Cell<bool>,
    /// What every server answers if it is asked for its tools; `None` if no server can be reached.
    pub listing: RefCell<Option<Json>>,
    /// How often a server was asked.
    pub discoveries: Cell<u32>,
    keys: MacKeys,
}

impl Registry {
    /// A registry with a tenant that has only its first administrator.
    pub fn new() -> Self {
        let registry = Self {
            database: database(),
            now_ms: Cell::new(START_MS),
            drawn: Cell::new(0),
            fault: Cell::new(None),
            between: RefCell::new(None),
            commits: Cell::new(0),
            local_targets: Cell::new(false),
            listing: RefCell::new(None),
            discoveries: Cell::new(0),
            keys: MacKeys::new(MAC_KEY, None).unwrap(),
        };
        registry.add_tenant(TENANT);
        registry
    }

    pub fn add_tenant(&self, tenant: &str) {
        let insert =
            "INSERT INTO tenants (tenant, created_at_ms, updated_at_ms) VALUES (?1, ?2, ?2)";
        self.database.execute(insert, params![tenant, START_MS as i64]).unwrap();
        let first = "INSERT INTO subjects (tenant, subject, created_by, first, created_at_ms) \
            VALUES (?1, 'ada', '_bootstrap', 1, ?2)";
        self.database.execute(first, params![tenant, START_MS as i64]).unwrap();
    }

    pub fn wait(&self, seconds: u64) {
        self.now_ms.set(self.now_ms.get() + seconds * 1_000);
    }

    pub fn signing_key(&self, key_id: &str) -> String {
        self.keys.signing_key(TENANT, key_id)
    }

    /// The path with the id that `@` stands for.
    pub fn resolve(&self, ask: &Ask) -> String {
        let Some((before, rest)) = ask.path.split_once('@') else { return ask.path.clone() };
        let (number, action) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let list = before.split('/').nth(2).unwrap();
        let ids = self.ids(&ask.actor.tenant, list);
        let number: usize = number.parse().unwrap();
        let id = ids.get(number % ids.len().max(1)).map_or("none", String::as_str);
        format!("{before}{id}{action}")
    }

    /// The ids of all `credentials` or `bans` that were ever created, in order.
    pub fn ids(&self, tenant: &str, list: &str) -> Vec<String> {
        let (kinds, id) = match list {
            "bans" => ("ban_created ", "ban_id"),
            _ => ("credential_created credential_rotated ", "key_id"),
        };
        let made = "SELECT detail->>?3 FROM audit_events \
            WHERE tenant = ?1 AND instr(?2, kind || ' ') ORDER BY length(event_id), event_id";
        let mut made = self.database.prepare_cached(made).unwrap();
        let ids = made.query_map([tenant, kinds, id], |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    }

    /// A problem must be one that the API's description lists for the operation.
    pub fn ask(&self, ask: &Ask) -> Result<Answered, Problem> {
        let answered = self.answer(ask);
        if let Err(problem) = &answered {
            assert_described(ask, problem.code);
        }
        answered
    }

    fn answer(&self, ask: &Ask) -> Result<Answered, Problem> {
        let path = self.resolve(ask);
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let Found::Route(route, parameters) = find(ask.method, path) else {
            panic!("{} {path} is no route", ask.method);
        };
        let parameters: Vec<String> =
            parameters.into_iter().map(|text| text.replace("%2F", "/")).collect();
        let pair = |text: &str| {
            text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let query: Vec<(String, String)> = query.split('&').filter_map(pair).collect();
        let body = if ask.body.is_null() { String::new() } else { ask.body.to_string() };
        let request = Request {
            operation: route.operation,
            tenant: &ask.actor.tenant,
            parameters: &parameters,
            query: &query,
            body: body.as_bytes(),
            keys: &self.keys,
            random: self.random(),
            local_targets: self.local_targets.get(),
            offset_s: utc_only,
        };
        assert_eq!(request.takes_body(), !body.is_empty(), "{ask:?}");
        let now_ms = self.now_ms.get();
        let (body, revision) = match request.asked()? {
            Asked::Write { tenant, write } => {
                return self.change(ask, path, &tenant, &*write, &body);
            }
            Asked::One { statement, view } => self.one(&statement, view)?,
            Asked::Agent(statement) => self.one(&statement, gateward_admin::one::<AgentRow>)?,
            Asked::Page { within, statement, limit, view } => {
                if let Some((what, within)) = within
                    && self.texts(&within).is_empty()
                {
                    return Err(Problem::not_found(what));
                }
                (view(&self.texts(&statement), limit, now_ms)?, None)
            }
            Asked::Other => panic!("{path} is not the administration's"),
        };
        let effect = Effect::Unchanged;
        Ok(Answered { status: 200, body, revision, effect, push: None, told_lane: None })
    }

    fn one(
        &self,
        statement: &Statement,
        view: fn(Option<&str>, u64) -> Result<AnswerBody, Problem>,
    ) -> Result<(Json, Option<u64>), Problem> {
        let row = self.texts(statement).into_iter().next();
        let AnswerBody { body, revision } = view(row.as_deref(), self.now_ms.get())?;
        Ok((Json::Object(body), revision))
    }

    fn random(&self) -> [u8; RANDOM_BYTES] {
        self.drawn.set(self.drawn.get() + 1);
        let hash = |part: u8| Sha256::digest(format!("{part} {}", self.drawn.get()));
        let mut random = [0; RANDOM_BYTES];
        let bytes = hash(0).into_iter().chain(hash(1));
        random.iter_mut().zip(bytes).for_each(|(byte, drawn)| *byte = drawn);
        random
    }

    fn change(
        &self,
        ask: &Ask,
        path: &str,
        tenant: &str,
        write: &dyn Write,
        body: &str,
    ) -> Result<Answered, Problem> {
        let actor = &ask.actor;
        let fingerprint =
            gateward_admin::fingerprint(&actor.key_id, ask.method, path, body.as_bytes());
        let kept = ask.idempotency_key.as_deref().map(|key| (key, fingerprint.as_str()));
        let answered = |status, AnswerBody { body, revision }, effect, push: EpochPush| {
            let body = Json::Object(body);
            let told_lane = write
                .lane_action()
                .map(|action| (action, serde_json::from_value(body.clone()).unwrap(), push.epoch));
            Answered { status, body, revision, effect, push: Some(push), told_lane }
        };
        let mut discovered = None;
        for _ in 0..MAX_ATTEMPTS {
            if let Some((key, fingerprint)) = kept
                && let Some((status, answer, epoch)) =
                    self.again(&actor.tenant, key, fingerprint)?
            {
                let push = EpochPush::whole(epoch);
                return Ok(answered(status, answer, Effect::Replayed, push));
            }
            let if_match = ask.if_match.as_deref();
            let now_ms = self.now_ms.get();
            let (discovered_now, approval) = (discovered.as_ref(), ask.approval.as_ref());
            let at = At { actor, tenant, now_ms, if_match, discovered: discovered_now, approval };
            let loaded = self.loaded(&write.read(&at));
            if write.discovers(&at, &loaded)?.is_some() && discovered.is_none() {
                discovered = Some(self.discover()?);
                continue;
            }
            let (statements, done) = match write.apply(&at, &loaded)? {
                Outcome::NeedsApproval(held) => {
                    let needed =
                        |needed: &ApproverGroup| format!("{} {}", needed.group, needed.quorum);
                    let needed: Vec<String> = held.groups.iter().map(needed).collect();
                    return Err(Problem::new(ProblemCode::ApprovalRequired, needed.join(", ")));
                }
                Outcome::Unchanged(answer) => {
                    let epoch = loaded.epoch.unwrap_or(0);
                    let body = Json::Object(answer.body.clone());
                    let keep =
                        kept.map(|key| gateward_admin::keep(&at, epoch, 200, &body, key).to_vec());
                    let push = EpochPush::whole(epoch);
                    (keep.unwrap_or_default(), answered(200, answer, Effect::Unchanged, push))
                }
                Outcome::Changed(change) => {
                    let epoch = loaded.next_epoch();
                    let statements = gateward_admin::commit(&at, epoch, &change, kept);
                    let effect = if change.created { Effect::Created } else { Effect::Changed };
                    let status = change.status();
                    let push = EpochPush { from: epoch - 1, epoch, keys: change.keys };
                    (statements, answered(status, change.answer, effect, push))
                }
            };
            if let Some(other) = self.between.take() {
                self.ask(&other).unwrap();
            }
            match self.commit(&statements) {
                Ok(()) => return Ok(done),
                Err(error) if error.contains("UNIQUE constraint failed") => {}
                Err(error) => return Err(Problem::new(ProblemCode::RegistryUnavailable, error)),
            }
        }
        panic!("overtaken {MAX_ATTEMPTS} times: {} {path}", ask.method);
    }

    fn discover(&self) -> Result<ToolManifest, Problem> {
        self.discoveries.set(self.discoveries.get() + 1);
        let unreachable = || Problem::new(ProblemCode::UpstreamUnreachable, "nobody there");
        let listing = self.listing.borrow();
        Ok(ToolManifest::of_server(&discovered(listing.as_ref().ok_or_else(unreachable)?)))
    }

    /// A listing passes through the proxy.
    pub fn see(&self, server: &str, tools: &Json) -> Result<Answered, Problem> {
        let listing = ToolManifest::of_server(&discovered(&json!({ "tools": tools })));
        let server = Name::parse(server).unwrap();
        let write = ManifestSeen { server, manifest: &listing };
        let ask = Ask::new("POST", "", Json::Null).of_actor(&Actor::gateward());
        self.change(&ask, "", TENANT, &write, "")
    }

    /// The answer that the key already has, and its epoch.
    fn again(
        &self,
        tenant: &str,
        key: &str,
        fingerprint: &str,
    ) -> Result<Option<(u16, AnswerBody, u64)>, Problem> {
        let kept = self
            .database
            .query_row(KEPT_ANSWER, params![tenant, key], |row| {
                let body: String = row.get("body")?;
                let body = serde_json::from_str(&body).unwrap();
                let epoch = row.get::<_, i64>("epoch")? as u64;
                let answer = (row.get("status")?, AnswerBody { body, revision: None }, epoch);
                Ok((row.get::<_, String>("fingerprint")?, answer))
            })
            .optional()
            .unwrap();
        match kept {
            Some((of, _)) if of != fingerprint => {
                let detail = "the `Idempotency-Key` was used for another request";
                Err(Problem::new(ProblemCode::IdempotencyKeyReused, detail))
            }
            kept => Ok(kept.map(|(_, answer)| answer)),
        }
    }

    /// Runs all statements, or none.
    fn commit(&self, statements: &[Statement]) -> Result<(), String> {
        if statements.is_empty() {
            return Ok(());
        }
        self.commits.set(self.commits.get() + 1);
        let transaction = self.database.unchecked_transaction().unwrap();
        for (at, statement) in statements.iter().enumerate() {
            if self.fault.get() == Some((at, Fault::Failed)) {
                self.fault.set(None);
                return Err("injected".to_owned());
            }
            let mut prepared = self.database.prepare_cached(statement.sql).unwrap();
            prepared.execute(params_from_iter(values(statement))).map_err(|e| e.to_string())?;
        }
        transaction.commit().unwrap();
        match self.fault.get() {
            Some((_, Fault::Lost)) => {
                self.fault.set(None);
                Err("injected".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn loaded(&self, statement: &Statement) -> Loaded {
        let read = |row: &Row<'_>| {
            Ok(Loaded {
                epoch: row.get::<_, Option<i64>>("epoch")?.map(|epoch| epoch as u64),
                lanes: row.get("lanes")?,
                record: row.get("record")?,
                extra: row.get("extra")?,
            })
        };
        let mut prepared = self.database.prepare_cached(statement.sql).unwrap();
        prepared.query_row(params_from_iter(values(statement)), read).unwrap()
    }

    fn texts(&self, statement: &Statement) -> Vec<String> {
        let mut prepared = self.database.prepare_cached(statement.sql).unwrap();
        let rows = prepared.query_map(params_from_iter(values(statement)), |row| row.get("record"));
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// All records of a list.
    pub fn list(&self, path: &str) -> Vec<Json> {
        let plural = path.rsplit('/').next().unwrap();
        let plural = plural.replace('-', "_");
        let answered = self.ask(&get(&format!("{path}?limit=200"))).unwrap();
        assert_eq!(answered.body["next_cursor"], Json::Null);
        answered.body[&plural].as_array().unwrap().clone()
    }

    /// What a lane reads for a call.
    pub fn load(&self, agent: &str, key_id: &str, server: &str, tool: &str) -> registry::Loaded {
        self.load_texts(agent, key_id, server, tool).parse().unwrap()
    }

    /// The same, as D1 gives it.
    pub fn load_texts(&self, agent: &str, key_id: &str, server: &str, tool: &str) -> LoadedTexts {
        let mut prepared = self.database.prepare_cached(d1::LOAD_RECORDS).unwrap();
        let now_ms = self.now_ms.get() as i64;
        prepared
            .query_row(params![TENANT, agent, key_id, server, tool, 1, now_ms], |row| {
                Ok(LoadedTexts {
                    tenant: row.get("tenant")?,
                    agent: row.get("agent")?,
                    credential: row.get("credential")?,
                    server: row.get("server")?,
                    tool: row.get("tool")?,
                    bans: row.get("bans")?,
                    warrants: row.get("warrants")?,
                })
            })
            .unwrap()
    }

    pub fn epoch(&self) -> u64 {
        let epoch = self.database.query_row(d1::EPOCH, [TENANT], |row| row.get::<_, i64>(0));
        epoch.unwrap() as u64
    }

    /// Every row of every table.
    pub fn dump(&self) -> BTreeMap<String, Vec<String>> {
        let tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
        let mut tables = self.database.prepare_cached(tables).unwrap();
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        tables.map(|table| self.rows(&table.unwrap())).collect()
    }

    fn rows(&self, table: &str) -> (String, Vec<String>) {
        let mut all = self.database.prepare_cached(&format!("SELECT * FROM {table}")).unwrap();
        let columns = all.column_count();
        let row = |row: &Row<'_>| -> rusqlite::Result<String> {
            let values: rusqlite::Result<Vec<Sql>> = (0..columns).map(|at| row.get(at)).collect();
            values.map(|values| format!("{values:?}"))
        };
        let rows = all.query_map([], row).unwrap().map(Result::unwrap).collect();
        (table.to_owned(), rows)
    }
}

/// What the edge returns for a server's answers. A text that is JSON is a tool as the server wrote it.
fn discovered(listing: &Json) -> Discovered {
    let raw = |tool: &Json| {
        let written = tool.as_str().filter(|text| text.starts_with('{'));
        let text = written.map_or_else(|| tool.to_string(), str::to_owned);
        RawValue::from_string(text).unwrap()
    };
    Discovered {
        tools: listing["tools"].as_array().unwrap().iter().map(raw).collect(),
        resources: listing["resources"] == true,
        prompts: listing["prompts"] == true,
        instructions: listing["instructions"].as_str().map(str::to_owned),
    }
}

/// As D1 takes them: every number is a double.
fn values(statement: &Statement) -> impl Iterator<Item = Sql> {
    statement.values.iter().map(|value| match value {
        Value::Null => Sql::Null,
        Value::Number(number) => Sql::Real(*number),
        Value::Text(text) => Sql::Text(text.clone()),
    })
}
