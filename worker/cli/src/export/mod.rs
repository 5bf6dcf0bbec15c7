//! Writes an export: the receipts of a tenant with everything that proves them, in the form that docs/receipts.md has.
//!
//! The head log is read entry by entry. Before an entry that has a lane's checkpoint, all receipts that the checkpoint
//! covers are written. So a reader verifies each checkpoint when it comes to it, and keeps nothing.

mod form;
mod log;
mod output;
mod progress;
mod source;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gateward_core::bounds::HEAD_LANE;
use gateward_core::lane::{LogName, TreeHead};
use gateward_core::receipt::ReceiptKind;
use serde_json::json;

use self::form::{HeadBody, broken, head_body};
use self::log::{Entry, Log};
use self::output::{BegunHead, Output};
use self::source::Events;
use crate::failure::Failure;
use crate::runner::Runner;

/// How often the head log is read again until it says what was deleted, and the pause before each time.
const HEAD_LOOKS: usize = 20;
const HEAD_PAUSE: Duration = Duration::from_secs(1);

/// Write the tenant's receipts, with everything that proves them, to a file (scope audit:read)
///
/// The export has the receipts of all lanes that the tenant's head log names, the head log itself with the changes of
/// the registry, the hashes of receipts that are gone, and the signed checkpoints. Verify it anywhere with `gateward
/// verify`, and with another program after docs/receipts.md. What was decided in the last seconds may not be in it yet.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Examples:
  gateward export --output acme.ndjson
  gateward verify acme.ndjson --key \"$(cat acme.vkey)\"")]
pub struct Export {
    /// The file to write. If it has an export that was stopped, this export goes on from there, or from its first lost
    /// receipt, which may have been written again since
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// The head log while it is written.
struct HeadLog {
    log: Log,
    events: Events,
}

/// The log of a lane while it is written.
struct LaneLog {
    log: Log,
    /// The last deleted receipt, as the newest entry of the head log says.
    pruned_through: u64,
}

impl LaneLog {
    /// Whether the head log says that what comes before the export was deleted because of its age.
    const fn is_deletion_recorded(&self) -> bool {
        self.log.begin == 0 || self.pruned_through >= self.log.first + self.log.begin - 1
    }
}

impl Runner {
    pub fn export(&self, export: &Export) -> Result<u8, Failure> {
        let tenant = self.client.tenant()?.to_owned();
        let name = LogName { tenant: tenant.clone(), lane: HEAD_LANE };
        let (note, size) = self.checkpoint(&name)?;
        let origin = note.lines().next().unwrap_or_default();
        let base =
            origin.strip_suffix(&format!("/{name}")).ok_or_else(|| broken("a checkpoint"))?;
        let checkpoint_in = |index| self.checkpoint_in(index, size);
        let (mut output, begun) = Output::open(&export.output, &tenant, base, checkpoint_in)?;
        let log = match begun.head {
            Some(BegunHead { begin, next }) => {
                self.continue_log(&mut output, name, (1, begin, next))?
            }
            None => self.begin_log(&mut output, name, 1)?,
        };
        let mut head = HeadLog { log, events: Events::default() };
        let mut lanes = Vec::new();
        for lane in begun.lanes {
            let name = LogName { tenant: tenant.clone(), lane: lane.lane };
            let begun = (lane.first, lane.begin, lane.next);
            let log = self.continue_log(&mut output, name, begun)?;
            lanes.push(LaneLog { log, pruned_through: lane.pruned_through });
        }
        self.write_head(&mut output, &mut head, &mut lanes)?;
        // A lane that has just deleted receipts told the head log of it, which publishes that within seconds.
        for _ in 0..HEAD_LOOKS {
            if lanes.iter().all(LaneLog::is_deletion_recorded) {
                break;
            }
            std::thread::sleep(HEAD_PAUSE);
            self.look_again(&mut output, &mut head.log)?;
            self.write_head(&mut output, &mut head, &mut lanes)?;
        }
        if let Some(LaneLog { log, .. }) = lanes.iter().find(|lane| !lane.is_deletion_recorded()) {
            return Err(Failure::Other(format!(
                "the head log does not say that receipts of `{}` were deleted because of their age: try again later",
                log.name
            )));
        }
        for LaneLog { log, .. } in &mut lanes {
            self.write_through(&mut output, log, log.size)?;
        }
        for log in lanes.iter().map(|lane| &lane.log).chain([&head.log]) {
            let name = log.name.to_string();
            output.line(&json!({ "type": "checkpoint", "log": name, "note": log.note }))?;
        }
        let entries = output.entries;
        output.end()?;
        eprintln!(
            "gateward: exported {entries} receipts of {} lanes and the head log",
            lanes.len()
        );
        Ok(0)
    }

    /// Reads the newest checkpoint of a log again.
    fn look_again(&self, output: &mut Output, log: &mut Log) -> Result<(), Failure> {
        let before = log.size;
        (log.note, log.size) = self.checkpoint(&log.name)?;
        output.announce(before, log.size);
        Ok(())
    }

    /// Writes the entries of the head log up to its size, and before each checkpoint of a lane what that covers.
    fn write_head(
        &self,
        output: &mut Output,
        HeadLog { log, events }: &mut HeadLog,
        lanes: &mut Vec<LaneLog>,
    ) -> Result<(), Failure> {
        while log.next < log.size {
            let entry = self.read_entry(log)?;
            let members = match &entry {
                Entry::Body(body) => Some(head_body(body)?),
                Entry::Lost(_) => None,
            };
            let of_kind =
                |kind: ReceiptKind| members.as_ref().filter(|it| it.kind == kind.as_str());
            if let Some(members) = of_kind(ReceiptKind::LaneCheckpoint) {
                self.write_lane(output, lanes, &log.name.tenant, members)?;
            }
            output.entry(&log.line(&entry))?;
            if let Some(members) = of_kind(ReceiptKind::RegistryEvent) {
                let event = events.find(self, members.event_id.as_deref().unwrap_or_default())?;
                let (name, index) = (log.name.to_string(), log.next);
                let line = json!({ "type": "event", "log": name, "index": index, "event": event });
                output.line(&line)?;
            }
            log.next += 1;
        }
        Ok(())
    }

    /// The lane and the size of the checkpoint in an entry of the head log; `None` if there is no such entry, or it has
    /// no checkpoint.
    fn checkpoint_in(&self, index: u64, size: u64) -> Result<Option<(u16, u64)>, Failure> {
        if index >= size {
            return Ok(None);
        }
        let receipts = self.receipts(HEAD_LANE, index + 1, 1)?;
        let Some(receipt) = receipts.into_iter().find(|receipt| receipt.seq == index + 1) else {
            return Ok(None);
        };
        let members = head_body(&receipt.body)?;
        let (Some(lane), Some(note)) = (members.of_lane, members.checkpoint) else {
            return Ok(None);
        };
        let tree = TreeHead::of_note(&note).ok_or_else(|| broken("a checkpoint"))?;
        Ok(Some((lane, tree.size)))
    }

    /// Writes what a lane's checkpoint covers. Begins the lane's log if it is the first one.
    fn write_lane(
        &self,
        output: &mut Output,
        lanes: &mut Vec<LaneLog>,
        tenant: &str,
        members: &HeadBody,
    ) -> Result<(), Failure> {
        let (Some(number), Some(first), Some(pruned_through), Some(note)) =
            (members.of_lane, members.first, members.pruned_through, &members.checkpoint)
        else {
            return Err(broken("a head log's entry"));
        };
        let size = TreeHead::of_note(note).ok_or_else(|| broken("a checkpoint"))?.size;
        let known = lanes.iter().position(|lane| lane.log.name.lane == number);
        let at = match known {
            Some(at) => at,
            None => {
                let name = LogName { tenant: tenant.to_owned(), lane: number };
                let log = self.begin_log(output, name, first)?;
                lanes.push(LaneLog { log, pruned_through });
                lanes.len() - 1
            }
        };
        let Some(lane) = lanes.get_mut(at) else { return Ok(()) };
        lane.pruned_through = pruned_through;
        if size > lane.log.size {
            // The head log has grown since the lane's checkpoint was read.
            self.look_again(output, &mut lane.log)?;
        }
        self.write_through(output, &mut lane.log, size)
    }

    /// Writes a lane's entries below `size`.
    fn write_through(&self, output: &mut Output, log: &mut Log, size: u64) -> Result<(), Failure> {
        while log.next < size.min(log.size) {
            let entry = self.read_entry(log)?;
            output.entry(&log.line(&entry))?;
            log.next += 1;
        }
        Ok(())
    }
}
