//! The velocity windows of a tenant: a lane asks them before it decides a call, and their objects answer.

use futures_util::future::join_all;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::lane::protocol::LaneReply;
use gateward_core::lane::{Lane, PRUNE_WINDOWS_MS};
use gateward_core::log::{Event, Line};
use gateward_core::velocity::Counted;
use gateward_core::velocity::shared::CountRequest;
use wasm_bindgen_futures::spawn_local;

use super::state::{Failure, GateLane};
use crate::io;
use crate::lane::shared_counts;
use crate::log;

/// The windows of a tenant that were asked for one call, and their answers.
#[derive(Default)]
pub struct AskedWindows {
    /// The name under which the windows count the call; empty if they must not count it, as for a dry run.
    entry: String,
    asked: Vec<CountRequest>,
    answers: Option<Vec<(String, Option<Counted>)>>,
}

impl AskedWindows {
    pub fn answers(&self) -> Option<&[(String, Option<Counted>)]> {
        self.answers.as_deref()
    }
}

/// A unique name for a call: the lane, the time and a random number.
fn entry_of(lane: u16) -> String {
    let random = (js_sys::Math::random() * f64::from(u32::MAX)) as u32;
    format!("{lane}.{}.{random}", io::now_ms())
}

impl GateLane {
    /// Asks all of these windows at once, each in its object, and adds their answers.
    pub(super) async fn ask_windows(
        &self,
        command: &GateCommand,
        asked: Vec<CountRequest>,
        windows: &mut AskedWindows,
    ) {
        let counts = !command.call.dry_run && command.purpose != Purpose::Ask;
        if counts && windows.entry.is_empty() {
            windows.entry = entry_of(command.lane);
        }
        let (tenant, call) = (command.tenant.as_str(), windows.entry.as_str());
        let answers = asked.iter().map(|request| async move {
            let counted = shared_counts::count_call(&self.env, tenant, call, request).await;
            if let Err(why) = &counted {
                let detail = format!("`{}`: {why}", request.window);
                log::write(&log::line(Event::WindowNotAnswered, command, detail));
            }
            (request.row(), counted.ok())
        });
        let answers = join_all(answers).await;
        windows.answers.get_or_insert_default().extend(answers);
        windows.asked.extend(asked);
    }

    /// Withdraws the call from all windows that were asked, except those in `counted_in`. If the call does not pass,
    /// `counted_in` is empty, so the call is withdrawn from all of them. `counted_in` also lacks windows that must no
    /// longer count the call because the registry changed meanwhile. Nobody waits for this: if a message is lost, the
    /// call counts.
    pub(super) fn withdraw(
        &self,
        command: &GateCommand,
        windows: &AskedWindows,
        counted_in: &[String],
    ) {
        if windows.entry.is_empty() {
            return;
        }
        for request in windows.asked.iter().filter(|request| !counted_in.contains(&request.row())) {
            let (env, request) = (self.env.clone(), request.clone());
            let (tenant, entry) = (command.tenant.clone(), windows.entry.clone());
            let (lane, trace_id) = (command.lane, command.trace_id);
            let request_id = command.http_request_id.clone();
            spawn_local(async move {
                if let Err(why) = shared_counts::withdraw(&env, &tenant, &entry, &request).await {
                    let detail = format!("`{}`: {why}", request.window);
                    let line = Line::new(Event::CallNotWithdrawn, detail).in_lane(&tenant, lane);
                    log::write(&Line { request_id: Some(&request_id), trace_id, ..line });
                }
            });
        }
    }

    /// The object's side: returns the count of other calls in the window. Counts this call too, unless its name is
    /// empty.
    pub(super) async fn answer_count(
        &self,
        entry: &str,
        request: &CountRequest,
    ) -> Result<LaneReply, Failure> {
        let now_ms = io::now_ms();
        let entry = Some(entry).filter(|entry| !entry.is_empty());
        let counted =
            self.with_lane(|_, storage| Lane::count_call(storage, entry, request, now_ms))?;
        if entry.is_some()
            && let Err(error) = self.arm_to_prune(request.width_ms + PRUNE_WINDOWS_MS).await
        {
            // The next request sets it.
            self.log(Event::AlarmNotSet, &error.to_string());
        }
        Ok(LaneReply::Counted(counted))
    }

    pub(super) fn answer_withdraw(
        &self,
        entry: &str,
        request: &CountRequest,
    ) -> Result<LaneReply, Failure> {
        if !self.with_lane(|_, storage| Lane::withdraw(storage, entry, request))? {
            let detail =
                format!("`{}`: the call came too late, or was not counted", request.window);
            self.log(Event::CallNotWithdrawn, &detail);
        }
        Ok(LaneReply::Done)
    }
}
