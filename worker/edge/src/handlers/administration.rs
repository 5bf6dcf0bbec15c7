//! The administration's routes: what the core asks for is read, what it decides is committed, and
//! every lane of the tenant is told before the answer leaves.

use gateward_core::admin::agent::AgentRow;
use gateward_core::admin::manifest::Listing;
use gateward_core::admin::protection::{Held, Proposal, propose};
use gateward_core::admin::{
    self as core, Actor, AgentInLane, Answer as Body, At, MAX_IDEMPOTENCY_KEY_BYTES, Outcome, Write,
};
use gateward_core::api::request::{self as asking, Asked, RANDOM_BYTES};
use gateward_core::api::route::Route;
use gateward_core::approval::{Approval, ChangeCommand, ChangeStep};
use gateward_core::etag::etag;
use gateward_core::id::approval_position;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::EpochPush;
use gateward_core::registry::upstream::Upstream;
use serde_json::{Map, Value as Json};
use worker::{Date, Env};

use crate::authentication::Caller;
use crate::d1::administration::{Committed, commit, kept_answer, load, records};
use crate::discovery::discover;
use crate::http::{Head, Request, json, random};
use crate::lanes;
use crate::router::{Answer, Answered, App, whole};

/// How often a change is decided anew because another one came first. Each attempt lets one other
/// administrator's change pass.
const MAX_ATTEMPTS: usize = 8;

/// The approval of a change that members of a protected group must approve.
const APPROVAL_ID: &str = "x-gateward-approval-id";

/// The lane that keeps approvals of registry changes: every tenant has it.
const APPROVALS_LANE: u16 = 0;

pub async fn answer(
    request: &Request,
    app: &App,
    caller: &Caller,
    route: &Route,
    parameters: &[String],
    body: &[u8],
) -> Answered {
    let query: Vec<(String, String)> =
        request.query().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let asked = asking::Request {
        operation: route.operation,
        tenant: &caller.tenant,
        parameters,
        query: &query,
        body,
        keys: &app.settings.mac_keys,
        random: random::<RANDOM_BYTES>()?,
        local_targets: app.settings.local_targets,
    };
    if asked.takes_body() {
        request.require_json()?;
    } else if !body.is_empty() {
        let detail = "this request takes no body";
        return Err(Problem::new(ProblemCode::MalformedRequest, detail));
    }
    let now_ms = Date::now().as_millis();
    match asked.asked()? {
        Asked::Write { tenant, write } => {
            Change { request, app, caller, tenant: &tenant, write: &*write, body }.make().await
        }
        Asked::One { statement, view } => {
            let rows = records(&app.env, &statement).await?;
            let row = rows.first().map(|row| row.record.as_str());
            respond(app, 200, view(row, now_ms)?, &[], false)
        }
        Asked::Agent(statement) => {
            let rows = records(&app.env, &statement).await?;
            let row = rows.into_iter().next().ok_or_else(|| Problem::not_found("agent"))?;
            let mut agent: AgentRow = core::read_record(&row.record)?;
            let tenant = row.extra.unwrap_or_default();
            let held =
                lanes::containment(&app.env, &caller.tenant, agent.lane, &agent.agent, &tenant);
            let held = held.await?;
            (agent.lane_quarantined, agent.risk_steps) = (held.quarantined, held.risk_steps);
            agent.taint = held.taint;
            respond(app, 200, core::view(&agent, now_ms)?, &[], false)
        }
        Asked::Page { within, statement, limit, view } => {
            if let Some((what, within)) = within
                && records(&app.env, &within).await?.is_empty()
            {
                return Err(Problem::not_found(what));
            }
            let rows = records(&app.env, &statement).await?;
            let rows: Vec<String> = rows.into_iter().map(|row| row.record).collect();
            json(&view(&rows, limit, now_ms)?).map(Answer::Json)
        }
        Asked::Other => Err(Problem::new(ProblemCode::NotFound, "there is no such path")),
    }
}

/// A change under way.
struct Change<'a> {
    request: &'a Request,
    app: &'a App,
    caller: &'a Caller,
    /// The tenant whose registry changes.
    tenant: &'a str,
    write: &'a dyn Write,
    body: &'a [u8],
}

impl Change<'_> {
    async fn make(&self) -> Answered {
        let (app, actor) = (self.app, self.caller.actor());
        let if_match = self.request.header("if-match");
        let key = idempotency_key(self.request)?;
        let path = self.request.path();
        let fingerprint = core::fingerprint(&actor.key_id, &self.request.method, path, self.body);
        let mut discovered: Option<(Upstream, Listing)> = None;
        let approval = self.approval().await?;
        let mut approved = false;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(key) = &key
                && let Some(answered) = self.again(&actor.tenant, key, &fingerprint).await?
            {
                return Ok(answered);
            }
            let now_ms = Date::now().as_millis();
            let at = At {
                actor: &actor,
                tenant: self.tenant,
                now_ms,
                if_match: if_match.as_deref(),
                discovered: discovered.as_ref().map(|(_, listing)| listing),
                approval: approval.as_ref(),
            };
            let loaded = load(&app.env, &self.write.read(&at)).await?;
            if let Some(upstream) = self.write.discovers(&at, &loaded)?
                && discovered.as_ref().is_none_or(|(of, _)| *of != upstream)
            {
                let found = discover(app, self.request, self.tenant, &upstream).await?;
                discovered = Some((upstream, Listing::of_server(&found)));
                // What is known of the tools is read with the rest.
                continue;
            }
            let lanes = loaded.lanes.unwrap_or(0);
            let kept = key.as_deref().map(|key| (key, fingerprint.as_str()));
            match self.write.apply(&at, &loaded)? {
                Outcome::Unchanged(answer) => {
                    let epoch = loaded.epoch.unwrap_or(0);
                    if let Some(key) = kept {
                        let body = Json::Object(answer.body.clone());
                        let statements = core::keep(&at, epoch, 200, &body, key);
                        if let Committed::Overtaken = commit(&app.env, &statements).await? {
                            continue;
                        }
                    }
                    // The change itself may have left lanes behind, and they do not know what it was.
                    let push = EpochPush::whole(epoch);
                    let pending = lanes::push(&app.env, self.tenant, lanes, &push).await;
                    return respond(app, 200, answer, &pending, false);
                }
                Outcome::Held(held) => return Err(self.ask(held, loaded.epoch).await),
                Outcome::Changed(change) => {
                    let epoch = loaded.next_epoch();
                    if let Some(approval) = approval.as_ref().filter(|_| change.approved)
                        && !approved
                    {
                        // Before the commit: an approval that is lost is asked for again, one
                        // that is used twice is not an approval.
                        self.use_up(approval, epoch).await?;
                        approved = true;
                    }
                    let statements = core::commit(&at, epoch, &change, kept);
                    if let Committed::Overtaken = commit(&app.env, &statements).await? {
                        continue;
                    }
                    let status = change.status();
                    let push = EpochPush { from: epoch - 1, epoch, keys: change.keys };
                    let pending = lanes::push(&app.env, self.tenant, lanes, &push).await;
                    self.tell_lane(&change.answer.body, epoch).await?;
                    return respond(app, status, change.answer, &pending, false);
                }
            }
        }
        Err(overtaken())
    }

    /// The approval that the request presents.
    async fn approval(&self) -> Result<Option<Approval>, Problem> {
        let Some(id) = self.request.header(APPROVAL_ID) else { return Ok(None) };
        let lane = approval_position(&id).map(|(lane, _)| lane);
        let lane = lane.filter(|lane| *lane == APPROVALS_LANE);
        let unknown = || {
            let detail = "`X-Gateward-Approval-Id` is not an approval of a registry change";
            Problem::new(ProblemCode::StateConflict, detail)
        };
        let held =
            lanes::approval(&self.app.env, self.tenant, lane.ok_or_else(unknown)?, &id).await?;
        held.map(|held| Some(held.approval)).ok_or_else(unknown)
    }

    fn proposal(&self) -> Result<Proposal, Problem> {
        let (request, actor) = (self.request, self.caller.actor());
        propose(self.tenant, &actor, &request.method, request.path(), self.body)
    }

    /// Has the change wait for approval; the caller is told which one.
    async fn ask(&self, held: Held, epoch: Option<u64>) -> Problem {
        let asked = async {
            let Proposal { input, hash } = self.proposal()?;
            let Held { event, resource, groups } = held;
            let step = ChangeStep::Ask { event: event.to_owned(), resource, input, groups };
            self.settle(hash, epoch.unwrap_or(0), step).await
        };
        match asked.await {
            Ok(approval_id) => Problem::approval_required(&approval_id),
            Err(problem) => problem,
        }
    }

    async fn use_up(&self, approval: &Approval, epoch: u64) -> Result<(), Problem> {
        let step = ChangeStep::Use {
            approval_id: approval.approval_id.clone(),
            request_id: self.app.request_id.clone(),
        };
        self.settle(self.proposal()?.hash, epoch, step).await.map(drop)
    }

    async fn settle(
        &self,
        action_hash: String,
        epoch: u64,
        step: ChangeStep,
    ) -> Result<String, Problem> {
        let command = ChangeCommand {
            tenant: self.tenant.to_owned(),
            lane: APPROVALS_LANE,
            administrator: self.caller.administrator.clone(),
            key_id: self.caller.key_id.clone(),
            epoch,
            action_hash,
            step,
        };
        lanes::settle_change(&self.app.env, &command).await
    }

    /// The answer that the key has already.
    async fn again(
        &self,
        tenant: &str,
        key: &str,
        fingerprint: &str,
    ) -> Result<Option<Answer>, Problem> {
        let Some(kept) = kept_answer(&self.app.env, tenant, key).await? else { return Ok(None) };
        if kept.fingerprint != fingerprint {
            let detail = "the `Idempotency-Key` was used for another request";
            return Err(Problem::new(ProblemCode::IdempotencyKeyReused, detail));
        }
        let lanes = kept.lanes.unwrap_or(0);
        let push = EpochPush::whole(kept.epoch);
        let pending = lanes::push(&self.app.env, &kept.changed_tenant, lanes, &push).await;
        let body: Map<String, Json> = core::read_record(&kept.body)?;
        self.tell_lane(&body, kept.epoch).await?;
        respond(self.app, kept.status, Body { body, revision: None }, &pending, true).map(Some)
    }

    /// Has the agent's lane do its part of the change, if it has one. The lane compares epochs, so
    /// that a repeated request lifts nothing that came later.
    async fn tell_lane(&self, answer: &Map<String, Json>, epoch: u64) -> Result<(), Problem> {
        let Some(action) = self.write.lane_action() else { return Ok(()) };
        let agent: AgentInLane = core::read_record(&Json::Object(answer.clone()).to_string())?;
        let administrator = self.caller.actor().name;
        let done =
            lanes::carry_out(&self.app.env, self.tenant, &agent, action, &administrator, epoch);
        done.await.map_err(|problem| {
            let detail =
                "the change is committed, but the agent's lane has not done its part; try again";
            Problem::new(problem.code, detail)
        })
    }
}

/// Makes a change that Gateward itself decided on.
pub async fn make_itself(env: &Env, tenant: &str, write: &dyn Write) -> Result<(), Problem> {
    let actor = Actor::gateward();
    for _ in 0..MAX_ATTEMPTS {
        let now_ms = Date::now().as_millis();
        let at =
            At { actor: &actor, tenant, now_ms, if_match: None, discovered: None, approval: None };
        let loaded = load(env, &write.read(&at)).await?;
        let Outcome::Changed(change) = write.apply(&at, &loaded)? else { return Ok(()) };
        let epoch = loaded.next_epoch();
        if let Committed::Whole = commit(env, &core::commit(&at, epoch, &change, None)).await? {
            let push = EpochPush { from: epoch - 1, epoch, keys: change.keys };
            // A lane that does not take it learns of it when it confirms its epoch.
            lanes::push(env, tenant, loaded.lanes.unwrap_or(0), &push).await;
            return Ok(());
        }
    }
    Err(overtaken())
}

fn overtaken() -> Problem {
    let detail = "other changes keep coming first; try again";
    Problem::new(ProblemCode::RegistryUnavailable, detail)
}

/// The `Idempotency-Key` of a POST, as draft-ietf-httpapi-idempotency-key-header-07 has it.
fn idempotency_key(request: &Request) -> Result<Option<String>, Problem> {
    if request.method != "POST" {
        return Ok(None);
    }
    let Some(key) = request.header("idempotency-key") else { return Ok(None) };
    let plain = (1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic());
    if plain {
        return Ok(Some(key));
    }
    let detail = format!(
        "`Idempotency-Key` must be 1 to {MAX_IDEMPOTENCY_KEY_BYTES} visible ASCII characters"
    );
    Err(Problem::new(ProblemCode::MalformedRequest, detail))
}

fn respond(
    app: &App,
    status: u16,
    Body { mut body, revision }: Body,
    pending_lanes: &[u16],
    replayed: bool,
) -> Answered {
    let status = if pending_lanes.is_empty() { status } else { 202 };
    if !pending_lanes.is_empty() {
        body.insert("pending_lanes".to_owned(), pending_lanes.into());
    }
    let mut head = Head::new(status, &app.request_id);
    if let Some(revision) = revision {
        head = head.field("etag", etag(revision));
    }
    if replayed {
        head = head.field("idempotency-replayed", "true");
    }
    whole(head.with(&Json::Object(body).to_string()))
}
