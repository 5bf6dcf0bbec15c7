//! What a verification found, for people and as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::json;

use super::fault::Fault;
use super::head::Epochs;
use super::identity::{Cosignature, Signed};
use super::lane::{Head, Lane};
use super::log::Log;
use crate::table::{self, Field};

const LOGS: &[Field] = &[
    Field::column("log"),
    Field::column("receipts"),
    Field::column("size"),
    Field::column("root"),
    Field::column("key_id"),
];

/// What was found. If a fault ended the verification, it has only faults: then nothing is known of the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub verified: bool,
    /// First fault first.
    pub faults: Vec<Fault>,
    /// Lost rows that are not listed, because there are too many.
    pub unlisted_faults: u64,
    /// The logs whose trees and checkpoints hold: lanes, then the head.
    pub logs: Vec<Verified>,
    /// The cosignatures of the head's checkpoint by given witnesses.
    pub cosignatures: Vec<Cosignature>,
    pub notes: Vec<Note>,
}

/// A log that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    pub log: String,
    /// How many receipts were verified.
    pub receipts: u64,
    /// The number of the first of them.
    pub first_receipt: Option<u64>,
    pub last_receipt: Option<u64>,
    /// The size and the root of the tree that the checkpoint is of.
    pub size: u64,
    pub root: String,
    /// The keys that signed the checkpoint, as verifier keys.
    pub keys: Vec<String>,
}

/// Something that a reader must know about a log, and that is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    pub log: String,
    pub note: String,
}

impl Report {
    /// A verification that a fault ended.
    pub fn failed(faults: Vec<Fault>) -> Self {
        let (unlisted_faults, logs, cosignatures, notes) = Default::default();
        Self { verified: false, faults, unlisted_faults, logs, cosignatures, notes }
    }

    /// A verification that reached the end of the export.
    pub fn new<'l>(head: &Head, lanes: impl Iterator<Item = &'l Lane>, witnessed: bool) -> Self {
        let mut report = Self { verified: true, ..Self::failed(Vec::new()) };
        for lane in lanes {
            let (Some(log), Some(last)) = (&lane.log, &lane.last) else { continue };
            report.log(log, last);
            let recorded = lane.recorded.as_ref().map_or(0, |recorded| recorded.tree.size);
            if lane.recorded.is_none() {
                report.note(log, "the head has no checkpoint of this lane yet");
            } else if recorded < log.size() {
                let numbers = log.numbers(recorded, log.size());
                let (from, to) = (numbers.start(), numbers.end());
                report.note(
                    log,
                    format!(
                        "the head has no checkpoint of the receipts {from} to {to} yet; only the lane's own has them"
                    ),
                );
            }
        }
        let Some((last, cosigned)) = &head.last else { return report };
        report.log(&head.log, last);
        report.cosignatures.clone_from(&cosigned.by);
        if cosigned.others > 0 {
            let others = cosigned.others;
            report.note(
                &head.log,
                format!("cosignatures of witnesses that were not given, and not checked: {others}"),
            );
        }
        if !witnessed {
            report.note(
                &head.log,
                "no witness was given: the key's holder could have shown others another log",
            );
        }
        report
    }

    fn log(&mut self, log: &Log, last: &Signed) {
        let present = log.size().saturating_sub(log.begin);
        let numbers = log.numbers(log.begin, log.size());
        self.logs.push(Verified {
            log: log.name().to_owned(),
            receipts: present.saturating_sub(log.missing),
            first_receipt: (present > 0).then_some(*numbers.start()),
            last_receipt: (present > 0).then_some(*numbers.end()),
            size: last.tree.size,
            root: STANDARD.encode(last.tree.root),
            keys: last.keys.clone(),
        });
        if log.first > 1 {
            let before = log.first.saturating_sub(1);
            self.note(log, format!("the receipts up to {before} are older than the log"));
        }
        if log.begin > 0 {
            let numbers = log.numbers(0, log.begin);
            let (from, to) = (numbers.start(), numbers.end());
            let recorded = match log.is_head() {
                true => "nothing records that retention did it",
                false => "the head records that retention did it",
            };
            self.note(log, format!("the receipts {from} to {to} were deleted; {recorded}"));
        }
    }

    /// Notes how many registry events are gone.
    pub fn gone_events(&mut self, head: &str, count: u64) {
        if count > 0 {
            let note = format!(
                "audit events of registry changes that are gone: {count}; the tree has their hashes"
            );
            self.notes.push(Note { log: head.to_owned(), note });
        }
    }

    /// Notes the epochs between two registry events that have none.
    pub fn skipped_epochs(&mut self, head: &str, epochs: &Epochs) {
        if let Some((epoch, receipt)) = epochs.first_skipped {
            let skipped = epochs.skipped;
            let note = format!(
                "epochs of the registry without an event: {skipped}, the first is {epoch}, before receipt {receipt}; \
                 nothing records why"
            );
            self.notes.push(Note { log: head.to_owned(), note });
        }
    }

    /// Adds the faults that did not end the verification.
    pub fn faults(&mut self, faults: Vec<Fault>, unlisted: u64) {
        self.verified = faults.is_empty();
        (self.faults, self.unlisted_faults) = (faults, unlisted);
    }

    fn note(&mut self, log: &Log, note: impl Into<String>) {
        self.notes.push(Note { log: log.name().to_owned(), note: note.into() });
    }

    /// The report for people.
    pub fn shown(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if !self.faults.is_empty() {
            let faults = self.faults.iter().map(ToString::to_string);
            let unlisted = (self.unlisted_faults > 0)
                .then(|| format!("… and {} more lost rows", self.unlisted_faults));
            parts.push(faults.chain(unlisted).collect::<Vec<_>>().join("\n"));
        }
        if !self.logs.is_empty() {
            let rows = self.logs.iter().map(Verified::row).collect::<Vec<_>>();
            parts.push(table::list(LOGS, &rows));
        }
        let cosignatures = self.cosignatures.iter();
        let cosignatures = cosignatures
            .map(|it| format!("The head is cosigned by {} at {}", it.witness, it.cosigned_at));
        let notes = self.notes.iter().map(|it| format!("Note: {}: {}", it.log, it.note));
        let rest: Vec<String> =
            cosignatures.chain(notes).map(|line| table::printable(&line)).collect();
        if !rest.is_empty() {
            parts.push(rest.join("\n"));
        }
        parts.join("\n\n")
    }
}

impl Verified {
    fn row(&self) -> serde_json::Value {
        let numbers = match (self.first_receipt, self.last_receipt) {
            (Some(first), Some(last)) => format!("{} ({first} to {last})", self.receipts),
            _ => "0".to_owned(),
        };
        // The name and the key are long, and the same for each log.
        let ids = self.keys.iter().map(|key| key.split('+').nth(1).unwrap_or_default());
        let key_id = ids.collect::<Vec<_>>().join(", ");
        json!({
            "log": self.log,
            "receipts": numbers,
            "size": self.size,
            "root": self.root,
            "key_id": key_id,
        })
    }
}
