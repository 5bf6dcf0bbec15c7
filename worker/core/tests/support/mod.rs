//! A lane and its D1 on real SQLite in memory, with faults on demand.

#![allow(dead_code, reason = "the tests of each crate use a part of this")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

#[cfg(debug_assertions)]
mod conforms;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

use gateward_core::call;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::credential::token::secret_hash;
use gateward_core::gate::config::Config;
use gateward_core::gate::{AgentCommand, LaneAction, Reply};
use gateward_core::lane::{
    Answers, CallResult, Confirmed, FlushBatch, Lane, LaneSql, StorageError, Value,
};
use gateward_core::limit::book::At;
use gateward_core::limit::lease::{Answer, Need};
use gateward_core::limit::window::utc_only;
use gateward_core::limit::{Limit, RequestRate};
use gateward_core::metrics::{BatchMetrics, Series};
use gateward_core::policy::PolicyEngine;
use gateward_core::policy::bundle::Bundle;
use gateward_core::problem::Problem;
use gateward_core::provenance::Reach;
use gateward_core::provenance::ValueKey;
use gateward_core::receipt::StoredReceipt;
use gateward_core::registry::{
    AgentRecord, Bans, CallRecords, CredentialRecord, Loaded, ServerKind, ServerRecord,
    ServerStatus, ServerTrust, TaintRule, TenantRecord, ToolRegistration, ToolStatus,
};
use gateward_core::sql::d1;
use gateward_core::velocity::Counted;
use gateward_core::velocity::shared::CountRequest;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params, params_from_iter};
use serde_json::{Value as Json, json};

pub const TENANT: &str = "demo";
pub const SECRET: &str = "a secret of this test";

/// What happens to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing is written.
    Failed,
    /// It succeeds and is reported as failed.
    Lost,
}

/// Durable Object storage.
pub struct Storage {
    pub connection: Connection,
    /// The write that fails next, counted from now.
    pub fault: Cell<Option<(u32, Fault)>>,
    pub size_bytes: Cell<u64>,
}

impl LaneSql for Storage {
    fn exec(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StorageError> {
        let writes = !statement.trim_start().starts_with("SELECT");
        let fault = match self.fault.get() {
            Some((0, fault)) if writes => {
                self.fault.set(None);
                Some(fault)
            }
            Some((left, fault)) if writes => {
                self.fault.set(Some((left - 1, fault)));
                None
            }
            _ => None,
        };
        if fault == Some(Fault::Failed) {
            return Err(StorageError("injected".to_owned()));
        }
        let rows = self.run(statement, values).map_err(|e| StorageError(e.to_string()))?;
        if fault == Some(Fault::Lost) { Err(StorageError("injected".to_owned())) } else { Ok(rows) }
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes.get()
    }
}

impl Storage {
    pub fn new() -> Self {
        Self {
            connection: Connection::open_in_memory().unwrap(),
            fault: Cell::new(None),
            size_bytes: Cell::new(0),
        }
    }

    fn run(&self, statement: &str, values: &[Value]) -> rusqlite::Result<Vec<Vec<Value>>> {
        let mut prepared = self.connection.prepare_cached(statement)?;
        let columns = prepared.column_count();
        let values = values.iter().map(|value| match value {
            Value::Null => rusqlite::types::Value::Null,
            Value::Integer(number) => (*number).into(),
            Value::Text(text) => text.clone().into(),
        });
        let mut rows = prepared.query(params_from_iter(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let row: rusqlite::Result<Vec<Value>> = (0..columns)
                .map(|at| {
                    Ok(match row.get_ref(at)? {
                        ValueRef::Null => Value::Null,
                        ValueRef::Integer(number) => Value::Integer(number),
                        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into()),
                        other => panic!("no lane stores {other:?}"),
                    })
                })
                .collect();
            all.push(row?);
        }
        Ok(all)
    }
}

/// D1: the migrations applied to SQLite in memory.
pub fn database() -> Connection {
    // Migrations take long, and each test needs its own database. So they run once, and tests copy the result.
    static SCHEMA: LazyLock<String> = LazyLock::new(|| {
        let all = "SELECT group_concat(sql, ';') FROM sqlite_master WHERE sql IS NOT NULL";
        migrated().query_row(all, [], |row| row.get(0)).unwrap()
    });
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(&SCHEMA).unwrap();
    connection
}

fn migrated() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../d1-migrations");
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    connection
}

/// A lane under test, with its storage and its D1.
pub struct Gate {
    pub engine: Rc<PolicyEngine>,
    pub config: Config,
    pub storage: Storage,
    pub database: Connection,
    pub lane: RefCell<Option<Lane>>,
    pub records: CallRecords,
    pub now_ms: Cell<u64>,
    /// The lane's number.
    pub number: u16,
    /// The counter objects of shared limits, which several lanes may have.
    pub counters: Rc<RefCell<HashMap<String, Storage>>>,
    /// Whether they do not answer.
    pub counter_away: Cell<bool>,
    /// How often they were asked.
    pub asks: Cell<u32>,
    /// The windows of the tenant, which several lanes may have.
    pub windows: Rc<RefCell<Storage>>,
    /// Whether they do not answer.
    pub windows_away: Cell<bool>,
    /// How many calls were made.
    pub entries: Cell<u32>,
    /// The first and the last receipt of each range that the lane told as lost.
    pub told_lost: RefCell<Vec<(u64, u64)>>,
}

pub const START_MS: u64 = 1_795_000_000_000;

impl Gate {
    /// The counters of the tenant's metrics in D1: `metric labels names`, with the count.
    pub fn counters(&self) -> BTreeMap<String, i64> {
        let rows = "SELECT metric || ' ' || labels || ' ' || names, count FROM metric_counters \
                    WHERE tenant = 'demo'";
        let mut rows = self.database.prepare(rows).unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    pub fn new() -> Self {
        let config =
            Config::read((ValueKey::new([7; 16]), ValueKey::new([8; 16])), utc_only, |name| {
                Some(
                    match name {
                        "RATE_CAPACITY" => "100000",
                        "FLUSH_BATCH_ROWS" => "7",
                        "D1_MAX_BYTES" => "10000000000",
                        _ => "100000",
                    }
                    .to_owned(),
                )
            })
            .unwrap();
        let database = database();
        database
            .execute_batch(
                "INSERT INTO tenants (tenant, created_at_ms) VALUES ('demo', 0);
                 INSERT INTO agents (tenant, agent, lane, environment, created_at_ms)
                 VALUES ('demo', 'coder', 0, 'production', 0), ('demo', 'support', 0, 'production', 0);",
            )
            .unwrap();
        let windows = Storage::new();
        Lane::start(&windows).unwrap();
        Self {
            engine: shipped(),
            config,
            storage: Storage::new(),
            database,
            lane: RefCell::new(None),
            records: records(),
            now_ms: Cell::new(START_MS),
            number: 0,
            counters: Rc::default(),
            counter_away: Cell::new(false),
            asks: Cell::new(0),
            windows: Rc::new(RefCell::new(windows)),
            windows_away: Cell::new(false),
            entries: Cell::new(0),
            told_lost: RefCell::default(),
        }
    }

    /// Runs on the lane as the Durable Object does: started when absent, dropped on failure.
    pub fn on_lane<T>(
        &self,
        run: impl FnOnce(&mut Lane, &Storage) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut held = self.lane.borrow_mut();
        let mut lane = match held.take() {
            Some(lane) => lane,
            None => Lane::start(&self.storage)?,
        };
        let result = run(&mut lane, &self.storage)?;
        *held = Some(lane);
        Ok(result)
    }

    pub fn tenant_mut(&mut self) -> &mut TenantRecord {
        Rc::make_mut(self.records.tenant.as_mut().unwrap())
    }

    pub fn agent_mut(&mut self) -> &mut AgentRecord {
        Rc::make_mut(self.records.agent.as_mut().unwrap())
    }

    pub fn credential_mut(&mut self) -> &mut CredentialRecord {
        Rc::make_mut(self.records.credential.as_mut().unwrap())
    }

    pub fn server_mut(&mut self) -> &mut ServerRecord {
        Rc::make_mut(self.records.server.as_mut().unwrap())
    }

    pub fn tool_mut(&mut self) -> &mut ToolRegistration {
        Rc::make_mut(self.records.tool.as_mut().unwrap())
    }

    pub fn evict(&self) {
        *self.lane.borrow_mut() = None;
    }

    pub fn try_call(&self, command: &GateCommand) -> Result<Reply, StorageError> {
        let now_ms = self.now_ms.get();
        let (mut answers, mut windows) = (Vec::new(), None::<Vec<_>>);
        let mut requests = Vec::<CountRequest>::new();
        self.entries.set(self.entries.get() + 1);
        let entry = format!("{}.{}", self.number, self.entries.get());
        let counts = !command.call.dry_run && command.purpose != Purpose::Ask;
        let entry = counts.then_some(entry.as_str());
        let reply = loop {
            let called = self.on_lane(|lane, storage| {
                let (engine, config, records) = (&*self.engine, &self.config, &self.records);
                let answers = Answers { leases: &answers, windows: windows.as_deref() };
                lane.call(storage, (engine, config), command, records, answers, now_ms)
            })?;
            match called {
                CallResult::Decided(reply) => break reply,
                CallResult::NotLeased(needs) => {
                    for need in needs {
                        answers.push((need.book(), self.lease(&need)?));
                    }
                }
                CallResult::NotCounted(asked) => {
                    let answer =
                        |request: &CountRequest| (request.row(), self.count_call(entry, request));
                    windows.get_or_insert_with(Vec::new).extend(asked.iter().map(answer));
                    requests.extend(asked);
                }
            }
        };
        requests.retain(|request| !reply.counted_in.contains(&request.row()));
        if let Some(entry) = entry.filter(|_| !self.windows_away.get()) {
            let windows = self.windows.borrow();
            // Nobody waits for this or checks whether it failed.
            requests.iter().for_each(|request| drop(Lane::withdraw(&*windows, entry, request)));
        }
        self.on_lane(|lane, _| {
            for (name, answer) in &answers {
                lane.release(name, *answer);
            }
            Ok(reply)
        })
    }

    /// What `worker/edge/src/lane/object/windows.rs` does, for one window.
    pub fn count_call(&self, entry: Option<&str>, request: &CountRequest) -> Option<Counted> {
        if self.windows_away.get() {
            return None;
        }
        Lane::count_call(&*self.windows.borrow(), entry, request, self.now_ms.get()).ok()
    }

    /// What `worker/edge/src/lane/object/leases.rs` does, for one call.
    pub fn lease(&self, need: &Need) -> Result<Answer, StorageError> {
        let (now_ms, needs) = (self.now_ms.get(), vec![need.amount]);
        if self.counter_away.get() {
            return Ok(Answer::Unavailable);
        }
        let lanes = (self.number, 2);
        let (ask, held) =
            self.on_lane(|lane, storage| lane.ask(storage, need, needs.clone(), lanes, now_ms))?;
        self.asks.set(self.asks.get() + 1);
        let mut counters = self.counters.borrow_mut();
        let counter = counters.entry(need.counter.to_string()).or_insert_with(|| {
            let counter = Storage::new();
            Lane::start(&counter).unwrap();
            counter
        });
        let at = At { now_ms, offset_s: utc_only };
        let granted =
            Lane::start(counter)?.grant(counter, &need.subject, (&need.terms, &ask), at)?;
        self.on_lane(|lane, _| {
            lane.release(&need.book(), held);
            Ok(())
        })?;
        let Some((granted, _)) = granted else { return Ok(Answer::Unavailable) };
        let answers =
            self.on_lane(|lane, storage| lane.take_grant(storage, need, &needs, &granted, now_ms))?;
        Ok(answers[0])
    }

    /// Status and body of a call.
    pub fn call(&self, body: &Json) -> (u16, Json) {
        let reply = self.try_call(&command(body)).unwrap();
        (reply.status, serde_json::from_str(&reply.body).unwrap())
    }

    /// An administrator's command that the agent be restored.
    pub fn restore(&self, agent: &str) -> Result<Result<(), Problem>, StorageError> {
        self.carry_out(agent, LaneAction::Restore, 9)
    }

    /// An administrator's command about an agent.
    pub fn carry_out(
        &self,
        agent: &str,
        action: LaneAction,
        epoch: u64,
    ) -> Result<Result<(), Problem>, StorageError> {
        let command = AgentCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            agent: agent.to_owned(),
            action,
            administrator: "ada".to_owned(),
            epoch,
        };
        let now_ms = self.now_ms.get();
        self.on_lane(|lane, storage| lane.carry_out(storage, &self.config, &command, now_ms))
    }

    /// A call of a canary, which quarantines its agent.
    pub fn quarantine(&mut self) -> Json {
        let before = std::mem::replace(&mut self.records.tool, tool(false, true));
        let (_, body) = self.call(&read_call());
        self.records.tool = before;
        assert_eq!(body["decision"], "quarantine");
        body
    }

    /// One batch, with a fault on D1's side.
    pub fn flush(&self, fault: Option<Fault>) -> Result<bool, String> {
        let now_ms = self.now_ms.get();
        let batch = self
            .on_lane(|lane, storage| lane.flush_batch(storage, &self.config, now_ms))
            .map_err(|e| e.to_string())?;
        let Some(mut batch) = batch else { return Ok(false) };
        if fault == Some(Fault::Failed) {
            return Err("injected".to_owned());
        }
        let mut stored = self.write(&batch);
        if let Some(before) = batch.missing_before(&stored) {
            let has_before = self.write_again(before).map_err(|e| e.to_string())?;
            batch.before = has_before.then_some(before);
            self.on_lane(|lane, _| {
                lane.forget_told();
                Ok::<_, StorageError>(())
            })
            .map_err(|e| e.to_string())?;
            batch.has_new_series = true;
            stored = self.write(&batch);
        }
        if fault == Some(Fault::Lost) {
            return Err("injected".to_owned());
        }
        let confirmed =
            self.on_lane(|lane, storage| lane.confirm_flushed(storage, &batch, &stored));
        match confirmed.map_err(|e| e.to_string())? {
            Confirmed::InD1 => Ok(true),
            Confirmed::HashDiffers { seq } => Err(format!("receipt {seq} differs")),
        }
    }

    /// The batch that the alarm of `worker/edge/src/lane/object/alarm.rs` sends after a flush failed.
    pub fn failure(&self) -> FlushBatch {
        let now_ms = self.now_ms.get();
        let report = self.on_lane(|lane, storage| {
            lane.tally(Series::FlushError, 1);
            lane.report_batch(storage, now_ms)
        });
        report.unwrap()
    }

    pub fn flush_all(&self) {
        while self.flush(None).unwrap() {}
    }

    /// What `write_again` of `worker/edge/src/lane/object/rewrite.rs` does. It fails at the lane's fault, and returns whether
    /// the lane still had the last row.
    pub fn write_again(&self, through: u64) -> Result<bool, StorageError> {
        let key = params![TENANT, self.number, through as i64];
        let last: i64 = self.database.query_row(d1::LAST_RECEIPT, key, |row| row.get(0)).unwrap();
        let from = last as u64 + 1;
        let first = self.on_lane(|lane, storage| lane.first_kept(storage, from))?;
        let from = from.max(self.on_lane(|_, storage| Lane::anchor(storage))?.seq + 1);
        let lost = through.min(first - 1);
        if from <= lost && self.on_lane(|lane, storage| lane.note_lost(storage, from, lost))? {
            self.told_lost.borrow_mut().push((from, lost));
        }
        let mut next = first;
        while let Some(kept) = self.on_lane(|lane, storage| lane.kept_rows(storage, next))? {
            let rows = params![TENANT, self.number, kept.rows, None::<i64>];
            self.database.execute(d1::FLUSH_ROWS, rows).unwrap();
            next = kept.range.1 + 1;
        }
        Ok(first <= through)
    }

    /// What `worker/edge/src/d1/flush.rs` does.
    pub fn write(&self, batch: &FlushBatch) -> Vec<(u64, String)> {
        let before = batch.before.map(|seq| seq as i64);
        let metrics = &batch.metrics;
        if batch.has_new_series {
            let named = params![TENANT, metrics.named_series()];
            self.database.execute(d1::ADD_SERIES, named).unwrap();
        }
        if !batch.report.totals.is_empty() {
            let totals = params![TENANT, self.number, batch.report.totals.encode()];
            self.database.execute(d1::COUNT_TOTALS, totals).unwrap();
        }
        if let Some((first, _)) = batch.range {
            let first = first as i64;
            let BatchMetrics { series, counts, rows, .. } = metrics;
            let counted = params![TENANT, self.number, series, counts, rows, first, before];
            self.database.execute(d1::COUNT_ROWS, counted).unwrap();
            let rows = params![TENANT, self.number, batch.rows, before];
            self.database.execute(d1::FLUSH_ROWS, rows).unwrap();
        }
        self.database
            .execute(d1::FLUSH_COUNTS, params![TENANT, self.number, batch.counts])
            .unwrap();
        let through = batch.through.map(|seq| seq as i64);
        let at_ms = batch.report.at_ms as i64;
        let through = params![TENANT, self.number, through, at_ms, batch.report.encode(), before];
        self.database.execute(d1::FLUSHED_THROUGH, through).unwrap();
        let (first, last) = batch.expected();
        let mut hashes = self.database.prepare(d1::STORED_HASHES).unwrap();
        hashes
            .query_map(params![TENANT, self.number, first as i64, last as i64], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get(1)?))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    /// Every receipt, from D1 and then from the journal, as a reader finds them.
    pub fn receipts(&self) -> Vec<StoredReceipt> {
        let mut statement = self.database.prepare(d1::RECEIPTS).unwrap();
        let mut receipts: Vec<StoredReceipt> = statement
            .query_map(params![TENANT, self.number, 1, 1_000_000], |row| {
                Ok(StoredReceipt {
                    seq: row.get::<_, i64>(0)? as u64,
                    receipt_hash: row.get(1)?,
                    prev_receipt_hash: row.get(2)?,
                    body: row.get(3)?,
                })
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let next = receipts.last().map_or(1, |receipt| receipt.seq + 1);
        let rows = self.on_lane(|lane, storage| lane.rows(storage, next, 1_000_000)).unwrap();
        for row in serde_json::from_str::<Vec<Json>>(&rows).unwrap() {
            let text = |field: &str| row[field].as_str().unwrap().to_owned();
            receipts.push(StoredReceipt {
                seq: row["seq"].as_u64().unwrap(),
                receipt_hash: text("receipt_hash"),
                prev_receipt_hash: text("prev_receipt_hash"),
                body: text("receipt"),
            });
        }
        receipts
    }

    /// The text that a query on D1 returns.
    pub fn text(&self, query: &str) -> String {
        self.database.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// The number that a query on D1 returns.
    pub fn count(&self, query: &str) -> i64 {
        self.database.query_row(query, [], |row| row.get(0)).unwrap()
    }
}

/// The engine with the shipped policies. Its tables take long to build, so all gates of a test have the same one.
fn shipped() -> Rc<PolicyEngine> {
    thread_local! {
        static SHIPPED: Rc<PolicyEngine> = Rc::new(engine(gateward_policies::bundle()));
    }
    SHIPPED.with(Rc::clone)
}

/// An engine that checks each request. The bundle has the schema of the built one.
pub fn engine(bundle: &'static Bundle) -> PolicyEngine {
    #[cfg_attr(not(debug_assertions), expect(unused_mut, reason = "only a debug build can look"))]
    let mut engine = PolicyEngine::new(bundle);
    #[cfg(debug_assertions)]
    {
        engine.inspect = Some(conforms::conforms);
    }
    engine
}

/// The demo's agent, its credential, and one of its tools.
pub fn records() -> CallRecords {
    records_of(json!({
        "tenant": {"status": "active", "epoch": 1},
        "agent": {
            "lane": 0, "status": "active", "environment": "production", "risk_tier": "low",
            "groups": ["engineering"], "allowed_tools": null,
        },
        "credential": {
            "agent": "coder", "secret_sha256": hex::encode(secret_hash(SECRET)),
            "scopes": ["tools:read", "tools:write"],
            "max_source_trust": "trusted_internal_unsigned", "status": "active",
            "expires_at_ms": null, "allowed_servers": null, "allowed_tools": null,
            "allowed_networks": null, "signed": false, "assigns_runs": false,
        },
        "server": {"kind": "mcp", "trust": "trusted", "status": "active"},
        "tool": {"status": "active", "mutates": 0, "risk": "low", "canary": 0,
            "tainted": "require_approval"},
    }))
}

/// Records as a load brings them, without the tenant's lists.
pub fn records_of(loaded: Json) -> CallRecords {
    let Loaded { tenant, agent, credential, server, tool, .. } =
        serde_json::from_value(loaded).unwrap();
    let (bans, warrants, listing) = (Rc::default(), Rc::default(), Rc::default());
    let confirmed = true;
    CallRecords { tenant, agent, credential, server, tool, bans, warrants, listing, confirmed }
}

/// Bans as a load brings them.
pub fn bans(bans: Json) -> Rc<Bans> {
    Rc::new(serde_json::from_value(bans).unwrap())
}

/// A limit of so many calls a day.
pub fn daily(max: u32) -> Vec<Rc<Limit>> {
    let rule = json!({"kind": "quota", "max": max.to_string(), "window": "day"});
    let limit = json!({"limit_id": "daily", "rule": rule});
    vec![serde_json::from_value(limit).map(Rc::new).unwrap()]
}

/// A limit of an agent's requests.
pub fn rate(capacity: u32, refill_per_s: f64) -> Option<Rc<RequestRate>> {
    let rule = json!({"kind": "rate", "capacity": capacity, "refill_per_s": refill_per_s});
    let limit = json!({"limit_id": "all-requests", "rule": rule});
    Some(serde_json::from_value(limit).map(Rc::new).unwrap())
}

pub fn tool(mutates: bool, canary: bool) -> Option<Rc<ToolRegistration>> {
    let risk = gateward_core::policy::bundle::Risk::Low;
    Some(Rc::new(ToolRegistration {
        status: ToolStatus::Active,
        mutates,
        egress: false,
        risk,
        canary,
        tainted: TaintRule::default(),
        approval_ttl_s: None,
        input_schema: None,
        argument_roles: None,
        reach: Reach::default(),
        result_trust: None,
        cost: None,
        warrant_required: false,
        min_clearance: None,
        shield: None,
    }))
}

pub fn server(status: ServerStatus) -> Option<Rc<ServerRecord>> {
    Some(Rc::new(ServerRecord {
        kind: ServerKind::Mcp,
        trust: ServerTrust::Trusted,
        status,
        upstream: None,
        instructions_sha256: None,
        shield: None,
        inspects_results: false,
    }))
}

pub fn tenant(status: &str) -> Option<Rc<TenantRecord>> {
    serde_json::from_value(json!({"status": status, "epoch": 1})).unwrap()
}

/// A read that every policy lets pass: no policy names this tool.
pub fn read_call() -> Json {
    json!({
        "agent": {"id": "coder", "environment": "production"},
        "tool_call": {"tool": "notes", "action": "list", "mutates_state": false, "parameters": {"n": 1}},
        "context": {"source_trust": "trusted_internal_unsigned", "contains_sensitive_data": false},
    })
}

/// `call` with the values of `changes` merged in.
pub fn with(mut call: Json, changes: Json) -> Json {
    merge(&mut call, changes);
    call
}

fn merge(into: &mut Json, changes: Json) {
    match (into, changes) {
        (Json::Object(into), Json::Object(changes)) => {
            for (key, value) in changes {
                merge(into.entry(key).or_insert(Json::Null), value);
            }
        }
        (into, changes) => *into = changes,
    }
}

pub fn command(body: &Json) -> GateCommand {
    let (call, _) = call::parse(body.to_string().as_bytes(), TENANT).unwrap();
    GateCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        key_id: "k1".to_owned(),
        secret_hash: secret_hash(SECRET),
        located: false,
        http_request_id: "test".to_owned(),
        trace_id: None,
        source_address: None,
        signed: false,
        run_credential: false,
        forwarded: false,
        signature_nonce: None,
        purpose: Purpose::Authorize,
        session: None,
        parameters: Vec::new(),
        beside: gateward_core::json::Json::Null,
        warrant: None,
        call,
    }
}
