//! The velocity windows, which policies read. Their counts are read before the policies are asked. The call is counted
//! once it is decided.
//!
//! A window whose key is only the agent is part of the agent's state. Any other window of an agent has a row in the
//! lane, which the decision's own statement writes. A window of the tenant is in an object of its own, which counts
//! the call when a lane asks for the count.

use super::draft::{Draft, Stop, assigned_run};
use super::facts::Facts;
use super::ruling::{Ruling, Tool};
use super::windows::{Counting, WindowCount, WindowRow, Windows, hour};
use crate::call::command::{GateCommand, Purpose};
use crate::decision::{Decision, ReasonCode};
use crate::limit::Amount;
use crate::policy::PolicyEngine;
use crate::provenance::ValueKey;
use crate::registry::CallRecords;
use crate::velocity::window::{PARTS_IN_ROW, PARTS_IN_STATE};
use crate::velocity::{Caller, Counted, Counts, Reach, Window, key_of};

/// The windows that count what a command asks for.
#[must_use]
pub fn of_call(
    engine: &PolicyEngine,
    value_key: &ValueKey,
    command: &GateCommand,
    records: &CallRecords,
) -> Vec<Counting> {
    let windows = engine.bundle().velocity;
    let calls_tool = match command.purpose {
        Purpose::Read
        | Purpose::ReportOutcome(_)
        | Purpose::StartRun(_)
        | Purpose::ReportResult(_) => {
            return Vec::new();
        }
        // These have no arguments of a tool. Only a denial of them is counted, in windows of the agent's
        // state.
        Purpose::Message { .. }
        | Purpose::Filter(_)
        | Purpose::Route(_)
        | Purpose::Unroutable(_) => false,
        Purpose::Authorize | Purpose::Forward | Purpose::Routed(_) | Purpose::Ask => true,
    };
    if windows.is_empty() {
        return Vec::new();
    }
    let (call, input) = (&command.call, command.counted_input());
    let tool = call.tool_id();
    let user = Some(call.user_id.as_str()).filter(|it| records.is_harness() && !it.is_empty());
    let caller = Caller { agent: &call.agent, user, run: assigned_run(command, records) };
    let counting = |window: &'static Window| Counting {
        window,
        key: match window.is_of_agent() {
            true => 0,
            false => key_of(window, caller, input, value_key),
        },
        amount: window.sum.and_then(|pointer| input.pointer(pointer)).and_then(Amount::of),
    };
    let counts =
        |window: &&'static Window| (calls_tool || window.is_of_agent()) && window.covers(&tool);
    windows.iter().filter(counts).map(counting).collect()
}

/// Reads all windows that count the call. Returns the denial if one cannot be read.
///
/// # Errors
///
/// [`Stop::NotCounted`]: the lane must ask these of the tenant's windows first.
pub fn read_windows(draft: &mut Draft<'_>, tool: &Tool) -> Result<Option<Ruling>, Stop> {
    let Windows { countings, rows, answers } = draft.facts.windows;
    let now_ms = draft.facts.now_ms;
    // A request of a server to its client is not the agent's own call, so it counts nowhere.
    let is_own = draft.command.purpose != Purpose::Ask;
    let (mut counts, mut requests) = (Vec::with_capacity(countings.len()), Vec::new());
    for counting in countings {
        let Counting { window, amount, .. } = *counting;
        // Calling a canary quarantines, whatever was counted.
        if let Some(pointer) = window.sum.filter(|_| amount.is_none() && is_own && !tool.canary) {
            let why = format!(
                "The window `{}` needs a number at `{pointer}` of the arguments, zero or larger.",
                window.name
            );
            return Ok(Some(deny(ReasonCode::VelocityUnreadable, why, tool)));
        }
        let before = match window.reach {
            Reach::Agent => match counting.row() {
                None => draft.agent.window(window.id),
                Some(row) => match rows.and_then(|rows| rows.get(&row)) {
                    None => return Ok(Some(unavailable(window, tool))),
                    held => held,
                },
            }
            .map_or(Counted::default(), |it| it.counted(now_ms, window.width_ms)),
            Reach::Tenant if tool.canary => Counted::default(),
            Reach::Tenant => {
                let request = counting.count_request();
                let row = request.row();
                match answers.and_then(|answers| answers.iter().find(|(name, _)| *name == row)) {
                    // The lane has not asked this window yet. If it has asked others, the registry changed
                    // after that, and the call now has other windows or keys.
                    None => {
                        requests.push(request);
                        continue;
                    }
                    Some((_, Some(counted))) => *counted,
                    Some((_, None)) => return Ok(Some(unavailable(window, tool))),
                }
            }
        };
        let counted = match window.counts {
            Counts::Passed | Counts::Decided if is_own => before.plus(amount),
            // It is not known yet whether the call will be denied.
            _ => before,
        };
        counts.push(WindowCount { window, counted });
    }
    if !requests.is_empty() {
        return Err(Stop::NotCounted(requests));
    }
    draft.window_counts = counts;
    Ok(None)
}

/// The rows of the tenant's windows that count the call if it passes.
pub fn shared_rows(facts: &Facts<'_>) -> Vec<String> {
    let countings = facts.windows.countings.iter();
    let shared = countings.filter(|counting| counting.window.reach == Reach::Tenant);
    shared.map(|counting| counting.count_request().row()).collect()
}

fn unavailable(window: &Window, tool: &Tool) -> Ruling {
    let why = format!("The window `{}` does not answer; try again.", window.name);
    deny(ReasonCode::VelocityUnavailable, why, tool)
}

fn deny(code: ReasonCode, reason: String, tool: &Tool) -> Ruling {
    Ruling { reason, tool: Some(tool.clone()), ..Ruling::deny(code) }
}

/// Counts a decision in the windows of the agent's state.
pub fn count(draft: &mut Draft<'_>, engine: &PolicyEngine, decision: Decision) {
    let now_ms = draft.facts.now_ms;
    // Drop windows that this bundle does not have.
    let is_known = |id: &str| engine.bundle().velocity.iter().any(|window| window.id == id);
    draft.agent.windows.retain(|(id, _)| is_known(id));
    for Counting { window, amount, .. } in draft.facts.windows.countings {
        let counts = match window.counts {
            Counts::Passed => decision.passes(),
            Counts::Denied => decision.denies(),
            Counts::Decided => true,
        };
        if counts && window.is_of_agent() {
            let held = draft.agent.window_mut(window.id);
            held.add(now_ms, window.width_ms, *amount, PARTS_IN_STATE);
        }
    }
}

/// The rows that a call that passes changes.
pub fn rows(draft: &Draft<'_>, decision: Decision) -> Vec<WindowRow> {
    if !decision.passes() || draft.command.purpose == Purpose::Ask {
        return Vec::new();
    }
    let Windows { countings, rows, .. } = draft.facts.windows;
    let row = |counting: &Counting| {
        let name = counting.row()?;
        // The window is in `rows`. Otherwise `read_windows` would have denied the call.
        let mut window = rows?.get(&name)?.clone();
        let width_ms = counting.window.width_ms;
        window.add(draft.facts.now_ms, width_ms, counting.amount, PARTS_IN_ROW);
        let hour = hour(window.ends_at_ms(width_ms));
        Some(WindowRow { name, hour, window })
    };
    countings.iter().filter_map(row).collect()
}
