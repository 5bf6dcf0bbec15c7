//! A change of the registry: read, decide, commit, push to the lanes.

use gateward_admin::manifest::ToolManifest;
use gateward_admin::protection::{Proposal, propose};
use gateward_admin::{
    Actor, AgentInLane, AnswerBody, At, Change, Loaded, MAX_IDEMPOTENCY_KEY_BYTES, Outcome,
    RequiredApproval, Write,
};
use gateward_core::approval::{Approval, ChangeCommand, ChangeStep};
use gateward_core::id::approval_position;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::EpochPush;
use gateward_core::registry::upstream::Upstream;
use serde_json::{Map, Value as Json};

use super::response::respond;
use crate::answer::{Answer, Answered};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1::administration::{Committed, commit, kept_answer, load};
use crate::http::Request;
use crate::io;
use crate::lane;
use crate::upstream::discovery::discover;

/// Attempts at a change. An attempt fails when another change was committed between its read and its
/// commit.
const MAX_ATTEMPTS: usize = 8;

/// The header that names the approval of a change which members of a protected group must approve.
const APPROVAL_ID: &str = "x-gateward-approval-id";

/// The lane that keeps approvals of registry changes: every tenant has it.
const APPROVALS_LANE: u16 = 0;

/// An administrator's change in progress.
pub struct ChangeRequest<'a> {
    pub request: &'a Request,
    pub app: &'a App,
    pub caller: &'a Caller,
    /// The tenant whose registry changes.
    pub tenant: &'a str,
    pub write: &'a dyn Write,
    pub body: &'a [u8],
}

impl ChangeRequest<'_> {
    pub async fn make(&self) -> Answered {
        let (app, actor) = (self.app, self.caller.actor());
        let if_match = self.request.header("if-match");
        let key = idempotency_key(self.request)?;
        let path = self.request.path_with_query();
        let fingerprint =
            gateward_admin::fingerprint(&actor.key_id, &self.request.method, path, self.body);
        let kept = key.as_deref().map(|key| (key, fingerprint.as_str()));
        let mut discovered: Option<(Upstream, ToolManifest)> = None;
        let approval = self.approval().await?;
        let mut used = false;
        for _ in 0..MAX_ATTEMPTS {
            if let Some((key, fingerprint)) = kept
                && let Some(answered) = self.replay(&actor.tenant, key, fingerprint).await?
            {
                return Ok(answered);
            }
            let now_ms = io::now_ms();
            let at = At {
                actor: &actor,
                tenant: self.tenant,
                now_ms,
                if_match,
                discovered: discovered.as_ref().map(|(_, listing)| listing),
                approval: approval.as_ref(),
            };
            let loaded = load(app, &self.write.read(&at)).await?;
            if let Some(upstream) = self.write.discovers(&at, &loaded)?
                && discovered.as_ref().is_none_or(|(of, _)| *of != upstream)
            {
                let found = discover(app, self.request, self.tenant, &upstream).await?;
                discovered = Some((upstream, ToolManifest::of_server(&found)));
                // The next attempt reads what the registry holds about the discovered tools.
                continue;
            }
            let answered = match self.write.apply(&at, &loaded)? {
                Outcome::Unchanged(answer) => self.unchanged(&at, &loaded, answer, kept).await?,
                Outcome::NeedsApproval(required) => {
                    return Err(self.ask(required, loaded.epoch).await);
                }
                Outcome::Changed(change) => {
                    if let Some(approval) = approval.as_ref().filter(|_| change.approved && !used) {
                        // Before the commit: a lost approval can be asked for again, but an approval
                        // must not be used twice.
                        self.use_up(approval, loaded.next_epoch()).await?;
                        used = true;
                    }
                    self.changed(&at, &loaded, change, kept).await?
                }
            };
            if let Some(answered) = answered {
                return Ok(answered);
            }
        }
        Err(overtaken())
    }

    /// For a request that changes nothing. Stores the answer under the idempotency key, and pushes the epoch again,
    /// because an earlier push may not have reached every lane. `None`: another change was committed first.
    async fn unchanged(
        &self,
        at: &At<'_>,
        loaded: &Loaded,
        answer: AnswerBody,
        kept: Option<(&str, &str)>,
    ) -> Result<Option<Answer>, Problem> {
        let epoch = loaded.epoch.unwrap_or(0);
        if let Some(key) = kept {
            let body = Json::Object(answer.body.clone());
            let statements = gateward_admin::keep(at, epoch, 200, &body, key);
            if let Committed::Overtaken = commit(self.app, &statements).await? {
                return Ok(None);
            }
        }
        let (lanes, push) = (loaded.lanes.unwrap_or(0), EpochPush::whole(epoch));
        let pending = lane::client::push(self.app, self.tenant, lanes, &push).await;
        respond(self.app, self.tenant, 200, answer, &pending, false).map(Some)
    }

    /// Commits the change and pushes it to every lane. `None` when another change came first.
    async fn changed(
        &self,
        at: &At<'_>,
        loaded: &Loaded,
        change: Change,
        kept: Option<(&str, &str)>,
    ) -> Result<Option<Answer>, Problem> {
        let epoch = loaded.next_epoch();
        let statements = gateward_admin::commit(at, epoch, &change, kept);
        if let Committed::Overtaken = commit(self.app, &statements).await? {
            return Ok(None);
        }
        let status = change.status();
        let push = EpochPush { from: epoch - 1, epoch, keys: change.keys };
        let lanes = loaded.lanes.unwrap_or(0);
        let pending = lane::client::push(self.app, self.tenant, lanes, &push).await;
        self.carry_out_in_lane(&change.answer.body, epoch).await?;
        respond(self.app, self.tenant, status, change.answer, &pending, false).map(Some)
    }

    /// The approval that the request names in its header.
    async fn approval(&self) -> Result<Option<Approval>, Problem> {
        let Some(id) = self.request.header(APPROVAL_ID) else { return Ok(None) };
        let lane = approval_position(id).map(|(lane, _)| lane);
        let lane = lane.filter(|lane| *lane == APPROVALS_LANE);
        let unknown = || {
            let detail = "`X-Gateward-Approval-Id` is not an approval of a registry change";
            Problem::new(ProblemCode::StateConflict, detail)
        };
        let held =
            lane::client::approval(self.app, self.tenant, lane.ok_or_else(unknown)?, id).await?;
        held.map(|held| Some(held.approval)).ok_or_else(unknown)
    }

    fn proposal(&self) -> Result<Proposal, Problem> {
        let (request, actor) = (self.request, self.caller.actor());
        propose(self.tenant, &actor, &request.method, request.path_with_query(), self.body)
    }

    /// Opens an approval for the change. The returned problem names it.
    async fn ask(&self, required: RequiredApproval, epoch: Option<u64>) -> Problem {
        let asked = async {
            let Proposal { input, hash } = self.proposal()?;
            let RequiredApproval { event, resource, groups } = required;
            let step =
                ChangeStep::Ask { event: event.as_str().to_owned(), resource, input, groups };
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
        lane::client::settle_change(self.app, command).await
    }

    /// The answer that the idempotency key already has.
    async fn replay(
        &self,
        tenant: &str,
        key: &str,
        fingerprint: &str,
    ) -> Result<Option<Answer>, Problem> {
        let Some(kept) = kept_answer(self.app, tenant, key).await? else { return Ok(None) };
        if kept.fingerprint != fingerprint {
            let detail = "the `Idempotency-Key` was used for another request";
            return Err(Problem::new(ProblemCode::IdempotencyKeyReused, detail));
        }
        let lanes = kept.lanes.unwrap_or(0);
        let push = EpochPush::whole(kept.epoch);
        let pending = lane::client::push(self.app, &kept.changed_tenant, lanes, &push).await;
        let body: Map<String, Json> = gateward_admin::read_record(&kept.body)?;
        self.carry_out_in_lane(&body, kept.epoch).await?;
        let body = AnswerBody { body, revision: None };
        respond(self.app, self.tenant, kept.status, body, &pending, true).map(Some)
    }

    /// Asks the agent's lane to do its part of the change, if the change has one. The lane compares epochs, so a
    /// repeated request does not undo later events.
    async fn carry_out_in_lane(
        &self,
        answer: &Map<String, Json>,
        epoch: u64,
    ) -> Result<(), Problem> {
        let Some(action) = self.write.lane_action() else { return Ok(()) };
        let agent: AgentInLane =
            gateward_admin::read_record(&Json::Object(answer.clone()).to_string())?;
        let administrator = self.caller.actor().name;
        let done =
            lane::client::carry_out(self.app, self.tenant, &agent, action, &administrator, epoch);
        done.await.map_err(|problem| {
            let detail =
                "the change is committed, but the agent's lane has not carried it out; try again";
            Problem::new(problem.code, detail)
        })
    }
}

/// Makes a change that no administrator asked for.
pub async fn change_as_gateward(app: &App, tenant: &str, write: &dyn Write) -> Result<(), Problem> {
    let actor = Actor::gateward();
    for _ in 0..MAX_ATTEMPTS {
        let now_ms = io::now_ms();
        let at =
            At { actor: &actor, tenant, now_ms, if_match: None, discovered: None, approval: None };
        let loaded = load(app, &write.read(&at)).await?;
        let Outcome::Changed(change) = write.apply(&at, &loaded)? else { return Ok(()) };
        let epoch = loaded.next_epoch();
        if let Committed::Whole =
            commit(app, &gateward_admin::commit(&at, epoch, &change, None)).await?
        {
            let push = EpochPush { from: epoch - 1, epoch, keys: change.keys };
            // A lane that does not confirm the push sees the change when it next confirms its epoch.
            lane::client::push(app, tenant, loaded.lanes.unwrap_or(0), &push).await;
            return Ok(());
        }
    }
    Err(overtaken())
}

fn overtaken() -> Problem {
    let detail = "other changes were committed first; try again";
    Problem::new(ProblemCode::RegistryUnavailable, detail)
}

/// The `Idempotency-Key` of a POST (draft-ietf-httpapi-idempotency-key-header-07).
fn idempotency_key(request: &Request) -> Result<Option<String>, Problem> {
    if request.method != "POST" {
        return Ok(None);
    }
    let Some(key) = request.header("idempotency-key") else { return Ok(None) };
    let plain = (1..=MAX_IDEMPOTENCY_KEY_BYTES).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_graphic());
    if plain {
        return Ok(Some(key.to_owned()));
    }
    let detail = format!(
        "`Idempotency-Key` must be 1 to {MAX_IDEMPOTENCY_KEY_BYTES} visible ASCII characters"
    );
    Err(Problem::new(ProblemCode::MalformedRequest, detail))
}
