//! Writes an export: the receipts of a tenant with everything that proves them, in the form that docs/receipts.md has.
//!
//! The head log is read entry by entry. Before an entry that has a lane's checkpoint, all receipts that the checkpoint
//! covers are written. So a reader verifies each checkpoint when it comes to it, and keeps nothing.

mod form;
mod lane;
mod output;
mod progress;
mod source;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use gateward_core::lane::{LogName, TreeHead};
use gateward_core::receipt::{HEAD_LANE, LANE_CHECKPOINT_KIND, REGISTRY_EVENT_KIND};
use gateward_core::tlog::TILE_WIDTH;
use serde_json::{from_str, json};

use self::form::{HeadBody, broken, deleted, log_line, smaller};
use self::lane::LaneLog;
use self::output::Output;
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
    /// The file to write. If it has an export that was stopped, this export goes on from there
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

/// The head log while it is written.
struct HeadLog {
    name: LogName,
    size: u64,
    note: String,
    /// The index of the next entry.
    next: u64,
    is_begun: bool,
    events: Events,
}

impl Runner {
    pub fn export(&self, export: &Export) -> Result<u8, Failure> {
        let tenant = self.client.tenant()?.to_owned();
        let name = LogName { tenant: tenant.clone(), lane: HEAD_LANE };
        let (note, size) = self.checkpoint(&name)?;
        let origin = note.lines().next().unwrap_or_default();
        let base =
            origin.strip_suffix(&format!("/{name}")).ok_or_else(|| broken("a checkpoint"))?;
        let checkpoint_in = |index| self.checkpoint_in(&name, index, size);
        let (mut output, begun) = Output::open(&export.output, &tenant, base, checkpoint_in)?;
        let next = match begun.head {
            Some(next) if next > size => return Err(smaller(&name)),
            Some(next) => next,
            None => self.first_bundle(&name, size)?,
        };
        output.announce(next, size);
        let is_begun = begun.head.is_some();
        let mut head = HeadLog { name, size, note, next, is_begun, events: Events::default() };
        let lanes = begun.lanes.iter();
        let lanes = lanes.map(|lane| self.continue_lane(&mut output, &tenant, lane));
        let mut lanes: Vec<LaneLog> = lanes.collect::<Result<_, _>>()?;
        self.write_head(&mut output, &mut head, &mut lanes)?;
        // A lane that has just deleted receipts told the head log of it, which publishes that within seconds.
        for _ in 0..HEAD_LOOKS {
            if lanes.iter().all(LaneLog::is_deletion_recorded) {
                break;
            }
            std::thread::sleep(HEAD_PAUSE);
            let before = head.size;
            (head.note, head.size) = self.checkpoint(&head.name)?;
            output.announce(before, head.size);
            self.write_head(&mut output, &mut head, &mut lanes)?;
        }
        if let Some(lane) = lanes.iter().find(|lane| !lane.is_deletion_recorded()) {
            return Err(Failure::Other(format!(
                "the head log does not say that receipts of `{}` were deleted because of their age: try again later",
                lane.name
            )));
        }
        for lane in &mut lanes {
            self.write_through(&mut output, lane, lane.size)?;
        }
        for lane in &lanes {
            let log = lane.name.to_string();
            output.line(&json!({ "type": "checkpoint", "log": log, "note": lane.note }))?;
        }
        let log = head.name.to_string();
        output.line(&json!({ "type": "checkpoint", "log": log, "note": head.note }))?;
        let entries = output.entries;
        output.end()?;
        eprintln!(
            "gateward: exported {entries} receipts of {} lanes and the head log",
            lanes.len()
        );
        Ok(0)
    }

    /// Writes the entries of the head log up to its size, and before each checkpoint of a lane what that covers.
    fn write_head(
        &self,
        output: &mut Output,
        head: &mut HeadLog,
        lanes: &mut Vec<LaneLog>,
    ) -> Result<(), Failure> {
        let (begin, log) = (head.next, head.name.to_string());
        for number in begin / TILE_WIDTH..head.size.div_ceil(TILE_WIDTH) {
            let bundle = self.head_bundle(&head.name, number, head.size)?;
            let entries = (number * TILE_WIDTH..).zip(bundle);
            for (index, body) in entries.filter(|(index, _)| *index >= begin) {
                let members: HeadBody =
                    from_str(&body).map_err(|_| broken("a head log's entry"))?;
                if !head.is_begun {
                    let edge = self.edge(&head.name, begin, head.size)?;
                    let first = index + 1 - begin;
                    output.line(&log_line(&head.name, first, begin, &edge, &members.prev_hash))?;
                    head.is_begun = true;
                }
                if members.kind == LANE_CHECKPOINT_KIND {
                    self.write_lane(output, lanes, &head.name.tenant, &members)?;
                }
                let entry = json!({ "type": "entry", "log": log, "index": index, "body": body });
                output.entry(&entry)?;
                if members.kind == REGISTRY_EVENT_KIND {
                    let id = members.event_id.as_deref().unwrap_or_default();
                    let event = head.events.find(self, id)?;
                    output.line(
                        &json!({ "type": "event", "log": log, "index": index, "event": event }),
                    )?;
                }
                head.next = index + 1;
            }
        }
        Ok(())
    }

    fn head_bundle(&self, head: &LogName, number: u64, size: u64) -> Result<Vec<String>, Failure> {
        let bundle = self.bundle(head, number, size);
        bundle.map_err(|failure| match failure.is("not_found") {
            true => deleted(&head.to_string()),
            false => failure,
        })
    }

    /// The lane and the size of the checkpoint in an entry of the head log; `None` if there is no such entry, or it has
    /// no checkpoint.
    fn checkpoint_in(
        &self,
        head: &LogName,
        index: u64,
        size: u64,
    ) -> Result<Option<(u16, u64)>, Failure> {
        if index >= size {
            return Ok(None);
        }
        let entries = self.head_bundle(head, index / TILE_WIDTH, size)?;
        let body = (index / TILE_WIDTH * TILE_WIDTH..).zip(entries).find(|(at, _)| *at == index);
        let (_, body) = body.ok_or_else(|| broken("a bundle of entries"))?;
        let members: HeadBody = from_str(&body).map_err(|_| broken("a head log's entry"))?;
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
        let known = lanes.iter().position(|lane| lane.name.lane == number);
        let at = match known {
            Some(at) => at,
            None => {
                let name = LogName { tenant: tenant.to_owned(), lane: number };
                lanes.push(self.begin_lane(output, name, first)?);
                lanes.len() - 1
            }
        };
        let Some(lane) = lanes.get_mut(at) else { return Ok(()) };
        lane.pruned_through = pruned_through;
        if size > lane.size {
            // The head log has grown since the lane's checkpoint was read.
            let before = lane.size;
            (lane.note, lane.size) = self.checkpoint(&lane.name)?;
            output.announce(before, lane.size);
        }
        self.write_through(output, lane, size)
    }
}
