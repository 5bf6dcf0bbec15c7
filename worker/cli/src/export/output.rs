//! The file of an export.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IsTerminal as _, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use gateward_core::lane::LogName;
use gateward_core::receipt::HEAD_LANE;
use serde_json::{Value, from_str, json};

use super::form::HeadBody;
use crate::failure::Failure;
use crate::verify::line::Line;
use crate::verify::read::{self, Read};

/// How often the progress is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Cells of the progress bar.
const CELLS: u64 = 30;

/// An open file, and how far it is.
pub(super) struct Output {
    file: BufWriter<File>,
    /// Lines of the types `entry` and `missing`.
    pub entries: u64,
    /// `None` if standard error is not a terminal.
    shown_at: Option<Instant>,
}

/// How far a file is that an earlier run began.
#[derive(Debug, Default, Clone)]
pub(super) struct Begun {
    /// The index of the next entry of the head log; `None` if there is none yet.
    pub head: Option<u64>,
    pub lanes: Vec<BegunLane>,
    entries: u64,
    /// What is kept of the file.
    bytes: u64,
}

/// How far a lane's log is.
#[derive(Debug, Clone)]
pub(super) struct BegunLane {
    pub lane: u16,
    pub first: u64,
    pub begin: u64,
    /// The last deleted receipt, as the newest entry of the head log says.
    pub pruned_through: u64,
    pub next: u64,
}

impl Output {
    /// Creates the file, or goes on with what an earlier run left of the same logs.
    pub fn open(path: &Path, tenant: &str, base: &str) -> Result<(Self, Begun), Failure> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        let begun = Begun::read(&file, tenant, base)?;
        file.set_len(begun.bytes).map_err(failed)?;
        file.seek(io::SeekFrom::End(0)).map_err(failed)?;
        let shown_at = io::stderr().is_terminal().then(Instant::now);
        let mut output = Self { file: BufWriter::new(file), entries: begun.entries, shown_at };
        if begun.bytes == 0 {
            output.line(&json!({
                "type": "export", "version": 1, "tenant": tenant, "origin": base,
                "created_at": now(),
            }))?;
        }
        Ok((output, begun))
    }

    pub fn line(&mut self, line: &Value) -> Result<(), Failure> {
        writeln!(self.file, "{line}").map_err(failed)
    }

    /// Counts an entry, and shows how far the head log is on a terminal.
    pub fn entry(&mut self, line: &Value, (done, of): (u64, u64)) -> Result<(), Failure> {
        self.line(line)?;
        self.entries += 1;
        let now = Instant::now();
        if let Some(shown_at) = &mut self.shown_at
            && now.duration_since(*shown_at) >= PROGRESS_INTERVAL
        {
            *shown_at = now;
            let full = (done * CELLS).checked_div(of).unwrap_or(0).min(CELLS);
            let bar: String = (0..CELLS).map(|cell| if cell < full { '#' } else { '.' }).collect();
            eprint!("\r[{bar}] {} receipts", self.entries);
        }
        Ok(())
    }

    /// Writes the last line. The file is on the disk when this returns.
    pub fn end(mut self) -> Result<(), Failure> {
        let entries = self.entries;
        self.line(&json!({ "type": "end", "entries": entries }))?;
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(failed)?;
        if self.shown_at.is_some() {
            eprintln!();
        }
        Ok(())
    }
}

impl Begun {
    /// Reads a file up to the last entry of the head log in it. What comes after that entry is written again: other
    /// entries of the head log can belong there now.
    fn read(file: &File, tenant: &str, base: &str) -> Result<Self, Failure> {
        let length = file.metadata().map_err(failed)?.len();
        let mut input = BufReader::new(file);
        let (mut kept, mut now) = (Self::default(), Self::default());
        let mut bytes = Vec::new();
        while read::line(&mut input, &mut bytes).map_err(failed)? == Read::Line {
            let end = now.bytes + bytes.len() as u64 + 1;
            if end > length {
                break;
            }
            match Line::parse(&bytes)
                .map_err(|problem| taken(&format!("has a line that cannot be read ({problem})")))?
            {
                Line::Export { tenant: named, origin } if now.bytes == 0 => {
                    if named != tenant || origin != base {
                        return Err(taken(&format!("is an export of `{named}` by `{origin}`")));
                    }
                }
                _ if now.bytes == 0 => return Err(taken("is not an export")),
                Line::Log(log) => match lane_of(&log.log) {
                    Some(HEAD_LANE) | None => {}
                    Some(lane) => {
                        let (first, begin) = (log.first, log.begin);
                        now.lanes.push(BegunLane {
                            lane,
                            first,
                            begin,
                            pruned_through: 0,
                            next: begin,
                        });
                    }
                },
                Line::Entry { log, index, body } if lane_of(&log) == Some(HEAD_LANE) => {
                    now.head = Some(index);
                    kept = now.clone();
                    now.entries += 1;
                    if let Ok(HeadBody { of_lane, pruned_through: Some(pruned), .. }) =
                        from_str(&body)
                        && let Some(lane) = now.lanes.iter_mut().find(|it| Some(it.lane) == of_lane)
                    {
                        lane.pruned_through = pruned;
                    }
                }
                Line::Entry { log, index, .. } | Line::Missing { log, index, .. } => {
                    let lane = lane_of(&log);
                    if let Some(it) = now.lanes.iter_mut().find(|it| Some(it.lane) == lane) {
                        it.next = index + 1;
                    }
                    now.entries += 1;
                }
                Line::End { .. } => return Err(taken("is a whole export")),
                Line::Export { .. } | Line::Event { .. } | Line::Checkpoint { .. } => {}
            }
            now.bytes = end;
        }
        // Nothing that is not ours is written over.
        if now.bytes == 0 && length > 0 {
            return Err(taken("is not an export"));
        }
        Ok(kept)
    }
}

fn lane_of(log: &str) -> Option<u16> {
    LogName::parse(log).map(|log| log.lane)
}

fn taken(what: &str) -> Failure {
    Failure::Other(format!("the file of the export {what}: name a file that does not exist"))
}

fn failed(error: io::Error) -> Failure {
    Failure::Other(format!("the file of the export: {error}"))
}

/// The time of this machine.
fn now() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    gateward_core::id::rfc3339(since.map_or(0, |since| since.as_millis() as u64))
}
