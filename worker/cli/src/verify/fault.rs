//! What is wrong with an export, and where.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::table::{cut, printable};

/// Characters of a fault's sentence. It can have text from the export, which may be a whole line.
const DETAIL_CHARACTERS_MAX: usize = 300;

/// The kinds of faults, as `--json` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The line is not JSON of the format's form.
    MalformedLine,
    /// The line must not be here.
    WrongOrder,
    /// The export is of another tenant or origin than the keys.
    WrongKey,
    /// The body is not JSON of its kind's form, or not canonical.
    MalformedBody,
    WrongTenant,
    WrongLane,
    WrongNumber,
    /// The body does not have the hash of the receipt before.
    BrokenLink,
    /// The row of a receipt is lost.
    MissingReceipt,
    /// The audit event is not the one whose hash the head has.
    WrongEvent,
    /// The signed note cannot be read, or no key signed it.
    InvalidCheckpoint,
    /// The checkpoint is of another log.
    WrongOrigin,
    /// The checkpoint is of a tree with more or fewer receipts.
    WrongSize,
    /// The checkpoint is of a tree with other receipts.
    WrongRoot,
    /// The log has no last checkpoint.
    MissingCheckpoint,
    /// The head has checkpoints of a lane that is not in the export.
    MissingLane,
    /// Nothing says that retention deleted the receipts that the export leaves out.
    UnrecordedPruning,
    /// A given witness did not cosign the head.
    MissingCosignature,
    /// The export was cut.
    MissingEnd,
    WrongCount,
    AfterEnd,
}

impl Kind {
    pub fn as_str(self) -> String {
        let name = serde_json::to_value(self).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }
}

/// A fault. Its texts are safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub fault: Kind,
    pub log: Option<String>,
    /// The receipt, or the first of those among which it is.
    pub first_receipt: Option<u64>,
    pub last_receipt: Option<u64>,
    /// The export's line at which it was found, from 1.
    pub line: u64,
    pub detail: String,
}

impl Fault {
    pub fn new(fault: Kind, line: u64, detail: impl AsRef<str>) -> Self {
        let detail = printable(&cut(detail.as_ref(), DETAIL_CHARACTERS_MAX));
        Self { fault, log: None, first_receipt: None, last_receipt: None, line, detail }
    }

    /// In a log, whose name was checked.
    pub fn of(self, log: &str) -> Self {
        Self { log: Some(log.to_owned()), ..self }
    }

    pub fn receipt(self, receipt: u64) -> Self {
        self.receipts(receipt..=receipt)
    }

    /// Whether `next` is the same fault of the next receipt, in the next line.
    pub fn precedes(&self, next: &Self) -> bool {
        let (Some(first), Some(last)) = (self.first_receipt, self.last_receipt) else {
            return false;
        };
        let lines = next.line.saturating_sub(self.line);
        let receipts = last.saturating_sub(first).saturating_add(1);
        self.fault == next.fault
            && self.log == next.log
            && next.first_receipt == Some(last.saturating_add(1))
            && lines == receipts
    }

    /// Among these receipts.
    pub fn receipts(self, receipts: RangeInclusive<u64>) -> Self {
        let (first, last) = receipts.into_inner();
        Self { first_receipt: Some(first), last_receipt: Some(last), ..self }
    }
}

/// One line for people.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.fault.as_str())?;
        if let Some(log) = &self.log {
            write!(f, "{log}, ")?;
        }
        match (self.first_receipt, self.last_receipt) {
            (Some(first), Some(last)) if first == last => write!(f, "receipt {first}, ")?,
            (Some(first), Some(last)) => write!(f, "receipts {first} to {last}, ")?,
            _ => {}
        }
        write!(f, "line {}: {}", self.line, self.detail)
    }
}
