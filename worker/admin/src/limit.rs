//! Limits of agents, of credentials, and of subjects that calls of several agents share.

use gateward_core::bounds::MAX_LIMITS;
use gateward_core::field::{Label, Millis, Name, parse_within};
use gateward_core::glob::Glob;
use gateward_core::limit::{
    Covers, Definition, Kind, MAX_LIMITS_OF_SUBJECT, MAX_SHARED_LIMITS, OffsetS,
};
use gateward_core::merge_patch::merge_patch;
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangeEvent, ChangedKey, EACH, SubjectKind};
use gateward_core::sql::administration::{self as sql, Statement};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::precondition::check_match;
use crate::refusal::{limit_reached, refused};
use crate::resource::Resource;

/// `/v1/limits/status` is the state of limits, and `agent` is the default request rate of agents in `RateLimit`.
const RESERVED_IDS: [&str; 2] = ["status", "agent"];

/// A limit in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LimitRow {
    limit_id: String,
    subject_kind: SubjectKind,
    subject: String,
    covers: Covers,
    rule: Definition,
    created_by: String,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// A limit.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Limit)]
pub struct LimitView {
    limit_id: String,
    subject_kind: SubjectKind,
    /// The name of an agent or a group, a credential's key id, a glob of tools (`server/tool`) or servers, or a user's
    /// id. `*`, and a glob: each of them, on its own. Of the tenant: `*`.
    subject: String,
    covers: Covers,
    rule: Definition,
    /// The administrator's name.
    created_by: String,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl Resource for LimitRow {
    const SINGULAR: &'static str = "limit";
    const PLURAL: &'static str = "limits";
    type View = LimitView;

    fn cursor(&self) -> String {
        self.limit_id.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> LimitView {
        LimitView {
            limit_id: self.limit_id.clone(),
            subject_kind: self.subject_kind,
            subject: self.subject.clone(),
            covers: self.covers,
            rule: self.rule.clone(),
            created_by: self.created_by.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

/// A new limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitRequest {
    limit_id: Name,
    subject_kind: SubjectKind,
    /// The name of an agent or a group, a credential's key id, a glob of tools (`server/tool`) or servers, or a user's
    /// id. `*`, and a glob: each of them, on its own. Of the tenant: `*`.
    subject: Label,
    /// `requests`: all requests of the agent, also those that call no tool. Only a limit of an agent, of the kind `rate`
    /// and without `access` and `tools`, can cover requests. Each subject has at most one. It cannot be changed.
    #[serde(default)]
    covers: Covers,
    #[schema(value_type = Definition)]
    rule: Box<RawValue>,
}

/// A change of a limit: its rule as a JSON Merge Patch (RFC 7396). What was used stays used.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitPatch {
    /// Members as in a limit's rule; null clears.
    #[schema(value_type = Object)]
    rule: Box<RawValue>,
}

/// What the statement that loads a limit counts.
#[derive(Deserialize)]
struct LimitCounts {
    /// Limits of the tenant, up to one more than the bound.
    count: u64,
    /// Limits of the same subject.
    of_subject: u64,
    /// Limits of the requests of an agent of this name, or of each agent.
    of_requests: u64,
    /// Limits that lanes share.
    shared: u64,
    /// Whether this agent, credential or group exists.
    exists: bool,
    /// The first credential of those that were rotated into the subject, if it is a credential.
    first_key_id: Option<String>,
}

pub struct CreateLimit {
    pub request: LimitRequest,
    pub offset_s: OffsetS,
}

fn load(at: &At<'_>, limit_id: &str, (kind, subject): (&str, &str)) -> Statement {
    let most = MAX_LIMITS as u64 + 1;
    let values = vec![at.tenant.into(), limit_id.into(), kind.into(), subject.into(), most.into()];
    Statement::new(sql::LOAD_LIMIT, values)
}

/// Reads a rule. Its fields must fit together, and its time zone must exist.
fn rule(text: &str, offset_s: OffsetS, now_ms: u64) -> Result<Definition, Problem> {
    let rule: Definition = parse_within("rule", text)?;
    let refuse = |field: &str, must: &str| Err(refused(&format!("rule.{field}"), must));
    if let Err((field, must)) = rule.rule() {
        return refuse(field, &must);
    }
    match &rule.time_zone {
        Some(zone) if offset_s(zone, now_ms).is_none() => {
            refuse("time_zone", "must be a name of the IANA database, such as `Europe/Berlin`")
        }
        _ => Ok(rule),
    }
}

/// A limit of requests has nothing that depends on the call: when it is checked, the call is not known yet.
fn check_covers(covers: Covers, kind: SubjectKind, rule: &Definition) -> Result<(), Problem> {
    let fields = [
        ("subject_kind", kind == SubjectKind::Agent, "must be `agent`"),
        ("rule.kind", rule.kind == Kind::Rate, "must be `rate`"),
        ("rule.access", rule.access.is_none(), "must be left out"),
        ("rule.tools", rule.tools.is_none(), "must be left out"),
    ];
    match fields.into_iter().find(|(_, fits, _)| !fits) {
        Some((field, _, must)) if covers == Covers::Requests => {
            let detail = format!("`{field}`: {must} if the limit covers requests");
            Err(Problem::field(field, detail))
        }
        _ => Ok(()),
    }
}

impl Write for CreateLimit {
    fn read(&self, at: &At<'_>) -> Statement {
        let request = &self.request;
        load(at, &request.limit_id, (request.subject_kind.as_str(), &request.subject))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let request = &self.request;
        let rule = rule(request.rule.get(), self.offset_s, at.now_ms)?;
        check_covers(request.covers, request.subject_kind, &rule)?;
        let counts: LimitCounts = loaded.extra()?;
        let subject: &str = &request.subject;
        if let Some(must) = refusal(request.subject_kind, subject, counts.exists) {
            return Err(Problem::field("subject", format!("`subject`: {must}")));
        }
        if RESERVED_IDS.contains(&&*request.limit_id) {
            return Err(Problem::field("limit_id", "`limit_id`: Gateward uses this id itself"));
        }
        if loaded.record::<LimitRow>()?.is_some() {
            let detail = format!("there is a limit `{}`", &*request.limit_id);
            return Err(Problem::new(ProblemCode::NameTaken, detail));
        }
        if counts.count >= MAX_LIMITS as u64 {
            return Err(limit_reached("limits", MAX_LIMITS as u64));
        }
        if counts.of_subject >= MAX_LIMITS_OF_SUBJECT as u64 {
            return Err(limit_reached("limits of one subject", MAX_LIMITS_OF_SUBJECT as u64));
        }
        if request.covers == Covers::Requests && counts.of_requests > 0 {
            return Err(limit_reached("limits of one subject that cover requests", 1));
        }
        if request.subject_kind.is_shared() && counts.shared >= MAX_SHARED_LIMITS as u64 {
            let what = "limits of the tenant, groups, tools, servers and users";
            return Err(limit_reached(what, MAX_SHARED_LIMITS as u64));
        }
        let row = LimitRow {
            limit_id: request.limit_id.to_string(),
            subject_kind: request.subject_kind,
            subject: match request.subject_kind {
                SubjectKind::Credential => {
                    counts.first_key_id.unwrap_or_else(|| subject.to_owned())
                }
                _ => subject.to_owned(),
            },
            covers: request.covers,
            rule,
            created_by: at.issuer(),
            revision: loaded.next_epoch(),
            created_at_ms: Millis(at.now_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let mut change = save(at, ChangeEvent::LimitCreated, &row)?;
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

/// Changes a limit's rule.
pub struct PatchLimit {
    pub limit_id: Name,
    pub patch: LimitPatch,
    pub offset_s: OffsetS,
}

impl Write for PatchLimit {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.limit_id, ("", ""))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let unreadable = |_| Problem::field("rule", "`rule`: must be an object");
        let rule = serde_json::to_string(&before.rule).map_err(unreadable)?;
        let rule = merge_patch(&rule, self.patch.rule.get()).map_err(unreadable)?;
        let rule = self::rule(&rule, self.offset_s, at.now_ms)?;
        check_covers(before.covers, before.subject_kind, &rule)?;
        if rule == before.rule {
            let answer = AnswerBody::of(&before.view(at.now_ms), Some(before.revision))?;
            return Ok(Outcome::Unchanged(answer));
        }
        let row = LimitRow {
            rule,
            revision: loaded.next_epoch(),
            updated_at_ms: Millis(at.now_ms),
            ..before.clone()
        };
        let mut change = save(at, ChangeEvent::LimitUpdated, &row)?;
        let changes = difference(&before.view(at.now_ms), &row.view(at.now_ms));
        change.detail = with_changes(change.detail, Some(changes));
        Ok(Outcome::Changed(change))
    }
}

/// Deletes a limit, with what was used of it.
pub struct DeleteLimit {
    pub limit_id: Name,
}

impl Write for DeleteLimit {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.limit_id, ("", ""))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let row = existing(at, loaded)?;
        let values = vec![at.tenant.into(), row.limit_id.as_str().into()];
        let statement = Statement::new(sql::DELETE_LIMIT, values);
        concerning(at, ChangeEvent::LimitDeleted, &row, statement).map(Outcome::Changed)
    }
}

/// What is wrong with a subject. `exists`: an agent, a credential or a group has this name.
fn refusal(kind: SubjectKind, subject: &str, exists: bool) -> Option<String> {
    if subject == EACH {
        return None;
    }
    let must = match kind {
        SubjectKind::Agent | SubjectKind::Credential | SubjectKind::Group if !is_name(subject) => {
            "must be the name of an agent or a group, the key id of a credential, or `*`"
        }
        SubjectKind::Agent if !exists => "this agent does not exist",
        SubjectKind::Credential if !exists => "this agent's credential does not exist",
        SubjectKind::Group if !exists => "this group does not exist",
        SubjectKind::Tenant => "must be `*`",
        SubjectKind::Tool | SubjectKind::Server if subject.parse::<Glob>().is_err() => {
            return Some(format!("must be {}", Glob::EXPECTED));
        }
        _ => return None,
    };
    Some(must.to_owned())
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<LimitRow, Problem> {
    let row: LimitRow = loaded.record()?.ok_or_else(|| Problem::not_found("limit"))?;
    check_match(at, row.revision)?;
    Ok(row)
}

fn save(at: &At<'_>, event: ChangeEvent, row: &LimitRow) -> Result<Change, Problem> {
    let values = vec![
        at.tenant.into(),
        row.limit_id.as_str().into(),
        row.subject_kind.as_str().into(),
        row.subject.as_str().into(),
        json!(row.rule).to_string().into(),
        row.created_by.as_str().into(),
        row.revision.into(),
        row.created_at_ms.0.into(),
        row.updated_at_ms.0.into(),
        row.covers.as_str().into(),
    ];
    concerning(at, event, row, Statement::new(sql::SAVE_LIMIT, values))
}

fn concerning(
    at: &At<'_>,
    event: ChangeEvent,
    row: &LimitRow,
    statement: Statement,
) -> Result<Change, Problem> {
    let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
    let mut change = Change::new(event, answer, vec![statement]);
    change.detail = json!({ "limit_id": row.limit_id, "subject_kind": row.subject_kind, "subject": row.subject });
    change.keys = vec![match row.subject_kind {
        SubjectKind::Agent if row.subject != EACH => ChangedKey::Agent(row.subject.clone()),
        // Credentials that were rotated into each other share their limits.
        SubjectKind::Agent | SubjectKind::Credential => ChangedKey::All,
        _ => ChangedKey::Tenant,
    }];
    Ok(change)
}
