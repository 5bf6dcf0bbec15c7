//! The file of an export.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek as _, Stderr, Write};
use std::path::Path;
use std::time::Instant;

use gateward_core::lane::LogName;
use gateward_core::receipt::HEAD_LANE;
use serde_json::{Value, from_str, json};

use super::form::HeadBody;
use super::progress::Progress;
use crate::failure::Failure;
use crate::verify::line::Line;
use crate::verify::read::{self, Read};

/// An open file, and how far it is.
pub(super) struct Output<W: Write = Stderr> {
    file: BufWriter<File>,
    /// Lines of the types `entry` and `missing`.
    pub entries: u64,
    /// How many of them the export will have. What a lane adds is known when its log begins.
    of: u64,
    progress: Progress<W>,
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
        let (file, entries) = (BufWriter::new(file), begun.entries);
        let mut output = Self { file, entries, of: entries, progress: Progress::on_stderr() };
        if begun.bytes == 0 {
            output.line(&json!({
                "type": "export", "version": 1, "tenant": tenant, "origin": base,
                "created_at": now(),
            }))?;
        }
        Ok((output, begun))
    }
}

impl<W: Write> Output<W> {
    pub fn line(&mut self, line: &Value) -> Result<(), Failure> {
        writeln!(self.file, "{line}").map_err(failed)
    }

    /// Announces the entries of a log from the index `from` up to, but without, `to`.
    pub fn announce(&mut self, from: u64, to: u64) {
        self.of = (self.of + to).saturating_sub(from);
    }

    /// Writes an entry that was announced, counts it, and shows the progress on a terminal.
    pub fn entry(&mut self, line: &Value) -> Result<(), Failure> {
        self.line(line)?;
        self.entries += 1;
        self.progress.show(Instant::now(), self.entries, self.of);
        Ok(())
    }

    /// Writes the last line. The file is on the disk when this returns.
    pub fn end(mut self) -> Result<(), Failure> {
        let entries = self.entries;
        self.line(&json!({ "type": "end", "entries": entries }))?;
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).map_err(failed)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file that does not exist.
    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("gateward-export-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_terminal_shows_all_receipts_at_the_end() {
        let path = file("progress");
        let mut shown = Vec::new();
        let mut output = Output {
            file: BufWriter::new(File::create(&path).unwrap()),
            entries: 0,
            of: 0,
            progress: Progress::on(&mut shown, true),
        };
        // The head log, and a lane whose first entry was deleted.
        output.announce(0, 3);
        output.announce(1, 3);
        output.entry(&json!({})).unwrap();
        // The lane has grown.
        output.announce(3, 4);
        for _ in 0..5 {
            output.entry(&json!({})).unwrap();
        }
        output.end().unwrap();
        fs::remove_file(path).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let first = "\r[######........................] 1 of 5 receipts\r";
        let last = "\r[##############################] 6 of 6 receipts\n";
        assert!(shown.starts_with(first) && shown.ends_with(last), "{shown}");
    }
}
