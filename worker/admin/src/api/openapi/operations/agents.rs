//! Agents, groups, administrators and credentials.

use gateward_core::field::Name;
use gateward_core::problem::ProblemCode;
use gateward_core::problem::ProblemCode::{
    InvalidField, LaneUnavailable, LimitReached, NameTaken, StateConflict,
};
use gateward_core::route::AgentAction;
use utoipa::openapi::Required;

use super::super::component::reference;
use super::super::entry::{CREATED, DONE, Entry};
use crate::administrator::{Administrator, AdministratorRow, CreateAdministrator};
use crate::agent::{Agent, AgentPatch, AgentRow, CreateAgent};
use crate::credential::end::RotateRequest;
use crate::credential::issue::CreateCredential;
use crate::credential::{Credential, CredentialRow, IssuedCredential};
use crate::group::{CreateGroup, Group, GroupRow, Member};

pub(super) fn list_agents() -> Entry {
    Entry::new("agents", "list_agents", "Lists agents.").page::<AgentRow>()
}

pub(super) fn create_agent() -> Entry {
    Entry::new("agents", "create_agent", "Creates an agent.")
        .takes::<CreateAgent>()
        .writes::<Agent>(&CREATED)
        .tagged()
        .refuses(&[LimitReached, NameTaken, StateConflict])
}

pub(super) fn read_agent() -> Entry {
    Entry::new("agents", "read_agent", "Returns an agent.")
        .answers::<Agent>()
        .tagged()
        .refuses(&[LaneUnavailable])
}

pub(super) fn patch_agent() -> Entry {
    Entry::new("agents", "patch_agent", "Changes an agent.")
        .takes::<AgentPatch>()
        .writes::<Agent>(&DONE)
        .tagged()
        .matching()
        .refuses(&[StateConflict])
}

pub(super) fn delete_agent() -> Entry {
    Entry::new(
        "agents",
        "delete_agent",
        "Deletes an agent and ends its credentials; its name is not given again.",
    )
    .writes::<Agent>(&DONE)
    .matching()
}

pub(super) fn act_on_agent(action: AgentAction) -> Entry {
    let revoked = &[StateConflict];
    let (id, summary, refused): (_, _, &[ProblemCode]) = match action {
        AgentAction::Freeze => ("freeze_agent", "Freezes an agent: its calls are denied.", revoked),
        AgentAction::Unfreeze => ("unfreeze_agent", "Undoes a freeze, and nothing else.", revoked),
        AgentAction::Quarantine => {
            ("quarantine_agent", "Quarantines an agent: its calls are denied.", revoked)
        }
        AgentAction::Restore => (
            "restore_agent",
            "Undoes a quarantine, its lane's own included.",
            &[StateConflict, LaneUnavailable],
        ),
        AgentAction::Untaint => (
            "untaint_agent",
            "Lifts the taint of an agent and of all its runs.",
            &[StateConflict, LaneUnavailable],
        ),
        AgentAction::Revoke => ("revoke_agent", "Revokes an agent, for good.", &[]),
    };
    let entry = Entry::new("agents", id, summary).writes::<Agent>(&DONE);
    let entry = entry.tagged().matching();
    entry.refuses(refused)
}

pub(super) fn list_groups() -> Entry {
    Entry::new("groups", "list_groups", "Lists groups.").page::<GroupRow>()
}

pub(super) fn create_group() -> Entry {
    Entry::new("groups", "create_group", "Creates a group.")
        .takes::<CreateGroup>()
        .writes::<Group>(&CREATED)
        .refuses(&[NameTaken, LimitReached])
}

pub(super) fn read_group() -> Entry {
    Entry::new("groups", "read_group", "Returns a group.").answers::<Group>()
}

pub(super) fn delete_group() -> Entry {
    Entry::new(
        "groups",
        "delete_group",
        "Deletes a group and all its memberships. Its name cannot be used again.",
    )
    .writes::<Group>(&DONE)
    .unrevised()
    .guarded()
}

pub(super) fn protect_group() -> Entry {
    Entry::new(
        "groups",
        "protect_group",
        "Protects a group: its members must approve who else becomes a member.",
    )
    .writes::<Group>(&DONE)
    .unrevised()
    .refuses(&[StateConflict])
}

pub(super) fn unprotect_group() -> Entry {
    Entry::new("groups", "unprotect_group", "Unprotects a group.")
        .writes::<Group>(&DONE)
        .unrevised()
        .guarded()
}

pub(super) fn list_members() -> Entry {
    Entry::new("groups", "list_members", "Lists who is in a group.").page::<Member>()
}

pub(super) fn add_member() -> Entry {
    Entry::new("groups", "add_member", "Adds an agent or administrator to a group.")
        .writes::<Member>(&DONE)
        .refuses(&[LimitReached])
        .unrevised()
        .guarded()
}

pub(super) fn remove_member() -> Entry {
    Entry::new("groups", "remove_member", "Removes an agent or administrator from a group.")
        .writes::<Member>(&DONE)
        .unrevised()
        .guarded()
}

pub(super) fn list_administrators() -> Entry {
    Entry::new("administrators", "list_administrators", "Lists administrators.")
        .page::<AdministratorRow>()
}

pub(super) fn create_administrator() -> Entry {
    Entry::new(
        "administrators",
        "create_administrator",
        "Creates an administrator, who is one person, without credentials.",
    )
    .takes::<CreateAdministrator>()
    .writes::<Administrator>(&CREATED)
    .refuses(&[NameTaken, LimitReached])
}

pub(super) fn read_administrator() -> Entry {
    Entry::new("administrators", "read_administrator", "Returns an administrator.")
        .answers::<Administrator>()
}

pub(super) fn delete_administrator() -> Entry {
    Entry::new(
        "administrators",
        "delete_administrator",
        "Deletes an administrator: its credentials are revoked and it leaves all groups.",
    )
    .last()
    .writes::<Administrator>(&DONE)
    .unrevised()
    .guarded()
}

pub(super) fn list_credentials() -> Entry {
    Entry::new("credentials", "list_credentials", "Lists credentials without secrets.")
        .filtered("agent", reference::<Name>(), "Only this agent's.")
        .page::<CredentialRow>()
}

pub(super) fn create_credential() -> Entry {
    Entry::new(
        "credentials",
        "create_credential",
        "Creates a credential; its secrets are shown this once.",
    )
    .takes::<CreateCredential>()
    .writes::<IssuedCredential>(&CREATED)
    .tagged()
    .refuses(&[StateConflict, LimitReached])
    .guarded()
}

pub(super) fn read_credential() -> Entry {
    Entry::new("credentials", "read_credential", "Returns a credential without secrets.")
        .answers::<Credential>()
        .tagged()
}

pub(super) fn rotate_credential() -> Entry {
    Entry::new(
        "credentials",
        "rotate_credential",
        "Creates a credential like an old one, which ends after an overlap.",
    )
    .takes_with::<RotateRequest>(Required::False)
    .writes::<IssuedCredential>(&CREATED)
    .tagged()
    .matching()
    .refuses(&[InvalidField, StateConflict, LimitReached])
}

pub(super) fn revoke_credential() -> Entry {
    Entry::new("credentials", "revoke_credential", "Revokes a credential, at once and for ever.")
        .last()
        .writes::<Credential>(&DONE)
        .tagged()
        .matching()
}
