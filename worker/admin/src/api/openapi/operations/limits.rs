//! Limits and bans.

use gateward_core::field::{Label, Name};
use gateward_core::problem::ProblemCode::{LaneUnavailable, LimitReached, NameTaken, NotFound};

use super::super::component::reference;
use super::super::entry::{CREATED, DONE, Entry};
use crate::api::limits::LimitStates;
use crate::ban::{Ban, BanRequest, BanRow};
use crate::limit::{LimitPatch, LimitRequest, LimitRow, LimitView};

pub(super) fn read_limit_states() -> Entry {
    Entry::new(
        "limits",
        "read_limit_states",
        "Returns what is left of an agent's limits; an agent sees \
         its own. Or what is left of one shared limit.",
    )
    .filtered(
        "agent",
        reference::<Name>(),
        "The agent. An administrator must name one, or a limit.",
    )
    .filtered("credential", reference::<Name>(), "A credential of it. An agent's own if left out.")
    .filtered(
        "limit",
        reference::<Name>(),
        "A limit of the tenant, groups, tools, servers or users. Only administrators.",
    )
    .filtered(
        "subject",
        reference::<Label>(),
        "Only this group, tool (`server/tool`), server or user. Only with a limit.",
    )
    .answers::<LimitStates>()
    .refuses(&[NotFound, LaneUnavailable])
}

pub(super) fn list_limits() -> Entry {
    Entry::new("limits", "list_limits", "Lists limits.").page::<LimitRow>()
}

pub(super) fn create_limit() -> Entry {
    Entry::new(
        "limits",
        "create_limit",
        "Limits the calls of an agent, a credential, the \
         tenant, a group, a tool, a server or a user.",
    )
    .takes::<LimitRequest>()
    .writes::<LimitView>(&CREATED)
    .tagged()
    .refuses(&[LimitReached, NameTaken])
}

pub(super) fn read_limit() -> Entry {
    Entry::new("limits", "read_limit", "Returns a limit.").answers::<LimitView>().tagged()
}

pub(super) fn patch_limit() -> Entry {
    Entry::new("limits", "patch_limit", "Changes a limit's rule.")
        .takes::<LimitPatch>()
        .writes::<LimitView>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn delete_limit() -> Entry {
    Entry::new("limits", "delete_limit", "Deletes a limit, with what was used of it.")
        .writes::<LimitView>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn list_bans() -> Entry {
    Entry::new("bans", "list_bans", "Lists bans.").page::<BanRow>()
}

pub(super) fn create_ban() -> Entry {
    Entry::new("bans", "create_ban", "Bans an agent, a user, a run or a network.")
        .takes::<BanRequest>()
        .writes::<Ban>(&CREATED)
        .refuses(&[LimitReached])
}

pub(super) fn read_ban() -> Entry {
    Entry::new("bans", "read_ban", "Returns a ban.").answers::<Ban>()
}

pub(super) fn delete_ban() -> Entry {
    Entry::new("bans", "delete_ban", "Lifts a ban.").writes::<Ban>(&DONE).unrevised()
}
