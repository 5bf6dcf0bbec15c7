//! The file of an export.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek as _, Stderr, Write};
use std::path::Path;
use std::time::Instant;

use gateward_core::bounds::HEAD_LANE;
use gateward_core::lane::LogName;
use gateward_core::receipt::ReceiptKind;
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
    /// `None` if the head log has not begun.
    pub head: Option<BegunHead>,
    pub lanes: Vec<BegunLane>,
    entries: u64,
    /// What is kept of the file.
    bytes: u64,
}

/// How far the head log is: the indexes of its first entry and of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BegunHead {
    pub begin: u64,
    pub next: u64,
}

/// How far a lane's log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BegunLane {
    pub lane: u16,
    pub first: u64,
    pub begin: u64,
    /// The last deleted receipt, as the newest entry of the head log says.
    pub pruned_through: u64,
    pub next: u64,
}

impl Output {
    /// Creates the file, or goes on with what an earlier run left of the same logs. `checkpoint_in` reads an entry of the
    /// head log: the lane and the size of its checkpoint, if there is such an entry and it has one.
    ///
    /// INVARIANT (order of the lines): a checkpoint of a lane comes before every entry that it does not cover. An entry of
    /// the head log never changes, so what the next one covers can stay before it. An earlier run can also have written
    /// what no entry of the head log covered at that time. It is cut: by now there may be one that must come before it.
    pub fn open(
        path: &Path,
        tenant: &str,
        base: &str,
        checkpoint_in: impl FnOnce(u64) -> Result<Option<(u16, u64)>, Failure>,
    ) -> Result<(Self, Begun), Failure> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        let (kept, whole) = Begun::read(&file, tenant, base)?;
        let head = kept.head.filter(|_| whole.bytes > kept.bytes);
        let begun = match head.map(|head| checkpoint_in(head.next)).transpose()?.flatten() {
            Some((lane, size)) if whole.adds_only(&kept, lane, size) => whole,
            _ => kept,
        };
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
    /// Reads a file, up to its first lost row. Returns how far it is after the last whole entry of the head log, and after
    /// the last whole line that belongs before the checkpoints.
    fn read(file: &File, tenant: &str, base: &str) -> Result<(Self, Self), Failure> {
        let length = file.metadata().map_err(failed)?.len();
        let mut input = BufReader::new(file);
        let (mut kept, mut now) = (Self::default(), Self::default());
        let (mut bytes, mut end, mut awaits_event, mut is_cut) = (Vec::new(), 0, false, false);
        while read::line(&mut input, &mut bytes).map_err(failed)? == Read::Line {
            let begin = end;
            if begin + bytes.len() as u64 + 1 > length {
                break;
            }
            end += bytes.len() as u64 + 1;
            let line = Line::parse(&bytes).map_err(|problem| unreadable(&problem))?;
            if is_cut && !matches!(line, Line::End { .. }) {
                continue;
            }
            // Whether the head log has a whole entry, or none yet.
            let is_whole = match line {
                Line::Export { tenant: named, origin } if begin == 0 => {
                    if named != tenant || origin != base {
                        return Err(taken(&format!("is an export of `{named}` by `{origin}`")));
                    }
                    true
                }
                _ if begin == 0 => return Err(taken("is not an export")),
                Line::Log(log) => match lane_of(&log.log) {
                    Some(HEAD_LANE) => {
                        now.head = Some(BegunHead { begin: log.begin, next: log.begin });
                        true
                    }
                    Some(lane) => {
                        let (first, next) = (log.first, log.begin);
                        let (begin, pruned_through) = (next, 0);
                        now.lanes.push(BegunLane { lane, first, begin, pruned_through, next });
                        false
                    }
                    None => false,
                },
                Line::Entry { log, index, body } if lane_of(&log) == Some(HEAD_LANE) => {
                    let entry: HeadBody =
                        from_str(&body).map_err(|error| unreadable(&error.to_string()))?;
                    awaits_event = entry.kind == ReceiptKind::RegistryEvent.as_str();
                    now.add_head_entry(index, &entry);
                    !awaits_event
                }
                Line::Event { .. } => {
                    awaits_event = false;
                    true
                }
                // A lost row can have been written again since, so what follows is read again.
                Line::Missing { .. } => {
                    is_cut = true;
                    continue;
                }
                Line::Entry { log, index, .. } => {
                    let lane = lane_of(&log);
                    if let Some(it) = now.lanes.iter_mut().find(|it| Some(it.lane) == lane) {
                        it.next = index + 1;
                    }
                    now.entries += 1;
                    false
                }
                Line::End { .. } => return Err(taken("is a whole export")),
                // Checkpoints are written again: the logs may have grown.
                Line::Checkpoint { .. } => continue,
                Line::Export { .. } => false,
            };
            now.bytes = end;
            if is_whole {
                kept = now.clone();
            }
        }
        // Nothing that is not ours is written over.
        if end == 0 && length > 0 {
            return Err(taken("is not an export"));
        }
        Ok(if awaits_event { (kept.clone(), kept) } else { (kept, now) })
    }

    fn add_head_entry(&mut self, index: u64, entry: &HeadBody) {
        if let Some(head) = &mut self.head {
            head.next = index + 1;
        }
        self.entries += 1;
        if let Some(pruned) = entry.pruned_through
            && let Some(lane) = self.lanes.iter_mut().find(|it| Some(it.lane) == entry.of_lane)
        {
            lane.pruned_through = pruned;
        }
    }

    /// Whether everything after `kept` is of this lane, and below `size`.
    fn adds_only(&self, kept: &Self, lane: u16, size: u64) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.all(|it| if it.lane == lane { it.next <= size } else { kept.lanes.contains(it) })
    }
}

fn lane_of(log: &str) -> Option<u16> {
    LogName::parse(log).map(|log| log.lane)
}

fn unreadable(problem: &str) -> Failure {
    taken(&format!("has a line that cannot be read ({problem})"))
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

    use gateward_core::receipt::GENESIS;

    use super::super::form::log_line;
    use super::*;

    const BASE: &str = "gateward.test/v1/log";

    /// A file that does not exist.
    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("gateward-export-{name}-{}", std::process::id()))
    }

    fn entry(log: &str, index: u64, body: &str) -> Value {
        json!({ "type": "entry", "log": log, "index": index, "body": body })
    }

    /// An entry of the head log. Its checkpoint is not read from the file.
    fn head(index: u64, kind: &str, of_lane: u16, pruned_through: u64) -> Value {
        let body = json!({
            "kind": kind, "prev_hash": GENESIS, "of_lane": of_lane, "pruned_through": pruned_through,
        });
        entry("acme.head", index, &body.to_string())
    }

    /// The lines of an export of two lanes, up to their checkpoints.
    fn lines() -> Vec<String> {
        let log = |lane, begin| {
            let name = LogName { tenant: "acme".to_owned(), lane };
            log_line(&name, 1, begin, &[], GENESIS)
        };
        let (one, two) = ("acme.lane-0", "acme.lane-1");
        let export = json!({
            "type": "export", "version": 1, "tenant": "acme", "origin": BASE, "created_at": now(),
        });
        let lines = [
            export,
            log(HEAD_LANE, 0),
            log(0, 0),
            entry(one, 0, "{}"),
            entry(one, 1, "{}"),
            head(0, "lane_checkpoint", 0, 0),
            head(1, "registry_event", 0, 0),
            json!({ "type": "event", "log": "acme.head", "index": 1, "event": null }),
            log(1, 2),
            entry(two, 2, "{}"),
            head(2, "lane_checkpoint", 1, 2),
            entry(one, 2, "{}"),
            entry(two, 3, "{}"),
            json!({ "type": "checkpoint", "log": one, "note": "" }),
        ];
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn an_export_goes_on_where_the_next_checkpoint_of_the_head_log_allows_it() {
        /// The number of lines; the next checkpoint of the head log; how many lines stay, and what they have: the next
        /// entries of the head log and of the lanes.
        type Case = (usize, Option<(u16, u64)>, usize, Option<u64>, &'static [(u16, u64)]);
        let cases: &[(&str, Case)] = &[
            ("no line", (0, None, 1, None, &[])),
            ("the first line", (1, None, 1, None, &[])),
            ("the head log has begun", (2, None, 2, Some(0), &[])),
            ("a lane has begun", (3, Some((0, 2)), 3, Some(0), &[(0, 0)])),
            ("within a lane", (4, Some((0, 2)), 4, Some(0), &[(0, 1)])),
            ("all that the checkpoint covers", (5, Some((0, 2)), 5, Some(0), &[(0, 2)])),
            ("more than the checkpoint covers", (5, Some((0, 1)), 2, Some(0), &[])),
            ("after the head log's entry", (6, None, 6, Some(1), &[(0, 2)])),
            ("an entry without its event", (7, None, 6, Some(1), &[(0, 2)])),
            ("an entry with its event", (8, None, 8, Some(2), &[(0, 2)])),
            ("a second lane", (10, Some((1, 4)), 10, Some(2), &[(0, 2), (1, 3)])),
            ("the head log has no other entry", (10, None, 8, Some(2), &[(0, 2)])),
            ("the checkpoint is of another lane", (10, Some((0, 9)), 8, Some(2), &[(0, 2)])),
            ("the rest of a lane", (12, None, 11, Some(3), &[(0, 2), (1, 3)])),
            (
                "the head log covers the rest now",
                (12, Some((0, 3)), 12, Some(3), &[(0, 3), (1, 3)]),
            ),
            ("it covers none of the rest", (12, Some((0, 2)), 11, Some(3), &[(0, 2), (1, 3)])),
            ("the rest of two lanes", (13, Some((0, 9)), 11, Some(3), &[(0, 2), (1, 3)])),
            ("a checkpoint", (14, Some((0, 9)), 11, Some(3), &[(0, 2), (1, 3)])),
        ];
        let (path, lines) = (file("resumed"), lines());
        for (what, (count, checkpoint, kept, head, lanes)) in cases {
            // The next line is cut anywhere, or not begun.
            let next = if *count == 0 { "" } else { lines.get(*count).map_or("", |line| &**line) };
            for cut in [0, next.len() / 2, next.len().saturating_sub(1)] {
                fs::write(&path, lines[..*count].concat() + &next[..cut]).unwrap();
                let opened = Output::open(&path, "acme", BASE, |_| Ok(*checkpoint));
                let (mut output, begun) = opened.unwrap();
                output.line(&json!("next")).unwrap();
                drop(output);
                let written = fs::read_to_string(&path).unwrap();
                let written: Vec<&str> = written.lines().skip(1).collect();
                let mut expected: Vec<&str> =
                    lines[1..*kept].iter().map(|it| it.trim_end()).collect();
                expected.push("\"next\"");
                assert_eq!(written, expected, "{what}, cut at {cut}");
                let next: Vec<_> = begun.lanes.iter().map(|it| (it.lane, it.next)).collect();
                let of_head = begun.head.map(|head| head.next);
                assert_eq!((of_head, &next[..]), (*head, *lanes), "{what}, cut at {cut}");
            }
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_the_head_log_said_of_deleted_receipts_is_known_when_an_export_goes_on() {
        let path = file("deleted");
        fs::write(&path, lines()[..11].concat()).unwrap();
        let (output, begun) = Output::open(&path, "acme", BASE, |_| Ok(None)).unwrap();
        drop(output);
        fs::remove_file(path).unwrap();
        let lanes: Vec<_> = begun.lanes.iter().map(|it| (it.begin, it.pruned_through)).collect();
        assert_eq!((begun.entries, &lanes[..]), (6, &[(0, 0), (2, 2)][..]));
    }

    #[test]
    fn from_a_lost_row_on_an_export_is_read_again_unless_it_is_whole() {
        let path = file("lost");
        let (log, leaf_hash) = ("acme.lane-1", "A".repeat(43) + "=");
        let lost = json!({ "type": "missing", "log": log, "index": 3, "leaf_hash": leaf_hash });
        let (lost, end) = (format!("{lost}\n"), json!({ "type": "end", "entries": 9 }));
        for (rest, is_whole) in [(String::new(), false), (format!("{end}\n"), true)] {
            let before = lines()[..10].concat();
            let after = lines()[10..].concat();
            fs::write(&path, [&*before, &*lost, &*after, &*rest].concat()).unwrap();
            let opened = Output::open(&path, "acme", BASE, |_| Ok(Some((1, 4))));
            assert_eq!(opened.is_err(), is_whole);
            drop(opened);
            assert_eq!(fs::read_to_string(&path).unwrap() == before, !is_whole);
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn if_the_head_log_cannot_be_read_the_file_stays_as_it_is() {
        let path = file("unread");
        let text = lines()[..4].concat();
        fs::write(&path, &text).unwrap();
        let opened = Output::open(&path, "acme", BASE, |_| Err(Failure::other("no answer")));
        let failure = opened.err();
        let left = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert!(failure.is_some());
        assert_eq!(left, text);
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
