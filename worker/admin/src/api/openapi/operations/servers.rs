//! Servers and their tools.

use gateward_core::problem::ProblemCode::{
    DefinitionChanged, InvalidField, LimitReached, NameTaken, StateConflict,
};
use gateward_core::route::StateAction;
use utoipa::openapi::Required;

use super::super::entry::{CREATED_OR_DONE, DISCOVERY, DONE, Entry};
use crate::server::registration::{ServerPatch, ServerRequest};
use crate::server::{ChangedServer, Server, ServerRow};
use crate::tool::action::ApproveTool;
use crate::tool::registration::{ToolPatch, ToolRequest};
use crate::tool::{ChangedTool, Tool, ToolDetail, ToolRow};

pub(super) fn list_servers() -> Entry {
    Entry::new("servers", "list_servers", "Lists servers.").page::<ServerRow>()
}

pub(super) fn create_server() -> Entry {
    Entry::new(
        "servers",
        "create_server",
        "Registers a server, or an existing one again, which lifts nothing.",
    )
    .takes::<ServerRequest>()
    .refuses(&DISCOVERY)
    .writes::<ChangedServer>(&CREATED_OR_DONE)
    .tagged()
    .refuses(&[NameTaken, LimitReached])
}

pub(super) fn read_server() -> Entry {
    Entry::new("servers", "read_server", "Returns a server.").answers::<Server>().tagged()
}

pub(super) fn patch_server() -> Entry {
    Entry::new(
        "servers",
        "patch_server",
        "Changes a server; another manifest quarantines it and its tools wait for approval.",
    )
    .takes::<ServerPatch>()
    .refuses(&DISCOVERY)
    .writes::<ChangedServer>(&DONE)
    .tagged()
    .matching()
}

pub(super) fn delete_server() -> Entry {
    Entry::new(
        "servers",
        "delete_server",
        "Deletes a server: none of its tools can be called, and its name is not given again.",
    )
    .writes::<Server>(&DONE)
    .matching()
}

pub(super) fn act_on_server(action: StateAction) -> Entry {
    let (id, summary) = match action {
        StateAction::Approve => {
            ("approve_server", "Approves a server: its approved tools can be called.")
        }
        StateAction::Disable => {
            ("disable_server", "Disables a server: none of its tools can be called.")
        }
        StateAction::Quarantine => {
            ("quarantine_server", "Quarantines a server: none of its tools can be called.")
        }
        StateAction::Restore => {
            ("restore_server", "Undoes disabling and quarantine, and approves nothing.")
        }
    };
    Entry::new("servers", id, summary).writes::<Server>(&DONE).tagged().matching()
}

pub(super) fn list_tools() -> Entry {
    Entry::new("tools", "list_tools", "Lists a server's tools.").page::<ToolRow>()
}

pub(super) fn create_tool() -> Entry {
    Entry::new(
        "tools",
        "create_tool",
        "Registers a tool, or an existing one again, which lifts nothing.",
    )
    .takes::<ToolRequest>()
    .writes::<ChangedTool>(&CREATED_OR_DONE)
    .tagged()
    .refuses(&[LimitReached])
}

pub(super) fn read_tool() -> Entry {
    Entry::new("tools", "read_tool", "Returns a tool with its definitions.")
        .answers::<ToolDetail>()
        .tagged()
}

pub(super) fn patch_tool() -> Entry {
    Entry::new("tools", "patch_tool", "Changes a tool's registration.")
        .takes::<ToolPatch>()
        .writes::<ChangedTool>(&DONE)
        .tagged()
        .matching()
}

pub(super) fn act_on_tool(action: StateAction) -> Entry {
    let (id, summary) = match action {
        StateAction::Approve => {
            ("approve_tool", "Approves a tool as it was reviewed: it can be called.")
        }
        StateAction::Disable => ("disable_tool", "Disables a tool: it cannot be called."),
        StateAction::Quarantine => ("quarantine_tool", "Quarantines a tool: it cannot be called."),
        StateAction::Restore => {
            ("restore_tool", "Undoes disabling and quarantine, and approves nothing.")
        }
    };
    let entry = Entry::new("tools", id, summary);
    let entry = match action {
        StateAction::Approve => entry.takes_with::<ApproveTool>(Required::False).refuses(&[
            InvalidField,
            StateConflict,
            DefinitionChanged,
        ]),
        _ => entry,
    };
    entry.writes::<Tool>(&DONE).tagged().matching()
}
