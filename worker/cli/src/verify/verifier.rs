//! Takes an export line by line.
//!
//! INVARIANT (one pass): it holds one edge and one hash for each log, and nothing that grows with the entries. The
//! order of the lines makes that enough: when the head's checkpoint of a lane comes, the lane has exactly the entries
//! that the checkpoint is of.

use std::collections::BTreeMap;

use gateward_core::json::Json;
use gateward_core::name::is_name;
use gateward_core::tlog::Hash;

use super::fault::{Fault, Kind};
use super::head::{Epochs, HEAD_LANE, HeadBody, RegistryEvent};
use super::identity::{Part, Trust};
use super::lane::{Head, Lane};
use super::line::{Line, LogLine};
use super::log::Log;
use super::report::Report;
use super::signatures::Check;

/// Faults that are listed. Only lost rows can be so many: everything else ends the verification.
const FAULTS_MAX: usize = 100;

/// What has to come next.
#[derive(Debug)]
enum Phase {
    Export,
    /// Logs with their entries, then checkpoints.
    Entries,
    /// The event of the head's entry with this index.
    Event(u64, RegistryEvent),
    /// Only checkpoints.
    Checkpoints,
    End,
    Nothing,
}

/// An export under verification.
pub struct Verifier<'t> {
    trust: &'t Trust,
    phase: Phase,
    /// The current line, from 1.
    line: u64,
    tenant: String,
    /// What origins have before the log's name.
    base: String,
    head: Option<Head>,
    /// At most [`gateward_core::bounds::MAX_LANES`].
    lanes: BTreeMap<u16, Lane>,
    entries: u64,
    gone_events: u64,
    epochs: Epochs,
    faults: Vec<Fault>,
    unlisted_faults: u64,
}

impl<'t> Verifier<'t> {
    pub fn new(trust: &'t Trust) -> Self {
        Self {
            trust,
            phase: Phase::Export,
            line: 0,
            tenant: String::new(),
            base: String::new(),
            head: None,
            lanes: BTreeMap::new(),
            entries: 0,
            gone_events: 0,
            epochs: Epochs::default(),
            faults: Vec::new(),
            unlisted_faults: 0,
        }
    }

    /// Takes the next line. Returns the check of a signature in it, which is still to be done. After an error nothing
    /// more can be verified.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<Check>, Fault> {
        self.line += 1;
        if matches!(self.phase, Phase::Nothing) {
            return Err(self.fault(Kind::AfterEnd, "there must be nothing after the end"));
        }
        let line = Line::parse(bytes).map_err(|detail| self.fault(Kind::MalformedLine, detail))?;
        let taken = match (&self.phase, line) {
            (Phase::Export, Line::Export { tenant, origin }) => self.export(tenant, origin),
            (Phase::Entries, Line::Log(log)) => self.log(log),
            (Phase::Entries, Line::Entry { log, index, body }) => {
                return self.entry(&log, index, &body);
            }
            (Phase::Entries, Line::Missing { log, index, leaf_hash }) => {
                self.missing(&log, index, leaf_hash)
            }
            (Phase::Event(..), Line::Event { log, index, event }) => {
                self.event(&log, index, event.as_deref())
            }
            (Phase::Entries | Phase::Checkpoints, Line::Checkpoint { log, note }) => {
                self.checkpoint(&log, &note)
            }
            (Phase::End, Line::End { entries }) => self.end(entries),
            (phase, line) => {
                let expected = phase.expects();
                let detail = format!("a line of the type `{}` instead of {expected}", line.kind());
                Err(self.fault(Kind::WrongOrder, detail))
            }
        };
        taken.map(|()| None)
    }

    /// The line is longer than a line can be.
    pub fn too_long(&mut self) -> Fault {
        self.line += 1;
        self.fault(Kind::MalformedLine, "the line is longer than any line of an export")
    }

    /// The fault if the export ends here.
    pub fn cut(&mut self) -> Option<Fault> {
        self.line += 1;
        let detail = format!("the export ends here, instead of {}", self.phase.expects());
        let is_cut = !matches!(self.phase, Phase::Nothing);
        is_cut.then(|| self.fault(Kind::MissingEnd, detail))
    }

    /// What was found, if the export ends here.
    pub fn finish(self) -> Report {
        let Some(head) = self.head else { return Report::failed(self.faults) };
        let mut report = Report::new(&head, self.lanes.values(), self.trust.has_witnesses());
        report.gone_events(&head.identity.name, self.gone_events);
        report.skipped_epochs(&head.identity.name, &self.epochs);
        report.faults(self.faults, self.unlisted_faults);
        report
    }

    /// What was found, if `fault` ends the verification.
    pub fn fail(self, fault: Fault) -> Report {
        let mut faults = self.faults;
        faults.push(fault);
        // What disagrees with the head is found at its end, but is in an earlier line.
        faults.sort_by_key(|fault| fault.line);
        Report::failed(faults)
    }

    /// Forgets the faults after a line.
    pub fn forget_after(&mut self, line: u64) {
        self.faults.retain(|fault| fault.line < line);
    }

    fn export(&mut self, tenant: String, origin: String) -> Result<(), Fault> {
        if !is_name(&tenant) {
            return Err(self.fault(Kind::MalformedLine, "`tenant` must be the name of a tenant"));
        }
        let head = format!("{origin}/{}", Part::Head.name(&tenant));
        if head != self.trust.head_origin() {
            let expected = self.trust.head_origin();
            let detail = format!("the export is of `{head}`, and the key of `{expected}`");
            return Err(self.fault(Kind::WrongKey, detail));
        }
        (self.tenant, self.base, self.phase) = (tenant, origin, Phase::Entries);
        Ok(())
    }

    fn log(&mut self, begin: LogLine) -> Result<(), Fault> {
        let part = self.part(&begin.log)?;
        let twice = || self.fault(Kind::WrongOrder, "the log begins twice").of(&begin.log);
        match part {
            Part::Head if self.head.is_some() => Err(twice()),
            Part::Head if begin.first != 1 => {
                let detail = "the number of the head's first receipt must be 1";
                Err(self.fault(Kind::MalformedLine, detail).of(&begin.log))
            }
            Part::Head => {
                let identity = self.trust.identity(&self.base, begin.log.clone());
                let log = Log::begin(&self.tenant, &identity.name, HEAD_LANE, begin, self.line)?;
                self.head = Some(Head { identity, log, last: None });
                Ok(())
            }
            Part::Lane(number) => {
                if self.lanes.get(&number).is_some_and(|lane| lane.log.is_some()) {
                    return Err(twice());
                }
                let log = Log::begin(&self.tenant, &begin.log.clone(), number, begin, self.line)?;
                self.lane(number).begin(log)
            }
        }
    }

    fn entry(&mut self, name: &str, index: u64, body: &str) -> Result<Option<Check>, Fault> {
        let line = self.line;
        let log = self.begun(name)?;
        let body = log.entry(index, body, line)?;
        let (receipt, is_head) = (log.first + index, log.is_head());
        self.entries += 1;
        if is_head { self.head_entry(index, receipt, body) } else { Ok(None) }
    }

    fn head_entry(&mut self, index: u64, receipt: u64, body: Json) -> Result<Option<Check>, Fault> {
        let (line, head) = (self.line, Part::Head.name(&self.tenant));
        match HeadBody::parse(body) {
            Ok(HeadBody::RegistryEvent(event)) => {
                self.epochs.take(event.epoch, receipt);
                self.phase = Phase::Event(index, event);
                Ok(None)
            }
            Ok(HeadBody::LaneCheckpoint(checkpoint)) => {
                self.lane(checkpoint.lane).record(checkpoint, head, receipt, line).map(Some)
            }
            Err(detail) => Err(self.fault(Kind::MalformedBody, detail).of(&head).receipt(receipt)),
        }
    }

    fn missing(&mut self, name: &str, index: u64, leaf: Hash) -> Result<(), Fault> {
        let line = self.line;
        let fault = self.begun(name)?.missing(index, leaf, line)?;
        self.entries += 1;
        let listed = self.faults.len();
        match self.faults.last_mut() {
            Some(last) if last.precedes(&fault) => last.last_receipt = fault.last_receipt,
            _ if listed < FAULTS_MAX => self.faults.push(fault),
            _ => self.unlisted_faults += 1,
        }
        Ok(())
    }

    fn event(&mut self, name: &str, index: u64, event: Option<&str>) -> Result<(), Fault> {
        let Phase::Event(expected, hashed) = &self.phase else {
            return Err(self.fault(Kind::WrongOrder, "there is no registry event before it"));
        };
        let head = Part::Head.name(&self.tenant);
        if name != head || index != *expected {
            let detail = format!("it must be the event of the head's entry {expected}");
            return Err(self.fault(Kind::WrongOrder, detail));
        }
        match event {
            None => self.gone_events += 1,
            // The head's first receipt has the number 1.
            Some(text) => hashed.check(text).map_err(|detail| {
                self.fault(Kind::WrongEvent, detail).of(&head).receipt(index + 1)
            })?,
        }
        self.phase = Phase::Entries;
        Ok(())
    }

    fn checkpoint(&mut self, name: &str, note: &str) -> Result<(), Fault> {
        let line = self.line;
        match self.part(name)? {
            Part::Lane(number) => {
                self.phase = Phase::Checkpoints;
                match self.lanes.get_mut(&number) {
                    Some(lane) => lane.finish(note, line),
                    None => Err(not_begun(name, line)),
                }
            }
            Part::Head => {
                self.phase = Phase::End;
                self.head_checkpoint(name, note)
            }
        }
    }

    /// The head's last checkpoint. With it, everything that the head names is known.
    fn head_checkpoint(&mut self, name: &str, note: &str) -> Result<(), Fault> {
        let line = self.line;
        let Some(head) = &mut self.head else { return Err(not_begun(name, line)) };
        let fault = |(kind, detail): (Kind, String)| Fault::new(kind, line, detail).of(name);
        let signed = head.identity.open(note).map_err(fault)?;
        head.log.confirm(signed.tree, line)?;
        self.lanes.values().try_for_each(|lane| lane.settle(line))?;
        let cosigned = self.trust.cosignatures(note).map_err(fault)?;
        head.last = Some((signed, cosigned));
        Ok(())
    }

    fn end(&mut self, entries: u64) -> Result<(), Fault> {
        if entries != self.entries {
            let detail = format!("it counts {entries} entries, but there are {}", self.entries);
            return Err(self.fault(Kind::WrongCount, detail));
        }
        self.phase = Phase::Nothing;
        Ok(())
    }

    /// Which log of the export's tenant has this name.
    fn part(&self, name: &str) -> Result<Part, Fault> {
        let wrong = || format!("the tenant `{}` has no log `{name}`", self.tenant);
        Part::of(&self.tenant, name).ok_or_else(|| self.fault(Kind::MalformedLine, wrong()))
    }

    /// A log whose `log` line was read.
    fn begun(&mut self, name: &str) -> Result<&mut Log, Fault> {
        let line = self.line;
        let log = match self.part(name)? {
            Part::Head => self.head.as_mut().map(|head| &mut head.log),
            Part::Lane(number) => self.lanes.get_mut(&number).and_then(|lane| lane.log.as_mut()),
        };
        log.ok_or_else(|| not_begun(name, line))
    }

    fn lane(&mut self, number: u16) -> &mut Lane {
        let (trust, base, tenant) = (self.trust, &self.base, &self.tenant);
        let name = || Part::Lane(number).name(tenant);
        self.lanes.entry(number).or_insert_with(|| Lane::new(trust.identity(base, name())))
    }

    fn fault(&self, kind: Kind, detail: impl AsRef<str>) -> Fault {
        Fault::new(kind, self.line, detail)
    }
}

fn not_begun(name: &str, line: u64) -> Fault {
    Fault::new(Kind::WrongOrder, line, format!("the log `{name}` has not begun"))
}

impl Phase {
    const fn expects(&self) -> &'static str {
        match self {
            Self::Export => "the line `export`",
            Self::Entries => "a log, an entry or a checkpoint",
            Self::Event(..) => "the event of the registry event before",
            Self::Checkpoints => "a checkpoint",
            Self::End => "the line `end`",
            Self::Nothing => "nothing",
        }
    }
}
