//! Groups and their members: agents, which policies see, and administrators, who approve.

use gateward_core::field::{Millis, Name};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangeEvent, ChangedKey, MemberKind};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::precondition::check_no_match;
use crate::protection::{self, Protected};
use crate::refusal::{conflict, limit_reached, name_taken};
use crate::resource::Resource;

/// Groups of a tenant, deleted ones included: their names cannot be used again.
pub const MAX_GROUPS: u64 = 10_000;
/// Members of a group.
pub const MAX_MEMBERS: u64 = 100_000;
/// Groups of one agent or administrator: each is an entity of every call.
pub const MAX_MEMBERSHIPS: u64 = 64;

/// A group in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct GroupRow {
    group: String,
    protected: bool,
    created_at_ms: Millis,
    deleted: bool,
}

/// A group.
#[derive(Debug, Serialize, ToSchema)]
pub struct Group {
    group: String,
    /// Whether members must approve new members.
    protected: bool,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
}

impl Resource for GroupRow {
    const SINGULAR: &'static str = "group";
    const PLURAL: &'static str = "groups";
    type View = Group;

    fn cursor(&self) -> String {
        self.group.clone()
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> Group {
        Group {
            group: self.group.clone(),
            protected: self.protected,
            created_at: self.created_at_ms,
        }
    }
}

/// A new group.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateGroup {
    group: Name,
}

fn load(at: &At<'_>, group: &str) -> Statement {
    let (most, actor) = ((MAX_GROUPS + 1).into(), at.actor.name.as_str().into());
    Statement::new(sql::LOAD_GROUP, vec![at.tenant.into(), group.into(), most, actor])
}

#[derive(Deserialize)]
struct GroupContext {
    count: u64,
    /// Administrators among the members, counted up to the quorum.
    administrators: u8,
    /// Whether the actor is the tenant's first administrator.
    first: bool,
}

impl GroupRow {
    /// This group, if it is protected.
    fn protected(&self, administrators: u8) -> Vec<Protected> {
        let group = self.group.clone();
        self.protected.then_some(Protected { group, administrators }).into_iter().collect()
    }
}

impl Write for CreateGroup {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.group)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        if let Some(row) = loaded.record::<GroupRow>()? {
            return Err(name_taken("group", row.deleted));
        }
        if loaded.extra::<GroupContext>()?.count >= MAX_GROUPS {
            return Err(limit_reached("groups", MAX_GROUPS));
        }
        let row = GroupRow {
            group: self.group.to_string(),
            protected: false,
            created_at_ms: Millis(at.now_ms),
            deleted: false,
        };
        let statement = Statement::new(
            sql::CREATE_GROUP,
            vec![at.tenant.into(), row.group.as_str().into(), at.now_ms.into()],
        );
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        let mut change = Change::new(ChangeEvent::GroupCreated, answer, vec![statement]);
        change.detail = json!({ "group": row.group });
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

/// Deletes a group and its memberships.
pub struct DeleteGroup {
    pub group: Name,
}

impl Write for DeleteGroup {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.group)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        check_no_match(at)?;
        let row: GroupRow = loaded.record()?.ok_or_else(|| Problem::not_found("group"))?;
        if row.deleted {
            return AnswerBody::of(&row.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        let key: Vec<Value> = vec![at.tenant.into(), row.group.as_str().into()];
        let mut deleted = key.clone();
        deleted.push(at.now_ms.into());
        let mut touched = deleted.clone();
        touched.push(loaded.next_epoch().into());
        let statements = vec![
            Statement::new(sql::TOUCH_AGENTS_OF_GROUP, touched),
            Statement::new(sql::DELETE_MEMBERS, key),
            Statement::new(sql::DELETE_GROUP, deleted),
        ];
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        let mut change = Change::new(ChangeEvent::GroupDeleted, answer, statements);
        change.detail = json!({ "group": row.group });
        // It may have many members.
        change.keys = vec![ChangedKey::All];
        let administrators = loaded.extra::<GroupContext>()?.administrators;
        protection::guard(at, &row.protected(administrators), &row.group, change)
    }
}

/// Protects a group, or ends its protection.
pub struct ProtectGroup {
    pub group: Name,
    /// Whether the group becomes protected.
    pub protected: bool,
}

impl Write for ProtectGroup {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.group)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        check_no_match(at)?;
        let row: Option<GroupRow> = loaded.record()?;
        let before = row.filter(|row| !row.deleted).ok_or_else(|| Problem::not_found("group"))?;
        let context: GroupContext = loaded.extra()?;
        let row = GroupRow { protected: self.protected, ..before.clone() };
        let answer = AnswerBody::of(&row.view(at.now_ms), None)?;
        if row == before {
            return Ok(Outcome::Unchanged(answer));
        }
        let event = if self.protected {
            ChangeEvent::GroupProtected
        } else {
            ChangeEvent::GroupUnprotected
        };
        let values =
            vec![at.tenant.into(), row.group.as_str().into(), u64::from(row.protected).into()];
        let statement = Statement::new(sql::PROTECT_GROUP, values);
        let mut change = Change::new(event, answer, vec![statement]);
        change.detail = json!({ "group": row.group });
        if !self.protected {
            let protected = before.protected(context.administrators);
            return protection::guard(at, &protected, &row.group, change);
        }
        // Otherwise anybody with `registry:write` could fill a group with its own members and then
        // lock it.
        if !context.first {
            let detail = "only the tenant's first administrator can protect a group";
            return Err(Problem::new(ProblemCode::Forbidden, detail));
        }
        if context.administrators == 0 {
            return Err(conflict("the group has no administrator as a member: add the first one"));
        }
        Ok(Outcome::Changed(change))
    }
}

/// A membership.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Member {
    group: String,
    kind: MemberKind,
    /// The agent's or the administrator's name.
    member: String,
}

impl Resource for Member {
    const SINGULAR: &'static str = "member";
    const PLURAL: &'static str = "members";
    type View = Self;

    fn cursor(&self) -> String {
        format!("{}.{}", self.kind.as_str(), self.member)
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> Self {
        self.clone()
    }
}

/// Adds a member to a group, or removes it.
pub struct SetMember {
    pub group: Name,
    pub kind: MemberKind,
    pub member: Name,
    /// Whether it becomes a member.
    pub present: bool,
}

#[derive(Deserialize)]
struct Membership {
    member: bool,
    exists: bool,
    members: u64,
    administrators: u8,
    groups: u64,
}

impl Write for SetMember {
    fn read(&self, at: &At<'_>) -> Statement {
        let most = MAX_MEMBERS.max(MAX_MEMBERSHIPS) + 1;
        let (group, member) = (&*self.group, &*self.member);
        Statement::new(
            sql::LOAD_MEMBER,
            vec![
                at.tenant.into(),
                group.into(),
                self.kind.as_str().into(),
                member.into(),
                most.into(),
            ],
        )
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        check_no_match(at)?;
        let group: Option<GroupRow> = loaded.record()?;
        let group = group.filter(|row| !row.deleted).ok_or_else(|| Problem::not_found("group"))?;
        let found: Membership = loaded.extra()?;
        if !found.exists && !found.member {
            return Err(Problem::not_found(self.kind.as_str()));
        }
        let mut protected = group.protected(found.administrators);
        let member =
            Member { group: group.group, kind: self.kind, member: self.member.to_string() };
        let answer = AnswerBody::of(&member, None)?;
        if found.member == self.present {
            return Ok(Outcome::Unchanged(answer));
        }
        if self.present && found.members >= MAX_MEMBERS {
            return Err(limit_reached("members in this group", MAX_MEMBERS));
        }
        if self.present && found.groups >= MAX_MEMBERSHIPS {
            return Err(limit_reached("groups of this member", MAX_MEMBERSHIPS));
        }
        let (event, statement) = match self.present {
            true => (ChangeEvent::GroupMemberAdded, sql::ADD_MEMBER),
            false => (ChangeEvent::GroupMemberRemoved, sql::REMOVE_MEMBER),
        };
        let values: Vec<Value> = vec![
            at.tenant.into(),
            member.group.as_str().into(),
            self.kind.as_str().into(),
            member.member.as_str().into(),
        ];
        let mut change = Change::new(event, answer, vec![Statement::new(statement, values)]);
        change.detail = json!(member);
        if self.kind == MemberKind::Agent {
            // An agent's record has its groups.
            let agent = member.member.as_str().into();
            let values =
                vec![at.tenant.into(), agent, at.now_ms.into(), loaded.next_epoch().into()];
            change.statements.push(Statement::new(sql::TOUCH_AGENT, values));
            change.keys = vec![ChangedKey::Agent(member.member)];
        }
        match (self.present, self.kind) {
            (true, _) => {}
            (false, MemberKind::Administrator) => protection::keeps_a_member(&protected)?,
            // An agent approves nothing, and a change that contains an agent must not wait.
            (false, MemberKind::Agent) => protected.clear(),
        }
        protection::guard(at, &protected, &self.member, change)
    }
}
